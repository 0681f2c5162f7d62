"""A double that can be read in a minute: a model that speaks in sine waves, with the face of ``VoxCPM``."""

from __future__ import annotations

import hashlib
import queue
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from voxcpm_core import LoRAError, SpeechRequest, SpokenText, Take
from voxcpm_core.text import prepare_text


@dataclass(frozen=True)
class Defaults:
    cfg_value: float = 2.0
    inference_timesteps: int = 10
    temperature: float = 1.0


@dataclass
class SineModel:
    """Speaks one patch per letter (two at least) as a tone whose pitch comes from the seed.

    ``patch_delay`` is the time a patch takes; ``frequency`` fixes the pitch for all seeds; a text with
    "fail" in it breaks the model after two patches, one with "forever" never stops by itself.
    """

    sample_rate: int = 48_000
    patch_seconds: float = 0.16
    patch_delay: float = 0.0
    frequency: float | None = None
    model_id: str = "sine"
    weights_hash: str = "5" * 64
    generation: str = "VoxCPM2"
    device: str = "cpu"
    dtype: str = "float32"
    supports_reference: bool = True
    supports_control: bool = True
    defaults: Defaults = Defaults()
    lora: dict | None = None
    lengths: dict[int, int] = field(default_factory=dict)  # patches by seed, instead of by text
    closed: bool = False
    requests: list[SpeechRequest] = field(default_factory=list)  # what was asked, for tests to look at

    def prepare(self, request: SpeechRequest) -> SpokenText:
        return prepare_text(
            request.text,
            request.control,
            normalize=request.normalize,
            control_supported=self.supports_control,
            has_transcript=request.prompt_wav_path is not None,
        )

    def start(self, requests: SpeechRequest | list[SpeechRequest], seeds: list[int] | None = None) -> SineGeneration:
        if isinstance(requests, SpeechRequest):
            requests = [requests] * len(seeds or [None])
        seeds = list(seeds or [request.seed for request in requests])
        seeds = [random.SystemRandom().randrange(2**32) if seed is None else seed for seed in seeds]
        self.requests += requests
        return SineGeneration(self, requests, seeds)

    def tone(self, seed: int, patches: int, first: int = 0) -> np.ndarray:
        """The whole audio of a take, float32 [patches x patch samples], or of the patches from ``first`` on."""
        hertz = self.frequency or 110.0 * 2 ** (np.random.default_rng(seed).integers(0, 37) / 12)
        time_axis = np.arange(first * self.patch_samples, patches * self.patch_samples) / self.sample_rate
        return (0.3 * np.sin(2 * np.pi * hertz * time_axis)).astype(np.float32)

    def lora_of(self, request: SpeechRequest) -> dict | None:
        """Adapters change no tone. A file that begins with "for X" was made for the model X."""
        if request.lora is None:
            return {"strength": 1.0, **self.lora} if self.lora and self.lora["enabled"] else None
        if not request.lora or not request.lora_strength:
            return None
        data = Path(request.lora, "lora_weights.safetensors").read_bytes()
        if data.startswith(b"for "):
            raise LoRAError("model.layers.0.lora_A (no such layer)", data[4:].decode())
        digest = hashlib.sha256(data).hexdigest()[:16]
        return {"path": str(request.lora), "hash": digest, "strength": request.lora_strength}

    def is_too_long(self, take: Take, request: SpeechRequest) -> bool:
        return take.patches > 6 * len(take.spoken.text) and take.seconds > 2

    def voice_state(self, reference: object) -> dict:
        return {}  # it listens to no reference

    @property
    def patch_samples(self) -> int:
        return round(self.patch_seconds * self.sample_rate)

    def close(self) -> None:
        self.closed = True


class SineGeneration:
    """Rows of a :class:`SineModel`, filled by a thread of their own, all rows one patch per step."""

    def __init__(self, model: SineModel, requests: list[SpeechRequest], seeds: list[int]) -> None:
        self.seeds = seeds
        self.takes: list[Take | None] = [None] * len(seeds)
        self.steps = 0
        self._model = model
        self._requests = requests
        self._spoken = [model.prepare(request) for request in requests]
        self._cancelled = [threading.Event() for _ in seeds]
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._began = time.monotonic()
        threading.Thread(target=self._run, name="sine", daemon=True).start()

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        try:
            while (item := self._queue.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.cancel()

    def cancel(self, row: int | None = None) -> None:
        for index in range(len(self.seeds)) if row is None else [row]:
            self._cancelled[index].set()

    def _run(self) -> None:
        try:
            while any(take is None for take in self.takes):
                time.sleep(self._model.patch_delay)
                for row, take in enumerate(self.takes):
                    if take is None:
                        self._step(row)
                self.steps += 1
        except Exception as error:
            self._queue.put(error)
        self._queue.put(None)

    def _step(self, row: int) -> None:
        if self._cancelled[row].is_set():
            return self._end(row, "cancelled", "Stopped on request.")
        text = self._spoken[row].text
        if "fail" in text and self.steps == 2:
            raise RuntimeError("sine generator out of order\nsecond line")
        self._queue.put((row, self._model.tone(self.seeds[row], self.steps + 1, first=self.steps)))
        done = self.steps + 1
        wanted = self._model.lengths.get(self.seeds[row], max(len(text), 2))
        if done >= wanted and "forever" not in text:
            self._end(row, "stop", "", done)
        elif done >= self._requests[row].max_len:
            self._end(row, "limit", f"Ended at the limit of {done} patches.", done)

    def _end(self, row: int, ended_by: str, message: str, patches: int | None = None) -> None:
        patches = self.steps if patches is None else patches
        request, defaults = self._requests[row], self._model.defaults
        self.takes[row] = Take(
            samples=self._model.tone(self.seeds[row], patches),
            sample_rate=self._model.sample_rate,
            seed=self.seeds[row],
            attempt=0,
            ended_by=ended_by,
            message=message,
            patches=patches,
            spoken=self._spoken[row],
            cfg_value=defaults.cfg_value if request.cfg_value is None else request.cfg_value,
            inference_timesteps=request.inference_timesteps or defaults.inference_timesteps,
            temperature=defaults.temperature if request.temperature is None else request.temperature,
            generation_seconds=time.monotonic() - self._began,
            first_audio_seconds=self._model.patch_delay if patches else None,
        )

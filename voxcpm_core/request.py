"""What is asked (SpeechRequest) and what comes back (Take). Plain values, checked when they are used."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .audio import Audio
from .errors import RequestError
from .text import SpokenText

MAX_SEED = 2**32 - 1
MAX_LORA_STRENGTH = 2.0

Clip = str | Path | Audio


@dataclass(frozen=True)
class SpeechRequest:
    """One text to speak. None means: the checkpoint's own default.

    ``control`` describes the voice or the style (VoxCPM2). ``reference_wav_path`` gives the timbre only (VoxCPM2);
    ``prompt_wav_path`` with its exact transcript ``prompt_text`` is continued. ``min_len`` and ``max_len`` count
    patches; as in the reference package at least ``min_len + 2`` patches are made.
    """

    text: str
    control: str = ""
    reference_wav_path: Clip | None = None
    prompt_wav_path: Clip | None = None
    prompt_text: str | None = None
    cfg_value: float | None = None
    inference_timesteps: int | None = None
    temperature: float | None = None
    min_len: int = 2
    max_len: int = 4096
    normalize: bool = False
    seed: int | None = None
    patches_per_token: float | None = None  # a take with more is taken to have lost its text, and ended
    lora: str | Path | None = None  # adapter to speak with, folder or file; "" for none; None: what is attached
    lora_strength: float = 1.0  # how much of ``lora``: 0 is none of it, 1 all

    def check(self) -> None:
        """Raises RequestError naming the field, its value and the range."""
        for name in ("control", "prompt_text"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise RequestError(f"{name} is {value!r}; it must be text.")
        if not isinstance(self.lora, str | Path | None):
            raise RequestError(f"lora is {self.lora!r}; it must be the folder or the file of an adapter.")
        _in_range("cfg_value", self.cfg_value, 0.0, 20.0)
        _in_range("inference_timesteps", self.inference_timesteps, 2, 200, whole=True)
        _in_range("temperature", self.temperature, 0.0, 2.0)
        _in_range("min_len", self.min_len, 0, 100_000, whole=True)
        _in_range("max_len", self.max_len, 1, 100_000, whole=True)
        _in_range("patches_per_token", self.patches_per_token, 0.0, 1000.0)
        _in_range("lora_strength", self.lora_strength, 0.0, MAX_LORA_STRENGTH)
        check_seed(self.seed)
        has_text = self.prompt_text is not None and bool(self.prompt_text.strip())
        if self.prompt_wav_path is not None and not has_text:
            raise RequestError(
                "A prompt clip needs prompt_text, the exact words that are heard in it. To take only the voice from a "
                "clip, give it as the reference instead."
            )
        if self.prompt_wav_path is None and has_text:
            raise RequestError("prompt_text is given without prompt_wav_path, the clip in which it is heard.")


@dataclass(frozen=True)
class Take:
    """One recorded generation. ``samples`` float32 [n] at ``sample_rate``; the recorded ``seed`` makes it again."""

    samples: np.ndarray
    sample_rate: int
    seed: int
    ended_by: str  # "stop" | "limit" | "cancelled" | "error"
    message: str
    patches: int
    spoken: SpokenText
    cfg_value: float
    inference_timesteps: int
    temperature: float
    generation_seconds: float
    first_audio_seconds: float | None
    attempt: int = 0

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.sample_rate

    @property
    def rtf(self) -> float:
        """Seconds of computing per second of audio (rows that ran beside this one included)."""
        return self.generation_seconds / self.seconds if len(self.samples) else math.inf


def check_seed(seed: int | None) -> None:
    _in_range("seed", seed, 0, MAX_SEED, whole=True)


def check_max_rows(max_rows: int | None) -> None:
    _in_range("max_rows", max_rows, 1, 1024, whole=True)


def _in_range(name: str, value: float | None, low: float, high: float, whole: bool = False) -> None:
    if value is None:
        return
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not low <= value <= high or (whole and int(value) != value):
        kind = "a whole number" if whole else "a number"
        raise RequestError(f"{name} is {value!r}; it must be {kind} from {low} to {high}.")

"""The face of the package: the names that VoxCPM users know, and what a batch adds to them."""

from __future__ import annotations

import logging
import random
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from torch import Tensor

from .checkpoint import Progress, find_checkpoint, fingerprint, load, no_progress
from .config import read_config, read_generation_defaults
from .device import choose_device, choose_dtype_here
from .engine import Engine
from .errors import EngineError, RequestError, UnsupportedError
from .generation import Generation
from .jobs import Job, JobMaker
from .lora import Adapter, Wardrobe, Worn
from .request import MAX_SEED, Clip, SpeechRequest, Take, check_max_rows, check_seed
from .text import SpokenText, split_control
from .tokenizer import Tokenizer
from .voice_state import pack, unpack

log = logging.getLogger(__name__)


class VoxCPM:
    """A loaded model. Thread-safe: calls from several threads share the running batch."""

    def __init__(
        self,
        voxcpm_model_path: str | Path,
        zipenhancer_model_path: str | None = None,
        enable_denoiser: bool = False,
        optimize: bool = True,
        device: str | None = "auto",
        lora_config: object = None,
        lora_weights_path: str | None = None,
        *,
        dtype: str = "auto",
        on_progress: Progress = no_progress,
        max_rows: int | None = None,
        model_id: str | None = None,
    ):
        """Loads a checkpoint folder (:meth:`from_pretrained` also takes names).

        ``zipenhancer_model_path``, ``enable_denoiser``, ``optimize`` and ``lora_config`` are accepted for scripts
        written for the reference package and change nothing: rank and alpha come from the adapter's own files.
        """
        check_max_rows(max_rows)
        folder = Path(voxcpm_model_path).expanduser()
        on_progress("reading the checkpoint", None)
        config = read_config(folder)
        where = choose_device(device)
        number_format = choose_dtype_here(dtype, config.dtype, where)
        self.model, audio_vae = load(folder, where, number_format, on_progress)
        self.model_id = model_id or folder.name
        self.weights_hash = fingerprint(folder)
        self.device, self.dtype = str(where), str(number_format).removeprefix("torch.")
        self.generation = config.generation
        self.sample_rate = audio_vae.config.out_sample_rate
        self.defaults = read_generation_defaults(folder)
        self.lora: dict | None = None  # what is attached, for requests that ask for no adapter of their own
        self._wardrobe = Wardrobe(self.model)
        self._attached: Adapter | None = None
        tokenizer = Tokenizer(folder / "tokenizer.json", config.lm.vocab_size)
        self._jobs = JobMaker(config, audio_vae.config, tokenizer, self.defaults)
        self.patch_seconds = self._jobs.patch_seconds
        self.supports_reference, self.supports_control = self._jobs.has_references, self._jobs.has_control
        rows = max_rows or (16 if where.type == "cuda" else 8)
        self._engine = Engine(self.model, audio_vae, tokenizer, rows)
        self._close = weakref.finalize(self, self._engine.close)
        # what the reference package calls its inner model
        self.tts_model = SimpleNamespace(
            sample_rate=self.sample_rate, audio_vae=audio_vae, patch_size=config.patch_size, device=self.device
        )
        if lora_weights_path:
            try:
                self.load_lora(lora_weights_path)
            except Exception:
                self.close()
                raise
        on_progress("ready", 1.0)

    @classmethod
    def from_pretrained(
        cls,
        hf_model_id: str | Path = "openbmb/VoxCPM2",
        load_denoiser: bool = False,
        zipenhancer_model_id: str | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        optimize: bool = True,
        device: str | None = "auto",
        lora_config: object = None,
        lora_weights_path: str | None = None,
        *,
        revision: str | None = None,
        dtype: str = "auto",
        on_progress: Progress = no_progress,
        max_rows: int | None = None,
    ) -> VoxCPM:
        """Loads "nano" (embedded), a checkpoint folder, or a model of the hub.

        ``dtype``: auto, bfloat16 or float32. ``on_progress(stage, fraction or None)`` is told what is going on. Raises
        CheckpointError naming what is missing. For the arguments that change nothing see :class:`VoxCPM`.
        """
        folder = find_checkpoint(
            hf_model_id,
            revision=revision,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
            on_progress=on_progress,
        )
        return cls(
            folder,
            device=device,
            lora_weights_path=lora_weights_path,
            dtype=dtype,
            on_progress=on_progress,
            max_rows=max_rows,
            model_id=f"{hf_model_id}@{revision}" if revision else str(hf_model_id),
        )

    # ---- one call, one piece of audio: as in the reference package

    def generate(
        self,
        text: str,
        prompt_wav_path: Clip | None = None,
        prompt_text: str | None = None,
        reference_wav_path: Clip | None = None,
        cfg_value: float | None = None,
        inference_timesteps: int | None = None,
        min_len: int = 2,
        max_len: int = 4096,
        normalize: bool = False,
        denoise: bool = False,
        retry_badcase: bool = True,
        retry_badcase_max_times: int = 3,
        retry_badcase_ratio_threshold: float | None = None,
        seed: int | None = None,
        *,
        control: str | None = None,
        temperature: float | None = None,
    ) -> np.ndarray:
        """Speaks ``text``; float32 [n] at :attr:`sample_rate`.

        A control in brackets at the start of ``text`` is understood as in the reference package; with ``control`` given
        (even as "") brackets in ``text`` are words. A take far too long for its text is made again with the next seed,
        ``retry_badcase_max_times`` times in all; when all are bad the first is returned, so that the seed asked for
        is the seed that made the audio. See :meth:`generate_takes` for the seed and the end reason.
        """
        request = self._request(
            text, prompt_wav_path, prompt_text, reference_wav_path, cfg_value, inference_timesteps, min_len, max_len,
            normalize, denoise, seed, control, temperature, retry_badcase_ratio_threshold,
        )  # fmt: skip
        times = max(1, int(retry_badcase_max_times)) if retry_badcase else 1
        return _audio(self.speak(request, times))

    def generate_streaming(
        self,
        text: str,
        prompt_wav_path: Clip | None = None,
        prompt_text: str | None = None,
        reference_wav_path: Clip | None = None,
        cfg_value: float | None = None,
        inference_timesteps: int | None = None,
        min_len: int = 2,
        max_len: int = 4096,
        normalize: bool = False,
        denoise: bool = False,
        retry_badcase: bool = False,
        retry_badcase_max_times: int = 3,
        retry_badcase_ratio_threshold: float | None = None,
        seed: int | None = None,
        *,
        control: str | None = None,
        temperature: float | None = None,
    ) -> Iterator[np.ndarray]:
        """Like :meth:`generate`, one patch at a time as it is made. What was heard cannot be made again: no retries."""
        request = self._request(
            text, prompt_wav_path, prompt_text, reference_wav_path, cfg_value, inference_timesteps, min_len, max_len,
            normalize, denoise, seed, control, temperature, retry_badcase_ratio_threshold,
        )  # fmt: skip
        generation = self.start(request)
        for _, chunk in generation:
            yield chunk
        _audio(generation.takes[0])

    # ---- takes and batches

    def speak(self, request: SpeechRequest, attempts: int = 1) -> Take:
        """One take, whole; tries up to ``attempts`` seeds (seed, seed + 1, ...) while it is too long for its text.

        Never more than ``attempts`` generations; when all are too long the first take is returned with a message that
        says so.
        """
        base = request.seed if request.seed is not None else random_seed()
        first: Take | None = None
        for attempt in range(attempts):
            take = self.generate_takes(request, seeds=[(base + attempt) % (MAX_SEED + 1)])[0]
            take = replace(take, attempt=attempt)
            if attempts == 1 or not self._jobs.is_too_long(take, request):
                return take
            first = first or take
        message = f"All {attempts} attempts (seeds from {base}) came out too long for the text; this is the first one."
        log.warning(message)
        return replace(first, message=message)

    def generate_takes(
        self, request: SpeechRequest | None = None, n: int = 1, seeds: list[int] | None = None, **fields: object
    ) -> list[Take]:
        """``n`` takes of one request in one batch, with seeds seed, seed + 1, ... (or the ``seeds`` given).

        The request may be given by its fields: ``generate_takes(text="Hello.", control="calm", n=3)``.
        """
        if request is not None and fields:
            raise RequestError(f"A request is given, and also {', '.join(fields)}; give one or the other.")
        if n < 1 or (seeds is not None and len(seeds) == 0):
            raise RequestError("There is nothing to speak: no take was asked for.")
        request = request or SpeechRequest(**fields)
        if seeds is None:
            base = request.seed if request.seed is not None else random_seed()
            seeds = [(base + k) % (MAX_SEED + 1) for k in range(n)]
        generation = self.start(request, seeds)
        for _ in generation:
            pass
        return list(generation.takes)

    def generate_batch(self, requests: list[SpeechRequest]) -> list[Take]:
        """One take for each request, made side by side."""
        generation = self.start(list(requests))
        for _ in generation:
            pass
        return list(generation.takes)

    def stream_batch(self, requests: list[SpeechRequest]) -> Iterator[tuple[int, np.ndarray]]:
        """Audio of all requests as it is made: (number of the request, float32 samples of one patch)."""
        yield from self.start(list(requests))

    def start(self, requests: SpeechRequest | list[SpeechRequest], seeds: list[int] | None = None) -> Generation:
        """Begins and returns at once. One request with ``seeds``: a take per seed from one prefill; a list: a row each.

        Everything about the requests is checked here, before any model work; raises RequestError and its kinds.
        """
        for seed in seeds if seeds is not None else []:
            check_seed(seed)
        seeds = None if seeds is None else [int(seed) for seed in seeds]
        if isinstance(requests, SpeechRequest):
            seeds = seeds or [requests.seed if requests.seed is not None else random_seed()]
            jobs = [self._job(requests, list(enumerate(seeds)))]
        elif not all(isinstance(request, SpeechRequest) for request in requests):
            raise RequestError("A batch is a list of SpeechRequest, one for each text.")
        else:
            if seeds is not None and len(seeds) != len(requests):
                raise RequestError(f"{len(seeds)} seeds for {len(requests)} requests; give one for each, or none.")
            given = seeds or [r.seed if r.seed is not None else random_seed() for r in requests]
            jobs = [self._job(r, [(k, given[k])]) for k, r in enumerate(requests)]
            seeds = given
        if not jobs:
            raise RequestError("There is nothing to speak: the list of requests is empty.")
        generation = Generation([int(seed) for seed in seeds])
        generation.owner = self
        self._engine.submit(jobs, generation)
        return generation

    def prepare(self, request: SpeechRequest) -> SpokenText:
        """Exactly what would be spoken, without any model work. Raises TextError when nothing can be."""
        return self._jobs.prepare(request)

    def is_too_long(self, take: Take, request: SpeechRequest) -> bool:
        """The rule by which :meth:`speak` tries again: more patches than the text can need, and over two seconds."""
        return self._jobs.is_too_long(take, request)

    def voice_state(self, reference: Clip) -> dict[str, Tensor]:
        """What is remembered of a reference that was spoken with lately, as named tensors on the CPU; {} for none."""
        known = self._engine.recall(self._jobs.reference(reference))
        return {} if known is None else pack(*known)

    def use_voice_state(self, reference: Clip, state: Mapping[str, Tensor]) -> bool:
        """Spares the work of reading ``reference`` again; the audio stays the same.

        ``state`` comes from :meth:`voice_state` of a model with the same weights, device and dtype. What cannot belong
        to this model is not used (False).
        """
        audio = self._jobs.reference(reference)
        known = unpack(state, self.model, self._jobs.reference_patches(audio))
        if known is None:
            return False
        self._engine.remember(audio, *known)
        return True

    # ---- adapters

    def load_lora(self, lora_weights_path: str | Path) -> tuple[list[str], list[str]]:
        """Attaches an adapter, in place of one that is attached. Raises LoRAError listing every key that does not fit.

        It counts for the requests that are started from now on and ask for no adapter themselves (``lora``). Returns
        (loaded layers, skipped layers) as the reference package does; the second is always empty.
        """
        self._attached = self._wardrobe.adapter(lora_weights_path)
        self.lora = {**_adapter_facts(self._attached), "enabled": True}
        return self._attached.layers, []

    def unload_lora(self) -> None:
        self._attached = self.lora = None

    def set_lora_enabled(self, enabled: bool) -> None:
        """Switches the adapter off and on; off is the base model bit for bit."""
        if self.lora is not None:
            self.lora = {**self.lora, "enabled": enabled}

    def lora_of(self, request: SpeechRequest) -> dict | None:
        """The adapter that a request is spoken with: path, rank, alpha, hash, strength; None for the base model.

        Raises LoRAError when there is no such adapter, or it does not fit.
        """
        worn = self._worn(request)
        return None if worn is None else {**_adapter_facts(worn.adapter), "strength": worn.strength}

    @property
    def lora_enabled(self) -> bool:
        return self.lora is not None and self.lora["enabled"]

    @property
    def steps(self) -> int:
        """Turns of the running batch so far; stands still when nothing is being made."""
        return self._engine.steps

    def close(self) -> None:
        """Stops everything; takes being made end as cancelled. The memory is free when this object is let go."""
        self._close()

    def __enter__(self) -> VoxCPM:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- inside

    def _job(self, request: SpeechRequest, rows: list[tuple[int, int]]) -> Job:
        request.check()
        return self._jobs.job(request, rows, self._worn(request))

    def _worn(self, request: SpeechRequest) -> Worn | None:
        if request.lora is None:
            lora, adapter = self.lora, self._attached
            return Worn.of(adapter) if adapter is not None and lora is not None and lora["enabled"] else None
        return Worn.of(self._wardrobe.adapter(request.lora), request.lora_strength) if request.lora else None

    def _request(
        self, text, prompt_wav_path, prompt_text, reference_wav_path, cfg_value, inference_timesteps, min_len, max_len,
        normalize, denoise, seed, control, temperature, patches_per_token,
    ) -> SpeechRequest:  # fmt: skip
        if denoise:
            raise UnsupportedError(
                "denoise=True is not available here: clean the clip first and pass the cleaned file."
            )
        if control is None:
            control = ""
            if self.supports_control and prompt_wav_path is None and isinstance(text, str):
                control, text = split_control(text)
        return SpeechRequest(
            text, control, reference_wav_path, prompt_wav_path, prompt_text, cfg_value, inference_timesteps,
            temperature, min_len, max_len, normalize, seed, patches_per_token,
        )  # fmt: skip


def _adapter_facts(adapter: Adapter) -> dict:
    return {"path": adapter.path, "rank": adapter.rank, "alpha": adapter.alpha, "hash": adapter.weights_hash}


def random_seed() -> int:
    """A seed for a request that has none; the process-wide generators are left alone."""
    return random.SystemRandom().randint(0, MAX_SEED)


def _audio(take: Take) -> np.ndarray:
    if take.ended_by in ("error", "cancelled"):  # cancelled: the model was closed meanwhile
        error = EngineError(take.message)
        error.take = take  # what was made so far
        raise error
    if take.message:
        log.warning(take.message)
    return take.samples

"""Request -> Job: everything that can be checked or decided before the model works."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from .audio import Audio, load_reference
from .config import AudioVAEConfig, GenerationDefaults, ModelConfig
from .errors import RequestError, UnsupportedError
from .lora import Worn
from .request import Clip, SpeechRequest, Take, check_seed
from .text import SpokenText, clean_text, prepare_text
from .tokenizer import Tokenizer

log = logging.getLogger(__name__)

_CHARACTERS_PER_POSITION = 16  # no tokenizer joins more than this
_SHORTEST_BUDGET = 2.0  # seconds every text may take, however short it is


@dataclass(frozen=True)
class Job:
    """One request made ready: settings filled in, clips at the encoder's rate, one row for each of ``rows``."""

    request: SpeechRequest
    spoken: SpokenText
    reference: Audio | None
    prompt: Audio | None
    transcript: str  # of the prompt, "" without one
    cfg_value: float
    inference_timesteps: int
    temperature: float
    limit: int  # patches
    limit_message: str
    rows: tuple[tuple[int, int], ...]  # (row number in the generation, seed)
    worn: Worn | None = None  # the adapter that it is spoken with


@dataclass(frozen=True)
class JobMaker:
    """Knows the loaded checkpoint's abilities, defaults and limits; changes nothing."""

    config: ModelConfig
    vae: AudioVAEConfig
    tokenizer: Tokenizer
    defaults: GenerationDefaults

    @property
    def patch_seconds(self) -> float:
        return self.config.patch_size * self.vae.decoder_hop / self.vae.out_sample_rate

    @property
    def has_references(self) -> bool:
        return self.config.version == 2

    @property
    def has_control(self) -> bool:
        return self.config.version == 2

    def job(self, request: SpeechRequest, rows: list[tuple[int, int]], worn: Worn | None = None) -> Job:
        """``rows`` are (row number, seed). Raises RequestError and its kinds naming the field and the remedy."""
        request.check()
        self._check_length(request)
        for _, seed in rows:
            check_seed(seed)
        if request.reference_wav_path is not None and not self.has_references:
            raise UnsupportedError(
                f"{self.config.generation} cannot take a reference: it clones by continuing a clip. Give the clip as "
                "prompt_wav_path with its transcript as prompt_text, or load VoxCPM2."
            )
        if request.control and not self.has_control:
            raise UnsupportedError(
                f"{self.config.generation} has no voice design: it would read the control text aloud. Leave control "
                "empty, or load VoxCPM2."
            )
        spoken = self.prepare(request)
        reference = self._clip(request.reference_wav_path, "reference")
        prompt = self._clip(request.prompt_wav_path, "prompt")
        transcript = clean_text(request.prompt_text) if request.prompt_text and prompt is not None else ""
        limit, message = self._limit(request, spoken, transcript, reference, prompt)
        defaults = self.defaults
        return Job(
            request=request,
            spoken=spoken,
            reference=reference,
            prompt=prompt,
            transcript=transcript,
            cfg_value=defaults.cfg_value if request.cfg_value is None else float(request.cfg_value),
            inference_timesteps=int(request.inference_timesteps or defaults.inference_timesteps),
            temperature=defaults.temperature if request.temperature is None else float(request.temperature),
            limit=limit,
            limit_message=message,
            rows=tuple((number, int(seed)) for number, seed in rows),
            worn=worn,
        )

    def _check_length(self, request: SpeechRequest) -> None:
        """Refuses a text that can never fit before any work is spent on it."""
        most = _CHARACTERS_PER_POSITION * self.config.max_length
        if isinstance(request.text, str) and len(request.text) > most:
            raise RequestError(
                f"The text has {len(request.text)} characters, more than one take can ever hold ({most}). "
                "Split the text."
            )

    def reference(self, clip: Clip) -> Audio:
        """A reference at the encoder's rate. Raises AudioError."""
        return load_reference(clip, self.vae.sample_rate)[0]

    def reference_patches(self, reference: Audio) -> int:
        """How many patches a reference at the encoder's rate fills."""
        return -(-len(reference.samples) // (self.config.patch_size * self.vae.encoder_hop))

    def _clip(self, clip: Clip | None, name: str) -> Audio | None:
        if clip is None:
            return None
        audio, warnings = load_reference(clip, self.vae.sample_rate, name=name)
        for warning in warnings:
            log.warning("%s: %s", name, warning)
        return audio

    def _limit(
        self,
        request: SpeechRequest,
        spoken: SpokenText,
        transcript: str,
        reference: Audio | None,
        prompt: Audio | None,
    ) -> tuple[int, str]:
        """The most patches this request may take, and the sentence for the user who meets that limit."""
        tokens = len(self.tokenizer.encode(spoken.prompt))
        budget = int(tokens * self._patches_per_token(request) + 10)
        budget = max(budget, int(np.ceil(_SHORTEST_BUDGET / self.patch_seconds)))
        room = self.config.max_length - self._positions(transcript + spoken.prompt, reference, prompt)
        if room < 1:
            raise RequestError(
                f"Text and clips fill {self.config.max_length - room} positions; the model has "
                f"{self.config.max_length} for them and the audio together. Shorten the text or the clips, or "
                "split the text."
            )
        limit = min(budget, int(request.max_len), room)
        seconds = f"{limit * self.patch_seconds:.1f} s"
        if limit == request.max_len:
            return limit, f"Ended at the longest length asked for (max_len {limit}, {seconds})."
        if limit == budget:
            return (
                limit,
                f"Ended at {seconds}, the most that is plausible for this text; it may run on or repeat itself.",
            )
        return limit, f"Ended at {seconds}: the model's {self.config.max_length} positions are full. Split the text."

    def _positions(self, text: str, reference: Audio | None, prompt: Audio | None) -> int:
        samples = self.config.patch_size * self.vae.encoder_hop
        clips = sum(-(-len(clip.samples) // samples) for clip in (reference, prompt) if clip is not None)
        return len(self.tokenizer.encode(text)) + 1 + clips + (2 if reference is not None else 0)

    def prepare(self, request: SpeechRequest) -> SpokenText:
        """Exactly what would be spoken, without any model work. Raises TextError when nothing can be."""
        return prepare_text(
            request.text,
            request.control,
            normalize=request.normalize,
            control_supported=self.has_control,
            has_transcript=request.prompt_wav_path is not None,
            protect_brackets=request.prompt_wav_path is None,
        )

    def is_too_long(self, take: Take, request: SpeechRequest) -> bool:
        """Whether a take is longer than its text can be; within two seconds nothing is."""
        tokens = len(self.tokenizer.encode(take.spoken.prompt))
        longest = max(self._patches_per_token(request) * tokens, _SHORTEST_BUDGET / self.patch_seconds)
        return take.patches >= longest and take.patches * self.patch_seconds > _SHORTEST_BUDGET

    def _patches_per_token(self, request: SpeechRequest) -> float:
        return self.defaults.patches_per_token if request.patches_per_token is None else request.patches_per_token

"""A saved voice in a request, and what a generation of the model can do with clips."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from studio.voices import Voice
from voxcpm_core import Audio, SpeechRequest, VoxCPM
from voxcpm_core.errors import EngineError, RequestError

VoiceUse = Literal["reference", "prompt"]


def with_voice(request: SpeechRequest, voice: Voice, audio: Audio, use: VoiceUse = "reference") -> SpeechRequest:
    """The request, spoken with a voice: timbre only ("reference"), or going on from its clip ("prompt").

    Raises RequestError when the request brings a clip of its own for the same use, or the transcript is missing.
    """
    if use not in ("reference", "prompt"):
        raise RequestError(f"A voice is used as reference or prompt, not as {use!r}.")
    taken = request.reference_wav_path if use == "reference" else request.prompt_wav_path
    if taken is not None:
        raise RequestError(f"Both a clip and the voice {voice.name} are chosen as {use}. Take one of them away.")
    if use == "reference":
        return replace(request, reference_wav_path=audio)
    if not voice.transcript:
        raise RequestError(
            f"The voice {voice.name} has no transcript, so its clip cannot be continued. Use it as reference, or save "
            "it again with the exact words that are heard in it."
        )
    return replace(request, prompt_wav_path=audio, prompt_text=voice.transcript)


def refuse_unsupported(model: VoxCPM, request: SpeechRequest) -> None:
    """Raises EngineError, with what to do instead, for clips that this generation of the model cannot use."""
    if request.reference_wav_path is not None and not model.supports_reference:
        raise EngineError(
            f"{model.generation} takes no reference: it clones by going on from a clip whose exact words are known. "
            "Choose ultimate cloning and give the transcript, or load VoxCPM2."
        )

"""From a voice, a mode and a text to a request: the one place where cloning is asked for, by page and program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from studio.events import ModelStatus
from studio.ui.cloning_clip import refuse_other_words
from studio.ui.i18n import say
from studio.ui.settings import SettingError, check_length
from studio.voices import Voice, VoiceLibrary
from voxcpm_core import Audio, SpeechRequest

MODES = ("controllable", "ultimate")
SOURCES = ("clip", "voice", "adapter")
MADE_UP = frozenset({"design"})  # voices that belong to nobody


@dataclass(frozen=True)
class Speaker:
    """Whose voice it is: a clip with its words, a saved voice, or the adapter's own (no ``audio``).

    ``speech`` is known for clips (seconds).
    """

    audio: Audio | None
    transcript: str = ""
    agreed: bool = False
    speech: float | None = None
    voice_id: str = ""


def needs_consent(voice: Voice) -> bool:
    """Whether nobody has said yet that this voice may be used. A designed voice is nobody's."""
    return not voice.consent and voice.source not in MADE_UP


def saved_speaker(library: VoiceLibrary, voice_id: str, session: str | None, consent: bool) -> Speaker:
    """A saved voice. Raises StoreError when it is gone."""
    voice = library.voice(voice_id, session)
    agreed = consent or not needs_consent(voice)
    return Speaker(library.audio(voice.id, session), voice.transcript, agreed, voice_id=voice.id)


def refuse_unable(mode: str, status: ModelStatus) -> None:
    """Raises SettingError for a mode that there is not, or that the loaded model does not have."""
    if mode not in MODES:
        raise SettingError("cloning_wrong_mode", value=str(mode)[:40])
    if mode == "controllable" and status.state == "ready" and not status.supports_reference:
        raise SettingError("cloning_no_reference", generation=status.generation)


def clone_request(
    speaker: Speaker, mode: str, text: str, control: str = "", both: bool = False, **settings: Any
) -> tuple[SpeechRequest, dict[str, Any]]:
    """The request, and the options of ``Synthesizer.speak`` that go with it.

    Only what the mode uses is in it: no words in controllable cloning, no control text in ultimate cloning. A voice
    without a clip has no mode. Raises SettingError for what is missing.
    """
    if not speaker.agreed:
        raise SettingError("ask_consent")
    continues = mode == "ultimate" and speaker.audio is not None
    control = "" if continues else (control or "").strip()
    clip: dict[str, Any] = {"reference": speaker.audio}
    if continues:
        _refuse_words(speaker)
        clip = {"prompt": speaker.audio, **({"reference": speaker.audio} if both else {})}
    if not (text or "").strip():
        raise SettingError("ask_text")
    check_length(text, control)
    options: dict[str, Any] = {"notes": (say("en", "cloning_consent_note"),), "consent": True}
    if speaker.voice_id:  # its own clip comes from the library, so that the take knows the voice
        use = "prompt" if continues else "reference"
        clip.pop(use)
        options |= {"voice_id": speaker.voice_id, "voice_as": use}
    request = SpeechRequest(
        text=text,
        control=control,
        reference_wav_path=clip.get("reference"),
        prompt_wav_path=clip.get("prompt"),
        prompt_text=speaker.transcript.strip() if "prompt" in clip else None,
        **settings,
    )
    return request, options


def _refuse_words(speaker: Speaker) -> None:
    words = speaker.transcript.strip()
    if not words:
        raise SettingError("cloning_voice_no_words" if speaker.voice_id else "ask_words")
    check_length(words)
    if speaker.speech is not None:
        refuse_other_words(words, speaker.speech)

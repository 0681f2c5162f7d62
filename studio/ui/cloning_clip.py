"""The clip of the Cloning tab: taken in, looked at, improved; its words go with its sound.

What a visitor's session holds is small: hashes, choices and words. The sound lies with the kept clips.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from studio import clips, transcripts
from studio.clips import Clip
from studio.kept_clips import KeptClips
from studio.languages import estimate_seconds
from studio.reference_checks import ReferenceReport, check_reference
from studio.speech_activity import Region
from studio.transcripts import IMPOSSIBLE, UNLIKELY, Transcript, spoken_seconds, text_ratio
from studio.ui.settings import SettingError
from voxcpm_core.audio import MAX_REFERENCE_SECONDS, Audio, load_audio
from voxcpm_core.errors import AudioError

WORTH_CUTTING = 0.2  # seconds: a cut that leaves out less changes nothing


@dataclass(frozen=True)
class Version:
    """One state of a clip: the original, or what was made of it by ``choices``. Times are seconds."""

    hash: str
    seconds: float
    speech: float  # what a text can take of it: speech and short pauses
    cut: Region | None = None  # the proposed one
    choices: tuple[dict[str, Any], ...] = ()
    transcript: Transcript | None = None

    @property
    def worth_cutting(self) -> bool:
        return self.cut is not None and self.seconds - (self.cut[1] - self.cut[0]) > WORTH_CUTTING

    def did(self, step: str) -> bool:
        return any(choice["step"] == step for choice in self.choices)


@dataclass(frozen=True)
class ClipState:
    """A visitor's clip: as it came, and as it is used."""

    original: Version
    current: Version

    @property
    def is_changed(self) -> bool:
        return bool(self.current.choices)

    def stored_choices(self) -> dict[str, Any]:
        """What a voice keeps about how its clip was made; {} for the original itself."""
        choices = [dict(choice) for choice in self.current.choices]
        return {"original": self.original.hash, "steps": choices} if choices else {}


def take_in(path: Path, kept: KeptClips) -> tuple[ClipState, ReferenceReport]:
    """An uploaded or recorded file as a clip without words. Raises AudioError for what is no recording."""
    audio = load_audio(path, max_seconds=MAX_REFERENCE_SECONDS)
    report = check_reference(audio)
    if report.analysis is None:
        raise AudioError(report.checks[0].advice)
    version = _version(Clip.of(audio), report, kept)
    return ClipState(version, version), report


def _version(clip: Clip, report: ReferenceReport, kept: KeptClips) -> Version:
    regions = report.analysis.activity.regions if report.analysis else []
    return Version(kept.keep(clip.audio), clip.audio.seconds, spoken_seconds(regions), report.cut, clip.choices)


def _trimmed(clip: Clip, version: Version) -> Clip:
    return clips.trim(clip, *version.cut) if version.cut else clip


STEPS: Mapping[str, Callable[[Clip, Version], Clip]] = {
    "trim": _trimmed,
    "level": lambda clip, version: clips.level(clips.remove_dc(clip)),
    "denoise": lambda clip, version: clips.lower_noise(clip),
}


def improve(state: ClipState, step: str, text: str, kept: KeptClips) -> tuple[ClipState, ReferenceReport, str]:
    """One more step on the clip, a new clip beside the original; and the words that are still said in it.

    Raises AudioError and UnsupportedError of the step. ``text`` is what the transcript field shows.
    """
    version = state.current
    before = Clip(kept.audio(version.hash), state.original.hash, version.choices)
    words = words_of(state, text, before.audio)
    after = STEPS[step](before, version)
    report = check_reference(after.audio)
    if report.analysis is None:
        raise AudioError(report.checks[0].advice)
    transcript = transcripts.follow(words, before, after)
    made = replace(_version(after, report, kept), transcript=transcript)
    original = replace(state.original, transcript=words) if not state.is_changed else state.original
    return ClipState(original, made), report, transcript.text if transcript else ""


def words_of(state: ClipState, text: str, audio: Audio) -> Transcript | None:
    """What stands in the transcript field, as the words of the clip; heard times stay with it."""
    text = (text or "").strip()
    if not text:
        return None
    heard = state.current.transcript
    return heard.edited(text) if heard else transcripts.typed(text, audio)


def with_words(state: ClipState, heard: Transcript) -> ClipState | None:
    """The state with recognised words; None when they belong to another clip."""
    if heard.audio_hash != state.current.hash:
        return None
    return replace(state, current=replace(state.current, transcript=heard))


def plausible(text: str, speech: float) -> str:
    """ "ok", "warn" or "fail": whether a text can be what is said in ``speech`` seconds."""
    ratio = text_ratio(text, speech)
    if not IMPOSSIBLE[0] <= ratio <= IMPOSSIBLE[1]:
        return "fail"
    return "ok" if UNLIKELY[0] <= ratio <= UNLIKELY[1] else "warn"


def refuse_other_words(text: str, speech: float) -> None:
    """Raises SettingError when a text cannot be what is said in ``speech`` seconds."""
    if plausible(text, speech) == "fail":
        estimate = estimate_seconds(text)
        raise SettingError("cloning_words_fail", estimate=f"{estimate:.0f}", speech=f"{speech:.1f}")

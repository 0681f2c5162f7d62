"""The words of a clip, bound to its sound: another clip has no transcript, a shorter cut has a part of it.

Nothing here goes by file name. A :class:`Transcript` carries the content hash of the samples it belongs to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from studio.clips import Clip
from studio.languages import estimate_seconds
from studio.speech_activity import Region
from voxcpm_core.audio import Audio, content_hash

IMPOSSIBLE = (0.35, 2.6)  # estimated seconds of a text per second of speech: outside, it is another text
UNLIKELY = (0.55, 1.75)

_PAUSE_COUNTED = 0.4  # seconds: longer silences are not part of saying a text
# One written word: a Han, kana or Thai-like character with what clings to it, or a run of others.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}][^\w\s]*|[^\s{_UNSPACED}]+")


@dataclass(frozen=True)
class Word:
    """One word as it was heard: its text, start and end in seconds, and how sure the recogniser is (0..1)."""

    text: str
    start: float
    end: float
    sure: float = 1.0


@dataclass(frozen=True)
class Transcript:
    """A text and the content hash of the clip that says it; ``words`` are empty when nothing was recognised."""

    text: str
    audio_hash: str
    language: str = ""  # ISO 639-1
    words: tuple[Word, ...] = ()

    @property
    def heard(self) -> str:
        """What the recogniser heard, whatever was made of the text since; "" when it was not asked."""
        return " ".join(word.text for word in self.words)

    def edited(self, text: str) -> Transcript:
        """The same clip with a text corrected by hand; the heard words stay, to cut it by."""
        return replace(self, text=text.strip())


def typed(text: str, audio: Audio) -> Transcript:
    """A text that somebody wrote for a clip."""
    return Transcript(text.strip(), content_hash(audio))


def belonging(transcript: Transcript | None, audio: Audio) -> Transcript | None:
    """The transcript when it is this clip's, else None: after another clip was chosen, there is no text."""
    return transcript if transcript is not None and transcript.audio_hash == content_hash(audio) else None


def follow(transcript: Transcript | None, before: Clip, after: Clip) -> Transcript | None:
    """The transcript of ``after``, made from ``before`` by further steps; None when it cannot be known.

    Levels and noise change no words. A cut keeps the words inside it, by their times; a text without times goes.
    """
    done = len(before.choices)
    if transcript is None or belonging(transcript, before.audio) is None:
        return None
    if after.original != before.original or after.choices[:done] != before.choices:
        return None
    for choice in after.choices[done:]:
        if choice["step"] == "trim":
            transcript = _cut(transcript, choice["start"], choice["end"])
        if transcript is None:
            return None
    return replace(transcript, audio_hash=content_hash(after.audio))


def spoken_seconds(regions: list[Region]) -> float:
    """Seconds that a text can take: speech and short pauses in it."""
    gaps = (second[0] - first[1] for first, second in zip(regions, regions[1:], strict=False))
    return sum(end - start for start, end in regions) + sum(min(gap, _PAUSE_COUNTED) for gap in gaps)


def text_ratio(text: str, seconds: float) -> float:
    """Estimated seconds of saying a text per second there is; 1 fits."""
    return estimate_seconds(text) / max(seconds, 0.1)


def likeness(text: str, heard: str) -> float:
    """How far two texts have the same letters in the same order: 0 nothing .. 1 all. Signs and case do not count."""
    return SequenceMatcher(None, _letters(text), _letters(heard), autojunk=False).ratio()


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _cut(transcript: Transcript, start: float, end: float) -> Transcript | None:
    """The part of a text that is said between two moments, with its words' times from the new beginning."""
    inside = tuple(
        Word(word.text, max(word.start - start, 0.0), min(word.end, end) - start, word.sure)
        for word in transcript.words
        if start <= (word.start + word.end) / 2 <= end
    )
    if not inside:
        return None
    times = _written_times(transcript.text, transcript.words)
    kept = [span for span, moment in times if start <= moment <= end]
    if not kept:
        return None
    text = transcript.text[kept[0][0] : kept[-1][1]].strip()
    return replace(transcript, text=text, words=inside)


def _written_times(text: str, words: tuple[Word, ...]) -> list[tuple[tuple[int, int], float]]:
    """The place of each written word in the text, and the moment of its middle in the clip.

    Letters that were heard as written take their time from the word they were heard in; the others lie between.
    """
    heard, heard_at = "", []
    for word in words:
        letters = _letters(word.text)
        heard += letters
        heard_at += np.linspace(word.start, word.end, len(letters) + 2)[1:-1].tolist()
    spans = [match.span() for match in _WORD.finditer(text)]
    pieces = [_letters(text[first:last]) for first, last in spans]
    blocks = SequenceMatcher(None, "".join(pieces), heard, autojunk=False).get_matching_blocks()
    known = [(block.a + step, heard_at[block.b + step]) for block in blocks for step in range(block.size)]
    if not known:
        return []
    at, moments = zip(*known, strict=True)
    middles = np.cumsum([len(piece) for piece in pieces]) - np.array([(len(piece) + 1) / 2 for piece in pieces])
    return list(zip(spans, np.interp(middles, at, moments).tolist(), strict=True))


def as_dict(transcript: Transcript) -> dict[str, Any]:
    """JSON-able; :func:`from_dict` reads it."""
    words = [[word.text, word.start, word.end, word.sure] for word in transcript.words]
    return {**{key: getattr(transcript, key) for key in ("text", "audio_hash", "language")}, "words": words}


def from_dict(stored: dict[str, Any]) -> Transcript:
    """The transcript that :func:`as_dict` wrote."""
    words = tuple(Word(*word) for word in stored["words"])
    return Transcript(stored["text"], stored["audio_hash"], stored["language"], words)

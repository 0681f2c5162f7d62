"""Where each character of a text sounds: what alignments (``words``, ``segs`` of a data set) become for training.

A small model learns to read much faster when some attention heads are told which character is spoken when. The text of
an aligned item may also be written in phones, one private-use character per phone, wholly or for some of its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

VOWELS = tuple("aa ae ah ao aw ax ay eh er ey ih iy ow oy uh uw".split())
CONSONANTS = tuple("b ch d dh f g hh jh k l m n ng p r s sh t th v w y z zh".split())
PHONES = {phone: index for index, phone in enumerate(VOWELS + CONSONANTS)}
_PLAIN, _STRESSED = 0xE000, 0xE040  # private-use characters: every phone, and the vowels again with stress
_HEARD = 0.012  # seconds of a patch a phone must fill to count as heard in it


@dataclass(frozen=True)
class Segment:
    """One spoken phone (or a pause: its name is not in PHONES), times in seconds."""

    phone: str
    word: int  # index into the item's words, -1 for none
    stressed: bool
    start: float
    end: float


@dataclass(frozen=True)
class Timed:
    """Characters and when each sounds, [start, end) in seconds."""

    characters: list[str]
    spans: list[tuple[float, float]]


def read_segments(line: str) -> list[Segment]:
    """``"pau,-1,0,40 ae,0,1,124"`` = phone, word, stress, end in ms. Raises ValueError where it is not that."""
    segments, start = [], 0.0
    for entry in line.split():
        phone, word, stress, end = entry.split(",")
        segments.append(Segment(phone, int(word), stress == "1", start, int(end) / 1000))
        start = segments[-1].end
    return segments


def phone_character(segment: Segment) -> str:
    index = PHONES[segment.phone]
    return chr((_STRESSED if segment.stressed and segment.phone in VOWELS else _PLAIN) + index)


def spell(text: str, words: Sequence[str], segments: Sequence[Segment], in_phones: Sequence[bool], end: float) -> Timed:
    """``text`` in lower case, the words marked in ``in_phones`` written in phones.

    The letters of ``text`` must be those of ``words`` in order (see :func:`mismatch`). The letters of a word share its
    time equally. Spaces and signs sound from the end of the word before; the last of them lasts until the next word
    begins, or until ``end``.
    """
    spoken = _phones_by_word(segments)
    counts = [_letters(word) for word in words]
    characters: list[str] = []
    spans: list[tuple[float, float | None]] = []
    word, left, reached = -1, 0, 0.0
    for character in text.lower():
        if "a" <= character <= "z":
            if left == 0:
                word += 1
                while counts[word] == 0:
                    word += 1
                left = counts[word]
            phones, place = spoken[word], counts[word] - left
            start, reached = phones[0].start, phones[-1].end
            step = (reached - start) / counts[word]
            if not in_phones[word]:
                characters.append(character)
                spans.append((start + step * place, start + step * (place + 1)))
            elif place == 0:
                characters += [phone_character(segment) for segment in phones]
                spans += [(segment.start, segment.end) for segment in phones]
            left -= 1
        elif not (character == "'" and left and in_phones[word]):  # phones need no apostrophe inside their word
            characters.append(character)
            spans.append((reached, None))
    return Timed(characters, _close(spans, end))


def mismatch(text: str, words: Sequence[str], segments: Sequence[Segment]) -> str:
    """Why this alignment cannot be used; empty when it can."""
    if _letters(text) != sum(_letters(word) for word in words):
        return "the letters of 'text' are not those of 'words'"
    spoken = _phones_by_word(segments)
    silent = [word for index, word in enumerate(words) if _letters(word) and index not in spoken]
    return f"no phone in 'segs' belongs to the word '{silent[0]}'" if silent else ""


def attention_target(spans: Sequence[tuple[float, float]], patches: int, patch_seconds: float) -> np.ndarray:
    """Share of each patch that belongs to each character, and to the token after the text for what is left.

    ``[patches, len(spans) + 1]`` float32, rows sum to 1.
    """
    shares = np.concatenate((_overlap(spans, patches, patch_seconds), np.full((patches, 1), 1e-4)), axis=1)
    return (shares / shares.sum(1, keepdims=True)).astype(np.float32)


def phones_heard(segments: Sequence[Segment], patches: int, patch_seconds: float) -> np.ndarray:
    """Which of the phones sound in each patch: ``[patches, len(PHONES)]`` float32, 0 or 1."""
    known = [segment for segment in segments if segment.phone in PHONES]
    overlap = _overlap([(segment.start, segment.end) for segment in known], patches, patch_seconds)
    heard = np.zeros((patches, len(PHONES)), np.float32)
    for column, segment in enumerate(known):
        heard[overlap[:, column] > _HEARD, PHONES[segment.phone]] = 1
    return heard


def _overlap(spans: Sequence[tuple[float, float]], patches: int, patch_seconds: float) -> np.ndarray:
    """Seconds that patch and span share, [patches, spans]."""
    if not spans:
        return np.zeros((patches, 0))
    starts, ends = np.asarray(spans, np.float64).T
    edges = np.arange(patches + 1)[:, None] * patch_seconds
    return np.clip(np.minimum(ends, edges[1:]) - np.maximum(starts, edges[:-1]), 0, None)


def _phones_by_word(segments: Sequence[Segment]) -> dict[int, list[Segment]]:
    spoken: dict[int, list[Segment]] = {}
    for segment in segments:
        if segment.word >= 0 and segment.phone in PHONES:
            spoken.setdefault(segment.word, []).append(segment)
    return spoken


def _letters(text: str) -> int:
    return sum("a" <= character <= "z" for character in text.lower())


def _close(spans: Sequence[tuple[float, float | None]], end: float) -> list[tuple[float, float]]:
    """Gives open spans their end: the start of the span after, or ``end``."""
    closed: list[tuple[float, float]] = []
    for start, stop in reversed(spans):
        closed.append((start, end if stop is None else stop))
        end = start
    return closed[::-1]

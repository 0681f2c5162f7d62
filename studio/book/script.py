"""Text -> segments: what is spoken in one go, where a pause comes after it, and who speaks.

A segment keeps its text as it was written, tags included; all segments of a paragraph, one after the other, are the
paragraph. What is said is worked out from it (:func:`words_to_say`).

    [pause 0.8]      silence of 0.8 s; a segment ends there
    [voice: Anna]    Anna speaks until the next such tag or the end of the paragraph; [/voice] gives the word back
"""

from __future__ import annotations

import bisect
import itertools
import re
from dataclasses import dataclass
from functools import lru_cache

from studio.book import sentences
from studio.book.errors import BookError
from studio.book.manuscript import is_unspaced

LATIN_SECONDS = 1 / 15  # per character, calm reading; as measured on audiobooks: about 150 words a minute
HAN_SECONDS = 1 / 4.3
LONGEST_PAUSE_MS = 60_000
REMEMBERED = 8192  # texts: a review asks the same of every segment at each press of a key

_B = r"\s{0,3}"  # blanks within a tag; bounded, so that no text makes the search slow
_TAG = re.compile(
    rf"\[{_B}(?:"
    rf"(?:pause|停顿|停頓){_B}[:：]?{_B}(?P<pause>\d{{1,5}}(?:\.\d{{1,3}})?){_B}(?P<unit>ms|s|秒|毫秒)?"
    rf"|(?:voice|声音|聲音|角色){_B}[:：]{_B}(?P<voice>[^\[\]\n]{{1,60}}?)"
    rf"|(?P<end>/{_B}(?:voice|声音|聲音|角色))"
    rf"){_B}\]",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Limits:
    """The longest that one segment may be. Voices drift when a model speaks for much longer than half a minute."""

    characters: int = 400
    seconds: float = 22.0

    def check(self) -> None:
        """Raises BookError naming the value and its range."""
        if not 20 <= self.characters <= 2000:
            raise BookError(f"A segment of {self.characters} characters is not possible; choose 20 to 2000.")
        if not 4 <= self.seconds <= 60:
            raise BookError(f"A segment of {self.seconds:g} s is not possible; choose 4 to 60 s.")


@dataclass(frozen=True)
class Piece:
    """One segment to be. ``speaker``: "" for the narrator. ``pause_ms``: asked for by a tag, None for the usual one."""

    text: str
    speaker: str = ""
    pause_ms: int | None = None

    @property
    def is_spoken(self) -> bool:
        return is_spoken(self.text)


def segment(text: str, limits: Limits = Limits(), speaker: str = "") -> list[Piece]:  # noqa: B008
    """The segments of one paragraph, none longer than the limits. Every character but blanks is in exactly one."""
    pieces: list[Piece] = []
    for part in _parts(text, speaker):
        found = pack(text[part.start : part.end], limits)
        pieces += [Piece(words, part.speaker) for words in found]
        if found:
            pieces[-1] = Piece(found[-1], part.speaker, part.pause_ms)
    return pieces


@dataclass
class _Part:
    """A stretch of text between tags that end one."""

    start: int
    end: int
    speaker: str
    pause_ms: int | None = None


def _parts(text: str, speaker: str) -> list[_Part]:
    """Cut before a tag that names a speaker and after one that asks for a pause."""
    parts: list[_Part] = []
    start, who = 0, speaker
    place, has_words = 0, False  # the end of the newest tag; whether there are words since `start`
    for tag in _TAG.finditer(text):
        has_words = has_words or bool(text[place : tag.start()].strip())
        if tag["pause"] is None:
            if has_words:
                parts.append(_Part(start, tag.start(), who))
                start, has_words = tag.start(), False
            who = " ".join(tag["voice"].split()) if tag["voice"] else speaker
        else:
            wait = _milliseconds(tag)
            if parts and parts[-1].pause_ms is not None and place == start and not has_words:  # one pause after another
                wait, start = wait + parts[-1].pause_ms, parts.pop().start
            parts.append(_Part(start, tag.end(), who, min(wait, LONGEST_PAUSE_MS)))
            start, has_words = tag.end(), False
        place = tag.end()
    if has_words or text[place:].strip() or not parts:
        parts.append(_Part(start, len(text), who))
    else:
        parts[-1].end = len(text)  # tags that nothing follows
    return parts


def _skip_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _milliseconds(found: re.Match[str]) -> int:
    value = float(found["pause"])
    return round(value if found["unit"] in ("ms", "毫秒") else value * 1000)


def speaker_of_tags(text: str) -> str | None:
    """Whom the tags at the start of a text give the word ("" for the narrator), None without such a tag."""
    speaker, place = None, _skip_blanks(text, 0)
    while tag := _TAG.match(text, place):
        if tag["pause"] is None:
            speaker = " ".join((tag["voice"] or "").split())
        place = _skip_blanks(text, tag.end())
    return speaker


def pause_of_tags(text: str) -> int | None:
    """Milliseconds that the pause tags in a text ask for, None without one."""
    found = [_milliseconds(tag) for tag in _TAG.finditer(text) if tag["pause"] is not None]
    return min(sum(found), LONGEST_PAUSE_MS) if found else None


@lru_cache(maxsize=REMEMBERED)
def words_to_say(text: str) -> str:
    """A segment's text without its tags."""
    return " ".join(_TAG.sub(" ", text).split())


@lru_cache(maxsize=REMEMBERED)
def is_spoken(text: str) -> bool:
    """Whether there is anything to say: a letter or a digit beside the tags."""
    return any(char.isalnum() for char in _TAG.sub(" ", text))


@lru_cache(maxsize=REMEMBERED)
def estimated_seconds(text: str) -> float:
    """How long calm reading takes."""
    return sum(map(_char_seconds, words_to_say(text)))


def _char_seconds(char: str) -> float:
    return HAN_SECONDS if char > "\u2e7f" and is_unspaced(char) and char.isalnum() else LATIN_SECONDS


# ------------------------------------------------------------------------------------------------- packing


def pack(text: str, limits: Limits) -> list[str]:
    """Cut one speaker's text into few pieces within the limits, at the best places, of about equal length.

    Time is linear: every piece looks at no more characters than the limit, and a piece is never shorter than a fair
    share of it unless the text ends.
    """
    cost = [0.0, *itertools.accumulate(map(_char_seconds, text))]
    quality = sentences.cuts(text)
    end = len(text.rstrip())
    start = _skip_blanks(text, 0)
    pieces = []
    while start < end:
        reach = _reach(cost, start, end, limits)
        cut = end if reach >= end else _best_cut(text, quality, cost, start, reach, end, limits)
        pieces.append(text[start:cut].rstrip())
        start = _skip_blanks(text, cut)
    return pieces


def _reach(cost: list[float], start: int, end: int, limits: Limits) -> int:
    """The furthest place that a piece from ``start`` may end at."""
    by_time = bisect.bisect_right(cost, cost[start] + limits.seconds, lo=start + 1) - 1
    return max(start + 1, min(by_time, start + limits.characters, end))


def _best_cut(
    text: str, quality: bytearray, cost: list[float], start: int, reach: int, end: int, limits: Limits
) -> int:
    left = max((cost[end] - cost[start]) / limits.seconds, (end - start) / limits.characters)
    share = left / -(-left // 1) if left > 1 else 1.0  # of a full piece, when what is left is cut evenly
    wanted = start + round((reach - start) * min(1.0, share))
    for least, kind in (
        (0.3, sentences.SENTENCE),
        (0.35, sentences.CLAUSE),
        (0.4, sentences.BLANK),
        (0.4, sentences.HAN),
    ):
        places = [
            place for place in range(start + max(1, int((reach - start) * least)), reach + 1) if quality[place] >= kind
        ]
        if places:
            return min(places, key=lambda place: (abs(place - wanted), -place))
    anywhere = range(reach, start, -1)
    worst = next((place for place in anywhere if quality[place]), 0)
    return worst or next((place for place in anywhere if sentences.may_part(text, place)), reach)

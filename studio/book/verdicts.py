"""Red, amber or green for every segment, with the reasons: what is wrong with its take, by itself and in its place.

Worked out from the book at one moment, never stored: when a neighbour changes, so does the verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Literal

from studio.book import likeness
from studio.book.project import Book, BookTake, Segment
from studio.checks import VERDICTS, Check, worst

LEVEL_WARN, LEVEL_FAIL = 6.0, 12.0  # LU between neighbours, after each voice's own level
SHORTEST_LEVEL = 1.0  # seconds: the level of "Oh!" says nothing
LIKENESS_DROP = 0.15  # below the middle of its voice's takes


@dataclass(frozen=True)
class Judgement:
    """``verdict`` "" means that there is no take. ``checks`` are those that are not "ok", the worst first."""

    verdict: Literal["", "ok", "warn", "fail"] = ""
    checks: tuple[Check, ...] = ()

    @property
    def reason(self) -> str:
        """English sentences; a page in another language words the checks itself."""
        return " ".join(check.advice for check in self.checks)


def judge(book: Book) -> dict[int, Judgement]:
    """Every spoken segment's take, by the segment's number."""
    heard = {segment.id: book.current(segment) for segment in book.spoken}
    in_place = [_level_checks(book, heard), _likeness_checks(book, heard)]
    return {number: _judged(take, [c[number] for c in in_place if number in c]) for number, take in heard.items()}


def _judged(take: BookTake | None, in_place: list[Check]) -> Judgement:
    if take is None:
        return Judgement()
    faults = [Check.from_dict(fault) for fault in take.faults] + in_place
    faults.sort(key=lambda check: -VERDICTS.index(check.verdict))
    return Judgement(max(take.verdict, worst(faults), key=VERDICTS.index), tuple(faults))


def _level_checks(book: Book, heard: dict[int, BookTake | None]) -> dict[int, Check]:
    """Jumps of loudness from one take to the next of a chapter. Of the two, the one further off its voice is named."""
    off = _off_their_voice(book, heard)
    found: dict[int, Check] = {}
    for chapter in book.chapters:
        known = [segment for segment in chapter.spoken if segment.id in off]
        for one, other in zip(known, known[1:], strict=False):
            jump = off[one.id] - off[other.id]
            if abs(jump) >= LEVEL_WARN:
                odd, beside = (one, other) if abs(off[one.id]) > abs(off[other.id]) else (other, one)
                check = _level_check(off[odd.id] - off[beside.id], beside)
                if odd.id not in found or abs(found[odd.id].facts["jump"]) < abs(check.facts["jump"]):
                    found[odd.id] = check
    return found


def _level_check(jump: float, beside: Segment) -> Check:
    verdict = "fail" if abs(jump) >= LEVEL_FAIL else "warn"
    how = "louder" if jump > 0 else "softer"
    advice = f"{abs(jump):.0f} dB {how} than the segment beside it: listen to both, and re-roll it."
    return Check("jump", f"{jump:+.0f} dB", verdict, advice, {"jump": round(jump), "other": beside.id})


def _off_their_voice(book: Book, heard: dict[int, BookTake | None]) -> dict[int, float]:
    """How many LU each take is above the middle of its voice's takes: an export gives every voice one gain."""
    levels = {
        number: take.loudness
        for number, take in heard.items()
        if take and take.loudness is not None and take.seconds >= SHORTEST_LEVEL
    }
    middles = _middles(book, levels)
    return {number: level - middles[number] for number, level in levels.items()}


def _likeness_checks(book: Book, heard: dict[int, BookTake | None]) -> dict[int, Check]:
    """Takes that are less like their voice than its other takes are; those that are far off by themselves left out."""
    known = {number: take.likeness for number, take in heard.items() if take and take.likeness is not None}
    middles = _middles(book, known)
    found = {number: likeness.check(value, middles[number] - LIKENESS_DROP) for number, value in known.items()}
    return {
        number: check for number, check in found.items() if check.verdict == "warn" and known[number] >= likeness.WARN
    }


def _middles(book: Book, values: dict[int, float]) -> dict[int, float]:
    """By segment: the median of its voice's values."""
    voices = {segment.id: book.voice(segment) for segment in book.spoken if segment.id in values}
    by_voice: dict[str, list[float]] = {}
    for number, value in values.items():
        by_voice.setdefault(voices[number], []).append(value)
    middles = {voice: median(own) for voice, own in by_voice.items()}
    return {number: middles[voice] for number, voice in voices.items()}

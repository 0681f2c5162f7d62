"""The review of a book: one line per segment, what is left to listen to, and what comes next. Pure, no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from studio.book.project import Book, Chapter, Review, pauses_after
from studio.book.verdicts import Judgement, judge
from studio.checks import Check

Show = Literal["all", "open", "unreviewed", "red", "stale", "missing", "noted", "locked"]
SHOWS: tuple[Show, ...] = ("all", "open", "unreviewed", "red", "stale", "missing", "noted", "locked")


@dataclass(frozen=True)
class Line:
    """One spoken segment. ``number`` counts from 1 through the book; ``start`` and ``seconds`` are of its chapter."""

    segment: int
    chapter: int
    number: int
    start: float
    seconds: float
    text: str
    speaker: str
    state: Literal["missing", "stale", "ready", "silent"]
    review: Review
    verdict: Literal["", "ok", "warn", "fail"]
    checks: tuple[Check, ...]
    note: str
    locked: bool
    takes: int  # for its present words and voice
    take: str  # the id of what is heard now, "" for nothing

    @property
    def is_open(self) -> bool:
        """Whether somebody still has to listen to it. What is locked is settled, whatever was said of it."""
        return not self.locked and (self.review != "approved" or self.state != "ready")


@dataclass(frozen=True)
class Left:
    """How far a review is; ``seconds`` of sound are still to be heard."""

    total: int
    approved: int
    unreviewed: int
    redo: int
    red: int
    stale: int
    missing: int
    noted: int
    open: int
    seconds: float


def lines(book: Book, judged: Mapping[int, Judgement] | None = None) -> list[Line]:
    """Every spoken segment in reading order. ``judged``: what :func:`judge` said of the same book."""
    judged = judge(book) if judged is None else judged
    found: list[Line] = []
    for chapter in book.chapters:
        times = timeline(book, chapter)
        for segment in chapter.spoken:
            judgement, take = judged.get(segment.id, Judgement()), book.current(segment)
            start, end = times[segment.id]
            found.append(
                Line(
                    segment=segment.id,
                    chapter=chapter.id,
                    number=len(found) + 1,
                    start=start,
                    seconds=end - start,
                    text=segment.text,
                    speaker=segment.speaker,
                    state=book.state(segment),
                    review=segment.review,
                    verdict=judgement.verdict,
                    checks=judgement.checks,
                    note=segment.note,
                    locked=segment.locked,
                    takes=len(book.fitting(segment)),
                    take=take.take if take else "",
                )
            )
    return found


def timeline(book: Book, chapter: Chapter) -> dict[int, tuple[float, float]]:
    """Start and end of each spoken segment in seconds from the first word of its chapter; a missing one is estimated.

    An exported file begins with the preset's silence, less than a second, before that.
    """
    pauses = pauses_after(chapter.segments, book.project.settings.pauses)
    found, at = {}, 0.0
    for segment in chapter.spoken:
        take = book.current(segment)
        end = at + (take.seconds if take else book.estimate(segment))
        found[segment.id] = (at, end)
        at = end + pauses.get(segment.id, 0) / 1000
    return found


def wanted(
    all_lines: Sequence[Line],
    show: Show = "all",
    speaker: str | None = None,
    chapter: int | None = None,
    words: str = "",
) -> list[Line]:
    """The lines that a table shows. "open": the red ones first, then all others that nobody has approved."""
    needle = words.casefold().strip()
    found = [
        line
        for line in all_lines
        if _is_shown(line, show)
        and speaker in (None, line.speaker)
        and chapter in (None, line.chapter)
        and (not needle or needle in f"{line.text}\n{line.note}".casefold())
    ]
    return sorted(found, key=_urgency) if show == "open" else found


def left(all_lines: Sequence[Line]) -> Left:
    """The counters above the table."""

    def count(show: Show) -> int:
        return sum(_is_shown(line, show) for line in all_lines)

    return Left(
        total=len(all_lines),
        approved=sum(line.review == "approved" and line.state == "ready" for line in all_lines),
        unreviewed=count("unreviewed"),
        redo=sum(line.review == "redo" for line in all_lines),
        red=count("red"),
        stale=count("stale"),
        missing=count("missing"),
        noted=count("noted"),
        open=count("open"),
        seconds=sum(line.seconds for line in all_lines if line.is_open),
    )


def next_open(all_lines: Sequence[Line], after: int | None = None) -> Line | None:
    """What to listen to next: the first open line after this segment, or from the beginning. None: all is done.

    ``all_lines`` may be any choice and order of lines, as :func:`wanted` gives them.
    """
    place = next((number for number, line in enumerate(all_lines) if line.segment == after), -1)
    turned = [*all_lines[place + 1 :], *all_lines[: place + 1]]
    return next((line for line in turned if line.is_open and line.segment != after), None)


def _urgency(line: Line) -> int:
    return 0 if line.verdict == "fail" or line.review == "redo" else 1


def _is_shown(line: Line, show: Show) -> bool:
    match show:
        case "open":
            return line.is_open
        case "unreviewed":
            return line.review == "unreviewed"
        case "red":
            return line.verdict == "fail"
        case "stale" | "missing":
            return line.state == show
        case "noted":
            return bool(line.note)
        case "locked":
            return line.locked
    return True

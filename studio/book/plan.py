"""What a render job still has to make. Pure: worked out from the book, never stored, so it is never out of date."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field

from studio.book.errors import BookError
from studio.book.project import Book, CastMember, Segment

MOST_TAKES = 3
MOST_RETRIES = 10
MOST_ROWS = 64
BEST_ANCHOR_SECONDS = 7.0  # a clip of 5 to 10 s carries a voice well and leaves room for the text


@dataclass(frozen=True)
class Order:
    """What is wanted of a render. Without ``chapters`` and ``segments`` it is the whole book.

    ``retries``: how many more takes may be made for a segment whose takes fail their checks. ``goals``: segment ->
    how many takes it is to have in all, for re-rolls.
    """

    takes: int = 1
    retries: int = 2
    rows: int = 8
    chapters: tuple[int, ...] = ()
    segments: tuple[int, ...] = ()
    goals: dict[int, int] = field(default_factory=dict)

    def check(self) -> None:
        """Raises BookError naming the value and its range."""
        for name, value, least, most in (
            ("takes", self.takes, 1, MOST_TAKES),
            ("retries", self.retries, 0, MOST_RETRIES),
            ("rows", self.rows, 1, MOST_ROWS),
        ):
            if not least <= value <= most:
                raise BookError(f"{name} is {value}; choose {least} to {most}.")

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Order:
        found = json.loads(text)
        goals = {int(segment): int(goal) for segment, goal in found.pop("goals", {}).items()}
        for name in ("chapters", "segments"):
            found[name] = tuple(found.get(name, ()))
        return cls(**found, goals=goals)


@dataclass(frozen=True)
class Need:
    """Takes that one segment lacks: numbers ``first`` to ``first + count - 1`` of its ``key``."""

    segment: Segment
    key: str
    first: int
    count: int
    estimate: float  # seconds of audio, of one take


def in_scope(book: Book, order: Order) -> list[Segment]:
    """The spoken segments that an order is about, in reading order. Locked ones are left alone."""
    found = []
    for chapter in book.chapters:
        for segment in chapter.spoken:
            wanted = (not order.chapters or chapter.id in order.chapters) and (
                not order.segments or segment.id in order.segments
            )
            if wanted and not segment.locked:
                found.append(segment)
    return found


def needs(book: Book, order: Order, failed: Collection[int] = ()) -> list[Need]:
    """What is missing or stale, in reading order; ``failed`` segments are not tried again."""
    found = []
    for segment in in_scope(book, order):
        if segment.id in failed:
            continue
        key = book.key(segment)
        fitting = [take for take in book.takes.get(segment.id, ()) if take.key == key]
        count = _missing(order, segment.id, len(fitting), sum(take.verdict != "fail" for take in fitting))
        if count:
            first = max((take.number for take in fitting), default=-1) + 1
            found.append(Need(segment, key, first, count, book.estimate(segment)))
    return found


def _missing(order: Order, segment: int, made: int, good: int) -> int:
    if segment in order.goals:
        return min(max(0, order.goals[segment] - made), MOST_TAKES)
    if made < order.takes:
        return order.takes - made
    return min(max(0, order.takes - good), max(0, order.takes + order.retries - made))


def flagged(book: Book) -> Order:
    """One more take for every segment that the review sent back, or whose take fails its checks."""
    goals = {}
    for segment in book.spoken:
        current = book.current(segment)
        if segment.review == "redo" or (current is not None and current.verdict == "fail"):
            goals[segment.id] = len(book.fitting(segment)) + 1
    if not goals:
        raise BookError("No segment is flagged: none is marked to be done again, and none is red.")
    return Order(segments=tuple(goals), goals=goals)


def reroll(book: Book, segments: Collection[int], count: int = 1) -> Order:
    """``count`` more takes, with the next seeds, whatever there is."""
    found = {segment.id: segment for segment in book.spoken if segment.id in segments}
    goals = {number: len(book.fitting(segment)) + count for number, segment in found.items()}
    if not goals:
        raise BookError("There is nothing to say in what was chosen.")
    return Order(segments=tuple(goals), goals=goals)


def has_own_voice(member: CastMember) -> bool:
    """Whether a speaker is described (or nobody was cast), so that one of its takes has to be the anchor."""
    return not member.reference


def anchor_segment(book: Book, speaker: str, segments: Collection[Segment]) -> Segment | None:
    """The segment whose take is to carry this voice through the book: neither too short nor too long."""
    own = [segment for segment in segments if book.member(segment.speaker).speaker == speaker]
    return min(own, key=lambda s: (abs(book.estimate(s) - BEST_ANCHOR_SECONDS), s.id), default=None)

"""One render job at work: several segments at once, anchors first, until nothing is missing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from studio.book.library import Library
from studio.book.plan import Need, Order, anchor_segment, has_own_voice, in_scope, needs
from studio.book.project import Book, CastMember
from studio.book.speaking import Anchor, Outcome, SegmentSpeaker
from studio.database import StoreError
from studio.synthesizer import Synthesizer
from voxcpm_core.audio import load_audio

logger = logging.getLogger(__name__)

SAME_FAILURES = 5  # in a row, with one and the same sentence: then it is not about the segments
LOOK_SECONDS = 0.2  # how often a running job looks whether it is to pause


class Claims:
    """Segments that are being spoken, whichever job asked: two jobs that run at once never make the same one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claimed: set[int] = set()
        self._given_back: dict[int, int] = {}  # segment -> which return it was
        self._returns = 0

    def mark(self) -> int:
        """This moment, for :meth:`take`."""
        with self._lock:
            return self._returns

    def take(self, segment: int, planned: int) -> bool:
        """Whether it is the caller's now: not while it is another's, nor after another made it since the plan."""
        with self._lock:
            free = segment not in self._claimed and self._given_back.get(segment, 0) <= planned
            if free:
                self._claimed.add(segment)
            return free

    def give_back(self, segment: int) -> None:
        with self._lock:
            self._returns += 1
            self._given_back[segment] = self._returns
            self._claimed.discard(segment)

    def all(self) -> set[int]:
        with self._lock:
            return set(self._claimed)


@dataclass
class Tally:
    """How far and how fast a job is. Seconds are of audio unless they say otherwise."""

    total: int = 0  # segments in scope
    left: int = 0  # of them, those that lack a take
    takes_made: int = 0
    seconds_made: float = 0.0
    seconds_expected: float = 0.0  # for what was made, by the estimate
    seconds_left: float = 0.0  # by the estimate
    working_seconds: float = 0.0  # of clock time
    failures: dict[int, str] = field(default_factory=dict)

    @property
    def speed(self) -> float:
        """Seconds of audio per second of work; 0.0 before the first take."""
        return self.seconds_made / self.working_seconds if self.working_seconds else 0.0

    @property
    def eta_seconds(self) -> float | None:
        """Seconds of work that are left, by what the takes so far took. None before the first one."""
        if not self.takes_made or not self.speed:
            return None
        really = self.seconds_made / self.seconds_expected if self.seconds_expected else 1.0
        return self.seconds_left * really / self.speed


class Rendering:
    """Runs on the caller's thread. ``failed(segment, message)`` is told of each segment that could not be made."""

    def __init__(
        self,
        library: Library,
        synthesizer: Synthesizer,
        project: int,
        order: Order,
        failures: dict[int, str] | None = None,
        failed: Callable[[int, str], None] = lambda segment, message: None,
        claims: Claims | None = None,
    ) -> None:
        self._library, self._synthesizer = library, synthesizer
        self._claims = claims or Claims()
        self._planned = 0
        self._project, self._order, self._failed = project, order, failed
        self._speaker = SegmentSpeaker(library, synthesizer)
        self._anchors: dict[tuple[str, int], Anchor] = {}
        self._looked: dict[tuple[str, int], int] = {}  # Library.takes_noted when an anchor was looked for in vain
        self._flying: dict[Future[Outcome], Need] = {}
        self._last_failures: list[str] = []
        self._may_begin: int | None = None
        self._halt = threading.Event()  # nothing new is begun
        self.tally = Tally(failures=dict(failures or {}))
        self.trouble = ""  # why the whole job cannot go on

    def run(self, most: int | None = None) -> None:
        """Until nothing is missing, or :meth:`pause` or :meth:`stop` is called, or ``trouble`` says why not.

        ``most``: begin no more than so many segments and return; for machines that lend a GPU for moments only.
        """
        self._may_begin = most
        try:
            self._work()
        finally:  # a book that was deleted meanwhile ends the work in the middle
            for need in self._flying.values():
                self._claims.give_back(need.segment.id)

    def _work(self) -> None:
        with ThreadPoolExecutor(self._order.rows, thread_name_prefix="book-row") as rows:
            began = time.monotonic()
            while not self._halt.is_set():
                revision, self._planned = self._library.revision, self._claims.mark()
                book = self._library.book(self._project)
                waiting = self._plan(book)
                if not self.tally.left and not self._flying:
                    break
                elsewhere = self.tally.left - len(waiting) - len(self._flying)  # another job makes them now
                while not self._halt.is_set() and revision == self._library.revision:
                    if waiting and not self._is_full() and self._begin(rows, book, waiting):
                        continue
                    if (self._land(began) or elsewhere) and not waiting:
                        break  # what landed may have to be made once more
            while self._flying:
                self._land(began)

    def pause(self) -> None:
        """Begin nothing new; what is being spoken is finished."""
        self._halt.set()

    def stop(self) -> None:
        """End now; what is being spoken is broken off."""
        self._halt.set()
        self._speaker.stop()

    # ---- what to do next

    def _plan(self, book: Book) -> list[Need]:
        missing = needs(book, self._order, self.tally.failures)
        self.tally.total = len(in_scope(book, self._order))
        self.tally.left = len(missing)
        self.tally.seconds_left = sum(need.estimate * need.count for need in missing)
        claimed = self._claims.all()
        return [need for need in missing if need.segment.id not in claimed]

    def _is_full(self) -> bool:
        return sum(need.count for need in self._flying.values()) >= self._order.rows

    def _begin(self, rows: ThreadPoolExecutor, book: Book, waiting: list[Need]) -> bool:
        """Begin the first need whose voice is known. False when all have to wait for their anchor."""
        anchors: dict[str, Anchor | None] = {}
        carriers: dict[str, Need | None] = {}
        for need in waiting:
            member = book.member(need.segment.speaker)
            if member.speaker not in anchors:
                anchors[member.speaker] = self._anchor(book, member)
                if has_own_voice(member) and anchors[member.speaker] is None:
                    carriers[member.speaker] = self._carrier(book, member, waiting)
            if carriers.get(member.speaker, need) is not need:
                continue
            waiting.remove(need)
            if not self._claims.take(need.segment.id, self._planned):
                return True  # another job was quicker; the next plan tells what is still missing
            future = rows.submit(self._speaker.speak, book, need, anchors[member.speaker])
            self._flying[future] = need
            if self._may_begin is not None:
                self._may_begin -= 1
                if not self._may_begin:
                    self._halt.set()
            return True
        return False

    def _carrier(self, book: Book, member: CastMember, waiting: list[Need]) -> Need | None:
        """The need whose take is to be this voice's anchor; None while it is being spoken."""
        claimed = self._claims.all()
        if any(book.member(one.speaker).speaker == member.speaker for one in book.spoken if one.id in claimed):
            return None
        chosen = anchor_segment(book, member.speaker, [need.segment for need in waiting])
        return next((need for need in waiting if chosen is not None and need.segment.id == chosen.id), None)

    # ---- what came of it

    def _land(self, began: float) -> bool:
        """Wait a moment for segments that are being spoken, and count those that are done; whether there were any."""
        if not self._flying:
            self._halt.wait(LOOK_SECONDS)
        done, _ = wait(self._flying, LOOK_SECONDS, FIRST_COMPLETED)
        for future in done:
            need = self._flying.pop(future)
            self._claims.give_back(need.segment.id)
            self._count(need, future.result())
        self.tally.working_seconds = time.monotonic() - began
        return bool(done)

    def _count(self, need: Need, outcome: Outcome) -> None:
        tally = self.tally
        for take in outcome.takes:
            tally.takes_made += 1
            tally.seconds_made += take.seconds
            tally.seconds_expected += need.estimate
            tally.seconds_left = max(0.0, tally.seconds_left - need.estimate)
        if outcome.disk:
            self.trouble = outcome.failure
            self._halt.set()
        elif outcome.failure:
            self._note_failure(need, outcome.failure)
        elif not outcome.cancelled:
            tally.left = max(0, tally.left - 1)
            self._last_failures.clear()

    def _note_failure(self, need: Need, message: str) -> None:
        self.tally.failures[need.segment.id] = message
        self._failed(need.segment.id, message)
        self._last_failures = [*self._last_failures, message][-SAME_FAILURES:]
        if len(self._last_failures) == SAME_FAILURES and len(set(self._last_failures)) == 1:
            self.trouble = message
            self._halt.set()

    # ---- one voice for the whole book

    def _anchor(self, book: Book, member: CastMember) -> Anchor | None:
        """The anchor of a voice without a clip: that of before, or the best take that there is by now."""
        if not has_own_voice(member):
            return None
        place = (member.speaker, member.round)
        noted = self._library.takes_noted
        if place not in self._anchors and self._looked.get(place) != noted:
            self._looked[place] = noted
            found = self._kept_anchor(member) or self._new_anchor(member)
            if found is not None:
                self._anchors[place] = found
        return self._anchors.get(place)

    def _kept_anchor(self, member: CastMember) -> Anchor | None:
        sql = "SELECT clip, words FROM book_anchors WHERE project = ? AND speaker = ? AND round = ?"
        found = self._library.database.read(sql, [self._project, member.speaker, member.round])
        return Anchor(*found[0]) if found else None

    def _new_anchor(self, member: CastMember) -> Anchor | None:
        book = self._library.book(self._project)
        made = [segment for segment in book.spoken if any(t.verdict != "fail" for t in book.fitting(segment))]
        carrier = anchor_segment(book, member.speaker, made)
        if carrier is None:
            return None
        good = [take for take in book.fitting(carrier) if take.verdict != "fail"]
        take = next((take for take in good if take.take == carrier.chosen), good[0])
        store = self._library.store
        try:
            clip = self._library.clips.keep(load_audio(store.audio_path(take.take)))
        except StoreError as error:
            logger.warning("the anchor of %s was not kept: %s", member.speaker or "the narrator", error)
            return None
        values = (self._project, member.speaker, member.round, take.take, clip, store.take(take.take).spoken_text)
        with self._library.database.changing("The anchor") as db:
            db.execute("INSERT OR IGNORE INTO book_anchors VALUES (?, ?, ?, ?, ?, ?)", values)
        return self._kept_anchor(member)  # another job may have been quicker

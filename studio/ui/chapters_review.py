"""The review loop of the Chapters tab: listen, pick, approve, go on; everything by keys, everything undone again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from studio.book import editing
from studio.book.errors import BookError
from studio.book.pickups import pickup_csv
from studio.book.plan import reroll
from studio.book.project import Book
from studio.book.review import SHOWS, Line, left, next_open, wanted
from studio.file_names import safe_name
from studio.ui import chapters_detail_markup, chapters_review_markup
from studio.ui.chapters_ask import Answer, Ask, told, whole
from studio.ui.chapters_desk import Desk, undoable
from studio.ui.chapters_text import save_segment
from studio.ui.picker_run import SLOTS
from studio.ui.picker_takes import check_sentence

WINDOW = 60  # rows that are sent at once
DONE = Answer(more={"done": True})  # the form that was sent is folded; the keys of the review are heard again


class ReviewDesk:
    def __init__(self, desk: Desk) -> None:
        self._desk, self._library = desk, desk.library
        self.actions: dict[str, Callable[[Ask], Answer]] = {
            "review.show": self.show,
            "review.filter": self.filter,
            "review.rows": self.rows,
            "review.open": self.open,
            "review.step": self.step,
            "review.approve": self.approve,
            "review.redo": self.send_back,
            "review.reroll": self.reroll,
            "review.lock": self.lock,
            "review.note": self.note,
            "review.save": self.save,
            "review.older": self.older,
            "review.refresh": self.refresh,
            "review.lanes": self.lanes,
            "review.pickups": self.pickups,
            "picked": self.picked,
        }

    def draw(self, ask: Ask, book: Book) -> Answer:
        """The table and the segment that is open; when none is, the first one that somebody has to listen to."""
        lines = self._desk.lines(book)
        shown = self._shown(ask, lines)
        opened = self._line(lines, whole(ask.view.get("segment"), 0)) or next_open(shown)
        opened = opened or (shown[0] if shown else None)
        table = chapters_review_markup.table(ask, book, lines, self._filter(ask), self._rows(ask, book, shown, opened))
        keys = Answer(more={"focus": ".vx-ch-scroll"})  # the keys of the review are heard from there
        return Answer({"table": table}) | self._opened(ask, book, lines, shown, opened) | keys

    # ---- the table

    def show(self, ask: Ask) -> Answer:
        return self._filtered(ask, {"show": ask.text("show")})

    def filter(self, ask: Ask) -> Answer:
        fields = ("voice", "within", "words")
        return self._filtered(ask, {name: ask.text(name) for name in fields if name in ask.data})

    def _filtered(self, ask: Ask, chosen: dict[str, str]) -> Answer:
        """Other lines: the first of them is opened, unless the open one is among them."""
        asked = _looking(ask, **chosen, from_=0)
        book = self._desk.book(asked)
        lines = self._desk.lines(book)
        shown = self._shown(asked, lines)
        opened = self._line(shown, whole(ask.view.get("segment"), 0)) or (shown[0] if shown else None)
        table = chapters_review_markup.table(
            asked, book, lines, self._filter(asked), self._rows(asked, book, shown, opened)
        )
        return Answer({"table": table}, chosen) | self._opened(asked, book, lines, shown, opened)

    def rows(self, ask: Ask) -> Answer:
        """Other rows of the same lines: the window was moved."""
        book = self._desk.book(ask)
        shown = self._shown(ask, self._desk.lines(book))
        start = max(0, ask.number("from", 0))
        return Answer({"rows": chapters_review_markup.rows(ask, book, shown, start, WINDOW)}, {"from_": start})

    def _shown(self, ask: Ask, lines: Sequence[Line]) -> list[Line]:
        return wanted(lines, **self._filter(ask))

    def _filter(self, ask: Ask) -> dict[str, Any]:
        show, voice = ask.looking_at("show", "all"), ask.looking_at("voice")
        return {
            "show": show if show in SHOWS else "all",
            "speaker": voice.removeprefix("=") if voice.startswith("=") else None,  # "=" is the narrator, "" everybody
            "chapter": whole(ask.view.get("within"), 0) or None,
            "words": ask.looking_at("words"),
        }

    def _rows(self, ask: Ask, book: Book, shown: Sequence[Line], opened: Line | None) -> str:
        """The rows around the open one, or those that the browser looks at."""
        start = max(0, whole(ask.view.get("from_"), 0))
        place = _place(shown, opened)
        if place >= 0 and not start <= place < start + WINDOW:
            start = max(0, place - WINDOW // 3)
        return chapters_review_markup.rows(ask, book, shown, start, WINDOW)

    # ---- one segment

    def open(self, ask: Ask) -> Answer:
        return self._go(ask, ask.number("segment"))

    def step(self, ask: Ask) -> Answer:
        """The line above or below, as the arrow keys want it."""
        shown = self._shown(ask, self._desk.lines(self._desk.book(ask)))
        if not shown:
            return Answer()
        place = _place_of(shown, whole(ask.view.get("segment"), 0)) + ask.number("by", 1)
        return self._go(ask, shown[min(max(place, 0), len(shown) - 1)].segment)

    def older(self, ask: Ask) -> Answer:
        """Other takes of the open segment in the lanes, when it has more than there are lanes."""
        return self._go(_looking(ask, lanes=ask.number("lanes", 0)), whole(ask.view.get("segment"), 0), keep_lanes=True)

    def lanes(self, ask: Ask) -> Answer:
        """The take that is heard is marked again, after its lane was let go."""
        return self._go(ask, whole(ask.view.get("segment"), 0), keep_lanes=True)

    def refresh(self, ask: Ask) -> Answer:
        """The same once more, after a take was picked."""
        return self._after(ask, whole(ask.view.get("segment"), 0), takes=False)

    def follow(self, ask: Ask, book: Book) -> Answer:
        """While a job runs: the rows, and the open segment when something of it has changed and nobody types."""
        lines = self._desk.lines(book)
        shown = self._shown(ask, lines)
        opened = self._line(lines, whole(ask.view.get("segment"), 0))
        answer = Answer(
            {"head": self._desk.head(ask, book, "review"), "left": chapters_review_markup.counters(ask, left(lines))}
        )
        answer.parts["rows"] = self._rows(ask, book, shown, opened)
        if opened is not None and not ask.ticked("editing") and stamp(opened) != ask.looking_at("stamp"):
            answer |= self._opened(ask, book, lines, shown, opened)
            answer.more.pop("place", None)
        return answer

    def _go(self, ask: Ask, segment: int, keep_lanes: bool = False) -> Answer:
        asked = _looking(ask, segment=segment, **({} if keep_lanes else {"lanes": 0}))
        return self._after(asked, segment)

    def _after(self, ask: Ask, segment: int, takes: bool = True) -> Answer:
        """Everything that an edit may have changed, with this segment open."""
        asked = _looking(ask, segment=segment)
        book = self._desk.book(asked)
        lines = self._desk.lines(book)
        shown = self._shown(asked, lines)
        opened = self._line(lines, segment)
        parts = {
            "head": self._desk.head(asked, book, "review"),
            "job": self._desk.job(asked, book),
            "left": chapters_review_markup.counters(asked, left(lines)),
            "shows": chapters_review_markup.shows(asked, lines, self._filter(asked)["show"]),
            "rows": self._rows(asked, book, shown, opened),
        }
        answer = Answer(parts) | self._opened(asked, book, lines, shown, opened)
        return answer if takes else Answer(answer.parts, answer.view, None, answer.more)

    def _opened(
        self, ask: Ask, book: Book, lines: Sequence[Line], shown: Sequence[Line], opened: Line | None
    ) -> Answer:
        """The detail panel and the lanes of one segment."""
        if opened is None:
            return Answer(
                {"detail": chapters_detail_markup.nothing_open(ask, bool(lines))},
                {"segment": 0, "stamp": ""},
                ([], None),
            )
        takes, chosen, groups = lanes_of(book, opened, whole(ask.view.get("lanes"), 0))
        making = self._is_making(book, opened.segment)
        detail = chapters_detail_markup.detail(ask, book, opened, len(lines), groups, making, self._desk.sounds)
        view = {"segment": opened.segment, "stamp": stamp(opened), "lanes": whole(ask.view.get("lanes"), 0)}
        return Answer({"detail": detail}, view, (takes, chosen), {"place": _place(shown, opened)})

    def _is_making(self, book: Book, segment: int) -> bool:
        active = self._desk.active_jobs(book.project.id)
        return any(job.state != "paused" and segment in job.order.goals for job in active)

    @staticmethod
    def _line(lines: Sequence[Line], segment: int) -> Line | None:
        return next((line for line in lines if line.segment == segment), None)

    # ---- what is done with it

    def approve(self, ask: Ask) -> Answer:
        """Enter: this take is good; on to the next line that somebody has to listen to."""
        segment, book = self._desk.segment(ask), self._desk.book(ask)
        shown = self._shown(ask, self._desk.lines(book))
        editing.approve(self._library, segment.id)
        lines = self._desk.lines(self._desk.book(ask))
        following = self._following(shown, self._shown(ask, lines), segment.id)
        answer = self._go(ask, following.segment if following else segment.id)
        return answer if following else answer | told("info", ask.say("chapters_all_approved"))

    @staticmethod
    def _following(before: Sequence[Line], now: Sequence[Line], segment: int) -> Line | None:
        """The next open line of the table, which may have lost the one that was approved."""
        open_now = {line.segment: line for line in now if line.is_open}
        place = _place_of(before, segment)
        later = (open_now[line.segment] for line in before[place + 1 :] if line.segment in open_now)
        return next(later, None) or next_open(now)

    def send_back(self, ask: Ask) -> Answer:
        """X: to be done again; pressed once more, unreviewed."""
        segment = self._desk.segment(ask)
        editing.set_review(self._library, [segment.id], "unreviewed" if segment.review == "redo" else "redo")
        return self._after(ask, segment.id)

    def reroll(self, ask: Ask) -> Answer:
        """R: one more take with the next seed, at once."""
        segment, book = self._desk.segment(ask), self._desk.book(ask)
        if segment.locked:
            raise BookError(ask.say("chapters_reroll_locked"))
        if self._is_making(book, segment.id):
            raise BookError(ask.say("chapters_reroll_runs"))
        self._desk.queue.submit(book.project.id, reroll(book, [segment.id]))
        return self._after(ask, segment.id, takes=False)

    def lock(self, ask: Ask) -> Answer:
        segment = self._desk.segment(ask)
        editing.set_locked(self._library, [segment.id], not segment.locked)
        return self._after(ask, segment.id, takes=False)

    def note(self, ask: Ask) -> Answer:
        segment = self._desk.segment(ask)
        editing.set_note(self._library, segment.id, ask.text("note"))
        return self._after(ask, segment.id, takes=False) | DONE

    def save(self, ask: Ask) -> Answer:
        """The edited text: exactly this segment is stale now."""
        segment = self._desk.segment(ask)
        numbers = save_segment(self._desk, ask, segment)
        answer = self._after(ask, segment.id) | DONE
        return answer | undoable(ask, ask.say("chapters_cut_in", count=len(numbers))) if len(numbers) > 1 else answer

    def picked(self, ask: Ask) -> Answer:
        """A lane was picked: its take stands for its segment."""
        take = ask.text("take")
        segment = self._library.segment_of_take(take)
        if segment is None:
            return Answer()
        book = self._desk.book(_looking(ask, book=self._library.project_of_segment(segment)))
        current = book.current(self._library.segment(segment))
        if current is not None and current.take == take:  # it was only shown
            return Answer()
        editing.choose(self._library, segment, take)
        return Answer(more={"next": "review.refresh"})

    def pickups(self, ask: Ask) -> Answer:
        """The pickup list as a table for spreadsheets, saved by the browser."""
        book = self._desk.book(ask)
        text = "\ufeff" + pickup_csv(book, ask.language, lambda check: check_sentence(check, ask.language))
        name = f"{safe_name(book.project.title)} - {ask.say('chapters_pickups')}.csv"
        return Answer(more={"save": {"name": name, "text": text, "type": "text/csv;charset=utf-8"}})


def lanes_of(book: Book, line: Line, group: int = 0) -> tuple[list[str], int | None, int]:
    """Takes for the lanes, the lane of the one that is heard, and how many groups of lanes there are.

    The newest takes for the present words come first (in the order they were made); older ones, and those for other
    words, are in the groups behind.
    """
    segment = next(one for one in book.spoken if one.id == line.segment)
    fitting = [take.take for take in book.fitting(segment)]
    rest = [take.take for take in book.takes.get(segment.id, ()) if take.take not in fitting]
    groups = _thirds(fitting) + _thirds(rest)
    if not groups:
        return [], None, 0
    if group == 0 and line.take:  # what is heard now is to be seen first
        group = next((number for number, some in enumerate(groups) if line.take in some), 0)
    takes = groups[group % len(groups)]
    return takes, takes.index(line.take) if line.take in takes else None, len(groups)


def _thirds(takes: Sequence[str]) -> list[list[str]]:
    """By as many as there are lanes, the newest first."""
    groups = [list(takes[start : start + SLOTS]) for start in range(0, len(takes), SLOTS)]
    return groups[::-1]


def stamp(line: Line) -> str:
    """Changes when the detail panel of a line would."""
    return f"{line.take}.{line.takes}.{line.state}.{line.review}.{line.verdict}.{int(line.locked)}"


def _looking(ask: Ask, **view: object) -> Ask:
    return Ask(ask.do, {}, {**ask.view, **view}, ask.language, ask.session, ask.seen)


def _place_of(lines: Sequence[Line], segment: int) -> int:
    return next((place for place, line in enumerate(lines) if line.segment == segment), -1)


def _place(lines: Sequence[Line], opened: Line | None) -> int:
    return _place_of(lines, opened.segment) if opened else -1

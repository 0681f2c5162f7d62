"""What all desks of the Chapters tab share: whose books, the frame around every step, sentences with an undo."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from studio.book.errors import BookError
from studio.book.jobs import JobStatus
from studio.book.project import Book, Project, Segment
from studio.book.review import Left, Line, left, lines
from studio.ui.chapters_ask import STEPS, Answer, Ask, press
from studio.ui.chapters_books import Books
from studio.ui.chapters_jobs_markup import job_strip
from studio.ui.chapters_sounds import Sounds
from studio.ui.context import Context
from studio.ui.i18n import WORDS
from studio.ui.markup import icon, tag

ACTIVE = ("queued", "running", "paused")
KEPT = 16  # books that are kept in memory as they were read


class Desk:
    """Objects of the process, and the questions that every step asks."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.books: Books = context.books
        self.library = self.books.library
        self.queue = self.books.queue
        self.sounds: Sounds = self.books.sounds
        self._kept: dict[int, tuple[object, Book]] = {}  # the newest of each book that was looked at
        self._lines: dict[int, tuple[Book, list[Line]]] = {}  # of these

    # ---- whose

    def project(self, ask: Ask, number: int | None = None) -> Project:
        """The book that is looked at. Raises BookError for another visitor's."""
        return self.library.project(ask.number("book", 0) if number is None else number, ask.seen)

    def book(self, ask: Ask) -> Book:
        """Everything about it, at this moment."""
        project = self.project(ask)
        stamp = self.library.stamp()
        kept = self._kept.get(project.id)
        if kept is None or kept[0] != stamp:
            kept = stamp, _knowing(self.library.book(project.id, ask.seen), kept and kept[1])
            self._kept[project.id] = kept
            while len(self._kept) > KEPT:
                self._kept.pop(next(iter(self._kept)))
        return kept[1]

    def lines(self, book: Book) -> list[Line]:
        """One line per spoken segment of this very book; worked out once."""
        kept = self._lines.get(book.project.id)
        if kept is None or kept[0] is not book:
            kept = self._lines[book.project.id] = book, lines(book)
            while len(self._lines) > KEPT:
                self._lines.pop(next(iter(self._lines)))
        return kept[1]

    def segment(self, ask: Ask, name: str = "segment") -> Segment:
        """The segment that is meant. Raises BookError when it is gone, or in another visitor's book."""
        found = self.library.segment(ask.number(name, 0))
        self.library.project(self.library.chapter(found.chapter).project, ask.seen)
        return found

    def chapter(self, ask: Ask) -> int:
        """The number of the chapter that is meant, checked in the same way."""
        chapter = self.library.chapter(ask.number("chapter", 0))
        self.library.project(chapter.project, ask.seen)
        return chapter.id

    # ---- the frame

    def frame(self, ask: Ask, book: Book, step: str) -> Answer:
        """The head over every step, and the strip of the job that runs."""
        answer = Answer({"head": self.head(ask, book, step), "job": self.job(ask, book)})
        answer.view = {"book": book.project.id, "step": step}
        if step == "review":
            answer.parts["body"] = ""
        else:
            answer.parts |= {"table": "", "detail": ""}
        return answer

    def head(self, ask: Ask, book: Book, step: str) -> str:
        counts = left(self.lines(book))
        steps = [self._step(ask, name, name == step, counts) for name in STEPS]
        return tag(
            "header",
            press("shelf", ask.say("chapters_shelf"), icon("page-newer"), ask.say("chapters_shelf"), class_="vx-quiet"),
            tag("h2", escape(book.project.title)),
            tag("nav", *steps, class_="vx-ch-steps", aria_label=ask.say("chapters_steps")),
            self._undo(ask, book.project.id),
            class_="vx-ch-head",
        )

    def _step(self, ask: Ask, name: str, is_here: bool, counts: Left) -> str:
        open_ones = counts.open
        badge = tag("b", str(open_ones), class_="vx-num vx-ch-badge") if name == "review" and open_ones else ""
        word = ask.say(f"chapters_step_{name}")
        return press(
            "step",
            ask.say(f"chapters_step_{name}_title"),
            word,
            badge,
            class_="vx-ch-step",
            data_step=name,
            aria_current="step" if is_here else None,
        )

    def _undo(self, ask: Ask, project: int) -> str:
        turns = (
            ("undo", "chapters_undo", self.library.undo_label(project)),
            ("redo", "chapters_redo", self.library.redo_label(project)),
        )
        buttons = []
        for do, key, label in turns:
            title = f"{ask.say(key)}: {edit_label(ask, label)}" if label else ask.say(key)
            off = None if label else True
            buttons.append(press(do, title, icon(do), class_="vx-quiet vx-round", disabled=off))
        return tag("span", *buttons, class_="vx-ch-undo")

    # ---- jobs

    def active_jobs(self, project: int) -> list[JobStatus]:
        """The jobs of a book that are not at their end, in the order they were asked for."""
        return self.queue.jobs(project, ACTIVE)[::-1]

    def job(self, ask: Ask, book: Book) -> str:
        """The first of them, in one line; "" when there is none."""
        active = self.active_jobs(book.project.id)
        return job_strip(active[0], book, ask) if active else ""


def _knowing(book: Book, before: Book | None) -> Book:
    """The book with what was worked out for it before, as far as nothing that counts for it has changed."""
    if before is None or (book.cast, book.dictionary.entries) != (before.cast, before.dictionary.entries):
        return book
    if book.project.settings.normalize != before.project.settings.normalize:
        return book
    return replace(book, _keys=before._keys)


def edit_label(ask: Ask, label: str) -> str:
    """What an edit is called, in the visitor's language."""
    key = f"chapters_edit_{label.lower().replace(' ', '_')}"
    return ask.say(key) if key in WORDS else label


def undoable(ask: Ask, sentence: str) -> Answer:
    """What was done, and the way back."""
    back = press("undo", ask.say("chapters_undo"), icon("undo"), ask.say("chapters_undo"))
    line = tag("div", icon("info"), tag("span", escape(sentence)), back, class_="vx-notice is-info", role="status")
    return Answer({"notice": line})


def need(value: str, sentence: str) -> str:
    """``value`` without blanks around it. Raises BookError with the sentence when nothing is left."""
    value = value.strip()
    if not value:
        raise BookError(sentence)
    return value

"""The shelf of the Chapters tab: a visitor's books; open, rename, delete, bring back; and the way between steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Protocol

from studio.book.errors import BookError
from studio.book.project import Book, Project
from studio.book.review import left
from studio.ui.chapters_ask import STEPS, Answer, Ask, press, told
from studio.ui.chapters_desk import Desk, edit_label
from studio.ui.chapters_import import new_book
from studio.ui.chapters_jobs_markup import clock
from studio.ui.markup import icon, number, tag
from studio.ui.take_markup import moment

COUNTED = 12  # books whose progress is shown: counting reads all of a book


class Step(Protocol):
    """What a book is looked at with."""

    def draw(self, ask: Ask, book: Book) -> Answer: ...


class ShelfDesk:
    def __init__(self, desk: Desk, steps: Mapping[str, Step]) -> None:
        self._desk, self._steps = desk, steps
        self.actions: dict[str, Callable[[Ask], Answer]] = {
            "open": self.open,
            "shelf": self.shelf,
            "step": self.step,
            "book.open": self.open_book,
            "book.rename": self.rename,
            "book.delete": self.delete,
            "book.restore": self.restore,
            "undo": self.undo,
            "redo": self.redo,
            "poll": self.poll,
        }

    def open(self, ask: Ask) -> Answer:
        """The tab is seen (again): what was looked at last, as it is now."""
        lost = Answer(more={"lost": told("error", ask.say("chapters_lost")).parts["notice"]})
        try:
            self._desk.project(ask)
        except BookError:
            return lost | self.shelf(ask)
        return lost | self._drawn(ask, ask.looking_at("step"))

    def shelf(self, ask: Ask) -> Answer:
        """All books, and how to make one."""
        projects = self._desk.library.projects(ask.seen)
        books = [self._card(ask, project, number < COUNTED) for number, project in enumerate(projects)]
        listed = tag("ul", *books, class_="vx-ch-books") if books else _empty(ask)
        body = tag(
            "div", new_book(ask), tag("section", tag("h2", ask.say("chapters_books")), listed), class_="vx-ch-shelf"
        )
        parts = {"head": "", "job": "", "body": body, "table": "", "detail": ""}
        return Answer(parts, {"step": "shelf", "book": 0, "draft": "", "segment": 0, "chapter": 0})

    def step(self, ask: Ask) -> Answer:
        return self._drawn(ask, ask.text("step"))

    def open_book(self, ask: Ask) -> Answer:
        """A book from the shelf: where its work stands."""
        inside = Ask(ask.do, ask.data, {"book": ask.number("book")}, ask.language, ask.session, ask.seen)
        book = self._desk.book(inside)
        counts = left(self._desk.lines(book))
        step = "text" if counts.missing == counts.total else "review" if counts.open else "export"
        cleared = Answer(view={"segment": 0, "chapter": 0, "show": "all", "voice": "", "words": "", "within": ""})
        return cleared | self._drawn(inside, step)

    def _drawn(self, ask: Ask, step: str) -> Answer:
        step = step if step in STEPS else STEPS[0]
        book = self._desk.book(ask)
        return self._desk.frame(ask, book, step) | self._steps[step].draw(ask, book)

    def rename(self, ask: Ask) -> Answer:
        self._desk.library.rename_project(self._desk.project(ask, ask.number("book")).id, ask.text("title"))
        return self.shelf(ask)

    def delete(self, ask: Ask) -> Answer:
        """The book goes from the shelf; it can be brought back. Its takes stay in the history."""
        project = self._desk.project(ask, ask.number("book"))
        self._desk.library.delete_project(project.id)
        self._desk.books.exports.cancel(project.id)
        back = press("book.restore", ask.say("undo"), icon("undo"), ask.say("undo"), data_book=project.id)
        return self.shelf(ask) | told("info", ask.say("chapters_deleted", title=project.title), back)

    def restore(self, ask: Ask) -> Answer:
        project = self._desk.library.restore_project(ask.number("book"), ask.seen)
        return self.shelf(ask) | told("info", ask.say("chapters_restored", title=project.title))

    def undo(self, ask: Ask) -> Answer:
        """The newest edit is taken back."""
        label = self._desk.library.undo(self._desk.project(ask).id)
        key = "chapters_undo_done" if label else "chapters_undo_none"
        return self._drawn(ask, ask.looking_at("step")) | told("info", ask.say(key, label=edit_label(ask, label)))

    def redo(self, ask: Ask) -> Answer:
        label = self._desk.library.redo(self._desk.project(ask).id)
        key = "chapters_redo_done" if label else "chapters_redo_none"
        return self._drawn(ask, ask.looking_at("step")) | told("info", ask.say(key, label=edit_label(ask, label)))

    def poll(self, ask: Ask) -> Answer:
        """What has changed while something runs."""
        book = self._desk.book(ask)
        step = ask.looking_at("step")
        answer = Answer({"job": self._desk.job(ask, book)})
        follow = getattr(self._steps.get(step), "follow", None)
        return answer | follow(ask, book) if follow else answer

    # ---- markup

    def _card(self, ask: Ask, project: Project, counted: bool) -> str:
        facts = [tag("span", escape(project.author))] if project.author else []
        facts += self._progress(ask, project) if counted else []
        if project.source:
            facts.append(tag("span", escape(project.source)))
        facts.append(moment(project.created))
        field = tag(
            "input",
            type="text",
            name_="title",
            value=project.title,
            maxlength=200,
            aria_label=ask.say("chapters_title"),
        )
        save = press(
            "book.rename",
            ask.say("chapters_rename"),
            ask.say("chapters_rename"),
            class_="vx-link is-main",
            data_book=project.id,
        )
        rename = tag(
            "details",
            tag("summary", icon("note"), ask.say("chapters_rename"), class_="vx-link"),
            tag("div", field, save, class_="vx-ch-line", data_form=True),
            class_="vx-fold",
            data_fold=f"rename-{project.id}",
        )
        delete = press(
            "book.delete", ask.say("chapters_delete"), icon("bin"), ask.say("chapters_delete"), data_book=project.id
        )
        title = press(
            "book.open",
            ask.say("chapters_open", title=project.title),
            escape(project.title),
            class_="vx-ch-title",
            data_book=project.id,
        )
        return tag(
            "li",
            title,
            tag("p", *facts, class_="vx-meta vx-num"),
            tag("div", rename, delete, class_="vx-ch-tools"),
            class_="vx-ch-book",
        )

    def _progress(self, ask: Ask, project: Project) -> list[str]:
        view = {"book": project.id}
        book = self._desk.book(Ask(ask.do, {}, view, ask.language, ask.session, ask.seen))
        counts = left(self._desk.lines(book))
        words = sum(chapter.words for chapter in book.chapters)
        chapters = sum(1 for chapter in book.chapters if chapter.spoken)
        seconds = sum(book.estimate(segment) for segment in book.spoken)
        return [
            tag("span", number(str(chapters)), " ", ask.say("chapters_chapters")),
            tag("span", number(f"{words:,}"), " ", ask.say("chapters_words")),
            tag("span", ask.say("chapters_about", time=clock(seconds))),
            tag("span", number(f"{counts.approved} / {counts.total}"), " ", ask.say("chapters_approved")),
        ]


def _empty(ask: Ask) -> str:
    steps = (tag("li", ask.say(f"chapters_empty_{number}")) for number in (1, 2, 3, 4))
    return tag(
        "div",
        tag("span", class_="vx-empty-wave", aria_hidden="true"),
        tag("h2", ask.say("chapters_empty_title")),
        tag("ol", *steps),
        class_="vx-empty",
    )

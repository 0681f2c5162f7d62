"""The Chapters tab for tests: without a browser (presses and answers), and as a running studio."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

from studio.book.library import Library
from studio.book.project import Book
from studio.store import Store
from studio.synthesizer import Synthesizer
from studio.ui.chapters import ChaptersHandlers
from studio.ui.chapters_ask import Answer, Ask
from studio.ui.context import Context
from studio.ui.media import Media
from studio.ui.picker import PickerHandlers
from tests.browser import free_port
from tests.fakes import SineModel

TEXT = (
    "Chapter 1: The Lamp\n\nThe old man lit the lamp.\n\n“Who is there?” said Anna.\n\n"
    "“A friend,” said Tom. He closed the door.\n\nChapter 2: The Road\n\nThe road was dry in the morning."
)


@dataclass
class Visitor:
    """One browser: what it looks at, and what it is answered."""

    room: Room
    session: str = "local"
    language: str = "en"
    view: dict[str, Any] = field(default_factory=dict)
    notice: str = ""  # the sentence above everything, as plain text
    answer: Answer = field(default_factory=Answer)

    def __call__(self, do: str, **data: Any) -> Answer:
        """Press something, and what the page asks for next by itself."""
        seen = None if self.session == "local" else self.session
        self.answer = self.room.handlers.answer(Ask(do, data, dict(self.view), self.language, self.session, seen))
        self.view |= self.answer.view
        if "notice" in self.answer.parts:
            self.notice = plain(self.answer.parts["notice"])
        following = self.answer.more.get("next")
        return self(following) if following else self.answer

    def part(self, name: str) -> str:
        return self.answer.parts[name]

    def book(self) -> Book:
        return self.room.library.book(self.view["book"])

    def make(self, text: str = TEXT, title: str = "") -> Book:
        """A book from a pasted text; its text step is open afterwards."""
        self.room.count += 1
        self("import.text", text=text, title=title or f"Book {self.room.count}")
        self("import.create", title=title or f"Book {self.room.count}", characters="400", seconds="22")
        assert not self.notice, self.notice
        return self.book()

    def render(self, **wish: Any) -> Book:
        """Make what is missing, to the end."""
        self("step", step="render")
        self("render.start", **{"scope": "book", "takes": "1", "retries": "0", **wish})
        assert not self.notice, self.notice
        self.room.settle(self.view["book"])
        return self.book()

    def segment(self, words: str) -> int:
        """The segment with these words."""
        return next(one.id for one in self.book().spoken if words in one.text)


@dataclass
class Room:
    """The objects of one studio, without a page."""

    context: Context
    model: SineModel
    count: int = 0

    def __post_init__(self) -> None:
        self.handlers = ChaptersHandlers(self.context, PickerHandlers(self.context, "chapters"))

    @property
    def library(self) -> Library:
        return self.context.books.library

    def settle(self, project: int, seconds: float = 30) -> None:
        """Until no job of a book runs or waits."""
        until = time.monotonic() + seconds
        queue = self.context.books.queue
        while any(job.state in ("queued", "running") for job in queue.jobs(project)):
            assert time.monotonic() < until, [job for job in queue.jobs(project)]
            time.sleep(0.05)


@contextmanager
def open_room(folder: Path, shared: bool = False) -> Iterator[Room]:
    model = SineModel()
    store = Store(folder)
    synthesizer = Synthesizer(store, lambda progress: model)
    synthesizer.load()
    assert synthesizer.wait(20).state == "ready"
    context = Context(synthesizer, store, Media(store, synthesizer.voices), shared)
    context.books.start()
    yield Room(context, model)
    context.books.close()
    synthesizer.close()
    store.close()


@contextmanager
def running_studio_with_books(folder: Path, load: Callable[[Any], Any]) -> Iterator[tuple[str, Context]]:
    """A studio on a free port that renders, as app.py starts it."""
    from studio.ui.page import build_page, launch

    store = Store(folder)
    synthesizer = Synthesizer(store, load)
    synthesizer.load()
    page, context = build_page(synthesizer, store)
    url = launch(page, context, port=free_port())
    context.books.start()
    try:
        yield url, context
    finally:
        context.books.close()
        page.close(verbose=False)
        synthesizer.close()
        store.close()


def plain(html: str) -> str:
    """The words of a piece of the page."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())

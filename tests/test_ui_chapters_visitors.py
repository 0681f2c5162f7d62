"""The Chapters tab and its visitors: nonsense, other people's books, and two languages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.ui import i18n
from studio.ui.chapters_ask import Ask
from studio.ui.chapters_books import Books
from tests.chapters_room import Room, Visitor, open_room, plain


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with open_room(tmp_path_factory.mktemp("room")) as room:
        yield room


@pytest.fixture
def visitor(room: Room) -> Visitor:
    return Visitor(room)


def test_every_press_with_nonsense_is_a_sentence(visitor: Visitor) -> None:
    garbage = {name: "no such thing" for name in ("book", "segment", "chapter", "index", "job", "step", "take", "to")}
    for do in visitor.room.handlers.actions:
        for view in ({}, {"book": 10**30, "segment": "x"}, {"book": "x", "draft": 7, "step": []}):
            visitor.view = dict(view)
            answer = visitor.room.handlers.answer(Ask(do, garbage, view))
            assert "went wrong" not in plain(answer.parts.get("notice", "")), (do, view)


def test_in_company_nobody_gets_at_anothers_book(tmp_path: Path) -> None:
    with open_room(tmp_path, shared=True) as room:
        anna, bert = Visitor(room, "a" * 16), Visitor(room, "b" * 16)
        book = anna.make("# Secret\n\nNobody reads this.", title="Mine alone")
        segment, chapter = book.spoken[0].id, book.chapters[0].id
        bert("shelf")
        assert "Mine alone" not in bert.part("body")
        job = room.context.books.queue.jobs(anna.render().project.id)[0]
        book = anna.book()
        for do in room.handlers.actions:
            bert.view = {"book": book.project.id, "segment": segment, "chapter": chapter, "step": "text"}
            ids = {"book": book.project.id, "segment": segment, "chapter": chapter, "job": job.id}
            bert(do, **ids, title="Taken", text="Taken", name="Taken", take=book.spoken[0].chosen)
            assert "Mine alone" not in str(bert.answer) and "Nobody reads this" not in str(bert.answer), do
        after = room.library.book(book.project.id)
        assert (after.project, after.chapters, after.cast, after.takes) == (
            book.project,
            book.chapters,
            book.cast,
            book.takes,
        )
        assert room.context.books.queue.status(job.id).state == "done"


def test_files_of_books_that_are_gone_for_good_are_swept(tmp_path: Path) -> None:
    with open_room(tmp_path) as room:
        kept = Visitor(room).make().project.id
        for name in (str(kept), "998", "999"):
            (tmp_path / "exports" / name / "x").mkdir(parents=True)
            os.utime(tmp_path / "exports" / name, (1, 1))
        (tmp_path / "book-covers").mkdir()
        (tmp_path / "book-covers" / "998").write_bytes(b"a picture")
        os.utime(tmp_path / "exports" / "999")
        Books(room.context.store, room.context.synthesizer)
    assert {path.name for path in (tmp_path / "exports").iterdir()} == {str(kept), "999"}
    assert (tmp_path / "book-covers" / "998").exists(), "deleted a moment ago: it can be brought back"


def test_every_step_speaks_chinese(room: Room) -> None:
    visitor = Visitor(room, language="zh")
    visitor.make()
    english = {words[0] for key, words in i18n.WORDS.items() if key.startswith("chapters_") and len(words[0]) > 12}
    for step in ("text", "cast", "render", "review", "export"):
        visitor("step", step=step)
        shown = plain(" ".join(visitor.answer.parts.values()))
        assert re.search(r"[\u4e00-\u9fff]", shown)
        assert not [words for words in english if words in shown], step


def test_every_word_that_is_said_exists() -> None:
    folder = Path(i18n.__file__).parent
    for path in folder.glob("chapters*.py"):
        for key in re.findall(r'\.say\(\s*"(\w+)"', path.read_text(encoding="utf-8")):
            assert key in i18n.WORDS, (path.name, key)

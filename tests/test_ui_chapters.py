"""The Chapters tab without a browser: what is pressed, what it does to the book, what is answered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from studio.book.casting import delete_voice
from studio.book.errors import BookError
from studio.ui.chapters_ask import Ask
from studio.ui.chapters_review import WINDOW
from tests.books import as_epub, make_novel
from tests.chapters_room import Room, Visitor, open_room, plain
from tests.fakes import SpeechRequest
from tests.records import takes_of


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with open_room(tmp_path_factory.mktemp("room")) as room:
        yield room


@pytest.fixture
def visitor(room: Room) -> Visitor:
    return Visitor(room)


def states(visitor: Visitor) -> dict[int, str]:
    book = visitor.book()
    return {one.id: book.state(one) for one in book.spoken}


# ---- import


def test_an_import_is_looked_at_and_changed_before_it_is_a_book(visitor: Visitor) -> None:
    visitor("import.text", text="# One\n\nFirst words here.\n\nMore of it.\n\n# Two\n\nLast words.\n", title="Seen")
    assert "10 words in the file = 10 to be spoken + 0 left out" in plain(visitor.part("body"))
    visitor("import.rename", index="1", title="The End")
    visitor("import.look", index="0")
    visitor("import.block", index="0", block="2", on=False)
    assert "10 words in the file = 7 to be spoken + 3 left out" in plain(visitor.part("body"))
    visitor("import.split", index="0", block="1")
    visitor("import.move", index="2", to="0")
    visitor("import.create", title="Seen", author="Me", characters="400", seconds="22")
    book = visitor.book()
    assert (book.project.title, book.project.author, book.project.words_in) == ("Seen", "Me", 10)
    assert [chapter.title for chapter in book.chapters] == ["The End", "One", "First words here."]
    assert [one.text for one in book.spoken] == ["Two", "Last words.", "One", "First words here."]
    assert "Nothing was lost: 10 words came in" in plain(visitor.part("body"))


def test_a_whole_novel_comes_in_with_every_word(visitor: Visitor, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    path = tmp_path / "abc" / "novel.epub"
    path.parent.mkdir()
    path.write_bytes(as_epub(make_novel(chapters=3, words_each=800)))
    visitor("import.file", path=str(path), file="novel.epub", title="")
    found = re.search(r"([\d,]+) words in the file = ([\d,]+) to be spoken \+ ([\d,]+)", plain(visitor.part("body")))
    everything, spoken, silent = (int(number.replace(",", "")) for number in found.groups())
    assert everything == spoken + silent and spoken > 1500 and silent > 0
    assert not path.exists(), "the upload is not kept"
    visitor("import.create", title="Novel", characters="300", seconds="20")
    assert f"Nothing was lost: {everything:,} words came in, {everything:,} words in the book" in plain(
        visitor.part("body")
    )
    assert max(len(one.text) for one in visitor.book().spoken) <= 300


@pytest.mark.parametrize(
    ("do", "data", "said"),
    [
        ("import.text", {"text": "  "}, "There is no text yet. Paste one, choose a file, or fill a sample."),
        ("import.text", {"text": "…"}, "There is nothing to speak"),
        ("import.file", {"path": "/etc/passwd", "file": "x.txt"}, "The file is no longer there."),
        ("import.create", {"title": "X"}, "This import is no longer there."),
        ("upload.failed", {"file": "x.txt", "why": "too large"}, "x.txt was not taken in (too large)"),
    ],
)
def test_an_import_that_fails_says_what_to_do(visitor: Visitor, do: str, data: dict, said: str) -> None:
    visitor(do, **data)
    assert said in visitor.notice


# ---- text


def test_an_edited_sentence_makes_one_stale_segment_and_undo_brings_it_back(visitor: Visitor) -> None:
    visitor.make()
    visitor.render()
    assert set(states(visitor).values()) == {"ready"}
    visitor("step", step="text")
    edited = visitor.segment("old man")
    visitor("text.look", segment=edited)
    assert "<textarea" in visitor.part("body")
    visitor("text.save", segment=edited, text="The old man put out the lamp.", speaker="", control="", pause="")
    assert [one for one, state in states(visitor).items() if state == "stale"] == [edited]
    visitor("undo")
    assert "Taken back: Edit text." in visitor.notice
    assert set(states(visitor).values()) == {"ready"}


def test_the_dictionary_shows_and_does_exactly_the_same(visitor: Visitor) -> None:
    visitor.make()
    visitor.render()
    visitor("step", step="text")
    visitor("words.preview", word="lamp", saying="lammp", match=False)
    assert "2 segments affected: they become stale." in plain(visitor.part("body"))
    assert set(states(visitor).values()) == {"ready"}, "a preview changes nothing"
    visitor("words.apply", word="lamp", saying="lammp", match=False)
    stale = {one for one, state in states(visitor).items() if state == "stale"}
    assert stale == {one.id for one in visitor.book().spoken if "lamp" in one.text.lower()}
    assert any(one.text == "The old man lit the lamp." for one in visitor.book().spoken), "the text stays as written"
    visitor("words.apply", word="lamp", remove="1")
    assert set(states(visitor).values()) == {"ready"}


def test_chapters_and_segments_are_cut_joined_moved_and_put_back(visitor: Visitor) -> None:
    before = visitor.make()
    first, second = (chapter.id for chapter in before.chapters)
    visitor("text.title", chapter=first, title="Light")
    visitor("text.move", chapter=first, to="1")
    visitor("text.switch", chapter=second, on=False)
    tom = visitor.segment("Tom")
    visitor("text.look", segment=tom)
    text = visitor.room.library.segment(tom).text
    visitor("text.split", segment=tom, text=text, cursor=text.index("He closed"))
    visitor("text.cut", segment=visitor.segment("Anna"))
    book = visitor.book()
    assert [(chapter.title, chapter.on) for chapter in book.chapters] == [
        (before.chapters[1].title, False),
        ("Light", True),
        ("“Who is there?” said Anna.", True),
    ]
    assert [one.text for one in book.chapters[2].spoken][-1] == "He closed the door."
    for _ in range(5):
        visitor("undo")
    after = visitor.book()
    assert [chapter.title for chapter in after.chapters] == [chapter.title for chapter in before.chapters]
    assert [one.text for one in after.spoken] == [one.text for one in before.spoken]


# ---- cast


def saved_voice(room: Room, name: str, session: str = "local") -> str:
    take = takes_of(
        room.context.synthesizer.speak(SpeechRequest(text="A voice of some length.", seed=1), session=session)
    )
    return room.context.voices.save_from_take(take[0].id, name, session).id


def test_a_voice_is_cast_and_cannot_be_deleted_while_a_book_speaks_with_it(visitor: Visitor) -> None:
    voice = saved_voice(visitor.room, "Librarian")
    visitor.make(title="Kept by a book")
    visitor("step", step="cast")
    assert "Librarian" in visitor.part("body")
    visitor("cast.set", speaker="", voice=voice, control="calm", goes_on=False)
    assert visitor.book().cast[""].voice == voice and visitor.book().cast[""].control == "calm"
    with pytest.raises(BookError, match="Kept by a book"):
        delete_voice(visitor.room.library, visitor.room.context.voices, voice)
    visitor("undo")
    visitor("book.delete", book=visitor.view["book"])
    delete_voice(visitor.room.library, visitor.room.context.voices, voice)


def test_dialogue_is_given_to_a_speaker_without_a_change_of_words(visitor: Visitor) -> None:
    before = "".join("".join(one.text.split()) for one in visitor.make().spoken)
    visitor("step", step="cast")
    assert "Anna" in visitor.part("body") and "Tom" in visitor.part("body")
    visitor("cast.accept", found="Anna", target="Anna")
    assert "quotes are given to Anna." in visitor.notice
    book = visitor.book()
    assert [one.text for one in book.spoken if one.speaker == "Anna"] == ["“Who is there?”"]
    assert "".join("".join(one.text.split()) for one in book.spoken) == before
    visitor("cast.add", name="Anna")
    visitor("cast.set", speaker="Anna", voice="", control="an old woman")
    assert visitor.book().cast["Anna"].control == "an old woman"


# ---- render and review


def test_what_is_locked_is_neither_edited_nor_rendered(visitor: Visitor) -> None:
    visitor.make()
    visitor.render()
    visitor("step", step="review")
    locked = visitor.segment("old man")
    visitor("review.open", segment=locked)
    visitor("review.lock")
    takes = visitor.book().takes[locked]
    visitor("review.reroll")
    assert "locked" in visitor.notice
    visitor("review.save", segment=locked, text="Other words.", speaker="", control="", pause="")
    assert "is locked. Unlock it before you change it." in visitor.notice
    visitor("words.apply", word="lamp", saying="lammp", match=False)
    visitor.render()
    assert visitor.book().takes[locked] == takes
    assert visitor.room.library.segment(locked).text == "The old man lit the lamp."


def test_enter_approves_and_goes_on_until_nothing_is_left(visitor: Visitor) -> None:
    order = [one.id for one in visitor.make().spoken]
    visitor.render(takes="2")
    visitor("step", step="review")
    opened = [visitor.view["segment"]]
    for _ in order:
        visitor("review.approve")
        opened.append(visitor.view["segment"])
    assert opened[: len(order)] == order
    assert "Nothing is left here." in visitor.notice and "are approved." in plain(visitor.part("left"))
    assert {one.review for one in visitor.book().spoken} == {"approved"}
    visitor("undo")
    assert [one.id for one in visitor.book().spoken if one.review != "approved"] == order[-1:]


def test_the_table_shows_what_is_asked_for_and_leads_through_it(visitor: Visitor) -> None:
    visitor.make()
    visitor.render()
    visitor("step", step="review")
    visitor("review.open", segment=visitor.segment("Anna"))
    visitor("review.redo")
    visitor("review.note", note="too fast")
    visitor("review.show", show="noted")
    assert re.findall(r'data-ch="review.open" data-segment="(\d+)"', visitor.part("table")) == [
        str(visitor.segment("Anna"))
    ]
    visitor("review.show", show="all")
    visitor("review.filter", voice="", within="", words="friend")
    assert visitor.view["segment"] == visitor.segment("friend")
    visitor("review.filter", voice="", within="", words="nothing like it")
    assert "No segment fits." in visitor.part("table")
    visitor("review.filter", voice="", within="", words="")
    csv = visitor("review.pickups").more["save"]["text"]
    assert csv.startswith("\ufeff") and "too fast" in csv and "to be done again" in csv


def test_a_take_is_picked_and_showing_one_writes_nothing(visitor: Visitor) -> None:
    visitor.make()
    visitor.render(takes="2")
    answer = visitor("step", step="review")
    takes, chosen = answer.takes
    assert len(takes) == 2
    answered, label = visitor.room.handlers.answer, visitor.room.library.undo_label(visitor.view["book"])
    assert answered(Ask("picked", {"take": takes[chosen]})).more == {}
    assert visitor.room.library.undo_label(visitor.view["book"]) == label
    other = takes[1 - chosen]
    assert answered(Ask("picked", {"take": other})).more == {"next": "review.refresh"}
    assert visitor.book().current(visitor.book().spoken[0]).take == other
    visitor("review.approve")
    assert visitor.book().spoken[0].chosen == other


def test_a_job_is_paused_goes_on_and_is_cancelled_from_every_step(visitor: Visitor) -> None:
    visitor.make("# Slow\n\n" + "\n\n".join(f"Sentence number {number}." for number in range(20)))
    book, queue = visitor.view["book"], visitor.room.context.books.queue
    visitor.room.model.patch_delay = 0.02
    visitor("step", step="render")
    assert "21 takes for 21 segments" in plain(visitor.part("body"))
    visitor("render.start", scope="book", takes="1", retries="0")
    job = queue.jobs(book)[0].id
    visitor("step", step="text")
    assert f'data-ch="job.pause" data-job="{job}"' in visitor.part("job")
    visitor("job.pause", job=str(job))
    visitor.room.settle(book)
    paused = queue.status(job)
    assert paused.state == "paused" and paused.done < 21 and "Go on" in visitor("poll").parts["job"]
    visitor("job.resume", job=str(job))
    visitor("job.cancel", job=str(job))
    visitor.room.settle(book)
    visitor.room.model.patch_delay = 0.0
    assert queue.status(job).state == "cancelled" and visitor("poll").parts["job"] == ""
    kept = sum(map(len, visitor.book().takes.values()))
    assert sum(map(len, visitor.render().takes.values())) == 21 >= kept


def test_r_makes_one_more_take_at_once_and_the_page_follows(visitor: Visitor) -> None:
    visitor.make()
    visitor.render()
    visitor("step", step="review")
    visitor("review.reroll")
    assert "being made" in visitor.part("detail")
    visitor.room.settle(visitor.view["book"])
    answer = visitor("poll")
    assert len(answer.takes[0]) == 2 and "being made" not in visitor.part("detail")
    assert visitor("poll").takes is None, "what has not changed is left alone, so that playing goes on"
    visitor("review.save", segment=visitor.view["segment"], text="Quite other words.", speaker="", control="", pause="")
    assert "changed since this take was made" in plain(visitor.part("detail"))
    visitor("review.approve")
    assert visitor.notice, "words without a take are not approved"
    assert visitor.book().spoken[0].review == "unreviewed"


def test_of_thousands_of_segments_only_a_window_is_written(visitor: Visitor) -> None:
    visitor.make("# Long\n\n" + "\n\n".join(f"Line number {number} of many." for number in range(1, 2001)))
    visitor("step", step="review")
    assert visitor.part("table").count('role="option"') == WINDOW and 'data-total="2001"' in visitor.part("table")
    visitor("review.rows", **{"from": 1500})
    assert visitor.part("rows").count('role="option"') == WINDOW and 'data-from="1500"' in visitor.part("rows")
    assert len(visitor.answer.html("1")) < 200_000
    visitor("review.open", segment=visitor.segment("number 1700 "))
    assert visitor.answer.more["place"] == 1700 and "Line number 1700" in visitor.part("rows")


# ---- export


def test_an_export_is_asked_first_then_made_measured_and_fetched(visitor: Visitor) -> None:
    visitor.make("# One\n\nA few words.")
    wish = {"format": "m4b", "preset": "podcast", "whole": "book", "sample_rate": "24000", "subtitles": True}
    visitor("step", step="export")
    visitor("export.start", **wish)
    assert "2 segments have no take for their present words" in visitor.notice
    visitor.render()
    visitor("step", step="export")
    visitor("export.start", **wish, narrator="Nano")
    exports = visitor.room.context.books.exports
    export = exports.wait(visitor.view["book"], 60)
    assert export.state == "done", export.message
    visitor("poll")
    shown = visitor.part("result")
    assert "data-poll" not in shown and "LUFS" in shown
    app = Starlette(routes=exports.routes())
    with TestClient(app) as client:
        links = re.findall(r'href="(studio/export/[^"]+)"', shown)
        names = {link.rsplit("/", 1)[1]: client.get("/" + link) for link in links}
        sound = next(answer for name, answer in names.items() if name.endswith(".m4b"))
        assert sound.status_code == 200 and sound.content[4:8] == b"ftyp"
        assert client.get("/studio/export/1/guess/x.m4b").status_code == 404
        assert client.get(f"/studio/export/{export.project}/../{export.token}/x").status_code == 404
    visitor("export.zip")
    assert "data-fetch" in visitor.part("fetch")


def test_credits_become_chapters_and_a_packed_book_opens_again(visitor: Visitor, tmp_path: Path, monkeypatch) -> None:
    visitor.make("# One\n\nA few words.", title="To be packed")
    visitor("step", step="export")
    visitor("export.suggest", author="Me", narrator="Nano")
    assert "Written by Me." in visitor.part("body")
    visitor("export.credits", opening="This is the opening.", closing="")
    assert [chapter.kind for chapter in visitor.book().chapters][0] == "opening credits"
    visitor("export.project")
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    made = max((visitor.room.context.store.data_dir / "parcels").glob("*"), key=lambda path: path.stat().st_mtime)
    path = tmp_path / "packed.zip"
    path.write_bytes(made.read_bytes())
    visitor("import.file", path=str(path), file="packed.zip")
    again = visitor.book()
    assert again.project.title.startswith("To be packed") and again.spoken[0].text == "This is the opening."

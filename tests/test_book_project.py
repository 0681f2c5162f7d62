"""Projects: exactly what an edit touches becomes stale, locks hold, everything can be undone, nothing is lost."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studio.book import casting, editing
from studio.book.dictionary import Pronunciation
from studio.book.errors import BookError
from studio.book.importing import read_text
from studio.book.library import Library
from studio.book.project import Book, BookTake, CastMember, Pauses, Segment, Settings, pauses_after
from studio.book.script import Limits, estimated_seconds, words_to_say
from studio.store import Store, StoreError
from studio.takes import TakeRecord, new_take_id, utc_text
from studio.voices import VoiceLibrary
from tests import books

TEXT = """Chapter 1

The fox ran home. It was late.

“Where were you?” said Anna. He did not say a word to her.

* * *

[voice: Bob] I know. [pause 0.8] [/voice] Then morning came.

Chapter 2

All was well with the fox.

...
"""
TONE = (0.3 * np.sin(np.arange(4800) / 10)).astype(np.float32)


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    opened = Store(data_dir)
    yield opened
    opened.close()


@pytest.fixture
def library(store: Store) -> Library:
    return Library(store)


@pytest.fixture
def project(library: Library) -> int:
    return library.create(read_text(TEXT), "Fox", Settings(seed=7)).id


def render_all(library: Library, project: int) -> None:
    """A take for every segment, as a finished render leaves it."""
    book = library.book(project)
    for segment in book.spoken:
        add_take(library, book, segment)


def add_take(library: Library, book: Book, segment: Segment, verdict: str = "ok") -> str:
    text = book.say(segment)
    record = TakeRecord(
        new_take_id(),
        utc_text(),
        "local",
        "chapters",
        text,
        "",
        False,
        text,
        "",
        (),
        "plain",
        sample_rate=48_000,
        seconds=0.1,
    )
    take = library.store.save_take(record, TONE).id
    number = len(book.fitting(segment))
    library.add_take(BookTake(take, segment.id, book.key(segment), number, verdict, 0.1))
    return take


def stale(library: Library, project: int) -> list[int]:
    book = library.book(project)
    return [segment.id for segment in book.spoken if book.state(segment) != "ready"]


def find(library: Library, project: int, part: str) -> Segment:
    return next(s for chapter in library.book(project).chapters for s in chapter.segments if part in s.text)


def test_a_text_becomes_chapters_and_segments(library: Library, project: int) -> None:
    book = library.book(project)
    assert [chapter.title for chapter in book.chapters] == ["Chapter 1", "Chapter 2"]
    assert [(s.text, s.speaker) for s in book.chapters[0].spoken] == [
        ("Chapter 1", ""),
        ("The fox ran home. It was late.", ""),
        ("“Where were you?” said Anna. He did not say a word to her.", ""),
        ("[voice: Bob] I know. [pause 0.8]", "Bob"),
        ("[/voice] Then morning came.", ""),
    ]
    assert [s.text for s in book.chapters[1].segments if not s.is_spoken] == ["..."]
    assert book.project.settings.seed == 7


def test_the_novel_becomes_segments_within_the_limits(library: Library) -> None:
    manuscript = read_text(books.as_txt(books.make_novel()))
    limits = Limits(300, 20)
    began = time.process_time()
    project = library.create(manuscript, settings=Settings(limits)).id
    assert time.process_time() - began < 30
    book = library.book(project)
    assert len(book.chapters) == 21 and len(book.spoken) > 1500
    for segment in book.spoken:
        assert len(words_to_say(segment.text)) <= 300 and estimated_seconds(segment.text) <= 20
    texts = [s.text for chapter in book.chapters for s in chapter.segments]
    blocks = [block.text for section in manuscript.sections for block in section.blocks]
    assert "".join("".join(texts).split()) == "".join("".join(blocks).split())
    assert sum(chapter.words for chapter in book.chapters) > 60_000


def test_editing_one_sentence_makes_exactly_one_segment_stale(library: Library, project: int) -> None:
    render_all(library, project)
    assert stale(library, project) == []
    segment = find(library, project, "ran home")
    assert editing.edit_text(library, segment.id, "The fox walked home. It was late.") == [segment.id]
    assert stale(library, project) == [segment.id]
    library.undo(project)
    assert stale(library, project) == []  # the take of before fits again


def test_an_edit_that_is_too_long_becomes_several_segments(library: Library, project: int) -> None:
    segment = find(library, project, "ran home")
    long = "The fox ran a very long way home that night, and it was late. " * 12
    numbers = editing.edit_text(library, segment.id, long)
    assert len(numbers) > 1
    chapter = library.book(project).chapters[0]
    assert [s.id for s in chapter.segments if s.id in numbers] == numbers
    assert " ".join(library.segment(number).text for number in numbers) == long.strip()
    assert {library.segment(number).paragraph for number in numbers} == {segment.paragraph}


def test_the_dictionary_makes_exactly_the_affected_segments_stale(library: Library, project: int) -> None:
    render_all(library, project)
    book = library.book(project)
    entries = [Pronunciation("fox", "focks")]
    preview = casting.preview_words(book, entries)
    wanted = [segment.id for segment in book.spoken if "fox" in segment.text]
    assert [number for number, _, _ in preview.affected] == wanted and len(wanted) == 2
    assert preview.affected[0][1:] == ("The fox ran home. It was late.", "The focks ran home. It was late.")
    assert stale(library, project) == []  # a preview changes nothing
    assert casting.set_words(library, project, entries) == wanted
    assert stale(library, project) == wanted
    assert find(library, project, "fox ran").text == "The fox ran home. It was late."  # as written
    assert casting.set_words(library, project, []) == wanted
    assert stale(library, project) == []


def test_casting_makes_exactly_the_speakers_segments_stale(library: Library, project: int) -> None:
    render_all(library, project)
    bob = [segment.id for segment in library.book(project).spoken if segment.speaker == "Bob"]
    casting.set_member(library, project, CastMember("Bob", reference="a" * 64))
    assert stale(library, project) == bob and len(bob) == 1
    casting.set_member(library, project, CastMember("Bob", reference="a" * 64, control="calm"))
    casting.remove_member(library, project, "Bob")
    assert stale(library, project) == []
    casting.new_anchor(library, project, "")
    assert len(stale(library, project)) == len(library.book(project).spoken)


def test_a_locked_segment_is_left_alone(library: Library, project: int) -> None:
    segment = find(library, project, "ran home")
    editing.set_locked(library, [segment.id], True)
    for edit in (
        lambda: editing.edit_text(library, segment.id, "x"),
        lambda: editing.split_segment(library, segment.id, [5]),
        lambda: editing.merge_segments(library, segment.id),
        lambda: editing.set_speaker(library, [segment.id], "Anna"),
        lambda: editing.set_control(library, [segment.id], "calm"),
        lambda: editing.set_pause(library, segment.id, 10),
        lambda: editing.set_on(library, [segment.id], False),
    ):
        with pytest.raises(BookError, match="“The fox ran home. It was late.” is locked"):
            edit()
    editing.set_note(library, segment.id, "keep this")
    editing.set_review(library, [segment.id], "approved")
    assert library.segment(segment.id) == replace(segment, locked=True, note="keep this", review="approved")
    preview = casting.preview_words(library.book(project), [Pronunciation("fox", "x")])
    assert preview.locked == (segment.id,)


def everything(library: Library, project: int) -> tuple:
    book = library.book(project)
    return book.project, book.chapters, book.cast, book.dictionary.entries


def test_every_edit_can_be_undone_and_done_again(library: Library, project: int) -> None:
    fox, anna, bob = (find(library, project, part).id for part in ("ran home", "Where were", "I know"))
    one, two = (chapter.id for chapter in library.book(project).chapters)
    edits = [
        lambda: editing.edit_text(library, fox, "New words. " * 60),
        lambda: editing.split_segment(library, anna, [30]),
        lambda: editing.merge_segments(library, anna),
        lambda: editing.set_speaker(library, [anna, bob], "Anna"),
        lambda: editing.set_control(library, [anna], "calm"),
        lambda: editing.set_pause(library, anna, 900),
        lambda: editing.set_note(library, anna, "hm"),
        lambda: editing.set_review(library, [anna], "redo"),
        lambda: editing.set_on(library, [bob], False),
        lambda: editing.set_locked(library, [bob], True),
        lambda: editing.rename_chapter(library, one, "First"),
        lambda: editing.switch_chapter(library, two, False),
        lambda: editing.move_chapter(library, two, 0),
        lambda: editing.split_chapter(library, anna, "Later"),
        lambda: editing.merge_chapter(library, one),
        lambda: casting.set_member(library, project, CastMember("Anna", reference="b" * 64)),
        lambda: casting.remove_member(library, project, "Anna"),
        lambda: casting.set_words(library, project, [Pronunciation("fox", "focks"), Pronunciation("Bob", "Bobb")]),
        lambda: library.set_settings(project, Settings(pauses=Pauses(sentence=5))),
        lambda: library.rename_project(project, "Hare"),
    ]
    states = [everything(library, project)]
    for edit in edits:
        edit()
        states.append(everything(library, project))
        assert states[-1] != states[-2]
    for state in reversed(states[:-1]):
        assert library.undo(project)
        assert everything(library, project) == state
    assert library.undo(project) == ""
    for state in states[1:]:
        assert library.redo(project)
        assert everything(library, project) == state
    assert library.redo(project) == ""
    library.undo(project)
    editing.set_note(library, anna, "other")
    assert library.redo(project) == ""  # a new edit ends what could be redone


def test_undo_leaves_alone_what_was_rendered_since(library: Library, project: int) -> None:
    segment = find(library, project, "ran home")
    editing.set_note(library, segment.id, "hm")
    take = add_take(library, library.book(project), segment)
    library.undo(project)
    assert library.segment(segment.id).chosen == take and library.segment(segment.id).note == ""


def test_splitting_and_merging_keep_every_character(library: Library, project: int) -> None:
    segment = find(library, project, "Where were")
    parts = editing.split_segment(library, segment.id, [17, 29])
    texts = [library.segment(number).text for number in parts]
    assert texts == ["“Where were you?”", "said Anna.", "He did not say a word to her."]
    editing.merge_segments(library, parts[0])
    editing.merge_segments(library, parts[0])
    assert library.segment(segment.id).text == segment.text
    chapters = [s.text for chapter in library.book(project).chapters for s in chapter.segments]
    editing.merge_chapter(library, library.book(project).chapters[0].id)
    assert [s.text for chapter in library.book(project).chapters for s in chapter.segments] == chapters


def test_chinese_parts_are_merged_without_a_blank(library: Library) -> None:
    project = library.create(read_text("你好，世界。再见。"), "Han").id
    segment = library.book(project).spoken[0]
    first, _ = editing.split_segment(library, segment.id, [6])
    editing.merge_segments(library, first)
    assert library.segment(segment.id).text == segment.text


def test_settings_that_change_the_words_make_everything_stale(library: Library, project: int) -> None:
    render_all(library, project)
    settings = library.project(project).settings
    library.set_settings(project, replace(settings, cfg_value=1.6, pauses=Pauses(sentence=1)))
    assert stale(library, project) == []
    library.set_settings(project, replace(settings, normalize=True))
    assert len(stale(library, project)) == len(library.book(project).spoken)
    with pytest.raises(BookError, match="cfg_value is 9"):
        library.set_settings(project, replace(settings, cfg_value=9.0))


def test_dialogue_is_offered_and_casting_it_changes_no_text(library: Library, project: int) -> None:
    offers = casting.suggestions(library.book(project))
    assert [(offer.words, offer.speech.speaker) for offer in offers] == [("“Where were you?”", "Anna")]
    before = everything(library, project)
    numbers = casting.accept(library, offers[0].segment, [offers[0].speech])
    cast = [(library.segment(n).text, library.segment(n).speaker) for n in numbers]
    assert cast == [("“Where were you?”", "Anna"), ("said Anna. He did not say a word to her.", "")]
    library.undo(project)
    assert everything(library, project) == before


def test_takes_are_chosen_by_themselves_and_by_hand(library: Library, project: int) -> None:
    segment = find(library, project, "ran home")
    book = library.book(project)
    bad = add_take(library, book, segment, "fail")
    assert library.segment(segment.id).chosen == bad
    good = add_take(library, library.book(project), segment)
    assert library.segment(segment.id).chosen == good  # better than a red one
    third = add_take(library, library.book(project), segment)
    assert library.segment(segment.id).chosen == good
    editing.choose(library, segment.id, third)
    assert library.book(project).current(library.segment(segment.id)).take == third
    with pytest.raises(BookError, match="not made for this segment"):
        editing.choose(library, find(library, project, "Where").id, third)
    library.store.delete_take(third)
    assert library.book(project).current(library.segment(segment.id)).take == good


def test_an_approved_segment_is_unreviewed_when_it_is_spoken_anew(library: Library, project: int) -> None:
    render_all(library, project)
    segment = find(library, project, "ran home")
    editing.set_review(library, [segment.id], "approved")
    add_take(library, library.book(project), segment)
    assert library.segment(segment.id).review == "approved"  # another take of the same words
    casting.set_words(library, project, [Pronunciation("fox", "focks")])
    add_take(library, library.book(project), library.segment(segment.id))
    assert library.segment(segment.id).review == "unreviewed"


def test_pauses_by_boundary_and_as_asked(library: Library, project: int) -> None:
    pauses = Pauses(sentence=1, paragraph=2, heading=3, scene=4, chapter=5)
    chapter = library.book(project).chapters[0]
    assert list(pauses_after(chapter.segments, pauses).values()) == [3, 2, 4, 800, 5]
    editing.set_pause(library, find(library, project, "I know").id, 0)
    chapter = library.book(project).chapters[0]
    assert list(pauses_after(chapter.segments, pauses).values()) == [3, 2, 4, 0, 5]
    lone = library.create(read_text("One. Two.\n\n[pause 3]\n\nFour."), "Lone")
    assert list(pauses_after(library.book(lone.id).chapters[0].segments, pauses).values()) == [3000, 5]


def test_a_voice_in_use_is_not_deleted(library: Library, project: int, store: Store) -> None:
    voices = VoiceLibrary(store)
    record = store.save_take(
        TakeRecord(
            new_take_id(),
            utc_text(),
            "local",
            "tts",
            "Hi",
            "",
            False,
            "Hi",
            "",
            (),
            "plain",
            sample_rate=48_000,
            seconds=2.0,
        ),
        np.tile(TONE, 20),
    )
    voice = voices.save_from_take(record.id, "Anna's voice", "local")
    member = casting.cast_voice(library, voices, project, "Anna", voice.id)
    assert library.clips.path(member.reference).is_file()
    with pytest.raises(BookError, match="“Anna's voice” is cast in “Fox”"):
        casting.delete_voice(library, voices, voice.id)
    casting.remove_member(library, project, "Anna")
    casting.delete_voice(library, voices, voice.id)
    with pytest.raises(StoreError):
        voices.voice(voice.id)
    assert library.clips.audio(member.reference).sample_rate == 48_000  # undo may want it


def test_titles_are_unique_and_projects_can_go(library: Library, project: int) -> None:
    with pytest.raises(BookError, match="called “Fox” already"):
        library.create(read_text("Hi."), " Fox ")
    library.create(read_text("Hi."), "Fox", session="another")
    assert [p.title for p in library.projects("local")] == ["Fox"]
    with pytest.raises(BookError, match="“Hare”.*“Fox”"):
        library.project_named("Hare", "local")
    with pytest.raises(BookError, match="no such book"):
        library.project(project, "another")
    render_all(library, project)
    library.delete_project(project)
    with pytest.raises(BookError, match="no such book"):
        library.book(project)
    assert library.store.count() == 7  # takes stay in the history


def test_a_project_outlives_the_program(library: Library, project: int, data_dir: Path) -> None:
    render_all(library, project)
    before = everything(library, project), library.book(project).takes
    library.store.close()
    again = Library(Store(data_dir))
    assert (everything(again, project), again.book(project).takes) == before
    assert again.undo(project) == ""
    again.store.close()


def test_tables_of_a_newer_version_are_left_alone(library: Library, data_dir: Path) -> None:
    library.database.execute("INSERT INTO book_migrations VALUES ('holograms', '')")
    with pytest.raises(StoreError, match="newer version.*holograms"):
        Library(library.store)


def test_an_edit_that_fails_half_way_leaves_nothing(library: Library, project: int) -> None:
    before = everything(library, project)
    with pytest.raises(StoreError), library.change(project, "Broken") as change:
        change.update("book_projects", {"id": project}, {"title": "Half"})
        raise sqlite3.OperationalError("disk I/O error")
    assert everything(library, project) == before and library.undo(project) == ""

"""The review: verdicts with reasons, what is left, a take among its neighbours, the pickup list, and undo."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studio.book import casting, editing, likeness
from studio.book.context import in_context
from studio.book.errors import BookError
from studio.book.importing import read_text
from studio.book.library import Library
from studio.book.likeness import VoiceLikeness
from studio.book.pickups import pickup_csv, pickups
from studio.book.project import Book, BookTake, CastMember, Pauses, Segment, Settings
from studio.book.review import left, lines, next_open, wanted
from studio.book.speaking import book_take
from studio.book.verdicts import judge
from studio.checks import Check
from studio.store import Store
from tests.records import make_record
from voxcpm_core import Audio

TEXT = (
    "Chapter 1\n\n" + "\n\n".join(f"The fox ran past house number {n}." for n in range(5)) + "\n\nChapter 2\n\nThe end."
)
PAUSES = Pauses(paragraph=500, heading=1000)
RATE = 8000


@pytest.fixture
def library(data_dir: Path) -> Iterator[Library]:
    store = Store(data_dir)
    yield Library(store)
    store.close()


@pytest.fixture
def project(library: Library) -> int:
    return library.create(read_text(TEXT), "Fox", Settings(seed=7, pauses=PAUSES)).id


def tone(seconds: float, level: float = 0.2) -> np.ndarray:
    return (level * np.sin(np.arange(round(seconds * RATE)) / 3)).astype(np.float32)


def add_take(library: Library, segment: Segment, samples: np.ndarray, **facts: object) -> str:
    """A take with this sound, noted as a render notes it."""
    book = library.book(library.project_of_segment(segment.id))
    record = make_record(sample_rate=RATE, seconds=len(samples) / RATE, spoken_text=book.say(segment))
    record = library.store.save_take(record, samples)
    values = {"verdict": "ok", "seconds": record.seconds, "loudness": -20.0, **facts}
    library.add_take(BookTake(record.id, segment.id, book.key(segment), len(book.fitting(segment)), **values))
    return record.id


def render(library: Library, project: int, **facts: object) -> Book:
    for segment in library.book(project).spoken:
        add_take(library, segment, tone(1.0), **facts)
    return library.book(project)


# ------------------------------------------------------------------------------------------------- verdicts


def test_every_segment_is_judged_with_its_reasons(library: Library, project: int) -> None:
    spoken = library.book(project).spoken
    assert {judgement.verdict for judgement in judge(library.book(project)).values()} == {""}
    fault = Check("silence", "2.0 s", "warn", "A pause.", {"seconds": 2.0, "at": 0.3})
    worse = Check("too_long", "9.0 s", "fail", "Too long.", {"seconds": 9.0, "characters": 3, "expected": 1.0})
    add_take(library, spoken[0], tone(1.0), verdict="fail", faults=(fault.as_dict(), worse.as_dict()))
    add_take(library, spoken[1], tone(1.0))
    found = judge(library.book(project))
    first = found[spoken[0].id]
    assert first.verdict == "fail" and first.checks == (worse, fault) and first.reason == "Too long. A pause."
    assert found[spoken[1].id].verdict == "ok" and found[spoken[2].id].verdict == ""


@pytest.mark.parametrize(("lufs", "verdict", "jump"), [(-25.0, "ok", 0), (-28.0, "warn", -8), (-7.0, "fail", 13)])
def test_a_jump_of_level_is_told_of_the_odd_one(
    library: Library, project: int, lufs: float, verdict: str, jump: int
) -> None:
    book = render(library, project)
    odd, beside = book.spoken[3], book.spoken[2]
    add_take(library, odd, tone(1.0), loudness=lufs)
    editing.choose(library, odd.id, library.book(project).takes[odd.id][-1].take)
    found = judge(library.book(project))
    assert found[odd.id].verdict == verdict
    assert {judgement.verdict for number, judgement in found.items() if number != odd.id} == {"ok"}
    if jump:
        assert found[odd.id].checks[0].facts == {"jump": jump, "other": beside.id}


def test_two_voices_of_different_level_are_no_jump(library: Library, project: int) -> None:
    spoken = library.book(project).spoken
    casting.set_member(library, project, CastMember("Bob", control="an old man"))
    for number, segment in enumerate(spoken):
        if number % 2:
            editing.set_speaker(library, [segment.id], "Bob")
        add_take(library, library.segment(segment.id), tone(1.0), loudness=-35.0 if number % 2 else -20.0)
    assert {judgement.verdict for judgement in judge(library.book(project)).values()} == {"ok"}


def test_a_take_that_is_less_like_its_voice_than_the_others_is_amber(library: Library, project: int) -> None:
    book = render(library, project, likeness=0.85)
    odd = book.spoken[2]
    editing.choose(library, odd.id, add_take(library, odd, tone(1.0), likeness=0.66))
    found = judge(library.book(project))
    assert [number for number, judgement in found.items() if judgement.verdict != "ok"] == [odd.id]
    assert [(c.name, c.verdict, c.facts) for c in found[odd.id].checks] == [("likeness", "warn", {"percent": 66})]


def test_likeness_is_measured_against_the_clip_of_the_take(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = {10: [1.0, 0.0], 20: [0.6, 0.8], 30: [0.2, 0.98]}
    monkeypatch.setattr(likeness, "available", lambda: (True, ""))
    monkeypatch.setattr(likeness, "_embedding", lambda audio: np.array(vectors[round(audio.seconds * 10)]))
    clip = library.store.clips.keep(Audio(tone(1.0), RATE))
    takes = []
    for seconds in (2.0, 3.0):
        record = make_record(sample_rate=RATE, seconds=seconds, reference_hash=clip, checks=())
        takes.append(library.store.save_take(record, tone(seconds)))
    alike = VoiceLikeness(library.store)
    assert [alike.of(record) for record in takes] == [0.6, 0.2]
    assert alike.of(replace(takes[0], reference_hash="")) is None
    noted = [book_take(record, 1, "key", 0, alike.of(record)) for record in takes]
    assert [take.verdict for take in noted] == ["ok", "fail"]
    assert "another voice" in noted[1].reason and noted[1].faults[0]["name"] == "likeness"
    monkeypatch.setattr(likeness, "_embedding", lambda audio: 1 / 0)
    assert VoiceLikeness(library.store).of(takes[0]) is None  # it costs no take


# ------------------------------------------------------------------------------------------------- the table


def test_lines_say_what_is_heard_when_and_what_is_left(library: Library, project: int) -> None:
    book = render(library, project)
    first, second, third = book.spoken[:3]
    editing.approve(library, first.id)
    editing.set_review(library, [second.id], "redo")
    editing.edit_text(library, third.id, "Something else.")
    editing.set_note(library, book.spoken[4].id, "Slower, please")
    editing.set_locked(library, [book.spoken[5].id], True)
    all_lines = lines(library.book(project))
    assert [line.number for line in all_lines] == list(range(1, 9))
    assert [line.start for line in all_lines[:3]] == [0.0, 2.0, 3.5]  # a heading's pause, then a paragraph's
    assert all_lines[6].start == 0.0  # the second chapter
    assert [line.state for line in all_lines[:4]] == ["ready", "ready", "stale", "ready"]
    counted = left(all_lines)
    assert (counted.total, counted.approved, counted.redo, counted.stale, counted.noted) == (8, 1, 1, 1, 1)
    assert counted.open == 6 and counted.seconds == pytest.approx(sum(line.seconds for line in all_lines) - 2.0)
    assert [line.segment for line in wanted(all_lines, "open")][0] == second.id  # sent back: first
    assert [line.note for line in wanted(all_lines, "noted")] == ["Slower, please"]
    assert [line.segment for line in wanted(all_lines, words="something ELSE")] == [third.id]
    assert {line.chapter for line in wanted(all_lines, chapter=book.chapters[1].id)} == {book.chapters[1].id}
    assert wanted(all_lines, "stale", speaker="Nobody") == []


def test_what_comes_next_goes_round_to_the_beginning(library: Library, project: int) -> None:
    book = render(library, project)
    ids = [segment.id for segment in book.spoken]
    for number in ids[1:-1]:
        editing.approve(library, number)
    all_lines = lines(library.book(project))
    assert next_open(all_lines).segment == ids[0]
    assert next_open(all_lines, after=ids[0]).segment == ids[-1]
    assert next_open(all_lines, after=ids[-1]).segment == ids[0]
    for number in (ids[0], ids[-1]):
        editing.approve(library, number)
    assert next_open(lines(library.book(project)), after=ids[0]) is None
    assert left(lines(library.book(project))).open == 0


def test_approving_chooses_and_settles_in_one_step_of_undo(library: Library, project: int) -> None:
    segment = library.book(project).spoken[0]
    with pytest.raises(BookError, match="no such take"):
        editing.approve(library, segment.id)
    first, second = (add_take(library, segment, tone(seconds)) for seconds in (1.0, 2.0))
    editing.approve(library, segment.id, second)
    assert (library.segment(segment.id).chosen, library.segment(segment.id).review) == (second, "approved")
    assert library.undo_label(project) == "Approve" and library.redo_label(project) == ""
    assert library.undo(project) == "Approve"
    assert (library.segment(segment.id).chosen, library.segment(segment.id).review) == (first, "unreviewed")
    assert library.redo_label(project) == "Approve"
    editing.set_locked(library, [segment.id], True)
    editing.approve(library, segment.id, second)
    assert (library.segment(segment.id).chosen, library.segment(segment.id).review) == (first, "approved")
    editing.set_locked(library, [segment.id], False)
    editing.edit_text(library, segment.id, "New words.")
    with pytest.raises(BookError, match="present words"):
        editing.approve(library, segment.id, first)


# ------------------------------------------------------------------------------------------------- in its place


def test_a_take_is_heard_between_its_neighbours(library: Library, project: int) -> None:
    book = render(library, project)
    one = book.spoken[2]
    add_take(library, one, tone(0.5, 0.4))
    editing.choose(library, one.id, library.book(project).takes[one.id][-1].take)
    heard = in_context(library, one.id, before=0.6, after=0.25)
    assert (heard.start, heard.end) == pytest.approx((1.1, 1.6)) and heard.audio.seconds == pytest.approx(2.35)
    samples = heard.audio.samples
    take = samples[round(heard.start * RATE) : round(heard.end * RATE)]
    assert np.abs(take).max() == pytest.approx(0.4, abs=0.01)
    assert not samples[round(0.6 * RATE) : round(1.1 * RATE)].any()  # the pause
    assert np.abs(samples[: round(0.6 * RATE)]).max() == pytest.approx(0.2, abs=0.01)
    assert abs(samples[0]) < 1e-6 and abs(samples[-1]) < 0.01  # no click where a neighbour is cut
    other = in_context(library, one.id, take=book.takes[one.id][0].take)
    assert other.end - other.start == pytest.approx(1.0)
    with pytest.raises(BookError, match="no such take"):
        in_context(library, one.id, take=book.takes[book.spoken[0].id][0].take)
    with pytest.raises(BookError, match="no such book"):
        in_context(library, one.id, session="somebody else")


def test_the_edges_of_a_chapter_have_no_neighbour(library: Library, project: int) -> None:
    book = render(library, project)
    assert in_context(library, book.spoken[0].id).start == 0.0
    last = in_context(library, book.chapters[0].spoken[-1].id)
    assert last.end == pytest.approx(last.audio.seconds)


# ------------------------------------------------------------------------------------------------- pickup list


def test_the_pickup_list_is_a_table_with_timecodes(library: Library, project: int) -> None:
    book = render(library, project)
    editing.set_review(library, [book.spoken[1].id], "redo")
    editing.set_note(library, book.spoken[1].id, "=SUM(A1) breath")
    editing.edit_text(library, book.spoken[3].id, "Other words.")
    editing.set_note(library, book.spoken[4].id, "Nice")
    editing.approve(library, book.spoken[4].id)
    table = list(csv.reader(io.StringIO(pickup_csv(library.book(project)))))
    assert table[0] == ["number", "chapter", "timecode", "speaker", "status", "note", "problem", "text"]
    assert [row[:6] for row in table[1:]] == [
        ["2", "Chapter 1", "00:00:02.000", "Narrator", "to be done again", "'=SUM(A1) breath"],
        ["4", "Chapter 1", "00:00:05.000", "Narrator", "text or voice changed", ""],
        ["5", "Chapter 1", "00:00:06.500", "Narrator", "approved", "Nice"],
    ]
    assert pickup_csv(library.book(project), "zh-CN").startswith("序号,章节,时间码")
    assert [pickup.status for pickup in pickups(library.book(project))] == ["redo", "stale", "approved"]


def test_the_pickup_list_says_a_problem_in_the_page_s_words(library: Library, project: int) -> None:
    fault = Check("clipping", "0.2%", "fail", "It is cut off.", {"percent": 0.2})
    add_take(library, library.book(project).spoken[0], tone(1.0), verdict="fail", faults=(fault.as_dict(),))
    book = library.book(project)
    assert "failed its checks,,It is cut off." in pickup_csv(book)
    assert "CUT" in pickup_csv(book, say=lambda check: {"clipping": "CUT"}[check.name])
    assert pickup_csv(book).count("not recorded") == 7


# ------------------------------------------------------------------------------------------------- books that come back


def test_a_deleted_book_can_be_brought_back(library: Library, project: int) -> None:
    library.delete_project(project)
    assert library.projects() == []
    for ask in (lambda: library.project(project), lambda: library.project_named("Fox"), lambda: library.book(project)):
        with pytest.raises(BookError):
            ask()
    other = library.create(read_text("Another text."), "Fox").id
    with pytest.raises(BookError, match="no such book"):
        library.restore_project(project, "somebody else")
    assert library.restore_project(project).title == "Fox (2)"
    assert [one.id for one in library.projects()] == [other, project]
    assert len(library.book(project).spoken) == 8
    library.delete_project(other)
    library.database.execute("UPDATE book_projects SET deleted = '2020' WHERE id = ?", [other])
    Library(library.store)
    with pytest.raises(BookError, match="no such book"):
        library.restore_project(other)


def test_words_of_the_file_are_counted_once_and_for_all(library: Library) -> None:
    text = "Chapter 1\n\nOne two three.\n\n[pause 1]\n\nFour five."
    manuscript = read_text(text)
    switched = replace(manuscript, sections=tuple(replace(s, on=False) for s in manuscript.sections))
    project = library.create(switched, "Off")
    assert project.words_in == manuscript.all_words > 0 and library.book(project.id).spoken == []


def test_a_stamp_changes_with_every_change_also_of_another_program(
    library: Library, project: int, data_dir: Path
) -> None:
    stamps = [library.stamp()]
    assert library.stamp() == stamps[0]
    editing.set_note(library, library.book(project).spoken[0].id, "a")
    stamps.append(library.stamp())
    add_take(library, library.book(project).spoken[0], tone(1.0))
    stamps.append(library.stamp())
    other = Library(Store(data_dir))
    editing.set_note(other, other.book(project).spoken[0].id, "b")
    other.store.close()
    stamps.append(library.stamp())
    assert len(set(stamps)) == 4

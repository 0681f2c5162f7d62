"""Render jobs: every segment once, whatever happens in between; failures named; one voice through the book."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from studio import store as store_module
from studio.book import casting, editing
from studio.book.dictionary import Pronunciation
from studio.book.errors import BookError
from studio.book.importing import read_text
from studio.book.jobs import RenderQueue
from studio.book.library import Library
from studio.book.plan import Order, flagged, reroll
from studio.book.project import CastMember, Settings
from studio.book.rendering import Rendering
from studio.database import StoreError
from studio.store import Store
from studio.synthesizer import Synthesizer
from tests.fakes import SineModel

TEXT = "Chapter 1\n\n" + "\n\n".join(f"The fox ran past house number {n} and it was late." for n in range(12))


class Room:
    """A data folder with one book, a sine model, and a queue that is started."""

    def __init__(self, data_dir: Path, text: str = TEXT, **model: object) -> None:
        self.store = Store(data_dir)
        self.library = Library(self.store)
        self.model = SineModel(**{"sample_rate": 16_000, "patch_seconds": 0.08, **model})
        self.synthesizer = Synthesizer(self.store, lambda progress: self.model)
        self.synthesizer.load()
        self.synthesizer.wait()
        self.queue = RenderQueue(self.library, self.synthesizer)
        self.queue.start()
        self.project = self.library.create(read_text(text), "Fox", Settings(seed=7)).id

    @property
    def book(self):
        return self.library.book(self.project)

    def render(self, **order: object) -> object:
        job = self.queue.submit(self.project, Order(**order))
        return self.queue.wait(job, 60)

    def states(self) -> set[str]:
        return {self.book.state(segment) for segment in self.book.spoken}

    def close(self) -> None:
        self.queue.close()
        self.synthesizer.close()
        self.store.close()


@pytest.fixture
def room(data_dir: Path) -> Iterator[Callable[..., Room]]:
    rooms: list[Room] = []

    def make(**options: object) -> Room:
        rooms.append(Room(data_dir, **options))
        return rooms[-1]

    yield make
    for made in rooms:
        made.close()


def test_every_segment_gets_its_takes_once(room) -> None:
    here = room()
    status = here.render(takes=2)
    assert (status.state, status.tally.left, status.tally.takes_made) == ("done", 0, 26)
    for segment in here.book.spoken:
        takes = here.book.takes[segment.id]
        assert [take.number for take in takes] == [0, 1]
        records = [here.store.take(take.take) for take in takes]
        assert [record.seed for record in records] == [records[0].seed, records[0].seed + 1]
        assert {record.spoken_text for record in records} == {here.book.say(segment)}
        assert {record.tab for record in records} == {"chapters"}
    asked = len(here.model.requests)
    assert here.render(takes=2).state == "done"
    assert len(here.model.requests) == asked  # nothing was missing


def test_seeds_are_fixed_by_the_book(room, tmp_path: Path) -> None:
    here = room()
    here.render()
    other = Room(tmp_path / "other")
    other.render()
    other.close()
    seeds = [[r.seed for r in reversed(store.takes())] for store in (here.store, Store(tmp_path / "other"))]
    assert sorted(seeds[0]) == sorted(seeds[1]) and len(set(seeds[0])) == 13


def test_eight_rows_at_once_are_faster_than_one(room, tmp_path: Path) -> None:
    speeds = []
    for rows in (1, 8):
        here = Room(tmp_path / str(rows), patch_delay=0.004)
        status = here.render(rows=rows, retries=0)
        speeds.append(status.tally.speed)
        here.close()
    assert speeds[1] > 2.5 * speeds[0]


def test_what_was_edited_is_made_again_and_nothing_else(room) -> None:
    here = room()
    here.render()
    asked = len(here.model.requests)
    segment = here.book.spoken[3]
    editing.edit_text(here.library, segment.id, "The hare slept all day.")
    assert here.render().tally.takes_made == 1
    casting.set_words(here.library, here.project, [Pronunciation("number 5", "number five")])
    assert here.render().tally.takes_made == 1
    assert [request.text for request in here.model.requests[asked:]] == [
        "The hare slept all day.",
        "The fox ran past house number five and it was late.",
    ]
    assert here.states() == {"ready"}


def test_an_edit_while_it_is_being_spoken_is_made_as_edited(room) -> None:
    here = room(patch_delay=0.002)
    job = here.queue.submit(here.project, Order(rows=2))
    wait_until(lambda: len(here.model.requests) > 2)
    last = here.book.spoken[-1]
    editing.edit_text(here.library, last.id, "A new end.")
    assert here.queue.wait(job, 60).state == "done"
    assert here.states() == {"ready"}
    assert [r.text for r in here.model.requests].count("A new end.") == 1


def test_silence_and_locked_segments_are_not_rendered(room) -> None:
    here = room(text=TEXT + "\n\n.\n\n* * *\n\n[pause 2]")
    locked = here.book.spoken[2]
    editing.set_locked(here.library, [locked.id], True)
    status = here.render()
    assert status.state == "done" and status.tally.total == 12
    assert here.book.state(locked) == "missing"
    editing.set_locked(here.library, [segment.id for segment in here.book.spoken], True)
    with pytest.raises(BookError, match="nothing to render"):
        here.queue.submit(here.project, Order())


def test_a_failed_segment_is_named_and_the_rest_goes_on(room) -> None:
    here = room()
    bad = here.book.spoken[5]
    editing.edit_text(here.library, bad.id, "Here the model will fail at once.")
    status = here.render()
    assert status.state == "incomplete" and list(status.failures) == [bad.id]
    assert "sine generator out of order" in status.failures[bad.id]
    assert status.message == "1 segments could not be made." and status.done == 12
    assert [here.book.state(segment) for segment in here.book.spoken].count("missing") == 1
    editing.edit_text(here.library, bad.id, "Here it will not.")
    here.queue.resume(status.id)
    assert here.queue.wait(status.id, 30).state == "done"


def test_a_job_that_can_make_nothing_stops_by_itself(room) -> None:
    here = room(text="Chapter 1\n\n" + "\n\n".join(f"This will fail for number {n}." for n in range(40)))
    status = here.render(rows=1)
    assert status.state == "paused" and "sine generator out of order" in status.message
    assert len(here.model.requests) < 12


def test_red_takes_are_rolled_again_with_the_next_seed(room) -> None:
    here = room()
    segment = here.book.spoken[4]
    seed = here.book.seed(segment, 0)
    here.model.lengths = {seed: 220, seed + 1: 220}
    status = here.render(retries=2)
    assert status.state == "done"
    takes = here.book.takes[segment.id]
    assert [(take.number, take.verdict == "fail") for take in takes] == [(0, True), (1, True), (2, False)]
    assert "Too long" in takes[0].reason
    assert here.library.segment(segment.id).chosen == takes[2].take
    assert {len(here.book.takes[other.id]) for other in here.book.spoken if other.id != segment.id} == {1}


def test_red_takes_are_kept_when_the_tries_are_used_up(room) -> None:
    here = room()
    segment = here.book.spoken[4]
    here.model.lengths = {here.book.seed(segment, n): 220 for n in range(5)}
    assert here.render(retries=1).state == "done"
    assert len(here.book.takes[segment.id]) == 2 and here.book.state(segment) == "ready"
    assert here.render(retries=1).tally.takes_made == 0


def test_rerolls_and_flagged_segments(room) -> None:
    here = room()
    here.render()
    first, second = here.book.spoken[1], here.book.spoken[2]
    order = reroll(here.book, [first.id], 2)
    assert here.queue.wait(here.queue.submit(here.project, order), 30).tally.takes_made == 2
    assert [take.number for take in here.book.takes[first.id]] == [0, 1, 2]
    with pytest.raises(BookError, match="No segment is flagged"):
        flagged(here.book)
    editing.set_review(here.library, [second.id], "redo")
    here.queue.wait(here.queue.submit(here.project, flagged(here.book)), 30)
    assert len(here.book.takes[second.id]) == 2


def test_a_reroll_does_not_wait_for_the_book_and_nothing_is_made_twice(room) -> None:
    here = room(patch_delay=0.003)
    bulk = here.queue.submit(here.project, Order(rows=2))
    wait_until(lambda: here.queue.status(bulk).tally.takes_made >= 2)
    segment = next(one for one in here.book.spoken if here.book.state(one) == "ready")
    waiting = here.book.spoken[-1]  # the book's turn for it comes last
    rolled = here.queue.submit(here.project, reroll(here.book, [segment.id, waiting.id]))
    assert here.queue.wait(rolled, 30).state == "done"
    assert here.queue.status(bulk).state == "running"
    assert here.queue.wait(bulk, 60).state == "done"
    counts = {one.id: len(here.book.takes[one.id]) for one in here.book.spoken}
    assert counts.pop(segment.id) == 2 and set(counts.values()) == {1}


def test_deleting_a_book_ends_its_jobs(room) -> None:
    here = room(patch_delay=0.003)
    job = here.queue.submit(here.project, Order(rows=2))
    wait_until(lambda: len(here.model.requests) > 1)
    here.library.delete_project(here.project)
    wait_until(lambda: not here.queue._running)
    here.library.restore_project(here.project)
    assert here.queue.status(job).state == "cancelled" and here.queue.status(job).tally.left
    assert here.render().state == "done"


def test_a_few_segments_at_a_time(room) -> None:
    """As on machines that lend a GPU for moments: each call makes one segment more."""
    here = room()
    here.library.set_settings(here.project, Settings(seed=7, cfg_value=1.6, inference_timesteps=6, normalize=True))
    for made in range(1, 4):
        rendering = Rendering(here.library, here.synthesizer, here.project, Order())
        rendering.run(most=1)
        assert rendering.tally.takes_made == 1
        assert len(here.book.takes) == made
    request = here.model.requests[-1]
    assert (request.cfg_value, request.inference_timesteps, request.normalize) == (1.6, 6, True)


def test_one_chapter_only(room) -> None:
    here = room(text="Chapter 1\n\nOne two three.\n\nChapter 2\n\nFour five six.")
    here.render(chapters=(here.book.chapters[1].id,))
    assert [here.book.state(segment) for segment in here.book.spoken] == ["missing", "missing", "ready", "ready"]


def test_pause_resume_cancel(room) -> None:
    here = room(patch_delay=0.003)
    job = here.queue.submit(here.project, Order(rows=2))
    wait_until(lambda: here.queue.status(job).tally.takes_made >= 2)
    here.queue.pause(job)
    assert here.queue.status(job).state == "paused"
    wait_until(lambda: not here.queue._running)
    made = here.queue.status(job).tally.takes_made
    assert 2 <= made < 13 and here.store.count() == made  # what was being spoken was finished
    here.queue.resume(job)
    wait_until(lambda: here.queue.status(job).tally.takes_made >= 1)
    assert here.queue.status(job).tally.eta_seconds is not None
    here.queue.cancel(job)
    wait_until(lambda: not here.queue._running)
    assert here.queue.status(job).state == "cancelled"
    assert here.render().state == "done"
    assert {len(takes) for takes in here.book.takes.values()} == {1}


def test_no_more_is_begun_than_there_are_rows(room) -> None:
    here = room(patch_delay=0.02)
    job = here.queue.submit(here.project, Order(rows=2))
    wait_until(lambda: here.queue.status(job).tally.takes_made >= 1)  # the anchor
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        assert len(next(iter(here.queue._running.values()))._flying) <= 2
        time.sleep(0.02)
    here.queue.cancel(job)
    assert len(here.model.requests) <= 6


def test_a_full_disk_pauses_the_job_and_it_goes_on_later(room, monkeypatch: pytest.MonkeyPatch) -> None:
    here = room()
    real = store_module.write_once

    def full(path: Path, data: bytes) -> None:
        if here.store.count() >= 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, data)

    monkeypatch.setattr(store_module, "write_once", full)
    status = here.render(rows=1)
    assert status.state == "paused" and "No space left" in status.message and not status.failures
    monkeypatch.setattr(store_module, "write_once", real)
    here.queue.resume(status.id)
    assert here.queue.wait(status.id, 30).state == "done"
    assert {len(takes) for takes in here.book.takes.values()} == {1}


def test_a_take_stored_before_a_crash_is_found_again(room, monkeypatch: pytest.MonkeyPatch) -> None:
    here = room()
    real = Library.add_take

    def broken(library: Library, take) -> None:
        if here.store.count() == 3:
            raise StoreError("The program was killed here.")
        real(library, take)

    monkeypatch.setattr(Library, "add_take", broken)
    assert here.render(rows=1).state == "paused"
    monkeypatch.setattr(Library, "add_take", real)
    assert here.render(rows=1).state == "done"
    assert here.store.count() == 13 and {len(takes) for takes in here.book.takes.values()} == {1}
    assert here.library.database.read("SELECT count(*) FROM book_running") == [(0,)]


# ------------------------------------------------------------------------------------------------- voices


def test_regression_21_the_first_good_take_is_the_anchor_of_all_others(room) -> None:
    here = room()
    here.render()
    free = [r for r in here.model.requests if r.reference_wav_path is None]
    led = [r.reference_wav_path for r in here.model.requests if r.reference_wav_path is not None]
    assert len(free) == 1 and len(led) == 12 and here.model.requests[0] is free[0]
    assert all((clip.samples == led[0].samples).all() for clip in led)
    anchor = here.library.database.read("SELECT take, words FROM book_anchors")
    assert len(anchor) == 1 and here.store.take(anchor[0][0]).spoken_text == anchor[0][1] == free[0].text
    assert len({here.store.take(t.take).reference_hash for takes in here.book.takes.values() for t in takes}) == 2
    editing.edit_text(here.library, here.book.spoken[1].id, "Something else entirely now.")
    here.render()
    assert (here.model.requests[-1].reference_wav_path.samples == led[0].samples).all()


def test_regression_21_models_without_references_continue_the_anchor(room) -> None:
    here = room(supports_reference=False)
    here.render()
    first, *rest = here.model.requests
    assert first.prompt_wav_path is None and len(rest) == 12
    assert {request.prompt_text for request in rest} == {first.text}
    assert all(request.reference_wav_path is None and not request.control for request in rest)


def test_each_speaker_has_an_anchor_and_a_clip_needs_none(room, tmp_path: Path) -> None:
    import numpy as np

    from voxcpm_core.audio import wav_bytes

    clip = tmp_path / "bob.wav"
    clip.write_bytes(wav_bytes((0.3 * np.sin(np.arange(80_000) / 9)).astype(np.float32), 16_000))
    text = (
        TEXT + "\n\n[voice: Anna] I saw it, too, and I ran.\n\n[voice: Anna] So I did.\n\n[voice: Bob] Not I, nor you."
    )
    here = room(text=text)
    casting.set_member(here.library, here.project, CastMember("Anna", control="a young woman"))
    casting.cast_clip(here.library, here.project, "Bob", str(clip), control="calm")
    clip.unlink()  # the upload may vanish
    assert here.render().state == "done"
    assert [place[0] for place in here.library.database.read("SELECT speaker FROM book_anchors ORDER BY 1")] == [
        "",
        "Anna",
    ]
    by_text = {request.text: request for request in here.model.requests}
    bob, anna = by_text["Not I, nor you."], by_text["So I did."]
    assert len(bob.reference_wav_path.samples) == 80_000 and bob.control == "calm"
    assert anna.control == "a young woman" and anna.reference_wav_path is not None


# ------------------------------------------------------------------------------------------------- restarts


def test_a_second_program_waits_its_turn(room, data_dir: Path) -> None:
    here = room(patch_delay=0.003)
    job = here.queue.submit(here.project, Order(rows=1))
    wait_until(lambda: here.queue.status(job).state == "running")
    store = Store(data_dir)
    other = RenderQueue(Library(store), here.synthesizer)
    other.start()
    wait_until(lambda: "Another program renders" in other.waits_for)
    assert "Another program" in other.status(job).message
    other.close()
    store.close()
    assert here.queue.wait(job, 60).state == "done"


def wait_until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)

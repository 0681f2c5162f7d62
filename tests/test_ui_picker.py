"""The take-picker without a browser: which lane gets which seed, what the lanes say, and what a pick does."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from studio.events import Finished, Started
from studio.store import Store
from studio.synthesizer import Synthesizer
from studio.takes import TakeRecord
from studio.ui import picker_markup
from studio.ui.context import Context
from studio.ui.media import Media
from studio.ui.picker import PickerHandlers, Wish, planned
from studio.ui.picker_takes import facts_of, target_of
from studio.ui.settings import SettingError
from tests.browser import SpiedModel, wav_samples
from tests.fakes import SpeechRequest
from tests.picker import FakePage, given


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    store = Store(tmp_path)
    synthesizer = Synthesizer(store, lambda progress: SpiedModel())
    synthesizer.load()
    assert synthesizer.wait(10).state == "ready"
    yield Context(synthesizer, store, Media(store, synthesizer.voices))
    synthesizer.close()
    store.close()


@pytest.fixture
def page(context: Context) -> FakePage:
    return FakePage(PickerHandlers(context, "design"))


def records(page: FakePage, context: Context) -> list[TakeRecord | None]:
    return [context.store.take(take) if take else None for take in page.takes]


def model_of(context: Context) -> SpiedModel:
    return context.synthesizer._model


# ---- plans


def stored(seed: int, text: str = "Words.") -> SimpleNamespace:
    return SimpleNamespace(seed=seed, typed_text=text)


def wish(takes: int = 3, seed: int | None = None, text: str = "Words.") -> Wish:
    return Wish(SpeechRequest(text=text), takes, seed)


def test_take_k_uses_the_base_seed_plus_k() -> None:
    assert planned("new", wish(seed=100), [None] * 3, None) == [(0, 100), (1, 101), (2, 102)]
    assert planned("new", wish(2, seed=2**32 - 1), [None] * 3, None) == [(0, 2**32 - 1), (1, 0)]
    new = planned("new", wish(), [None] * 3, None)
    assert [seed - new[0][1] for _, seed in new] == [0, 1, 2] or new[0][1] > 2**32 - 3


def test_the_others_get_new_seeds_and_the_picked_none() -> None:
    before = [stored(1), stored(2), stored(3)]
    plan = planned("others", wish(seed=1), before, picked=1)
    assert [slot for slot, _ in plan] == [0, 2] and not {seed for _, seed in plan} & {1, 2, 3}
    assert [slot for slot, _ in planned("others", wish(), before, None)] == [0, 1, 2]
    assert [slot for slot, _ in planned("others", wish(1), [stored(1), None, None], picked=0)] == [1]


def test_same_seeds_need_another_text() -> None:
    before = [stored(7), None, stored(9)]
    assert planned("text", wish(text="New."), before, 0) == [(0, 7), (2, 9)]
    with pytest.raises(SettingError, match="Change it"):
        planned("text", wish(), before, 0)


def test_more_like_this_counts_up_from_the_picked_seed() -> None:
    before = [stored(7), stored(8), None]
    assert planned("around", wish(), before, picked=1) == [(0, 9), (2, 10)]
    with pytest.raises(SettingError, match="Pick a take"):
        planned("around", wish(), before, None)


@pytest.mark.parametrize("kind", ["others", "text", "around"])
def test_without_takes_there_is_nothing_to_go_on_from(kind: str) -> None:
    with pytest.raises(SettingError, match="no takes yet"):
        planned(kind, wish(), [None] * 3, None)


# ---- runs


def test_three_takes_are_one_batch_and_each_is_itself(page: FakePage, context: Context) -> None:
    messages = page.run(seed=100)
    assert len(model_of(context).__dict__["generations"]) == 1
    assert [record.seed for record in records(page, context)] == [100, 101, 102]
    for record in records(page, context):
        expected = model_of(context).tone(record.seed, record.patches)
        np.testing.assert_allclose(
            wav_samples(context.store.audio_path(record.id)) / 32768, np.clip(expected, -1, 1), atol=1e-4
        )
    assert len({record.file_hash for record in records(page, context)}) == 3
    assert len({record.group for record in records(page, context)}) == 1
    assert all(page.live) and page.job is None and 'data-state="stop"' in page.status
    assert not messages[0].start[0]["interactive"] and messages[-1].start[0]["interactive"]


def test_fewer_takes_leave_lanes_unused(page: FakePage) -> None:
    page.run(takes=3)
    page.run(takes=1)
    assert page.takes[0] and page.takes[1:] == ["", ""]
    assert [re.search(r'data-state="(\w+)"', facts)[1] for facts in page.facts] == ["stop", "unused", "unused"]


def test_the_others_are_rolled_again_and_the_picked_stays(page: FakePage, context: Context) -> None:
    page.run(seed=5)
    page.pick(1)
    before, facts, heard = list(page.takes), list(page.facts), [len(live) for live in page.live]
    page.run("others")
    assert page.takes[1] == before[1] and page.picked == 1 and page.facts[1] == facts[1]
    assert len(page.live[1]) == heard[1], "the picked lane's player was touched"
    assert page.takes[0] != before[0] and page.takes[2] != before[2]
    assert len({record.group for record in records(page, context)}) == 1, "takes that are compared are one group"
    assert context.store.take(before[0]).seed == 5, "what was there before is kept"


def test_other_text_keeps_the_seeds(page: FakePage, context: Context) -> None:
    page.run(seed=20)
    page.pick(0)
    page.run("text", text="Another text.")
    assert [record.seed for record in records(page, context)] == [20, 21, 22]
    assert {record.spoken_text for record in records(page, context)} == {"Another text."} and page.picked is None
    page.run("text", text="Another text.")
    assert "Change it" in page.notice and all(page.takes)


def test_more_like_this_has_the_picked_take_as_its_reference(page: FakePage, context: Context) -> None:
    page.run(seed=30)
    page.pick(2)
    page.run("around")
    made = records(page, context)
    assert [record.seed for record in made] == [33, 34, 32]
    assert made[0].mode == "reference" and made[0].reference_hash and made[0].reference_hash == made[1].reference_hash
    assert made[2].mode == "design"
    model_of(context).supports_reference = False
    context.synthesizer._status = SimpleNamespace(supports_reference=False, generation="VoxCPM1.5", name="x")
    page.run("around")
    assert "VoxCPM1.5 cannot take a voice" in page.notice


def test_a_run_is_withdrawn_before_its_turn(page: FakePage, context: Context) -> None:
    page.take_in(page.handlers.wait(page.request))
    ticket = page.ticket
    stopped = page.take_in(page.handlers.stop(page.job, page.request))
    assert 'data-state="idle"' in page.status and stopped.start[0]["interactive"]
    late = page.handlers.run("new", lambda: wish(), page.takes, None, False, ticket, None, page.request)
    assert [any(map(given, message)) for message in late] == [False]
    assert context.store.count() == 0


def test_stop_keeps_three_partial_takes(page: FakePage, context: Context) -> None:
    model_of(context).patch_delay = 0.02

    def stop() -> None:
        while page.job is None or page.job.startswith("waiting"):
            time.sleep(0.01)
        time.sleep(0.3)
        page.handlers.stop(page.job, page.request)

    thread = threading.Thread(target=stop)
    thread.start()
    page.run(text="Speak forever.")
    thread.join()
    made = records(page, context)
    assert [record.ended_by for record in made] == ["cancelled"] * 3 and all(record.seconds > 0 for record in made)
    assert 'data-state="cancelled"' in page.status and all("partial take" in facts for facts in page.facts)


def test_a_refusal_says_why_and_gives_the_buttons_back(page: FakePage) -> None:
    def refuse() -> Wish:
        raise SettingError("ask_control")

    page.run()
    before = list(page.takes)
    page.take_in(page.handlers.wait(page.request))
    [message] = page.handlers.run("new", refuse, page.takes, None, False, page.ticket, None, page.request)
    shown = page.take_in(message)
    assert "no description yet" in page.notice and shown.start[0]["interactive"] and page.takes == before


def test_a_picked_take_that_was_deleted_is_rolled_again_like_the_others(page: FakePage, context: Context) -> None:
    page.run(seed=35)
    page.pick(1)
    context.store.delete_take(page.takes[1])
    page.run("around")
    assert "Pick a take first" in page.notice
    page.run("others")
    assert all(page.takes) and page.picked is None


def test_a_failing_model_is_told_per_lane(page: FakePage, context: Context) -> None:
    page.run(text="This will fail.")
    assert [record.ended_by for record in records(page, context)] == ["error"] * 3
    assert all("What had been made is kept" in facts for facts in page.facts) and 'data-state="error"' in page.status


# ---- picking, blindly too


def test_a_second_pick_of_the_same_lane_lets_it_go(page: FakePage, context: Context) -> None:
    page.run(seed=1)
    page.pick(1)
    assert page.picked == 1 and 'data-picked="1"' in page.line and ">2</b>" in page.line
    assert [record.picked for record in records(page, context)] == [False, True, False]
    page.pick(2)
    assert [record.picked for record in records(page, context)] == [False, False, True]
    page.pick(2)
    assert page.picked is None and 'data-picked=""' in page.line
    assert not any(record.picked for record in records(page, context))


def test_an_empty_lane_cannot_be_picked(page: FakePage) -> None:
    page.run(takes=1)
    page.pick(2)
    assert page.picked is None


def test_blind_lanes_tell_no_seed_until_one_is_picked(page: FakePage, context: Context) -> None:
    messages = page.run(blind=True, seed=4_000_000_001)
    for shown in messages:
        assert "40000000" not in "".join(facts for facts in shown.facts if given(facts)), "a seed was told"
    assert page.hidden and all("seed hidden" in facts and "Recipe" not in facts for facts in page.facts)
    page.pick(0)
    seeds = [record.seed for record in records(page, context)]
    assert not page.hidden and sorted(seeds) == [4_000_000_001, 4_000_000_002, 4_000_000_003]
    assert all(str(seed) in facts for seed, facts in zip(seeds, page.facts, strict=True))


def test_blind_order_is_shuffled(page: FakePage, context: Context) -> None:
    orders = set()
    for _ in range(12):
        page.run(blind=True, seed=50, text="Hm.")
        orders.add(tuple(record.seed for record in records(page, context)))
    assert len(orders) > 1, "twelve shuffles came out alike (one in 6^11)"


def test_the_switch_hides_and_shows_finished_takes(page: FakePage, context: Context) -> None:
    page.run(seed=60)
    page.pick(0)
    ids = set(page.takes)
    page.blind(True)
    assert page.hidden and page.picked is None and set(page.takes) == ids and "seed hidden" in page.facts[0]
    page.blind(False)
    assert not page.hidden and all(str(record.seed) in page.facts[s] for s, record in enumerate(records(page, context)))


# ---- levels


def test_takes_of_different_loudness_are_played_at_one_level(context: Context) -> None:
    loud = SimpleNamespace(loudness=-12.0, peak=-2.0)
    soft = SimpleNamespace(loudness=-30.0, peak=-14.0)
    target = target_of([loud, soft, None])
    assert target <= -20.0 + 1e-9 and target <= soft.loudness - 1.0 - soft.peak
    for record in (loud, soft):
        assert record.peak + (target - record.loudness) <= -1.0 + 1e-9


def test_the_lane_carries_the_gain_for_the_common_level(page: FakePage, context: Context) -> None:
    page.run(seed=70)
    made = records(page, context)
    target = target_of(made)
    for record, facts in zip(made, page.facts, strict=True):
        gain = float(re.search(r'data-gain="(-?[\d.]+)"', facts)[1])
        assert record.loudness + gain == pytest.approx(target, abs=0.01)


# ---- stars, notes, voices, and whose they are


def review(page: FakePage, slot: int, **said: object) -> object:
    event = SimpleNamespace(_data=said)
    return page.handlers.review(slot, page.takes, page.hidden, page.owner, event, page.request)


def test_stars_and_notes_are_kept_with_the_take(page: FakePage, context: Context) -> None:
    page.run()
    assert not given(review(page, 0, star=True)) and records(page, context)[0].starred
    hostile = '"><script>alert(1)</script>'
    facts = review(page, 1, note=hostile)
    assert records(page, context)[1].note == hostile and "<script" not in facts and "has-note" in facts


def test_the_picked_take_becomes_a_voice(page: FakePage, context: Context) -> None:
    page.run(seed=80, text="A voice that is kept for every later text.")
    save = page.handlers.save_voice
    assert "Pick a take first" in save("Anna", page.takes, page.picked, None, page.request)[0]
    page.pick(1)
    assert "Give the voice a name" in save("  ", page.takes, page.picked, None, page.request)[0]
    notice, field = save("Anna", page.takes, page.picked, None, page.request)
    [voice] = context.synthesizer.voices.voices()
    assert "Anna" in notice and field == "" and voice.name == "Anna" and voice.seed == 81 and voice.transcript
    again, field = save("Anna", page.takes, page.picked, None, page.request)
    assert "is-error" in again and not given(field) and len(context.synthesizer.voices.voices()) == 1


def test_another_visitors_take_is_out_of_reach(context: Context) -> None:
    shared = Context(context.synthesizer, context.store, context.media, shared=True)
    mine = FakePage(PickerHandlers(shared, "design"), owner="a" * 32)
    mine.run(seed=90)
    other = FakePage(PickerHandlers(shared, "design"), owner="b" * 32)
    other.takes = list(mine.takes)
    other.pick(0)
    assert other.picked is None
    review(other, 0, star=True)
    assert not records(mine, context)[0].starred
    saved = other.handlers.save_voice("Theirs", other.takes, 0, other.owner, other.request)
    assert "is-error" in saved[0] and not context.synthesizer.voices.voices()


def test_stored_takes_are_shown_without_a_run(page: FakePage, context: Context) -> None:
    page.run(seed=95)
    other = FakePage(page.handlers)
    other.take_in(page.handlers.show([page.takes[2], "20200101-000000-0123456789abcdef"], 0, None, page.request))
    assert other.takes == [page.takes[2], "", ""] and other.picked == 0 and "97" in other.facts[0]
    assert 'data-state="unused"' in other.facts[1] and 'data-picked="0"' in other.line


def test_a_browser_gets_its_own_lanes_back_and_nothing_else(page: FakePage, context: Context) -> None:
    page.run(seed=98)
    page.pick(1)
    again = FakePage(page.handlers)
    again.take_in(page.handlers.restore(page.takes, None, page.request))
    assert again.takes == page.takes and again.picked == 1
    for nonsense in (None, {}, "x", [1, None, []], [""] * 9, ["20200101-000000-0123456789abcdef"]):
        assert not any(map(given, page.handlers.restore(nonsense, None, page.request))), nonsense
    shared = PickerHandlers(Context(context.synthesizer, context.store, context.media, shared=True), "design")
    assert not any(map(given, shared.restore(page.takes, "b" * 32, page.request)))


def test_a_take_without_a_file_shows_its_state_only(context: Context) -> None:
    events = context.synthesizer.speak(SpeechRequest(text="Words."), seeds=[1])
    record = next(event.record for event in events if isinstance(event, Finished))
    lost = replace(record, file_name="", message="The take could not be saved (no space).")
    facts = facts_of(lost, context, "en")
    assert 'data-state="unsaved"' in facts and "no space" in facts and "data-take" not in facts and "Star" not in facts


def test_the_bar_is_named_for_screen_readers() -> None:
    for language, word in (("en", "Take 2"), ("zh", "第 2 条")):
        bar = picker_markup.bar(1, language)
        assert word in bar and 'role="slider"' in bar and "<kbd>2</kbd>" in bar


def test_started_events_name_their_group(context: Context) -> None:
    with_group = context.synthesizer.speak(SpeechRequest(text="Hm."), seeds=[1], group="g1")
    assert next(event for event in with_group if isinstance(event, Started)).group == "g1"

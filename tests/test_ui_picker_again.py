"""The take-picker without a browser: what is made after the first takes, and what a page that is opened anew tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.store import Store
from studio.synthesizer import Synthesizer
from studio.takes import TakeRecord
from studio.ui.context import Context
from studio.ui.media import Media
from studio.ui.picker import PickerHandlers, Wish
from studio.ui.takes_list import TakesHandlers
from tests.browser import SpiedModel
from tests.fakes import SpeechRequest
from tests.picker import FakePage, asking
from tests.recordings import speech
from voxcpm_core import Audio


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
    return FakePage(PickerHandlers(context, "cloning"))


def record(page: FakePage, context: Context, slot: int) -> TakeRecord:
    return context.store.take(page.takes[slot])


def run(page: FakePage, kind: str, request: SpeechRequest, lane: int | None = None, **wish) -> None:
    page.take_in(page.handlers.wait(page.request))
    for message in page.handlers.run(
        kind, lambda: Wish(request, **wish), page.takes, page.picked, False, page.ticket, None, page.request, lane
    ):
        page.take_in(message)


def test_more_like_a_cloned_take_keeps_whose_voice_it_is_and_the_consent(page: FakePage, context: Context) -> None:
    clip = Audio(speech(2.0, 16_000), 16_000)
    cloned = SpeechRequest(text="Words.", reference_wav_path=clip)
    run(page, "new", cloned, takes=2, seed=7, options={"consent": True, "notes": ("It may be used.",)})
    first = record(page, context, 0)
    assert first.consent and first.reference_hash
    page.pick(0)
    # Meanwhile the form has another clip, which nobody has agreed to.
    run(page, "around", SpeechRequest(text="Words.", prompt_wav_path=clip, prompt_text="x"), options={"consent": None})
    like = record(page, context, 1)
    assert like.seed == 8 and like.consent is True and like.mode == "reference"
    told = " ".join(like.notes)
    assert first.id in told and first.reference_hash[:12] in told and "seed 7" in told
    assert context.voices.save_from_take(like.id, "Like it", "local").consent, "the voice has lost its consent"


def test_a_lane_is_rolled_again_as_the_next_try_and_the_others_stay(page: FakePage, context: Context) -> None:
    request = SpeechRequest(text="Words.")
    run(page, "new", request, takes=2, seed=7)
    before = [record(page, context, slot) for slot in (0, 1)]
    page.pick(1)
    run(page, "lane", request, lane=1)
    after = [record(page, context, slot) for slot in (0, 1)]
    assert after[0].id == before[0].id and after[1].id != before[1].id and after[1].seed != before[1].seed
    assert after[1].attempt == 1 and before[1].id in after[1].notes[-1] and after[1].group == before[1].group
    assert page.picked is None, "the picked take is no longer in its lane"
    assert context.store.take(before[1].id).file_name, "a take was replaced"
    context.store.delete_take(after[1].id)
    run(page, "lane", request, lane=1)
    assert "no longer in the studio" in page.notice


@pytest.mark.parametrize("started", [True, False])
def test_a_blind_comparison_outlives_the_page(page: FakePage, context: Context, started: bool) -> None:
    page.run(seed=4_000_000_000, blind=started)
    if not started:
        page.blind(True)
    again = FakePage(PickerHandlers(context, "cloning"))
    *shown, switch = again.handlers.restore(page.takes, None, asking())
    again.take_in(tuple(shown))
    lists = TakesHandlers(context)
    assert switch is True and again.hidden and again.takes == page.takes
    assert all("40000000" not in facts and "seed hidden" in facts for facts in again.facts)
    assert "40000000" not in lists.recent(None, asking())
    again.pick(0)
    assert not again.hidden and all("40000000" in facts for facts in again.facts)
    assert lists.recent(None, asking()).count("40000000") >= 3
    *_, switch = again.handlers.restore(page.takes, None, asking())
    assert switch is not True

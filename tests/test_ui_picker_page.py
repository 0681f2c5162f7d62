"""The take-picker as its users have it: a real server, a real browser, a model that speaks in sine waves."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from gradio_client import Client
from playwright.sync_api import Browser, Page

from studio.export_takes import marked_wav
from studio.loudness import loudness
from tests.browser import SpiedModel, Studio, chromium, opened, running_studio, wav_samples
from tests.picker import design, facts, fill, finish, lane, picker_state, playing, takes, to_tab, wait_for

# A busy machine can come between a browser and its page: such a test may have a second try, which the summary shows.
pytestmark = [pytest.mark.browser, pytest.mark.flaky(reruns=1)]


@dataclass
class LevelledModel(SpiedModel):
    """Speaks at the peak level in dBFS that ``levels`` has for a seed."""

    levels: dict[int, float] = field(default_factory=dict)

    def tone(self, seed: int, patches: int, first: int = 0) -> np.ndarray:
        gain = 10 ** (self.levels[seed] / 20) / 0.3 if seed in self.levels else 1.0
        return super().tone(seed, patches, first) * np.float32(gain)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def module_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running_studio(tmp_path_factory.mktemp("design"), LevelledModel()) as studio:
        yield studio


@pytest.fixture
def studio(module_studio: Studio) -> Studio:
    """The module's studio with its model as it was made."""
    fresh = LevelledModel()
    for name in ("patch_delay", "frequency", "lengths", "levels"):
        setattr(module_studio.model, name, getattr(fresh, name))
    return module_studio


def test_three_players_fill_and_the_playing_one_is_not_disturbed(studio: Studio, browser: Browser) -> None:
    studio.model.patch_delay, studio.model.lengths = 0.1, {200: 40, 201: 55, 202: 80}
    with opened(browser, studio.url) as page:
        to_tab(page)
        fill(page, "Three takes of this.", seed=200)
        page.click("#vx-design-generate")
        page.wait_for_function("document.querySelector('#vx-design-live-1 audio')?.currentTime > 0.3")
        page.wait_for_function(
            "[...document.querySelectorAll('#vx-design-picker .vx-slot-facts')]"
            ".every((f) => f.dataset.state === 'speaking' && f.dataset.seconds > 0.5)"
        )
        assert studio.model.last.takes == [None] * 3, "the takes were over before anything was heard"
        assert playing(page) == [True, False, False]
        others = "[2, 3].map((k) => document.querySelector(`#vx-design-live-${k} audio`))"
        assert page.evaluate(f"{others}.every((audio) => audio.paused && audio.currentTime === 0)")
        page.evaluate("""() => {
          const audio = document.querySelector('#vx-design-live-1 audio');
          Object.assign(window, { audio, src: audio.src, events: [], times: [] });
          for (const name of ['pause', 'seeking', 'emptied', 'loadstart'])
            audio.addEventListener(name, () => events.push([name, audio.currentTime]));
          setInterval(() => times.push(audio.currentTime), 100);
        }""")
        wait_for(page, "stop")
        assert facts(page, "state") == ["stop"] * 3
        assert page.evaluate("audio.isConnected && audio.src === src")
        page.wait_for_function("audio.currentTime > 6.2", timeout=20_000)
        times, events = page.evaluate("times"), page.evaluate("events")
        assert all(after >= before for before, after in zip(times, times[1:], strict=False)), "it jumped back"
        assert [event for event in events if event[1] < 6.2] == [], "it was interrupted"
        page.wait_for_function("!document.querySelector('#vx-design-slot-1 .ic-pause')")


def test_another_lane_can_be_switched_to_while_it_fills(studio: Studio, browser: Browser) -> None:
    studio.model.patch_delay, studio.model.lengths = 0.1, dict.fromkeys((210, 211, 212), 70)
    with opened(browser, studio.url) as page:
        to_tab(page)
        fill(page, "Switch to the second.", seed=210)
        page.click("#vx-design-generate")
        page.wait_for_function("document.querySelector('#vx-design-live-1 audio')?.currentTime > 0.2")
        page.wait_for_selector("#vx-design-slot-2 .vx-slot-facts[data-state=speaking]")
        page.click(lane(2, ".vx-play"))
        page.wait_for_function("document.querySelector('#vx-design-live-2 audio')?.currentTime > 0.3")
        assert picker_state(page) == "speaking" and playing(page) == [False, True, False]
        assert page.evaluate("document.querySelector('#vx-design-live-1 audio').paused")
        wait_for(page, "stop")
        page.click(lane(3, ".vx-play"))  # finished: the file plays, and the stream of the other lane is silent
        page.wait_for_function("parseFloat(document.querySelector('#vx-design-slot-3 .vx-playhead').style.left) > 1")
        assert playing(page) == [False, False, True]
        assert page.evaluate(
            "[...document.querySelectorAll('#vx-design-picker .vx-slot-live audio')].every((audio) => audio.paused)"
        )


def test_each_take_is_itself_alone_and_keys_pick(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        design(page, "Pick the second.", seed=220)
        made = takes(studio, page)
        assert [record.seed for record in made] == [220, 221, 222] and {record.tab for record in made} == {"design"}
        for record in made:
            assert record.control == "A calm woman" and record.spoken_text == "Pick the second."
            expected = studio.model.tone(record.seed, record.patches)
            np.testing.assert_allclose(
                wav_samples(studio.store.audio_path(record.id)) / 32768, np.clip(expected, -1, 1), atol=1e-4
            )
        page.focus("#vx-design-text textarea")
        page.keyboard.press("3")  # a letter of the text
        assert page.input_value("#vx-design-text textarea").endswith("3")
        assert page.locator("#vx-design-picker .vx-slot.is-picked").count() == 0
        page.click("#vx-design-picker .vx-picker-state")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("2")
        page.wait_for_selector("#vx-design-slot-2.is-picked >> text=Picked")
        assert "221" in page.inner_text("#vx-design-picker .vx-pickline") and studio.store.take(made[1].id).picked
        page.keyboard.press("Space")
        page.wait_for_function("document.querySelector('#vx-design-slot-2 .ic-pause')")
        page.keyboard.press("Space")
        page.wait_for_function("!document.querySelector('#vx-design-slot-2 .ic-pause')")
        page.keyboard.press("r")
        page.wait_for_function(
            "(old) => !document.querySelector(`#vx-design-slot-1 [data-take='${old}']`)", arg=made[0].id
        )
        finish(page)
        again = takes(studio, page)
        assert again[1].id == made[1].id and {again[0].seed, again[2].seed}.isdisjoint({220, 221, 222})
        assert page.locator("#vx-design-slot-2.is-picked").count() == 1


def test_stop_keeps_partial_takes(studio: Studio, browser: Browser) -> None:
    studio.model.patch_delay = 0.05
    with opened(browser, studio.url) as page:
        to_tab(page)
        fill(page, "Speak forever.")
        page.click("#vx-design-generate")
        page.wait_for_function("document.querySelector('#vx-design-slot-3 .vx-slot-facts').dataset.seconds > 0.6")
        generation, steps = studio.model.last, []
        stop = studio.synthesizer.stop
        studio.synthesizer.stop = lambda job: (steps.append(generation.steps), stop(job))[1]
        try:
            page.keyboard.press("Escape")
            wait_for(page, "cancelled")
        finally:
            del studio.synthesizer.stop
        assert facts(page, "state") == ["cancelled"] * 3 and playing(page) == [False] * 3, "it is still talking"
        for record in takes(studio, page):
            assert record.ended_by == "cancelled" and 0 < record.patches <= steps[0] + 2
            length = len(wav_samples(studio.store.audio_path(record.id)))
            assert length == record.patches * studio.model.patch_samples
        assert "partial take" in page.inner_text(lane(1))
        studio.model.patch_delay = 0.0
        design(page, "After the stop.", seed=7)
        assert takes(studio, page)[0].seed == 7


def test_takes_of_any_level_are_heard_equally_loud(studio: Studio, browser: Browser) -> None:
    studio.model.frequency, studio.model.lengths = 997.0, {230: 50, 231: 50}
    studio.model.levels = {230: -27.0, 231: -9.0}  # a sine of 997 Hz reads 3 LU below its peak
    with opened(browser, studio.url, ready=True) as page:
        page.evaluate(RECORD_WHAT_IS_HEARD)
        to_tab(page)
        design(page, "Loud and soft.", seed=230, takes=2)
        page.wait_for_function("!document.querySelector('#vx-design-picker .ic-pause')", timeout=20_000)
        made = takes(studio, page)
        files = [studio.store.audio_path(record.id).read_bytes() for record in made]
        assert [round(record.loudness) for record in made] == [-30, -12]
        heard = [heard_loudness(page, number) for number in (1, 2)]
        assert abs(heard[0] - heard[1]) < 0.5 and abs(heard[0] - -20) < 0.5, heard
        page.check("#vx-design-picker .vx-original input")
        plain = [heard_loudness(page, number) for number in (1, 2)]
        assert abs(plain[0] - -30) < 0.5 and abs(plain[1] - -12) < 0.5, plain
        assert [studio.store.audio_path(record.id).read_bytes() for record in made] == files


# Whatever a page's sound graph sends to the speakers is written down as well.
RECORD_WHAT_IS_HEARD = """() => {
  const connect = AudioNode.prototype.connect;
  window.heard = { rate: 0, samples: [] };
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode && !this.isTap) {
      const tap = this.context.createScriptProcessor(4096, 1, 1);
      tap.isTap = true;
      tap.onaudioprocess = (event) => {
        const samples = event.inputBuffer.getChannelData(0);
        window.heard.rate = this.context.sampleRate;
        if (samples.some(Boolean)) window.heard.samples.push(...samples); // a lane that is paused sends zeros
      };
      connect.call(this, tap);
      connect.call(tap, target);
    }
    return connect.call(this, target, ...rest);
  };
}"""


def heard_loudness(page: Page, number: int) -> float:
    """Play a lane for a while; how loud it came out of the page in LUFS."""
    page.click(lane(number, ".vx-play"))
    page.wait_for_function(f"parseFloat(document.querySelector('{lane(number, '.vx-playhead')}').style.left) > 5")
    page.evaluate("window.heard.samples = []")
    page.wait_for_function("window.heard.samples.length > window.heard.rate")
    samples, rate = np.array(page.evaluate("window.heard.samples"), np.float32), page.evaluate("window.heard.rate")
    page.click(lane(number, ".vx-play"))
    page.wait_for_function("!document.querySelector('#vx-design-picker .ic-pause')")
    return loudness(samples[: int(rate)], int(rate))


def test_blind_hides_what_it_is_until_one_is_picked(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        page.check("#vx-design-picker .vx-blind input")
        design(page, "Which is it?", seed=4_000_000_010)
        lanes = page.inner_html("#vx-design-picker")
        assert (
            "40000000" not in lanes
            and lanes.count("seed hidden") == 3
            and not page.is_visible("#vx-design-picker .vx-slot .vx-download")
        )
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("1")
        page.wait_for_selector("#vx-design-slot-1.is-picked")
        page.wait_for_selector("#vx-design-picker .vx-slot .vx-download")
        shown = [int(re.search(r"40000000\d\d", page.inner_text(lane(k)))[0]) for k in (1, 2, 3)]
        assert shown == [record.seed for record in takes(studio, page)]
        assert sorted(shown) == [4_000_000_010, 4_000_000_011, 4_000_000_012]


def test_a_take_is_starred_noted_and_becomes_a_voice(studio: Studio, browser: Browser) -> None:
    name = f"Anna {time.monotonic_ns()}"
    with opened(browser, studio.url) as page:
        to_tab(page)
        design(page, "Keep this voice for every later text.", seed=240)
        page.click(lane(2, "[data-act=star]"))
        page.wait_for_selector(lane(2, "[data-act=star][aria-pressed=true]"))
        page.click(lane(2, ".vx-note summary"))
        page.fill(lane(2, ".vx-note textarea"), "warm, a bit slow")
        page.click(lane(2, "[data-act=note]"))
        page.wait_for_selector(lane(2, ".has-note"))
        page.click(lane(2, ".vx-spectrum summary"))
        page.wait_for_function(
            "[...document.querySelectorAll('#vx-design-slot-2 .vx-spectrum .only-light')]"
            ".every((i) => i.naturalWidth > 600)"
        )
        record = takes(studio, page)[1]
        assert record.starred and record.note == "warm, a bit slow"
        assert not page.is_visible("#vx-design-voice-save")
        page.click(lane(2, ".vx-pick"))
        page.fill("#vx-design-voice-name textarea, #vx-design-voice-name input", name)
        page.click("#vx-design-voice-save")
        page.wait_for_selector(f"#vx-design-picker .vx-picker-notice >> text={name}")
    [voice] = [v for v in Client(studio.url, verbose=False).predict(api_name="/voices") if v["name"] == name]
    assert voice["seed"] == 241 and voice["description"] == "A calm woman"
    assert voice["transcript"] == "Keep this voice for every later text."


def test_the_file_of_a_lane_is_the_stored_one(studio: Studio, browser: Browser, tmp_path: Path) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        design(page, "Download me.", seed=250, takes=1)
        assert page.locator("#vx-design-picker .vx-slot:not([hidden])").count() == 1
        with page.expect_download() as started:
            page.click(lane(1, ".vx-download"))
        started.value.save_as(tmp_path / "take.wav")
        [record] = takes(studio, page)
    assert (tmp_path / "take.wav").read_bytes() == marked_wav(studio.store, record)


def test_a_click_on_the_picture_jumps_and_space_pauses_there(studio: Studio, browser: Browser) -> None:
    studio.model.lengths = {300: 60}
    with opened(browser, studio.url) as page:
        to_tab(page)
        design(page, "Jump in the middle.", seed=300, takes=1)
        page.click(lane(1, ".vx-seek"))  # its middle
        head = "parseFloat(document.querySelector('#vx-design-slot-1 .vx-playhead').style.left)"
        page.wait_for_function(f"{head} > 50 && document.querySelector('#vx-design-slot-1 .ic-pause')")
        page.keyboard.press("Space")
        page.wait_for_function("!document.querySelector('#vx-design-slot-1 .ic-pause')")
        at = page.evaluate(head)
        page.wait_for_timeout(400)
        assert 50 < page.evaluate(head) < 90 and page.evaluate(head) == at, "it plays on"


def test_the_lanes_are_there_again_after_a_reload(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        design(page, "Still here.", seed=290, takes=2)
        page.click(lane(2, ".vx-pick"))
        page.wait_for_selector("#vx-design-slot-2.is-picked")
        before = facts(page, "take")
        page.wait_for_function("Object.values(localStorage).some((value) => value.length > 40)")
        page.reload()
        to_tab(page)
        page.wait_for_selector("#vx-design-slot-2.is-picked")
        assert facts(page, "take") == before and "291" in page.inner_text("#vx-design-picker .vx-pickline")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("r")
        gone = "(take) => !document.querySelector(`#vx-design-picker .vx-slot-facts[data-take='${take}']`)"
        page.wait_for_function(gone, arg=before[0])
        finish(page)
        again = takes(studio, page)
        assert again[1].id == before[1] and again[0].spoken_text == "Still here." and again[0].control == "A calm woman"


def test_clicks_in_one_tick_start_one_run(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        design(page, "Once.", takes=2)
        runs = len(studio.model.__dict__["generations"])
        page.evaluate(
            "['others', 'generate', 'others'].forEach((b) => document.getElementById(`vx-design-${b}`).click())"
        )
        page.wait_for_timeout(1500)
        finish(page)
        assert len(studio.model.__dict__["generations"]) == runs + 1

"""The text-to-speech tab as its users have it: a real server, a real browser, a model that speaks in sine waves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser

from studio.export_takes import marked_wav
from studio.takes import TakeRecord
from studio.ui.tts_layout import SPEAKERS
from tests.browser import (
    PICKER,
    SpiedModel,
    StreamRecorder,
    Studio,
    chromium,
    longest_quiet,
    next_take,
    open_tab,
    opened,
    running_studio,
    seconds_made,
    shown_take,
    speak,
    state,
    unfold,
    wait_for_state,
    wav_samples,
    write,
)

# A busy machine can come between a browser and its page: such a test may have a second try, which the summary shows.
pytestmark = [pytest.mark.browser, pytest.mark.flaky(reruns=1)]

LANE, NOTICE = "#vx-tts-slot-1", f"{PICKER} .vx-picker-notice"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def module_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running_studio(tmp_path_factory.mktemp("studio")) as studio:
        yield studio


@pytest.fixture
def studio(module_studio: Studio) -> Studio:
    """The module's studio with its model as it was made."""
    fresh = SpiedModel()
    for name in ("patch_delay", "frequency", "lengths"):
        setattr(module_studio.model, name, getattr(fresh, name))
    return module_studio


def newest(studio: Studio) -> TakeRecord:
    return studio.store.takes(limit=1)[0]


def eventually(check, seconds: float = 20.0, page=None):
    """Wait for ``check()`` to be true, letting the browser work meanwhile; returns its value."""
    deadline = time.monotonic() + seconds
    while not (value := check()):
        assert time.monotonic() < deadline, "it did not happen in time"
        page.wait_for_timeout(50) if page else time.sleep(0.05)
    return value


def test_sound_plays_while_it_is_made_and_has_no_gap(studio: Studio, browser: Browser) -> None:
    studio.model.frequency, studio.model.lengths, studio.model.patch_delay = 440.0, {8: 50}, 0.2
    with opened(browser, studio.url) as page:
        stream = StreamRecorder(page)
        write(page, "A tone of eight seconds.", seed=8)
        page.click("#vx-generate")
        page.wait_for_function("document.querySelector('#vx-tts-live-1 audio')?.currentTime > 0.05")
        assert state(page) == "speaking"
        assert studio.model.last.takes == [None], "the generation was over before anything was heard"
        wait_for_state(page, "stop")
        eventually(stream.complete, page=page)
        heard = stream.sound(48_000)
    assert 8.0 <= len(heard) / 48_000 <= 8.07
    inside = heard[4800:-4800]
    assert longest_quiet(inside, 0.01 * np.abs(inside).max()) < 0.005 * 48_000
    crossings = np.flatnonzero((inside[:-1] < 0) & (inside[1:] >= 0))
    periods = np.diff(crossings)
    assert abs(len(crossings) - 440 * len(inside) / 48_000) <= 1
    assert periods.min() >= 107 and periods.max() <= 111, "the tone is broken somewhere (a period is 109 samples)"
    expected = np.clip(studio.model.tone(8, 50), -1, 1)
    stored = wav_samples(studio.store.audio_path(newest(studio).id))
    np.testing.assert_allclose(stored / 32768, expected, atol=1e-4)


def test_stop_takes_effect_within_two_patches_and_keeps_what_was_made(studio: Studio, browser: Browser) -> None:
    studio.model.patch_delay = 0.05
    with opened(browser, studio.url) as page:
        write(page, "Speak forever.")
        page.click("#vx-generate")
        seconds_made(page, 0.8)
        generation, steps = studio.model.last, []
        stop = studio.synthesizer.stop
        studio.synthesizer.stop = lambda job: (steps.append(generation.steps), stop(job))[1]
        try:
            clicked = time.monotonic()
            page.click("#vx-stop")
            wait_for_state(page, "cancelled")
        finally:
            del studio.synthesizer.stop
        assert time.monotonic() - clicked < 10
        record = newest(studio)
        assert record.ended_by == "cancelled" and record.patches - steps[0] <= 2
        assert generation.steps - record.patches <= 1
        assert "partial" in page.inner_text(LANE)
        assert len(wav_samples(studio.store.audio_path(record.id))) == record.patches * studio.model.patch_samples
        assert page.evaluate("document.querySelector('#vx-tts-live-1 audio')?.paused ?? true"), "it is still talking"
        studio.model.patch_delay = 0.0
        take = speak(page, "After a stop.", seed=77)
        expected = studio.model.tone(77, len("After a stop."))
        np.testing.assert_allclose(wav_samples(studio.store.audio_path(take)) / 32768, expected, atol=1e-4)


def test_download_is_the_stored_file(studio: Studio, browser: Browser, tmp_path: Path) -> None:
    with opened(browser, studio.url) as page:
        take = speak(page, "Keep this.", seed=5)
        with page.expect_download() as started:
            page.click(f"{LANE} .vx-download")
        started.value.save_as(tmp_path / "take.wav")
        name = started.value.suggested_filename
    assert (tmp_path / "take.wav").read_bytes() == marked_wav(studio.store, studio.store.take(take))
    assert name.startswith("Keep-this_seed5_") and name.endswith(".wav")


def test_the_finished_take_plays_in_its_lane(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        speak(page, "A take to listen to.")
        page.wait_for_selector(f"{LANE} .vx-play .ic-play", timeout=20_000)  # the stream has been heard
        page.click(f"{LANE} .vx-spectrum summary")
        loaded = "[...document.querySelectorAll('#vx-tts-slot-1 .vx-spectrum .only-light')]"
        page.wait_for_function(f"{loaded}.every((i) => i.complete && i.naturalWidth > 600)")
        page.click(f"{LANE} .vx-play")
        head = "document.querySelector('#vx-tts-slot-1 .vx-playhead').style.left"
        page.wait_for_function(f"parseFloat({head}) > 5")
        assert page.get_attribute(f"{LANE} .vx-play", "aria-pressed") == "true"
        page.click(f"{LANE} .vx-play")
        page.wait_for_selector(f"{LANE} .vx-play[aria-pressed=false]")  # drawn once more after the pause
        at = page.evaluate(head)
        page.wait_for_timeout(300)
        assert page.evaluate(head) == at
        assert "spoken_text" in page.text_content(f"{LANE} .vx-recipe pre")


def test_a_playing_take_goes_on_while_another_is_made(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        speak(page, "A rather long take that plays on for quite a while.")
        speak(page, "Two.")
        page.wait_for_selector("#vx-recent .vx-lane:first-child >> text=Two.")  # the list comes after the card
        page.evaluate("document.querySelectorAll('#vx-recent .vx-play')[1].click()")
        page.wait_for_function("document.querySelectorAll('#vx-recent .vx-lane')[1].classList.contains('is-active')")
        open_tab(page, "history")
        page.wait_for_selector("#vx-history .vx-lane.is-active .ic-pause")
        lane = "parseFloat(document.querySelector('#vx-history .vx-lane.is-active .vx-playhead').style.left)"
        before = page.evaluate(lane)
        page.wait_for_function(f"{lane} > {before} + 1")


def test_a_seed_is_shown_pinned_and_rolled_again(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        first = studio.store.take(speak(page, "Roll."))
        assert str(first.seed) in page.inner_text(LANE)
        page.click(f"{LANE} .vx-pin")
        unfold(page)
        field = page.locator("#vx-seed textarea, #vx-seed input")
        page.wait_for_function(
            "(seed) => document.querySelector('#vx-settings').innerText.includes(seed)", arg=str(first.seed)
        )
        assert field.input_value() == str(first.seed)
        again = studio.store.take(speak(page, "Roll."))
        assert again.seed == first.seed and again.file_hash == first.file_hash
        page.click("#vx-tts-others")
        third = studio.store.take(next_take(page, again.id))
        assert third.seed != first.seed and field.input_value() == str(first.seed), "the pinned seed is for Generate"


def test_three_takes_of_a_text_are_picked_from_and_become_a_voice(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        page.click("#vx-takes label >> text=3")
        write(page, "Three readings.", seed=2**32 - 1)
        page.click("#vx-generate")
        wait_for_state(page, "starting", "speaking")
        wait_for_state(page, "stop")
        takes = studio.store.takes(limit=3)
        assert {take.seed for take in takes} == {2**32 - 1, 0, 1} and {take.tab for take in takes} == {"tts"}
        assert len({take.group for take in takes}) == 1, "they were not made in one batch"
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("2")
        page.wait_for_selector("#vx-tts-slot-2.is-picked")
        page.fill("#vx-tts-voice-name textarea, #vx-tts-voice-name input", "Reader")
        page.click("#vx-tts-voice-save")
        page.wait_for_selector(f"{PICKER} .vx-picker-notice >> text=Reader")
        [voice] = studio.synthesizer.voices.voices("Reader")
        assert voice.seed == 0 and voice.transcript == "Three readings."
        page.reload()
        page.wait_for_selector("#vx-tts-slot-2.is-picked")
        assert page.locator(f"{PICKER} .vx-slot:not([hidden])").count() == 3
        page.wait_for_function("document.querySelector('#vx-takes input[value=\"3\"]').checked")


def test_what_is_compared_blindly_stays_secret_when_the_page_is_opened_anew(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        page.click("#vx-takes label >> text=2")
        page.check(f"{PICKER} .vx-blind input")
        write(page, "Which is which?", seed=4_000_000_020)
        page.click("#vx-generate")
        wait_for_state(page, "stop")
        order = "[...document.querySelectorAll('#vx-tts-picker .vx-slot-facts[data-take]')].map((f) => f.dataset.take)"
        before = page.evaluate(order)
        page.fill("#vx-seed textarea, #vx-seed input", "")
        page.wait_for_function("Object.values(localStorage).some((value) => value.length > 60)")
        page.reload()
        page.wait_for_selector("#vx-tts-slot-2 >> text=seed hidden")
        assert page.evaluate(order) == before and page.is_checked(f"{PICKER} .vx-blind input")
        page.wait_for_selector("#vx-recent .vx-lane")
        assert "40000000" not in page.inner_html(PICKER) + page.inner_html("#vx-recent")
        page.click(f"{LANE} .vx-pick")
        page.wait_for_selector("#vx-recent >> text=40000000")
        assert page.inner_text(PICKER).count("40000000") == 3  # two lanes, and the line below them


def test_a_take_that_does_not_fit_its_text_can_be_rolled_again(studio: Studio, browser: Browser) -> None:
    studio.model.lengths = {5: 90}
    with opened(browser, studio.url) as page:
        first = speak(page, "Short.", seed=5)
        page.click(f"{LANE} .vx-offer button")
        second = studio.store.take(next_take(page, first))
        assert second.attempt == 1 and second.seed != 5 and first in second.notes[-1]
        assert second.group == studio.store.take(first).group
        assert not page.is_visible(f"{LANE} .vx-offer")


def test_clicks_in_one_tick_start_one_run(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        before, asked = speak(page, "Once."), len(studio.model.requests)
        page.evaluate(
            "['tts-others', 'generate', 'tts-others'].forEach((b) => document.getElementById(`vx-${b}`).click())"
        )
        after = next_take(page, before)
        assert len(studio.model.requests) == asked + 1
        assert speak(page, "And once more.") != after and len(studio.model.requests) == asked + 2


def test_a_run_waits_for_its_place_and_can_be_withdrawn(studio: Studio, browser: Browser) -> None:
    studio.model.patch_delay = 0.05
    session = f"others-{time.monotonic()}"

    def occupy(number: int) -> None:
        client = httpx.Client(timeout=60)
        data = [["", "", ""], None, False, "", None, "Speak forever.", "", "", 1, 2.0, 10, 1.0, False, ""]
        asked = {"data": data, "fn_index": speaking, "session_hash": f"{session}-{number}"}
        client.post(f"{studio.url}gradio_api/queue/join", json=asked).raise_for_status()
        with client.stream("GET", f"{studio.url}gradio_api/queue/data?session_hash={session}-{number}") as stream:
            for _ in stream.iter_lines():
                if enough.is_set():
                    return

    config, enough = httpx.get(f"{studio.url}config").json(), threading.Event()
    text = next(c["id"] for c in config["components"] if c["props"].get("elem_id") == "vx-text")
    speaking = next(d["id"] for d in config["dependencies"] if text in d["inputs"] and len(d["inputs"]) == 14)
    asked = len(studio.model.requests)
    threads = [threading.Thread(target=occupy, args=(number,)) for number in range(SPEAKERS)]
    with opened(browser, studio.url) as page:
        for thread in threads:
            thread.start()
        eventually(lambda: len(studio.model.requests) == asked + SPEAKERS)
        write(page, "Never spoken.")
        page.click("#vx-generate")
        wait_for_state(page, "waiting")
        assert page.is_disabled("#vx-generate")
        page.click("#vx-stop")
        wait_for_state(page, "idle")
        studio.model.patch_delay = 0.0
        write(page, "Spoken.")
        page.click("#vx-generate")
        wait_for_state(page, "waiting")
        for generation in studio.model.__dict__["generations"][-SPEAKERS:]:
            generation.cancel()
        enough.set()
        record = studio.store.take(next_take(page, ""))
        assert record.spoken_text == "Spoken."
    for thread in threads:
        thread.join(20)
    assert [request.text for request in studio.model.requests[asked + SPEAKERS :]] == ["Spoken."]


def test_a_seed_out_of_range_is_refused_with_a_sentence(studio: Studio, browser: Browser) -> None:
    asked = len(studio.model.requests)
    with opened(browser, studio.url) as page:
        for seed in ("4294967296", "-1", "1.5", "seven", "９"):
            write(page, "Never spoken.", seed=seed)
            page.click("#vx-generate")
            page.wait_for_selector(f"{NOTICE} .is-error >> text={seed}")
            assert "4294967295" in page.inner_text(NOTICE)
            page.wait_for_selector("#vx-generate:not([disabled])")
        assert len(studio.model.requests) == asked
        for edge in (0, 2**32 - 1):
            assert studio.store.take(speak(page, "Edge.", seed=edge)).seed == edge


def test_nothing_to_speak_is_said_not_tried(studio: Studio, browser: Browser) -> None:
    taken = studio.store.count()
    for text in ("", "   \n "):
        with opened(browser, studio.url) as page:
            write(page, text)
            page.click("#vx-generate")
            page.wait_for_selector(f"{NOTICE} .is-error >> text=nothing to speak")
            page.wait_for_selector("#vx-generate:not([disabled])")
    assert studio.store.count() == taken


def test_a_failure_of_the_model_is_a_sentence_and_keeps_the_audio(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        speak(page, "This will fail somewhere.")
        words = page.inner_text(LANE)
        assert state(page) == "error" and "kept" in words and "Traceback" not in page.content()
    assert newest(studio).ended_by == "error" and newest(studio).seconds > 0


def test_the_preview_shows_what_is_spoken(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        write(page, "(1996) was  warm.")
        expected = studio.synthesizer.preview("(1996) was  warm.")
        page.wait_for_function(
            "(text) => document.querySelector('.vx-spoken')?.textContent === text", arg=expected.text
        )
        assert all(note in page.inner_text("#vx-preview") for note in expected.notes) and expected.notes
        page.fill("#vx-control textarea, #vx-control input", "calm")
        page.wait_for_selector(".vx-preview .vx-control")
        unfold(page)
        page.check("#vx-normalize input")
        spoken = studio.synthesizer.preview("(1996) was  warm.", "calm", True).text
        page.wait_for_function("(text) => document.querySelector('.vx-spoken')?.textContent.endsWith(text)", arg=spoken)
        take = studio.store.take(speak(page, "(1996) was  warm."))
    assert take.spoken_text == spoken and take.control == "calm"


def test_the_preview_follows_the_model_that_arrives(tmp_path: Path, browser: Browser) -> None:
    go_on = threading.Event()

    def load(progress):
        assert go_on.wait(30)
        return SpiedModel(generation="VoxCPM1.5", supports_control=False)

    with running_studio(tmp_path, load=load) as studio, opened(browser, studio.url, ready=False) as page:
        page.wait_for_selector(".vx-model.is-loading")
        write(page, "(1996) was warm.")
        page.wait_for_function("document.querySelector('.vx-spoken')?.textContent === '1996, was warm.'")
        go_on.set()  # this generation takes brackets literally
        page.wait_for_function("document.querySelector('.vx-spoken').textContent === '(1996) was warm.'")


def test_hostile_text_stays_text(studio: Studio, browser: Browser) -> None:
    text = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script> & "quotes"'
    with opened(browser, studio.url) as page:
        speak(page, text)
        page.wait_for_selector("#vx-recent .vx-lane")
        open_tab(page, "history")
        page.wait_for_selector("#vx-history .vx-lane")
        assert not page.evaluate("window.hacked")
        assert "<img" in page.inner_text("#vx-history .vx-lane .vx-words")


def test_keys_generate_and_stop(studio: Studio, browser: Browser) -> None:
    studio.model.patch_delay = 0.05
    with opened(browser, studio.url) as page:
        write(page, "Speak forever by key.")
        page.focus("#vx-text textarea")
        page.keyboard.press("Control+Enter")
        seconds_made(page, 0.5)
        page.keyboard.press("Escape")
        wait_for_state(page, "cancelled")


def test_a_closed_tab_keeps_the_partial_take(studio: Studio, browser: Browser) -> None:
    studio.model.patch_delay = 0.05
    with opened(browser, studio.url) as page:
        write(page, "Speak forever and be left alone.")
        page.click("#vx-generate")
        seconds_made(page, 0.5)
        generation = studio.model.last
    eventually(lambda: generation.takes[0] is not None, seconds=10)
    record = eventually(lambda: next((r for r in studio.store.takes(limit=1) if "left alone" in r.spoken_text), None))
    assert record.ended_by == "cancelled" and record.seconds > 0.5


def test_two_browsers_speak_at_once_and_get_their_own_takes(studio: Studio, browser: Browser) -> None:
    studio.model.patch_delay = 0.1
    with opened(browser, studio.url) as one, opened(browser, studio.url) as two:
        write(one, "The first visitor says this to the studio.", seed=101)
        write(two, "The second visitor says something else here.", seed=202)
        one.click("#vx-generate")
        two.click("#vx-generate")
        wait_for_state(two, "speaking")
        first, second = studio.model.__dict__["generations"][-2:]
        assert first.takes == [None] and second.takes == [None], "one had to wait for the other"
        studio.model.patch_delay = 0.0
        takes = [next_take(one, ""), next_take(two, "")]
    for take, seed, text in zip(takes, (101, 202), ("first", "second"), strict=True):
        record = studio.store.take(take)
        assert record.seed == seed and text in record.spoken_text
        expected = studio.model.tone(seed, record.patches)
        np.testing.assert_allclose(wav_samples(studio.store.audio_path(take)) / 32768, expected, atol=1e-4)


def test_settings_are_used_and_remembered(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        unfold(page)
        page.fill("#vx-cfg-value input[type=number]", "1.5")
        page.fill("#vx-inference-timesteps input[type=number]", "6")
        page.keyboard.press("Tab")
        page.wait_for_function("document.querySelector('#vx-settings').innerText.includes('cfg 1.5 · 6 steps')")
        take = studio.store.take(speak(page, "Set.", seed=9))
        assert (take.cfg_value, take.inference_timesteps, take.seed) == (1.5, 6, 9)
        page.reload()
        page.wait_for_function(
            "document.querySelector('#vx-settings')?.innerText.includes('cfg 1.5 · 6 steps · seed 9')"
        )
        unfold(page)
        page.click("#vx-reset")
        page.wait_for_function(
            "document.querySelector('#vx-settings').innerText.includes('cfg 2 · 10 steps · new seed')"
        )


def test_a_take_in_a_list_is_put_back_into_the_form(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        speak(page, "Use me again.", seed=31)
        speak(page, "Something else.", seed=32)
        open_tab(page, "history")
        page.fill("#vx-search textarea, #vx-search input", "use again")
        page.wait_for_function("document.querySelectorAll('#vx-history .vx-lane').length === 1")
        page.click("#vx-history .vx-lane [data-do=reuse]")
        page.wait_for_function("document.querySelector('#vx-text textarea').value === 'Use me again.'")
        page.wait_for_selector("#vx-text", state="visible")
        unfold(page)
        page.wait_for_function("document.querySelector('#vx-settings').innerText.includes('seed 31')")


def test_the_take_on_the_page_is_the_visitors_own(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        assert shown_take(page) == ""
        assert "Your takes appear here" in page.inner_text(PICKER)

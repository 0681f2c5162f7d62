"""The text-to-speech tab as its users have it: a real server, a real browser, a model that speaks in sine waves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import numpy as np
import pytest
from gradio_client import Client
from playwright.sync_api import Browser

from studio.takes import TakeRecord
from studio.ui.tts_layout import SPEAKERS
from tests.browser import (
    SpiedModel,
    StreamRecorder,
    Studio,
    chromium,
    longest_quiet,
    next_take,
    open_tab,
    opened,
    running_studio,
    shown_take,
    speak,
    state,
    unfold,
    wait_for_state,
    wav_samples,
    write,
)
from voxcpm_core.errors import CheckpointError

# A busy machine can come between a browser and its page: such a test may have a second try, which the summary shows.
pytestmark = [pytest.mark.browser, pytest.mark.flaky(reruns=1)]


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
    studio.model.frequency, studio.model.lengths, studio.model.patch_delay = 440.0, {8: 50}, 0.08
    with opened(browser, studio.url) as page:
        stream = StreamRecorder(page)
        write(page, "A tone of eight seconds.", seed=8)
        page.click("#vx-generate")
        page.wait_for_function("document.querySelector('#vx-live audio')?.currentTime > 0.05")
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
        page.wait_for_function("document.querySelector('.vx-status').dataset.seconds > 0.8")
        generation, steps = studio.model.last, []
        stop = studio.synthesizer.stop
        studio.synthesizer.stop = lambda job: (steps.append(generation.steps), stop(job))[1]
        try:
            clicked = time.monotonic()
            page.click("#vx-stop")
            wait_for_state(page, "cancelled")
        finally:
            del studio.synthesizer.stop
        assert time.monotonic() - clicked < 3
        record = newest(studio)
        assert record.ended_by == "cancelled" and record.patches - steps[0] <= 2
        assert generation.steps - record.patches <= 1
        assert "partial" in page.inner_text("#vx-notice")
        assert len(wav_samples(studio.store.audio_path(record.id))) == record.patches * studio.model.patch_samples
        assert page.evaluate("document.querySelector('#vx-live audio')?.paused ?? true"), "it is still talking"
        studio.model.patch_delay = 0.0
        take = speak(page, "After a stop.", seed=77)
        expected = studio.model.tone(77, len("After a stop."))
        np.testing.assert_allclose(wav_samples(studio.store.audio_path(take)) / 32768, expected, atol=1e-4)


def test_download_is_the_stored_file(studio: Studio, browser: Browser, tmp_path: Path) -> None:
    with opened(browser, studio.url) as page:
        take = speak(page, "Keep this.", seed=5)
        with page.expect_download() as started:
            page.click(".vx-take .vx-download")
        started.value.save_as(tmp_path / "take.wav")
        name = started.value.suggested_filename
    assert (tmp_path / "take.wav").read_bytes() == studio.store.audio_path(take).read_bytes()
    assert name.startswith("Keep-this_seed5_") and name.endswith(".wav")


def test_the_finished_take_plays_in_its_own_player(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        speak(page, "A take to listen to.")
        page.wait_for_function("!document.querySelector('.vx-take.is-active')", timeout=20_000)
        loaded = (
            "[...document.querySelectorAll('.vx-take .only-light')].every((i) => i.complete && i.naturalWidth > 600)"
        )
        page.wait_for_function(loaded)
        page.click(".vx-take .vx-play")
        page.wait_for_function("parseFloat(document.querySelector('.vx-take .vx-playhead').style.left) > 5")
        assert page.get_attribute(".vx-take .vx-play", "aria-pressed") == "true"
        page.click(".vx-take .vx-play")
        page.wait_for_selector(".vx-take .vx-play[aria-pressed=false]")  # drawn once more after the pause
        at = page.evaluate("document.querySelector('.vx-take .vx-playhead').style.left")
        page.wait_for_timeout(300)
        assert page.evaluate("document.querySelector('.vx-take .vx-playhead').style.left") == at
        assert "spoken_text" in page.text_content(".vx-take .vx-recipe pre")


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
        assert str(first.seed) in page.inner_text(".vx-take .vx-facts")
        page.click("#vx-pin")
        unfold(page)
        field = page.locator("#vx-seed textarea, #vx-seed input")
        page.wait_for_function(
            "(seed) => document.querySelector('#vx-settings').innerText.includes(seed)", arg=str(first.seed)
        )
        assert field.input_value() == str(first.seed)
        again = studio.store.take(speak(page, "Roll."))
        assert again.seed == first.seed and again.file_hash == first.file_hash
        page.click("#vx-reroll")
        third = studio.store.take(next_take(page, again.id))
        assert third.seed != first.seed and field.input_value() == ""


def test_clicks_in_one_tick_start_one_run(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        before, asked = speak(page, "Once."), len(studio.model.requests)
        page.evaluate("['reroll', 'generate', 'reroll'].forEach((b) => document.getElementById(`vx-${b}`).click())")
        after = next_take(page, before)
        assert len(studio.model.requests) == asked + 1
        assert speak(page, "And once more.") != after and len(studio.model.requests) == asked + 2


def test_a_run_waits_for_its_place_and_can_be_withdrawn(studio: Studio, browser: Browser) -> None:
    studio.model.patch_delay = 0.05
    session = f"others-{time.monotonic()}"

    def occupy(number: int) -> None:
        client = httpx.Client(timeout=60)
        data = ["Speak forever.", "", 2.0, 10, 1.0, False, "", None, "", ""]
        asked = {"data": data, "fn_index": speaking, "session_hash": f"{session}-{number}"}
        client.post(f"{studio.url}gradio_api/queue/join", json=asked).raise_for_status()
        with client.stream("GET", f"{studio.url}gradio_api/queue/data?session_hash={session}-{number}") as stream:
            for _ in stream.iter_lines():
                if enough.is_set():
                    return

    config, enough = httpx.get(f"{studio.url}config").json(), threading.Event()
    speaking = next(d["id"] for d in config["dependencies"] if len(d["inputs"]) == 10 and d["queue"] is not False)
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
            page.wait_for_selector(f"#vx-notice .is-error >> text={seed}")
            assert "4294967295" in page.inner_text("#vx-notice")
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
            page.wait_for_selector("#vx-notice .is-error >> text=nothing to speak")
            page.wait_for_selector("#vx-generate:not([disabled])")
    assert studio.store.count() == taken


def test_a_failure_of_the_model_is_a_sentence_and_keeps_the_audio(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        speak(page, "This will fail somewhere.")
        words = page.inner_text("#vx-notice")
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
        page.wait_for_function("document.querySelector('.vx-status').dataset.seconds > 0.5")
        page.keyboard.press("Escape")
        wait_for_state(page, "cancelled")


def test_a_closed_tab_keeps_the_partial_take(studio: Studio, browser: Browser) -> None:
    studio.model.patch_delay = 0.05
    with opened(browser, studio.url) as page:
        write(page, "Speak forever and be left alone.")
        page.click("#vx-generate")
        page.wait_for_function("document.querySelector('.vx-status').dataset.seconds > 0.5")
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


def test_the_page_speaks_chinese_and_can_be_switched(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url, locale="zh-CN") as page:
        page.wait_for_function("document.querySelector('.vx-status').innerText.includes('空闲')")
        words = page.inner_text("body")
        assert all(word in words for word in ("生成", "停止", "文本转语音", "历史", "将要朗读", "最近的录音", "设置"))
        speak(page, "你好，世界。")
        assert "完成" in page.inner_text("#vx-status") and "种子" in page.inner_text(".vx-take")
        page.click("[data-act=language]")
        page.wait_for_function("document.documentElement.lang === 'en'")
        page.wait_for_selector("text=Text to speech")
        page.wait_for_selector("text=Recent takes")
        page.reload()
        page.wait_for_selector("text=Will be spoken")
        assert "生成" not in page.inner_text("#vx-generate")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(studio: Studio, browser: Browser, scheme: str) -> None:
    size = {"width": 390, "height": 844}
    with opened(browser, studio.url, viewport=size, color_scheme=scheme, has_touch=True) as page:
        width = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
        assert page.evaluate(width) <= 390
        speak(
            page, "A take on the phone with aratherlongwordthatcannotbebrokenanywhereatallbecauseithasnoblanks.", seed=1
        )
        page.wait_for_selector("#vx-recent .vx-lane")
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        assert page.evaluate(width) <= 390
        unfold(page)
        assert page.evaluate(width) <= 390
        open_tab(page, "history")
        page.wait_for_selector("#vx-history .vx-lane")
        assert page.evaluate(width) <= 390
        small = page.evaluate(
            "[...document.querySelectorAll('#vx-history button, #vx-history a')].filter((e) => e.offsetParent"
            " && Math.min(e.offsetWidth, e.offsetHeight) < 30).length"
        )
        assert small == 0, "buttons too small for a thumb"


def test_the_theme_switch_is_remembered(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url, color_scheme="light") as page:
        assert not page.evaluate("document.body.classList.contains('dark')")
        page.click("[data-act=theme]")
        assert page.evaluate("document.body.classList.contains('dark')")
        page.reload()
        page.wait_for_selector("#vx-generate")
        page.wait_for_function("document.body.classList.contains('dark')")


def test_every_control_has_a_name_for_screen_readers(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        speak(page, "Named.")
        page.wait_for_selector("#vx-recent .vx-lane")
        nameless = page.evaluate("""
            [...document.querySelectorAll('button, a[href], input, textarea, [role=slider], [role=progressbar]')]
              .filter((e) => e.checkVisibility({ visibilityProperty: true }))
              .filter((e) => !(e.innerText.trim() || e.ariaLabel || e.title || e.placeholder || e.labels?.length))
              .map((e) => e.outerHTML.slice(0, 200))""")
        assert nameless == []


def test_nothing_is_fetched_from_elsewhere(studio: Studio, browser: Browser) -> None:
    visit = browser.new_context()
    page = visit.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(studio.url)
    page.wait_for_selector("#vx-generate:not([disabled])")
    page.wait_for_timeout(500)
    visit.close()
    assert asked and [u for u in asked if not u.startswith((studio.url, "data:", "blob:"))] == []


def test_files_open_only_by_signed_addresses(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        take = speak(page, "Private.")
        address = page.get_attribute(".vx-take", "data-src")
    path = studio.store.audio_path(take)
    assert httpx.get(studio.url + address).content == path.read_bytes()
    part = httpx.get(studio.url + address, headers={"Range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"RIFF")
    other = address.replace(take, "20200101-000000-0123456789abcdef")
    for guess in (
        address.rsplit("/", 2)[0] + "/" + "0" * 32 + "/sound",
        other,
        f"gradio_api/file={path}",
        f"gradio_api/file={quote(str(studio.store.data_dir / 'studio.sqlite3'))}",
        "gradio_api/file=/etc/passwd",
        "studio/take/..%2f..%2fetc%2fpasswd/x/sound",
    ):
        assert httpx.get(studio.url + guess).status_code in (403, 404), guess


def test_visitors_of_a_shared_studio_see_their_own_takes_only(tmp_path: Path, browser: Browser) -> None:
    with running_studio(tmp_path, shared=True) as studio:
        with opened(browser, studio.url) as one, opened(browser, studio.url) as two:
            take = speak(one, "Only mine.")
            one.wait_for_selector("#vx-recent .vx-lane")
            assert one.locator("#vx-recent .vx-lane").count() == 1
            two.reload()
            two.wait_for_selector("#vx-recent .vx-none")
            open_tab(two, "history")
            two.wait_for_selector("#vx-history .vx-none")
            assert take not in two.content()
            one.reload()
            one.wait_for_selector("#vx-recent .vx-lane")


def test_a_generation_without_voice_design_says_so(tmp_path: Path, browser: Browser) -> None:
    model = SpiedModel(generation="VoxCPM1.5", supports_control=False, sample_rate=44_100)
    with running_studio(tmp_path, model) as studio, opened(browser, studio.url) as page:
        page.wait_for_selector("#vx-control-note .vx-notice")
        assert "VoxCPM1.5 has no voice design" in page.inner_text("#vx-control-note")
        assert not page.is_visible("#vx-control")
        assert "44.1 kHz" in page.inner_text("#vx-model")
        take = studio.store.take(speak(page, "Plain."))
        assert take.sample_rate == 44_100 and "44.1 kHz" in page.inner_text(".vx-take")


def test_loading_shows_progress_and_a_failure_says_what_to_do(tmp_path: Path, browser: Browser) -> None:
    go_on, attempts = threading.Event(), []

    def load(progress):
        attempts.append(1)
        progress("loading weights", 0.4)
        assert go_on.wait(30)
        if len(attempts) == 1:
            raise CheckpointError("The folder has no audiovae.pth. Download it again, or choose another --model.")
        return SpiedModel()

    with running_studio(tmp_path, load=load) as studio, opened(browser, studio.url, ready=False) as page:
        page.wait_for_selector(".vx-model.is-loading [aria-valuenow='40']")
        assert "loading weights" in page.inner_text("#vx-model") and page.is_disabled("#vx-generate")
        go_on.set()
        page.wait_for_selector(".vx-model.is-failed")
        words = page.inner_text("#vx-model")
        assert "no audiovae.pth" in words and "Try again" in words and page.is_disabled("#vx-generate")
        page.click("#vx-retry")
        page.wait_for_selector("#vx-generate:not([disabled])")
        assert "sine" in page.inner_text("#vx-model") and not page.is_visible("#vx-retry")


def test_the_endpoint_returns_the_file_and_its_recipe(studio: Studio) -> None:
    client = Client(studio.url, verbose=False)
    audio, recipe = client.predict(
        text="From a program.", control="calm", seed=2**32 - 1, cfg_value=1.5, inference_timesteps=7, api_name="/tts"
    )
    assert recipe["seed"] == 2**32 - 1 and recipe["cfg_value"] == 1.5 and recipe["inference_timesteps"] == 7
    assert recipe["spoken_text"] == "From a program." and recipe["control"] == "calm" and recipe["ended_by"] == "stop"
    assert Path(audio).read_bytes() == studio.store.audio_path(recipe["id"]).read_bytes()
    _, second = client.predict("Only a text.", api_name="/tts")
    assert second["cfg_value"] == studio.model.defaults.cfg_value and 0 <= second["seed"] < 2**32
    api = client.view_api(return_format="dict")["named_endpoints"]
    readme = Path("README.md").read_text(encoding="utf-8")
    assert "/tts" in api and all(name in readme for name in api), api.keys()  # none by accident
    assert [p["parameter_name"] for p in api["/tts"]["parameters"]] == [
        "text",
        "control",
        "seed",
        "cfg_value",
        "inference_timesteps",
        "normalize",
        "voice",
    ]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"text": "x", "seed": 2**32}, "4294967295"),
        ({"text": "x", "seed": -1}, "not a seed"),
        ({"text": "  "}, "nothing to speak"),
        ({"text": "x", "inference_timesteps": 1}, "inference_timesteps"),
        ({"text": "x", "cfg_value": 99}, "cfg_value"),
    ],
)
def test_the_endpoint_refuses_with_a_sentence(studio: Studio, asked: dict, said: str) -> None:
    with pytest.raises(Exception, match=said):
        Client(studio.url, verbose=False).predict(**asked, api_name="/tts")


def test_two_programs_at_once_get_their_own_audio(studio: Studio) -> None:
    studio.model.patch_delay = 0.02
    answers: dict[int, tuple] = {}

    def ask(seed: int) -> None:
        client = Client(studio.url, verbose=False)
        answers[seed] = client.predict(text=f"Program number {seed} speaks.", seed=seed, api_name="/tts")

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in (11, 22)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for seed, (audio, recipe) in answers.items():
        assert recipe["seed"] == seed and f"number {seed}" in recipe["spoken_text"]
        expected = studio.model.tone(seed, recipe["patches"])
        np.testing.assert_allclose(wav_samples(Path(audio)) / 32768, expected, atol=1e-4)
    assert len(answers) == 2


def test_the_take_on_the_page_is_the_visitors_own(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        assert shown_take(page) == ""
        assert "Your take appears here" in page.inner_text("#vx-take")

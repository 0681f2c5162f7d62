"""The History tab as its users have it: a real server, a real browser, a model that speaks in sine waves."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from studio.export_takes import marked_wav
from studio.takes import TakeRecord
from tests.browser import Studio, chromium, open_tab, opened, running_studio
from tests.fakes import SpeechRequest
from tests.records import takes_of

# A busy machine can come between a browser and its page: such a test may have a second try, which the summary shows.
pytestmark = [pytest.mark.browser, pytest.mark.flaky(reruns=1)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with running_studio(tmp_path) as studio:
        assert studio.synthesizer.wait(20).state == "ready"
        yield studio


def spoken(studio: Studio, text: str, seed: int = 3, **options: object) -> TakeRecord:
    return takes_of(studio.synthesizer.speak(SpeechRequest(text=text, seed=seed), **options))[0]


def history(page: Page, lanes: int) -> None:
    open_tab(page, "history")
    wait_for_lanes(page, lanes)


def wait_for_lanes(page: Page, count: int) -> None:
    page.wait_for_function(
        "(count) => document.querySelectorAll('#vx-history .vx-lane').length === count"
        " && (count > 0 || document.querySelector('#vx-history .vx-none'))",
        arg=count,
    )


def lane(record: TakeRecord) -> str:
    return f"#vx-history .vx-lane[data-take='{record.id}']"


def show(page: Page, record: TakeRecord) -> None:
    page.click(f"{lane(record)} [data-do=show]")
    page.wait_for_selector(f"#vx-detail [data-take='{record.id}']")


def eventually(page: Page, check) -> None:
    for _ in range(200):
        if check():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it did not happen in time")


def tick(page: Page, *records: TakeRecord) -> None:
    for record in records:
        page.check(f"{lane(record)} .vx-tick")
    page.wait_for_selector(".vx-selection:not([hidden])")


def test_search_filters_and_stars_narrow_the_list(studio: Studio, browser: Browser) -> None:
    by_api, other = spoken(studio, "A lighthouse far away.", tab="api"), spoken(studio, "The library opens.")
    with opened(browser, studio.url) as page:
        history(page, 2)
        page.fill("#vx-search textarea, #vx-search input", "light far")
        wait_for_lanes(page, 1)
        page.fill("#vx-search textarea, #vx-search input", "zebra")
        wait_for_lanes(page, 0)
        page.fill("#vx-search textarea, #vx-search input", "")
        wait_for_lanes(page, 2)
        page.select_option("#vx-filters [name=tab]", "api")
        wait_for_lanes(page, 1)
        assert page.is_visible(lane(by_api))
        page.click("#vx-filters [data-do=clear]")
        wait_for_lanes(page, 2)
        page.click(f"{lane(other)} [data-do=star]")
        assert page.get_attribute(f"{lane(other)} [data-do=star]", "aria-pressed") == "true"
        eventually(page, lambda: studio.store.take(other.id).starred)
        page.check("#vx-filters [name=starred]")
        wait_for_lanes(page, 1)
        assert page.is_visible(lane(other))


def test_a_take_is_rated_and_annotated(studio: Studio, browser: Browser) -> None:
    record = spoken(studio, "Rate me.")
    with opened(browser, studio.url) as page:
        history(page, 1)
        show(page, record)
        page.click("#vx-detail [data-do=rate] >> nth=3")
        assert page.locator("#vx-detail .vx-rate.is-lit").count() == 4
        eventually(page, lambda: studio.store.take(record.id).rating == 4)
        page.click("#vx-detail [data-do=rate] >> nth=3")
        eventually(page, lambda: studio.store.take(record.id).rating == 0)
        page.fill("#vx-note textarea, #vx-note input", "Best of all.")
        page.keyboard.press("Tab")
        eventually(page, lambda: studio.store.take(record.id).note == "Best of all.")
        page.reload()
        page.wait_for_selector("#vx-generate:not([disabled])")
        history(page, 1)
        assert "Best of all." in page.inner_text(lane(record))


def test_deleted_takes_come_back(studio: Studio, browser: Browser) -> None:
    takes = [spoken(studio, f"Number {number}.") for number in range(3)]
    with opened(browser, studio.url) as page:
        history(page, 3)
        show(page, takes[0])
        tick(page, takes[0], takes[1])
        page.click(".vx-selection [data-do=remove]")
        wait_for_lanes(page, 1)
        assert page.is_hidden(".vx-selection") and studio.store.count() == 1
        page.click("#vx-history-notice [data-do=undo]")
        wait_for_lanes(page, 3)
        show(page, takes[2])
        page.click("#vx-detail [data-do=remove_one]")
        wait_for_lanes(page, 2)
        page.wait_for_selector("#vx-detail .vx-detail-empty", state="attached")
        assert not page.is_visible("#vx-note")
        open_tab(page, "tts")
        page.wait_for_function("document.querySelectorAll('#vx-recent .vx-lane').length === 2")


def test_two_takes_switch_at_the_same_place_and_play_equally_loud(studio: Studio, browser: Browser) -> None:
    first, second = (spoken(studio, "A long tone to compare with another one.", seed=seed) for seed in (1, 2))
    with opened(browser, studio.url) as page:
        history(page, 2)
        tick(page, second, first)
        page.click(".vx-selection [data-do=compare]")
        page.wait_for_selector(".vx-compare")
        assert "Seed" in page.inner_text(".vx-differences")
        page.click("[data-act=ab-play]")
        page.wait_for_function("window.vx.position(document.querySelector('.vx-ab.is-on')).time > 0.4")
        page.keyboard.press("x")
        on = "document.querySelector('.vx-ab.is-on')"
        page.wait_for_function(f"window.vx.position({on}).playing && window.vx.position({on}).time > 0.4")
        assert page.get_attribute(".vx-ab.is-on", "data-take") == first.id
        assert page.evaluate(f"window.vx.position({on}).time") < 5
        assert page.locator(".vx-ab .vx-letter[aria-pressed=true]").inner_text() == "B"
        gains = [float(gain) for gain in page.eval_on_selector_all(".vx-ab", "all => all.map((e) => e.dataset.gain)")]
        levels = [second.loudness + gains[0], first.loudness + gains[1]]
        assert abs(levels[0] - levels[1]) < 0.5 and max(abs(gain) for gain in gains) > 1
        page.uncheck(".vx-levelled")
        assert page.get_attribute(".vx-ab.is-on", "data-gain") == "0"
        page.click("[data-act=ab-play]")
        page.wait_for_function(f"!window.vx.position({on}).playing")
        page.click(".vx-compare [data-do=close]")
        page.wait_for_selector(".vx-compare", state="detached")


def test_the_ticked_takes_come_as_a_zip(studio: Studio, browser: Browser, tmp_path: Path) -> None:
    takes = [spoken(studio, f"Carry me, number {number}.", seed=number) for number in range(3)]
    with opened(browser, studio.url) as page:
        history(page, 3)
        page.check(".vx-pick-page")
        page.uncheck(f"{lane(takes[1])} .vx-tick")
        assert page.inner_text(".vx-picked-count") == "2"
        with page.expect_download() as started:
            page.click(".vx-selection [data-do=bundle]")
        started.value.save_as(tmp_path / "takes.zip")
    with zipfile.ZipFile(tmp_path / "takes.zip") as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("recipes.csv").decode("utf-8-sig"))))
        assert {row["id"] for row in rows} == {takes[0].id, takes[2].id}
        for row in rows:
            assert archive.read(row["file"]) == marked_wav(studio.store, studio.store.take(row["id"]))
            assert row["seed"] in ("0", "2") and "Carry me" in row["spoken_text"]


def test_a_replay_says_identical_or_names_what_changed_before_it_is_made(studio: Studio, browser: Browser) -> None:
    record = spoken(studio, "Again, please.")
    with opened(browser, studio.url) as page:
        history(page, 1)
        show(page, record)
        page.click("#vx-detail [data-do=replay]")
        page.wait_for_selector("#vx-replay [data-identical='1']")
        assert "Identical" in page.inner_text("#vx-replay") and record.audio_hash[:16] in page.inner_text("#vx-replay")
        wait_for_lanes(page, 2)
        studio.model.weights_hash, studio.model.frequency = "6" * 64, 80.0
        page.click("#vx-detail [data-do=replay]")
        page.wait_for_selector("#vx-replay .is-warning [data-anyway]")
        assert "model has changed" in page.inner_text("#vx-replay") and studio.store.count() == 2
        page.click("#vx-replay [data-anyway]")
        page.wait_for_selector("#vx-replay [data-identical='0']")
        page.click("#vx-replay [data-do=compare_two]")
        page.wait_for_selector(".vx-compare")
        assert studio.store.count() == 3


def test_pages_are_turned_and_ticks_stay(studio: Studio, browser: Browser) -> None:
    takes = [spoken(studio, f"Take {number}.") for number in range(23)]
    with opened(browser, studio.url) as page:
        history(page, 20)
        tick(page, takes[22])
        page.click(".vx-pager [data-do=turn] >> nth=2")
        wait_for_lanes(page, 3)
        assert "21–23 of 23" in page.inner_text(".vx-found") and page.inner_text(".vx-picked-count") == "1"
        page.click(".vx-pager [data-do=turn] >> nth=0")
        wait_for_lanes(page, 20)
        assert page.is_checked(f"{lane(takes[22])} .vx-tick")


def test_the_tab_speaks_chinese(studio: Studio, browser: Browser) -> None:
    record = spoken(studio, "你好。")
    with opened(browser, studio.url, locale="zh-CN") as page:
        history(page, 1)
        assert all(word in page.inner_text("body") for word in ("已加星", "选择一条录音", "选择本页"))
        show(page, record)
        assert all(word in page.inner_text("#vx-detail") for word in ("重放", "套用", "删除"))
        assert page.get_attribute(".vx-filters", "aria-label") == "筛选"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_cut_off_and_everything_has_a_name(studio: Studio, browser: Browser, scheme: str) -> None:
    long = "aratherlongwordthatcannotbebrokenanywhereatallbecauseithasnoblanks " * 3
    takes = [spoken(studio, text, seed=2**32 - 1) for text in (long, "Short.")]
    size = {"width": 390, "height": 844}
    with opened(browser, studio.url, viewport=size, color_scheme=scheme, has_touch=True) as page:
        history(page, 2)
        show(page, takes[0])
        tick(page, *takes)
        page.click(".vx-selection [data-do=compare]")
        page.wait_for_selector(".vx-compare")
        width = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
        assert page.evaluate(width) <= 390
        small = page.evaluate("""
            [...document.querySelectorAll('#vx-history :is(button, label), .vx-compare button, .vx-pager button')]
              .filter((e) => e.offsetParent && Math.min(e.offsetWidth, e.offsetHeight) < 30).map((e) => e.outerHTML)""")
        assert small == [], "too small for a thumb"
        nameless = page.evaluate("""
            [...document.querySelectorAll('button, a[href], input, textarea, select, [role=slider]')]
              .filter((e) => e.checkVisibility({ visibilityProperty: true }))
              .filter((e) => !(e.innerText?.trim() || e.ariaLabel || e.title || e.placeholder || e.labels?.length))
              .map((e) => e.outerHTML.slice(0, 200))""")
        assert nameless == []


def test_a_take_of_this_tab_is_put_back_with_its_voice(studio: Studio, browser: Browser) -> None:
    voice = studio.synthesizer.voices.save_from_take(spoken(studio, "A reference.").id, "Anna", "local")
    record = spoken(studio, "In Anna's voice.", voice_id=voice.id)
    with opened(browser, studio.url) as page:
        history(page, 2)
        assert "Anna" in page.inner_text(lane(record))
        page.click(f"{lane(record)} [data-do=reuse]")
        page.wait_for_function("document.querySelector('#vx-text textarea').value.startsWith('In Anna')")
        page.wait_for_function("document.querySelector('#vx-voice input').value === 'Anna'")
        open_tab(page, "history")
        page.select_option("#vx-filters [name=voice]", voice.id)
        wait_for_lanes(page, 1)
        page.wait_for_selector("#vx-seeds >> text=rated yet")
        show(page, record)
        page.click("#vx-detail [data-do=rate] >> nth=4")
        eventually(page, lambda: studio.store.take(record.id).rating == 5)
        page.select_option("#vx-filters [name=verdict]", record.verdict)
        page.wait_for_selector("#vx-seeds [data-do=use_seed]")
        page.click("#vx-seeds [data-do=use_seed]")
        page.wait_for_function("document.querySelector('#vx-settings').innerText.includes('seed 3')")


def test_a_model_that_is_not_there_yet_is_said(tmp_path: Path, browser: Browser) -> None:
    with running_studio(tmp_path) as studio:
        studio.synthesizer.wait(20)
        record = spoken(studio, "Early.")
    with (
        running_studio(tmp_path, load=lambda progress: progress.gone) as studio,
        opened(browser, studio.url, ready=False) as page,
    ):
        page.wait_for_selector(".vx-model.is-failed")
        history(page, 1)
        show(page, record)
        page.click("#vx-detail [data-do=replay]")
        page.wait_for_selector("#vx-replay .is-error")
        assert "no model to speak with" in page.inner_text("#vx-replay")

"""The Chapters tab in a real browser, with the embedded model: from a text to a file, the review with keys only."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from studio.book.project import Book
from studio.ui.context import Context
from tests.browser import chromium, open_tab, opened
from tests.chapters_room import running_studio_with_books

# A busy machine can come between a browser and its page: such a test may have a second try, which the summary shows.
pytestmark = [pytest.mark.browser, pytest.mark.flaky(reruns=1)]

TEXT = "Chapter 1: Lamp\n\nThe lamp was lit.\n\nChapter 2: Road\n\nThe road was dry."
RENDERED = 240_000  # milliseconds for seven short takes on a busy machine


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory, torch_threads: int) -> Iterator[tuple[str, Context]]:
    def load(progress: Any) -> Any:
        from voxcpm_core import VoxCPM

        return VoxCPM.from_pretrained("nano", device="cpu", on_progress=progress)

    with running_studio_with_books(tmp_path_factory.mktemp("books"), load) as studio:
        assert studio[1].synthesizer.wait(120).state == "ready"
        yield studio


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def make_book(page: Page, title: str) -> None:
    page.wait_for_selector(".vx-ch-new")
    page.fill(".vx-ch-new [name=text]", TEXT)
    page.fill(".vx-ch-new [name=title]", title)
    page.click("[data-ch='import.text']")
    page.wait_for_selector(".vx-ch-words >> text=left out")
    page.click("[data-ch='import.create']")
    page.wait_for_selector(f".vx-ch-head h2:text-is('{title}')")
    page.wait_for_selector(".vx-ch-script")


def go(page: Page, step: str, shown: str) -> None:
    page.click(f".vx-ch-step[data-step={step}]")
    page.wait_for_selector(shown)


def count(page: Page, show: str, number: int) -> None:
    """Wait until so many segments are of this kind."""
    page.wait_for_selector(f"[data-part=shows] [data-show={show}] b:text-is('{number}')")


def opened_segment(page: Page, number: int) -> None:
    """Wait until this segment of the book is open, and its row marked."""
    page.wait_for_selector(f".vx-ch-card header b:text-is('{number} / 4')")
    page.wait_for_selector(f".vx-ch-rows [aria-selected=true] .vx-ch-no:text-is('{number}')")


def probed(path: Path) -> dict[str, Any]:
    command = ["ffprobe", "-v", "error", "-of", "json", "-show_format", "-show_streams", "-show_chapters", str(path)]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def test_from_a_text_to_a_file_with_a_review_by_keys(
    studio: tuple[str, Context], browser: Browser, tmp_path: Path
) -> None:
    url, context = studio
    title = f"Lamp and Road {secrets.token_hex(3)}"  # a second try finds the book of the first
    with opened(browser, url) as page:
        open_tab(page, "chapters")
        make_book(page, title)
        go(page, "cast", ".vx-ch-cast")
        page.fill(".vx-ch-cast [name=control]", "a calm voice")
        page.keyboard.press("Tab")
        page.wait_for_function("document.querySelector('[data-ch=undo]:not([disabled])')")
        go(page, "render", ".vx-ch-render")
        page.click("[data-ch='render.start']")
        page.wait_for_selector("[data-part=jobs] .vx-ch-job")
        kept = page.context.storage_state()
    project = context.books.library.project_named(title).id  # the page is closed; the job goes on
    with opened(browser, url, storage_state=kept) as page:
        open_tab(page, "chapters")
        page.wait_for_selector(f".vx-ch-head h2:text-is('{title}')")
        page.wait_for_selector("[data-part=jobs] .vx-ch-job.is-done", timeout=RENDERED)
        go(page, "review", ".vx-ch-rows")
        review_with_keys(page, lambda: context.books.library.book(project))
        assert export(page, tmp_path)["format"]["tags"]["title"] == title


def review_with_keys(page: Page, book: Callable[[], Book]) -> None:
    """No mouse from here: play, approve, move, note, lock, edit one sentence, re-roll, pick, undo."""
    press = page.keyboard.press
    opened_segment(page, 1)
    press("Space")
    page.wait_for_selector("#vx-chapters-slot-1 .vx-slot-bar.is-active")
    press("Enter")
    opened_segment(page, 2)
    press("n")
    page.wait_for_selector("details[data-name=note][open] textarea")
    page.keyboard.type("a little slower")
    press("Control+Enter")
    page.wait_for_selector(".vx-ch-note >> text=a little slower")
    press("l")
    count(page, "locked", 1)
    press("l")
    count(page, "locked", 0)
    press("e")
    page.wait_for_selector("details[data-name=edit][open] textarea")
    press("Control+a")
    page.keyboard.type("The lamp went out.")
    press("Control+Enter")
    count(page, "stale", 1)
    assert [book().state(one) for one in book().spoken].count("stale") == 1
    press("z")
    count(page, "stale", 0)
    press("r")
    page.wait_for_selector("#vx-chapters-slot-2 .vx-slot-facts[data-take]", timeout=RENDERED)
    before = book().current(book().spoken[1]).take
    press("1" if page.locator("#vx-chapters-slot-2.is-picked").count() else "2")
    press("Enter")  # pressed at once: the pick is for the segment that was open
    opened_segment(page, 3)
    assert book().current(book().spoken[1]).take != before and book().spoken[1].review == "approved"
    press("ArrowDown")
    opened_segment(page, 4)
    press("ArrowUp")
    opened_segment(page, 3)
    press("Enter")
    press("Enter")
    page.wait_for_selector("[data-part=left] >> text=All 4 segments are approved.")


def export(page: Page, tmp_path: Path) -> dict[str, Any]:
    """The book as one file, by what ffprobe says of it."""
    go(page, "export", ".vx-ch-export")
    page.select_option("[name=format]", "m4b")
    page.fill("[name=narrator]", "nano")
    page.click("[data-ch='export.start']")
    page.wait_for_selector(".vx-ch-result .vx-ch-report", timeout=RENDERED)
    assert page.locator(".vx-ch-report tr.is-fail").count() == 0
    with page.expect_download() as started:
        page.click(".vx-ch-files a:has-text('.m4b')")
    path = tmp_path / "book.m4b"
    started.value.save_as(path)
    found = probed(path)
    assert [chapter["tags"]["title"] for chapter in found["chapters"]] == ["Chapter 1: Lamp", "Chapter 2: Road"]
    assert found["streams"][0]["codec_name"] == "aac"
    return found


def test_on_a_phone_in_chinese_nothing_is_cut_off_and_everything_has_a_name(
    studio: tuple[str, Context], browser: Browser, tmp_path: Path
) -> None:
    size, title = {"width": 390, "height": 844}, f"手机上的书 {secrets.token_hex(3)}"
    with opened(browser, studio[0], viewport=size, locale="zh-CN", has_touch=True) as page:
        open_tab(page, "chapters")
        page.wait_for_selector(".vx-ch-new")
        (tmp_path / "book.md").write_text("# 第一章\n\n灯亮了。\n\n# 第二章\n\n路干了。\n", encoding="utf-8")
        page.set_input_files("#vx-ch-file", tmp_path / "book.md")
        page.wait_for_selector(".vx-ch-words >> text=12 词")
        page.fill(".vx-ch-create [name=title]", title)
        page.click("[data-ch='import.create']")
        page.wait_for_selector(".vx-ch-script")
        steps = {
            "text": ".vx-ch-script",
            "cast": ".vx-ch-cast",
            "render": ".vx-ch-render",
            "review": ".vx-ch-rows",
            "export": ".vx-ch-export",
        }
        for step, shown in steps.items():
            go(page, step, shown)
            assert page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)") <= 390
            nameless = page.evaluate("""
                [...document.querySelectorAll('#vx-chapters :is(button, a[href], input, textarea, select, .vx-seek)')]
                  .filter((e) => e.checkVisibility({ visibilityProperty: true }))
                  .filter((e) => !(e.innerText?.trim() || e.ariaLabel || e.title || e.placeholder || e.labels?.length))
                  .map((e) => e.outerHTML.slice(0, 200))""")
            assert nameless == [], step
        page.click(".vx-ch-head [data-ch=shelf]")
        page.click(f".vx-ch-book:has-text('{title}') [data-ch='book.delete']")
        page.wait_for_selector("[data-part=notice] >> text=已删除")
        page.click("[data-part=notice] [data-ch='book.restore']")
        page.wait_for_selector(f".vx-ch-book:has-text('{title}')")

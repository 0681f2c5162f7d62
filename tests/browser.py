"""A studio on a free port and a real browser to look at it, for tests of the page."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page, Response, sync_playwright

from studio.store import Store
from studio.synthesizer import Synthesizer
from studio.ui.i18n import WORDS
from tests.fakes import SineGeneration, SineModel

# No sandbox in containers; and nothing that calls home, so that every request seen is the page's own.
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
]
PICKER = "#vx-tts-picker"  # of the text-to-speech tab
FIRST_LANE = "#vx-tts-slot-1 .vx-slot-facts"
PATIENCE = 30_000  # milliseconds that a busy machine may need for a step


class SpiedModel(SineModel):
    """A SineModel that keeps its generations, for tests that count steps."""

    def start(self, requests: Any, seeds: list[int] | None = None) -> SineGeneration:
        generation = super().start(requests, seeds)
        self.__dict__.setdefault("generations", []).append(generation)
        return generation

    @property
    def last(self) -> SineGeneration:
        return self.__dict__["generations"][-1]


@dataclass
class Studio:
    """A running studio: its address and everything behind it."""

    url: str
    model: SpiedModel
    store: Store
    synthesizer: Synthesizer


@contextmanager
def running_studio(
    folder: Path,
    model: SpiedModel | None = None,
    load: Callable[[Any], Any] | None = None,
    shared: bool = False,
    recogniser: str = "",
) -> Iterator[Studio]:
    """A studio in this process on a free port. ``load`` replaces the loader; otherwise ``model`` is there at once."""
    from studio.ui.page import build_page, launch

    model = model or SpiedModel()
    store = Store(folder)
    synthesizer = Synthesizer(store, load or (lambda progress: model))
    synthesizer.load()
    page, context = build_page(synthesizer, store, shared=shared, recogniser=recogniser)
    url = launch(page, context, port=free_port())
    try:
        yield Studio(url, model, store, synthesizer)
    finally:
        page.close(verbose=False)
        synthesizer.close()
        store.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser that scripts/test.py found, the system's Chromium, or what `playwright install chromium` brought."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("VOXCPM_BROWSER") or next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, url: str, ready: bool = True, **context: Any) -> Iterator[Page]:
    """The page in a fresh browser context; fails the test when the page's own script fails."""
    size = context.pop("viewport", {"width": 1280, "height": 900})
    visit = browser.new_context(viewport=size, **{"locale": "en-US", **context})
    page = visit.new_page()
    page.set_default_timeout(PATIENCE)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(url)
    if ready:
        page.wait_for_selector("#vx-generate:not([disabled])")
    yield page
    visit.close()
    assert not errors, errors


def open_tab(page: Page, name: str) -> None:
    """Open a tab by its id, also where it hides in the menu of a narrow page."""
    shown = page.locator(f"#vx-tabs > .tab-wrapper [role=tab][data-tab-id={name}]")
    if shown.count():
        return shown.first.click()
    page.click("#vx-tabs .overflow-menu > button")
    words = WORDS[f"tab_{name}"][page.evaluate("document.documentElement.lang").startswith("zh")]
    page.click(f"#vx-tabs .overflow-dropdown button:text-is('{words}')")


def write(page: Page, text: str, seed: int | str | None = None) -> None:
    """Fill the form, and the seed field in the folded settings when one is given."""
    page.fill("#vx-text textarea", text)
    if seed is not None:
        unfold(page)
        page.fill("#vx-seed textarea, #vx-seed input", str(seed))


def unfold(page: Page) -> None:
    if not page.is_visible("#vx-seed"):
        page.click("#vx-settings > button")
        page.wait_for_selector("#vx-seed", state="visible")


def speak(page: Page, text: str, seed: int | str | None = None) -> str:
    """Make one take to its end; returns its id."""
    before = shown_take(page)
    write(page, text, seed)
    page.click("#vx-generate")
    return next_take(page, before)


def next_take(page: Page, before: str) -> str:
    """Wait until another take than ``before`` is in the first lane, and the run is over; returns its id."""
    page.wait_for_function(
        f"(before) => ![undefined, '', before].includes(document.querySelector('{FIRST_LANE}')?.dataset.take)",
        arg=before,
    )
    page.wait_for_selector("#vx-generate:not([disabled])")
    return shown_take(page)


def shown_take(page: Page) -> str:
    return page.evaluate(f"document.querySelector('{FIRST_LANE}')?.dataset.take ?? ''")


def state(page: Page) -> str:
    return page.get_attribute(f"{PICKER} .vx-picker-state", "data-state") or ""


def wait_for_state(page: Page, *states: str) -> None:
    page.wait_for_selector(", ".join(f'{PICKER} .vx-picker-state[data-state="{name}"]' for name in states))


def seconds_made(page: Page, seconds: float) -> None:
    """Wait until the first lane has so much sound, of a take that is being made."""
    page.wait_for_function(f"document.querySelector('{FIRST_LANE}').dataset.seconds > {seconds}")


class StreamRecorder:
    """Keeps what the browser fetches of streamed sound, in the order that the playlist gives it."""

    def __init__(self, page: Page) -> None:
        self._answers: dict[str, Response] = {}
        page.on("response", self._note)

    def _note(self, response: Response) -> None:
        name = response.url.rsplit("/", 1)[-1].split("?")[0]
        if name.endswith((".aac", ".m3u8")) and response.ok:
            self._answers[name] = response  # the newest playlist replaces the older ones

    def complete(self) -> bool:
        """Whether the playlist is closed and all of its pieces have come."""
        lines = self._playlist()
        return "#EXT-X-ENDLIST" in lines and all(name in self._answers for name in self._names(lines))

    def sound(self, sample_rate: int) -> np.ndarray:
        """The pieces joined and decoded: float32 [n]."""
        data = b"".join(self._answers[name].body() for name in self._names(self._playlist()))
        return decode(data, sample_rate)

    def _playlist(self) -> list[str]:
        playlist = self._answers.get("playlist.m3u8")
        return playlist.text().splitlines() if playlist else []

    @staticmethod
    def _names(lines: list[str]) -> list[str]:
        return [line.split("?")[0] for line in lines if line and not line.startswith("#")]


def decode(data: bytes, sample_rate: int) -> np.ndarray:
    """Any sound file as mono float32 [n], by ffmpeg."""
    command = ["ffmpeg", "-v", "error", "-i", "pipe:0", "-f", "f32le", "-ac", "1", "-ar", str(sample_rate), "pipe:1"]
    return np.frombuffer(subprocess.run(command, input=data, capture_output=True, check=True).stdout, "<f4")


def longest_quiet(samples: np.ndarray, level: float) -> int:
    """Length in samples of the longest run below ``level``."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (np.abs(samples) < level).astype(int), [0]])))
    return int(np.max(edges[1::2] - edges[::2], initial=0))


def wav_samples(path: Path) -> np.ndarray:
    """16-bit samples of a stored take: int16 [n]."""
    with wave.open(str(path), "rb") as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

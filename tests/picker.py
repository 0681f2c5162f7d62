"""The take-picker driven for tests: in a browser, and without one."""

from __future__ import annotations

from types import SimpleNamespace

from playwright.sync_api import Page

from studio.takes import TakeRecord
from studio.ui.picker import PickerHandlers, Wish
from studio.ui.picker_run import SLOTS, Message
from tests.browser import Studio, open_tab
from tests.fakes import SpeechRequest

# ---- in a browser


def to_tab(page: Page) -> None:
    page.wait_for_selector("#vx-tabs > .tab-wrapper [role=tab][data-tab-id=tts]")  # after a reload
    open_tab(page, "design")
    page.wait_for_selector("#vx-design-generate:not([disabled])")


def fill(page: Page, text: str, control: str = "A calm woman", seed: int | None = None, takes: int = 3) -> None:
    page.fill("#vx-design-control textarea", control)
    page.fill("#vx-design-text textarea", text)
    page.click(f"#vx-design-takes label >> text={takes}")
    if seed is not None:
        if not page.is_visible("#vx-design-seed"):
            page.click("#vx-design-settings > button")
        page.fill("#vx-design-seed textarea, #vx-design-seed input", str(seed))


def picker_state(page: Page) -> str:
    return page.get_attribute("#vx-design-picker .vx-picker-state", "data-state") or ""


def wait_for(page: Page, *states: str) -> None:
    page.wait_for_selector(", ".join(f'#vx-design-picker .vx-picker-state[data-state="{state}"]' for state in states))


def design(page: Page, text: str, **options) -> None:
    """Make takes to their end."""
    fill(page, text, **options)
    page.click("#vx-design-generate")
    finish(page)


def finish(page: Page) -> None:
    wait_for(page, "starting", "speaking", "stop")
    wait_for(page, "stop")
    page.wait_for_selector("#vx-design-generate:not([disabled])")


def facts(page: Page, name: str) -> list[str]:
    """A data attribute of each lane that is shown."""
    script = (
        "(name) => [...document.querySelectorAll('#vx-design-picker .vx-slot:not([hidden]) .vx-slot-facts')]"
        ".map((facts) => facts.dataset[name] ?? '')"
    )
    return page.evaluate(script, name)


def takes(studio: Studio, page: Page) -> list[TakeRecord]:
    return [studio.store.take(take) for take in facts(page, "take")]


def lane(number: int, rest: str = "") -> str:
    return f"#vx-design-slot-{number} {rest}"


def playing(page: Page) -> list[bool]:
    """Which lanes show that they play."""
    script = "[...document.querySelectorAll('#vx-design-picker .vx-slot-bar .vx-play .ic')].map((icon) => "
    return page.evaluate(script + "icon.classList.contains('ic-pause'))")


# ---- without one

FIELDS = list(vars(Message()))


class Shown(SimpleNamespace):
    """A message to the page by name; lanes as lists."""


def named(values: tuple) -> Shown:
    rest = dict(zip(FIELDS[2:-2], values[2 * SLOTS :], strict=False))
    return Shown(live=values[:SLOTS], facts=values[SLOTS : 2 * SLOTS], **rest, stop=values[14], start=values[15:])


def given(value: object) -> bool:
    return not (isinstance(value, dict) and value.get("__type__") == "update" and len(value) == 1)


def asking(accept: str = "") -> SimpleNamespace:
    return SimpleNamespace(headers={"accept-language": accept}, cookies={}, session_hash="s1")


class FakePage:
    """What a page does with messages: keeps the newest of everything, and what came on the way."""

    def __init__(self, handlers: PickerHandlers, owner: str | None = None, accept: str = "") -> None:
        self.handlers, self.owner, self.request = handlers, owner, asking(accept)
        self.takes, self.picked, self.hidden, self.job, self.ticket = [""] * SLOTS, None, False, None, ""
        self.facts = [""] * SLOTS
        self.live: list[list[bytes]] = [[] for _ in range(SLOTS)]
        self.notice, self.line, self.status = "", "", ""

    def take_in(self, values: tuple) -> Shown:
        shown = named(values)
        for name in ("takes", "picked", "hidden", "job", "ticket", "notice", "line", "status"):
            if given(value := getattr(shown, name)):
                setattr(self, name, value)
        for slot in range(SLOTS):
            if given(shown.facts[slot]):
                self.facts[slot] = shown.facts[slot]
            if given(shown.live[slot]):
                self.live[slot].append(shown.live[slot])
        return shown

    def run(self, kind: str = "new", text: str = "Words to say.", blind: bool = False, **wish) -> list[Shown]:
        request = SpeechRequest(text=text, control="calm")
        self.take_in(self.handlers.wait(self.request))
        messages = self.handlers.run(
            kind, lambda: Wish(request, **wish), self.takes, self.picked, blind, self.ticket, self.owner, self.request
        )
        return [self.take_in(message) for message in messages]

    def pick(self, slot: int) -> None:
        self.take_in(
            self.handlers.pick(slot, self.takes, self.picked, self.hidden, self.ticket, self.owner, self.request)
        )

    def blind(self, on: bool) -> None:
        self.take_in(self.handlers.compare_blindly(on, self.takes, self.hidden, self.job, self.owner, self.request))

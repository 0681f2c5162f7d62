"""The small pieces of the page that are plain HTML: model card, preview, status line, notices.

Functions from data to strings. Everything that a visitor typed is escaped here. Classes and ``data-``
attributes are what assets/studio.css and assets/studio.js go by.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from studio.events import ModelStatus
from studio.takes import TakeRecord
from studio.ui.i18n import say, stage

CHARACTERS_PER_SECOND = 14.0  # Latin script, read calmly
IDEOGRAPHS_PER_SECOND = 4.2
IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]")
STATE_ICONS = {
    "idle": "ring",
    "waiting": "dots",
    "starting": "dots",
    "speaking": "bars",
    "stopping": "dots",
    "stop": "check",
    "limit": "triangle",
    "cancelled": "square",
    "error": "cross",
    "unsaved": "cross",
    "loading": "dots",
    "ready": "check",
    "failed": "cross",
}


def tag(name: str, *children: str, **attributes: object) -> str:
    """One element. Children are HTML already; attribute values are escaped here.

    ``class_`` and ``data_take`` become ``class`` and ``data-take``; None leaves an attribute out, True needs no value.
    """
    words = []
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(key)
        elif value is not None:
            words.append(f'{key}="{escape(str(value))}"')
    return f"<{' '.join([name, *words])}>{''.join(children)}</{name}>"


def icon(name: str) -> str:
    return tag("i", class_=f"ic ic-{name}", aria_hidden="true")


def number(text: str) -> str:
    return tag("b", text, class_="vx-num")


def button(act: str, title: str, *children: str, class_: str, **attributes: object) -> str:
    """A button that assets/studio.js answers by its ``data-act``; ``title`` names it where it shows an icon only."""
    name = None if any(">" not in child for child in children) else title
    return tag(
        "button", *children, type="button", class_=class_, data_act=act, title=title, aria_label=name, **attributes
    )


def state_mark(state: str, word: str) -> str:
    """A state by shape, word and colour."""
    return tag("span", icon(STATE_ICONS[state]), tag("span", word), class_=f"vx-state is-{state}")


def header(language: str) -> str:
    """Name of the place."""
    logo, tagline = (
        tag("span", class_="vx-logo", aria_hidden="true"),
        tag("span", say(language, "tagline"), class_="vx-tagline"),
    )
    return tag("div", logo, "<h1>VoxCPM Studio</h1>", tagline, class_="vx-brand")


def switches(language: str) -> str:
    """Language and theme."""
    other = "en" if language == "zh" else "zh-CN"
    words = say(language, "other_language")
    return tag(
        "div",
        button("language", say(language, "switch_language"), words, class_="vx-quiet", data_to=other),
        button("theme", say(language, "switch_theme"), icon("contrast"), class_="vx-quiet vx-round"),
        class_="vx-switches",
    )


def model_card(status: ModelStatus, language: str) -> str:
    """One line about the model: what it is and where it runs, or how far loading is, or why it failed."""
    if status.state == "ready":
        return _ready_card(status, language)
    if status.state == "failed":
        return _failed_card(status, language)
    return _loading_card(status, language)


def _ready_card(status: ModelStatus, language: str) -> str:
    facts = [status.generation, status.device, status.dtype, f"{status.sample_rate / 1000:g} kHz"]
    chips = "".join(tag("span", escape(fact), class_="vx-fact") for fact in facts if fact)
    more = [status.notice] if status.notice else []
    if status.name == "nano":
        more.append(say(language, "model_nano"))
    ready = say(language, "model_ready")
    mark = tag("span", icon("check"), tag("span", ready, class_="vx-unseen"), class_="vx-state is-ready", title=ready)
    return tag("div", mark, tag("strong", escape(status.name)), chips, _paragraphs(more), class_="vx-model is-ready")


def _failed_card(status: ModelStatus, language: str) -> str:
    title = state_mark("failed", say(language, "model_failed_title"))
    more = _paragraphs([status.message, say(language, "model_retry_hint")])
    return tag("div", title, more, class_="vx-model is-failed", role="alert")


def _loading_card(status: ModelStatus, language: str) -> str:
    name, fraction = say(language, "model_loading"), status.fraction
    percent = "" if fraction is None else f"{fraction:.0%}"
    filled = tag("span", style=f"width:{percent}") if percent else tag("span", class_="is-unknown")
    bar = tag(
        "div",
        filled,
        class_="vx-bar",
        role="progressbar",
        aria_label=name,
        aria_valuemin=0,
        aria_valuemax=100,
        aria_valuenow=percent.rstrip("%") or None,
    )
    doing = tag("span", escape(stage(language, status.stage)), class_="vx-fact")
    shown = tag("span", percent, class_="vx-num")
    return tag("div", state_mark("loading", name), doing, bar, shown, class_="vx-model is-loading")


def _paragraphs(sentences: Sequence[str]) -> str:
    return tag("div", *(tag("p", escape(s)) for s in sentences), class_="vx-more") if sentences else ""


def control_missing(generation: str, language: str) -> str:
    return notice("info", say(language, "control_unsupported", generation=generation))


def preview_message(message: str, language: str) -> str:
    """The preview's place when there is nothing to speak."""
    title = tag("header", tag("h3", say(language, "preview")))
    return tag("section", title, tag("p", escape(message)), class_="vx-preview is-empty")


def estimated_seconds(text: str) -> float:
    """Roughly how long ``text`` takes to speak: for the progress bar, never for a limit."""
    ideographs = len(IDEOGRAPHS.findall(text))
    return max((len(text) - ideographs) / CHARACTERS_PER_SECOND + ideographs / IDEOGRAPHS_PER_SECOND, 1.0)


def notice(kind: str, sentence: str) -> str:
    """A sentence with a shape; ``kind`` is "info", "warning" or "error"."""
    shape = {"info": "info", "warning": "triangle", "error": "cross"}[kind]
    role = "alert" if kind == "error" else "status"
    return tag("div", icon(shape), tag("div", escape(sentence)), class_=f"vx-notice is-{kind}", role=role)


def end_notice(record: TakeRecord, language: str) -> str:
    """Why a take ended, when it did not end by itself; "" when there is nothing to say."""
    kept, message = bool(record.file_name), record.message
    if record.seconds and message and not kept:  # it was made and could not be stored
        return notice("error", message)
    if record.ended_by == "stop":
        return notice("warning" if kept else "error", message) if message else ""
    if record.ended_by == "error":
        said = say(language, "end_error" if kept else "end_error_empty")
        return notice("error", f"{said} {message}".strip())
    said = say(language, f"end_{record.ended_by}" if kept else "end_nothing")
    extra = message if record.ended_by == "limit" or not kept else ""  # which limit; why nothing was saved
    return notice("warning", f"{said} {extra}".strip())

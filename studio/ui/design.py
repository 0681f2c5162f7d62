"""What the Voice Design tab does: a description and a text become up to three takes to choose from.

The takes themselves are the picker's (:mod:`studio.ui.picker`), the settings the form's (:mod:`studio.ui.form`).
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import gradio as gr

from studio.store import StoreError
from studio.ui import markup
from studio.ui.context import Context
from studio.ui.design_examples import DESCRIPTIONS, DIALECTS, TEXTS
from studio.ui.form import KEEP, Form, FormHandlers, Restored, speech_request, takes_of
from studio.ui.i18n import language_of, say
from studio.ui.markup import button, tag
from studio.ui.picker import Wish
from studio.ui.picker_takes import records_of
from studio.ui.settings import SettingError, parse_seed
from studio.ui.takes_list import sent, tell

CHINESE_PREVIEW = TEXTS["sample_chinese"]
ENGLISH_PREVIEW = TEXTS["sample_story"]

GUIDE_ROWS = ("guide_gender", "guide_age", "guide_pitch", "guide_pace", "guide_mood", "guide_accent")
GUIDE_WORDS = (
    "guide_gender_words",
    "guide_age_words",
    "guide_pitch_words",
    "guide_pace_words",
    "guide_mood_words",
    "guide_accent_words",
)
GUIDE_TIPS = ("guide_tip_1", "guide_tip_2", "guide_tip_3")


class Arrival(NamedTuple):
    """What the tab shows about the model: buttons, fields and the note say what it can and cannot do."""

    generate: Any
    control: Any
    text: Any
    note: Any


@dataclass(frozen=True)
class DesignForm:
    """The form's values, in the order of its fields."""

    control: str
    text: str
    takes: int
    cfg_value: float
    inference_timesteps: float
    temperature: float
    normalize: bool
    seed: str

    def wish(self) -> Wish:
        """Raises SettingError for what cannot be made."""
        if not (self.control or "").strip():
            raise SettingError("ask_control")
        settings = self.cfg_value, self.inference_timesteps, self.temperature, self.normalize
        request = speech_request(self.text, self.control, *settings)
        return Wish(request, takes=takes_of(self.takes), seed=parse_seed(self.seed))


class DesignHandlers:
    """The tab's events. Everything about a visitor comes in as arguments."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._synthesizer = context.synthesizer
        self.form = FormHandlers(context)

    def wish(self, *values: Any) -> Wish:
        """For the picker: the fields' values as a request."""
        status = self._synthesizer.status
        if status.state == "ready" and not status.supports_control:
            raise SettingError("design_unsupported", generation=status.generation)
        return DesignForm(*values).wish()

    def arrive(self, kept: object, request: gr.Request) -> tuple[Any, ...]:
        """The model, and the settings that this browser used last with it (else the model's own)."""
        language, status = language_of(request), self._synthesizer.status
        if status.state != "ready":
            return (*Arrival(gr.update(interactive=False), KEEP, KEEP, KEEP), *Restored())
        able = bool(status.supports_control)
        field = gr.update(interactive=able)
        shown = Arrival(gr.update(interactive=able), field, field, gr.update(value=self._note(language)))
        return (*shown, *self.form.restored(kept, request))

    def _note(self, language: str) -> str:
        status = self._synthesizer.status
        if not status.supports_control:
            return markup.notice("warning", say(language, "design_unsupported", generation=status.generation))
        return markup.notice("info", say(language, "design_nano")) if status.name == "nano" else ""

    def describe(self, control: str, text: str) -> tuple[str, Any]:
        """An example's description for the form, and a text in its language when there is none yet."""
        if (text or "").strip():
            return control, KEEP
        return control, CHINESE_PREVIEW if control in list(DESCRIPTIONS.values())[5:] else ENGLISH_PREVIEW

    def dialect(self, event: gr.EventData) -> tuple[Any, Any]:
        """A dialect's description and text, by its name."""
        name = sent(event, "dialect")
        found = next((dialect for dialect in DIALECTS if dialect.name == name), None)
        return (found.control, found.text) if found else (KEEP, KEEP)

    def refill(
        self, control: str, text: str, takes: list[str], owner: str | None, request: gr.Request
    ) -> tuple[Any, Any]:
        """Description and text of the takes that came back with the page, when nothing is typed yet."""
        first = next(filter(None, records_of(takes, self._context, owner, request)), None)
        if first is None or (control or "").strip() or (text or "").strip():
            return KEEP, KEEP
        return first.typed_control, first.typed_text

    def reuse(self, owner: str | None, event: gr.EventData, request: gr.Request) -> tuple[Any, ...]:
        """A designed take of a list, back into this form; takes of other tabs are left alone."""
        language = language_of(request)
        nothing = (KEEP, KEEP, *Form(), KEEP)
        try:
            record = self._context.take(sent(event), owner, request)
        except StoreError:
            return nothing  # the text-to-speech tab says so
        if record.tab != "design":
            return nothing
        tell(say(language, "design_reused"))
        return (record.typed_control, record.typed_text, *Form.of_take(record), gr.update(selected="design"))


def guide(language: str) -> str:
    """The folded panel: what makes a description, and the dialects."""
    rows = [
        tag("div", tag("dt", say(language, name)), tag("dd", say(language, words)))
        for name, words in zip(GUIDE_ROWS, GUIDE_WORDS, strict=True)
    ]
    tips = [tag("li", say(language, tip)) for tip in GUIDE_TIPS]
    dialects = [
        button(
            "dialect",
            dialect.control,
            tag("span", dialect.name, lang="zh"),
            "" if language == "zh" else tag("small", dialect.english),
            class_="vx-link vx-dialect",
            data_dialect=dialect.name,
        )
        for dialect in DIALECTS
    ]
    return tag(
        "div",
        tag("p", say(language, "guide_build")),
        tag("dl", *rows, class_="vx-guide-rows"),
        tag("ul", *tips),
        tag("h3", say(language, "guide_dialects"), class_="vx-heading"),
        tag("p", escape(say(language, "guide_dialects_how"))),
        tag("div", *dialects, class_="vx-dialects"),
        tag("p", say(language, "guide_languages")),
        class_="vx-guide",
    )

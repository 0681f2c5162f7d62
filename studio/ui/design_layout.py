"""The Voice Design tab's layout and wiring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from studio.ui import design, markup, picker_layout
from studio.ui.design import DesignHandlers
from studio.ui.design_examples import DESCRIPTIONS, TEXTS
from studio.ui.form_layout import (
    FormPart,
    form_part,
    preview_part,
    samples_part,
    wire_preview,
    wire_samples,
    wire_settings,
)
from studio.ui.i18n import label, language_of
from studio.ui.look import html
from studio.ui.picker import PickerHandlers
from studio.ui.takes_list import TELLING
from studio.ui.wiring import QUIET, SETTLE

DIALECT_EVENTS = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-act="dialect"]');
  if (button) trigger('click', { dialect: button.dataset.dialect });
});
"""


@dataclass(frozen=True)
class DesignTab:
    """Components of the tab."""

    control: gr.Textbox
    chips: list[gr.Button]
    note: gr.HTML
    guide: gr.HTML
    text: gr.Textbox
    samples: list[gr.Button]
    preview: gr.HTML
    form: FormPart
    picker: picker_layout.Picker

    def fields(self) -> list[Any]:
        """Inputs in the order of :class:`studio.ui.design.DesignForm`."""
        return [self.control, self.text, self.form.takes, *self.form.fields]


def layout() -> DesignTab:
    with gr.Row(elem_classes="vx-desk", equal_height=False):
        with gr.Column(scale=5, min_width=320, elem_classes="vx-editor"):
            note = html("", elem_id="vx-design-note")
            control, chips, guide = _description_part()
            text, samples, preview = _text_part()
            form = form_part("vx-design")
        with gr.Column(scale=6, min_width=320, elem_classes="vx-stage"):
            picker = picker_layout.layout("design")
    return DesignTab(control, chips, note, guide, text, samples, preview, form, picker)


def _description_part() -> tuple[gr.Textbox, list[gr.Button], gr.HTML]:
    control = gr.Textbox(
        "",
        label=label("control"),
        info=label("design_control_info"),
        placeholder=label("design_control_hint"),
        lines=2,
        max_lines=5,
        elem_id="vx-design-control",
    )
    with gr.Row(elem_classes="vx-samples", elem_id="vx-design-chips"):
        chips = [gr.Button(name, size="sm") for name in DESCRIPTIONS]
    with gr.Accordion(label("guide"), open=False, elem_id="vx-design-guide", elem_classes="vx-folded"):
        guide = html(design.guide("en"), js_on_load=DIALECT_EVENTS)
    return control, chips, guide


def _text_part() -> tuple[gr.Textbox, list[gr.Button], gr.HTML]:
    text = gr.Textbox(
        "",
        label=label("design_text"),
        placeholder=label("design_text_hint"),
        lines=2,
        max_lines=8,
        elem_id="vx-design-text",
    )
    return text, samples_part(TEXTS, "vx-design"), preview_part("vx-design")


def wire(
    handlers: DesignHandlers,
    picker: PickerHandlers,
    tab: DesignTab,
    owner: gr.BrowserState,
    kept: gr.BrowserState,
    lanes: gr.BrowserState,
    load: Callable[..., Any],
    model_card: gr.HTML,
) -> picker_layout.Ends:
    """``kept`` and ``lanes`` are this tab's memory in the browser: settings, and ids of takes; ``load`` tells that the
    tab is opened for the first time; ``model_card`` changes when a model has come after that."""
    ends = picker_layout.wire(
        picker,
        tab.picker,
        wish=handlers.wish,
        fields=tab.fields(),
        generate=tab.form.generate,
        stop=tab.form.stop,
        owner=owner,
        load=load,
        lanes=lanes,
        seed=tab.form.seed,
    )
    preview = _wire_form(handlers, tab, kept)
    arrival = [tab.form.generate, tab.control, tab.text, tab.note, *tab.form.restored]
    load(_said, None, [tab.guide, tab.preview], **QUIET).then(handlers.arrive, kept, arrival, **QUIET)
    changed = model_card.change(**SETTLE).then(handlers.arrive, kept, arrival, **QUIET)
    changed.then(**preview, trigger_mode="always_last")
    words = [tab.control, tab.text]
    ends.restored.then(handlers.refill, [*words, tab.picker.takes, owner], words, **QUIET)
    return ends


def wire_reuse(
    handlers: DesignHandlers,
    tab: DesignTab,
    owner: gr.BrowserState,
    events: Sequence[Callable[..., Any]],
    tabs: gr.Tabs,
) -> None:
    """``events`` are lists' events that name a take to put back into its form."""
    for event in events:
        event(handlers.reuse, owner, [tab.control, tab.text, *tab.form.fields, tabs], **TELLING)


def _wire_form(handlers: DesignHandlers, tab: DesignTab, kept: gr.BrowserState) -> dict[str, Any]:
    wire_settings(handlers.form, tab.form, kept)
    wire_samples(tab.samples, TEXTS, tab.text)
    for chip, control in zip(tab.chips, DESCRIPTIONS.values(), strict=True):
        chip.click(_describing(handlers, control), tab.text, [tab.control, tab.text], **QUIET)
    tab.guide.click(handlers.dialect, None, [tab.control, tab.text], **QUIET)
    return wire_preview(handlers.form, tab.text, tab.control, tab.form.fields[-2], tab.preview)


def _describing(handlers: DesignHandlers, control: str) -> Callable[[str], tuple[str, Any]]:
    return lambda text: handlers.describe(control, text)


def _said(request: gr.Request) -> tuple[Any, Any]:
    language = language_of(request)
    if language == "en":
        return gr.skip(), gr.skip()
    return design.guide(language), markup.preview_message(markup.say(language, "preview_empty"), language)

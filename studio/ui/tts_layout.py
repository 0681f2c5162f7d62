"""The text-to-speech tab's layout and wiring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from studio.ui import markup, picker_layout, voices_chooser
from studio.ui.form_layout import (
    FormPart,
    form_part,
    preview_part,
    samples_part,
    settings_part,
    wire_preview,
    wire_samples,
    wire_settings,
)
from studio.ui.i18n import label
from studio.ui.look import html
from studio.ui.picker import PickerHandlers
from studio.ui.takes_list import TELLING, lanes_component
from studio.ui.tts import TTSHandlers
from studio.ui.wiring import PROGRAMS, QUIET, SETTLE, SPEAKERS

__all__ = ["PROGRAMS", "QUIET", "SETTLE", "SPEAKERS", "settings_part"]  # for the other rooms; the tab's own beside them

SAMPLES: dict[str, str] = {
    "sample_story": "The lighthouse keeper climbed the last stair, set down his lantern, and listened. "
    "Far below, the sea was telling the old story again.",
    "sample_notice": "Good morning. The library opens at nine, and today every visitor may take one book home to keep.",
    "sample_numbers": "The train leaves at 7:45 from platform 12. A ticket costs $18.50, and seat 23 is by the window.",
    "sample_chinese": "海风轻轻吹过灯塔，守塔人放下手里的灯，静静地听着远处的浪声。",
}


@dataclass(frozen=True)
class TTSTab:
    """Components of the tab."""

    text: gr.Textbox
    samples: list[gr.Button]
    preview: gr.HTML
    voice: gr.Dropdown
    control: gr.Textbox
    control_note: gr.HTML
    form: FormPart
    picker: picker_layout.Picker
    recent_title: gr.HTML
    recent: gr.HTML

    def fields(self) -> list[Any]:
        """Inputs in the order of :class:`studio.ui.tts.TTSForm`."""
        return [self.text, self.control, self.voice, self.form.takes, *self.form.fields]


def layout() -> TTSTab:
    with gr.Row(elem_classes="vx-desk", equal_height=False):
        with gr.Column(scale=5, min_width=320, elem_classes="vx-editor"):
            text = gr.Textbox(
                "",
                label=label("text"),
                placeholder=label("text_hint"),
                lines=6,
                max_lines=16,
                elem_id="vx-text",
                autofocus=True,
            )
            samples = samples_part(SAMPLES, "vx")
            preview = preview_part("vx")
            voice = voices_chooser.chooser("vx-voice")
            control = gr.Textbox(
                "",
                label=label("control"),
                info=label("control_optional"),
                placeholder=label("control_hint"),
                lines=1,
                max_lines=3,
                elem_id="vx-control",
            )
            control_note = html("", visible=False, elem_id="vx-control-note")
            form = form_part("vx", takes=1)
        with gr.Column(scale=6, min_width=320, elem_classes="vx-stage"):
            picker = picker_layout.layout("tts")
    recent_title = html(recent_heading("en"), elem_id="vx-recent-title")
    recent = lanes_component("vx-recent")
    return TTSTab(text, samples, preview, voice, control, control_note, form, picker, recent_title, recent)


def recent_heading(language: str) -> str:
    return f'<h2 class="vx-heading">{markup.say(language, "recent")}</h2>'


def wire(
    handlers: TTSHandlers,
    picker: PickerHandlers,
    tab: TTSTab,
    owner: gr.BrowserState,
    kept: gr.BrowserState,
    lanes: gr.BrowserState,
    lists: Sequence[gr.HTML],
    tabs: gr.Tabs,
    room: gr.Tab,
    load: Callable[..., Any],
) -> None:
    """``kept`` and ``lanes`` are this tab's memory in the browser: settings, and ids of takes.

    ``lists`` are all lists whose takes can be put back into the form; ``room`` is the tab in the page.
    """
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
    recent = {"fn": handlers.takes.recent, "inputs": owner, "outputs": tab.recent, **QUIET}
    for end in ends.takes:
        end.then(**recent)
    tab.picker.line.change(**recent)  # a pick ends a blind comparison, whose takes are not listed before
    room.select(handlers.revisited, [tab.voice, owner], [tab.voice, tab.recent], **QUIET)
    remember = wire_settings(handlers.form, tab.form, kept)
    wire_preview(handlers.form, tab.text, tab.control, tab.form.fields[-2], tab.preview)
    wire_samples(tab.samples, SAMPLES, tab.text)
    for lane in lists:
        fields = [tab.text, tab.control, *tab.form.fields, tab.voice, tabs]
        lane.reuse(handlers.reuse, owner, fields, **TELLING).then(**remember)


def arrival(
    tab: TTSTab, kept: gr.BrowserState, owner: gr.BrowserState, model: list[Any]
) -> tuple[list[Any], list[Any]]:
    """Inputs and outputs of :meth:`TTSHandlers.arrive`; ``model`` are those of :meth:`TTSHandlers.model`."""
    inputs = [kept, tab.voice, tab.text, tab.control, owner]
    return inputs, [*model, *tab.form.restored, tab.voice, tab.preview]

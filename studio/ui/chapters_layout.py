"""The Chapters tab's layout and wiring: a frame for assets/studio-chapters.js, and the take-picker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from studio.ui import picker_layout
from studio.ui.chapters import ChaptersHandlers
from studio.ui.look import html
from studio.ui.markup import tag
from studio.ui.picker import PickerHandlers
from studio.ui.wiring import QUIET

# The script finds the one component that speaks to the server by this; the names of its events stand here in quotes.
BRIDGE = """
window.vxChapters?.attach(element, (data) => trigger('act', data), upload);
"""
ANSWERS = """
window.vxChapters?.listen(element);
"""


@dataclass(frozen=True)
class ChaptersTab:
    """Components of the tab. ``generate`` and ``stop`` stand in for buttons that a picker usually has."""

    top: gr.HTML
    answer: gr.HTML
    said: gr.HTML
    picker: picker_layout.Picker
    generate: gr.Button
    stop: gr.Button


def layout() -> ChaptersTab:
    with gr.Column(elem_id="vx-chapters", elem_classes="vx-room"):
        top = html(_parts("notice", "head", "job", "body"), elem_id="vx-ch-top", js_on_load=BRIDGE)
        with gr.Row(elem_id="vx-ch-review", elem_classes="vx-desk", equal_height=False):
            with gr.Column(scale=6, min_width=320):
                html(_parts("table"), elem_id="vx-ch-table", js_on_load=None)
            with gr.Column(scale=6, min_width=320, elem_classes="vx-stage", elem_id="vx-ch-stage"):
                html(_parts("detail"), elem_id="vx-ch-detail", js_on_load=None)
                picker = picker_layout.layout("chapters")
        answer = html("", elem_id="vx-ch-answer", js_on_load=ANSWERS)
        said = html("", elem_id="vx-ch-said", js_on_load=ANSWERS)
        generate, stop = gr.Button(visible=False), gr.Button(visible=False)
    return ChaptersTab(top, answer, said, picker, generate, stop)


def _parts(*names: str) -> str:
    return "".join(tag("div", data_part=name) for name in names)


def wire(
    handlers: ChaptersHandlers,
    picker: PickerHandlers,
    tab: ChaptersTab,
    owner: gr.BrowserState,
    load: Callable[..., Any],
) -> None:
    """``load`` is the page's load event. What is looked at is kept by the script, in the browser."""
    picker_layout.wire(
        picker, tab.picker, wish=None, fields=[], generate=tab.generate, stop=tab.stop, owner=owner, load=load
    )
    shown = tab.picker.shown(tab.generate, tab.stop)
    tab.top.act(handlers.act, owner, [tab.answer, *shown], **QUIET, trigger_mode="multiple")
    tab.picker.line.change(handlers.picked, [tab.picker.takes, tab.picker.picked, owner], tab.said, **QUIET)

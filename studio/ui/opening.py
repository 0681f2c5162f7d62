"""What happens when the page opens: one question to the server, and one answer for all that is shown first.

Every event that a page runs makes gradio's script go through all components that any event has touched so far, so many
small answers take much longer than a large one. What a tab needs for itself waits until the tab is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from studio.ui.i18n import language_of
from studio.ui.tts import TTSHandlers, new_owner
from studio.ui.tts_layout import TTSTab, arrival
from studio.ui.wiring import QUIET

Said = tuple[gr.HTML, Callable[[str], str]]  # a piece of the page, and its HTML in a language


def wire_opening(
    load: Callable[..., Any],
    tts: TTSHandlers,
    tab: TTSTab,
    kept: gr.BrowserState,
    owner: gr.BrowserState,
    model: list[Any],
    said: Sequence[Said],
) -> None:
    """``said`` is written in English when the page is built, and said again to visitors who read Chinese."""
    inputs, outputs = arrival(tab, kept, owner, model)

    def opened(kept, voice, text, control, known, request: gr.Request) -> tuple[Any, ...]:
        known, language = new_owner(known), language_of(request)
        *arrived, _ = tts.arrive(kept, voice, text, control, known, request)
        preview = tts.form.preview("", "", False, request)
        words = [gr.skip() if language == "en" else say(language) for _, say in said]
        return (*arrived, preview, known, tts.takes.recent(known, request), *words)

    load(opened, inputs, [*outputs, owner, tab.recent, *(piece for piece, _ in said)], **QUIET)


def first_visit(room: gr.Tab) -> tuple[gr.Textbox, gr.Textbox]:
    """Two hidden fields of a tab: the first changes when the tab is opened for the first time, the second when a model
    arrives after that (see :func:`tell_model`)."""
    visited, model = (gr.Textbox("", visible="hidden", show_label=False, container=False) for _ in range(2))
    room.select(None, None, visited, js="() => 'yes'", **QUIET)
    return visited, model


def tell_model(card: gr.HTML, visits: Sequence[tuple[gr.Textbox, gr.Textbox]]) -> None:
    """``card`` changes with the model: tabs that have been opened hear of it, the others will look when they are."""
    visited, models = (list(fields) for fields in zip(*visits, strict=True))
    script = "(...visited) => visited.map((known) => known && String(performance.now()))"
    card.change(None, visited, models, js=script, **QUIET)

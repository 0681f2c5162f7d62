"""The Cloning tab's wiring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from studio.ui import adapter_panel, cloning_markup, markup, picker_layout
from studio.ui.adapter_panel import AdapterHandlers
from studio.ui.cloning import CloningHandlers
from studio.ui.cloning_desk import DeskHandlers
from studio.ui.cloning_layout import CloningTab
from studio.ui.form_layout import wire_settings
from studio.ui.i18n import language_of, say
from studio.ui.picker import PickerHandlers
from studio.ui.takes_list import TELLING
from studio.ui.wiring import QUIET, SETTLE

HEAVY: dict[str, Any] = {"concurrency_limit": 1, "show_progress": "hidden", "api_visibility": "private"}
WORK: dict[str, Any] = {**HEAVY, "concurrency_id": "clips", "concurrency_limit": 2}


def wire(
    handlers: CloningHandlers,
    desk: DeskHandlers,
    picker: PickerHandlers,
    adapters: AdapterHandlers,
    tab: CloningTab,
    owner: gr.BrowserState,
    kept: gr.BrowserState,
    lanes: gr.BrowserState,
    load: Callable[..., Any],
    model_card: gr.Textbox,
    opens: Callable[..., Any],
) -> picker_layout.Ends:
    """``kept`` and ``lanes`` are this tab's memory in the browser. ``load`` tells that the tab is opened for the first
    time, ``model_card`` changes when a model has come after that, and ``opens`` is every opening."""
    ends = picker_layout.wire(
        picker,
        tab.picker,
        wish=handlers.wish,
        fields=tab.fields(owner),
        generate=tab.form.generate,
        stop=tab.form.stop,
        owner=owner,
        load=load,
        lanes=lanes,
        seed=tab.form.seed,
    )
    _wire_desk(desk, tab, owner)
    _wire_words(desk, tab)
    _wire_voices(handlers, tab, owner, opens)
    arrival = {"fn": handlers.arrive, "inputs": kept, "outputs": [tab.form.generate, *tab.form.restored]}
    _wire_form(handlers, tab, kept, model_card, arrival)
    sources = {"fn": handlers.sources, "inputs": tab.source, "outputs": tab.source, **QUIET}
    adapter_panel.wire(adapters, tab.adapter, load, model_card)
    tab.adapter.again.click(**sources)
    said = load(_said, None, [tab.card, tab.preview], **QUIET)
    said = said.then(**sources).then(desk.helpers, None, [tab.transcribe, tab.compare, tab.helpers], **QUIET)
    arranging = {"fn": handlers.arranged, "inputs": [tab.mode, tab.source], "outputs": tab.arranged()}
    said.then(**arrival, **QUIET).then(**arranging, **QUIET)
    return ends


def _wire_desk(desk: DeskHandlers, tab: CloningTab, owner: gr.BrowserState) -> None:
    tab.upload.change(desk.take_in, tab.upload, tab.desk(), **WORK)
    work = [tab.state, tab.clip_hash, tab.transcript]
    for step, button in (("trim", tab.trim), ("level", tab.level), ("denoise", tab.denoise)):
        button.click(_improving(desk, step), work, tab.desk(), **WORK)
    tab.undo.click(desk.undo, tab.state, tab.desk(), **WORK)
    tab.remove.click(desk.emptied, None, tab.desk(), **QUIET)
    saving = [tab.save_name, tab.state, tab.clip_hash, tab.transcript, tab.consent, owner]
    gr.on([tab.save.click, tab.save_name.submit], desk.save, saving, [tab.save_notice, tab.save_name], **QUIET)
    gr.on([tab.upload.change, tab.source.change, tab.remove.click], lambda: "", None, tab.save_notice, **QUIET)


def _improving(desk: DeskHandlers, step: str) -> Callable[..., Any]:
    def improve(state, clip_hash, text, request: gr.Request):
        yield from desk.improve(step, state, clip_hash, text, request)

    return improve


def _wire_words(desk: DeskHandlers, tab: CloningTab) -> None:
    noting = {"fn": desk.note, "inputs": [tab.transcript, tab.state], "outputs": tab.words_note}
    tab.transcript.change(**SETTLE).then(**noting, **QUIET, trigger_mode="always_last")
    heard = tab.transcribe.click(
        desk.transcribe, [tab.state, tab.clip_hash], [tab.heard, tab.notice, tab.transcribe], **HEAVY
    )
    shown = [tab.state, tab.transcript, tab.words_note, tab.notice]
    heard.then(desk.heard, [tab.heard, tab.state], shown, **QUIET)
    compared = tab.compare.click(
        desk.transcribe, [tab.state, tab.clip_hash], [tab.heard, tab.notice, tab.compare], **HEAVY
    )
    words = [tab.heard, tab.transcript, tab.state]
    compared.then(desk.compared, words, [tab.state, tab.words_note, tab.notice], **QUIET)


def _wire_voices(handlers: CloningHandlers, tab: CloningTab, owner: gr.BrowserState, opens: Callable[..., Any]) -> None:
    listing = {"fn": handlers.voices, "inputs": [tab.voice, owner], "outputs": tab.voice}
    opens(**listing, **TELLING)
    tab.source.change(**listing, **TELLING)
    # Consent was given for one voice: another one is asked for again.
    gr.on([tab.voice.input, tab.source.input, tab.adapter.name.input], lambda: False, None, tab.consent, **QUIET)
    noting = {"fn": handlers.voice_note, "inputs": [tab.mode, tab.voice, owner], "outputs": tab.voice_note}
    gr.on([tab.voice.change, tab.mode.change, tab.source.change], **noting, **QUIET)


def _wire_form(
    handlers: CloningHandlers, tab: CloningTab, kept: gr.BrowserState, model_card: gr.Textbox, arrival: dict[str, Any]
) -> None:
    wire_settings(handlers.form, tab.form, kept)
    normalize = tab.form.fields[-2]
    preview = {
        "fn": handlers.preview,
        "inputs": [tab.mode, tab.source, tab.control, tab.text, normalize],
        "outputs": tab.preview,
    }
    changes = [tab.text.change, tab.control.change, normalize.change, tab.mode.change, tab.source.change]
    gr.on(changes, **SETTLE).then(**preview, **QUIET, trigger_mode="always_last")
    arranging = {"fn": handlers.arranged, "inputs": [tab.mode, tab.source], "outputs": tab.arranged()}
    gr.on([tab.mode.change, tab.source.change], **arranging, **QUIET)
    come = model_card.change(**SETTLE).then(**arrival, **QUIET).then(**arranging, **QUIET)
    come.then(**preview, **QUIET, trigger_mode="always_last")


def wire_reuse(
    handlers: CloningHandlers,
    tab: CloningTab,
    owner: gr.BrowserState,
    events: Sequence[Callable[..., Any]],
    tabs: gr.Tabs,
) -> None:
    """``events`` are lists' events that name a take to put back into its form."""
    for event in events:
        fields = [tab.mode, tab.source, tab.control, tab.text, *tab.form.fields, *tab.adapter.form, tabs]
        event(handlers.reuse, owner, fields, **TELLING)


def _said(request: gr.Request) -> tuple[Any, Any]:
    language = language_of(request)
    if language == "en":
        return gr.skip(), gr.skip()
    return cloning_markup.empty(language), markup.preview_message(say(language, "preview_empty"), language)

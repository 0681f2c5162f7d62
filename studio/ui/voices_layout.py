"""The Voices tab's layout and wiring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from studio.ui import voices_markup
from studio.ui.history_layout import QUIET
from studio.ui.i18n import label
from studio.ui.look import html
from studio.ui.takes_list import TELLING, clicks
from studio.ui.voices import VoicesHandlers


@dataclass(frozen=True)
class VoicesTab:
    """Components of the tab."""

    query: gr.Textbox
    importer: gr.UploadButton
    export: gr.HTML
    notice: gr.HTML
    tags: gr.HTML
    found: gr.HTML
    cards: gr.HTML
    detail: gr.HTML
    tools: gr.Column
    unsupported: gr.HTML
    text: gr.Textbox
    speak: gr.Button
    stop: gr.Button
    live: gr.Audio
    trial: gr.HTML
    name: gr.Textbox
    new_tags: gr.Textbox
    save: gr.Button
    fetch: gr.HTML
    open_id: gr.Textbox
    chosen: gr.State
    job: gr.State
    deleted: gr.State


def layout() -> VoicesTab:
    chosen, job, deleted = gr.State(""), gr.State(None), gr.State("")
    open_id = gr.Textbox("", visible="hidden", show_label=False, container=False)
    with gr.Column(elem_classes="vx-room"):
        with gr.Row(elem_classes="vx-searchbar", equal_height=True):
            query = gr.Textbox(
                label=label("voice_search"),
                placeholder=label("voice_search_hint"),
                elem_id="vx-voice-search",
                max_lines=1,
                scale=3,
            )
            with gr.Row(elem_classes="vx-bundles"):
                importer = gr.UploadButton(
                    label("voice_import"),
                    file_types=[".zip"],
                    size="sm",
                    elem_id="vx-voice-import",
                    elem_classes="ib ib-upload",
                )
                export = html(voices_markup.bundle_bar("en"), elem_id="vx-voice-export", js_on_load=clicks("export"))
        notice = html("", elem_id="vx-voices-notice", js_on_load=clicks("undo"))
        with gr.Row(elem_classes="vx-tagbar"):
            tags = html("", elem_id="vx-voice-tags", js_on_load=clicks("tag"))
            found = html("", elem_id="vx-voice-found")
        with gr.Row(elem_classes="vx-library", equal_height=False):
            with gr.Column(scale=7, min_width=320):
                cards = html(voices_markup.empty("en"), elem_id="vx-voices", js_on_load=clicks("show"))
            with gr.Column(scale=5, min_width=320, elem_classes="vx-inspector"):
                inspector = _inspector()
        fetch = html("", elem_id="vx-voice-fetch")
    return VoicesTab(
        query, importer, export, notice, tags, found, cards, *inspector, fetch, open_id, chosen, job, deleted
    )


def _inspector() -> tuple[Any, ...]:
    detail = html(
        voices_markup.none_open("en"), elem_id="vx-voice-detail", js_on_load=clicks("use", "export_one", "remove")
    )
    with gr.Column(visible=False, elem_classes="vx-detail-tools") as tools:
        unsupported = html("", elem_id="vx-voice-unsupported")
        text = gr.Textbox(
            "",
            label=label("voice_try"),
            placeholder=label("voice_try_hint"),
            lines=2,
            max_lines=6,
            elem_id="vx-try-text",
        )
        with gr.Row(elem_classes="vx-actions vx-try"):
            speak = gr.Button(
                label("voice_speak"), variant="primary", elem_id="vx-try", elem_classes="ib ib-play vx-go", scale=3
            )
            stop = gr.Button(
                label("stop"),
                variant="stop",
                interactive=False,
                elem_id="vx-try-stop",
                elem_classes="ib ib-square vx-halt",
                scale=1,
            )
        trial = html("", elem_id="vx-trial", js_on_load=clicks("reuse"))
        live = gr.Audio(
            label=label("live_player"),
            streaming=True,
            autoplay=True,
            interactive=False,
            elem_id="vx-try-live",
            buttons=[],
        )
        with gr.Accordion(label("voice_edit"), open=False, elem_id="vx-voice-edit", elem_classes="vx-folded"):
            name = gr.Textbox(
                "", label=label("voice_field_name"), max_lines=1, max_length=80, elem_id="vx-voice-rename"
            )
            new_tags = gr.Textbox(
                "", label=label("voice_tags"), info=label("voice_tags_info"), max_lines=1, elem_id="vx-voice-newtags"
            )
            save = gr.Button(label("voice_edit_save"), size="sm", elem_id="vx-voice-save")
    return detail, tools, unsupported, text, speak, stop, live, trial, name, new_tags, save


def wire(handlers: VoicesHandlers, tab: VoicesTab, owner: gr.BrowserState, room: gr.Tab, speakers: int) -> None:
    """``room`` is the tab in the page: the list is made when it opens. ``speakers`` may speak at once."""
    listed = {
        "fn": handlers.listed,
        "inputs": [tab.query, tab.chosen, owner],
        "outputs": [tab.cards, tab.tags, tab.found],
        **QUIET,
    }
    room.select(**listed)
    tab.query.change(**listed, trigger_mode="always_last")
    tab.tags.tag(handlers.choose_tag, None, tab.chosen, **QUIET).then(**listed)

    opened = [
        tab.detail, tab.tools, tab.open_id, tab.name, tab.new_tags, tab.text, tab.trial, tab.speak, tab.unsupported,
    ]  # fmt: skip
    tab.cards.show(handlers.show, owner, opened, **TELLING)
    edited = [tab.open_id, tab.name, tab.new_tags, owner]
    saved = gr.on([tab.save.click, tab.name.submit, tab.new_tags.submit], handlers.save, edited, opened, **TELLING)
    removed = tab.detail.remove(handlers.remove, owner, [tab.notice, tab.deleted], **QUIET)
    closed = removed.then(handlers.closed, None, opened, **QUIET)
    undone = tab.notice.undo(handlers.undo, [tab.deleted, owner], [tab.notice, tab.deleted], **QUIET)
    imported = tab.importer.upload(handlers.take_in, [tab.importer, owner], tab.notice, **QUIET)
    for export in (tab.export.export, tab.detail.export_one):
        export(handlers.export, owner, tab.fetch, **TELLING)
    _wire_trial(handlers, tab, owner, speakers)
    for event in (saved, closed, undone, imported):
        event.then(**listed)


def _wire_trial(handlers: VoicesHandlers, tab: VoicesTab, owner: gr.BrowserState, speakers: int) -> None:
    tab.speak.click(
        handlers.speak,
        [tab.open_id, tab.text, owner],
        [tab.live, tab.trial, tab.job, tab.speak, tab.stop],
        concurrency_limit=speakers,
        concurrency_id="speak",
        show_progress="hidden",
        api_visibility="private",
    )
    tab.stop.click(handlers.stop, tab.job, tab.stop, **QUIET)

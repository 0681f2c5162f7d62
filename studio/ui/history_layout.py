"""The History tab's layout and wiring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from studio.ui import history_markup
from studio.ui.history import HistoryHandlers
from studio.ui.i18n import label
from studio.ui.look import html
from studio.ui.replay import ReplayHandlers
from studio.ui.takes_list import TELLING, clicks

QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}

# A changed filter comes to Python as one event with all of them.
FILTER_EVENTS = """
const fields = () => [...element.querySelectorAll('[name]')];
const tell = () => trigger('filter', Object.fromEntries(
  fields().map((field) => [field.name, field.type === 'checkbox' ? field.checked : field.value])));
element.addEventListener('change', tell);
element.addEventListener('click', (event) => {
  if (!event.target.closest('[data-do=clear]')) return;
  for (const field of fields()) { field.value = field.type === 'checkbox' ? field.value : ''; field.checked = false; }
  tell();
});
"""


@dataclass(frozen=True)
class HistoryTab:
    """Components of the tab."""

    query: gr.Textbox
    filters: gr.HTML
    notice: gr.HTML
    compare: gr.HTML
    bar: gr.HTML
    lanes: gr.HTML
    seeds: gr.HTML
    detail: gr.HTML
    tools: gr.Column
    note: gr.Textbox
    voice_name: gr.Textbox
    save_voice: gr.Button
    replay: gr.HTML
    fetch: gr.HTML
    open_id: gr.Textbox
    wish: gr.State
    page: gr.State
    deleted: gr.State


def layout() -> HistoryTab:
    wish, page, deleted = gr.State({}), gr.State(1), gr.State([])
    # Not a State: a note is kept for the take that was open when it was written.
    open_id = gr.Textbox("", visible="hidden", show_label=False, container=False)
    with gr.Column(elem_classes="vx-room"):
        with gr.Row(elem_classes="vx-searchbar", equal_height=True):
            query = gr.Textbox(
                label=label("search"), placeholder=label("search_hint"), elem_id="vx-search", max_lines=1, scale=2
            )
            filters = html("", elem_id="vx-filters", js_on_load=FILTER_EVENTS, scale=3)
        notice = html("", elem_id="vx-history-notice", js_on_load=clicks("undo"))
        compare = html("", elem_id="vx-compare", js_on_load=clicks("close"))
        bar = html("", elem_id="vx-history-bar", js_on_load=clicks("turn", "compare", "bundle", "remove"))
        with gr.Row(elem_classes="vx-library", equal_height=False):
            with gr.Column(scale=7, min_width=320):
                lanes = html("", elem_id="vx-history", js_on_load=clicks("reuse", "star", "show"))
                seeds = html("", elem_id="vx-seeds", js_on_load=clicks("use_seed"))
            with gr.Column(scale=5, min_width=320, elem_classes="vx-inspector"):
                inspector = _inspector()
        fetch = html("", elem_id="vx-fetch")
    return HistoryTab(
        query, filters, notice, compare, bar, lanes, seeds, *inspector, fetch, open_id, wish, page, deleted
    )


def _inspector() -> tuple[Any, ...]:
    replay = html("", elem_id="vx-replay", js_on_load=clicks("replay", "compare_two"))
    detail = html(
        history_markup.nothing_open("en"),
        elem_id="vx-detail",
        js_on_load=clicks("replay", "reuse", "rate", "remove_one"),
    )
    with gr.Column(visible=False, elem_classes="vx-detail-tools") as tools:
        note = gr.Textbox(
            "",
            label=label("take_note"),
            placeholder=label("take_note_hint"),
            lines=1,
            max_lines=5,
            max_length=2000,
            elem_id="vx-note",
        )
        with gr.Row(elem_classes="vx-inline"):
            name = gr.Textbox(
                "",
                label=label("save_voice_name"),
                placeholder=label("save_voice_hint"),
                max_lines=1,
                max_length=80,
                elem_id="vx-voice-name",
            )
            save = gr.Button(label("save_voice"), size="sm", elem_id="vx-save-voice", elem_classes="ib ib-voice")
    return detail, tools, note, name, save, replay


def wire(
    handlers: HistoryHandlers, replays: ReplayHandlers, tab: HistoryTab, owner: gr.BrowserState, room: gr.Tab
) -> None:
    """``room`` is the tab in the page: the list is made when it opens."""
    asked, shown = [tab.query, tab.wish, tab.page, owner], [tab.lanes, tab.bar, tab.filters, tab.seeds]
    listed = {"fn": handlers.listed, "inputs": asked, "outputs": shown, **QUIET}
    narrowed = {**listed, "fn": handlers.narrowed}
    room.select(**listed)
    tab.query.change(lambda: 1, None, tab.page, **QUIET).then(**narrowed, trigger_mode="always_last")
    tab.filters.filter(handlers.choose, None, [tab.wish, tab.page], **QUIET).then(**narrowed)
    tab.bar.turn(handlers.turn, None, tab.page, **QUIET).then(**narrowed)

    opened = [tab.detail, tab.tools, tab.open_id, tab.note, tab.replay]
    tab.lanes.show(handlers.show, owner, opened, **TELLING)
    tab.lanes.star(handlers.star, owner, None, **TELLING)
    tab.detail.rate(handlers.rate, owner, None, **TELLING)
    tab.note.blur(handlers.note, [tab.open_id, tab.note, owner], None, **TELLING)

    for compare in (tab.bar.compare, tab.replay.compare_two):
        compare(handlers.compare, owner, tab.compare, **TELLING)
    tab.compare.close(lambda: "", None, tab.compare, **QUIET)
    tab.bar.bundle(handlers.bundle, owner, tab.fetch, **TELLING)
    tab.bar.remove(handlers.remove, owner, [tab.notice, tab.deleted], **TELLING).then(**listed)
    removed = tab.detail.remove_one(handlers.remove, owner, [tab.notice, tab.deleted], **TELLING)
    removed.then(handlers.closed, None, opened, **QUIET).then(**listed)
    tab.notice.undo(handlers.undo, [tab.deleted, owner], [tab.notice, tab.deleted], **TELLING).then(**listed)

    working = {
        "concurrency_limit": 2,
        "concurrency_id": "replay",
        "show_progress": "hidden",
        "api_visibility": "private",
    }
    for replay in (tab.detail.replay, tab.replay.replay):
        replay(replays.replay, owner, tab.replay, **working).then(**listed)
    naming = [tab.open_id, tab.voice_name, owner]
    gr.on([tab.save_voice.click, tab.voice_name.submit], handlers.save_voice, naming, tab.voice_name, **TELLING)

"""Lists of stored takes: the recent ones below the work, and the history with search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from studio.store import StoreError
from studio.ui import markup, take_markup
from studio.ui.context import Context
from studio.ui.i18n import label, language_of, say
from studio.ui.look import html

RECENT = 6
PAGE = 20

# Clicks on a lane's own buttons come to Python as one event that names the take; playing stays in the browser.
LANE_EVENTS = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-act="reuse"]');
  if (button) trigger('click', { take: button.dataset.id });
});
"""


class TakesHandlers:
    """What the lists show. A visitor's id comes in as an argument; nothing is kept here."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def recent(self, owner: str | None, request: gr.Request) -> str:
        language = language_of(request)
        try:
            records = self._context.store.takes(limit=RECENT, session=self._context.visible(owner, request))
        except StoreError as error:
            return markup.notice("error", str(error))
        return take_markup.lanes(records, self._context.media, language, say(language, "recent_empty"))

    def search(self, query: str, pages: int, owner: str | None, request: gr.Request) -> tuple[str, str, Any]:
        """The list, how many there are, and whether there are more."""
        language, query = language_of(request), (query or "").strip()
        store, session = self._context.store, self._context.visible(owner, request)
        try:
            records = store.takes(limit=PAGE * pages, query=query, session=session)
            count = store.count(query, session=session)
        except StoreError as error:
            return markup.notice("error", str(error)), "", gr.update(visible=False)
        empty = say(language, "found_none" if query else "recent_empty")
        found = say(language, "found", shown=len(records), count=count) if count else ""
        lanes = take_markup.lanes(records, self._context.media, language, empty)
        return lanes, f'<p class="vx-found vx-num">{found}</p>', gr.update(visible=count > len(records))


@dataclass(frozen=True)
class History:
    """Components of the history tab."""

    query: gr.Textbox
    found: gr.HTML
    lanes: gr.HTML
    more: gr.Button
    pages: gr.State


def lanes_component(elem_id: str) -> gr.HTML:
    return html("", elem_id=elem_id, js_on_load=LANE_EVENTS)


def history_layout() -> History:
    with gr.Row(elem_classes="vx-searchbar", equal_height=True):
        query = gr.Textbox(
            label=label("search"), placeholder=label("search_hint"), elem_id="vx-search", max_lines=1, scale=3
        )
        found = html("")
    lanes = lanes_component("vx-history")
    more = gr.Button(label("more"), size="sm", visible=False, elem_id="vx-more")
    return History(query, found, lanes, more, gr.State(1))


def wire_history(handlers: TakesHandlers, history: History, owner: gr.BrowserState, tab: gr.Tab) -> None:
    inputs = [history.query, history.pages, owner]
    outputs = [history.lanes, history.found, history.more]
    quiet: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
    tab.select(handlers.search, inputs, outputs, **quiet)
    history.query.change(lambda: 1, None, history.pages, **quiet).then(
        handlers.search, inputs, outputs, trigger_mode="always_last", **quiet
    )
    history.more.click(lambda pages: pages + 1, history.pages, history.pages, **quiet).then(
        handlers.search, inputs, outputs, **quiet
    )

"""Lists of stored takes: the recent ones below the work, and what all lists have in common."""

from __future__ import annotations

import json
from html import escape
from typing import Any

import gradio as gr

from studio.store import StoreError
from studio.ui import markup, take_markup
from studio.ui.context import Context
from studio.ui.i18n import language_of, say
from studio.ui.look import html

RECENT = 6
# For events that may have a sentence for the visitor: what pops up travels through the queue only.
TELLING: dict[str, Any] = {"concurrency_limit": None, "show_progress": "hidden", "api_visibility": "private"}
OTHER_TABS = frozenset({"design", "cloning"})  # tabs that fill their own form when a take of theirs is reused


def clicks(*names: str) -> str:
    """Script of an HTML component: a click on ``[data-do=name]`` becomes the component's event ``name``.

    The event carries the element's data, and in ``takes`` and ``voices`` the ids that are ticked (assets/studio-*.js).
    """
    return f"""
const names = {json.dumps(names)};
element.addEventListener('click', (event) => {{
  const button = event.target.closest('[data-do]');
  if (!button || button.disabled || !names.includes(button.dataset.do)) return;
  const ticked = {{ takes: window.vx?.ticked?.() ?? [], voices: window.vx?.tickedVoices?.() ?? [] }};
  trigger(button.dataset.do, {{ ...button.dataset, take: button.dataset.takeId, ...ticked }});
}});
"""


def sent(event: gr.EventData, name: str = "take") -> str:
    """What the pressed element says under ``name``; "" when it says nothing."""
    data = event._data if isinstance(event._data, dict) else {}
    return str(data.get(name) or "")


def warn(sentence: str) -> None:
    """Pops up. gradio takes it for HTML."""
    gr.Warning(escape(sentence, quote=False))


def tell(sentence: str) -> None:
    gr.Info(escape(sentence, quote=False), duration=3)


class TakesHandlers:
    """What the list of recent takes shows. A visitor's id comes in as an argument; nothing is kept here."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def recent(self, owner: str | None, request: gr.Request) -> str:
        language = language_of(request)
        try:
            records = self._context.store.takes(limit=RECENT, session=self._context.visible(owner, request))
            records = [record for record in records if record.id not in self._context.blind]
        except StoreError as error:
            return markup.notice("error", str(error))
        return take_markup.lanes(records, self._context.media, language, say(language, "recent_empty"))


def lanes_component(elem_id: str) -> gr.HTML:
    """A list whose takes can be put back into the form: its event ``reuse``."""
    return html("", elem_id=elem_id, js_on_load=clicks("reuse"))

"""What the Chapters tab does: one door for everything that is pressed in it. The rooms behind it are its desks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import gradio as gr

from studio.ui.chapters_ask import Answer, Ask, told
from studio.ui.chapters_cast import CastDesk
from studio.ui.chapters_desk import Desk
from studio.ui.chapters_export import ExportDesk
from studio.ui.chapters_import import ImportDesk
from studio.ui.chapters_render import RenderDesk
from studio.ui.chapters_review import ReviewDesk
from studio.ui.chapters_shelf import ShelfDesk
from studio.ui.chapters_text import TextDesk
from studio.ui.context import Context
from studio.ui.i18n import language_of
from studio.ui.picker import PickerHandlers
from studio.ui.picker_run import Message
from voxcpm_core.errors import VoxCPMError

logger = logging.getLogger(__name__)

BY_ITSELF = ("poll", "picked", "review.rows")  # asked by the page: a sentence that stands there stays


class ChaptersHandlers:
    """Holds objects of the process only; whose browser asks comes in with each event."""

    def __init__(self, context: Context, picker: PickerHandlers) -> None:
        self._context, self._picker = context, picker
        desk = Desk(context)
        steps = {
            "text": TextDesk(desk),
            "cast": CastDesk(desk),
            "render": RenderDesk(desk),
            "review": ReviewDesk(desk),
            "export": ExportDesk(desk),
        }
        self.actions: dict[str, Callable[[Ask], Answer]] = {}
        for one in (ShelfDesk(desk, steps), ImportDesk(desk), *steps.values()):
            self.actions |= one.actions

    def act(self, owner: str | None, event: gr.EventData, request: gr.Request) -> tuple[Any, ...]:
        """Answer a press: the answer's HTML, and what the take-picker shows."""
        sent = event._data if isinstance(event._data, dict) else {}
        ask = Ask(
            str(sent.get("do", "")),
            _table(sent.get("data")),
            _table(sent.get("view")),
            language_of(request),
            self._context.session(owner, request),
            self._context.visible(owner, request),
        )
        answer = self.answer(ask)
        shown = Message().values()
        if answer.takes is not None:
            shown = self._picker.show(*answer.takes, owner, request)
        return answer.html(str(sent.get("serial", ""))), *shown

    def answer(self, ask: Ask) -> Answer:
        """What :meth:`act` does, without the page: whatever goes wrong is a sentence."""
        action = self.actions.get(ask.do)
        if action is None:
            return told("error", ask.say("trouble"))
        try:
            answer = action(ask)
        except VoxCPMError as error:  # BookError and StoreError are some
            return told("error", str(error))
        except Exception:
            logger.exception("%s failed", ask.do)
            return told("error", ask.say("trouble"))
        if ask.do not in BY_ITSELF:
            answer.parts.setdefault("notice", "")
        return answer

    def picked(self, takes: list[str], picked: int | None, owner: str | None, request: gr.Request) -> str:
        """A lane was picked with 1, 2, 3 or its button: its take stands for its segment from now on."""
        language = language_of(request)
        take = takes[picked] if picked is not None else ""
        session, seen = self._context.session(owner, request), self._context.visible(owner, request)
        ask = Ask("picked", {"take": take}, {}, language, session, seen)
        let_go = Answer(more={"next": "review.lanes"} if any(takes) else {})
        return (self.answer(ask) if take else let_go).html("")


def _table(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}

"""Making a take again: first what stands against it, then the work, then whether the sound is the same."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import closing

import gradio as gr

from studio.events import Progress, Reason, Replayed
from studio.ui import history_compare, markup
from studio.ui.context import Context
from studio.ui.i18n import WORDS, language_of, say
from studio.ui.takes_list import sent
from voxcpm_core.errors import VoxCPMError

logger = logging.getLogger(__name__)

PAGE_INTERVAL = 0.25  # seconds between two messages to the page


class ReplayHandlers:
    def __init__(self, context: Context) -> None:
        self._context = context

    def replay(self, owner: str | None, event: gr.EventData, request: gr.Request) -> Iterator[str]:
        """What is missing or changed is said before anything is made; with ``anyway`` what can be tried is tried."""
        language = language_of(request)
        try:
            yield from self._replayed(sent(event), sent(event, "anyway") == "1", owner, request)
        except VoxCPMError as error:
            yield markup.notice("error", str(error))
        except Exception:
            logger.exception("a replay failed")
            yield markup.notice("error", say(language, "trouble"))

    def _replayed(self, take_id: str, anyway: bool, owner: str | None, request: gr.Request) -> Iterator[str]:
        language, session = language_of(request), self._context.session(owner, request)
        synthesizer = self._context.synthesizer
        reasons = synthesizer.replay_reasons(take_id, session)
        blocked = any(reason.blocks for reason in reasons)
        if blocked or (reasons and not anyway):
            yield history_compare.replay_stopped(told(reasons, language), not blocked, take_id, language)
            return
        yield history_compare.replay_running(0.0, language)
        last = time.monotonic()
        with closing(synthesizer.replay(take_id, session)) as events:
            for event in events:
                if isinstance(event, Progress) and time.monotonic() - last >= PAGE_INTERVAL:
                    last = time.monotonic()
                    yield history_compare.replay_running(event.seconds, language)
                elif isinstance(event, Replayed):
                    yield history_compare.replay_result(event, told(event.reasons, language), language)


def told(reasons: Sequence[Reason], language: str) -> list[str]:
    """The reasons as sentences of the visitor's language."""
    return [_told(reason, language) for reason in reasons]


def _told(reason: Reason, language: str) -> str:
    key = f"reason_{reason.what}_{reason.state}"
    if language == "en" or key not in WORDS:
        return reason.sentence
    return say(language, key, **reason.facts)

"""The list of saved voices in a form, and what chooses one from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from studio.store import StoreError
from studio.ui.context import Context
from studio.ui.i18n import label, language_of, say
from studio.ui.settings import is_seed
from studio.ui.takes_list import TELLING, sent, tell, warn
from studio.ui.wiring import QUIET

KEEP: Any = gr.skip()


def chooser(elem_id: str) -> gr.Dropdown:
    """Empty and hidden until :meth:`VoiceChooser.listed` fills it for a model that can use it. "" is no voice."""
    field = gr.Dropdown([""], value="", label=label("voice"), info=label("voice_info"), visible=False, elem_id=elem_id)
    field.preprocess = lambda payload: payload  # a voice may be gone since it was listed: we say so ourselves
    return field


class VoiceChooser:
    def __init__(self, context: Context) -> None:
        self._context = context

    def listed(self, chosen: str | None, owner: str | None, request: gr.Request) -> dict[str, Any]:
        """The voice chooser: the visitor's voices as they are now; what is chosen stays chosen while it is there."""
        offered = [(say(language_of(request), "voice_default"), "")]
        try:
            names = self._context.voice_names(owner, request)
        except StoreError as error:
            warn(str(error))
            names = {}
        offered += [(name, voice_id) for voice_id, name in names.items()]
        shown = self._context.synthesizer.status.supports_reference
        return gr.update(choices=offered, value=chosen if shown and chosen in names else "", visible=shown)

    def reused(self, voice: str, owner: str | None, request: gr.Request) -> dict[str, Any]:
        """The voice of a take that is put back into the form; says why when it cannot be chosen."""
        chooser, status = self.listed(voice, owner, request), self._context.synthesizer.status
        if voice and chooser["value"] != voice:
            why = "voice_gone" if chooser["visible"] else "voice_unsupported"
            warn(say(language_of(request), why, **({} if chooser["visible"] else {"generation": status.generation})))
        return chooser

    def use(self, owner: str | None, event: gr.EventData, request: gr.Request) -> tuple[Any, Any]:
        """A voice that somebody wants to hear here, and this tab."""
        return self.listed(sent(event, "voice"), owner, request), gr.update(selected="tts")

    def use_seed(self, owner: str | None, event: gr.EventData, request: gr.Request) -> tuple[Any, Any, Any]:
        """A seed that did well, with its voice, and this tab."""
        seed = sent(event, "seed")
        if not is_seed(seed):
            return KEEP, KEEP, KEEP
        tell(say(language_of(request), "seeds_used", seed=seed))
        return seed, *self.use(owner, event, request)


def wire(
    handlers: VoiceChooser,
    field: gr.Dropdown,
    seed: gr.Textbox,
    owner: gr.BrowserState,
    tabs: gr.Tabs,
    used: Callable[..., Any],
    seed_used: Callable[..., Any],
) -> None:
    """``used`` and ``seed_used`` are events that choose a voice in ``field``."""
    used(handlers.use, owner, [field, tabs], **QUIET)
    seed_used(handlers.use_seed, owner, [seed, field, tabs], **TELLING)

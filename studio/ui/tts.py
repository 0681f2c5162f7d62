"""What the text-to-speech tab does: plain functions from what the visitor set to what the page shows.

The takes themselves are the picker's (:mod:`studio.ui.picker`), the settings the form's (:mod:`studio.ui.form`); here
are the model, the request and what fills the form from elsewhere.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, NamedTuple

import gradio as gr

from studio.store import StoreError
from studio.ui import markup
from studio.ui.context import Context
from studio.ui.form import KEEP, Form, FormHandlers, Restored, speech_request, takes_of
from studio.ui.i18n import language_of, say
from studio.ui.picker import Wish
from studio.ui.settings import parse_seed
from studio.ui.takes_list import OTHER_TABS, TakesHandlers, sent, tell, warn
from studio.ui.voices_chooser import VoiceChooser


class ModelShown(NamedTuple):
    """What the page shows about the model, and what follows from it for the form."""

    card: Any = KEEP
    retry: Any = KEEP
    timer: Any = KEEP
    generate: Any = KEEP
    control: Any = KEEP
    control_note: Any = KEEP


@dataclass(frozen=True)
class TTSForm:
    """The form's values, in the order of its fields."""

    text: str
    control: str
    voice: str | None
    takes: int
    cfg_value: float
    inference_timesteps: float
    temperature: float
    normalize: bool
    seed: str

    def wish(self) -> Wish:
        """Raises SettingError for what cannot be made."""
        settings = self.cfg_value, self.inference_timesteps, self.temperature, self.normalize
        request = speech_request(self.text, self.control, *settings)
        options = {"voice_id": self.voice or ""}
        return Wish(request, takes=takes_of(self.takes), seed=parse_seed(self.seed), options=options)


class TTSHandlers:
    """The tab's events. Holds objects of the process only; everything about a visitor comes in as arguments."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._synthesizer = context.synthesizer
        self.form = FormHandlers(context, takes=1)
        self.takes = TakesHandlers(context)

    def wish(self, *values: Any) -> Wish:
        """For the picker: the fields' values as a request."""
        return TTSForm(*values).wish()

    def model(self, request: gr.Request) -> ModelShown:
        """The model's state for a page that has just opened or asks again."""
        language, status = language_of(request), self._synthesizer.status
        card = markup.model_card(status, language)
        if status.state == "loading":
            return ModelShown(card, gr.update(visible=False), gr.update(active=True), gr.update(interactive=False))
        if status.state == "failed":
            return ModelShown(card, gr.update(visible=True), gr.update(active=False), gr.update(interactive=False))
        note = "" if status.supports_control else markup.control_missing(status.generation, language)
        return ModelShown(
            card,
            retry=gr.update(visible=False),
            timer=gr.update(active=False),
            generate=gr.update(interactive=True),
            control=gr.update(visible=status.supports_control, **({} if status.supports_control else {"value": ""})),
            control_note=gr.update(visible=not status.supports_control, value=note),
        )

    def arrive(
        self, kept: object, voice: str | None, text: str, control: str, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """The model, and with it the settings that this browser used last with it (else the model's own), the voices,
        and what the model makes of a text that is there already.

        One answer for all, so that nobody can type into a form that is about to be filled.
        """
        status = self._synthesizer.status
        if status.state != "ready":
            return (*self.model(request), *Restored(), KEEP, KEEP)
        restored, voices = self.form.restored(kept, request), VoiceChooser(self._context).listed(voice, owner, request)
        control = control if status.supports_control else ""
        typed = (text or "").strip()
        preview = self.form.preview(text, control, restored.normalize, request) if typed else KEEP
        return (*self.model(request), *restored, voices, preview)

    def revisited(self, voice: str | None, owner: str | None, request: gr.Request) -> tuple[Any, Any]:
        """Voices and recent takes when the tab is opened again: they may have been changed elsewhere.

        The first tab opens before the browser has told who it is; then both come with the rest.
        """
        if not owner:
            return KEEP, KEEP
        return VoiceChooser(self._context).listed(voice, owner, request), self.takes.recent(owner, request)

    def retry(self, request: gr.Request) -> ModelShown:
        """Load again after a failure."""
        self._synthesizer.load()
        return self.model(request)

    def reuse(self, owner: str | None, event: gr.EventData, request: gr.Request) -> tuple[Any, ...]:
        """Text, control, voice and settings of a take in a list, for the form; None of it when the take is gone."""
        language, nothing = language_of(request), (KEEP, KEEP, *Form(), KEEP, KEEP)
        try:
            record = self._context.take(sent(event), owner, request)
        except StoreError:
            warn(say(language, "take_gone"))
            return nothing
        if record.tab in OTHER_TABS:  # it fills its own form
            return nothing
        tell(say(language, "reused"))
        voice = VoiceChooser(self._context).reused(record.voice, owner, request)
        return (record.typed_text, record.typed_control, *Form.of_take(record), voice, gr.update(selected="tts"))


def new_owner(owner: str | None) -> str:
    """The id that a browser keeps: its own, or a new one that nobody can guess."""
    return owner if isinstance(owner, str) and len(owner) == 32 else uuid.uuid4().hex

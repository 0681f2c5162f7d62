"""What the text-to-speech tab does: plain functions from what the visitor set to what the page shows.

Layout and wiring are in :mod:`studio.ui.tts_layout`; nothing here needs a running server.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import gradio as gr

from studio.events import Chunk, Event, Finished, Progress, Started
from studio.store import StoreError
from studio.takes import TakeRecord
from studio.ui import markup, take_markup
from studio.ui.context import Context
from studio.ui.i18n import language_of, say
from studio.ui.media import join_wavs, levels, thinned
from studio.ui.settings import (
    SettingError,
    Settings,
    check_length,
    default_settings,
    parse_seed,
    remember,
    remembered,
    summary,
)
from studio.ui.takes_list import OTHER_TABS, sent, tell, warn
from studio.ui.tickets import Tickets
from studio.ui.voices_chooser import VoiceChooser
from voxcpm_core import SpeechRequest
from voxcpm_core.errors import VoxCPMError

logger = logging.getLogger(__name__)

PAGE_INTERVAL = 0.15  # seconds between two messages to a page; audio that is made faster than that travels together
FIRST_SOUND = 0.2  # seconds of audio before the first message: less makes no whole frame of the stream
KEEP: Any = gr.skip()  # leave a component as it is


class Shown(NamedTuple):
    """One message to the page while a take is made. What is not given stays as it is."""

    live: Any = KEEP  # 16-bit WAV bytes for the streaming player
    status: Any = KEEP
    notice: Any = KEEP
    take: Any = KEEP
    job: Any = KEEP  # id of the running job, for Stop
    take_id: Any = KEEP  # id of the take that is shown
    generate: Any = KEEP
    stop: Any = KEEP
    again: Any = KEEP  # the row with "Pin seed" and "Re-roll"


class Waiting(NamedTuple):
    """What a click on Generate, Re-roll or Stop changes at once."""

    status: Any = KEEP
    notice: Any = KEEP
    job: Any = KEEP
    generate: Any = KEEP
    stop: Any = KEEP
    ticket: Any = KEEP


class Form(NamedTuple):
    """The settings as values of the form's fields, in the order that they have there."""

    cfg_value: Any = KEEP
    inference_timesteps: Any = KEEP
    temperature: Any = KEEP
    normalize: Any = KEEP
    seed: Any = KEEP

    @classmethod
    def of(cls, settings: Settings) -> Form:
        return cls(
            settings.cfg_value,
            settings.inference_timesteps,
            settings.temperature,
            settings.normalize,
            settings.seed,
        )


class ModelShown(NamedTuple):
    """What the page shows about the model, and what follows from it for the form."""

    card: Any = KEEP
    retry: Any = KEEP
    timer: Any = KEEP
    generate: Any = KEEP
    control: Any = KEEP
    control_note: Any = KEEP


class Speaking:
    """One run of the tab: turns the synthesizer's events into messages to the page."""

    def __init__(self, context: Context, language: str, expected: float) -> None:
        self._context = context
        self._language = language
        self._expected = expected
        self._seed = 0
        self._pieces: list[bytes] = []
        self._progress: Progress | None = None
        self._sent = float("-inf")
        self._levels: list[int] = []

    def shown(self, event: Event) -> Iterator[Shown]:
        if isinstance(event, Started):
            self._seed = event.seeds[0]
            yield Shown(
                status=self._status("starting"),
                notice="",
                job=event.job_id,
                generate=gr.update(interactive=False),
                stop=gr.update(interactive=True),
                again=gr.update(visible=False),  # a second job would take the place of this one's id, and Stop with it
            )
        elif isinstance(event, Chunk):
            self._pieces.append(event.wav)
            self._levels += levels(event.samples)
        elif isinstance(event, Progress):
            self._progress = event
            if event.seconds >= FIRST_SOUND and time.monotonic() - self._sent >= PAGE_INTERVAL:
                yield Shown(live=self._sound(), status=self._status("speaking"))
                self._sent = time.monotonic()
        elif isinstance(event, Finished):
            yield self._finished(event.record)

    def _finished(self, record: TakeRecord) -> Shown:
        kept = bool(record.file_name)
        lost = not kept and (record.seconds > 0 or record.ended_by == "stop")
        return Shown(
            live=self._sound(),
            status=self._status("unsaved" if lost else record.ended_by, take_id=record.id if kept else ""),
            notice=markup.end_notice(record, self._language),
            take=take_markup.take_card(record, self._context.media, self._language) if kept else KEEP,
            job=None,
            take_id=record.id if kept else KEEP,
            generate=gr.update(interactive=True),
            stop=gr.update(interactive=False),
            again=gr.update(visible=True) if kept else KEEP,
        )

    def _sound(self) -> Any:
        """The audio since the last message, as one WAV file."""
        pieces, self._pieces = self._pieces, []
        return join_wavs(pieces) if pieces else KEEP

    def _status(self, state: str, take_id: str = "") -> str:
        return markup.status_line(
            state,
            self._language,
            self._progress,
            seed=self._seed,
            expected=self._expected,
            take_id=take_id,
            levels=thinned(self._levels),
        )


class TTSHandlers:
    """The tab's events. Holds objects of the process only; everything about a visitor comes in as arguments."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._synthesizer = context.synthesizer
        self._tickets = Tickets()

    def wait(self, request: gr.Request) -> Waiting:
        """The answer to the click itself: the run waits for its turn, with a ticket to withdraw it by."""
        ticket = self._tickets.new()
        return Waiting(
            status=markup.status_line("waiting", language_of(request)),
            notice="",
            job=ticket,
            ticket=ticket,
            generate=gr.update(interactive=False),
            stop=gr.update(interactive=True),
        )

    def speak(
        self,
        text: str,
        control: str,
        cfg_value: float,
        inference_timesteps: float,
        temperature: float,
        normalize: bool,
        seed: str,
        owner: str | None,
        ticket: str | None,
        voice: str | None,
        request: gr.Request,
    ) -> Iterator[Shown]:
        """One take, from click to card. When the browser goes away this is closed, and the take kept as it is."""
        language = language_of(request)
        if self._tickets.is_withdrawn(ticket):
            yield Shown()  # the page has gone on: nothing of it is touched
            return
        try:
            check_length(text, control)
            wish = SpeechRequest(
                text=_text_of(text),
                control=(control or "").strip(),
                cfg_value=float(cfg_value),
                inference_timesteps=int(inference_timesteps),
                temperature=float(temperature),
                normalize=bool(normalize),
                seed=parse_seed(seed),
            )
            run = Speaking(self._context, language, markup.estimated_seconds(wish.text))
            session = self._context.session(owner, request)
            events = self._synthesizer.speak(wish, tab="tts", session=session, voice_id=voice or "")
            with closing(events):
                for event in events:
                    if isinstance(event, Started) and self._tickets.is_withdrawn(ticket):  # Stop came between the two
                        self._synthesizer.stop(event.job_id)
                    yield from run.shown(event)
        except SettingError as error:
            yield _refused(error.sentence(language), language)
        except VoxCPMError as error:
            yield _refused(str(error), language)
        except Exception:
            logger.exception("speaking failed")
            yield _refused(say(language, "trouble"), language)

    def stop(self, job_id: str | None, request: gr.Request) -> Waiting:
        """Ask the running job to end; the generator of :meth:`speak` then brings the partial take.

        A run that still waits for its turn is withdrawn, and the page is free at once.
        """
        language = language_of(request)
        if self._tickets.withdraw(job_id):
            on, off = gr.update(interactive=True), gr.update(interactive=False)
            return Waiting(markup.status_line("idle", language), job=None, generate=on, stop=off)
        if not job_id or not self._synthesizer.stop(job_id):
            return Waiting()
        return Waiting(markup.status_line("stopping", language), stop=gr.update(interactive=False))

    def preview(self, text: str, control: str, normalize: bool, request: gr.Request) -> str:
        language = language_of(request)
        if not (text or "").strip():
            return markup.preview_message(say(language, "preview_empty"), language)
        try:
            check_length(text, control)
            spoken = self._synthesizer.preview(text, (control or "").strip(), bool(normalize))
        except SettingError as error:
            return markup.preview_message(error.sentence(language), language)
        except VoxCPMError as error:
            return markup.preview_message(str(error), language)
        return markup.preview(spoken, language)

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

    def arrive(self, kept: object, request: gr.Request) -> tuple[Any, ...]:
        """The model, and with it the settings that this browser used last with it (else the model's own).

        One answer for both, so that nobody can type into a form that is about to be filled.
        """
        status = self._synthesizer.status
        if status.state != "ready":
            return (*self.model(request), *Form(), KEEP, KEEP)
        settings = remembered(kept, status)
        return (*self.model(request), *Form.of(settings), *_panel(settings, language_of(request)))

    def retry(self, request: gr.Request) -> ModelShown:
        """Load again after a failure."""
        self._synthesizer.load()
        return self.model(request)

    def defaults(self) -> Form:
        return Form.of(default_settings(self._synthesizer.status))

    def settings_changed(
        self,
        kept: object,
        cfg_value: float,
        inference_timesteps: float,
        temperature: float,
        normalize: bool,
        seed: str,
        request: gr.Request,
    ) -> tuple[Any, Any, Any]:
        """What the browser is to remember, the folded panel's title, and whether there is a seed to unpin."""
        try:
            settings = Settings(
                float(cfg_value), int(inference_timesteps), float(temperature), bool(normalize), (seed or "").strip()
            )
        except (TypeError, ValueError):  # a number field that is being emptied
            return KEEP, KEEP, KEEP
        return remember(kept, self._synthesizer.status, settings), *_panel(settings, language_of(request))

    def pin(self, take_id: str | None, owner: str | None, request: gr.Request) -> Any:
        """The shown take's seed, for the seed field."""
        language = language_of(request)
        try:
            seed = self._context.take(take_id or "", owner, request).seed
        except StoreError:
            warn(say(language, "take_gone"))
            return KEEP
        tell(say(language, "pinned", seed=seed))
        return str(seed)

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
        settings = Settings(
            record.cfg_value, record.inference_timesteps, record.temperature, record.normalize, str(record.seed)
        )
        voice = VoiceChooser(self._context).reused(record.voice, owner, request)
        return (record.typed_text, record.typed_control, *Form.of(settings), voice, gr.update(selected="tts"))


def new_owner(owner: str | None) -> str:
    """The id that a browser keeps: its own, or a new one that nobody can guess."""
    return owner if isinstance(owner, str) and len(owner) == 32 else uuid.uuid4().hex


def _panel(settings: Settings, language: str) -> tuple[Any, Any]:
    """The folded panel's title, and the button that unpins a seed."""
    return gr.update(label=summary(settings, language)), gr.update(visible=bool(settings.seed))


def _text_of(text: str | None) -> str:
    if not (text or "").strip():
        raise SettingError("ask_text")
    return text


def _refused(sentence: str, language: str) -> Shown:
    """The request was not started, or broke in a way that no take could tell: say why and give the buttons back."""
    warn(sentence)
    return Shown(
        status=markup.status_line("idle", language),
        notice=markup.notice("error", sentence),
        job=None,
        generate=gr.update(interactive=True),
        stop=gr.update(interactive=False),
    )

"""What the Cloning tab does with its form: modes, whose voice, consent, and the request for the take-picker.

The clip itself is looked after in :mod:`studio.ui.cloning_desk`; takes are the picker's (:mod:`studio.ui.picker`).
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import gradio as gr

from studio.store import StoreError
from studio.takes import TakeRecord
from studio.ui import markup
from studio.ui.adapter_panel import adapter_fields
from studio.ui.cloning_clip import ClipState
from studio.ui.cloning_request import (
    MODES,
    SOURCES,
    Speaker,
    clone_request,
    needs_consent,
    refuse_unable,
    saved_speaker,
)
from studio.ui.context import Context
from studio.ui.form import KEEP, Form, FormHandlers, Restored, takes_of
from studio.ui.i18n import language_of, say
from studio.ui.markup import tag
from studio.ui.picker import Wish
from studio.ui.settings import SettingError, parse_seed
from studio.ui.takes_list import sent, warn


@dataclass(frozen=True)
class CloneForm:
    """The form's values, in the order of its fields. ``clip_hash`` is the clip that the page showed at the click."""

    mode: str
    source: str
    voice: str
    clip_hash: str
    transcript: str
    both: bool
    consent: bool
    control: str
    text: str
    takes: int
    cfg_value: float
    inference_timesteps: float
    temperature: float
    normalize: bool
    seed: str
    adapter: str
    strength: float
    adapter_on: bool
    clip: ClipState | None
    owner: str | None


class Arranged(NamedTuple):
    """Which fields a mode and a source of the voice have, and what is said about them."""

    mode: Any = KEEP
    about: Any = KEEP
    clip_part: Any = KEEP
    voice_part: Any = KEEP
    words_part: Any = KEEP
    both: Any = KEEP
    control: Any = KEEP


class CloningHandlers:
    """The tab's events. Everything about a visitor comes in as arguments."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._synthesizer = context.synthesizer
        self.form = FormHandlers(context)

    # ---- the request

    def wish(self, *values: Any) -> Wish:
        """For the picker: the fields' values as a request. What is not shown is not in it."""
        form, status = CloneForm(*values), self._synthesizer.status
        by_adapter = form.source == "adapter"
        if not by_adapter:
            refuse_unable(form.mode, status)
        ultimate = form.mode == "ultimate"
        lora = adapter_fields(self._context, form.adapter, form.strength, form.adapter_on)
        if by_adapter and not lora["lora"]:
            raise SettingError("ask_adapter")
        request, options = clone_request(
            Speaker(None, agreed=bool(form.consent)) if by_adapter else self._speaker(form),
            form.mode,
            form.text,
            control=form.control if status.supports_control else "",
            both=ultimate and bool(form.both) and status.supports_reference,
            cfg_value=float(form.cfg_value),
            inference_timesteps=int(form.inference_timesteps),
            temperature=float(form.temperature),
            normalize=bool(form.normalize),
            **lora,
        )
        return Wish(request, takes=takes_of(form.takes), seed=parse_seed(form.seed), options=options)

    def _speaker(self, form: CloneForm) -> Speaker:
        if form.source == "voice":
            if not form.voice:
                raise SettingError("ask_voice")
            session = self._context.visible(form.owner)
            return saved_speaker(self._context.voices, form.voice, session, bool(form.consent))
        if form.clip is None:
            raise SettingError("ask_clip")
        clip = form.clip.current
        if form.clip_hash != clip.hash:  # words and consent on the page were meant for another one
            raise SettingError("cloning_clip_changed")
        audio = self._context.store.clips.audio(clip.hash)
        return Speaker(audio, form.transcript or "", bool(form.consent), clip.speech)

    # ---- what is shown

    def arranged(self, mode: str, source: str, request: gr.Request) -> Arranged:
        """The fields of a mode; what the loaded model cannot do is hidden, and why is said."""
        language, status = language_of(request), self._synthesizer.status
        if status.state != "ready":
            return Arranged()
        modes = [name for name in MODES if name == "ultimate" or status.supports_reference]
        mode = mode if mode in modes else modes[0]
        clip, adapter = source == "clip", source == "adapter"
        ultimate = mode == "ultimate" and not adapter
        choices = [(say(language, f"cloning_{name}"), name) for name in modes]
        return Arranged(
            gr.update(choices=choices, value=mode, visible=not adapter),
            self.about("adapter" if adapter else mode, language),
            gr.update(visible=clip),
            gr.update(visible=source == "voice"),
            gr.update(visible=ultimate and clip),
            gr.update(visible=ultimate and status.supports_reference),
            gr.update(visible=not ultimate and status.supports_control),
        )

    def sources(self, source: str, request: gr.Request) -> Any:
        """Whose voice it can be: an adapter's own, too, where there is one."""
        names = [name for name in SOURCES if name != "adapter" or self._synthesizer.adapters.names()]
        choices = [(say(language_of(request), f"cloning_source_{name}"), name) for name in names]
        return gr.update(choices=choices, value=source if source in names else SOURCES[0])

    def about(self, mode: str, language: str) -> str:
        status = self._synthesizer.status
        if mode == "adapter":
            return tag("p", escape(say(language, "cloning_about_adapter")), class_="vx-clip-hint")
        lines = [tag("p", escape(say(language, f"cloning_about_{mode}")), class_="vx-clip-hint")]
        for able, key in (
            (status.supports_reference, "cloning_no_reference"),
            (status.supports_control, "cloning_no_control"),
        ):
            if not able and (key == "cloning_no_reference" or mode == "controllable"):
                lines.append(markup.notice("info", say(language, key, generation=status.generation)))
        if status.name == "nano":
            lines.append(markup.notice("info", say(language, "cloning_nano")))
        return "".join(lines)

    def arrive(self, kept: object, request: gr.Request) -> tuple[Any, ...]:
        """Generate and the settings, as this browser used them last with this model."""
        if self._synthesizer.status.state != "ready":
            return (gr.update(interactive=False), *Restored())
        return (gr.update(interactive=True), *self.form.restored(kept, request))

    def preview(self, mode: str, source: str, control: str, text: str, normalize: bool, request: gr.Request) -> str:
        """What will be spoken; a control text that the mode has no field for is not part of it."""
        shown = mode == "controllable" or source == "adapter"
        return self.form.preview(text, control if shown else "", normalize, request)

    # ---- saved voices

    def voices(self, chosen: str | None, owner: str | None, request: gr.Request) -> Any:
        """The visitor's voices as they are now; what is chosen stays chosen while it is there."""
        try:
            names = self._context.voice_names(owner, request)
        except StoreError as error:
            warn(str(error))
            names = {}
        offered = [("–", ""), *((name, voice_id) for voice_id, name in names.items())]
        return gr.update(choices=offered, value=chosen if chosen in names else "", visible=True)

    def voice_note(self, mode: str, voice_id: str, owner: str | None, request: gr.Request) -> str:
        """Whether the chosen voice may be used, and the words that ultimate cloning would go on from."""
        language = language_of(request)
        try:
            voice = self._context.voices.voice(voice_id or "", self._context.visible(owner, request))
        except StoreError:
            return ""
        lines = []
        if not needs_consent(voice):
            key = "cloning_consent_kept" if voice.consent else "cloning_consent_made"
            lines.append(tag("p", escape(say(language, key)), class_="vx-clip-hint"))
        if mode == "ultimate" and voice.transcript:
            said = say(language, "cloning_voice_words", words=voice.transcript)
            lines.append(tag("p", escape(said), class_="vx-clip-hint"))
        elif mode == "ultimate":
            lines.append(markup.notice("warning", say(language, "cloning_voice_no_words")))
        return "".join(lines)

    # ---- from elsewhere

    def reuse(self, owner: str | None, event: gr.EventData, request: gr.Request) -> tuple[Any, ...]:
        """A cloned take of a list, back into this form; takes of other tabs are left alone."""
        nothing = (KEEP, KEEP, KEEP, KEEP, *Form(), KEEP, KEEP, KEEP, KEEP)
        try:
            record = self._context.take(sent(event), owner, request)
        except StoreError:
            return nothing  # the text-to-speech tab says so
        if record.tab != "cloning":
            return nothing
        gr.Info(say(language_of(request), "cloning_reused"), duration=4)
        mode = "ultimate" if record.prompt_hash else "controllable"
        voice = record.voice if record.voice in self._context.voice_names(owner, request) else ""
        return (
            mode,
            self._source_of(record, voice),
            record.typed_control,
            record.typed_text,
            *Form.of_take(record),
            *self._adapter_of(record, language_of(request)),
            gr.update(selected="cloning"),
        )

    def _source_of(self, record: TakeRecord, voice: str) -> str:
        if not record.reference_hash and not record.prompt_hash and self._synthesizer.adapters.names():
            return "adapter"
        return "voice" if voice else "clip"

    def _adapter_of(self, record: TakeRecord, language: str) -> tuple[Any, Any, Any]:
        """Name, strength and switch of the panel; says so when the adapter is gone."""
        names = self._synthesizer.adapters.names()
        if record.lora_name and record.lora_name not in names:
            warn(say(language, "adapter_reused", name=record.lora_name))
        choices = [(say(language, "adapter_none"), ""), *((name, name) for name in names)]
        name = record.lora_name if record.lora_name in names else ""
        return gr.update(choices=choices, value=name), record.lora_strength, True

"""The clip on the Cloning tab's desk: a file comes in, is checked, improved, transcribed, saved as a voice."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from studio import denoise, transcription
from studio.reference_checks import ReferenceReport, check_reference, words_check
from studio.transcripts import Transcript, estimate_seconds
from studio.ui import cloning_clip, cloning_markup, markup
from studio.ui.cloning_clip import ClipState, plausible
from studio.ui.context import Context
from studio.ui.i18n import language_of, say
from studio.ui.markup import icon, tag
from studio.ui.picker_markup import VERDICT_ICONS
from studio.ui.settings import SettingError, check_length
from voxcpm_core.errors import VoxCPMError

logger = logging.getLogger(__name__)

KEEP: Any = gr.skip()
ON, OFF = gr.update(interactive=True), gr.update(interactive=False)


class Desk(NamedTuple):
    """One message about the clip. ``clip_hash`` travels with each click, so that a late one finds its clip gone."""

    upload: Any = KEEP
    state: Any = KEEP
    clip_hash: Any = KEEP
    card: Any = KEEP
    notice: Any = KEEP
    tools: Any = KEEP
    trim: Any = KEEP
    level: Any = KEEP
    denoise: Any = KEEP
    undo: Any = KEEP
    transcript: Any = KEEP
    words_note: Any = KEEP
    consent: Any = KEEP


class DeskHandlers:
    """Everything about a visitor comes in as arguments."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._clips = context.store.clips

    # ---- the clip

    def take_in(self, path: str | None, request: gr.Request) -> Iterator[Desk]:
        """A new file or recording. What belonged to the clip before goes at once: words, consent, the clip itself."""
        language = language_of(request)
        if not path:  # the field was emptied, as it is below
            yield Desk()
            return
        yield self.emptied(request)._replace(card=cloning_markup.busy(language, "cloning_looking"), upload=KEEP)
        try:
            state, report = cloning_clip.take_in(Path(path), self._clips)
            yield self._shown(state, report, language)._replace(upload=None)
        except Exception as error:
            yield self.emptied(request)._replace(notice=self._trouble(error, language))

    def emptied(self, request: gr.Request) -> Desk:
        """No clip is there, and nothing that belonged to one."""
        card = cloning_markup.empty(language_of(request))
        return Desk(None, None, "", card, "", gr.update(visible=False), OFF, OFF, OFF, OFF, "", "", False)

    def improve(
        self, step: str, state: ClipState | None, clip_hash: str, text: str, request: gr.Request
    ) -> Iterator[Desk]:
        """Trim, level or denoise: a new clip beside the original. The words are cut with it, or go."""
        language = language_of(request)
        if state is None or state.current.hash != clip_hash:
            yield Desk()
            return
        yield Desk(notice=cloning_markup.busy(language, "cloning_working"), trim=OFF, level=OFF, denoise=OFF, undo=OFF)
        try:
            made, report, words = cloning_clip.improve(state, step, text, self._clips)
            yield self._shown(made, report, language, words, self._about_words(text, words, language))
        except Exception as error:
            yield Desk(notice=self._trouble(error, language), **self._tools(state))

    def undo(self, state: ClipState | None, request: gr.Request) -> Desk:
        """Back to the original, with the words that it had."""
        language = language_of(request)
        if state is None or not state.is_changed:
            return Desk()
        try:
            report = check_reference(self._clips.audio(state.original.hash))
        except VoxCPMError as error:
            return Desk(notice=self._trouble(error, language))
        words = state.original.transcript
        return self._shown(ClipState(state.original, state.original), report, language, words.text if words else "")

    def _shown(
        self, state: ClipState, report: ReferenceReport, language: str, words: str = "", notice: str = ""
    ) -> Desk:
        return Desk(
            state=state,
            clip_hash=state.current.hash,
            card=cloning_markup.clip_card(state, report, self._context.clip_media, language),
            notice=notice,
            tools=gr.update(visible=True),
            transcript=words,
            words_note=self.words_note(words, state, language),
            **self._tools(state),
        )

    def _tools(self, state: ClipState) -> dict[str, Any]:
        current = state.current
        return {
            "trim": gr.update(interactive=current.worth_cutting),
            "level": gr.update(interactive=not current.did("level")),
            "denoise": gr.update(interactive=denoise.available()[0] and not current.did("denoise")),
            "undo": gr.update(interactive=state.is_changed),
        }

    def _about_words(self, before: str, after: str, language: str) -> str:
        before = (before or "").strip()
        if not before or before == after:
            return ""
        key, kind = ("cloning_words_cut", "info") if after else ("cloning_words_gone", "warning")
        return markup.notice(kind, say(language, key))

    def _trouble(self, error: Exception, language: str) -> str:
        """What could not be done, as a sentence."""
        if isinstance(error, SettingError):
            return markup.notice("error", error.sentence(language))
        if isinstance(error, VoxCPMError):
            return markup.notice("error", str(error))
        logger.error("work on a clip failed", exc_info=error)
        return markup.notice("error", say(language, "trouble"))

    # ---- its words

    def note(self, text: str, state: ClipState | None, request: gr.Request) -> str:
        return self.words_note(text, state, language_of(request))

    def words_note(self, text: str, state: ClipState | None, language: str) -> str:
        """Whether the words can be what is said in the clip."""
        text = (text or "").strip()
        if not text or state is None:
            return ""
        speech = state.current.speech
        verdict = plausible(text, speech)
        facts = {"estimate": f"{estimate_seconds(text):.0f}", "speech": f"{speech:.1f}"}
        said = say(language, f"cloning_words_{verdict}", **facts)
        note = tag(
            "p",
            icon(VERDICT_ICONS[verdict]),
            tag("span", escape(said)),
            class_=f"vx-words-note vx-verdict is-{verdict}",
        )
        heard = state.current.transcript
        return note + (cloning_markup.line(words_check(text, heard.heard), language) if heard and heard.words else "")

    def transcribe(
        self, state: ClipState | None, clip_hash: str, request: gr.Request
    ) -> Iterator[tuple[Any, Any, Any]]:
        """What the recogniser hears in the clip: transcript (for :meth:`heard`), notice, button."""
        language = language_of(request)
        if state is None or state.current.hash != clip_hash:
            yield None, markup.notice("error", say(language, "ask_clip")), KEEP
            return
        yield None, cloning_markup.busy(language, "cloning_transcribing"), OFF
        try:
            found = transcription.transcribe(self._clips.audio(clip_hash), self._context.recogniser)
            yield found, "", ON
        except Exception as error:
            yield None, self._trouble(error, language), ON

    def compared(
        self, found: Transcript | None, text: str, state: ClipState | None, request: gr.Request
    ) -> tuple[Any, Any, Any]:
        """The field's words beside what the recogniser heard (state, note, notice); the field stays as it is."""
        language, kept = language_of(request), None
        if found is not None and state is not None:
            kept = cloning_clip.with_words(state, found.edited(text or found.text))
        if kept is None:
            late = "" if found is None else markup.notice("warning", say(language, "cloning_transcribed_late"))
            return KEEP, KEEP, late or KEEP
        return kept, self.words_note(text, kept, language), ""

    def heard(self, found: Transcript | None, state: ClipState | None, request: gr.Request) -> tuple[Any, ...]:
        """Recognised words for the field (state, transcript, note, notice), unless the clip is another one by now."""
        language = language_of(request)
        if found is None:
            return KEEP, KEEP, KEEP, KEEP
        kept = cloning_clip.with_words(state, found) if state else None
        if kept is None:
            return KEEP, KEEP, KEEP, markup.notice("warning", say(language, "cloning_transcribed_late"))
        said = markup.notice("info", say(language, "cloning_transcribed", spoken=found.language))
        return kept, found.text, self.words_note(found.text, kept, language), said

    def helpers(self, request: gr.Request) -> tuple[Any, Any, Any]:
        """The recogniser's two buttons, and a line about what is not installed or would be fetched."""
        language = language_of(request)
        able, said = recogniser_state(self._context.recogniser)
        lines = [tag("p", escape(said(language)), class_="vx-clip-hint")]
        installed, pip_line = denoise.available()
        if not installed:
            lines.append(tag("p", escape(say(language, "cloning_denoise_absent", pip=pip_line)), class_="vx-clip-hint"))
        return gr.update(interactive=able), gr.update(interactive=able), "".join(lines)

    # ---- keeping it

    def save(
        self,
        name: str,
        state: ClipState | None,
        clip_hash: str,
        transcript: str,
        consent: bool,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, Any]:
        """The clip as a named voice, with its words, its consent and how it was made: a notice, the emptied field."""
        language = language_of(request)
        try:
            if state is None:
                raise SettingError("ask_clip")
            if state.current.hash != clip_hash:
                raise SettingError("cloning_clip_changed")
            if not consent:
                raise SettingError("ask_consent")
            if not (name or "").strip():
                raise SettingError("save_voice_ask")
            words = (transcript or "").strip()
            if words:
                check_length(words)
                cloning_clip.refuse_other_words(words, state.current.speech)
            voice = self._context.voices.save_clip(
                self._clips.audio(clip_hash),
                name,
                self._context.session(owner, request),
                transcript=words,
                consent=True,
                clip_choices=state.stored_choices(),
            )
        except (SettingError, VoxCPMError) as error:
            return self._trouble(error, language), KEEP
        return markup.notice("info", say(language, "cloning_saved", name=voice.name)), ""


def recogniser_state(model: str) -> tuple[bool, Callable[[str], str]]:
    """Whether words can be recognised with ``model`` (a name or a folder), and what to say about it in a language."""
    installed, pip_line = transcription.available()
    if not installed:
        return False, lambda language: say(language, "cloning_transcribe_absent", pip=pip_line)
    if not Path(model).is_absolute() and not Path(model).is_dir():
        return True, lambda language: say(language, "cloning_transcribe_first", model=model)
    if not Path(model, "model.bin").is_file():
        return False, lambda language: say(language, "cloning_transcribe_no_folder", model=model)
    return True, lambda language: say(language, "cloning_transcribe_folder", model=model)

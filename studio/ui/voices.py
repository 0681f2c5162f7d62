"""What the Voices tab does: find, play, try, rename, tag, delete, export and import saved voices.

Layout and wiring are in :mod:`studio.ui.voices_layout`.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from studio.book.casting import delete_voice
from studio.book.errors import BookError
from studio.book.library import Library
from studio.bundle import export_voices, import_voices
from studio.events import Chunk, Finished, Progress, Started
from studio.store import StoreError
from studio.ui import markup, take_markup, voices_markup
from studio.ui.context import Context
from studio.ui.i18n import language_of, say
from studio.ui.media import join_wavs
from studio.ui.picker_run import FIRST_SOUND, PAGE_INTERVAL
from studio.ui.settings import SettingError, check_length
from studio.ui.takes_list import sent, tell, warn
from studio.voices import clean_tags, is_voice_id
from voxcpm_core import SpeechRequest
from voxcpm_core.errors import VoxCPMError

logger = logging.getLogger(__name__)

KEEP: Any = gr.skip()
SEPARATORS = re.compile(r"[,;，；、\n]+")


class Listed(NamedTuple):
    """The grid and what stands above it."""

    cards: Any = KEEP
    tags: Any = KEEP
    found: Any = KEEP


class Opened(NamedTuple):
    """One voice in full, and the fields to try and to change it."""

    detail: Any = KEEP
    tools: Any = KEEP
    open_id: Any = KEEP
    name: Any = KEEP
    tags: Any = KEEP
    text: Any = KEEP
    trial: Any = KEEP
    speak: Any = KEEP
    unsupported: Any = KEEP


class Trial(NamedTuple):
    """One message to the page while a voice is tried."""

    live: Any = KEEP
    trial: Any = KEEP
    job: Any = KEEP
    speak: Any = KEEP
    stop: Any = KEEP


class VoicesHandlers:
    """The tab's events. A visitor's id comes in as an argument; nothing is kept here."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._voices = context.voices
        self._books = Library(context.store)  # a voice that a book speaks with stays

    # ---- finding

    def listed(self, query: str, chosen: str, owner: str | None, request: gr.Request) -> Listed:
        """The voices that fit, as cards."""
        language, session = language_of(request), self._context.visible(owner, request)
        try:
            everything, tags = self._voices.voices(session=session), self._voices.tags(session)
            chosen = chosen if chosen in tags else ""
            found = self._voices.voices(query or "", chosen, session)
        except StoreError as error:
            return Listed(markup.notice("error", str(error)), "", "")
        if not everything:
            return Listed(voices_markup.empty(language), "", "")
        grid = voices_markup.cards(found, self._context.media, language)
        if not found:
            grid = markup.tag("p", say(language, "voices_none"), class_="vx-none")
        found_line = voices_markup.found(len(found), len(everything), language)
        return Listed(grid, voices_markup.tag_filter(tags, chosen, language), found_line)

    def choose_tag(self, event: gr.EventData) -> str:
        return sent(event, "tag")

    # ---- one voice

    def show(self, owner: str | None, event: gr.EventData, request: gr.Request) -> Opened:
        return self._opened(sent(event, "voice"), owner, request)

    def _opened(self, voice_id: str, owner: str | None, request: gr.Request) -> Opened:
        language = language_of(request)
        try:
            voice = self._voices.voice(voice_id, self._context.visible(owner, request))
        except StoreError:
            warn(say(language, "voice_gone"))
            return self.closed(request)
        return Opened(
            voices_markup.detail(voice, self._context.media, language),
            gr.update(visible=True),
            voice.id,
            voice.name,
            ", ".join(voice.tags),
            KEEP,
            "",
            gr.update(interactive=self._context.synthesizer.status.supports_reference),
            self.why_silent(language),
        )

    def closed(self, request: gr.Request) -> Opened:
        """No voice is open."""
        empty = voices_markup.none_open(language_of(request))
        return Opened(empty, gr.update(visible=False), "", "", "", KEEP, "")

    def why_silent(self, language: str) -> str:
        """Why no voice can be tried with the loaded model; "" when it can."""
        status = self._context.synthesizer.status
        if status.state != "ready":
            return markup.notice("info", say(language, "voice_no_model"))
        if status.supports_reference:
            return ""
        return markup.notice("info", say(language, "voice_unsupported", generation=status.generation))

    def save(self, voice_id: str, name: str, tags: str, owner: str | None, request: gr.Request) -> Opened:
        """The new name and tags."""
        session = self._context.visible(owner, request)
        try:
            voice, wanted = self._voices.voice(voice_id, session), clean_tags(SEPARATORS.split(tags or ""))
            if (name or "").strip() != voice.name:
                self._voices.rename(voice_id, name or "", session)
            voice = self._voices.tag(voice_id, wanted, session)
        except StoreError as error:
            warn(str(error))
            return Opened()
        tell(say(language_of(request), "voice_edit_saved"))
        card = voices_markup.detail(voice, self._context.media, language_of(request))
        return Opened(detail=card, name=voice.name, tags=", ".join(voice.tags))

    def remove(self, owner: str | None, event: gr.EventData, request: gr.Request) -> tuple[str, str]:
        """Delete a voice; it can be brought back."""
        language, session = language_of(request), self._context.visible(owner, request)
        try:
            voice = self._voices.voice(sent(event, "voice"), session)
            delete_voice(self._books, self._voices, voice.id, session)
        except (StoreError, BookError) as error:
            return markup.notice("error", str(error)), KEEP
        return take_markup.undo_line(say(language, "voice_deleted", name=voice.name), [voice.id], language), voice.id

    def undo(self, deleted: str, owner: str | None, request: gr.Request) -> tuple[str, str]:
        """Bring back what was deleted last."""
        language = language_of(request)
        try:
            voice = self._voices.undo_delete(deleted or "", self._context.visible(owner, request))
        except StoreError as error:
            return markup.notice("error", str(error)), ""
        return markup.notice("info", say(language, "voice_restored", name=voice.name)), ""

    # ---- trying

    def speak(self, voice_id: str, text: str, owner: str | None, request: gr.Request) -> Iterator[Trial]:
        """Speak a text with a voice: it streams, and is kept as a take."""
        language = language_of(request)
        try:
            check_length(text)
            wish = SpeechRequest(text=(text or "").strip() or say(language, "voice_try_sample"))
            yield from self._spoken(wish, voice_id, language, self._context.session(owner, request))
        except SettingError as error:
            yield _over(markup.notice("error", error.sentence(language)))
        except VoxCPMError as error:
            yield _over(markup.notice("error", str(error)))
        except Exception:
            logger.exception("a voice could not be tried")
            yield _over(markup.notice("error", say(language, "trouble")))

    def _spoken(self, wish: SpeechRequest, voice_id: str, language: str, session: str) -> Iterator[Trial]:
        pieces: list[bytes] = []
        sent_at = float("-inf")
        off, on = gr.update(interactive=False), gr.update(interactive=True)
        events = self._context.synthesizer.speak(wish, tab="voices", session=session, voice_id=voice_id)
        with closing(events):
            for event in events:
                if isinstance(event, Started):
                    yield Trial(trial=voices_markup.trial(0.0, 0.0, language), job=event.job_id, speak=off, stop=on)
                elif isinstance(event, Chunk):
                    pieces.append(event.wav)
                elif isinstance(event, Progress):
                    if event.seconds >= FIRST_SOUND and time.monotonic() - sent_at >= PAGE_INTERVAL:
                        sent_at = time.monotonic()
                        sound, pieces = join_wavs(pieces), []
                        yield Trial(live=sound, trial=voices_markup.trial(event.seconds, event.rtf, language))
                elif isinstance(event, Finished):
                    live = join_wavs(pieces) if pieces else KEEP
                    notice = markup.end_notice(event.record, language)
                    kept = [event.record] if event.record.file_name else []
                    lane = take_markup.lanes(kept, self._context.media, language, "") if kept else ""
                    yield _over(notice + lane)._replace(live=live)

    def stop(self, job: str | None) -> Any:
        """Ask the running trial to end."""
        self._context.synthesizer.stop(job or "")
        return gr.update(interactive=False)

    # ---- bundles

    def export(self, owner: str | None, event: gr.EventData, request: gr.Request) -> str:
        """The voice that the event names, else the ticked ones, else all, as one bundle that the browser fetches."""
        language, session = language_of(request), self._context.visible(owner, request)
        try:
            wanted = [sent(event, "voice")] if sent(event, "voice") else _ticked(event)
            wanted = wanted or [voice.id for voice in self._voices.voices(session=session)]
            if not wanted:
                warn(say(language, "voice_export_none"))
                return KEEP
            name = self._bundle_name(wanted, session)
            address = self._context.media.offer(
                lambda folder: export_voices(self._voices, wanted, folder, session), name
            )
        except (StoreError, OSError) as error:
            warn(str(error))
            return KEEP
        tell(say(language, "voice_exported"))
        return voices_markup.fetch(address, name)

    def _bundle_name(self, wanted: list[str], session: str | None) -> str:
        if len(wanted) > 1:
            return "voices.voxcpm-voices.zip"
        words = re.findall(r"\w+", self._voices.voice(wanted[0], session).name)
        return f"{'-'.join(words)[:48] or 'voice'}.voxcpm-voices.zip"

    def take_in(self, path: str | None, owner: str | None, request: gr.Request) -> str:
        """A bundle that was uploaded. A damaged or hostile one is a sentence, and nothing of it is kept."""
        language = language_of(request)
        if not path:
            return KEEP
        try:
            voices = import_voices(self._voices, Path(path), self._context.session(owner, request))
        except (VoxCPMError, OSError) as error:
            return markup.notice("error", str(error))
        finally:
            Path(path).unlink(missing_ok=True)
        return markup.notice("info", say(language, "voice_imported", names=", ".join(voice.name for voice in voices)))


def _over(shown: str) -> Trial:
    """The trial has ended."""
    return Trial(trial=shown, job=None, speak=gr.update(interactive=True), stop=gr.update(interactive=False))


def _ticked(event: gr.EventData) -> list[str]:
    data = event._data if isinstance(event._data, dict) else {}
    found = data.get("voices")
    return [voice_id for voice_id in found if is_voice_id(voice_id)] if isinstance(found, list) else []

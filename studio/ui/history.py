"""What the History tab does: plain functions from what the visitor set to what the page shows.

Layout and wiring are in :mod:`studio.ui.history_layout`. Which takes are ticked the browser knows; it sends them along
with every click.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import gradio as gr

from studio.export_takes import export_takes
from studio.history import PAGE, Filter, History
from studio.reviews import Reviews
from studio.store import StoreError
from studio.takes import is_take_id
from studio.ui import history_compare, history_markup, markup, take_markup
from studio.ui.context import Context
from studio.ui.i18n import WORDS, language_of, say
from studio.ui.seeds import seeds_view
from studio.ui.takes_list import sent, tell, warn
from studio.ui.voices_markup import fetch
from voxcpm_core.errors import VoxCPMError

logger = logging.getLogger(__name__)

KEEP: Any = gr.skip()
FACETS = ("tab", "voice", "model", "ended_by", "verdict")
MOST_AT_ONCE = 500  # takes that are deleted by one click
ZIP_NAME = "voxcpm-takes.zip"


class Listed(NamedTuple):
    """The list and what stands above it."""

    lanes: Any = KEEP
    bar: Any = KEEP
    filters: Any = KEEP
    seeds: Any = KEEP


class Opened(NamedTuple):
    """One take in full, and what can be done with it."""

    detail: Any = KEEP
    tools: Any = KEEP
    open_id: Any = KEEP
    note: Any = KEEP
    replay: Any = KEEP


class HistoryHandlers:
    """The tab's events. ``wish`` is what is filtered by, a mapping with FACETS and "starred"."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._history = History(context.store)
        self._reviews = Reviews(context.store)

    # ---- finding

    def listed(self, query: str, wish: dict, page: int, owner: str | None, request: gr.Request) -> Listed:
        """One page of the takes that fit, and what can be filtered by."""
        language, session = language_of(request), self._context.visible(owner, request)
        shown = self.narrowed(query, wish, page, owner, request)
        try:
            offered = self._offered(self._context.voice_names(owner, request), language, session)
        except StoreError:  # the list has said it already
            return shown
        return shown._replace(filters=history_markup.filters(offered, wish, language))

    def narrowed(self, query: str, wish: dict, page: int, owner: str | None, request: gr.Request) -> Listed:
        """The same, while the filters are left alone: somebody is choosing in them."""
        language, session = language_of(request), self._context.visible(owner, request)
        try:
            voices = self._context.voice_names(owner, request)
            wanted = Filter(query=(query or "").strip(), **_known(wish))
            found = self._history.page(wanted, PAGE, (page - 1) * PAGE, session)
            if not found.takes and found.count:  # deleted or filtered away below this page
                page = -(-found.count // PAGE)
                found = self._history.page(wanted, PAGE, (page - 1) * PAGE, session)
            seeds = self._seeds(wanted.voice, voices, language, session)
        except StoreError as error:
            return Listed(markup.notice("error", str(error)), "", KEEP, "")
        empty = say(language, "history_none" if any([wanted.query, *_known(wish).values()]) else "history_empty")
        return Listed(
            history_markup.lanes(found.takes, self._context.media, language, empty, voices),
            history_markup.bar(len(found.takes), found.count, page, PAGE, language),
            seeds=seeds,
        )

    def choose(self, event: gr.EventData) -> tuple[dict, int]:
        """What the filters are set to now, from the first page on."""
        data = event._data if isinstance(event._data, dict) else {}
        wish = {name: str(data.get(name) or "") for name in FACETS}
        return {**wish, "starred": bool(data.get("starred"))}, 1

    def turn(self, event: gr.EventData) -> int:
        """The page that a button of the pager leads to."""
        number = sent(event, "page")
        return max(int(number), 1) if number.isdecimal() and len(number) < 9 else 1

    def _offered(self, voices: dict[str, str], language: str, session: str | None) -> dict[str, list[tuple[str, str]]]:
        words = {
            "tab": lambda value: history_markup.made_in(value, language),
            "voice": lambda value: voices.get(value, value),
            "ended_by": lambda value: _word(f"state_{value}", value, language),
            "verdict": lambda value: _word(f"verdict_{value}", value, language),
        }
        choices = self._history.choices(session)
        return {name: [(value, words.get(name, str)(value)) for value in choices.get(name, [])] for name in FACETS}

    def _seeds(self, voice: str, voices: dict[str, str], language: str, session: str | None) -> str:
        if not voice:
            return ""
        scores = self._reviews.seeds_for(voice, session=session)
        return seeds_view(scores, voices.get(voice, voice), voice, language)

    # ---- one take

    def show(self, owner: str | None, event: gr.EventData, request: gr.Request) -> Opened:
        return self._opened(sent(event), owner, request)

    def _opened(self, take_id: str, owner: str | None, request: gr.Request) -> Opened:
        language = language_of(request)
        try:
            record = self._context.take(take_id, owner, request)
            voice = self._context.voice_names(owner, request).get(record.voice, record.voice)
        except StoreError:
            warn(say(language, "take_gone"))
            return self.closed(request)
        card = history_markup.detail(record, self._context.media, language, voice)
        return Opened(card, gr.update(visible=True), record.id, record.note, "")

    def closed(self, request: gr.Request) -> Opened:
        """No take is open."""
        empty = history_markup.nothing_open(language_of(request))
        return Opened(empty, gr.update(visible=False), "", "", "")

    def star(self, owner: str | None, event: gr.EventData, request: gr.Request) -> None:
        """The star that the page has already lit or put out."""
        self._review(
            lambda session: self._reviews.star(sent(event), sent(event, "starred") == "1", session), owner, request
        )

    def rate(self, owner: str | None, event: gr.EventData, request: gr.Request) -> None:
        stars = sent(event, "rating")
        rating = int(stars) if stars in ("1", "2", "3", "4", "5") else 0
        self._review(lambda session: self._reviews.rate(sent(event), rating, session), owner, request)

    def note(self, take_id: str, note: str, owner: str | None, request: gr.Request) -> None:
        """Kept when the visitor leaves the field; nothing is written when it says what is known already."""
        if not is_take_id(take_id):
            return
        try:
            known = self._context.take(take_id, owner, request).note
        except StoreError:
            known = None
        if known != (note or "").strip():
            self._review(
                lambda session: self._reviews.note(take_id, note or "", session), owner, request, "take_note_saved"
            )

    def _review(self, write: Any, owner: str | None, request: gr.Request, done: str = "") -> None:
        try:
            write(self._context.visible(owner, request))
        except StoreError as error:
            warn(str(error))
        else:
            if done:
                tell(say(language_of(request), done))

    def save_voice(self, take_id: str, name: str, owner: str | None, request: gr.Request) -> str:
        """The open take becomes a saved voice. Returns what the name field says then."""
        language, session = language_of(request), self._context.session(owner, request)
        if not (name or "").strip():
            warn(say(language, "save_voice_ask"))
            return KEEP
        try:
            voice = self._context.voices.save_from_take(take_id, name, session)
        except VoxCPMError as error:
            warn(str(error))
            return KEEP
        tell(say(language, "save_voice_done", name=voice.name))
        return ""

    # ---- several takes

    def compare(self, owner: str | None, event: gr.EventData, request: gr.Request) -> str:
        """Two takes side by side: the ticked ones, or the two that the event names."""
        language = language_of(request)
        pair = [sent(event, "a"), sent(event, "b")] if sent(event, "a") else _ticked(event)
        if len(pair) != 2:
            warn(say(language, "select_two"))
            return KEEP
        try:
            records = [self._context.take(take_id, owner, request) for take_id in pair]
            voices = self._context.voice_names(owner, request)
        except StoreError:
            warn(say(language, "take_gone"))
            return KEEP
        return history_compare.comparison(records, voices, self._context.media, language)

    def remove(self, owner: str | None, event: gr.EventData, request: gr.Request) -> tuple[str, list[str]]:
        """Delete the ticked takes, or the one that the event names; they can be brought back."""
        language = language_of(request)
        wanted = [sent(event)] if sent(event) else _ticked(event)
        session, gone = self._context.visible(owner, request), []
        for take_id in wanted[:MOST_AT_ONCE]:
            try:
                self._context.store.delete_take(take_id, session)
                gone.append(take_id)
            except StoreError as error:
                warn(str(error))
                break
        if not gone:
            if not wanted:
                warn(say(language, "select_first"))
            return KEEP, KEEP
        return take_markup.undo_line(_counted("deleted_one", "deleted", len(gone), language), gone, language), gone

    def undo(self, deleted: list[str], owner: str | None, request: gr.Request) -> tuple[str, list[str]]:
        """Bring back what was deleted last."""
        language, session, back = language_of(request), self._context.visible(owner, request), 0
        for take_id in deleted or []:
            try:
                self._context.store.undo_delete(take_id, session)
                back += 1
            except StoreError as error:
                warn(str(error))
        return markup.notice("info", _counted("restored_one", "restored", back, language)) if back else "", []

    def bundle(self, owner: str | None, event: gr.EventData, request: gr.Request) -> str:
        """The ticked takes as a ZIP, which the browser fetches at once."""
        language, session, ids = language_of(request), self._context.visible(owner, request), _ticked(event)
        if not ids:
            warn(say(language, "select_first"))
            return KEEP
        try:
            address = self._context.media.offer(
                lambda folder: export_takes(self._context.store, ids, folder, session), ZIP_NAME
            )
        except (StoreError, OSError) as error:
            warn(str(error))
            return KEEP
        tell(_counted("zip_one", "zip_ready", len(ids), language))
        return fetch(address, ZIP_NAME)


def _known(wish: dict) -> dict[str, Any]:
    return {**{name: str(wish.get(name) or "") for name in FACETS}, "starred": bool(wish.get("starred"))}


def _ticked(event: gr.EventData) -> list[str]:
    """The takes that are ticked on the page; whatever is no id is left out."""
    data = event._data if isinstance(event._data, dict) else {}
    found = data.get("takes")
    return [take_id for take_id in found if is_take_id(take_id)] if isinstance(found, list) else []


def _counted(one: str, many: str, count: int, language: str) -> str:
    return say(language, one) if count == 1 else say(language, many, count=count)


def _word(key: str, value: str, language: str) -> str:
    return say(language, key) if key in WORDS else value

"""What the take-picker does: up to three takes of one request are made, heard, compared, and one is picked.

Plain functions from what a visitor did to what the page shows. Layout and wiring are in
:mod:`studio.ui.picker_layout`; a tab gives a function that makes a :class:`Wish` of its fields.
"""

from __future__ import annotations

import logging
import random
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import gradio as gr

from studio.events import Started
from studio.reviews import Reviews
from studio.store import StoreError
from studio.takes import TakeRecord
from studio.ui import markup, picker_markup
from studio.ui.context import Context
from studio.ui.i18n import language_of, say
from studio.ui.picker_plan import Wish, like_notes, next_try, planned
from studio.ui.picker_run import KEEP, OFF, ON, SLOTS, Message, Run
from studio.ui.picker_takes import facts_of, records_of, target_of
from studio.ui.settings import SettingError
from studio.ui.takes_list import tell, warn
from studio.ui.tickets import Tickets
from voxcpm_core.errors import VoxCPMError

logger = logging.getLogger(__name__)


class PickerHandlers:
    """The picker's events. Holds objects of the process only; everything about a visitor comes in as arguments.

    ``tab`` is what the takes are recorded under.
    """

    def __init__(self, context: Context, tab: str) -> None:
        self._context = context
        self._tab = tab
        self._reviews = Reviews(context.store)
        self._tickets = Tickets()
        self._runs: dict[str, Run] = {}  # by ticket, while they run

    def wait(self, request: gr.Request) -> tuple[Any, ...]:
        """The answer to the click itself: the run waits for its turn, with a ticket to withdraw it by."""
        ticket = self._tickets.new()
        return Message(
            status=picker_markup.status("waiting", language_of(request)),
            notice="",
            job=ticket,
            ticket=ticket,
            start=gr.update(**OFF),
            stop=gr.update(**ON),
        ).values()

    def run(
        self,
        kind: str,
        make_wish: Callable[[], Wish],
        takes: list[str],
        picked: int | None,
        blind: bool,
        ticket: str | None,
        owner: str | None,
        request: gr.Request,
        lane: int | None = None,
    ) -> Iterator[tuple[Any, ...]]:
        """Takes from click to lanes. kind: "new", "others" (but the picked), "text" (same seeds), "around" (like it) or
        "lane" (this one only).

        When the browser goes away this is closed, and the takes are kept as they are.
        """
        language = language_of(request)
        if self._tickets.is_withdrawn(ticket):
            yield Message().values()  # the page has gone on: nothing of it is touched
            return
        try:
            wish = make_wish()
            before = records_of(takes, self._context, owner, request)
            picked = None if picked is None or before[picked] is None else picked  # it may have been deleted since
            plan = planned(kind, wish, before, lane if kind == "lane" else picked)
            if kind == "around":
                wish = self._like(wish, before[picked])
            if kind == "lane":
                wish = next_try(wish, before[lane])
            kept = {} if kind in ("new", "text") else {s: r for s, r in enumerate(before) if r and s not in dict(plan)}
            yield from self._made(wish, plan, kept, picked, bool(blind), ticket, owner, request)
        except SettingError as error:
            yield _refused(error.sentence(language), language)
        except VoxCPMError as error:
            yield _refused(str(error), language)
        except Exception:
            logger.exception("making takes failed")
            yield _refused(say(language, "trouble"), language)
        finally:
            self._runs.pop(ticket or "", None)

    def _made(
        self,
        wish: Wish,
        plan: list[tuple[int, int]],
        kept: Mapping[int, TakeRecord],
        picked: int | None,
        blind: bool,
        ticket: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> Iterator[tuple[Any, ...]]:
        language, session = language_of(request), self._context.session(owner, request)
        slots = [slot for slot, _ in plan]
        if blind:
            secrets.SystemRandom().shuffle(slots)
        run = Run(self._context, language, slots, kept, markup.estimated_seconds(wish.request.text), blind)
        self._runs[ticket or ""] = run
        seeds = [seed for _, seed in plan]
        group = next((record.group for record in kept.values()), "")  # takes that are compared belong together
        options = {"seeds": seeds, "tab": self._tab, "session": session, "group": group, **wish.options}
        with closing(self._context.synthesizer.speak(wish.request, **options)) as events:
            for event in events:
                if isinstance(event, Started) and self._tickets.is_withdrawn(ticket):  # Stop came between the two
                    self._context.synthesizer.stop(event.job_id)
                for message in run.messages(event):
                    if isinstance(event, Started) and picked not in kept:
                        message.picked, message.line = None, picker_markup.pick_line(language, None)
                    yield message.values()

    def _like(self, wish: Wish, record: TakeRecord) -> Wish:
        """The same request with a take's sound as its reference: another voice's clip or prompt gives way to it.

        Whose voice that is, and that it may be used, was said when the take was made: that goes with it.
        """
        status = self._context.synthesizer.status
        if not status.supports_reference:
            raise SettingError("around_unsupported", generation=status.generation or status.name)
        path = self._context.store.audio_path(record.id)
        request = replace(wish.request, reference_wav_path=path, prompt_wav_path=None, prompt_text=None)
        return replace(wish, request=request, options={"consent": record.consent, "notes": like_notes(record)})

    def restore(self, lanes: object, owner: str | None, request: gr.Request) -> tuple[Any, ...]:
        """The takes that this browser had in its lanes when it left, as far as they are still there; and at the end
        the switch of a blind comparison, which goes on."""
        ids = [take if isinstance(take, str) else "" for take in lanes[:SLOTS]] if isinstance(lanes, list) else []
        records = records_of(ids, self._context, owner, request)
        if not any(records):
            return (*Message().values(), KEEP)
        picked = next((slot for slot, record in enumerate(records) if record and record.picked), None)
        hidden = any(take in self._context.blind for take in ids)
        return (*self.show(ids, picked, owner, request, hidden), hidden or KEEP)

    def show(
        self,
        take_ids: Sequence[str],
        picked: int | None,
        owner: str | None,
        request: gr.Request,
        hidden: bool = False,
    ) -> tuple[Any, ...]:
        """Stored takes in the lanes, for a tab that did not make them here: up to SLOTS ids."""
        language = language_of(request)
        takes = [*take_ids, *[""] * SLOTS][:SLOTS]
        records = records_of(takes, self._context, owner, request)
        facts = {slot: picker_markup.unused() for slot in range(SLOTS)} | self._facts(records, language, hidden)
        chosen = records[picked] if picked is not None else None
        return Message(
            facts=facts,
            status=picker_markup.status("idle", language),
            notice="",
            line=picker_markup.pick_line(language, picked if chosen else None, chosen),
            takes=[record.id if record else "" for record in records],
            picked=picked if chosen else None,
            hidden=hidden,
        ).values()

    def stop(self, job: str | None, request: gr.Request) -> tuple[Any, ...]:
        """Ask the running job to end; :meth:`run` then brings the partial takes. A waiting run is withdrawn."""
        language = language_of(request)
        if self._tickets.withdraw(job):
            idle = picker_markup.status("idle", language)
            return Message(status=idle, job=None, start=gr.update(**ON), stop=gr.update(**OFF)).values()
        if not job or not self._context.synthesizer.stop(job):
            return Message().values()
        return Message(status=picker_markup.status("stopping", language), stop=gr.update(**OFF)).values()

    def pick(
        self,
        slot: int,
        takes: list[str],
        picked: int | None,
        hidden: bool,
        ticket: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Pick lane ``slot``, or let it go when it is the picked one. The first pick ends a blind comparison."""
        language = language_of(request)
        records = records_of(takes, self._context, owner, request)
        if records[slot] is None:
            return Message().values()
        chosen = None if picked == slot else slot
        try:
            self._reviews.pick(records[slot].id, chosen is not None, self._context.visible(owner, request))
        except StoreError as error:
            return Message(notice=markup.notice("error", str(error))).values()
        line = picker_markup.pick_line(language, chosen, records[slot])
        message = Message(picked=chosen, line=line, notice="")
        if hidden:
            if run := self._runs.get(ticket or ""):
                run.hidden = False
            self._context.blind.reveal(takes)
            message.hidden, message.facts = False, self._facts(records, language, hidden=False)
        return message.values()

    def compare_blindly(
        self, blind: bool, takes: list[str], hidden: bool, job: str | None, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """The switch: shuffle the finished lanes and keep their seeds secret, or show them. A run is left alone."""
        language, records = language_of(request), records_of(takes, self._context, owner, request)
        there = [slot for slot in range(SLOTS) if records[slot]]
        if job or len(there) < 2 or (not blind and not hidden):
            return Message().values()
        if blind:
            mixed = random.SystemRandom().sample(there, len(there))
            source = dict(zip(there, mixed, strict=True))
            takes = [takes[source.get(slot, slot)] for slot in range(SLOTS)]
            records = [records[source.get(slot, slot)] for slot in range(SLOTS)]
        message = Message(takes=takes, hidden=bool(blind), facts=self._facts(records, language, hidden=bool(blind)))
        (self._context.blind.hide if blind else self._context.blind.reveal)(takes)
        if blind:
            message.picked, message.line = None, picker_markup.pick_line(language, None)
        return message.values()

    def review(
        self,
        slot: int,
        takes: list[str],
        hidden: bool,
        owner: str | None,
        event: gr.EventData,
        request: gr.Request,
    ) -> Any:
        """A star or a note for the take in lane ``slot``; returns what the lane is to show."""
        language, said = language_of(request), event._data or {}
        session = self._context.visible(owner, request)
        try:
            if "star" in said:  # the script has drawn it already
                self._reviews.star(takes[slot], bool(said["star"]), session)
                return KEEP
            record = self._reviews.note(takes[slot], str(said.get("note", "")), session)
        except StoreError as error:
            warn(str(error))
            records = records_of(takes, self._context, owner, request)
            return self._facts(records, language, hidden).get(slot, KEEP)
        tell(say(language, "note_kept" if record.note else "note_removed"))
        return self._facts(records_of(takes, self._context, owner, request), language, hidden)[slot]

    def pin(self, slot: int, takes: list[str], owner: str | None, request: gr.Request) -> Any:
        """The seed of the take in lane ``slot``, for the tab's seed field."""
        language = language_of(request)
        try:
            seed = self._context.take(takes[slot], owner, request).seed
        except StoreError:
            warn(say(language, "take_gone"))
            return KEEP
        tell(say(language, "pinned", seed=seed))
        return str(seed)

    def save_voice(
        self, name: str, takes: list[str], picked: int | None, owner: str | None, request: gr.Request
    ) -> tuple[Any, Any]:
        """The picked take becomes a named voice: a notice, and the emptied field."""
        language = language_of(request)
        if picked is None or not takes[picked]:
            return markup.notice("error", say(language, "ask_pick")), KEEP
        if not (name or "").strip():
            return markup.notice("error", say(language, "save_voice_ask")), KEEP
        try:
            session = self._context.session(owner, request)
            voice = self._context.synthesizer.voices.save_from_take(takes[picked], name, session)
        except VoxCPMError as error:  # StoreError is one
            return markup.notice("error", str(error)), KEEP
        return markup.notice("info", say(language, "save_voice_done", name=voice.name)), ""

    def _facts(self, records: Sequence[TakeRecord | None], language: str, hidden: bool) -> dict[int, str]:
        target = target_of(records)
        return {
            slot: facts_of(record, self._context, language, hidden=hidden, target=target)
            for slot, record in enumerate(records)
            if record is not None
        }


def _refused(sentence: str, language: str) -> tuple[Any, ...]:
    """The request was not started, or broke in a way that no take could tell: say why, give the buttons back."""
    warn(sentence)
    return Message(
        status=picker_markup.status("idle", language),
        notice=markup.notice("error", sentence),
        job=None,
        start=gr.update(**ON),
        stop=gr.update(**OFF),
    ).values()

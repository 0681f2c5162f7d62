"""One run of the take-picker: the synthesizer's events become messages to the page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from studio.events import Chunk, Event, Finished, Progress, Started
from studio.store import StoreError
from studio.takes import TakeRecord
from studio.ui import picker_markup
from studio.ui.context import Context
from studio.ui.media import join_wavs, levels, thinned
from studio.ui.picker_takes import facts_of, target_of

SLOTS = 3
STARTS = 4  # buttons that start a run
PAGE_INTERVAL = 0.15  # seconds between two messages to a page; what is made faster than that travels together
LANE_INTERVAL = 0.05  # ... and more for every other lane, as each makes a message longer
FIRST_SOUND = 0.2  # seconds of audio before a lane's first message: less makes no whole frame of the stream
KEEP: Any = gr.skip()


@dataclass
class Message:
    """What changes on the page. Lanes by slot; what is not given stays as it is."""

    live: dict[int, bytes] = field(default_factory=dict)  # 16-bit WAV for the streaming players
    facts: dict[int, str] = field(default_factory=dict)
    status: Any = field(default_factory=gr.skip)
    notice: Any = field(default_factory=gr.skip)
    line: Any = field(default_factory=gr.skip)  # which take is picked, in words
    takes: Any = field(default_factory=gr.skip)  # ids by slot, "" for none
    picked: Any = field(default_factory=gr.skip)  # slot or None
    hidden: Any = field(default_factory=gr.skip)  # whether seeds are kept secret
    job: Any = field(default_factory=gr.skip)
    ticket: Any = field(default_factory=gr.skip)
    start: Any = field(default_factory=gr.skip)  # one value for all buttons that start a run
    stop: Any = field(default_factory=gr.skip)

    def values(self) -> tuple[Any, ...]:
        """In the order of :meth:`studio.ui.picker_layout.Picker.shown`."""
        lanes = [
            *(self.live.get(slot, KEEP) for slot in range(SLOTS)),
            *(self.facts.get(s, KEEP) for s in range(SLOTS)),
        ]
        return (
            *lanes, self.status, self.notice, self.line, self.takes, self.picked, self.hidden, self.job, self.ticket,
            self.stop, *[self.start] * STARTS,
        )  # fmt: skip


ON, OFF = {"interactive": True}, {"interactive": False}


class Run:
    """One run: turns the synthesizer's events into messages. Row r of the batch fills lane ``slots[r]``."""

    def __init__(
        self,
        context: Context,
        language: str,
        slots: Sequence[int],
        kept: Mapping[int, TakeRecord],
        expected: float,
        hidden: bool,
    ) -> None:
        self.hidden = hidden  # a pick meanwhile ends the secret
        self._context = context
        self._language = language
        self._slots = list(slots)
        self._records = dict(kept)  # of the lanes whose take is there
        self._target = target_of(kept.values())
        self._expected = expected
        self._seeds: dict[int, int] = {}
        self._pieces: dict[int, list[bytes]] = {slot: [] for slot in slots}
        self._levels: dict[int, list[int]] = {slot: [] for slot in slots}
        self._progress: dict[int, Progress] = {}
        self._left = set(slots)
        self._ends: set[str] = set()
        self._interval = PAGE_INTERVAL + LANE_INTERVAL * (len(self._slots) - 1)
        self._sent = float("-inf")

    def messages(self, event: Event) -> Iterator[Message]:
        if isinstance(event, Started):
            yield self._started(event)
        elif isinstance(event, Chunk):
            slot = self._slots[event.row]
            self._pieces[slot].append(event.wav)
            self._levels[slot] += levels(event.samples)
        elif isinstance(event, Progress):
            self._progress[self._slots[event.row]] = event
            if time.monotonic() - self._sent >= self._interval and (ready := self._ready()):
                yield Message(
                    live={slot: self._sound(slot) for slot in ready},
                    facts={slot: self._running("speaking", slot) for slot in ready},
                    status=picker_markup.status("speaking", self._language),
                )
                self._sent = time.monotonic()
        elif isinstance(event, Finished):
            yield self._finished(self._slots[event.row], event.record)

    def _started(self, event: Started) -> Message:
        self._seeds = dict(zip(self._slots, event.seeds, strict=True))
        facts = {slot: self._running("starting", slot) for slot in self._slots}
        unused = {s: picker_markup.unused() for s in range(SLOTS) if s not in facts and s not in self._records}
        return Message(
            facts=facts | unused,
            status=picker_markup.status("starting", self._language),
            takes=self._ids(),
            hidden=self.hidden,
            job=event.job_id,
            start=gr.update(**OFF),
            stop=gr.update(**ON),
        )

    def _ready(self) -> list[int]:
        """Lanes with new sound, and enough of it."""
        return [
            slot
            for slot, progress in self._progress.items()
            if self._pieces[slot] and slot in self._left and progress.seconds >= FIRST_SOUND
        ]

    def _finished(self, slot: int, record: TakeRecord) -> Message:
        self._left.discard(slot)
        self._ends.add(picker_markup.end_of(record))
        if record.file_name:
            self._records[slot] = record
            if self.hidden:
                self._context.blind.hide([record.id])
        message = Message(
            live={slot: self._sound(slot)} if self._pieces[slot] else {},
            facts={slot: self._facts(record)} | self._levelled(),
            takes=self._ids(),
        )
        if not self._left:
            one = next(iter(self._ends)) if len(self._ends) == 1 else "stop"
            message.status = picker_markup.status("cancelled" if "cancelled" in self._ends else one, self._language)
            message.job = None
            message.start, message.stop = gr.update(**ON), gr.update(**OFF)
        return message

    def _levelled(self) -> dict[int, str]:
        """All lanes anew when a take came that is not to be had at the level of the others; most often none."""
        target = target_of(self._records.values())
        if target == self._target:
            return {}
        self._target = target
        return {slot: self._facts(self._fresh(record)) for slot, record in self._records.items()}

    def _fresh(self, record: TakeRecord) -> TakeRecord:
        """The record with what was thought of the take meanwhile."""
        try:
            return self._context.store.take(record.id)
        except StoreError:  # deleted meanwhile
            return record

    def _facts(self, record: TakeRecord) -> str:
        return facts_of(record, self._context, self._language, hidden=self.hidden, target=self._target)

    def _ids(self) -> list[str]:
        return [self._records[slot].id if slot in self._records else "" for slot in range(SLOTS)]

    def _running(self, state: str, slot: int) -> str:
        return picker_markup.facts_running(
            state,
            self._language,
            self._progress.get(slot),
            seed=None if self.hidden else self._seeds[slot],
            expected=self._expected,
            levels=thinned(self._levels[slot]),
        )

    def _sound(self, slot: int) -> bytes:
        pieces, self._pieces[slot] = self._pieces[slot], []
        return join_wavs(pieces)

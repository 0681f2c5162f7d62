"""Automatic second tries for takes that nobody is listening to while they are made.

A take that is too long or too short for its text, empty, or ended by a limit of the model is made again with another
seed. Every attempt is a take of its own, with its seed and its ``attempt``; nothing is replaced, and when no attempt is
good all are there to choose from. What was streamed has been heard: it is only checked, and a person may re-roll it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from studio.events import Chunk, Event, Finished, Started
from studio.takes import TakeRecord
from voxcpm_core import SpeechRequest
from voxcpm_core.request import MAX_SEED

if TYPE_CHECKING:
    from studio.synthesizer import Synthesizer

ATTEMPTS = 3
REASONS = frozenset({"too_long", "too_short", "sound", "ending"})  # checks that another seed can help


def needs_second_try(record: TakeRecord) -> bool:
    """Whether another seed may do better. Not for what was stopped, broke, or met the length that was asked for."""
    if record.ended_by not in ("stop", "limit") or (record.ended_by == "limit" and record.patches >= record.max_len):
        return False
    return any(check["verdict"] == "fail" and check["name"] in REASONS for check in record.checks)


def best_of(records: list[TakeRecord]) -> TakeRecord:
    """The attempt to show first: the first good one, else the first with any sound, which most often is the one that
    has the seed that was asked for."""
    there = [record for record in records if record.file_name] or records
    return next((record for record in there if not needs_second_try(record)), there[0])


def made_with_second_tries(
    synthesizer: Synthesizer, request: SpeechRequest, *, attempts: int = ATTEMPTS, **options: Any
) -> list[list[TakeRecord]]:
    """All attempts of every row, in order, when nobody follows the work. Raises what ``speak`` raises."""
    rows: dict[int, list[TakeRecord]] = {}
    with closing(speak_with_second_tries(synthesizer, request, attempts=attempts, **options)) as events:
        for event in events:
            if isinstance(event, Finished):
                rows.setdefault(event.row, []).append(event.record)
    return [rows[row] for row in sorted(rows)]


def speak_with_second_tries(
    synthesizer: Synthesizer,
    request: SpeechRequest,
    *,
    seeds: list[int] | None = None,
    attempts: int = ATTEMPTS,
    notes: tuple[str, ...] = (),
    **options: Any,
) -> Iterator[Event]:
    """The events of :meth:`Synthesizer.speak` without the sound, for up to ``attempts`` attempts of every row.

    Each round of attempts is a job of its own and begins with Started (its id is the one to stop). ``row`` is the same
    in all rounds; a row has one Finished for each attempt. Attempt k of a row has the next seed that no row has used.
    """
    rows, used, group = list(range(len(seeds) if seeds else 1)), set(), ""
    for attempt in range(max(1, attempts)):
        told = (f"Try {attempt + 1} of {attempts}: the take before did not fit its text.",) if attempt else ()
        again: list[tuple[int, int]] = []  # row, seed
        job = synthesizer.speak(request, seeds=seeds, group=group, attempt=attempt, notes=(*notes, *told), **options)
        with closing(job) as events:
            for event in events:
                if isinstance(event, Started):
                    group, used = event.group, used | set(event.seeds)
                    yield event
                elif not isinstance(event, Chunk):
                    yield replace(event, row=rows[event.row])
                    if isinstance(event, Finished) and needs_second_try(event.record):
                        again.append((rows[event.row], event.record.seed))
        if not again:
            return
        rows, seeds = [row for row, _ in sorted(again)], []
        for _, seed in sorted(again):
            seeds.append(_unused(seed, used))
            used.add(seeds[-1])


def _unused(seed: int, used: set[int]) -> int:
    """The next seed that no row has had."""
    while seed in used:
        seed = (seed + 1) % (MAX_SEED + 1)
    return seed

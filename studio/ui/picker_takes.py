"""Stored takes as the picker shows them: their record, what their checks say, how loud they are beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from studio.checks import Check
from studio.files import read_pcm
from studio.loudness import TARGET, common_target, match_gain
from studio.store import StoreError
from studio.takes import TakeRecord
from studio.ui.context import Context
from studio.ui.i18n import WORDS, say
from studio.ui.picker_markup import Reason, facts_finished

COLUMNS = 480  # points of a finished lane's picture
EDGE_WORDS = {
    "start": "edge_start",
    "end": "edge_end",
    "noise": "edge_noise",
    "click": "edge_click",
    "cut": "edge_cut",
}


def records_of(
    take_ids: Sequence[str], context: Context, owner: str | None, request: gr.Request | None
) -> list[TakeRecord | None]:
    """The takes in the lanes; None for an empty lane and for a take that is gone or another visitor's."""
    return [_record(take_id, context, owner, request) for take_id in take_ids]


def _record(take_id: str, context: Context, owner: str | None, request: gr.Request | None) -> TakeRecord | None:
    try:
        return context.take(take_id, owner, request) if take_id else None
    except StoreError:
        return None


def target_of(records: Iterable[TakeRecord | None]) -> float:
    """The level in LUFS at which all of these takes can be played."""
    return common_target((record.loudness, record.peak) for record in records if record is not None)


def facts_of(
    record: TakeRecord, context: Context, language: str, *, hidden: bool = False, target: float = TARGET
) -> str:
    """The lane of a take that has ended, played at ``target`` LUFS."""
    return facts_finished(
        record,
        context.media,
        language,
        hidden=hidden,
        levels=_levels(record, context) if record.file_name else (),
        reasons=reasons(record, language),
        gain=match_gain(record.loudness, record.peak, target),
    )


def reasons(record: TakeRecord, language: str) -> list[Reason]:
    """What is not in order with a take, the worst first. What its end says is told by its notice."""
    found = [Check.from_dict(check) for check in record.checks]
    wrong = [check for check in found if check.verdict != "ok" and check.name != "ending"]
    wrong.sort(key=lambda check: check.verdict != "fail")
    return [(check.verdict, check_sentence(check, language)) for check in wrong]


def check_sentence(check: Check | Mapping[str, Any], language: str) -> str:
    """What a check says, in ``language``: its own advice in English, else the table's sentence with its facts."""
    if not isinstance(check, Check):
        check = Check.from_dict(check)
    key = f"check_{check.name}_{check.verdict}"
    if language == "en" or key not in WORDS:
        return check.advice
    facts = {
        name: say(language, EDGE_WORDS[fact]) if fact in EDGE_WORDS else fact for name, fact in check.facts.items()
    }
    if "ended_by" in facts:
        facts["state"] = say(language, f"state_{facts['ended_by']}")
    try:
        return say(language, key, **facts)
    except KeyError:  # a take of another version, with other facts
        return check.advice


def _levels(record: TakeRecord, context: Context) -> tuple[int, ...]:
    try:
        return _drawn(context.store.audio_path(record.id))
    except StoreError:
        return ()


@lru_cache(maxsize=128)
def _drawn(path: Path) -> tuple[int, ...]:
    """The loudest sample of each of COLUMNS columns, 0..99. A take's file is never written twice."""
    samples, _ = read_pcm(path)
    if not len(samples):
        return ()
    edges = np.linspace(0, len(samples), min(COLUMNS, len(samples)) + 1).astype(int)[:-1]
    peaks = np.maximum.reduceat(np.abs(samples), edges)
    return tuple(np.clip(peaks * 99, 0, 99).round().astype(int).tolist())

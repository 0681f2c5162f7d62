"""What a run of the take-picker makes: the wish of a tab, which lane gets which seed, and what records are told."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from studio.takes import TakeRecord
from studio.ui.i18n import say
from studio.ui.picker_run import SLOTS
from studio.ui.settings import SEED_LIMIT, SettingError
from voxcpm_core import SpeechRequest


@dataclass(frozen=True)
class Wish:
    """What a tab asks for: the request (its seed does not count), how many takes, and the base seed."""

    request: SpeechRequest
    takes: int = SLOTS
    seed: int | None = None  # take k, from 0, uses seed + k; None: a new one
    options: Mapping[str, Any] = field(default_factory=dict)  # for Synthesizer.speak: voice_id, voice_as, notes


def next_try(wish: Wish, record: TakeRecord) -> Wish:
    """The request, told that it is made once more because ``record`` did not come out well."""
    attempt = record.attempt + 1
    note = say("en", "again_note", attempt=attempt + 1, take=record.id)
    notes = (*wish.options.get("notes", ()), note)
    options = {**wish.options, "group": record.group, "attempt": attempt, "notes": notes}
    return replace(wish, options=options)


def like_notes(record: TakeRecord) -> tuple[str, ...]:
    """Where the voice of a take like ``record`` comes from, for its own record."""
    notes = [say("en", "around_note", take=record.id, seed=record.seed)]
    clips = {
        "reference": (record.reference_name, record.reference_hash),
        "prompt": (record.prompt_name, record.prompt_hash),
    }
    for use, (name, known) in clips.items():
        if known:
            notes.append(say("en", "around_note_clip", use=use, name=name, hash=known[:12]))
    if record.consent:
        notes.append(say("en", "cloning_consent_note"))
    return tuple(notes)


def planned(kind: str, wish: Wish, before: Sequence[TakeRecord | None], picked: int | None) -> list[tuple[int, int]]:
    """Which lane gets which seed. before: the takes that are shown now. Raises SettingError when it makes no sense.

    ``picked`` is the lane of the picked take, for "lane" that of the take to make once more.
    """
    if kind == "new":
        base = secrets.randbelow(SEED_LIMIT) if wish.seed is None else wish.seed
        return [(slot, (base + slot) % SEED_LIMIT) for slot in range(min(max(wish.takes, 1), SLOTS))]
    there = [slot for slot in range(SLOTS) if before[slot]]
    if not there:
        raise SettingError("ask_takes")
    if kind == "text":
        if all(before[slot].typed_text == wish.request.text for slot in there):
            raise SettingError("ask_other_text")
        return [(slot, before[slot].seed) for slot in there]
    if kind == "around":
        if picked is None:
            raise SettingError("ask_pick")
        others = [slot for slot in range(SLOTS) if slot != picked]
        return [(slot, (before[picked].seed + k) % SEED_LIMIT) for k, slot in enumerate(others, 1)]
    if kind == "lane":
        if picked not in there:  # it has been deleted meanwhile
            raise SettingError("take_gone")
        return [(picked, secrets.randbelow(SEED_LIMIT))]
    others = [slot for slot in range(max(wish.takes, max(there) + 1)) if slot != picked]
    if not others:  # one take only, and it is picked: the next lane is free
        others = [slot for slot in range(SLOTS) if slot != picked][:1]
    return [(slot, secrets.randbelow(SEED_LIMIT)) for slot in others]

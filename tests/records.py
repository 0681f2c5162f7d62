"""Takes to put into a store: a tone and a record that fits it."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np

from studio.events import Finished
from studio.store import Store
from studio.synthesizer import Synthesizer
from studio.takes import TakeRecord, new_take_id, utc_text

TONE = (0.3 * np.sin(np.arange(4800) / 10)).astype(np.float32)


def make_record(**changes: Any) -> TakeRecord:
    values = dict(
        id=new_take_id(),
        created=utc_text(),
        session="local",
        tab="tts",
        typed_text="Hello  there",
        typed_control="calm",
        normalize=True,
        spoken_text="Hello there",
        control="calm",
        notes=("Two blanks became one.",),
        mode="design",
        seed=2**32 - 1,
        versions={"torch": "2.0"},
        sample_rate=48_000,
        seconds=0.1,
        first_audio_seconds=0.02,
    )
    return TakeRecord(**{**values, **changes})


def ready(store: Store, model: Any, **options: Any) -> Synthesizer:
    """A synthesizer with its model loaded."""
    synthesizer = Synthesizer(store, lambda on_progress: model, **options)
    synthesizer.load()
    assert synthesizer.wait(10).state == "ready"
    return synthesizer


def takes_of(events: Any) -> list[TakeRecord]:
    """The records of a whole job, in the order in which its rows ended."""
    with closing(events) as iterator:
        return [event.record for event in iterator if isinstance(event, Finished)]

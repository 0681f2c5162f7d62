"""What the studio hears from its synthesizer: the events of a job, and the status of the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from studio.takes import TakeRecord


@dataclass(frozen=True)
class Started:
    """The job runs: its id (for :meth:`Synthesizer.stop`), one seed per row, the rate of all its audio.

    ``group`` is what all its takes have in common; hand it to another job whose takes belong to the same choice.
    """

    job_id: str
    seeds: tuple[int, ...]
    sample_rate: int
    group: str = ""


@dataclass(frozen=True)
class Chunk:
    """New audio of a row: a whole 16-bit PCM WAV file for the player, and the same as float32 samples [n]."""

    row: int
    wav: bytes
    samples: np.ndarray


@dataclass(frozen=True)
class Progress:
    """How far a row is: patches and seconds of audio made; ``rtf`` is seconds of work per second of audio."""

    row: int
    patches: int
    seconds: float
    rtf: float


@dataclass(frozen=True)
class Finished:
    """A row has ended and its take is stored.

    ``record.file_name`` is "" when there is no file to play; ``record.message`` says why.
    """

    row: int
    record: TakeRecord


@dataclass(frozen=True)
class Reason:
    """Why a take may not come out as it was. ``blocks``: it cannot even be tried.

    ``what``: "reference", "prompt", "lora", "model", "device", "dtype", "library", "text" or "support"; with ``state``
    ("missing" or "changed") and ``facts`` a page finds its own words for ``sentence``.
    """

    what: str
    state: str
    sentence: str
    blocks: bool
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Replayed:
    """A take was made again: is it the same? ``difference`` is the largest between two samples at full scale 1.

    ``difference`` is None when the lengths differ or the original's file is gone; ``sentence`` says it in words.
    """

    original: TakeRecord
    record: TakeRecord
    identical: bool
    difference: float | None
    sentence: str
    reasons: tuple[Reason, ...]


Event = Started | Chunk | Progress | Finished


@dataclass(frozen=True)
class ModelStatus:
    """What the page shows about the model. The model's facts are empty until ``state`` is "ready"."""

    state: str = "loading"  # "loading" | "ready" | "failed"
    stage: str = ""  # what is being done, for example "loading weights"
    fraction: float | None = None  # 0..1, None when it cannot be known
    message: str = ""  # why it failed and what to do
    notice: str = ""  # worth saying although it works, as when nano stands in for a model out of reach
    name: str = ""
    generation: str = ""
    device: str = ""
    dtype: str = ""
    sample_rate: int = 0
    supports_reference: bool = False
    supports_control: bool = False
    defaults: Any = None  # GenerationDefaults(cfg_value, inference_timesteps, temperature)

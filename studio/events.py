"""What the studio hears from its synthesizer: the events of a job, and the status of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from studio.takes import TakeRecord


@dataclass(frozen=True)
class Started:
    """The job runs: its id (for :meth:`Synthesizer.stop`), one seed per row, the rate of all its audio."""

    job_id: str
    seeds: tuple[int, ...]
    sample_rate: int


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

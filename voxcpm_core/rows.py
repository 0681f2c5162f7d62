"""What the engine's thread is handed and keeps: requests that wait, rows that run, calls, and what was read before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from .audio_vae import State
from .generation import Generation
from .jobs import Job
from .model import Prefilled, VoicePrefix
from .request import Take


@dataclass
class Row:
    """One take on its way. Lives at the same place in the engine's list as in every tensor of the batch."""

    job: Job
    generation: Generation
    number: int
    seed: int
    submitted: float
    admitted: float
    generator: torch.Generator
    chunks: list[np.ndarray] = field(default_factory=list)
    first_audio: float | None = None

    def noise(self, shape: tuple[int, int]) -> Tensor:
        """Noise of the next patch, [D, P]. Drawn on the CPU: the same on every device and beside any other rows."""
        return torch.randn(shape, generator=self.generator) * self.job.temperature

    def take(self, sample_rate: int, ended_by: str, message: str) -> Take:
        samples = np.concatenate(self.chunks) if self.chunks else np.zeros(0, np.float32)
        job, now = self.job, time.perf_counter()
        return Take(
            samples=samples,
            sample_rate=sample_rate,
            seed=self.seed,
            ended_by=ended_by,
            message=message,
            patches=len(self.chunks),
            spoken=job.spoken,
            cfg_value=job.cfg_value,
            inference_timesteps=job.inference_timesteps,
            temperature=job.temperature,
            generation_seconds=now - self.admitted,
            first_audio_seconds=self.first_audio,
        )


@dataclass
class Waiting:
    """A request whose rows are not all running yet."""

    job: Job
    generation: Generation
    submitted: float
    start: tuple[Prefilled, State] | None = None  # once read, shared by the rows that are still to be admitted
    rows: list[tuple[int, int]] = field(default_factory=list)
    admitted: float = 0.0


@dataclass
class Call:
    """A function that needs the model to itself (a profiler's start); runs when no row is running."""

    function: Callable[[], object]
    done: threading.Event = field(default_factory=threading.Event)
    result: object = None
    error: BaseException | None = None


@dataclass
class Known:
    """What was computed for a reference before; taken into the caches as soon as it arrives."""

    key: str
    latents: Tensor
    prefix: VoicePrefix | None

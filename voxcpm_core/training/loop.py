"""A run from its first step to its last: saving, validating, reporting, and stopping when asked."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import torch

from .adapters import save_adapters
from .curves import draw_curves
from .folder import export
from .journal import Journal
from .trainer import Trainer, save_state

log = logging.getLogger(__name__)

_SILENCE = 300.0  # seconds without a report at most, when steps are slow

Validate = Callable[[Trainer], dict[str, float]]  # values for the log; "score", if there: less is better


def run(trainer: Trainer, base: Path, out: Path, validate: Validate | None = None) -> None:
    """Trains until the end of ``trainer.options`` or SIGTERM / Ctrl-C, then saves and exports.

    Every ``save_minutes`` and at the end: ``state.pt``, ``log.csv``, ``curves.png``; with a validation also ``best``
    whenever its score is the lowest so far. At the end: ``model`` (or ``lora``).
    """
    options, progress = trainer.options, trainer.progress
    out.mkdir(parents=True, exist_ok=True)
    (out / "options.json").write_text(options.to_json(), encoding="utf-8")
    journal, clock = Journal(out), _Clock(options.steps, options.minutes, progress.step)
    recent: list[dict[str, float]] = []
    saved = reported = time.monotonic()
    with stop_signals() as stopping:
        while not stopping.is_set() and not clock.done(progress.step):
            recent.append(trainer.step(clock.fraction(progress.step)))
            if len(recent) >= options.log_every or time.monotonic() - reported > _SILENCE:
                values = _mean(recent)
                values["seconds_per_step"] = (time.monotonic() - reported) / len(recent)
                values["rate"] = values["scale"] * options.rate
                journal.report("train", progress.step, progress.examples, values, clock.left(progress.step))
                recent, reported = [], time.monotonic()
            if time.monotonic() - saved > 60 * options.save_minutes:
                checkpoint(trainer, base, out, journal, validate)
                saved = reported = time.monotonic()
                recent = []
    checkpoint(trainer, base, out, journal, validate)
    write_result(trainer, base, out / ("lora" if options.lora else "model"))


def checkpoint(trainer: Trainer, base: Path, out: Path, journal: Journal, validate: Validate | None) -> None:
    if validate is not None:
        values, progress = validate(trainer), trainer.progress
        journal.report("val", progress.step, progress.examples, values)
        score = values.get("score")
        if score is not None and (progress.best is None or score < progress.best):
            progress.best = score
            write_result(trainer, base, out / "best")
    save_state(trainer, out)
    draw_curves(out / "log.csv", out / "curves.png")
    log.info("Saved %s at step %d.", out / "state.pt", trainer.progress.step)


def write_result(trainer: Trainer, base: Path, folder: Path) -> Path:
    """What the training made so far: a checkpoint folder, or an adapter."""
    if trainer.options.lora is not None:
        return save_adapters(trainer.weights(), trainer.options.lora, str(base), folder)
    weights = {**trainer.model.state_dict(), **trainer.weights()}
    dtype = torch.bfloat16 if trainer.options.export_dtype == "bfloat16" else torch.float32
    return export(weights, base, folder, dtype)


@contextmanager
def stop_signals():
    """An event that SIGTERM and Ctrl-C set; nothing sets it outside the main thread, where signals are not heard."""
    stopping = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in numbers}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Clock:
    """How much of a run is done: by steps in all, or by minutes of this run."""

    def __init__(self, steps: int, minutes: float, first_step: int):
        self._steps, self._seconds, self._first = steps, 60 * minutes, first_step
        self._began = time.monotonic()

    def done(self, step: int) -> bool:
        return step >= self._steps if self._steps else time.monotonic() - self._began > self._seconds

    def fraction(self, step: int) -> float:
        if self._steps:
            return step / self._steps
        return min(1.0, (time.monotonic() - self._began) / self._seconds)

    def left(self, step: int) -> float:
        """Seconds."""
        passed = time.monotonic() - self._began
        if not self._steps:
            return max(0.0, self._seconds - passed)
        return passed / max(1, step - self._first) * (self._steps - step)


def _mean(values: list[dict[str, float]]) -> dict[str, float]:
    return {name: sum(value[name] for value in values) / len(values) for name in values[0]}

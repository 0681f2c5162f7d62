"""What a training tells: a CSV file with one line per report, a picture of its curves, and sentences with an ETA."""

from __future__ import annotations

import csv
import logging
import time
from pathlib import Path

log = logging.getLogger(__name__)

COLUMNS = (
    "kind time minutes step examples diffusion stop attention phones plain norm rate seconds_per_step patches score "
    "wer similarity mel unended timbre"
).split()
_LOSSES = ("diffusion", "stop", "attention", "phones", "timbre")


class Journal:
    """Appends to ``folder/log.csv``; lines of the same file from before a resume stay."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "log.csv"
        self._began = time.monotonic()
        if not self.file.is_file():
            self._append(COLUMNS)

    def report(self, kind: str, step: int, examples: int, values: dict[str, float], left: float | None = None) -> None:
        """``kind`` is train or val; ``values`` by column name; ``left`` = seconds until the end."""
        minutes = (time.monotonic() - self._began) / 60
        row = {"kind": kind, "time": time.strftime("%Y-%m-%d %H:%M:%S"), "minutes": f"{minutes:.2f}"}
        row |= {"step": step, "examples": examples}
        row |= {name: f"{value:.5g}" for name, value in values.items() if name in COLUMNS}
        self._append([row.get(column, "") for column in COLUMNS])
        said = " ".join(f"{name} {values[name]:.4f}" for name in _LOSSES if values.get(name))
        pace = f", {values['seconds_per_step']:.2f} s a step" if "seconds_per_step" in values else ""
        eta = f", about {left / 60:.0f} min left" if left is not None else ""
        log.info("%s step %d, %d examples: %s%s%s", kind, step, examples, said, pace, eta)

    def _append(self, row: list | tuple) -> None:
        with self.file.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(row)


def read_curves(file: Path) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """{"train" or "val": {loss: [(step, value), ...]}} of a log.csv; losses that are 0 throughout are left out."""
    curves: dict[str, dict[str, list[tuple[int, float]]]] = {}
    with file.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            for name in _LOSSES:
                if row.get(name) and float(row[name]):
                    curves.setdefault(row["kind"], {}).setdefault(name, []).append((int(row["step"]), float(row[name])))
    return curves

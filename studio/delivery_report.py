"""Does a finished file pass? Measured on the encoded file, which is decoded again, never on what went into it.

A report is plain data: one row per question with what was measured, what is wanted, "pass", "fail" or "info" (not asked
for by the preset), and what to do about a failure. It is kept as JSON and as a page of its own (studio/report_page.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studio.containers import Chapter, FileFacts, decoded, probe
from studio.loudness_meter import NOTHING, Levels, Meter
from studio.mastering import Preset
from studio.mp3_frames import bit_rates
from studio.provenance import read_comment
from studio.report_words import ADVICE, LABELS, PHRASES, spoken

MARK_TOLERANCE_MS = 20.0
LENGTH_TOLERANCE = 0.05  # seconds, or two of AAC's frames where these are longer: encoders pad the last one
FRAME_SAMPLES = 1024
LANDMARK_SECONDS = 0.6
SEARCHED_SECONDS = 0.25  # to both sides of where a landmark should be

_LOSSLESS = ("pcm_", "flac")


@dataclass(frozen=True)
class Landmark:
    """A little of the sound that was encoded, to be found again: ``samples`` [n] from sample ``at``."""

    at: int
    samples: np.ndarray


@dataclass(frozen=True)
class Plan:
    """What a file was meant to be. ``landmarks``: one per chapter, where its first words begin."""

    seconds: float
    chapters: tuple[Chapter, ...] = ()
    landmarks: tuple[Landmark, ...] = ()
    one_chapter: bool = True  # the limit on length is for files of one chapter


@dataclass(frozen=True)
class Row:
    """One line of a report. ``value`` is a number, a truth or None; ``shown`` and ``wanted`` are ready to read."""

    name: str
    value: float | bool | None
    unit: str
    shown: str
    wanted: str
    status: str  # "pass" | "fail" | "info"
    label: str = ""
    advice: str = ""


def report_file(path: Path, preset: Preset, plan: Plan | None = None, language: str = "en") -> dict[str, Any]:
    """Measure a finished file. Raises ExportError when it cannot be read."""
    facts = probe(path)
    levels, drifts = _listen(path, facts.sample_rate, plan)
    rows = [_worded(row, language) for row in _rows(path, facts, levels, drifts, preset, plan, language)]
    failed = [row.name for row in rows if row.status == "fail"]
    return {
        "name": path.name,
        "bytes": path.stat().st_size,
        "seconds": round(levels.seconds, 3),
        "status": "fail" if failed else "pass",
        "failed": failed,
        "rows": [asdict(row) for row in rows],
        "chapters": [asdict(chapter) for chapter in facts.chapters],
    }


def whole_report(files: Sequence[dict[str, Any]], preset: Preset, tool: str, created: str) -> dict[str, Any]:
    """The report on a delivery from the reports on its files."""
    failed = [file["name"] for file in files if file["status"] == "fail"]
    return {
        "preset": preset.name,
        "tool": tool,
        "created": created,
        "status": "fail" if failed else "pass",
        "failed": failed,
        "files": list(files),
    }


def _listen(path: Path, sample_rate: int, plan: Plan | None) -> tuple[Levels, list[float | None]]:
    """Decode once: the levels, and by how many seconds each landmark was missed (None: not found)."""
    meter, at = Meter(sample_rate), 0
    searches = [_Search(mark, sample_rate) for mark in (plan.landmarks if plan else ())]
    for block in decoded(path, sample_rate):
        meter.add(block)
        for search in searches:
            search.hear(block, at)
        at += len(block)
    return meter.levels(), [search.drift() for search in searches]


class _Search:
    """Keeps the sound around where a landmark should be, and finds it there."""

    def __init__(self, landmark: Landmark, sample_rate: int) -> None:
        self._landmark, self._rate = landmark, sample_rate
        self._reach = round(SEARCHED_SECONDS * sample_rate)
        self._first = landmark.at - self._reach
        self._near = np.zeros(len(landmark.samples) + 2 * self._reach, np.float32)

    def hear(self, block: np.ndarray, at: int) -> None:
        start, stop = max(self._first, at), min(self._first + len(self._near), at + len(block))
        if start < stop:
            self._near[start - self._first : stop - self._first] = block[start - at : stop - at]

    def drift(self) -> float | None:
        wanted = self._landmark.samples
        size = 1 << (len(self._near) + len(wanted)).bit_length()
        spectrum = np.fft.rfft(self._near, size) * np.conj(np.fft.rfft(wanted, size))
        likeness = np.fft.irfft(spectrum, size)[: 2 * self._reach + 1]
        best = int(likeness.argmax())
        energy = float(np.square(wanted, dtype=float).sum())
        if not energy:
            return 0.0  # a chapter of silence has nothing that could be misplaced
        if likeness[best] < 0.5 * energy:
            return None
        return (best - self._reach) / self._rate


def _rows(
    path: Path,
    facts: FileFacts,
    levels: Levels,
    drifts: Sequence[float | None],
    preset: Preset,
    plan: Plan | None,
    language: str,
) -> Iterator[Row]:
    words = _Words(language)
    yield _range("rms", levels.rms, "dB", preset.level if preset.measure == "rms" else None, words)
    yield _range("lufs", levels.lufs, "LUFS", preset.level if preset.measure == "lufs" else None, words)
    yield _range("true_peak", levels.peak, "dBTP", (None, preset.ceiling), words)
    yield _range("noise_floor", levels.floor, "dB", (None, preset.floor), words)
    yield _range("head", levels.head, "s", preset.head, words)
    yield _range("tail", levels.tail, "s", preset.tail, words)
    one = plan is None or plan.one_chapter
    yield _range(
        "duration", levels.seconds / 60, "min", (None, preset.longest / 60 if preset.longest and one else None), words
    )
    if plan is not None:
        near = max(LENGTH_TOLERANCE, 2 * FRAME_SAMPLES / facts.sample_rate)
        yield _range("complete", levels.seconds, "s", (plan.seconds - near, plan.seconds + near), words, 2)
    yield from _format_rows(path, facts, preset, one, words)
    if plan is not None and plan.chapters:
        yield _chapter_row(facts.chapters, plan, drifts, words)
    marked = read_comment(facts.tags.get("comment", "")) is not None
    yield Row("marked", marked, "", words("yes" if marked else "no"), words("yes"), _verdict(marked))


def _format_rows(path: Path, facts: FileFacts, preset: Preset, one_chapter: bool, words: _Words) -> Iterator[Row]:
    # Shops that ask for MP3 want a file per chapter; a whole book in one file is for players.
    lossless, mp3 = facts.codec.startswith(_LOSSLESS), facts.codec == "mp3"
    wanted = preset.mp3_kbps
    yield Row(
        "format", None, "", facts.codec, "mp3" if wanted else "", _verdict(mp3) if wanted and one_chapter else "info"
    )
    rates = bit_rates(path) if mp3 else set()
    kbps = min(rates, default=facts.bit_rate)
    kept = "lossless" if lossless else "constant" if len(rates) == 1 else "variable"
    good = len(rates) == 1 and kbps >= (wanted or 0)
    yield Row(
        "bit_rate",
        None if lossless else float(kbps),
        "" if lossless else "kbit/s",
        words(kept) if lossless else f"{kbps} kbit/s, {words(kept)}",
        f"{words('at_least', low=wanted)} kbit/s, {words('constant')}" if wanted else "",
        _verdict(good) if wanted and mp3 else "info",
    )
    rate = preset.sample_rate
    shown = f"{facts.sample_rate} Hz"
    same = _verdict(facts.sample_rate == rate) if rate else "info"
    yield Row("sample_rate", float(facts.sample_rate), "Hz", shown, f"{rate} Hz" if rate else "", same)
    one = _verdict(facts.channels == 1) if preset.shapes_levels else "info"
    yield Row("channels", float(facts.channels), "", str(facts.channels), "1" if preset.shapes_levels else "", one)


def _chapter_row(found: Sequence[Chapter], plan: Plan, drifts: Sequence[float | None], words: _Words) -> Row:
    """Marks at the right places: where they should be, and where the sound they stand for really is in the file."""
    wanted = words("marks_wanted", count=len(plan.chapters), error=f"{MARK_TOLERANCE_MS:.0f}")
    if [chapter.title.strip() for chapter in found] != [chapter.title.strip() for chapter in plan.chapters]:
        return Row("chapters", None, "ms", words("wrong_titles"), wanted, "fail")
    lost = any(drift is None for drift in drifts)
    moved = [drift or 0.0 for drift in drifts] or [0.0] * len(found)
    # The sound of a chapter begins `drift` later than planned; its mark should have moved with it.
    errors = [abs(mark.start - (aim.start + by)) for mark, aim, by in zip(found, plan.chapters, moved, strict=True)]
    worst = 1000 * max(errors)
    shown = words("marks", count=len(found), error=f"{worst:.1f}")
    return Row("chapters", worst, "ms", shown, wanted, _verdict(worst <= MARK_TOLERANCE_MS and not lost))


Bounds = tuple[float | None, float | None]


def _range(name: str, value: float | None, unit: str, bounds: Bounds | None, words: _Words, digits: int = 1) -> Row:
    """A number that should lie between two bounds, either of which may be None."""
    low, high = bounds or (None, None)
    silent = value is None or (value <= NOTHING and unit.startswith(("dB", "LUFS")))
    shown = words("silence") if silent else f"{value:.{digits}f} {unit}"
    if low is None and high is None:
        return Row(name, value, unit, shown, "", "info")
    # What is shown is what is judged: a floor that reads -60.0 passes at -60.
    judged = None if value is None else round(value, digits)
    good = judged is not None and (low is None or judged >= round(low, digits)) and (high is None or judged <= high)
    ends = {"low": "" if low is None else f"{low:.{digits}f}", "high": "" if high is None else f"{high:.{digits}f}"}
    phrase = "at_most" if low is None else "at_least" if high is None else "between"
    return Row(name, value, unit, shown, f"{words(phrase, **ends)} {unit}", _verdict(good))


class _Words:
    """The report's phrases in one language."""

    def __init__(self, language: str) -> None:
        self._language = language

    def __call__(self, key: str, **values: object) -> str:
        return spoken(PHRASES, key, self._language, **values)


def _worded(row: Row, language: str) -> Row:
    advice = spoken(ADVICE, row.name, language) if row.status == "fail" else ""
    return Row(**{**asdict(row), "label": spoken(LABELS, row.name, language), "advice": advice})


def _verdict(good: bool) -> str:
    return "pass" if good else "fail"

"""A chapter's pieces, one after another: resampled, levelled by voice, with pauses, written to disk as float samples.

Nothing is held in memory but one piece. Where each piece begins and ends is kept, in samples: chapter marks and
subtitles come from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from studio.loudness import loudness
from studio.loudness_meter import FRAME_SECONDS, quiet_edges
from studio.mastering import Preset, gain_of, voice_gains
from studio.trimming import trim_to_pause
from voxcpm_core.audio import Audio, resample

FADE_SECONDS = 0.003  # at both ends of every piece: a take that begins or ends in mid-wave would click
SAMPLE_SECONDS = 5 * 60.0  # what shops take at most as a retail sample

Word = tuple[float, float, str]  # start and end in seconds from the piece's start, the word as written
Mark = Callable[[np.ndarray, int], np.ndarray]  # puts a watermark into samples [n] at a rate


@dataclass(frozen=True)
class Piece:
    """One spoken segment and the sound of its chosen take, or how to load that.

    ``voice`` names whose level this is (one gain for all its pieces), ``speaker`` who is shown in subtitles.
    """

    text: str
    audio: Audio | Callable[[], Audio] = field(repr=False)
    pause_ms: int = 0  # of silence behind it
    voice: str = ""
    speaker: str = ""
    words: tuple[Word, ...] = ()

    def load(self) -> Audio:
        return self.audio() if callable(self.audio) else self.audio


@dataclass(frozen=True)
class ChapterAudio:
    """A chapter ready for export. ``kind``: "chapter", "opening" or "closing" (credits), or "sample"."""

    title: str
    pieces: tuple[Piece, ...]
    kind: str = "chapter"


@dataclass(frozen=True)
class Span:
    """Where a piece lies, in samples from the start of its file."""

    start: int
    stop: int
    piece: Piece = field(repr=False)

    def moved(self, by: int) -> Span:
        return replace(self, start=self.start + by, stop=self.stop + by)


class Spooled:
    """Float samples in a file, read where they are needed: ``len(...)`` and ``[start:stop]`` as of an array [n]."""

    def __init__(self, path: Path) -> None:
        self._path, self._count = path, path.stat().st_size // 4

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, part: slice) -> np.ndarray:
        start, stop, _ = part.indices(self._count)
        return np.fromfile(self._path, "<f4", max(0, stop - start), offset=4 * start)


def lay_out(
    chapter: ChapterAudio,
    file: BinaryIO,
    sample_rate: int,
    preset: Preset,
    gains: Mapping[str, float] | None = None,
    mark: Mark | None = None,
    check: Callable[[], None] = lambda: None,
) -> list[Span]:
    """Write a chapter as float32 samples; returns where its pieces lie. ``check`` may raise between two pieces.

    The head and the tail have the preset's length, counted from where speech is heard, without cutting into it.
    """
    spans: list[Span] = []
    at = 0
    for number, piece in enumerate(chapter.pieces):
        check()
        first, last = number == 0, number == len(chapter.pieces) - 1
        samples, cut = _fitted(piece, sample_rate, preset, first, last)
        before = _missing(samples, sample_rate, preset.head_seconds, head=True) if first else 0
        at += _write(file, np.zeros(before, np.float32))
        if mark is not None:
            samples = mark(samples, sample_rate)
        start = at
        at += _write(file, samples * np.float32(gain_of(gains or {}, piece.voice)))
        spans.append(Span(start, at, _without(piece, cut / sample_rate)))
        after = round(piece.pause_ms * sample_rate / 1000)
        if last and preset.tail_seconds:
            after = _missing(samples, sample_rate, preset.tail_seconds, head=False)
        at += _write(file, np.zeros(after, np.float32))
    return spans


def gains_for(chapters: Iterable[ChapterAudio], preset: Preset) -> dict[str, float]:
    """One gain in dB per voice over all chapters. Without a second voice nothing is read: chapter loudness does it."""
    chapters = list(chapters)
    voices = {piece.voice for chapter in chapters for piece in chapter.pieces}
    if not preset.shapes_levels or len(voices) < 2:
        return {}
    return voice_gains(_loudnesses(chapters))


def retail_sample(chapters: Iterable[ChapterAudio], title: str, seconds: float = SAMPLE_SECONDS) -> ChapterAudio | None:
    """The beginning of the first real chapter, no longer than ``seconds`` with its head and tail, cut at a pause.

    A first piece longer than that is cut at a pause inside it. None for a book without a chapter.
    """
    first = next((chapter for chapter in chapters if chapter.kind == "chapter" and chapter.pieces), None)
    if first is None:
        return None
    room, kept = seconds - 5.0, []  # the longest head and tail
    for piece in first.pieces:
        length = piece.load().seconds
        if length > room:
            break
        kept.append(piece)
        room -= length + piece.pause_ms / 1000
    if not kept:
        opening = first.pieces[0].load()
        cut = Audio(trim_to_pause(opening.samples, opening.sample_rate, room), opening.sample_rate)
        kept = [replace(first.pieces[0], audio=cut, text="", words=())]  # which words are in it is not known
    return ChapterAudio(title, tuple(kept), "sample")


def _loudnesses(chapters: Iterable[ChapterAudio]) -> Iterable[tuple[str, float | None, float]]:
    for chapter in chapters:
        for piece in chapter.pieces:
            audio = piece.load()
            yield piece.voice, loudness(audio.samples, audio.sample_rate), audio.seconds


def _fitted(piece: Piece, sample_rate: int, preset: Preset, first: bool, last: bool) -> tuple[np.ndarray, int]:
    """The piece at the final rate, without a long silence at the chapter's edge; its ends fade within 3 ms.

    Returns how many samples of its beginning were cut off, too.
    """
    samples = resample(piece.load(), sample_rate).samples
    if not preset.shapes_levels or not len(samples):
        return samples, 0
    head, tail = _edges(samples, sample_rate)
    cut_head = max(0, head - round(preset.head_seconds * sample_rate)) if first else 0
    cut_tail = max(0, tail - round(preset.tail_seconds * sample_rate)) if last else 0
    samples = samples[cut_head : len(samples) - cut_tail].copy()
    fade = min(len(samples) // 2, round(FADE_SECONDS * sample_rate))
    ramp = np.linspace(0, 1, fade, dtype=np.float32)
    samples[:fade] *= ramp
    samples[len(samples) - fade :] *= ramp[::-1]
    return samples, cut_head


def _without(piece: Piece, seconds: float) -> Piece:
    """The piece whose first ``seconds`` were cut off: its words come earlier."""
    if not seconds or not piece.words:
        return piece
    moved = ((max(0.0, start - seconds), max(0.0, end - seconds), word) for start, end, word in piece.words)
    return replace(piece, words=tuple(moved))


def _missing(samples: np.ndarray, sample_rate: int, seconds: float, head: bool) -> int:
    """Samples of silence that are missing to ``seconds`` of quiet at one edge."""
    quiet = _edges(samples, sample_rate)[0 if head else 1]
    return max(0, round(seconds * sample_rate) - quiet)


def _edges(samples: np.ndarray, sample_rate: int) -> tuple[int, int]:
    """Samples before the sound begins and after it has ended; none of either in a piece without any."""
    frame = max(1, round(FRAME_SECONDS * sample_rate))
    powers = np.square(samples[: len(samples) // frame * frame].reshape(-1, frame), dtype=float).mean(axis=1)
    total = float(np.square(samples, dtype=float).mean()) if len(samples) else 0.0
    if not total:
        return 0, 0
    head, tail = quiet_edges(powers, 10 * np.log10(total))
    if head == len(powers):
        return 0, 0
    return head * frame, tail * frame + len(samples) % frame


def _write(file: BinaryIO, samples: np.ndarray) -> int:
    file.write(np.ascontiguousarray(samples, "<f4").data)
    return len(samples)

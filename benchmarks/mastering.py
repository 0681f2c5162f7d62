"""How long it takes to make a finished chapter: mastering alone, and the whole delivery with encoding and report.

python benchmarks/mastering.py [--minutes 60] [--rate 44100] [--format mp3] [--presets audiobook,podcast]

The sound is noise with the rhythm and the peaks of speech, at 48 kHz as VoxCPM2 makes it. Processor time of this
program and of FFmpeg is told besides, which says more than the clock on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

PIECE_SECONDS = 20.0


def speech(seconds: float, rate: int, seed: int) -> np.ndarray:
    """Filtered noise in syllables of 200 ms and phrases of 2 s, -24 dB RMS; float32 [n]."""
    rng = np.random.default_rng(seed)
    count = round(seconds * rate)
    hertz = np.fft.rfftfreq(count, 1 / rate)
    voice = np.fft.irfft(np.fft.rfft(rng.standard_normal(count)) / (1 + (hertz / 900) ** 2) * (hertz > 90), count)
    at = np.arange(count) / rate
    knots = np.arange(0, seconds + 1, 0.2)
    sound = voice * np.interp(at, knots, rng.uniform(0.05, 1.0, len(knots))) ** 2 * (at % 2.1 < 1.8)
    return (sound * 10 ** (-24 / 20) / np.sqrt(np.mean(np.square(sound)))).astype(np.float32)


def measured(work: Callable[[], None]) -> dict[str, float]:
    """Seconds of processor (with finished child processes) and of the clock that ``work()`` takes."""
    before, began = os.times(), time.monotonic()
    work()
    after = os.times()
    return {
        "own_cpu_s": round(sum(after[:2]) - sum(before[:2]), 1),
        "ffmpeg_cpu_s": round(sum(after[2:4]) - sum(before[2:4]), 1),
        "clock_s": round(time.monotonic() - began, 1),
    }


def main() -> None:
    from studio.containers import LOSSY_MARGIN
    from studio.delivery import BookInfo, Order, deliver
    from studio.layout import ChapterAudio, Piece
    from studio.mastering import PRESETS, master
    from studio.provenance import facts_now
    from voxcpm_core.audio import Audio

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=44_100)
    parser.add_argument("--format", default="mp3")
    parser.add_argument("--presets", default="audiobook,podcast")
    options = parser.parse_args()
    takes = [Audio(speech(PIECE_SECONDS, 48_000, seed), 48_000) for seed in range(6)]
    pieces = [Piece("Words.", takes[n % 6], 400) for n in range(round(options.minutes * 60 / (PIECE_SECONDS + 0.4)))]
    chapter = ChapterAudio("Chapter", tuple(pieces))
    flat = np.tile(np.concatenate([speech(PIECE_SECONDS, options.rate, seed) for seed in range(6)]), len(pieces) // 6)
    result: dict[str, object] = {"minutes": options.minutes, "rate": options.rate, "format": options.format}
    for name in options.presets.split(","):

        def mastering(preset: str = name) -> None:
            for _ in master(flat, options.rate, PRESETS[preset], LOSSY_MARGIN).blocks():
                pass

        def delivery(preset: str = name) -> None:
            with tempfile.TemporaryDirectory() as folder:
                order = Order(options.format, preset, sample_rate=options.rate, watermark=False, credentials=False)
                deliver(BookInfo("Benchmark"), [chapter], order, Path(folder), facts_now([]))

        result[name] = {"mastering": measured(mastering), "delivery": measured(delivery)}
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

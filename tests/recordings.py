"""Sound for the tests of mastering and export: noise with the rhythm, the pauses and the peaks of speech.

Made from fixed seeds in a moment, so that minutes of it cost nothing.
"""

from __future__ import annotations

import json
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from studio.containers import decoded
from studio.layout import ChapterAudio, Piece
from voxcpm_core.audio import Audio


@lru_cache(maxsize=64)
def speech(seconds: float, rate: int = 24_000, seed: int = 1, level_db: float = -24.0) -> np.ndarray:
    """float32 [n] of this RMS: syllables of 200 ms with a pause of 300 ms about every 2 s, peaks 15 dB above."""
    rng = np.random.default_rng(seed)
    count = round(seconds * rate)
    spectrum = np.fft.rfft(rng.standard_normal(count))
    hertz = np.fft.rfftfreq(count, 1 / rate)
    voice = np.fft.irfft(spectrum / (1 + (hertz / 900) ** 2) * (hertz > 90), count)
    at = np.arange(count) / rate
    knots = np.arange(0, seconds + 1, 0.2)
    syllables = np.interp(at, knots, rng.uniform(0.05, 1.0, len(knots))) ** 2
    talking = np.minimum(np.sin(np.pi * np.clip((at % 2.1) / 1.8, 0, 1)) * 8, 1)
    sound = voice * syllables * talking
    return (sound * 10 ** (level_db / 20) / np.sqrt(np.mean(np.square(sound)))).astype(np.float32)


def quiet_room(count: int, level_db: float, seed: int = 9) -> np.ndarray:
    """Hiss of this RMS, float32 [count]."""
    return (np.random.default_rng(seed).standard_normal(count) * 10 ** (level_db / 20)).astype(np.float32)


def chapter(title: str, pieces: int = 3, seconds: float = 4.0, first: int = 0, rate: int = 24_000) -> ChapterAudio:
    """A chapter of two speakers, the second 9 dB quieter, with pauses of 500 ms."""
    made = []
    for number in range(first, first + pieces):
        quiet = number % 3 == 2
        audio = Audio(speech(seconds, rate, number, -33.0 if quiet else -24.0), rate)
        who = "Bob" if quiet else ""
        made.append(Piece(f"Sentence number {number} is spoken here, and it goes on.", audio, 500, who, who))
    return ChapterAudio(title, tuple(made))


def heard(path: Path, rate: int) -> np.ndarray:
    """The whole sound of a file as the studio decodes it, float32 [n]."""
    return np.concatenate([np.zeros(0, np.float32), *decoded(path, rate)])


def ffprobe(path: Path) -> dict[str, Any]:
    """What FFmpeg's own tool says of a file: format, streams and chapters. Another reader than the studio's."""
    command = ["ffprobe", "-v", "error", "-show_format", "-show_streams", "-show_chapters", "-of", "json", str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

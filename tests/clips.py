"""Twelve prepared clips, made from synthetic speech: what a good reference and the usual bad ones sound like.

The speech is hibari-tts's one voice (Apache-2.0, its weights are in the wheel of requirements-dev.txt). Everything
is made from fixed seeds and kept for the run.
"""

from __future__ import annotations

import os
import subprocess
from functools import lru_cache

import numpy as np
import pytest

from voxcpm_core.audio import Audio, ffmpeg_path, resample

RATE = 24_000  # hibari's
SENTENCES = (
    "The old lighthouse keeper climbed the stairs every evening before the sun went down.",
    "He trimmed the lamp, wiped the glass, and wrote a few lines in his book.",
    "Nobody had visited the island since the storm in early spring.",
    "On clear nights he could see the lights of the village across the bay.",
    "Sometimes a fishing boat came close enough to wave at.",
    "She promised to bring fresh bread and a newspaper on Thursday morning.",
)
TEXT = " ".join(SENTENCES[:3])


@lru_cache(maxsize=1)
def _speaker():
    hibari = pytest.importorskip("hibari", reason="hibari-tts of requirements-dev.txt is not installed")
    return hibari.Hibari(threads=1)


@lru_cache(maxsize=64)
def sentence(number: int, factor: float = 1.0) -> np.ndarray:
    """One sentence, float32 [n] at 24 kHz; another ``factor`` shifts pitch and vocal tract: another speaker."""
    said = np.asarray(_speaker()(SENTENCES[number % len(SENTENCES)], speed=1 / factor, seed=number), np.float32)
    moved = resample(Audio(said, round(RATE * factor)), RATE).samples if factor != 1 else said
    return moved / np.abs(moved).max() * 0.45


def room(count: int, level_db: float = -72.0, seed: int = 1) -> np.ndarray:
    """The hiss of a quiet room, float32 [count]."""
    return (np.random.default_rng(seed).standard_normal(count) * 10 ** (level_db / 20)).astype(np.float32)


def spoken(numbers: range | tuple[int, ...], factors: tuple[float, ...] = (1.0,), pause: float = 0.5) -> np.ndarray:
    """Sentences one after another with pauses and a little room, the speakers in turn."""
    gap = np.zeros(round(pause * RATE), np.float32)
    pieces = [gap[: len(gap) // 2]]
    for turn, number in enumerate(numbers):
        pieces += [sentence(number, factors[turn % len(factors)]), gap]
    joined = np.concatenate(pieces)
    return joined + room(len(joined))


def clean() -> Audio:
    return Audio(spoken((0, 1, 2)), RATE)


def clipped() -> Audio:
    loud = spoken((0, 1, 2)) * 4
    return Audio(np.clip(loud, -0.6, 0.6), RATE)  # cut off well below full scale


def hum() -> Audio:
    sound = spoken((0, 1, 2))
    time = np.arange(len(sound)) / RATE
    lines = sum(np.sin(2 * np.pi * 50 * k * time + k) / k for k in (1, 2, 3, 5))
    return Audio(sound + (0.012 * lines).astype(np.float32), RATE)


def two_speakers() -> Audio:
    return Audio(spoken((0, 1, 2, 3), factors=(1.0, 0.8)), RATE)


def two_seconds() -> Audio:
    sound = sentence(4)
    return Audio(np.pad(sound, RATE // 8)[: 2 * RATE] + room(2 * RATE), RATE)


def three_minutes() -> Audio:
    sound = spoken(range(6), pause=0.6)
    return Audio(np.tile(sound, 1 + 180 * RATE // len(sound))[: 180 * RATE], RATE)


def music() -> Audio:
    sound = spoken((0, 1, 2), pause=0.7)
    return Audio(sound + 0.05 * chords(len(sound)), RATE)


def chords(count: int, rate: int = RATE) -> np.ndarray:
    """A slow piano-like accompaniment, float32 [count], peak 1."""
    time, out = np.arange(count) / rate, np.zeros(count)
    roots = (130.81, 174.61, 196.0, 130.81, 220.0, 174.61)
    for beat in range(int(count / rate / 0.6) + 1):
        at = time - beat * 0.6
        decay = np.where(at >= 0, np.exp(-2.0 * np.maximum(at, 0)), 0.0)
        for interval in (1.0, 1.26, 1.5):
            hertz = roots[beat // 2 % len(roots)] * interval * (1 if beat % 2 else 2)
            out += decay * sum(np.sin(2 * np.pi * hertz * k * at) / k**1.5 for k in (1, 2, 3, 4))
    return (out / np.abs(out).max()).astype(np.float32)


def mid_word() -> Audio:
    """Begins inside "lighthouse" and ends inside the last sentence."""
    sound = spoken((0, 1, 2))
    last = len(sound) - round(0.5 * RATE)
    return Audio(sound[_loud_spot(sound, 0.9) : _loud_spot(sound, (last / RATE) - 0.6)], RATE)


def _loud_spot(sound: np.ndarray, seconds: float) -> int:
    """The loudest 20 ms within 0.3 s of a moment: the middle of a vowel."""
    at, size = round(seconds * RATE), RATE // 50
    starts = range(at - 15 * size, at + 15 * size, size)
    return max(starts, key=lambda start: float(np.sum(sound[start : start + size] ** 2)))


def whisper() -> Audio:
    """The clean clip with noise for the voice's source: each frame's spectral shape (LPC) is kept."""
    sound = spoken((0, 1, 2)).astype(np.float64)
    size, hop, order = 720, 240, 26
    window = np.hanning(size)
    noise = np.random.default_rng(3).standard_normal(len(sound) + size)
    out = np.zeros(len(sound) + size)
    emphasised = np.append(sound[0], sound[1:] - 0.95 * sound[:-1])
    for start in range(0, len(sound) - size, hop):
        frame = emphasised[start : start + size] * window
        lags = np.correlate(frame, frame, "full")[size - 1 : size + order]
        matrix = lags[np.abs(np.subtract.outer(range(order), range(order)))]
        matrix += np.eye(order) * (1e-6 * lags[0] + 1e-12)
        shape = np.append(1.0, -np.linalg.solve(matrix, lags[1:]))
        gain = np.sqrt(max(float(shape @ lags), 0.0))
        spectrum = np.fft.rfft(noise[start : start + size] * window) / np.fft.rfft(shape, size)
        made = np.fft.irfft(spectrum, size)
        out[start : start + size] += made * gain / np.sqrt(size) * 1.2
    breath = out[: len(sound)]
    breath *= 0.25 / np.abs(breath).max()
    return Audio(breath.astype(np.float32) + room(len(breath)), RATE)


def silent() -> Audio:
    return Audio(np.zeros(6 * RATE, np.float32), RATE)


def narrow() -> Audio:
    """A 16 kHz recording in a 48 kHz file."""
    return resample(resample(clean(), 16_000), 48_000)


def offset() -> Audio:
    return Audio(spoken((0, 1, 2)) + np.float32(0.08), RATE)


CLIPS = {
    "clean": clean,
    "clipped": clipped,
    "hum": hum,
    "two speakers": two_speakers,
    "2 s": two_seconds,
    "3 min": three_minutes,
    "music under speech": music,
    "cut in mid-word": mid_word,
    "whisper": whisper,
    "silent": silent,
    "16k in 48k": narrow,
    "DC": offset,
}


@lru_cache(maxsize=len(CLIPS))
def clip(name: str) -> Audio:
    """One of the twelve, made once."""
    return CLIPS[name]()


# What the card must say about each: the lines that are not "ok", and the worst of them.
EXPECTED: dict[str, dict[str, str]] = {
    "clean": {},
    "clipped": {"clipping": "fail"},
    "hum": {"noise": "warn", "hum": "warn"},
    "two speakers": {"speakers": "warn"},
    "2 s": {"length": "warn", "speech": "warn", "end": "warn"},
    "3 min": {"length": "warn", "end": "warn"},
    "music under speech": {"noise": "warn", "background": "warn"},
    "cut in mid-word": {"start": "warn", "end": "warn"},
    "whisper": {"loudness": "warn", "voicing": "warn"},
    "silent": {"usable": "fail"},
    "16k in 48k": {"bandwidth": "warn"},
    "DC": {"offset": "warn"},
}


def run_ffmpeg(*arguments: str | os.PathLike) -> None:
    """FFmpeg with these arguments; the files it makes are what the tests read."""
    command = [ffmpeg_path(), "-nostdin", "-v", "error", "-y", *map(os.fspath, arguments)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)

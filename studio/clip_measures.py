"""What a clip's sound is like, frame by frame: levels, pitch and spectra that the reference checks are made of.

Every frame is 40 ms long and starts 10 ms after the one before, so that a spectrum's bins are 25 Hz apart at
any sample rate. Long clips are worked through in blocks: what is kept is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from voxcpm_core.audio import Audio

HOP = 0.01  # seconds from frame to frame
WINDOW = 0.04  # seconds of one frame
BIN_HZ = 1 / WINDOW
SILENCE_DB = -120.0  # stands for digital silence

_BLOCK = 2000  # frames worked on at once
_BAND_EDGES = (100, 200, 300, 400, 500, 625, 775, 925, 1075, 1275, 1475, 1725, 2000, 2325, 2700, 3150, 3700, 4400)
_TONES_HZ = (200, 3000)  # where the background is searched for tones
_PITCH_HZ = (60.0, 500.0)
_PITCH_BAND_HZ = 1200.0  # harmonics above say little about the pitch
_HUM_WINDOW = 0.5  # seconds; its bins are 2 Hz apart
_HUM_WINDOWS = 240  # at most, spread over the clip


def decibels(power: np.ndarray | float) -> np.ndarray:
    """10 log10 of a power, not below ``SILENCE_DB``."""
    return 10 * np.log10(np.maximum(power, 10 ** (SILENCE_DB / 10)))


@dataclass(frozen=True)
class Frames:
    """Readings of each frame [frames], in dB below full scale where not said otherwise.

    ``spectra`` are the frames' powers averaged over spans of half a second [spans, bins of 25 Hz].
    """

    seconds: float
    level_db: np.ndarray  # of everything above 60 Hz
    bands_db: np.ndarray  # [frames, bands] from 100 to 4400 Hz
    pitch_hz: np.ndarray  # best period, whether it is a voice or not
    voicing: np.ndarray  # 0 noise .. 1 periodic
    tonality_db: np.ndarray  # how far the highest spectral line stands out of its neighbourhood
    spectra: np.ndarray

    @cached_property
    def times(self) -> np.ndarray:
        """The middle of each frame in seconds."""
        return np.minimum(np.arange(len(self.level_db)) * HOP + HOP / 2, self.seconds)

    def inside(self, regions: list[tuple[float, float]]) -> np.ndarray:
        """Which frames lie in the regions, bool [frames]."""
        marks = np.zeros(len(self.times), bool)
        for start, end in regions:
            marks |= (self.times >= start) & (self.times < end)
        return marks


def read_frames(audio: Audio) -> Frames:
    """Measure every frame of a clip. The clip needs one sample at least; values must be finite."""
    columns: list[tuple[np.ndarray, ...]] = []
    spectra: list[np.ndarray] = []
    for power in _powers(audio):
        columns.append((*_levels(power), *_pitch(power), _tonality(power)))
        spectra += [span.mean(axis=0) for span in np.array_split(power, max(1, len(power) // 50))]
    joined = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Frames(audio.seconds, *joined, np.stack(spectra))


def _powers(audio: Audio) -> Iterator[np.ndarray]:
    """Power spectra of the frames in blocks, float32 [frames, bins]; their sum is the frame's mean square."""
    rate = audio.sample_rate
    window = _hann(max(2, round(WINDOW * rate)))
    size, mean = len(window), audio.samples.mean(dtype=np.float64)  # a step at the edge would sound
    count = max(1, int(np.ceil(audio.seconds / HOP)))
    starts = np.rint((np.arange(count) * HOP + HOP / 2) * rate).astype(int) - size // 2
    scale = 2 / (size * np.sum(window**2))
    for first in range(0, count, _BLOCK):
        block = starts[first : first + _BLOCK]
        begin, end = block[0], block[-1] + size
        sound = audio.samples[max(begin, 0) : max(end, 0)] - np.float32(mean)
        sound = np.pad(sound, (max(-begin, 0), max(end - max(begin, 0) - len(sound), 0)))
        frames = np.lib.stride_tricks.sliding_window_view(sound, size)[block - begin]
        spectrum = np.fft.rfft(frames * window)
        yield (scale * (spectrum.real**2 + spectrum.imag**2)).astype(np.float32)


def _levels(power: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    edges = [min(round(edge / BIN_HZ), power.shape[1] - 1) for edge in _BAND_EDGES]
    total = np.concatenate([np.zeros((len(power), 1)), np.cumsum(power, axis=1, dtype=float)], axis=1)
    bands = np.diff(total[:, edges], axis=1)
    return decibels(total[:, -1] - total[:, round(60 / BIN_HZ)]), decibels(bands)


def _pitch(power: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Period (as Hz) and strength by the autocorrelation of each frame below 1200 Hz."""
    bins = round(_PITCH_BAND_HZ / BIN_HZ) + 1
    narrow = power[:, :bins].copy()
    narrow[:, :2] = 0.0  # DC and rumble repeat too
    size = 640  # points of one window: lags of 62.5 us
    correlation = np.fft.irfft(narrow, size)
    shape = np.fft.irfft(np.abs(np.fft.rfft(_hann(size), size)) ** 2, size)
    lag_rate = size / WINDOW
    low, high = round(lag_rate / _PITCH_HZ[1]), round(lag_rate / _PITCH_HZ[0])
    correlation = correlation[:, : high + 2] / np.maximum(correlation[:, :1], 1e-20) / (shape[: high + 2] / shape[0])
    rows = np.arange(len(power))
    # A longer period that is hardly better is an octave error: prefer the shortest good one.
    wanted = correlation[:, low : high + 1] - 0.06 * np.log2(np.arange(low, high + 1) / low)
    peaks = (wanted[:, 1:-1] >= wanted[:, :-2]) & (wanted[:, 1:-1] >= wanted[:, 2:])
    best = low + 1 + np.where(peaks, wanted[:, 1:-1], -np.inf).argmax(axis=1)
    return lag_rate / best, np.clip(correlation[rows, best], 0, 1)


def _tonality(power: np.ndarray) -> np.ndarray:
    low, high = (round(hertz / BIN_HZ) for hertz in _TONES_HZ)
    band = power[:, low : min(high, power.shape[1])]
    if band.shape[1] < 8:
        return np.zeros(len(power))
    return decibels(band.max(axis=1) + 1e-13) - decibels(np.median(band, axis=1) + 1e-13)


def hum_spectrum(audio: Audio) -> np.ndarray:
    """What is always there below 1 kHz: the 20th percentile over time, power per 2 Hz bin [bins].

    Windows of half a second. A clip shorter than one gives an empty array.
    """
    size = round(_HUM_WINDOW * audio.sample_rate)
    count = min(_HUM_WINDOWS, int((len(audio.samples) - size) / (0.2 * size)) + 1)
    if len(audio.samples) < size:
        return np.zeros(0)
    starts = np.linspace(0, len(audio.samples) - size, count).astype(int)
    window, bins = _hann(size), round(1000 * _HUM_WINDOW)
    scale = 2 / (size * np.sum(window**2))
    rows = [np.abs(np.fft.rfft(audio.samples[at : at + size] * window)[:bins]) ** 2 for at in starts]
    return scale * np.percentile(np.stack(rows), 20, axis=0)


@lru_cache(maxsize=8)
def _hann(size: int) -> np.ndarray:
    return (0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(size) + 0.5) / size)).astype(np.float32)

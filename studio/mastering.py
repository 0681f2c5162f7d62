"""Levels of a finished recording: presets, one gain per voice, chapter loudness, room tone, true peaks.

A chapter is laid out once as float samples at its final rate (studio/layout.py); mastering reads it in blocks, so that
a chapter of two hours needs no more memory than a short one. The room tone lies under everything, speech included: it
never switches on or off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from studio.loudness_meter import NOTHING, Levels, Meter, measure
from studio.true_peak import limit

BLOCK_SECONDS = 5
MOST_GAIN = 40.0  # dB: a chapter of whispers is lifted, one of silence is not made of noise
MOST_VOICE_GAIN = 12.0  # dB: what is further off than this is a fault of the recording
NEAR_ENOUGH = 0.15  # dB from the target
ROOM_TONE_SECONDS = 10


class Samples(Protocol):
    """Float samples [n]: an array, or what reads like one from disk."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice) -> np.ndarray: ...


@dataclass(frozen=True)
class Preset:
    """What a delivery has to be, and what mastering aims at. Ranges are (lowest, highest); None: not asked for."""

    name: str
    measure: str = ""  # "rms" (dB), "lufs", or "" for leaving levels alone
    target: float = 0.0
    level: tuple[float, float] | None = None
    ceiling: float | None = None  # dBTP
    floor: float | None = None  # dB RMS, at most
    room_tone: float | None = None  # dB RMS of what is laid under everything
    head: tuple[float, float] | None = None  # seconds
    tail: tuple[float, float] | None = None
    head_seconds: float = 0.0  # what mastering makes
    tail_seconds: float = 0.0
    longest: float | None = None  # seconds of a file of one chapter
    mp3_kbps: int | None = None  # at least, at a constant rate
    sample_rate: int | None = None

    @property
    def shapes_levels(self) -> bool:
        return bool(self.measure)


# The audiobook numbers are the ones ACX publishes (ACX itself takes no AI narration unless it has authorised it);
# broadcast is EBU R128; podcast is what the big directories ask for.
PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "audiobook",
            measure="rms",
            target=-20.0,
            level=(-23.0, -18.0),
            ceiling=-3.0,
            floor=-60.0,
            room_tone=-72.0,
            head=(0.5, 1.0),
            tail=(1.0, 5.0),
            head_seconds=0.75,
            tail_seconds=2.5,
            longest=120 * 60.0,
            mp3_kbps=192,
            sample_rate=44_100,
        ),
        Preset(
            "podcast",
            measure="lufs",
            target=-16.0,
            level=(-17.0, -15.0),
            ceiling=-1.5,
            room_tone=-72.0,
            head_seconds=0.3,
            tail_seconds=1.0,
        ),
        Preset(
            "broadcast",
            measure="lufs",
            target=-23.0,
            level=(-24.0, -22.0),
            ceiling=-1.0,
            room_tone=-75.0,
            head_seconds=0.5,
            tail_seconds=1.0,
        ),
        Preset("none"),
    )
}


@dataclass(frozen=True)
class Master:
    """How a laid out chapter becomes the mastered one."""

    samples: Samples
    sample_rate: int
    gain: float = 1.0  # a factor
    ceiling: float = float("inf")  # a factor; infinite leaves the samples as they are
    room_tone: float | None = None

    def part(self, start: int, stop: int) -> np.ndarray:
        """The mastered samples from ``start`` to ``stop``, float32."""
        part = limit(self.samples, self.sample_rate, self.gain, self.ceiling, start, stop)
        if self.room_tone is not None:
            part += room_tone(self.sample_rate, self.room_tone, start, stop)
        return part

    def blocks(self) -> Iterator[np.ndarray]:
        """The mastered sound, float32 [n] a block, in order. May be asked for again."""
        step = BLOCK_SECONDS * self.sample_rate
        for start in range(0, len(self.samples), step):
            yield self.part(start, min(start + step, len(self.samples)))


def master(samples: Samples, sample_rate: int, preset: Preset, margin: float = 0.1) -> Master:
    """Find the gain that brings a chapter, float [n], to the preset's level after limiting.

    ``margin`` (dB) is kept below the preset's ceiling: lossy encoders raise peaks.
    """
    if not preset.shapes_levels:
        return Master(samples, sample_rate)
    ceiling = 10 ** ((preset.ceiling - margin) / 20)
    lufs = preset.measure == "lufs"
    gain_db = _towards(preset, measure(samples, sample_rate, peaks=False, lufs=lufs))
    for _ in range(3):  # what the limiter takes away is given back, so that it takes a little more away
        mastered = Master(samples, sample_rate, 10 ** (gain_db / 20), ceiling, preset.room_tone)
        missing = _towards(preset, _levels_of(mastered, lufs))
        if abs(missing) <= NEAR_ENOUGH or gain_db + missing > MOST_GAIN:
            break
        gain_db += missing
    return mastered


def voice_gains(loudnesses: Iterable[tuple[str, float | None, float]]) -> dict[str, float]:
    """One gain in dB per voice for a whole book, from (voice, LUFS or None, seconds) of every piece.

    The voices meet at their mean; pieces 10 LU below their voice's mean (a whisper) do not count.
    """
    by_voice: dict[str, list[tuple[float, float]]] = {}
    for voice, lufs, seconds in loudnesses:
        if lufs is not None:
            by_voice.setdefault(voice, []).append((lufs, seconds))
    levels = {voice: _gated_mean(pieces) for voice, pieces in by_voice.items()}
    middle = float(np.mean(list(levels.values()))) if levels else 0.0
    return {voice: float(np.clip(middle - lufs, -MOST_VOICE_GAIN, MOST_VOICE_GAIN)) for voice, lufs in levels.items()}


def gain_of(gains: Mapping[str, float], voice: str) -> float:
    """A voice's gain as a factor; 1.0 for one that was never loud enough to be measured."""
    return 10 ** (gains.get(voice, 0.0) / 20)


def room_tone(sample_rate: int, level: float, start: int, stop: int) -> np.ndarray:
    """Samples ``start`` to ``stop`` of an endless quiet room at ``level`` dB RMS, float32; the same every time."""
    loop = _room(sample_rate)
    first, count = start % len(loop), stop - start
    times = -(-(first + count) // len(loop))
    once = loop[first : first + count] if times == 1 else np.tile(loop, times)[first : first + count]
    return once * np.float32(10 ** (level / 20))


@lru_cache(maxsize=4)
def _room(sample_rate: int) -> np.ndarray:
    """Ten seconds of noise whose end fits its beginning: falling by 3 dB per octave, between 50 Hz and 8 kHz."""
    size = ROOM_TONE_SECONDS * sample_rate
    frequencies = np.fft.rfftfreq(size, 1 / sample_rate)
    inside = (frequencies > 50) & (frequencies < min(8000, 0.45 * sample_rate))
    phases = np.random.default_rng(20).uniform(0, 2 * np.pi, len(frequencies))
    magnitudes = np.where(inside, 1 / np.sqrt(np.maximum(frequencies, 1.0)), 0.0)
    noise = np.fft.irfft(magnitudes * np.exp(1j * phases), size)
    return (noise / np.sqrt(np.mean(np.square(noise)))).astype(np.float32)


def _levels_of(mastered: Master, lufs: bool) -> Levels:
    meter = Meter(mastered.sample_rate, peaks=False, lufs=lufs)
    for block in mastered.blocks():
        meter.add(block)
    return meter.levels()


def _towards(preset: Preset, levels: Levels) -> float:
    """dB that are missing to the preset's target; 0.0 for silence."""
    level = levels.lufs if preset.measure == "lufs" else levels.rms
    if level is None or level <= NOTHING:
        return 0.0
    return float(np.clip(preset.target - level, -MOST_GAIN, MOST_GAIN))


def _gated_mean(pieces: list[tuple[float, float]]) -> float:
    """The mean of (LUFS, seconds) as power, without what is 10 LU below the mean of all."""
    powers = 10 ** (np.array([lufs for lufs, _ in pieces]) / 10)
    seconds = np.array([seconds for _, seconds in pieces])
    kept = powers > np.average(powers, weights=seconds) / 10
    return float(10 * np.log10(np.average(powers[kept], weights=seconds[kept])))

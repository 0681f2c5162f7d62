"""Levels of a recording that comes in blocks and is never held as a whole.

One pass gives what a delivery is judged by: RMS, integrated loudness, true peak, the noise floor and how long it is
quiet at the head and the tail. Memory: a few seconds of sound and one number per 10 ms.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass

import numpy as np

from studio.loudness import block_powers, gated
from studio.true_peak import HALF_TAPS, envelope

FRAME_SECONDS = 0.01
FLOOR_SECONDS = 0.5  # the noise floor is the RMS of the quietest stretch of this length
QUIET_BELOW = 30.0  # dB below the RMS of the whole: where speech begins and ends
NOTHING = -120.0  # dB: what silence reads as

_HOP_SECONDS = 0.1  # of a loudness block of 400 ms
_PIECE, _BEFORE, _AFTER = 192, 5, 3  # hops weighted at once; the filter's memory; the rest of the last block


@dataclass(frozen=True)
class Levels:
    """What a meter read. dB are relative to full scale; ``lufs`` is None for silence or when it was not asked for."""

    seconds: float
    rms: float
    peak: float  # true peak, dBTP; NOTHING when it was not asked for
    lufs: float | None
    floor: float
    head: float  # seconds until the sound begins
    tail: float  # seconds after it has ended


class Meter:
    """Hears float blocks [n] at one rate, in order. ``peaks`` and ``lufs`` cost time and may be left out."""

    def __init__(self, sample_rate: int, peaks: bool = True, lufs: bool = True) -> None:
        self._rate = sample_rate
        self._peaks, self._lufs = peaks, lufs
        self._frame = max(1, round(FRAME_SECONDS * sample_rate))
        self._count = 0
        self._energies = array("d")  # of each frame
        self._rest = np.zeros(0, np.float32)  # samples of an unfinished frame
        self._near = np.zeros(0, np.float32)  # samples whose interpolated neighbours are not known yet
        self._heard = 0  # of these, how many were heard and are there for the filter only
        self._highest = 0.0
        self._powers: list[np.ndarray] = []
        self._weighing = np.zeros(0, np.float32)
        self._warm = 0  # hops at the start of _weighing that are there for the filter only

    def add(self, block: np.ndarray) -> None:
        """The next block, float [n]."""
        block = np.asarray(block, np.float32)
        self._count += len(block)
        self._add_energies(block)
        if self._peaks:
            self._near = np.concatenate([self._near, block])
            self._hear_peaks(len(self._near) - HALF_TAPS)
        if self._lufs:
            self._weighing = np.concatenate([self._weighing, block])
            self._weigh()

    def levels(self) -> Levels:
        """What was heard so far, the end included; nothing may be added afterwards."""
        self._hear_peaks(len(self._near))
        energies = np.frombuffer(self._energies, float) if len(self._energies) else np.zeros(0)
        total = float(energies.sum() + np.square(self._rest, dtype=float).sum())
        rms = _db(total / self._count) if self._count else NOTHING
        head, tail = (frames * self._frame / self._rate for frames in quiet_edges(energies / self._frame, rms))
        return Levels(
            seconds=self._count / self._rate,
            rms=rms,
            peak=_db(self._highest**2),
            lufs=self._integrated() if self._lufs else None,
            floor=_floor(energies / self._frame),
            head=head,
            tail=tail,
        )

    def _add_energies(self, block: np.ndarray) -> None:
        samples = np.concatenate([self._rest, block])
        whole = len(samples) // self._frame * self._frame
        frames = np.square(samples[:whole].reshape(-1, self._frame), dtype=float).sum(axis=1)
        self._energies.frombytes(frames.tobytes())
        self._rest = samples[whole:]

    def _hear_peaks(self, known: int) -> None:
        """Peaks of _near up to ``known``; what the filter needs of the samples before stays there."""
        if known > self._heard:
            peaks = envelope(self._near, self._heard, known, self._highest)
            self._highest = max(self._highest, float(peaks.max()))
            done = max(0, known - HALF_TAPS)
            self._near, self._heard = self._near[done:], known - done

    def _weigh(self) -> None:
        hop = round(_HOP_SECONDS * self._rate)
        while len(self._weighing) >= (self._warm + _PIECE + _AFTER) * hop:
            piece = self._weighing[: (self._warm + _PIECE + _AFTER) * hop]
            self._powers.append(block_powers(piece, self._rate)[self._warm : self._warm + _PIECE])
            self._weighing = self._weighing[(self._warm + _PIECE - _BEFORE) * hop :]
            self._warm = _BEFORE

    def _integrated(self) -> float | None:
        last = block_powers(self._weighing, self._rate)[self._warm :]
        return gated(np.concatenate([*self._powers, last]))


def measure(samples: np.ndarray, sample_rate: int, peaks: bool = True, lufs: bool = True) -> Levels:
    """The levels of float samples [n], which may lie on disk."""
    meter = Meter(sample_rate, peaks, lufs)
    step = 10 * sample_rate
    for start in range(0, len(samples), step):
        meter.add(samples[start : start + step])
    return meter.levels()


def quiet_edges(powers: np.ndarray, level: float) -> tuple[int, int]:
    """How many frames are quiet at the head and the tail, from the mean square of each [n] and the RMS in dB of all.

    Quiet is what stays QUIET_BELOW dB below that RMS. All of them are both head and tail when nothing sounds.
    """
    sounding = np.flatnonzero(powers > 10 ** ((level - QUIET_BELOW) / 10))
    if not len(sounding):
        return len(powers), len(powers)
    return int(sounding[0]), int(len(powers) - 1 - sounding[-1])


def _floor(powers: np.ndarray) -> float:
    """The RMS in dB of the quietest FLOOR_SECONDS; of everything when there is less."""
    if not len(powers):
        return NOTHING
    width = min(len(powers), round(FLOOR_SECONDS / FRAME_SECONDS))
    sums = np.concatenate([[0.0], np.cumsum(powers)])
    return _db(max(0.0, float((sums[width:] - sums[:-width]).min())) / width)


def _db(power: float) -> float:
    return max(NOTHING, 10 * math.log10(power)) if power > 0 else NOTHING

"""How loud a take is, and the gain that makes takes comparable.

Integrated loudness after ITU-R BS.1770-4 for one channel: K-weighting, blocks of 400 ms every 100 ms, an absolute gate
at -70 LUFS and a relative one 10 LU below the mean. A sine of 997 Hz at full scale reads -3.01 LUFS.

Files are never changed: the page plays a take with the gain of :func:`match_gain`. Speech peaks 12 to 18 dB above its
loudness, so at the target of -20 LUFS it stays below the ceiling of -1 dBFS and the limit does not bite. A take with
rarer, higher peaks cannot get there; :func:`common_target` finds the level that all takes of a comparison can have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

TARGET = -20.0  # LUFS
CEILING = -1.0  # dBFS: what no sample may exceed after the gain
LOWEST_TARGET = -30.0  # LUFS: one odd take does not pull all others below this
SILENCE = -70.0  # LUFS: blocks below do not count

_BLOCK, _HOP = 0.4, 0.1  # seconds
_PIECE = 10.0  # seconds filtered at once
_WARM_UP = 0.5  # seconds before a piece that the filter hears first; its memory is far shorter


def loudness(samples: np.ndarray, sample_rate: int) -> float | None:
    """Integrated loudness in LUFS of float samples [n]; None for silence or nothing.

    What is shorter than one block of 400 ms counts as one block.
    """
    return gated(block_powers(samples, sample_rate))


def gated(powers: np.ndarray) -> float | None:
    """Integrated loudness in LUFS from the power of each block; None when all are silent."""
    loud = powers[powers > _power(SILENCE)]
    return _lufs(float(loud[loud > loud.mean() / 10].mean())) if len(loud) else None


def peak(samples: np.ndarray) -> float | None:
    """The highest sample in dBFS; None for silence or nothing."""
    highest = float(np.abs(samples).max()) if len(samples) else 0.0
    return 20 * math.log10(highest) if highest > 0 else None


def match_gain(lufs: float | None, peak: float | None, target: float = TARGET) -> float:
    """The gain in dB that brings a take to ``target``, less where its peak would exceed CEILING; 0.0 for silence."""
    if lufs is None or peak is None:
        return 0.0
    return min(target - lufs, CEILING - peak)


def common_target(takes: Iterable[tuple[float | None, float | None]], target: float = TARGET) -> float:
    """The highest level up to ``target`` that all ``(loudness, peak)`` can be played at, not below LOWEST_TARGET."""
    reachable = [lufs + CEILING - top for lufs, top in takes if lufs is not None and top is not None]
    return max(LOWEST_TARGET, min([target, *reachable]))


def block_powers(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    """Mean square of every block after K-weighting, float64 [blocks]."""
    if not len(samples):
        return np.zeros(0)
    hop = round(_HOP * sample_rate)
    energy = np.concatenate([np.zeros(1), np.cumsum(_squares(samples, sample_rate, hop))])
    per_block = round(_BLOCK / _HOP)
    if len(energy) <= per_block:
        return np.array([energy[-1] / len(samples)])
    return (energy[per_block:] - energy[:-per_block]) / (per_block * hop)


def _squares(samples: np.ndarray, sample_rate: int, hop: int) -> np.ndarray:
    """The energy of each whole hop; of the rest, too, when there is less than a block."""
    piece, warm_up = round(_PIECE / _HOP) * hop, round(_WARM_UP * sample_rate)
    sums = []
    for start in range(0, len(samples), piece):
        first = max(0, start - warm_up)
        weighted = _k_weighted(samples[first : start + piece], sample_rate)[start - first :]
        whole = len(weighted) // hop * hop
        sums.append(np.square(weighted[:whole]).reshape(-1, hop).sum(axis=1))
        if whole < len(weighted) and len(samples) < round(_BLOCK / _HOP) * hop:
            sums.append(np.square(weighted[whole:]).sum(keepdims=True))
    return np.concatenate(sums)


def _k_weighted(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    """Both filters of the standard, applied to the spectrum; padding keeps the end from reaching the start."""
    size = _fast_size(len(samples) + round(_WARM_UP * sample_rate))
    spectrum = np.fft.rfft(samples.astype(np.float64), size)
    spectrum *= _response(size, sample_rate)
    return np.fft.irfft(spectrum, size)[: len(samples)]


@lru_cache(maxsize=4)
def _response(size: int, sample_rate: int) -> np.ndarray:
    """What both filters do to each frequency of a transform of ``size``, complex [size / 2 + 1]."""
    z = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)  # one sample of delay
    response = np.ones(len(z), dtype=complex)
    for (b0, b1, b2), (a1, a2) in (_shelf(sample_rate), _high_pass(sample_rate)):
        response *= (b0 + z * (b1 + z * b2)) / (1 + z * (a1 + z * a2))
    return response


Biquad = tuple[tuple[float, float, float], tuple[float, float]]


def _shelf(sample_rate: int) -> Biquad:
    """The head: +4 dB above 1.7 kHz. The standard lists 48 kHz only; these are its analogue values for any rate."""
    k = math.tan(math.pi * 1681.974450955533 / sample_rate)
    gain, q = 10 ** (3.999843853973347 / 20), 0.7071752369554196
    middle = gain**0.4996667741545416
    a0 = 1 + k / q + k * k
    b = (gain + middle * k / q + k * k, 2 * (k * k - gain), gain - middle * k / q + k * k)
    return (b[0] / a0, b[1] / a0, b[2] / a0), (2 * (k * k - 1) / a0, (1 - k / q + k * k) / a0)


def _high_pass(sample_rate: int) -> Biquad:
    """The ear: nothing below 38 Hz."""
    k = math.tan(math.pi * 38.13547087602444 / sample_rate)
    q = 0.5003270373238773
    a0 = 1 + k / q + k * k
    return (1.0, -2.0, 1.0), (2 * (k * k - 1) / a0, (1 - k / q + k * k) / a0)


def _fast_size(least: int) -> int:
    """The next length of the form 2^a, 3 * 2^a or 5 * 2^a, which the transform is quick with."""
    return min(factor << max(0, (-(-least // factor) - 1).bit_length()) for factor in (1, 3, 5))


def _power(lufs: float) -> float:
    return 10 ** ((lufs + 0.691) / 10)


def _lufs(power: float) -> float:
    return 10 * math.log10(power) - 0.691

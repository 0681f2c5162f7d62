"""True peak after ITU-R BS.1770-4, annex 2, and a limiter that keeps it below a ceiling.

Between two samples a signal may rise above both. Four times oversampling finds that: three values are interpolated
between neighbours, each from 24 samples. The limiter sees the same values. Its gain follows no state: every sample's
gain depends on 30 ms to both sides only, so that pieces of a long recording equal the whole, and nothing is clipped.
"""

from __future__ import annotations

import numpy as np

HALF_TAPS = 12  # samples to each side that an interpolated value is made of
WINDOW_SECONDS = 0.015  # how long before a peak the gain starts to fall, and after it to rise again

_BLOCK = 1 << 18


def _filters() -> np.ndarray:
    """Interpolators for 1/4, 2/4 and 3/4 of the way to the next sample, float32 [3, 24]: sinc, Kaiser window."""
    at = np.arange(1 - HALF_TAPS, HALF_TAPS + 1) - np.array([[0.25], [0.5], [0.75]])
    taps = np.sinc(at) * np.i0(8.0 * np.sqrt(np.maximum(0.0, 1 - (at / HALF_TAPS) ** 2)))
    return (taps / taps.sum(axis=1, keepdims=True)).astype(np.float32)


_FILTERS = _filters()


def envelope(samples: np.ndarray, start: int = 0, stop: int | None = None) -> np.ndarray:
    """The highest magnitude from each sample up to the next one, float32 [stop - start]; beyond the ends is silence."""
    stop = len(samples) if stop is None else stop
    near = _window(samples, start - HALF_TAPS + 1, stop + HALF_TAPS)
    highest = np.abs(near[HALF_TAPS - 1 : HALF_TAPS - 1 + stop - start])
    for taps in _FILTERS:
        np.maximum(highest, np.abs(np.convolve(near, taps[::-1], "valid")), out=highest)
    return highest


def true_peak(samples: np.ndarray) -> float:
    """The true peak of float samples [n], as a magnitude: 1.0 is 0 dBTP."""
    blocks = (envelope(samples, at, min(at + _BLOCK, len(samples))) for at in range(0, len(samples), _BLOCK))
    return max((float(block.max()) for block in blocks), default=0.0)


def limit(
    samples: np.ndarray, sample_rate: int, gain: float, ceiling: float, start: int = 0, stop: int | None = None
) -> np.ndarray:
    """``samples[start:stop] * gain``, turned down around each true peak above ``ceiling``; float32 [stop - start].

    gain and ceiling are factors, not dB. ``samples`` [n] may lie on disk: only what is needed is read.
    """
    stop = len(samples) if stop is None else stop
    reach = max(2, round(WINDOW_SECONDS * sample_rate))
    loud = envelope(samples, start - 2 * reach, stop + 2 * reach) * np.float32(gain)
    plain = np.asarray(samples[start:stop], np.float32) * np.float32(gain)
    if not len(plain) or loud.max() <= ceiling:
        return plain
    allowed = np.minimum(1.0, ceiling / np.maximum(loud, 1e-9))
    held = _lowest(allowed, 2 * reach + 1)
    return (plain * _smooth(held, reach)).astype(np.float32)


def _window(samples: np.ndarray, start: int, stop: int) -> np.ndarray:
    """samples[start:stop] as float32, with zeros where there are none."""
    inside = np.asarray(samples[max(0, start) : max(0, min(stop, len(samples)))], np.float32)
    before = min(max(0, -start), stop - start)
    return np.pad(inside, (before, stop - start - before - len(inside)))


def _lowest(values: np.ndarray, width: int) -> np.ndarray:
    """The lowest of each ``width`` neighbouring values [n] -> [n - width + 1], in log2(width) passes."""
    span = 1
    while 2 * span <= width:
        values = np.minimum(values[:-span], values[span:])
        span *= 2
    rest = width - span
    return np.minimum(values[:-rest], values[rest:]) if rest else values


def _smooth(values: np.ndarray, reach: int) -> np.ndarray:
    """A triangular mean over ``reach`` values to both sides: [n] -> [n - 2 * reach]."""
    for _ in range(2):
        sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
        values = (sums[reach + 1 :] - sums[: -reach - 1]) / (reach + 1)
    return values

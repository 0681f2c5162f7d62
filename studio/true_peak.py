"""True peak after ITU-R BS.1770-4, annex 2, and a limiter that keeps it below a ceiling.

Between two samples a signal may rise above both. Four times oversampling finds that: three values are interpolated
between neighbours, each from 24 samples. The limiter sees the same values. Its gain follows no state: every sample's
gain depends on 30 ms to both sides only, so that pieces of a long recording equal the whole, and nothing is clipped.

An interpolated value is at most _RISE times the highest sample near it. So only where the samples come near to what is
asked about (a limiter's ceiling, the highest peak so far) anything is interpolated: in speech that is a small part.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

HALF_TAPS = 12  # samples to each side that an interpolated value is made of
WINDOW_SECONDS = 0.015  # how long before a peak the gain starts to fall, and after it to rise again

_BLOCK = 1 << 18
_CELL = 64  # samples that are interpolated together, or not at all


def _filters() -> np.ndarray:
    """Interpolators for 1/4, 2/4 and 3/4 of the way to the next sample, float32 [3, 24]: sinc, Kaiser window."""
    at = np.arange(1 - HALF_TAPS, HALF_TAPS + 1) - np.array([[0.25], [0.5], [0.75]])
    taps = np.sinc(at) * np.i0(8.0 * np.sqrt(np.maximum(0.0, 1 - (at / HALF_TAPS) ** 2)))
    return (taps / taps.sum(axis=1, keepdims=True)).astype(np.float32)


_FILTERS = _filters()
_RISE = float(np.abs(_FILTERS).sum(axis=1).max())
_REACH = _CELL + 2 * HALF_TAPS - 1  # samples that a cell's values are made of


def _cell_filter() -> np.ndarray:
    """All values between the samples of a cell as one product: float32 [_REACH, 3 * _CELL]."""
    product = np.zeros((_REACH, 3, _CELL), np.float32)
    for at in range(_CELL):
        product[at : at + 2 * HALF_TAPS, :, at] = _FILTERS.T
    return product.reshape(_REACH, 3 * _CELL)


_CELL_FILTER = _cell_filter()


def envelope(samples: np.ndarray, start: int = 0, stop: int | None = None, above: float = 0.0) -> np.ndarray:
    """The highest magnitude from each sample up to the next one, float32 [stop - start]; beyond the ends is silence.

    Where nothing can exceed ``above``, the samples' own magnitudes stand.
    """
    stop = len(samples) if stop is None else stop
    cells = -(-(stop - start) // _CELL)
    near = _window(samples, start - HALF_TAPS + 1, start + cells * _CELL + HALF_TAPS)
    if not cells:
        return np.zeros(0, np.float32)
    frames = sliding_window_view(near, _REACH)[::_CELL]
    sizes = np.abs(near)
    highest = sizes[HALF_TAPS - 1 : HALF_TAPS - 1 + cells * _CELL].reshape(cells, _CELL).copy()
    tops = sliding_window_view(sizes, _REACH)[::_CELL].max(axis=1)
    near_it = np.flatnonzero(tops * _RISE > above)
    between = np.abs(frames[near_it] @ _CELL_FILTER).reshape(-1, 3, _CELL).max(axis=1)
    highest[near_it] = np.maximum(highest[near_it], between)
    return highest.reshape(-1)[: stop - start]


def true_peak(samples: np.ndarray) -> float:
    """The true peak of float samples [n], as a magnitude: 1.0 is 0 dBTP."""
    highest = 0.0
    for at in range(0, len(samples), _BLOCK):
        block = envelope(samples, at, min(at + _BLOCK, len(samples)), highest)
        highest = max(highest, float(block.max()))
    return highest


def limit(
    samples: np.ndarray, sample_rate: int, gain: float, ceiling: float, start: int = 0, stop: int | None = None
) -> np.ndarray:
    """``samples[start:stop] * gain``, turned down around each true peak above ``ceiling``; float32 [stop - start].

    gain and ceiling are factors, not dB. ``samples`` [n] may lie on disk: only what is needed is read.
    """
    stop = len(samples) if stop is None else stop
    reach = max(2, round(WINDOW_SECONDS * sample_rate))
    loud = envelope(samples, start - 2 * reach, stop + 2 * reach, ceiling / max(gain, 1e-9)) * np.float32(gain)
    plain = np.asarray(samples[start:stop], np.float32) * np.float32(gain)
    for first, last in _runs(np.flatnonzero(loud > ceiling), 4 * reach):
        at, end = max(0, first - 4 * reach), min(len(plain), last + 1)
        allowed = np.minimum(1.0, ceiling / np.maximum(loud[at : end + 4 * reach], 1e-9))
        plain[at:end] *= _smooth(_lowest(allowed, 2 * reach + 1), reach)
    return plain


def _runs(places: np.ndarray, apart: int) -> list[tuple[int, int]]:
    """First and last of the growing ``places`` [n] that follow one another by no more than ``apart``."""
    if not len(places):
        return []
    gaps = np.flatnonzero(np.diff(places) > apart)
    return list(zip(places[[0, *(gaps + 1)]].tolist(), places[[*gaps, -1]].tolist(), strict=True))


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

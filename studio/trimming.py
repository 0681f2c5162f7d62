"""Shortening a take for use as a voice: cut where nobody speaks."""

from __future__ import annotations

import numpy as np

_FRAME = 0.02  # seconds per level
_PAUSE = 10 ** (-30 / 20)  # a frame this far below the loudest one is silence
_SHORTEST_PAUSE = 0.12  # seconds: shorter ones lie inside words


def trim_to_pause(samples: np.ndarray, sample_rate: int, longest: float) -> np.ndarray:
    """``samples`` [n] if they are no longer than ``longest`` seconds, else their beginning up to the last pause.

    Without a pause in the second half of what may stay, the cut is at its quietest moment there.
    The last 5 ms fade out.
    """
    most = int(longest * sample_rate)
    if len(samples) <= most:
        return samples
    frame = max(1, round(_FRAME * sample_rate))
    frames = most // frame
    levels = np.sqrt(np.mean(np.square(samples[: frames * frame].reshape(-1, frame)), axis=1))
    kept = samples[: _cut(levels) * frame].copy()
    fade = min(len(kept), max(1, round(0.005 * sample_rate)))
    kept[-fade:] *= np.linspace(1, 0, fade, dtype=kept.dtype)
    return kept


def _cut(levels: np.ndarray) -> int:
    """The frame to cut before: the middle of the last pause, or the quietest frame, of the second half."""
    half = len(levels) // 2
    quiet = levels[half:] < levels.max() * _PAUSE
    edges = np.flatnonzero(np.diff(np.concatenate([[False], quiet, [False]]).astype(np.int8)))
    pauses = [(start, end) for start, end in edges.reshape(-1, 2) if (end - start) * _FRAME >= _SHORTEST_PAUSE]
    if pauses:
        start, end = pauses[-1]
        return half + int(start + end) // 2
    return half + int(levels[half:].argmin())

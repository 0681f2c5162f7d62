"""Where a clip has speech: regions in seconds, found by level against the clip's own background.

No model is needed. A steady sound (hiss, hum, a tone) is background at any level, because a voice rises and
falls with its syllables. What rises and falls without being a voice is told from it by the reference checks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from studio.clip_measures import HOP, Frames

Region = tuple[float, float]  # start and end in seconds

PAUSE = 0.2  # seconds; a shorter gap belongs to the speech around it
_SHORTEST = 0.09  # seconds of a sound that may be speech
_MARGIN = 0.04  # seconds kept around each region: soft beginnings and endings
_FLOOR_DB = -90.0  # below lies digital silence, which says nothing about the room
_INAUDIBLE_DB = -65.0  # a clip that never gets louder has no speech
_RISE_DB = 8.0  # speech stands at least this far out of the background
_RISE_SHARE = 0.35  # of the way from the background to the loudest
_REACH_DB = 6.0  # a region goes on while the level stays this near to the threshold


@dataclass(frozen=True)
class Activity:
    """Speech regions of a clip; the level that parts them from the background, dB below full scale."""

    regions: list[Region]
    threshold_db: float

    @property
    def seconds(self) -> float:
        """All speech together."""
        return sum(end - start for start, end in self.regions)


def find_speech(frames: Frames) -> Activity:
    """The speech of a clip whose frames were read by :func:`studio.clip_measures.read_frames`."""
    level = np.convolve(np.pad(frames.level_db, 2, mode="edge"), np.ones(5) / 5, mode="valid")
    background, loudest = np.percentile(np.maximum(level, _FLOOR_DB), (5, 95))
    threshold = background + max(_RISE_DB, _RISE_SHARE * (loudest - background))
    if loudest < max(_INAUDIBLE_DB, threshold):
        return Activity([], threshold)
    runs = [run for run in _runs(level > threshold - _REACH_DB) if level[run[0] : run[1]].max() > threshold]
    joined: list[list[int]] = []
    for first, last in runs:
        if joined and (first - joined[-1][1]) * HOP < PAUSE:
            joined[-1][1] = last
        else:
            joined.append([first, last])
    return Activity(
        [
            (max(0.0, first * HOP - _MARGIN), min(frames.seconds, last * HOP + _MARGIN))
            for first, last in joined
            if (last - first) * HOP >= _SHORTEST
        ],
        threshold,
    )


def _runs(marks: np.ndarray) -> list[tuple[int, int]]:
    """First and past-the-last index of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marks, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))

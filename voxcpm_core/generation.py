"""What a caller holds while the engine works: audio as it comes, takes at the end, and the brake."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import numpy as np

from .request import Take


class Generation:
    """The takes being made for one call. Iterate it for the audio; any thread may cancel."""

    def __init__(self, seeds: list[int]):
        self.seeds = seeds
        self.takes: list[Take | None] = [None] * len(seeds)
        self.patches = [0] * len(seeds)
        self._cancelled = [False] * len(seeds)
        self._chunks: queue.SimpleQueue[tuple[int, np.ndarray | None]] = queue.SimpleQueue()
        self._open = len(seeds)
        self._done = threading.Event()

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yields (row, float32 samples of one patch) until every row has ended; leaving early cancels the rest."""
        try:
            while self._open:
                row, chunk = self._chunks.get()
                if chunk is None:
                    self._open -= 1
                else:
                    yield row, chunk
        finally:
            if self._open:
                self.cancel()

    def cancel(self, row: int | None = None) -> None:
        """Ends one row, or all, before its next patch; what was made is kept in :attr:`takes`."""
        for index in range(len(self.seeds)) if row is None else [row]:
            self._cancelled[index] = True

    def wait(self, timeout: float | None = None) -> bool:
        """Blocks until every row has ended (True) or ``timeout`` seconds have gone by (False)."""
        return self._done.wait(timeout)

    def is_cancelled(self, row: int) -> bool:
        return self._cancelled[row]

    def put(self, row: int, chunk: np.ndarray) -> None:
        self.patches[row] += 1
        self._chunks.put((row, chunk))

    def finish(self, row: int, take: Take) -> None:
        self.takes[row] = take
        self._chunks.put((row, None))
        if all(take is not None for take in self.takes):
            self._done.set()

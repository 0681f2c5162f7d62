"""What a caller holds while the engine works: audio as it comes, takes at the end, and the brake."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import numpy as np

from .errors import EngineError, RequestError
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
        self._listening = threading.Lock()
        self.owner: object = None  # the model: it must not be closed while this is being made

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yields (row, float32 samples of one patch) until every row has ended; leaving early cancels the rest.

        Every piece of audio is handed out once: a second loop at the same time raises EngineError.
        """
        if not self._listening.acquire(blocking=False):
            raise EngineError("This generation is being listened to already; its audio is handed out once.")
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
            self._listening.release()

    def cancel(self, row: int | None = None) -> None:
        """Ends one row, or all, before its next patch; what was made is kept in :attr:`takes`."""
        if row is not None and row not in range(len(self.seeds)):
            raise RequestError(f"There is no row {row!r}; this generation has rows 0 to {len(self.seeds) - 1}.")
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
            self.owner = None
            self._done.set()

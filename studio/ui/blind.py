"""Which takes are being compared blindly: no page tells their seeds until one is picked."""

from __future__ import annotations

import threading
from collections.abc import Iterable

MOST = 10_000  # takes; the oldest are forgotten first


class BlindTakes:
    """Kept by the server, so that opening the page anew tells nothing; it ends with the process."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}  # in the order they came
        self._lock = threading.Lock()

    def hide(self, take_ids: Iterable[str]) -> None:
        with self._lock:
            self._ids.update(dict.fromkeys(filter(None, take_ids)))
            for oldest in list(self._ids)[:-MOST]:
                del self._ids[oldest]

    def reveal(self, take_ids: Iterable[str]) -> None:
        with self._lock:
            for take_id in take_ids:
                self._ids.pop(take_id, None)

    def __contains__(self, take_id: object) -> bool:
        return take_id in self._ids

"""Only one program renders the books of a data folder at a time: two would make everything twice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO


class RenderLock:
    """A lock on a file. The system gives it back when the program ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def take(self) -> bool:
        """Whether this program may render. False while another one does."""
        if self._file is not None:
            return True
        file = open(self._path, "ab")
        try:
            _lock(file)
        except OSError:
            file.close()
            return False
        self._file = file
        return True

    def give_back(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _lock(file: IO[bytes]) -> None:
    """Raises OSError when it is taken."""
    if os.name == "nt":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

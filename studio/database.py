"""The SQLite file of a data folder: one connection, one lock, and sentences for what goes wrong."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from voxcpm_core.errors import VoxCPMError

FILE_NAME = "studio.sqlite3"
PATIENCE_SECONDS = 8.0  # how long a write is tried while another program holds the database
TRY_SECONDS = 0.5  # of that, how long one try may keep the other threads of this process waiting
PAUSE_SECONDS = 0.05  # between two tries: the other threads' turn
OLDEST_SQLITE = (3, 34)  # the first that finds words of Chinese by an index (trigrams)


class StoreError(VoxCPMError, RuntimeError):
    """The data folder cannot be used, or what was asked for is not in it."""


class Database:
    """Any thread may call. Readers do not wait for a writer of another process (WAL)."""

    def __init__(self, path: Path) -> None:
        """Raises sqlite3.Error; :meth:`hurry` is to be called when the start is over."""
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise StoreError(
                f"This Python brings SQLite {sqlite3.sqlite_version}, but the studio needs "
                f"{'.'.join(map(str, OLDEST_SQLITE))} or newer. Use a newer Python."
            )
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")  # other processes read while one writes
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA foreign_keys = ON")

    def hurry(self) -> None:
        """From now on one try to write takes no longer than TRY_SECONDS."""
        self.execute(f"PRAGMA busy_timeout = {TRY_SECONDS * 1000:.0f}")

    def execute(self, sql: str, values: Sequence = ()) -> sqlite3.Cursor:
        """One statement on its own. Raises sqlite3.Error."""
        with self._lock:
            return self._db.execute(sql, values)

    def read(self, sql: str, values: Sequence = ()) -> list[tuple]:
        """All rows of a question. Raises StoreError."""
        try:
            with self._lock:
                return self._db.execute(sql, values).fetchall()
        except (sqlite3.Error, OverflowError) as error:  # a number that is too large for SQLite
            raise StoreError(f"The list of takes cannot be read{remedy(error)}") from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it or nothing. Raises sqlite3.Error."""
        self._begin()
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        finally:
            self._lock.release()

    @contextmanager
    def changing(self, what: str) -> Iterator[sqlite3.Connection]:
        """Like :meth:`writing`, for small changes: raises StoreError ("<what> was not saved ...")."""
        try:
            with self.writing() as db:
                yield db
        except (sqlite3.Error, OverflowError) as error:
            raise StoreError(f"{what} was not saved{remedy(error)}") from error

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _begin(self) -> None:
        """Begin a transaction and keep the lock. While another program writes, the lock is given back between tries."""
        patient_until = time.monotonic() + PATIENCE_SECONDS
        while True:
            self._lock.acquire()
            try:
                self._db.execute("BEGIN IMMEDIATE")
                return
            except BaseException as error:
                self._lock.release()
                if not is_locked(error) or time.monotonic() >= patient_until:
                    raise
            time.sleep(PAUSE_SECONDS)


def is_locked(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def remedy(error: Exception) -> str:
    """How a sentence about the database ends: what is wrong with it, and what helps."""
    if is_locked(error):
        return (
            ": another program holds its database (database is locked). Close that program and try again, "
            "or choose another folder with --data-dir."
        )
    if type(error) is sqlite3.DatabaseError:
        return (
            f": its database {FILE_NAME} is damaged ({error}). Move that file somewhere else and start again; the "
            "audio in the folder takes stays. Or choose another folder with --data-dir."
        )
    return f" ({error}). Choose a folder that you can write to with --data-dir."

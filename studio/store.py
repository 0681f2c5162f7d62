"""The user's data folder: takes in SQLite, their audio in files beside it.

    <data folder>/studio.sqlite3   the rows
    <data folder>/takes/<id>.wav   the audio, 16-bit PCM, written once

Audio is written and renamed into place inside the transaction that adds its row. So at every moment a row
has its file, and a crash leaves at most a file without a row, which nobody can see and which the next start
removes. Because that clean-up holds the same write lock, a second process on the folder cannot lose a take
that is just being saved.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from studio.takes import TakeRecord, hidden_owner, is_take_id, readable, utc_text
from voxcpm_core.audio import wav_bytes
from voxcpm_core.errors import VoxCPMError

if TYPE_CHECKING:
    import numpy as np

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 8.0  # how long a write is tried while another program holds the database
TRY_SECONDS = 0.5  # of that, how long one try may keep the other threads of this process waiting
PAUSE_SECONDS = 0.05  # between two tries: the other threads' turn
SEARCH_WORDS = 32  # words of a search that count; SQLite refuses conditions without end
SEARCH_CHARACTERS = 2000
KEPT = "unlisted-"  # begins the name of audio that has no row but is kept


class StoreError(VoxCPMError, RuntimeError):
    """The data folder cannot be used, or a take is not in it."""


def _takes(db: sqlite3.Connection) -> None:
    # `number` keeps the order in which takes were stored and gives a full-text index something to point at.
    db.execute(
        """CREATE TABLE takes (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            created TEXT NOT NULL,
            session TEXT NOT NULL,
            spoken_text TEXT NOT NULL,
            control TEXT NOT NULL,
            recipe TEXT NOT NULL)"""
    )
    db.execute("CREATE INDEX takes_by_session ON takes (session, number)")


def _ratings(db: sqlite3.Connection) -> None:
    db.execute(
        """CREATE TABLE ratings (
            take_id TEXT PRIMARY KEY REFERENCES takes (id) ON DELETE CASCADE,
            rating INTEGER NOT NULL,
            changed TEXT NOT NULL)"""
    )


def _hidden_owners(db: sqlite3.Connection) -> None:
    """What a browser knows itself by is not kept, only its hash, and no recipe tells it."""
    db.create_function("hidden_owner", 1, lambda owner: owner if owner == "local" else hidden_owner(owner))
    db.execute("UPDATE takes SET session = hidden_owner(session)")
    for number, recipe in db.execute("SELECT number, recipe FROM takes").fetchall():
        known = {name: value for name, value in json.loads(recipe).items() if name != "session"}
        text = json.dumps(known, ensure_ascii=False)
        db.execute("UPDATE takes SET recipe = ? WHERE number = ?", (text, number))


# Applied in this order, each once. A released entry is never edited, moved or removed: a change is a new one.
MIGRATIONS: list[tuple[str, Callable[[sqlite3.Connection], None]]] = [
    ("takes", _takes),
    ("ratings", _ratings),
    ("hidden owners", _hidden_owners),
]


class Store:
    """Takes on disk. Every method may be called from any thread.

    ``session=None`` means the one user of this machine, who sees everything; a session's name narrows every
    question to what that session made.
    """

    def __init__(self, data_dir: str | Path | None = None) -> None:
        self.data_dir = Path(data_dir).expanduser().resolve() if data_dir else default_data_dir()
        self.takes_dir = self.data_dir / "takes"
        self._lock = threading.RLock()
        try:
            self.takes_dir.mkdir(parents=True, exist_ok=True)
            self._db = _connect(self.data_dir / "studio.sqlite3")
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise
            self._db.execute(f"PRAGMA busy_timeout = {TRY_SECONDS * 1000:.0f}")
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"The data folder {self.data_dir} cannot be used{_remedy(error)}") from error

    def save_take(self, record: TakeRecord, samples: np.ndarray) -> TakeRecord:
        """Write a take's audio (float [n]) and then its row; returns the record with file name and file hash.

        Raises StoreError with a sentence when the disk refuses; no row is left then, and no file after the next start.
        When only the row cannot be written, the audio is kept under a name that the sentence tells.
        """
        path = self._path(record.id)
        data = wav_bytes(samples, record.sample_rate)
        record = replace(record, file_name=path.name, file_hash=hashlib.sha256(data).hexdigest())
        try:
            with self._writing() as db:
                _insert(db, record)
                write_once(path, data)
        except sqlite3.Error as error:
            raise self._row_refused(path, data, error) from error
        except OSError as error:
            raise self._disk_refused(error) from error
        return record

    def _row_refused(self, path: Path, data: bytes, error: sqlite3.Error) -> StoreError:
        kept = path.with_name(KEPT + path.name)
        try:
            write_once(kept, data)
        except OSError as full:
            return self._disk_refused(full)
        why = "another program holds its database" if _is_locked(error) else str(error)
        return StoreError(
            f"The take could not be put into the list of takes ({why}), but its audio is kept: "
            f"{kept.parent.name}/{kept.name} in the data folder. Close what else uses the folder and try again."
        )

    def _disk_refused(self, error: OSError) -> StoreError:
        return StoreError(f"The take could not be saved in {self.data_dir} ({error}). Free some space and try again.")

    def take(self, take_id: str, session: str | None = None) -> TakeRecord:
        """One take's record. Raises StoreError when there is none (or it is another session's)."""
        if is_take_id(take_id):
            found = self._select("WHERE takes.id = ?", [take_id], session)
            if found:
                return found[0]
        raise StoreError(f"There is no take {take_id!r} in this studio. It may have been deleted.")

    def takes(self, limit: int = 50, offset: int = 0, query: str = "", session: str | None = None) -> list[TakeRecord]:
        """Takes, the newest first. Every word of ``query`` must occur in the spoken text or the control."""
        where, values = _matching(query)
        page = [max(limit, 0), max(offset, 0)]
        return self._select(where, values, session, "ORDER BY number DESC LIMIT ? OFFSET ?", page)

    def count(self, query: str = "", session: str | None = None) -> int:
        """How many takes :meth:`takes` would list in all."""
        where, values = _matching(query)
        where, values = _of_session(where, values, session)
        return self._read(f"SELECT count(*) FROM takes {where}", values)[0][0]

    def audio_path(self, take_id: str, session: str | None = None) -> Path:
        """The take's WAV file. Raises StoreError when the take or its file is gone."""
        path = self._path(self.take(take_id, session).id)
        if not path.is_file():
            raise StoreError(f"The audio of take {take_id} is missing: {path} is no longer there.")
        return path

    def rate(self, take_id: str, rating: int, session: str | None = None) -> None:
        """Give a take 0 (none) to 5 stars."""
        if not 0 <= rating <= 5:
            raise StoreError(f"A rating is 0 to 5 stars, not {rating}.")
        take_id = self.take(take_id, session).id
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO ratings VALUES (?, ?, ?)", (take_id, rating, utc_text()))

    def delete_take(self, take_id: str, session: str | None = None) -> None:
        """Remove a take and its audio for good."""
        path = self._path(self.take(take_id, session).id)
        with self._writing() as db:
            db.execute("DELETE FROM takes WHERE id = ?", (take_id,))
        _remove(path)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _path(self, take_id: str) -> Path:
        if not is_take_id(take_id):
            raise StoreError(f"{take_id!r} is not the id of a take.")
        return self.takes_dir / f"{take_id}.wav"

    def _select(
        self, where: str, values: list, session: str | None, tail: str = "", tail_values: list | None = None
    ) -> list[TakeRecord]:
        where, values = _of_session(where, values, session)
        rated = "takes LEFT JOIN ratings ON take_id = takes.id"
        sql = f"SELECT recipe, coalesce(rating, 0), session FROM {rated} {where} {tail}"
        rows = self._read(sql, [*values, *(tail_values or [])])
        return [TakeRecord.from_recipe(json.loads(recipe), rating, owner) for recipe, rating, owner in rows]

    def _read(self, sql: str, values: list) -> list[tuple]:
        try:
            with self._lock:
                return self._db.execute(sql, values).fetchall()
        except (sqlite3.Error, OverflowError) as error:  # a number that is too large for SQLite
            raise StoreError(f"The list of takes cannot be read{_remedy(error)}") from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
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
                if not _is_locked(error) or time.monotonic() >= patient_until:
                    raise
            time.sleep(PAUSE_SECONDS)

    def _prepare(self) -> None:
        with self._writing() as db:
            if self._migrate(db):
                self._keep_strays()
            else:
                self._remove_strays(db)

    def _migrate(self, db: sqlite3.Connection) -> bool:
        """Bring the database up to date. Returns whether it is a new one."""
        db.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied TEXT NOT NULL)")
        applied = {name for (name,) in db.execute("SELECT name FROM migrations")}
        unknown = applied - {name for name, _ in MIGRATIONS}
        if unknown:
            names = ", ".join(sorted(unknown))
            raise StoreError(
                f"The data folder {self.data_dir} was written by a newer version of the studio ({names}). "
                "Update the studio, or choose another folder with --data-dir."
            )
        for name, migrate in MIGRATIONS:
            if name not in applied:
                migrate(db)
                db.execute("INSERT INTO migrations VALUES (?, ?)", (name, utc_text()))
        return not applied

    def _keep_strays(self) -> None:
        """A new database beside audio: the old one was lost or moved away, and its takes must not go, too."""
        for path in list(self.takes_dir.glob("*.wav")):
            if is_take_id(path.stem):
                path.rename(path.with_name(KEPT + path.name))
                logger.warning("%s has no row in the new database; it is kept as %s%s", path.name, KEPT, path.name)

    def _remove_strays(self, db: sqlite3.Connection) -> None:
        """Remove files that a crash left without a row. Only names of our own making are touched."""
        known = {take_id for (take_id,) in db.execute("SELECT id FROM takes")}
        for path in self.takes_dir.iterdir():
            take_id = path.name.removesuffix(".part").removesuffix(".wav")
            if is_take_id(take_id) and (path.suffix == ".part" or take_id not in known):
                logger.info("removing %s, left over from an interrupted run", path.name)
                _remove(path)


def default_data_dir(
    platform: str = sys.platform, environ: Mapping[str, str] = os.environ, home: Path | None = None
) -> Path:
    """Where this system keeps a user's application data."""
    home = home or Path.home()
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "VoxCPM Studio"
    if platform == "darwin":
        return home / "Library" / "Application Support" / "VoxCPM Studio"
    return Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "voxcpm-studio"


def write_once(path: Path, data: bytes) -> None:
    """Write a whole file or nothing: a temporary file in the same folder, flushed to disk, then renamed."""
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _remove(path: Path) -> None:
    """Remove a file that has no row. On Windows it may be playing; then the next start tries again."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("%s could not be removed (%s)", path.name, error)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")  # other processes read while one writes
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    return db


def _is_locked(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _remedy(error: Exception) -> str:
    """How a sentence about the database ends: what is wrong with it, and what helps."""
    if _is_locked(error):
        return (
            ": another program holds its database (database is locked). Close that program and try again, "
            "or choose another folder with --data-dir."
        )
    if type(error) is sqlite3.DatabaseError:
        return (
            f": its database studio.sqlite3 is damaged ({error}). Move that file somewhere else and start again; the "
            "audio in the folder takes stays. Or choose another folder with --data-dir."
        )
    return f" ({error}). Choose a folder that you can write to with --data-dir."


def _insert(db: sqlite3.Connection, record: TakeRecord) -> None:
    recipe = json.dumps(record.recipe(), ensure_ascii=False)
    db.execute(
        "INSERT INTO takes (id, created, session, spoken_text, control, recipe) VALUES (?, ?, ?, ?, ?, ?)",
        (record.id, record.created, record.session, record.spoken_text, record.control, recipe),
    )


def _matching(query: str) -> tuple[str, list]:
    conditions, values = [], []
    for word in readable(query[:SEARCH_CHARACTERS]).split()[:SEARCH_WORDS]:
        pattern = "%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        conditions.append("(spoken_text LIKE ? ESCAPE '\\' OR control LIKE ? ESCAPE '\\')")
        values += [pattern, pattern]
    return ("WHERE " + " AND ".join(conditions) if conditions else "", values)


def _of_session(where: str, values: list, session: str | None) -> tuple[str, list]:
    if session is None:
        return where, values
    return (f"{where} AND session = ?" if where else "WHERE session = ?", [*values, session])

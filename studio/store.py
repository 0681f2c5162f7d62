"""The user's data folder: takes in SQLite, their audio in files beside it.

    <data folder>/studio.sqlite3   the rows
    <data folder>/takes/<id>.wav   the audio, 16-bit PCM, written once
    <data folder>/clips/           clips that takes were made with (studio.kept_clips)
    <data folder>/voices/          saved voices (studio.voices)

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
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studio.database import FILE_NAME, Database, StoreError, is_locked, remedy
from studio.files import pcm_hash, remove, write_once
from studio.kept_clips import KeptClips
from studio.migrations import migrate
from studio.search import matching
from studio.takes import TakeRecord, is_take_id, utc_text
from voxcpm_core.audio import wav_bytes

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Store", "StoreError", "default_data_dir"]

logger = logging.getLogger(__name__)

UNDO_DAYS = 7  # how long what was deleted can be brought back
MOST_ROWS = 10_000  # of one answer
KEPT = "unlisted-"  # begins the name of audio that has no row but is kept


class Store:
    """Takes on disk. Every method may be called from any thread.

    ``session=None`` means the one user of this machine, who sees everything; a session's name narrows every
    question to what that session made.
    """

    def __init__(self, data_dir: str | Path | None = None) -> None:
        self.data_dir = Path(data_dir).expanduser().resolve() if data_dir else default_data_dir()
        self.takes_dir = self.data_dir / "takes"
        self.clips = KeptClips(self.data_dir / "clips")
        try:
            self.takes_dir.mkdir(parents=True, exist_ok=True)
            self.database = Database(self.data_dir / FILE_NAME)
            try:
                self._prepare()
            except BaseException:
                self.database.close()
                raise
            self.database.hurry()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"The data folder {self.data_dir} cannot be used{remedy(error)}") from error

    def save_take(self, record: TakeRecord, samples: np.ndarray) -> TakeRecord:
        """Write a take's audio (float [n]) and then its row; returns the record with file name and hashes.

        Raises StoreError with a sentence when the disk refuses; no row is left then, and no file after the next start.
        When only the row cannot be written, the audio is kept under a name that the sentence tells.
        """
        path = self._path(record.id)
        data = wav_bytes(samples, record.sample_rate)
        hashes = {"file_hash": hashlib.sha256(data).hexdigest(), "audio_hash": pcm_hash(data)}
        record = replace(record, file_name=path.name, **hashes)
        try:
            with self.database.writing() as db:
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
        why = "another program holds its database" if is_locked(error) else str(error)
        return StoreError(
            f"The take could not be put into the list of takes ({why}), but its audio is kept: "
            f"{kept.parent.name}/{kept.name} in the data folder. Close what else uses the folder and try again."
        )

    def _disk_refused(self, error: OSError) -> StoreError:
        return StoreError(f"The take could not be saved in {self.data_dir} ({error}). Free some space and try again.")

    def take(self, take_id: str, session: str | None = None) -> TakeRecord:
        """One take's record. Raises StoreError when there is none (or it is another session's, or deleted)."""
        if is_take_id(take_id):
            found = self.select("takes.id = ?", [take_id], session)
            if found:
                return found[0]
        raise StoreError(f"There is no take {take_id!r} in this studio. It may have been deleted.")

    def takes(self, limit: int = 50, offset: int = 0, query: str = "", session: str | None = None) -> list[TakeRecord]:
        """Takes, the newest first. Every word of ``query`` must occur in the spoken text or the control.

        For more than that see :mod:`studio.history`.
        """
        return self.select(*matching(query), session, limit, offset)

    def count(self, query: str = "", session: str | None = None) -> int:
        """How many takes :meth:`takes` would list in all."""
        return self.count_where(*matching(query), session)

    def select(
        self, condition: str, values: list, session: str | None, limit: int = MOST_ROWS, offset: int = 0
    ) -> list[TakeRecord]:
        """The takes for which an SQL condition holds, the newest first. Limits beyond reason are cut down."""
        condition, values = _visible(condition, values, session)
        sql = f"""SELECT recipe, session, coalesce(rating, 0), coalesce(starred, 0), coalesce(picked, 0),
            coalesce(note, '') FROM takes LEFT JOIN ratings ON take_id = takes.id
            WHERE {condition} ORDER BY number DESC LIMIT ? OFFSET ?"""
        page = [min(max(limit, 0), MOST_ROWS), min(max(offset, 0), sys.maxsize)]
        return [_record(*row) for row in self.database.read(sql, [*values, *page])]

    def count_where(self, condition: str, values: list, session: str | None) -> int:
        """How many takes :meth:`select` would list without a limit."""
        condition, values = _visible(condition, values, session)
        sql = f"SELECT count(*) FROM takes LEFT JOIN ratings ON take_id = takes.id WHERE {condition}"
        return self.database.read(sql, values)[0][0]

    def audio_path(self, take_id: str, session: str | None = None) -> Path:
        """The take's WAV file. Raises StoreError when the take or its file is gone."""
        path = self._path(self.take(take_id, session).id)
        if not path.is_file():
            raise StoreError(f"The audio of take {take_id} is missing: {path} is no longer there.")
        return path

    def delete_take(self, take_id: str, session: str | None = None) -> None:
        """Take a take out of every list. For UNDO_DAYS :meth:`undo_delete` brings it back; then its audio goes, too."""
        take_id = self.take(take_id, session).id
        with self.database.changing("The deletion") as db:
            db.execute("UPDATE takes SET deleted = ? WHERE id = ?", (utc_text(), take_id))
            gone = _delete_old(db)
        self._remove_audio(gone)

    def undo_delete(self, take_id: str, session: str | None = None) -> TakeRecord:
        """Bring a deleted take back. Raises StoreError when it is gone for good or another session's."""
        if is_take_id(take_id):
            owner, values = ("", []) if session is None else (" AND session = ?", [session])
            with self.database.changing("The undoing") as db:
                db.execute(f"UPDATE takes SET deleted = '' WHERE id = ?{owner}", [take_id, *values])
        return self.take(take_id, session)

    def _remove_audio(self, take_ids: list[str]) -> None:
        for take_id in take_ids:
            remove(self._path(take_id))

    def close(self) -> None:
        self.database.close()

    def _path(self, take_id: str) -> Path:
        if not is_take_id(take_id):
            raise StoreError(f"{take_id!r} is not the id of a take.")
        return self.takes_dir / f"{take_id}.wav"

    def _prepare(self) -> None:
        with self.database.writing() as db:
            self.is_new, unknown = migrate(db)
            if unknown:
                raise StoreError(
                    f"The data folder {self.data_dir} was written by a newer version of the studio "
                    f"({', '.join(sorted(unknown))}). Update the studio, or choose another folder with --data-dir."
                )
            if self.is_new:
                self._keep_strays()
            else:
                self._remove_strays(db)
            gone = _delete_old(db)
            used = _used_clips(db)
        self._remove_audio(gone)
        self.clips.purge(used)

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
                remove(path)


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


def _insert(db: sqlite3.Connection, record: TakeRecord) -> None:
    recipe = json.dumps(record.recipe(), ensure_ascii=False)
    db.execute(
        "INSERT INTO takes (id, created, session, spoken_text, control, recipe) VALUES (?, ?, ?, ?, ?, ?)",
        (record.id, record.created, record.session, record.spoken_text, record.control, recipe),
    )


def _delete_old(db: sqlite3.Connection) -> list[str]:
    """Delete for good what was deleted more than UNDO_DAYS ago; returns the ids."""
    before = utc_text(datetime.now(timezone.utc) - timedelta(days=UNDO_DAYS))
    old = "FROM takes WHERE deleted != '' AND deleted < ?"
    gone = [take_id for (take_id,) in db.execute(f"SELECT id {old}", (before,))]
    db.execute(f"DELETE {old}", (before,))
    return gone


def _used_clips(db: sqlite3.Connection) -> set[str]:
    sources = [
        ("recipe", "reference_hash", "takes"),
        ("recipe", "prompt_hash", "takes"),
        ("facts", "audio_hash", "voices"),
        ("facts", "clip_choices.original", "voices"),  # the way back from what was done to the clip
    ]
    asked = " UNION ".join(f"SELECT json_extract({column}, '$.{name}') FROM {table}" for column, name, table in sources)
    return {digest for (digest,) in db.execute(asked) if digest}


def _record(recipe: str, session: str, rating: int, starred: int, picked: int, note: str) -> TakeRecord:
    opinions: dict[str, Any] = {"rating": rating, "starred": bool(starred), "picked": bool(picked), "note": note}
    return TakeRecord.from_recipe(json.loads(recipe), session, **opinions)


def _visible(condition: str, values: list, session: str | None) -> tuple[str, list]:
    """What is asked for, without what is deleted or another session's."""
    wanted = f"({condition}) AND deleted = ''" if condition else "deleted = ''"
    return (wanted, values) if session is None else (f"{wanted} AND session = ?", [*values, session])

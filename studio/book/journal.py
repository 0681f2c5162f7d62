"""Edits that can be undone: every change of a row notes what was there before.

Only the columns that an edit changes are noted, so undoing it leaves alone what was done to the same rows since.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from studio.takes import utc_text

KEYS: dict[str, tuple[str, ...]] = {
    "book_projects": ("id",),
    "book_chapters": ("id",),
    "book_segments": ("id",),
    "book_cast": ("project", "speaker"),
    "book_words": ("project", "word"),
}
KEPT_CHANGES = 200  # per project

Row = dict[str, Any]


class Change:
    """Collects the steps of one edit inside a transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._inverse: list[tuple[str, Row, Row | None, bool]] = []  # table, key, columns to put back, whole row?

    def add(self, table: str, row: Row) -> int:
        """Insert a row; returns its number."""
        columns = ", ".join(row)
        marks = ", ".join("?" * len(row))
        number = self.db.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", list(row.values())).lastrowid
        key = {name: row.get(name, number) for name in KEYS[table]}
        self._inverse.append((table, key, None, True))
        return int(number or 0)

    def update(self, table: str, key: Row, values: Row) -> None:
        before = _find(self.db, table, key)
        if before is None:
            return
        changed = {name: value for name, value in values.items() if before[name] != value}
        if changed:
            self._inverse.append((table, key, {name: before[name] for name in changed}, False))
            _update(self.db, table, key, changed)

    def remove(self, table: str, key: Row) -> None:
        before = _find(self.db, table, key)
        if before is not None:
            self._inverse.append((table, key, before, True))
            _delete(self.db, table, key)

    def put(self, table: str, row: Row) -> None:
        """Insert the row, or change the one with its key."""
        key = {name: row[name] for name in KEYS[table]}
        if _find(self.db, table, key) is None:
            self.add(table, row)
        else:
            self.update(table, key, row)

    def note(self, project: int, label: str, undone: bool = False) -> None:
        """Write the change down. A new edit makes what was undone before it impossible to redo."""
        if not self._inverse:
            return
        self.db.execute(
            "INSERT INTO book_changes (project, label, created, undone, inverse) VALUES (?, ?, ?, ?, ?)",
            (project, label, utc_text(), int(undone), json.dumps(self._inverse, ensure_ascii=False)),
        )

    def forget_undone(self, project: int) -> None:
        if self._inverse:
            self.db.execute("DELETE FROM book_changes WHERE project = ? AND undone = 1", (project,))
            self.db.execute(
                """DELETE FROM book_changes WHERE project = ? AND id NOT IN
                (SELECT id FROM book_changes WHERE project = ? ORDER BY id DESC LIMIT ?)""",
                (project, project, KEPT_CHANGES),
            )


NEXT = "SELECT id, label, inverse FROM book_changes WHERE project = ? AND undone = ? ORDER BY id DESC LIMIT 1"


def next_label(read: Callable[[str, list], list[tuple]], project: int, redo: bool) -> str:
    """The label of the edit that would be undone, or done again; "" for none."""
    found = read(NEXT, [project, int(redo)])
    return found[0][1] if found else ""


def turn_back(db: sqlite3.Connection, project: int, redo: bool) -> str:
    """Undo the newest edit, or do the one undone last again. Returns its label, "" when there is none."""
    found = db.execute(NEXT, (project, int(redo))).fetchone()
    if found is None:
        return ""
    number, label, inverse = found
    db.execute("DELETE FROM book_changes WHERE id = ?", (number,))
    change = Change(db)
    for table, key, values, whole in reversed(json.loads(inverse)):
        if values is None:
            change.remove(table, key)
        elif whole:
            change.add(table, values)
        else:
            change.update(table, key, values)
    change.note(project, label, undone=not redo)
    return label


def _where(key: Row) -> str:
    return " AND ".join(f"{name} = ?" for name in key)


def _find(db: sqlite3.Connection, table: str, key: Row) -> Row | None:
    cursor = db.execute(f"SELECT * FROM {table} WHERE {_where(key)}", list(key.values()))
    found = cursor.fetchone()
    return None if found is None else dict(zip([column[0] for column in cursor.description], found, strict=True))


def _update(db: sqlite3.Connection, table: str, key: Row, values: Row) -> None:
    named = ", ".join(f"{name} = ?" for name in values)
    db.execute(f"UPDATE {table} SET {named} WHERE {_where(key)}", [*values.values(), *key.values()])


def _delete(db: sqlite3.Connection, table: str, key: Row) -> None:
    db.execute(f"DELETE FROM {table} WHERE {_where(key)}", list(key.values()))

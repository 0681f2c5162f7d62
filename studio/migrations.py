"""How the database came to its present shape: an ordered list of named steps, each applied once.

A released step is never edited, moved or removed: a change is a new one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

from studio.takes import hidden_owner, utc_text


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


def _reviews(db: sqlite3.Connection) -> None:
    """Beside the stars: a mark, a note, and which take of a group was picked."""
    db.execute("ALTER TABLE ratings ADD COLUMN starred INTEGER NOT NULL DEFAULT 0")
    db.execute("ALTER TABLE ratings ADD COLUMN picked INTEGER NOT NULL DEFAULT 0")
    db.execute("ALTER TABLE ratings ADD COLUMN note TEXT NOT NULL DEFAULT ''")


def _deleted(db: sqlite3.Connection) -> None:
    """A deleted take can be brought back for a while: when it was deleted, "" for what is there."""
    db.execute("ALTER TABLE takes ADD COLUMN deleted TEXT NOT NULL DEFAULT ''")


def _facets(db: sqlite3.Connection) -> None:
    """What takes are filtered by, read from the recipe by SQLite itself, so that it is written in one place only."""
    for column, name in [
        ("tab", "tab"),
        ("voice", "voice"),
        ("model", "model_id"),
        ("ended_by", "ended_by"),
        ("verdict", "verdict"),
        ("grouping", "group"),
    ]:
        source = f"coalesce(json_extract(recipe, '$.{name}'), '')"
        db.execute(f"ALTER TABLE takes ADD COLUMN {column} TEXT GENERATED ALWAYS AS ({source}) VIRTUAL")
        db.execute(f"CREATE INDEX takes_by_{column} ON takes ({column}, number)")


def _words(db: sqlite3.Connection) -> None:
    """Full-text search by trigrams: any part of a word is found, in every script."""
    db.execute(
        """CREATE VIRTUAL TABLE take_words USING fts5(
            spoken_text, control, content='takes', content_rowid='number', tokenize='trigram')"""
    )
    db.execute("INSERT INTO take_words (take_words) VALUES ('rebuild')")
    db.execute(
        """CREATE TRIGGER take_words_added AFTER INSERT ON takes BEGIN
            INSERT INTO take_words (rowid, spoken_text, control) VALUES (new.number, new.spoken_text, new.control);
        END"""
    )
    db.execute(
        """CREATE TRIGGER take_words_removed AFTER DELETE ON takes BEGIN
            INSERT INTO take_words (take_words, rowid, spoken_text, control)
            VALUES ('delete', old.number, old.spoken_text, old.control);
        END"""
    )


def _voices(db: sqlite3.Connection) -> None:
    # `facts` is written once, as a take's recipe is; name and tags may change.
    db.execute(
        """CREATE TABLE voices (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            created TEXT NOT NULL,
            session TEXT NOT NULL,
            name TEXT NOT NULL,
            tags TEXT NOT NULL DEFAULT '[]',
            facts TEXT NOT NULL,
            deleted TEXT NOT NULL DEFAULT '')"""
    )
    db.execute("CREATE INDEX voices_by_session ON voices (session, number)")


MIGRATIONS: list[tuple[str, Callable[[sqlite3.Connection], None]]] = [
    ("takes", _takes),
    ("ratings", _ratings),
    ("hidden owners", _hidden_owners),
    ("reviews", _reviews),
    ("deleted", _deleted),
    ("facets", _facets),
    ("words", _words),
    ("voices", _voices),
]


def migrate(db: sqlite3.Connection) -> tuple[bool, set[str]]:
    """Bring a database up to date, inside the caller's transaction.

    Returns whether it is a new one, and the names of steps that only a newer version knows: then nothing was changed.
    """
    db.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied TEXT NOT NULL)")
    applied = {name for (name,) in db.execute("SELECT name FROM migrations")}
    unknown = applied - {name for name, _ in MIGRATIONS}
    for name, step in [] if unknown else MIGRATIONS:
        if name not in applied:
            step(db)
            db.execute("INSERT INTO migrations VALUES (?, ?)", (name, utc_text()))
    return not applied, unknown

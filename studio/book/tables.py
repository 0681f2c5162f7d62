"""The tables of books, in the studio's database: an ordered list of named steps, each applied once.

A released step is never edited, moved or removed: a change is a new one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from studio.database import Database, StoreError
from studio.takes import utc_text


def _books(db: sqlite3.Connection) -> None:
    db.execute(
        """CREATE TABLE book_projects (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            title TEXT NOT NULL,
            author TEXT NOT NULL,
            language TEXT NOT NULL,
            source TEXT NOT NULL,
            session TEXT NOT NULL,
            created TEXT NOT NULL,
            settings TEXT NOT NULL)"""
    )
    db.execute("CREATE UNIQUE INDEX book_projects_by_title ON book_projects (session, title)")
    db.execute(
        """CREATE TABLE book_chapters (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            project INTEGER NOT NULL REFERENCES book_projects (id) ON DELETE CASCADE,
            place REAL NOT NULL,
            title TEXT NOT NULL,
            kind TEXT NOT NULL,
            is_on INTEGER NOT NULL)"""
    )
    db.execute("CREATE INDEX book_chapters_by_project ON book_chapters (project, place)")
    db.execute(
        """CREATE TABLE book_segments (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            chapter INTEGER NOT NULL REFERENCES book_chapters (id) ON DELETE CASCADE,
            place REAL NOT NULL,
            text TEXT NOT NULL,
            kind TEXT NOT NULL,
            is_on INTEGER NOT NULL,
            paragraph INTEGER NOT NULL,
            speaker TEXT NOT NULL,
            control TEXT NOT NULL,
            pause_ms INTEGER,
            locked INTEGER NOT NULL,
            note TEXT NOT NULL,
            review TEXT NOT NULL,
            chosen TEXT NOT NULL)"""
    )
    db.execute("CREATE INDEX book_segments_by_chapter ON book_segments (chapter, place)")
    db.execute(
        """CREATE TABLE book_cast (
            project INTEGER NOT NULL REFERENCES book_projects (id) ON DELETE CASCADE,
            speaker TEXT NOT NULL,
            voice TEXT NOT NULL,
            reference TEXT NOT NULL,
            transcript TEXT NOT NULL,
            control TEXT NOT NULL,
            round INTEGER NOT NULL,
            PRIMARY KEY (project, speaker))"""
    )
    db.execute(
        """CREATE TABLE book_words (
            project INTEGER NOT NULL REFERENCES book_projects (id) ON DELETE CASCADE,
            word TEXT NOT NULL,
            say TEXT NOT NULL,
            match_case INTEGER NOT NULL,
            PRIMARY KEY (project, word))"""
    )


def _book_takes(db: sqlite3.Connection) -> None:
    """Which take was made for which segment. No foreign key to the takes: history may forget one."""
    db.execute(
        """CREATE TABLE book_takes (
            take TEXT PRIMARY KEY,
            segment INTEGER NOT NULL REFERENCES book_segments (id) ON DELETE CASCADE,
            key TEXT NOT NULL,
            number INTEGER NOT NULL,
            verdict TEXT NOT NULL,
            seconds REAL NOT NULL,
            reason TEXT NOT NULL)"""
    )
    db.execute("CREATE INDEX book_takes_by_segment ON book_takes (segment, number)")
    db.execute(
        """CREATE TABLE book_anchors (
            project INTEGER NOT NULL REFERENCES book_projects (id) ON DELETE CASCADE,
            speaker TEXT NOT NULL,
            round INTEGER NOT NULL,
            take TEXT NOT NULL,
            clip TEXT NOT NULL,
            words TEXT NOT NULL,
            PRIMARY KEY (project, speaker, round))"""
    )


def _book_changes(db: sqlite3.Connection) -> None:
    """Edits and what undoes them; ``undone`` are those that can be done again."""
    db.execute(
        """CREATE TABLE book_changes (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            project INTEGER NOT NULL REFERENCES book_projects (id) ON DELETE CASCADE,
            label TEXT NOT NULL,
            created TEXT NOT NULL,
            undone INTEGER NOT NULL,
            inverse TEXT NOT NULL)"""
    )
    db.execute("CREATE INDEX book_changes_by_project ON book_changes (project, undone, id)")


def _book_jobs(db: sqlite3.Connection) -> None:
    db.execute(
        """CREATE TABLE book_jobs (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            project INTEGER NOT NULL REFERENCES book_projects (id) ON DELETE CASCADE,
            created TEXT NOT NULL,
            wanted TEXT NOT NULL,
            state TEXT NOT NULL,
            message TEXT NOT NULL)"""
    )
    db.execute(
        """CREATE TABLE book_failures (
            job INTEGER NOT NULL REFERENCES book_jobs (id) ON DELETE CASCADE,
            segment INTEGER NOT NULL REFERENCES book_segments (id) ON DELETE CASCADE,
            message TEXT NOT NULL,
            PRIMARY KEY (job, segment))"""
    )
    # What is being made at this moment: after a crash its takes, if they were finished, are found by their group.
    db.execute(
        """CREATE TABLE book_running (
            grouping TEXT PRIMARY KEY,
            segment INTEGER NOT NULL REFERENCES book_segments (id) ON DELETE CASCADE,
            key TEXT NOT NULL,
            seeds TEXT NOT NULL)"""
    )


def _take_measures(db: sqlite3.Connection) -> None:
    """What a take is judged by beside its neighbours, kept with it so that a whole book is judged in one look."""
    db.execute("ALTER TABLE book_takes ADD COLUMN loudness REAL")
    db.execute("ALTER TABLE book_takes ADD COLUMN likeness REAL")
    db.execute("ALTER TABLE book_takes ADD COLUMN faults TEXT NOT NULL DEFAULT '[]'")
    db.execute(
        """UPDATE book_takes SET
            loudness = (SELECT json_extract(recipe, '$.loudness') FROM takes WHERE id = take),
            faults = coalesce((SELECT json_group_array(json(value)) FROM takes, json_each(recipe, '$.checks')
                WHERE takes.id = take AND json_extract(value, '$.verdict') != 'ok'), '[]')"""
    )


def _kept_books(db: sqlite3.Connection) -> None:
    """A deleted book can be brought back for a while ("" for what is there); how many words its file had."""
    db.execute("ALTER TABLE book_projects ADD COLUMN deleted TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE book_projects ADD COLUMN words_in INTEGER NOT NULL DEFAULT 0")
    db.execute("DROP INDEX book_projects_by_title")
    db.execute("CREATE UNIQUE INDEX book_projects_by_title ON book_projects (session, title) WHERE deleted = ''")


def _heard_words(db: sqlite3.Connection) -> None:
    """What a recogniser heard in a take, as JSON: [[start, end, word], ...] in seconds."""
    db.execute("CREATE TABLE book_heard (take TEXT PRIMARY KEY, heard TEXT NOT NULL)")


MIGRATIONS: list[tuple[str, Callable[[sqlite3.Connection], None]]] = [
    ("books", _books),
    ("book takes", _book_takes),
    ("book changes", _book_changes),
    ("book jobs", _book_jobs),
    ("book take measures", _take_measures),
    ("kept books", _kept_books),
    ("heard words", _heard_words),
]


def migrate(database: Database) -> None:
    """Bring the tables of books up to date. Raises StoreError when a newer version has changed them."""
    with database.changing("The list of books") as db:
        db.execute("CREATE TABLE IF NOT EXISTS book_migrations (name TEXT PRIMARY KEY, applied TEXT NOT NULL)")
        applied = {name for (name,) in db.execute("SELECT name FROM book_migrations")}
        unknown = applied - {name for name, _ in MIGRATIONS}
        if unknown:
            raise StoreError(
                f"The books of this data folder were written by a newer version of the studio "
                f"({', '.join(sorted(unknown))}). Update the studio, or choose another folder with --data-dir."
            )
        for name, step in MIGRATIONS:
            if name not in applied:
                step(db)
                db.execute("INSERT INTO book_migrations VALUES (?, ?)", (name, utc_text()))

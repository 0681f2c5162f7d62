"""Books in the data folder: made from a manuscript, read as plain values, changed by edits that can be undone.

The edits themselves are functions of :mod:`studio.book.editing` and :mod:`studio.book.casting`.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

from studio.book import rows
from studio.book.dictionary import Dictionary, Pronunciation
from studio.book.errors import BookError
from studio.book.journal import Change, next_label, turn_back
from studio.book.manuscript import Manuscript, Section
from studio.book.project import Book, BookTake, CastMember, Chapter, Project, Segment, Settings
from studio.book.script import Limits, segment
from studio.book.tables import migrate
from studio.kept_clips import KeptClips
from studio.store import UNDO_DAYS, Store
from studio.takes import EVERYONE, readable, utc_text

LONGEST_TITLE = 200


class Library:
    """All books of a data folder. Any thread may call.

    ``session=None`` means the one user of this machine, who sees everything.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.database = store.database
        self.clips = KeptClips(store.data_dir / "book-clips")  # what casts and anchors speak with; kept for good
        self.revision = 0  # grows with every edit; a render looks whether its plan still holds
        self.takes_noted = 0  # grows with every take
        migrate(self.database)
        self._delete_old()

    # ---- projects

    def create(
        self,
        manuscript: Manuscript,
        title: str = "",
        settings: Settings | None = None,
        session: str = EVERYONE,
        source: str = "",
    ) -> Project:
        """A project from an imported text, cut into segments. Raises BookError for a title that is taken."""
        settings = settings or Settings(seed=secrets.randbelow(2**32))
        settings.check()
        title = self._free_title(title or manuscript.title[:LONGEST_TITLE], session)
        texts = map(readable, (title, manuscript.author, manuscript.language, source, session, utc_text()))
        values = (*texts, manuscript.all_words, settings.as_json())
        with self.database.changing("The book") as db:
            project = db.execute(
                f"INSERT INTO book_projects ({rows.PROJECT.removeprefix('id, ')}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            ).lastrowid
            change = Change(db)  # never noted: there is nothing before it to go back to
            for place, section in enumerate(manuscript.sections, 1):
                _add_section(change, int(project or 0), float(place), section, settings.limits)
        return self.project(int(project or 0))

    def _free_title(self, title: str, session: str) -> str:
        title = " ".join(readable(title).split())
        if not title or len(title) > LONGEST_TITLE:
            raise BookError(f"The title of a book has 1 to {LONGEST_TITLE} characters.")
        if self._is_taken(title, session):
            raise BookError(f"There is a book called “{title}” already. Choose another title, or delete that one.")
        return title

    def _is_taken(self, title: str, session: str) -> bool:
        sql = "SELECT 1 FROM book_projects WHERE title = ? AND session = ? AND deleted = ''"
        return bool(self.database.read(sql, [title, session]))

    def numbered_title(self, title: str, session: str) -> str:
        """A title that no other book has: this one, or with a number behind it."""
        title = " ".join(readable(title).split())[:LONGEST_TITLE] or "Book"
        candidates = (f"{title[: LONGEST_TITLE - 6].rstrip()} ({number})" for number in itertools.count(2))
        return next(name for name in itertools.chain([title], candidates) if not self._is_taken(name, session))

    def projects(self, session: str | None = None) -> list[Project]:
        """The newest first."""
        where, values = ("", []) if session is None else (" AND session = ?", [session])
        sql = f"SELECT {rows.PROJECT} FROM book_projects WHERE deleted = ''{where} ORDER BY id DESC"
        return [rows.project_of(row) for row in self.database.read(sql, values)]

    def project(self, project: int, session: str | None = None) -> Project:
        """Raises BookError when there is none (or it is another session's, or deleted)."""
        sql = f"SELECT {rows.PROJECT} FROM book_projects WHERE id = ? AND deleted = ''"
        found = [rows.project_of(row) for row in self.database.read(sql, [project])]
        if found and session in (None, found[0].session):
            return found[0]
        raise BookError("There is no such book in this studio. It may have been deleted.")

    def project_named(self, title: str, session: str | None = None) -> Project:
        """By its title. Raises BookError naming those that there are."""
        title = " ".join(title.split())
        known = self.projects(session)
        for project in known:
            if project.title == title:
                return project
        there = ", ".join(f"“{project.title}”" for project in known[:10]) or "none yet"
        raise BookError(f"There is no book called “{title}” in this data folder. Books: {there}.")

    def rename_project(self, project: int, title: str) -> None:
        found = self.project(project)
        if " ".join(title.split()) != found.title:
            title = self._free_title(title, found.session)
            with self.change(project, "Rename the book") as change:
                change.update("book_projects", {"id": project}, {"title": title})

    def set_settings(self, project: int, settings: Settings) -> None:
        """New pauses and seed hold at once; new limits hold for text that is cut from now on."""
        settings.check()
        self.project(project)
        with self.change(project, "Settings of the book") as change:
            change.update("book_projects", {"id": project}, {"settings": settings.as_json()})

    def delete_project(self, project: int) -> None:
        """The book goes, for good after UNDO_DAYS; its takes stay in the history. Its render jobs are cancelled."""
        self.project(project)
        with self.database.changing("The deletion") as db:
            db.execute("UPDATE book_projects SET deleted = ? WHERE id = ?", (utc_text(), project))
            unfinished = "state IN ('queued', 'running', 'paused')"
            db.execute(f"UPDATE book_jobs SET state = 'cancelled' WHERE project = ? AND {unfinished}", (project,))
        self.revision += 1

    def restore_project(self, project: int, session: str | None = None) -> Project:
        """Bring a deleted book back; its title gets a number when another book has it now.

        Raises BookError when it is gone for good or another session's.
        """
        found = self.database.read("SELECT session, title FROM book_projects WHERE id = ?", [project])
        if found and session in (None, found[0][0]):
            owner, title = found[0]
            with self.database.changing("The undoing") as db:
                is_deleted = db.execute(
                    "SELECT 1 FROM book_projects WHERE id = ? AND deleted != ''", (project,)
                ).fetchone()
                if is_deleted:
                    db.execute(
                        "UPDATE book_projects SET deleted = '', title = ? WHERE id = ?",
                        (self.numbered_title(title, owner), project),
                    )
        return self.project(project, session)

    def _delete_old(self) -> None:
        before = utc_text(datetime.now(timezone.utc) - timedelta(days=UNDO_DAYS))
        with self.database.changing("The deletion") as db:
            db.execute("DELETE FROM book_projects WHERE deleted != '' AND deleted < ?", (before,))

    # ---- reading

    def book(self, project: int, session: str | None = None) -> Book:
        """Everything about a project at this moment."""
        found = self.project(project, session)
        by_chapter: dict[int, list[Segment]] = {}
        for one in self._segments("chapter IN (SELECT id FROM book_chapters WHERE project = ?)", [project]):
            by_chapter.setdefault(one.chapter, []).append(one)
        sql = f"SELECT {rows.CHAPTER} FROM book_chapters WHERE project = ? ORDER BY place"
        chapters = tuple(
            rows.chapter_of(row, tuple(by_chapter.get(row[0], ()))) for row in self.database.read(sql, [project])
        )
        return Book(found, chapters, self.cast(project), self.dictionary(project), self._takes_of(project))

    def segment(self, number: int) -> Segment:
        """Raises BookError when there is none."""
        found = self._segments("id = ?", [number])
        if not found:
            raise BookError("There is no such segment in this book any more.")
        return found[0]

    def chapter(self, number: int) -> Chapter:
        """With its segments. Raises BookError when there is none."""
        found = self.database.read(f"SELECT {rows.CHAPTER} FROM book_chapters WHERE id = ?", [number])
        if not found:
            raise BookError("There is no such chapter in this book any more.")
        return rows.chapter_of(found[0], tuple(self._segments("chapter = ?", [number])))

    def project_of_segment(self, number: int) -> int:
        return self.chapter(self.segment(number).chapter).project

    def place_after(self, one: Segment) -> float | None:
        """Where the next segment of its chapter stands, spoken or not; None after the last one."""
        sql = "SELECT min(place) FROM book_segments WHERE chapter = ? AND place > ?"
        return self.database.read(sql, [one.chapter, one.place])[0][0]

    def segment_of_take(self, take: str) -> int | None:
        """The segment that a take was made for; None when it was made for none."""
        found = self.database.read("SELECT segment FROM book_takes WHERE take = ?", [take])
        return found[0][0] if found else None

    def _segments(self, condition: str, values: Sequence) -> list[Segment]:
        sql = f"SELECT {rows.SEGMENT} FROM book_segments WHERE {condition} ORDER BY chapter, place"
        return [rows.segment_of(row) for row in self.database.read(sql, values)]

    def cast(self, project: int) -> dict[str, CastMember]:
        found = self.database.read(f"SELECT {rows.MEMBER} FROM book_cast WHERE project = ?", [project])
        return {member.speaker: member for member in map(rows.member_of, found)}

    def dictionary(self, project: int) -> Dictionary:
        sql = "SELECT word, say, match_case FROM book_words WHERE project = ? ORDER BY word"
        return Dictionary(Pronunciation(w, s, bool(m)) for w, s, m in self.database.read(sql, [project]))

    def _takes_of(self, project: int) -> dict[int, tuple[BookTake, ...]]:
        """Takes that history has forgotten do not count."""
        columns = ", ".join(f"book_takes.{name}" for name in rows.TAKE.split(", "))
        sql = f"""SELECT {columns} FROM book_takes
            JOIN book_segments ON book_segments.id = segment JOIN book_chapters ON book_chapters.id = chapter
            JOIN takes ON takes.id = take AND takes.deleted = ''
            WHERE project = ? ORDER BY takes.number"""
        by_segment: dict[int, list[BookTake]] = {}
        for take in map(rows.take_of, self.database.read(sql, [project])):
            by_segment.setdefault(take.segment, []).append(take)
        return {number: tuple(takes) for number, takes in by_segment.items()}

    # ---- changing

    @contextmanager
    def change(self, project: int, label: str) -> Iterator[Change]:
        """One edit: all of it or nothing, and one step of undo."""
        with self.database.changing(label) as db:
            change = Change(db)
            yield change
            change.forget_undone(project)
            change.note(project, label)
        self.revision += 1

    def undo(self, project: int) -> str:
        """Take the newest edit back. Returns what it was, "" when there is nothing to undo."""
        return self._turn_back(project, redo=False)

    def redo(self, project: int) -> str:
        return self._turn_back(project, redo=True)

    def undo_label(self, project: int) -> str:
        """What :meth:`undo` would take back; "" for nothing."""
        return next_label(self.database.read, project, redo=False)

    def redo_label(self, project: int) -> str:
        return next_label(self.database.read, project, redo=True)

    def stamp(self) -> Hashable:
        """Changes with every change of the data folder's books and takes, also one of another program; cheap to ask."""
        return self.database.read("SELECT total_changes(), data_version FROM pragma_data_version")[0]

    def _turn_back(self, project: int, redo: bool) -> str:
        with self.database.changing("The undoing") as db:
            label = turn_back(db, project, redo)
        self.revision += 1
        return label

    def add_take(self, take: BookTake) -> None:
        """Note that a take was made for a segment, and choose it when none was chosen for the present words.

        A segment that was approved with other words, or another voice, is unreviewed again.
        """
        with self.database.changing("The take") as db:
            if not db.execute("SELECT 1 FROM book_segments WHERE id = ?", (take.segment,)).fetchone():
                return  # deleted while it was being spoken; the take is in the history
            added = db.execute(
                f"INSERT OR IGNORE INTO book_takes ({rows.TAKE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows.take_row(take),
            ).rowcount
            chosen = db.execute(
                "SELECT key, verdict FROM book_takes JOIN book_segments ON chosen = take WHERE book_segments.id = ?",
                (take.segment,),
            ).fetchone()
            fits = chosen is not None and chosen[0] == take.key
            if added and (not fits or (chosen[1] == "fail" and take.verdict != "fail")):
                db.execute(
                    "UPDATE book_segments SET chosen = ?, review = 'unreviewed' WHERE id = ?", (take.take, take.segment)
                )
        self.takes_noted += 1

    def projects_using_voice(self, voice: str) -> list[str]:
        """Titles of the books that a saved voice is cast in."""
        sql = """SELECT DISTINCT title FROM book_projects JOIN book_cast ON project = id
            WHERE voice = ? AND deleted = '' ORDER BY title"""
        return [title for (title,) in self.database.read(sql, [voice])]


def _add_section(change: Change, project: int, place: float, section: Section, limits: Limits) -> None:
    title = readable(section.title)[:LONGEST_TITLE]
    chapter = change.add("book_chapters", rows.chapter_row(project, place, title, section.kind, section.on))
    number = 0
    for paragraph, block in enumerate(section.blocks):
        text = readable(block.text)
        pieces = segment(text, limits) if block.kind != "scene" else []
        for piece_text, speaker in [(p.text, p.speaker) for p in pieces] or [(text, "")]:
            number += 1
            row = rows.segment_row(chapter, float(number), piece_text, block.kind, block.on, paragraph, speaker)
            change.add("book_segments", row)

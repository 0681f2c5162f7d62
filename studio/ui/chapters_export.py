"""Export in the Chapters tab: what is wanted, credits and cover, the export that runs, its measured report."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from studio.book.credits import CLOSING, OPENING, Credits, set_credits, suggested
from studio.book.errors import BookError
from studio.book.parcel import pack
from studio.book.project import Book
from studio.containers import FORMATS, SAMPLE_RATES, cover_jpeg
from studio.delivery import Order
from studio.file_names import safe_name
from studio.mastering import PRESETS
from studio.transcription import available
from studio.ui import chapters_export_markup as markup
from studio.ui.chapters_ask import Answer, Ask, whole
from studio.ui.chapters_desk import Desk, undoable
from studio.ui.chapters_exports import Export
from studio.ui.chapters_import import uploaded

COVER_BYTES = 20 * 2**20


class ExportDesk:
    def __init__(self, desk: Desk) -> None:
        self._desk, self._exports, self._covers = desk, desk.books.exports, desk.books.covers
        self.actions: dict[str, Callable[[Ask], Answer]] = {
            "export.start": self.start,
            "export.cancel": self.cancel,
            "export.cover": self.cover,
            "export.no_cover": self.remove_cover,
            "export.credits": self.credits,
            "export.suggest": self.suggest,
            "export.zip": self.zip,
            "export.project": self.pack,
        }

    def draw(self, ask: Ask, book: Book, credits: Credits | None = None) -> Answer:
        wish = _wish(ask.view.get("export"))
        cover = self._covers.get(book.project.id) is not None
        result = markup.result(ask, self._exports.newest(book.project.id), self._exports)
        open_ones = [one for one in book.spoken if book.state(one) in ("missing", "stale")]
        body = markup.body(ask, book, wish, cover, len(open_ones), credits or self._credits(book), result)
        return Answer({"body": body})

    def follow(self, ask: Ask, book: Book) -> Answer:
        return Answer({"result": markup.result(ask, self._exports.newest(book.project.id), self._exports)})

    def _again(self, ask: Ask, credits: Credits | None = None) -> Answer:
        book = self._desk.book(ask)
        return self._desk.frame(ask, book, "export") | self.draw(ask, book, credits)

    # ---- the files

    def start(self, ask: Ask) -> Answer:
        """The export begins, and goes on when the page is closed."""
        book, wish = self._desk.book(ask), _wish(ask.data)
        order = Order(
            wish["format"],
            wish["preset"],
            wish["whole"],
            wish["sample_rate"],
            wish["subtitles"],
            wish["sample"],
            language=ask.language,
        )
        if not wish["allow_incomplete"]:
            self._refuse_incomplete(ask, book)
        self._exports.start(
            book.project.id,
            order,
            author=wish["author"] or book.project.author,
            narrator=wish["narrator"],
            cover=self._covers.get(book.project.id),
            allow_incomplete=wish["allow_incomplete"],
            session=ask.seen,
            recogniser=self._desk.context.recogniser if wish["words"] and wish["subtitles"] else "",
            language=book.project.language,
        )
        return self.follow(ask, book) | Answer(view={"export": wish})

    @staticmethod
    def _refuse_incomplete(ask: Ask, book: Book) -> None:
        """Asked before anything is begun, with the tick that allows it in sight."""
        missing = [one for one in book.spoken if book.state(one) in ("missing", "stale")]
        if missing:
            raise BookError(ask.say("chapters_export_incomplete", count=len(missing), text=missing[0].text[:60]))

    def cancel(self, ask: Ask) -> Answer:
        project = self._desk.project(ask)
        self._exports.cancel(project.id)
        return Answer()

    def zip(self, ask: Ask) -> Answer:
        """All files of the export as one, which the browser fetches."""
        project = self._desk.project(ask)
        export = self._exports.newest(project.id)
        if export is None or export.state != "done":
            raise BookError(ask.say("chapters_export_none"))
        name = f"{safe_name(project.title)}.zip"
        address = self._desk.context.media.offer(lambda folder: self._zipped(export, folder), name)
        return Answer({"fetch": markup.fetch(address, name)})

    def _zipped(self, export: Export, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{export.token}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:  # sound does not shrink
            for name in export.files:
                archive.write(self._exports.folder(export) / name, name)
        return path

    def pack(self, ask: Ask) -> Answer:
        """The whole project as a zip that opens again in another studio."""
        project = self._desk.project(ask)
        name = f"{safe_name(project.title)}.voxcpm-book.zip"
        offer = self._desk.context.media.offer
        address = offer(lambda folder: pack(self._desk.library, project.id, folder, ask.seen), name)
        return Answer({"fetch": markup.fetch(address, name)})

    # ---- what goes with them

    def cover(self, ask: Ask) -> Answer:
        project, path = self._desk.project(ask), uploaded(ask)
        try:
            if path.stat().st_size > COVER_BYTES:
                raise BookError(ask.say("chapters_cover_large", size=COVER_BYTES // 2**20))
            picture = path.read_bytes()
        finally:
            path.unlink(missing_ok=True)
        cover_jpeg(picture)  # ExportError says why it is no picture
        self._covers.put(project.id, picture)
        return self._again(ask)

    def remove_cover(self, ask: Ask) -> Answer:
        self._covers.drop(self._desk.project(ask).id)
        return self._again(ask)

    def suggest(self, ask: Ask) -> Answer:
        """The usual words in the fields; nothing is changed yet."""
        book, wish = self._desk.book(ask), _wish({**_dict(ask.view.get("export")), **ask.data})
        language = book.project.language or ask.language
        author = wish["author"] or book.project.author
        found = suggested(book.project.title, author, wish["narrator"], language)
        asked = replace(ask, view={**ask.view, "export": wish})
        return self._again(asked, found) | Answer(view={"export": wish})

    def credits(self, ask: Ask) -> Answer:
        """The two texts become chapters of the book, to be rendered and reviewed like all others."""
        book = self._desk.book(ask)
        usual = suggested(book.project.title, language=book.project.language or ask.language)
        credits = Credits(usual.opening_title, ask.text("opening"), usual.closing_title, ask.text("closing"))
        set_credits(self._desk.library, book.project.id, credits)
        return self._again(ask) | undoable(ask, ask.say("chapters_credits_done"))

    @staticmethod
    def _credits(book: Book) -> Credits:
        """Those that the book has."""
        texts = {chapter.kind: " ".join(one.text for one in chapter.segments) for chapter in book.chapters}
        return Credits("", texts.get(OPENING, ""), "", texts.get(CLOSING, ""))


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _wish(given: object) -> dict[str, Any]:
    """The fields of the form, each with something that is possible."""
    found, usual = _dict(given), Order()
    rate = whole(found.get("sample_rate"), usual.sample_rate)
    return {
        "format": found.get("format") if found.get("format") in FORMATS else usual.format,
        "preset": found.get("preset") if found.get("preset") in PRESETS else usual.preset,
        "whole": found.get("whole") in (True, "book", "true"),
        "sample_rate": rate if rate in SAMPLE_RATES else usual.sample_rate,
        "subtitles": bool(found.get("subtitles", usual.subtitles)),
        "sample": bool(found.get("sample", usual.sample)),
        "words": bool(found.get("words", False)) and available()[0],
        "allow_incomplete": bool(found.get("allow_incomplete", False)),
        "author": str(found.get("author", ""))[:200].strip(),
        "narrator": str(found.get("narrator", ""))[:200].strip(),
    }

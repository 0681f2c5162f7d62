"""A book's file or pasted text -> a :class:`Manuscript`. Whatever is wrong with the file ends in a sentence."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path

from studio.book.encodings import decode
from studio.book.errors import ImportingError
from studio.book.from_docx import read_docx
from studio.book.from_epub import read_epub
from studio.book.from_markdown import sections_from_markdown
from studio.book.from_text import sections_from_text
from studio.book.manuscript import Manuscript, first_words

FILE_BYTES = 200 * 2**20
TEXT_CHARACTERS = 30_000_000
SUFFIXES = (".txt", ".text", ".md", ".markdown", ".epub", ".docx")
_MARKDOWN = (".md", ".markdown")


def read_book(path: str | Path) -> Manuscript:
    """Reads TXT, Markdown, EPUB or DOCX, by what is in the file rather than by its name.

    Raises ImportingError with what is wrong and what to do.
    """
    path = Path(path)
    try:
        if path.stat().st_size > FILE_BYTES:
            raise ImportingError(
                f"{path.name} has {path.stat().st_size // 2**20} MB; at most {FILE_BYTES // 2**20} MB are accepted."
            )
        data = path.read_bytes()
    except OSError as error:
        raise ImportingError(f"{path.name or path} cannot be read ({error.strerror or error}).") from error
    return read_bytes(data, path.name)


def read_bytes(data: bytes, name: str) -> Manuscript:
    """Like :func:`read_book`, for what was uploaded."""
    if not data.strip(b"\0 \t\r\n"):
        raise ImportingError(f"{name} is empty.")
    stem, suffix = Path(name).stem, Path(name).suffix.lower()
    if data[:4] == b"PK\x03\x04":
        manuscript = _read_zip(data, name)
    else:
        _refuse_others(data, name, suffix)
        text, _ = decode(data, name)
        manuscript = read_text(text, "", suffix in _MARKDOWN)
    return manuscript if manuscript.title else replace(manuscript, title=stem or name)


def read_text(text: str, title: str = "", is_markdown: bool = False) -> Manuscript:
    """A pasted text. Raises ImportingError when there are no words in it."""
    if len(text) > TEXT_CHARACTERS:
        raise ImportingError(f"The text has {len(text)} characters; at most {TEXT_CHARACTERS} are accepted.")
    facts: dict[str, str] = {}
    text = text.replace("\0", "").removeprefix("\ufeff")
    if is_markdown:
        sections, facts = sections_from_markdown(text)
    else:
        sections = sections_from_text(text)
    if not any(block.words for section in sections for block in section.blocks):
        raise ImportingError("There is nothing to speak: the text has no letters or digits.")
    title = title or facts.get("title") or (first_words(sections[0].blocks[0].text, 60) if not is_markdown else "")
    return Manuscript(title, tuple(sections), facts.get("author", ""), facts.get("language", ""))


def _read_zip(data: bytes, name: str) -> Manuscript:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ImportingError(
            f"{name} is damaged: it is cut off or changed ({error}). Download it once more."
        ) from error
    if "META-INF/container.xml" in members:
        return read_epub(data, name)
    if "word/document.xml" in members:
        return read_docx(data, name)
    if Path(name).suffix.lower() == ".docx":
        return read_docx(data, name)
    if Path(name).suffix.lower() == ".epub":
        return read_epub(data, name)
    raise ImportingError(f"{name} is a zip archive but no book. Choose a TXT, MD, EPUB or DOCX file.")


_FOREIGN = [
    (b"%PDF", "a PDF. Convert it to EPUB or DOCX first (Calibre does), or copy its text and paste it"),
    (b"\xd0\xcf\x11\xe0", "an old Word file (DOC) or a locked one. Open it in Word or LibreOffice and save it as DOCX"),
    (b"{\\rtf", "an RTF file. Open it in Word or LibreOffice and save it as DOCX"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"RIFF", "a sound file"),
    (b"ID3", "a sound file"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90", "a program"),
    (b"\x1f\x8b", "a gzip archive. Unpack it first"),
    (b"7z\xbc\xaf", "a 7z archive. Unpack it first"),
    (b"Rar!", "a RAR archive. Unpack it first"),
]


def _refuse_others(data: bytes, name: str, suffix: str) -> None:
    if data[60:68] == b"BOOKMOBI":
        raise ImportingError(f"{name} is a Kindle book (MOBI). Convert it to EPUB first (Calibre does).")
    for start, what in _FOREIGN:
        if data.startswith(start):
            raise ImportingError(f"{name} is {what}." if "." in what else f"{name} is {what}, not a book.")
    if suffix in (".epub", ".docx"):
        raise ImportingError(f"{name} is not {suffix[1:].upper()}: it is damaged or has the wrong ending.")

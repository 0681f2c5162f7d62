"""Opening and closing credits: two more chapters of a book, spoken and reviewed like all others.

Shops want them as files of their own. Ours also say that the voice is made by a machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from studio.book import rows
from studio.book.errors import BookError
from studio.book.library import LONGEST_TITLE, Library
from studio.book.script import segment
from studio.takes import readable

OPENING, CLOSING = "opening credits", "closing credits"  # kinds of chapters
KINDS = {OPENING: "opening", CLOSING: "closing"}  # as exports call them


@dataclass(frozen=True)
class Credits:
    """What is spoken, with the two chapters' titles."""

    opening_title: str
    opening: str
    closing_title: str
    closing: str


def suggested(title: str, author: str = "", narrator: str = "", language: str = "en") -> Credits:
    """The usual words, in Chinese for a Chinese book and in English otherwise. A suggestion: edit them at will."""
    if language.lower().startswith("zh"):
        by, reads = f"，作者{author}" if author else "", f"，由{narrator}演播" if narrator else ""
        opening = f"《{title}》{by}{reads}。本录音使用人工智能合成的声音。"
        return Credits("片头", opening, "片尾", f"以上是《{title}》{by}{reads}。感谢收听。")
    by, reads = f" Written by {author}." if author else "", f" Narrated by {narrator}." if narrator else ""
    opening = f"{title}.{by}{reads} This recording uses a voice made by artificial intelligence."
    return Credits(
        "Opening credits", opening, "Closing credits", f"This was {title}.{by}{reads} Thank you for listening."
    )


def set_credits(library: Library, project: int, credits: Credits) -> None:
    """Put credits at the beginning and the end of a book, in place of those that it has. One step of undo.

    An empty text leaves its chapter out. Raises BookError for a title that is too long.
    """
    book = library.book(project)
    places = [chapter.place for chapter in book.chapters if chapter.kind not in KINDS] or [0.0]
    wanted = (
        (OPENING, credits.opening_title, credits.opening, min(places) - 1),
        (CLOSING, credits.closing_title, credits.closing, max(places) + 1),
    )
    with library.change(project, "Credits") as change:
        for chapter in book.chapters:
            if chapter.kind in KINDS:
                for old in chapter.segments:  # one by one, so that undo brings them back
                    change.remove("book_segments", {"id": old.id})
                change.remove("book_chapters", {"id": chapter.id})
        for kind, title, text, place in wanted:
            if not text.strip():
                continue
            if len(title) > LONGEST_TITLE:
                raise BookError(f"The title of a chapter has 1 to {LONGEST_TITLE} characters.")
            number = change.add("book_chapters", rows.chapter_row(project, place, readable(title), kind, True))
            for order, piece in enumerate(segment(readable(text), book.project.settings.limits), 1):
                change.add("book_segments", rows.segment_row(number, float(order), piece.text, speaker=piece.speaker))

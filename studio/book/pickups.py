"""The pickup list: what has to be made again or looked at, with timecodes, as a table for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass

from studio.book.project import Book
from studio.book.review import Line, lines
from studio.checks import Check

_WORDS = {
    "en": {
        "columns": ("number", "chapter", "timecode", "speaker", "status", "note", "problem", "text"),
        "missing": "not recorded",
        "stale": "text or voice changed",
        "redo": "to be done again",
        "red": "failed its checks",
        "amber": "to be checked",
        "noted": "note",
        "approved": "approved",
        "narrator": "Narrator",
    },
    "zh": {
        "columns": ("序号", "章节", "时间码", "说话人", "状态", "备注", "问题", "文本"),
        "missing": "尚未录制",
        "stale": "文本或声音已更改",
        "redo": "需要重做",
        "red": "未通过检查",
        "amber": "待检查",
        "noted": "有备注",
        "approved": "已通过",
        "narrator": "旁白",
    },
}


@dataclass(frozen=True)
class Pickup:
    """One entry. ``start``: seconds from the first word of its chapter; ``status``: a key of the words above."""

    line: Line
    chapter: str
    status: str

    @property
    def timecode(self) -> str:
        """Hours, minutes, seconds and milliseconds, as 00:01:30.500."""
        rest = round(self.line.start * 1000)
        return f"{rest // 3_600_000:02d}:{rest // 60_000 % 60:02d}:{rest // 1000 % 60:02d}.{rest % 1000:03d}"


def pickups(book: Book) -> list[Pickup]:
    """In reading order: what is missing, stale, sent back, red, or amber and not approved; and all that has a note."""
    titles = {chapter.id: chapter.title for chapter in book.chapters}
    return [Pickup(line, titles[line.chapter], status) for line in lines(book) if (status := _status(line))]


def _status(line: Line) -> str:
    if line.state in ("missing", "stale"):
        return line.state
    if line.review == "redo":
        return "redo"
    if line.review == "approved":
        return "approved" if line.note else ""
    return {"fail": "red", "warn": "amber"}.get(line.verdict, "noted" if line.note else "")


def pickup_csv(book: Book, language: str = "en", say: Callable[[Check], str] = lambda check: check.advice) -> str:
    """A table, "en" or "zh"; ``say`` words a check. To be written as UTF-8 with a mark (utf-8-sig) for spreadsheets."""
    words = _WORDS["zh" if language.lower().startswith("zh") else "en"]
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(words["columns"])
    for pickup in pickups(book):
        line = pickup.line
        problem = " ".join(map(say, line.checks))
        cells = (pickup.chapter, pickup.timecode, line.speaker or words["narrator"], words[pickup.status])
        table.writerow([line.number, *map(_cell, (*cells, line.note, problem, line.text))])
    return out.getvalue()


def _cell(text: object) -> object:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front."""
    return f"'{text}" if isinstance(text, str) and text.lstrip()[:1] in ("=", "+", "-", "@", "\t", "\r") else text

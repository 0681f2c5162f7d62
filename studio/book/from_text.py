"""Plain text -> sections. Paragraphs are parted by empty lines or, where there are none, by line ends."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from typing import Literal

from studio.book.headings import chapter_kind, is_scene_break, kind_of_title
from studio.book.manuscript import Section, SectionKind, SectionMaker, count_words, is_unspaced

_NEWLINES = re.compile("\r\n|[\r\v\x1c-\x1e\x85\u2028\u2029]")
_GUTENBERG = re.compile(r"\*{3}\s*(START|END) OF TH(?:E|IS) PROJECT GUTENBERG", re.IGNORECASE)
_PAGE_NUMBER = re.compile(r"(?:[-–—\[(]\s*\d{1,4}\s*[-–—\])]|page\s+\d{1,4})$", re.IGNORECASE)
_BARE_NUMBER = re.compile(r"\d{1,4}$")
_NOTE = re.compile(r"\[(?:Footnote\s)?(\d{1,4}|[*†‡])(?::\s|\][:.]?\s)(?=\S)", re.IGNORECASE)
_NOTE_MARK = re.compile(r"\[(\d{1,4}|[*†‡])\]")
_LINE_LIMIT = 100  # characters: longer lines were not broken by hand
_PAGE_WORDS = 700  # numbers that stand alone more often than this are those of pages
_SHORT_FRONT = 400  # words before the first chapter that are taken for a title page


def sections_from_text(text: str) -> list[Section]:
    """Chapters by their headings; what stands before the first one is front matter when it is short."""
    lines = _NEWLINES.sub("\n", text).strip("\n ").split("\n")
    width = _width(lines)
    paragraphs = list(_paragraphs(lines))
    numbers = _what_numbers_are(paragraphs)
    notes = {found[1] for lines in paragraphs if (found := _NOTE.match(lines[0]))}
    maker, made = SectionMaker(), []
    for paragraph in paragraphs:
        kind, title = _opens_section(paragraph, numbers == "chapter")
        if kind is not None:
            made.append(maker)
            maker = SectionMaker(title, kind)
        _add(maker, paragraph, kind in ("chapter", "part") and bool(title), numbers == "page number", notes, width)
    made.append(maker)
    return _finished([maker for maker in made if maker.blocks])


def _finished(made: list[SectionMaker]) -> list[Section]:
    has_chapters = any(maker.title and maker.kind in ("chapter", "part") for maker in made)
    for maker in made:
        if maker.title:
            continue
        short = sum(block.words for block in maker.blocks) < _SHORT_FRONT
        if has_chapters and short and maker is made[0]:
            maker.title, maker.kind = "Front matter", "front matter"
        else:
            maker.title = maker.blocks[0].text.split("\n")[0][:60]
    return [maker.section() for maker in made]


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Groups of lines that belong together."""
    wrapped = _is_wrapped(lines)
    group: list[str] = []
    for raw in lines:
        line = raw.replace("\f", "").strip()
        begins = raw.startswith("\u3000") or _stands_alone(line) or (group and _stands_alone(group[-1]))
        if line and group and begins:
            yield group
            group = []
        if line:
            group.append(line)
        if group and (not line or not wrapped):
            yield group
            group = []
    if group:
        yield group


def _width(lines: list[str]) -> float:
    """How long the longest lines are, odd ones left aside."""
    filled = [len(line.strip()) for line in lines if line.strip()]
    return statistics.quantiles(filled, n=20)[-1] if len(filled) > 1 else 0.0


def _stands_alone(line: str) -> bool:
    return chapter_kind(line) is not None or is_scene_break(line) or bool(_GUTENBERG.search(line))


def _is_wrapped(lines: list[str]) -> bool:
    """Whether lines were broken at a width, so that a paragraph has several of them."""
    filled = [line for line in lines if line.strip()]
    if len(filled) < 2 or len(filled) == len(lines) or _width(lines) > _LINE_LIMIT:
        return False
    before_gap = sum(
        bool(line.strip()) and not follower.strip() for line, follower in zip(lines, lines[1:] + [""], strict=True)
    )
    return before_gap < 0.9 * len(filled)


def _what_numbers_are(paragraphs: list[list[str]]) -> Literal["chapter", "page number", "text"]:
    """What lines are that hold nothing but a number: 1, 2, 3 far from each other number chapters."""
    found = [int(lines[0]) for lines in paragraphs if len(lines) == 1 and _BARE_NUMBER.match(lines[0])]
    if len(found) < 2:
        return "text"
    apart = sum(count_words(line) for lines in paragraphs for line in lines) / len(found)
    if apart >= _PAGE_WORDS:
        return "chapter" if found == list(range(1, len(found) + 1)) else "text"
    return "page number" if len(found) >= 5 and found == sorted(found) else "text"


def _opens_section(paragraph: list[str], by_number: bool) -> tuple[SectionKind | None, str]:
    """(kind, title) when a paragraph begins a section. Marks of Project Gutenberg do, too, around the book."""
    if found := _GUTENBERG.search(paragraph[0]):
        return ("legal", "Project Gutenberg license") if found[1].upper() == "END" else ("front matter", "")
    line = " ".join(paragraph)
    kind = chapter_kind(line)
    if by_number and len(paragraph) == 1 and _BARE_NUMBER.match(line):
        kind = "chapter"
    if kind is None and len(paragraph) == 1:
        kind = kind_of_title(line)
    return kind, line if kind else ""


def _add(
    maker: SectionMaker,
    paragraph: list[str],
    is_heading: bool,
    numbers_are_pages: bool,
    notes: set[str],
    width: float,
) -> None:
    joined = _join(paragraph, width)
    if is_heading:
        maker.add(joined, "heading")
    elif len(paragraph) == 1 and is_scene_break(joined):
        maker.add(joined, "scene")
    elif len(paragraph) == 1 and (_PAGE_NUMBER.match(joined) or (numbers_are_pages and _BARE_NUMBER.match(joined))):
        maker.add(joined, "page number")
    elif _NOTE.match(joined):
        maker.add(joined, "note")
    else:
        marks = [found[1] for found in _NOTE_MARK.finditer(joined) if found[1] in notes]
        maker.add(_NOTE_MARK.sub(lambda found: "" if found[1] in notes else found[0], joined))
        for mark in marks:
            maker.add(f"[{mark}]", "note mark")


def _join(lines: list[str], width: float) -> str:
    """One line, or the lines as they are where they are verse (much shorter than the page is wide)."""
    if len(lines) > 2 and width > 50 and max(map(len, lines)) < 0.65 * width and not is_unspaced(lines[0][-1]):
        return "\n".join(lines)
    text = lines[0]
    for line in lines[1:]:
        glued = is_unspaced(text[-1]) and is_unspaced(line[0])
        hyphened = text[-1] == "-" and text[-2:-1].isalpha() and line[0].isalpha()
        text += line if glued or hyphened else f" {line}"
    return text

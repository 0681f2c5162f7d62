"""DOCX (Word, LibreOffice, Pages, Google Docs) -> sections, by heading styles."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lxml import etree

from studio.book.archives import Archive
from studio.book.errors import ImportingError
from studio.book.headings import chapter_kind, is_scene_break, kind_of_title
from studio.book.manuscript import BlockKind, Manuscript, Section, SectionMaker, first_words, letters

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
_HEADING = re.compile(r"(?:heading|标题|標題|überschrift|titre|título|titolo)\s*([1-9])$", re.IGNORECASE)
# Text that is not part of the finished document (deleted, moved away), and second versions of what is there.
_UNREAD = {"delText", "instrText", "del", "moveFrom", "Fallback", "delInstrText", "rPr", "pPr", "tblPr", "sectPr"}


@dataclass(frozen=True)
class _Styles:
    """Style id -> heading level (0 = the title of the book), and the ids that contents are set in."""

    levels: dict[str, int]
    contents: frozenset[str]


def read_docx(data: bytes, name: str) -> Manuscript:
    archive = Archive(data, name)
    if "word/document.xml" not in archive:
        raise ImportingError(f"{name} is not a Word document: word/document.xml is missing in it. Save it as DOCX.")
    root = archive.xml("word/document.xml")
    body = root.find("{*}body")
    if body is None:
        raise ImportingError(f"{name} is damaged: its document has no body.")
    notes = _notes(archive)
    reader = _Reader(_styles(archive), notes, _chapter_level(body, _styles(archive)))
    for paragraph, in_table in _paragraphs(body):
        reader.paragraph(paragraph, in_table)
    sections = reader.sections(_furniture(archive))
    wanted = letters([*_texts(body), *(text for text in notes.values())])
    lost = wanted - letters(block.text for section in sections for block in section.blocks)
    if lost:
        raise ImportingError(f"{name} cannot be read completely: {sum(lost.values())} characters would be lost.")
    if not any(section.blocks for section in sections):
        raise ImportingError(f"{name} has no text.")
    return Manuscript(*_facts(archive, reader.book_title, sections))


def _facts(archive: Archive, title: str, sections: list[Section]) -> tuple[str, tuple[Section, ...], str]:
    core = archive.xml("docProps/core.xml") if "docProps/core.xml" in archive else None

    def fact(tag: str) -> str:
        found = core.find(f"{{*}}{tag}") if core is not None else None
        return (found.text or "").strip() if found is not None else ""

    return title or fact("title"), tuple(sections), fact("creator")


def _local(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _attribute(element: etree._Element | None, name: str) -> str:
    if element is None:
        return ""
    return element.get(f"{{{_W}}}{name}") or element.get(f"{{{_STRICT}}}{name}") or ""


def _styles(archive: Archive) -> _Styles:
    if "word/styles.xml" not in archive:
        return _Styles({}, frozenset())
    parents: dict[str, str] = {}
    levels: dict[str, int] = {}
    contents = set()
    for style in archive.xml("word/styles.xml").iter("{*}style"):
        key, named = _attribute(style, "styleId"), _attribute(style.find("{*}name"), "val")
        parents[key] = _attribute(style.find("{*}basedOn"), "val")
        outline = _attribute(style.find("{*}pPr/{*}outlineLvl"), "val")
        if found := _HEADING.match(named):
            levels[key] = int(found[1])
        elif named.lower() == "title":
            levels[key] = 0
        elif outline.isdigit() and int(outline) < 9:
            levels[key] = int(outline) + 1
        if named.lower().startswith("toc "):
            contents.add(key)
    return _Styles(
        {key: level for key in parents if (level := _inherited(key, parents, levels)) is not None}, frozenset(contents)
    )


def _inherited(key: str, parents: dict[str, str], levels: dict[str, int]) -> int | None:
    seen: set[str] = set()
    while key and key not in seen:
        if key in levels:
            return levels[key]
        seen.add(key)
        key = parents.get(key, "")
    return None


def _notes(archive: Archive) -> dict[tuple[str, str], str]:
    """("footnote" or "endnote", id) -> text. The separators that Word keeps there are no notes."""
    found: dict[tuple[str, str], str] = {}
    for kind in ("footnote", "endnote"):
        member = f"word/{kind}s.xml"
        for note in archive.xml(member).iter(f"{{*}}{kind}") if member in archive else ():
            if not _attribute(note, "type").endswith("eparator"):
                text = "\n".join("".join(_runs(p)[0]) for p, _ in _paragraphs(note))
                found[kind, _attribute(note, "id")] = text
    return found


def _paragraphs(element: etree._Element, in_table: bool = False) -> list[tuple[etree._Element, bool]]:
    """Paragraphs in order, those in tables and text boxes included; (paragraph, is in a table)."""
    found: list[tuple[etree._Element, bool]] = []
    waiting = [(child, in_table) for child in reversed(element)]
    while waiting:
        current, inside = waiting.pop()
        name = _local(current)
        if name in _UNREAD:
            continue
        if name == "p":
            found.append((current, inside))
        waiting += [(child, inside or name == "tbl") for child in reversed(current)]
    return found


def _runs(paragraph: etree._Element) -> tuple[list[str], list[tuple[str, str]]]:
    """(pieces of text, notes that are marked in it), without the paragraphs of text boxes inside."""
    texts: list[str] = []
    marks: list[tuple[str, str]] = []
    waiting = list(reversed(paragraph))
    while waiting:
        current = waiting.pop()
        name = _local(current)
        if name in _UNREAD or name == "p":
            continue
        if name == "t":
            texts.append(current.text or "")
        elif name in ("br", "cr"):
            texts.append("\n")
        elif name in ("tab", "ptab"):
            texts.append(" ")
        elif name == "noBreakHyphen":
            texts.append("-")
        elif name in ("footnoteReference", "endnoteReference"):
            marks.append((name.removesuffix("Reference"), _attribute(current, "id")))
        else:
            waiting += reversed(current)
    return texts, marks


def _texts(element: etree._Element) -> list[str]:
    """All text of the finished document, found in the plainest way: the measure of the reader."""
    found: list[str] = []
    waiting = [element]
    while waiting:
        current = waiting.pop()
        if _local(current) == "t":
            found.append(current.text or "")
        elif _local(current) not in _UNREAD:
            waiting += list(current)
    return found


def _level(paragraph: etree._Element, styles: _Styles) -> int | None:
    own = _attribute(paragraph.find("{*}pPr/{*}outlineLvl"), "val")
    if own.isdigit() and int(own) < 9:
        return int(own) + 1
    return styles.levels.get(_attribute(paragraph.find("{*}pPr/{*}pStyle"), "val"))


def _chapter_level(body: etree._Element, styles: _Styles) -> int:
    """The headings that begin chapters: the highest level used more than once, else the highest; 0 without any."""
    levels = [level for p, _ in _paragraphs(body) if (level := _level(p, styles)) and "".join(_runs(p)[0]).strip()]
    several = sorted(level for level in set(levels) if levels.count(level) > 1)
    return several[0] if several else min(levels, default=0)


class _Reader:
    def __init__(self, styles: _Styles, notes: dict[tuple[str, str], str], chapter_level: int) -> None:
        self._styles, self._notes, self._chapter_level = styles, dict(notes), chapter_level
        self._made = [SectionMaker()]
        self.book_title = ""

    def paragraph(self, paragraph: etree._Element, in_table: bool) -> None:
        texts, marks = _runs(paragraph)
        text = "".join(texts)
        level = _level(paragraph, self._styles)
        style = _attribute(paragraph.find("{*}pPr/{*}pStyle"), "val")
        if text.strip():
            self._add(text, level, style, in_table)
        for key in marks:
            if key in self._notes:
                self._made[-1].add(self._notes.pop(key), "note")

    def _add(self, text: str, level: int | None, style: str, in_table: bool) -> None:
        line = " ".join(text.split())
        kind: BlockKind = "table" if in_table else "text"
        if style in self._styles.contents:
            if self._made[-1].kind != "contents":
                self._made.append(SectionMaker("Contents", "contents"))
        elif level == 0:
            self.book_title, kind = self.book_title or line, "heading"
        elif level:
            kind = "heading"
            if level <= self._chapter_level:
                below = "chapter" if level == self._chapter_level else "part"
                self._made.append(SectionMaker(line, kind_of_title(line) or chapter_kind(line) or below))
        elif not self._chapter_level and (found := chapter_kind(line)):  # a document without heading styles
            kind = "heading"
            self._made.append(SectionMaker(line, found))
        elif self._made[-1].kind == "contents" and style:
            self._made.append(SectionMaker())
        if kind == "text" and is_scene_break(text):
            kind = "scene"
        self._made[-1].add(text, kind)

    def sections(self, furniture: list[str]) -> list[Section]:
        for note in self._notes.values():  # those that no mark points to
            self._made[-1].add(note, "note")
        made = [maker for maker in self._made if maker.blocks]
        for maker in made:
            self._name(maker, is_first=maker is made[0] and len(made) > 1)
        if furniture:
            headers = SectionMaker("Headers and footers", "furniture")
            for text in furniture:
                headers.add(text, "aside")
            made.append(headers)
        return [maker.section() for maker in made if maker.blocks]

    def _name(self, maker: SectionMaker, is_first: bool) -> None:
        if maker.title:
            return
        short = sum(block.words for block in maker.blocks) < 200
        if is_first and short:
            maker.title, maker.kind = "Front matter", "front matter"
        else:
            maker.title = first_words(maker.blocks[0].text, 60)


def _furniture(archive: Archive) -> list[str]:
    """Text of running headers and footers, each once."""
    found: dict[str, None] = {}
    for member in archive.names():
        if re.fullmatch(r"word/(?:header|footer)\d*\.xml", member):
            for paragraph, _ in _paragraphs(archive.xml(member)):
                found["".join(_runs(paragraph)[0]).strip()] = None
    return [text for text in found if text]

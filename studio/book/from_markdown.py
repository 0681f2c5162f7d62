"""Markdown -> sections. Marks such as ``*`` are read as what they mean; the words stay as they are."""

from __future__ import annotations

import re

from lxml import html
from markdown_it import MarkdownIt
from markdown_it.token import Token

from studio.book.errors import ImportingError
from studio.book.headings import chapter_kind, is_scene_break, kind_of_title
from studio.book.manuscript import Section, SectionMaker, first_words

_METADATA = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^(title|author|language|lang)\s*:\s*(.+?)\s*$", re.MULTILINE | re.IGNORECASE)
_NOTE = re.compile(r"^ {0,3}\[\^([^\]\s]{1,60})\]:[ \t]*(.*)$")
_LINK = re.compile(r"[ >]{0,12}\[[^\]]{1,200}\]:|[ ]{0,12}[\"'(].*[\"')]\s*$")  # where a link leads, or its title
_NOTE_MARK = re.compile(r"\[\^([^\]\s]{1,60})\]")
_SOFT = "\x0b"  # a line end within a paragraph: a blank, but nothing between two Han characters
_WITHIN_HAN = re.compile(
    "(?<=[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef])\x0b(?=[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef])"
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def sections_from_markdown(text: str) -> tuple[list[Section], dict[str, str]]:
    """(sections, what the file says about itself: title, author, language)."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    facts: dict[str, str] = {}
    if found := _METADATA.match(text):
        facts = {name.lower(): value.strip("\"' ") for name, value in _FIELD.findall(found[1])}
        text = text[found.end() :] if facts else text
    facts["language"] = facts.pop("lang", facts.get("language", ""))
    body, notes = _without_notes(text)
    reader = _Reader(notes)
    tokens = MarkdownIt("commonmark", {"html": True, "maxNesting": 60}).enable("table").parse(body)
    _refuse_unread(body, tokens)
    sections = reader.read(tokens)
    if reader.book_title:
        facts.setdefault("title", reader.book_title)
    return sections, facts


def _refuse_unread(body: str, tokens: list[Token]) -> None:
    """The parser leaves out what is nested too deeply. Nothing is left out silently here."""
    read: set[int] = set()
    for token in tokens:
        if token.map and token.type in ("inline", "fence", "code_block", "html_block", "hr", "table_open"):
            read.update(range(*token.map))
    for number, line in enumerate(body.split("\n")):
        if number not in read and any(char.isalnum() for char in line) and not _LINK.match(line):
            raise ImportingError(
                f"Lists or quotes are nested too deeply at “{first_words(line)}”. Take some marks before it away."
            )


def _without_notes(text: str) -> tuple[str, dict[str, str]]:
    """The text without the footnotes at its end or between paragraphs, and those by their label."""
    kept: list[str] = []
    notes: dict[str, str] = {}
    label = ""
    for line in text.split("\n"):
        if (found := _NOTE.match(line)) and found[1] not in notes:
            label = found[1]
            notes[label] = found[2]
        elif label and line.startswith(("    ", "\t")) and line.strip():
            notes[label] += f"\n{line.strip()}"
        else:
            label = label if not line.strip() else ""
            kept.append(line)
    return "\n".join(kept), notes


class _Reader:
    def __init__(self, notes: dict[str, str]) -> None:
        self._notes = notes
        self._made: list[SectionMaker] = [SectionMaker()]
        self.book_title = ""

    def read(self, tokens: list[Token]) -> list[Section]:
        chapter_level = _chapter_level(tokens)
        level = 0
        for position, token in enumerate(tokens):
            if token.type == "heading_open":
                level = int(token.tag[1])
            elif token.type == "heading_close":
                level = 0
            elif token.type == "inline":
                in_table = tokens[position - 1].type in ("td_open", "th_open")
                self._paragraph(token, level, chapter_level, in_table)
            elif token.type in ("code_block", "fence"):
                # Four blanks at the start of a paragraph are an indent to writers, and code to Markdown.
                self._made[-1].add(token.content, "code" if token.type == "fence" else "text")
            elif token.type == "html_block":
                self._html(token.content)
            elif token.type == "hr":
                self._made[-1].add("* * *", "scene")
        for label, note in self._notes.items():  # those that no mark points to
            self._made[-1].add(f"{label}. {note}", "note")
        return self._sections()

    def _paragraph(self, token: Token, level: int, chapter_level: int, in_table: bool) -> None:
        text, marks = _inline_text(token.children or [])
        if level and level <= chapter_level:
            self._open(text, level, chapter_level)
        maker = self._made[-1]
        if level:
            maker.add(text, "heading")
        elif is_scene_break(text):
            maker.add(text, "scene")
        else:
            maker.add(text, "table" if in_table else "text")
        for label in marks:
            maker.add(label, "note mark")
            if label in self._notes:
                maker.add(self._notes.pop(label), "note")

    def _open(self, title: str, level: int, chapter_level: int) -> None:
        if level < chapter_level and not self.book_title and not any(maker.blocks for maker in self._made):
            self.book_title = " ".join(title.split())
        kind = kind_of_title(title) or chapter_kind(title) or ("chapter" if level == chapter_level else "part")
        self._made.append(SectionMaker(" ".join(title.split()) or first_words(title), kind))

    def _html(self, content: str) -> None:
        content = _COMMENT.sub("", content)
        if content.strip():
            try:
                self._made[-1].add(html.fromstring(f"<div>{content}</div>").text_content())
            except (ValueError, html.etree.ParserError):
                self._made[-1].add(content)

    def _sections(self) -> list[Section]:
        made = [maker for maker in self._made if maker.blocks]
        for maker in made:
            if not maker.title:
                maker.title = first_words(maker.blocks[0].text, 60)
        return [maker.section() for maker in made]


def _chapter_level(tokens: list[Token]) -> int:
    """The headings that begin chapters: the highest level that is used more than once, else the highest."""
    levels = [int(token.tag[1]) for token in tokens if token.type == "heading_open"]
    several = sorted(level for level in set(levels) if levels.count(level) > 1)
    return several[0] if several else min(levels, default=1)


def _inline_text(children: list[Token]) -> tuple[str, list[str]]:
    """(words, labels of the footnotes that are marked in them)."""
    parts: list[str] = []
    for child in children:
        if child.type in ("text", "code_inline", "text_special"):
            parts.append(child.content)
        elif child.type == "softbreak":
            parts.append(_SOFT)
        elif child.type == "hardbreak":
            parts.append("\n")
        elif child.type == "image":
            parts.append(child.content)
        elif child.type == "html_inline" and child.content.lower().startswith("<br"):
            parts.append("\n")
    text = _WITHIN_HAN.sub("", "".join(parts)).replace(_SOFT, " ")
    marks = [found[1] for found in _NOTE_MARK.finditer(text)]
    return _NOTE_MARK.sub("", text), marks

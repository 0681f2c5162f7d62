"""One XHTML document of an EPUB -> blocks in reading order, and where its anchors are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.entities import html5

from lxml import etree, html

from studio.book.archives import parse_xml
from studio.book.errors import ImportingError
from studio.book.headings import is_scene_break
from studio.book.manuscript import Block, BlockKind, SectionMaker, letters

_SILENT = {"head", "script", "style", "template", "svg", "audio", "video", "object", "iframe", "noscript", "title"}
_BLOCKS = set(
    "address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 "
    "h4 h5 h6 header hr html li main nav ol p pre section summary table tbody td tfoot th thead tr ul caption".split()
)
_VOID = "area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr"
_SELF_CLOSED = re.compile(rf"<(?!(?:{_VOID})\b)([A-Za-z][\w:.-]*)((?:\s[^<>]*?)?)/>")
_ENTITY = re.compile(rb"&([A-Za-z][A-Za-z0-9]{1,31});")
_NOTE_TYPES = {"footnote", "footnotes", "endnote", "endnotes", "rearnote", "rearnotes", "note"}
_NOTE_CLASS = re.compile(r"(?:^|[\s_-])(?:footnote|endnote|fnote)s?(?:$|[\s_-])", re.IGNORECASE)
_PAGE_CLASS = re.compile(r"(?:^|\s)(?:page-?num(?:ber)?|page-?no|pagebreak|pageno)(?:$|\s)", re.IGNORECASE)
_MARK_TEXT = re.compile(r"[\[(]?\s*(?:\d{1,4}|[*†‡§¶#]{1,3}|[a-z]|注\d*|[①-⑳]|〔\d+〕)\s*[\])]?$")
_LINE_IN_HAN = re.compile(
    "(?<=[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef])[ \t]*\n\\s*(?=[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef])"
)
_BLANKS = re.compile(r"[ \t\r\n\f]+")


@dataclass
class Document:
    """``anchors``: id -> number of the block that it is in; ``levels``: number of a heading block -> 1 to 6."""

    blocks: list[Block] = field(default_factory=list)
    anchors: dict[str, int] = field(default_factory=dict)
    levels: dict[int, int] = field(default_factory=dict)
    types: frozenset[str] = frozenset()


def read_document(data: bytes, name: str) -> Document:
    """Raises ImportingError when the document cannot be read, or when any of its text would be lost."""
    root = parse_page(data, name)
    bodies = [element for element in root.iter() if _tag(element) == "body"]
    body = bodies[0] if bodies else root
    reader = _Reader()
    reader.walk(body, "text")
    reader.flush("text")
    document = Document(reader.maker.blocks, reader.anchors, reader.levels, _types(body) | reader.first_types)
    lost = letters(_texts(body)) - letters(block.text for block in document.blocks)
    if lost:
        raise ImportingError(f"{name} cannot be read completely: {sum(lost.values())} characters would be lost.")
    return document


def parse_page(data: bytes, name: str) -> etree._Element:
    """As XML, which it should be; as a browser would read it when it is not."""
    try:
        return parse_xml(_ENTITY.sub(_spelled_out, data), name)
    except ImportingError:
        pass
    text = _decoded(data)
    text = _SELF_CLOSED.sub(r"<\1\2></\1>", re.sub(r"^\s*<\?xml[^>]*\?>", "", text))
    try:
        return html.document_fromstring(text, parser=html.HTMLParser(no_network=True, huge_tree=False))
    except (etree.ParserError, ValueError) as error:
        if not text.strip():
            return html.fromstring("<body></body>")
        raise ImportingError(f"{name} is no readable page ({error}).") from error


def _decoded(data: bytes) -> str:
    for encoding in ("utf-8-sig", "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", "replace")


def _spelled_out(match: re.Match[bytes]) -> bytes:
    """HTML's named characters, which XML does not know: numbers instead."""
    name = match[1].decode()
    char = html5.get(f"{name};")
    if name in ("amp", "lt", "gt", "quot", "apos") or not char:
        return match[0]
    return "".join(f"&#{ord(c)};" for c in char).encode()


def _tag(element: etree._Element) -> str:
    return etree.QName(element).localname.lower() if isinstance(element.tag, str) else ""


def _types(element: etree._Element) -> frozenset[str]:
    """epub:type and role, which say what a part of a page is for."""
    found = set()
    for name, value in element.attrib.items():
        if str(name).endswith(("}type", "epub:type")) or name == "role":
            found |= {word.removeprefix("doc-").removeprefix("z3998:") for word in value.lower().split()}
    return frozenset(found)


def _is_silent(element: etree._Element) -> bool:
    return not isinstance(element.tag, str) and not isinstance(element, etree._Entity) or _tag(element) in _SILENT


def _texts(element: etree._Element) -> list[str]:
    """All text that a reader of the page may see, found in the plainest way: the measure of :class:`_Reader`."""
    found: list[str] = []
    waiting = [element]
    while waiting:
        current = waiting.pop()
        if not _is_silent(current):
            found.append(current.text or "")
            waiting += list(current)
        if current is not element:
            found.append(current.tail or "")
    return found


class _Reader:
    def __init__(self) -> None:
        self.maker = SectionMaker()
        self.anchors: dict[str, int] = {}
        self.levels: dict[int, int] = {}
        self.first_types: frozenset[str] = frozenset()
        self._line: list[str] = []
        self._marks: list[tuple[str, BlockKind]] = []

    def walk(self, element: etree._Element, kind: BlockKind) -> None:
        if _is_silent(element):
            return
        tag, types = _tag(element), _types(element)
        if not self.maker.blocks and not self._line:
            self.first_types |= types
        if anchor := element.get("id") or (element.get("name") if tag == "a" else None):
            self.anchors.setdefault(anchor, len(self.maker.blocks))
        is_block = tag in _BLOCKS
        if is_block and tag not in ("td", "th"):
            self.flush(kind)
            if anchor:
                self.anchors[anchor] = len(self.maker.blocks)
        inner = _kind(element, tag, types, kind)
        if tag == "br":
            self._line.append("\n")
        elif tag == "hr":
            self.maker.add("* * *", "scene")
        elif inner in ("note mark", "page number") and not is_block:
            self._marks.append(("".join(_texts(element)), inner))
        else:
            self._inside(element, tag, inner)
        if is_block:
            self._end(tag, inner)

    def _inside(self, element: etree._Element, tag: str, kind: BlockKind) -> None:
        self._text(element.text, tag == "pre")
        for child in element:
            if isinstance(child, etree._Entity):
                self._text(child.text, False)
            else:
                self.walk(child, kind)
            self._text(child.tail, tag == "pre")

    def _text(self, text: str | None, as_it_is: bool) -> None:
        if text:
            self._line.append(text if as_it_is else _BLANKS.sub(" ", _LINE_IN_HAN.sub("", text)))

    def _end(self, tag: str, kind: BlockKind) -> None:
        if tag in ("td", "th"):
            self._line.append("\n")
            return
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6") and "".join(self._line).strip():
            self.levels[len(self.maker.blocks)] = int(tag[1])
        self.flush(kind)

    def flush(self, kind: BlockKind) -> None:
        text = "".join(self._line)
        self._line.clear()
        if kind == "text" and is_scene_break(text):
            kind = "scene"
        self.maker.add(text, kind)
        for mark, what in self._marks:
            self.maker.add(mark, what)
        self._marks.clear()


def _kind(element: etree._Element, tag: str, types: frozenset[str], outer: BlockKind) -> BlockKind:
    """What the text inside is. What is in a note stays a note, and so on: only plain text becomes something else."""
    classes = element.get("class") or ""
    if types & {"pagebreak"} or _PAGE_CLASS.search(classes):
        return "page number"
    if outer not in ("text", "heading", "table"):
        return outer
    if types & {"noteref"} or tag in ("rt", "rp") or _looks_like_mark(element, tag):
        return "note mark"
    if types & _NOTE_TYPES or (tag in _BLOCKS and _NOTE_CLASS.search(classes)):
        return "note"
    if tag in ("aside", "nav") or element.get("hidden") is not None or "display:none" in _style(element):
        return "aside"
    if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
        return "heading"
    if tag in ("table", "pre"):
        return "table" if tag == "table" else "code"
    return outer


def _style(element: etree._Element) -> str:
    return (element.get("style") or "").replace(" ", "").lower()


def _looks_like_mark(element: etree._Element, tag: str) -> bool:
    """A raised number that leads somewhere, as books of before EPUB 3 have it."""
    if tag == "a" and "#" in (element.get("href") or ""):
        raised = any(_tag(child) == "sup" for child in element) or _tag(element.getparent()) == "sup"
    elif tag == "sup":
        raised = any(_tag(child) == "a" and "#" in (child.get("href") or "") for child in element)
    else:
        return False
    return raised and bool(_MARK_TEXT.match("".join(_texts(element)).strip()))

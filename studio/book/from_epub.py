"""EPUB 2 and 3 -> sections: by the table of contents (nav or NCX) first, then by the spine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lxml import etree

from studio.book.archives import Archive, resolve
from studio.book.epub_contents import Entry, chapters_of, contents_of
from studio.book.errors import ImportingError
from studio.book.from_html import Document, read_document
from studio.book.headings import chapter_kind, kind_of_title
from studio.book.manuscript import Block, Manuscript, Section, SectionKind, SectionMaker, first_words

_FONT_SCRAMBLING = {"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"}  # fonts only: no obstacle
_PAGES = {"application/xhtml+xml", "text/html", "application/x-dtbook+xml", "application/xml"}
_KIND_OF_TYPE: dict[str, SectionKind] = {
    "cover": "front matter", "titlepage": "front matter", "halftitlepage": "front matter",
    "copyright-page": "legal", "colophon": "legal", "imprint": "legal",
    "toc": "contents", "landmarks": "contents", "loi": "contents", "lot": "contents", "contents": "contents",
    "footnotes": "notes", "endnotes": "notes", "rearnotes": "notes", "notes": "notes",
    "index": "back matter", "bibliography": "back matter", "glossary": "back matter", "acknowledgments": "back matter",
}  # fmt: skip


@dataclass
class Package:
    """What the package file says: pages in reading order, and facts about the book."""

    folder: str  # member name of the package file: what its hrefs are relative to
    root: etree._Element
    spine: list[tuple[str, bool]]  # (member, is part of the main reading order)
    title: str = ""
    author: str = ""
    language: str = ""


def read_epub(data: bytes, name: str) -> Manuscript:
    archive = Archive(data, name)
    _refuse_protected(archive)
    package = _package(archive)
    documents = {member: read_document(archive.read(member), f"{member} in {name}") for member, _ in package.spine}
    sections, notes = _sections(archive, package, documents)
    if not any(section.blocks for section in sections):
        raise ImportingError(f"{name} has no text: its pages are empty or pictures. A scanned book needs OCR first.")
    return Manuscript(package.title, tuple(sections), package.author, package.language, tuple(notes))


def _refuse_protected(archive: Archive) -> None:
    said = f"{archive.name} is copy-protected (DRM) and cannot be read. Use an edition without protection."
    if "META-INF/sinf.xml" in archive:
        raise ImportingError(said)
    if "META-INF/encryption.xml" in archive:
        for method in archive.xml("META-INF/encryption.xml").iter("{*}EncryptionMethod"):
            if method.get("Algorithm") not in _FONT_SCRAMBLING:
                raise ImportingError(said)


def _package(archive: Archive) -> Package:
    if "META-INF/container.xml" not in archive:
        raise ImportingError(f"{archive.name} is not an EPUB: META-INF/container.xml is missing in it.")
    container = archive.xml("META-INF/container.xml")
    path = next((found.get("full-path") for found in container.iter("{*}rootfile") if found.get("full-path")), "")
    member, _ = resolve("", path or "")
    root = archive.xml(member)
    items = {item.get("id"): item for item in root.iter("{*}item")}
    spine: dict[str, bool] = {}
    for reference in root.iter("{*}itemref"):
        item = items.get(reference.get("idref"))
        if item is None or item.get("media-type") not in _PAGES:
            continue
        page, _ = resolve(member, item.get("href") or "")
        if not page:
            raise ImportingError(f"{archive.name} points outside itself ({item.get('href')}). It is refused.")
        spine.setdefault(page, reference.get("linear") != "no")
    if not spine:
        raise ImportingError(f"{archive.name} has no reading order: its package file {member} names no pages.")

    def fact(tag: str) -> str:
        found = root.find(f".//{{http://purl.org/dc/elements/1.1/}}{tag}")
        return " ".join("".join(found.itertext()).split()) if found is not None else ""

    return Package(member, root, list(spine.items()), fact("title"), fact("creator"), fact("language"))


def _sections(archive: Archive, package: Package, documents: dict[str, Document]) -> tuple[list[Section], list[str]]:
    notes: list[str] = []
    try:
        entries = contents_of(archive, package.folder, package.root)
    except ImportingError as error:
        entries, notes = [], [f"Its table of contents cannot be read, so chapters come from headings. {error}"]
    entries = chapters_of(entries, lambda entry: _words_before_child(entry, documents))
    starts = _starts(entries, documents)
    made: list[SectionMaker] = []
    for member, is_linear in package.spine:
        made += _read_page(documents[member], starts.get(member, {}), is_linear, bool(entries), made)
    return [_finished(maker, package) for maker in made if maker.blocks], notes


def _words_before_child(entry: Entry, documents: dict[str, Document]) -> int:
    """Words between an entry and the first one below it, when both are on one page; all of its page otherwise."""
    document = documents.get(entry.member)
    if document is None:
        return 0
    start = document.anchors.get(entry.fragment, 0)
    child = entry.children[0]
    end = document.anchors.get(child.fragment, len(document.blocks)) if child.member == entry.member else None
    return sum(block.words for block in document.blocks[start:end] if block.on)


def _starts(entries: list[Entry], documents: dict[str, Document]) -> dict[str, dict[int, str]]:
    """member -> number of the block where an entry begins -> its title."""
    starts: dict[str, dict[int, str]] = {}
    for entry in entries:
        if entry.member in documents:
            block = documents[entry.member].anchors.get(entry.fragment, 0)
            starts.setdefault(entry.member, {}).setdefault(block, entry.title)
    return starts


def _read_page(
    document: Document, starts: dict[int, str], is_linear: bool, has_contents: bool, before: list[SectionMaker]
) -> list[SectionMaker]:
    """The sections that begin on a page. What comes first on it belongs to the one ``before`` when nothing begins."""
    kind = _kind_of(document)
    if not starts:
        starts = _starts_by_headings(document, has_contents and any(maker.title for maker in before))
    new: list[SectionMaker] = []
    if not is_linear or kind is not None or (0 not in starts and not before):
        starts = {0: "", **starts}
    for number, block in enumerate(document.blocks):
        if number in starts:
            new.append(_opened(starts[number], kind if is_linear else kind or "notes", document.blocks[number:]))
        target = new[-1] if new else before[-1]
        target.blocks.append(block)
    return new


def _starts_by_headings(document: Document, goes_on: bool) -> dict[int, str]:
    """A page that the contents do not name begins a section with its own heading, or goes on with the last one."""
    top = min(document.levels.values(), default=0)
    if top in (1, 2):
        numbers = [number for number, level in document.levels.items() if level == top]
        starts = {number: document.blocks[number].text for number in numbers}
        first = min(numbers)
        if all(block.kind == "page number" for block in document.blocks[:first]) or not goes_on:
            starts = {0: starts.pop(first), **starts} if first else starts
        return starts
    return {} if goes_on else {0: ""}


def _opened(title: str, kind: SectionKind | None, blocks: list[Block]) -> SectionMaker:
    title = " ".join(title.split())
    if not title:
        heading = next((block.text for block in blocks[:3] if block.kind == "heading"), "")
        title = " ".join(heading.split())
    return SectionMaker(title, kind or kind_of_title(title) or chapter_kind(title) or "chapter")


def _kind_of(document: Document) -> SectionKind | None:
    for name in sorted(document.types):
        if name in _KIND_OF_TYPE:
            return _KIND_OF_TYPE[name]
    return None


def _finished(maker: SectionMaker, package: Package) -> Section:
    named = bool(maker.title)
    maker.title = maker.title or first_words(maker.blocks[0].text, 60)
    words = sum(block.words for block in maker.blocks if block.on)
    if maker.kind == "chapter" and not named and words < 60 and package.title and package.title in _shown(maker):
        maker.kind = "front matter"  # a title page
    section = maker.section()
    return replace(section, on=section.on and any(block.on for block in section.blocks))


def _shown(maker: SectionMaker) -> str:
    return " ".join(" ".join(block.text for block in maker.blocks).split())

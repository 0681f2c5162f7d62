"""The table of contents of an EPUB: nav (EPUB 3) or NCX (EPUB 2), and which of its entries are chapters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lxml import etree

from studio.book.archives import Archive, resolve
from studio.book.from_html import parse_page
from studio.book.headings import chapter_kind

_OPS_TYPE = "{http://www.idpf.org/2007/ops}type"
_PART_WORDS = 250  # a heading with less text of its own before its first child is a part of the book
_DEEPEST = 12


@dataclass
class Entry:
    title: str
    member: str  # "" for an entry that leads nowhere
    fragment: str = ""
    children: list[Entry] = field(default_factory=list)


def contents_of(archive: Archive, package: str, root: etree._Element) -> list[Entry]:
    """The entries as a tree; [] when the book has no table of contents."""
    items = list(root.iter("{*}item"))
    for item in items:
        if "nav" in (item.get("properties") or "").split():
            member, _ = resolve(package, item.get("href") or "")
            entries = _from_nav(archive, member)
            if entries:
                return entries
    spine = root.find(".//{*}spine")
    wanted = spine.get("toc") if spine is not None else None
    for item in items:
        if item.get("media-type") == "application/x-dtbncx+xml" or (wanted and item.get("id") == wanted):
            member, _ = resolve(package, item.get("href") or "")
            return [_from_ncx(point, member, 0) for point in archive.xml(member).findall("{*}navMap/{*}navPoint")]
    return []


def _from_nav(archive: Archive, member: str) -> list[Entry]:
    root = parse_page(archive.read(member), f"{member} in {archive.name}")
    for nav in root.iter("{*}nav"):
        types = nav.get(_OPS_TYPE) or nav.get("epub:type") or ""
        if "toc" in types.split() or nav.get("role") == "doc-toc":
            return _from_list(nav.find("{*}ol"), member, 0)
    return []


def _from_list(items: etree._Element | None, member: str, depth: int) -> list[Entry]:
    entries: list[Entry] = []
    if items is None or depth > _DEEPEST:
        return entries
    for item in items.findall("{*}li"):
        label = item.find("{*}a")
        label = item.find("{*}span") if label is None else label
        if label is None:
            continue
        target = resolve(member, label.get("href")) if label.get("href") else ("", "")
        entries.append(Entry(_said(label), *target, _from_list(item.find("{*}ol"), member, depth + 1)))
    return entries


def _from_ncx(point: etree._Element, member: str, depth: int) -> Entry:
    label, content = point.find("{*}navLabel"), point.find("{*}content")
    source = content.get("src") if content is not None else None
    target = resolve(member, source) if source else ("", "")
    below = [] if depth > _DEEPEST else point.findall("{*}navPoint")
    children = [_from_ncx(child, member, depth + 1) for child in below]
    return Entry(_said(label) if label is not None else "", *target, children)


def _said(element: etree._Element) -> str:
    return " ".join("".join(element.itertext()).split())


def chapters_of(entries: list[Entry], own_words: Callable[[Entry], int]) -> list[Entry]:
    """Chapters, in order: parts of a book are looked into, sections within a chapter are not.

    ``own_words(entry)`` counts the words between an entry and its first child.
    """
    chapters: list[Entry] = []
    for entry in entries:
        if entry.member:
            chapters.append(entry)
        if entry.children and _is_part(entry, own_words):
            chapters += chapters_of(entry.children, own_words)
    return chapters


def _is_part(entry: Entry, own_words: Callable[[Entry], int]) -> bool:
    if not entry.member or chapter_kind(entry.title) == "part":
        return True
    if any(chapter_kind(child.title) == "chapter" for child in entry.children):
        return True
    return chapter_kind(entry.title) != "chapter" and own_words(entry) < _PART_WORDS

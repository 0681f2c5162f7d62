"""What an import finds: sections of blocks, each on or off. Plain values; every edit returns a new list.

Nothing is ever dropped here: what will not be spoken is a block (or a whole section) that is off, with its kind for a
reason. The words of all blocks, on or off, are the words of the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from studio.book.errors import BookError

BlockKind = Literal["text", "heading", "scene", "note", "note mark", "page number", "aside", "table", "code"]
SectionKind = Literal["chapter", "part", "front matter", "contents", "notes", "back matter", "legal", "furniture"]
SPOKEN_BLOCKS: frozenset[str] = frozenset({"text", "heading", "scene", "table", "code"})
SPOKEN_SECTIONS: frozenset[str] = frozenset({"chapter", "part"})


@dataclass(frozen=True)
class Block:
    """One paragraph, heading or mark. ``text`` has single blanks; "\\n" is a line break within (verse)."""

    text: str
    kind: BlockKind = "text"
    on: bool = True

    @property
    def words(self) -> int:
        return count_words(self.text)


@dataclass(frozen=True)
class Section:
    """A chapter to be, or another part of the file. Its heading, where the file has one, is also its first block."""

    title: str
    blocks: tuple[Block, ...]
    kind: SectionKind = "chapter"
    on: bool = True

    @property
    def spoken(self) -> tuple[Block, ...]:
        """The blocks that are on, none if the section is off."""
        return tuple(block for block in self.blocks if block.on) if self.on else ()

    @property
    def words(self) -> int:
        """Words that will be spoken."""
        return sum(block.words for block in self.spoken)

    @property
    def all_words(self) -> int:
        return sum(block.words for block in self.blocks)


@dataclass(frozen=True)
class Manuscript:
    """A whole file. ``notes`` are sentences for the user about what was found."""

    title: str
    sections: tuple[Section, ...]
    author: str = ""
    language: str = ""
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        return sum(section.words for section in self.sections)

    @property
    def all_words(self) -> int:
        """Words of the file, spoken or not."""
        return sum(section.all_words for section in self.sections)

    def left_out(self) -> list[tuple[str, str, int]]:
        """What is off: (section title, kind, words), the blocks of a spoken section by their kind."""
        found: list[tuple[str, str, int]] = []
        for section in self.sections:
            if not section.on:
                found.append((section.title, section.kind, section.all_words))
                continue
            by_kind: Counter[str] = Counter()
            for block in section.blocks:
                if not block.on:
                    by_kind[block.kind] += block.words
            found += [(section.title, kind, words) for kind, words in by_kind.items()]
        return found


@dataclass
class SectionMaker:
    """Collects blocks while a file is read."""

    title: str = ""
    kind: SectionKind = "chapter"
    blocks: list[Block] = field(default_factory=list)

    def add(self, text: str, kind: BlockKind = "text") -> None:
        text = tidy(text)
        if text:
            self.blocks.append(Block(text, kind, kind in SPOKEN_BLOCKS))

    def section(self) -> Section:
        return Section(self.title, tuple(self.blocks), self.kind, self.kind in SPOKEN_SECTIONS)


def tidy(text: str) -> str:
    """Single blanks, no blanks at line ends, no empty lines. No other character changes."""
    return "\n".join(line for line in (" ".join(part.split()) for part in text.split("\n")) if line)


def is_unspaced(char: str) -> bool:
    """Whether the script of this character writes words without blanks between them (Han, kana, their marks)."""
    code = ord(char)
    return 0x2E80 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or 0xFF00 <= code <= 0xFFEF or 0x20000 <= code < 0x40000


def joined(first: str, second: str) -> str:
    """Two texts as one, with a blank between them where their script has blanks."""
    glued = first and second and is_unspaced(first[-1]) and is_unspaced(second[0])
    return f"{first}{second}" if glued else f"{first} {second}"


def count_words(text: str) -> int:
    """Words parted by blanks; in scripts without blanks every letter counts as one."""
    count, in_word = 0, False
    for char in text:
        if not char.isalnum():
            in_word = in_word and char in "'’-"
        elif is_unspaced(char):
            count, in_word = count + 1, False
        else:
            count, in_word = count + (not in_word), True
    return count


def letters(texts: Iterable[str]) -> Counter[str]:
    """How often each character that is no blank occurs: what must be the same before and after."""
    counted: Counter[str] = Counter()
    for text in texts:
        counted.update(text)
    for char in [char for char in counted if char.isspace()]:
        del counted[char]
    return counted


# ------------------------------------------------------------------------------------------------- edits


def rename(sections: Sequence[Section], index: int, title: str) -> list[Section]:
    """The heading block, which is spoken, keeps its words: a title is what lists and chapter marks show."""
    title = " ".join(title.split())
    if not title:
        raise BookError("A chapter needs a title; type at least one letter.")
    return _with(sections, index, replace(_at(sections, index), title=title))


def switch(sections: Sequence[Section], index: int, on: bool) -> list[Section]:
    return _with(sections, index, replace(_at(sections, index), on=on))


def switch_block(sections: Sequence[Section], index: int, block: int, on: bool) -> list[Section]:
    section = _at(sections, index)
    if block not in range(len(section.blocks)):
        raise BookError(f"“{section.title}” has {len(section.blocks)} paragraphs; there is no number {block + 1}.")
    blocks = list(section.blocks)
    blocks[block] = replace(blocks[block], on=on)
    return _with(sections, index, replace(section, blocks=tuple(blocks)))


def split(sections: Sequence[Section], index: int, block: int, title: str = "") -> list[Section]:
    """``block`` becomes the first of a new section. Its first words are the title if none is given."""
    section = _at(sections, index)
    if block not in range(1, len(section.blocks)):
        raise BookError(
            f"“{section.title}” can be split before its paragraphs 2 to {len(section.blocks)}, not before {block + 1}."
        )
    first, rest = section.blocks[:block], section.blocks[block:]
    title = " ".join(title.split()) or first_words(rest[0].text)
    return [
        *sections[:index],
        replace(section, blocks=first),
        replace(section, title=title, blocks=rest),
        *sections[index + 1 :],
    ]


def merge(sections: Sequence[Section], index: int) -> list[Section]:
    """Joins a section with the one after it, under the first title. What was off stays off."""
    first = _at(sections, index)
    if index + 1 >= len(sections):
        raise BookError(f"“{first.title}” is the last one; there is nothing after it to merge with.")
    second = sections[index + 1]
    if first.on != second.on:  # the whole of the one that is off stays unspoken
        first, second = (_switched_off(section) if not section.on else section for section in (first, second))
        joined = replace(first, on=True, blocks=first.blocks + second.blocks)
    else:
        joined = replace(first, blocks=first.blocks + second.blocks)
    return [*sections[:index], joined, *sections[index + 2 :]]


def move(sections: Sequence[Section], index: int, to: int) -> list[Section]:
    section = _at(sections, index)
    _at(sections, to)
    rest = [*sections[:index], *sections[index + 1 :]]
    return [*rest[:to], section, *rest[to:]]


def first_words(text: str, limit: int = 40) -> str:
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    cut = text.rfind(" ", 0, limit)
    return text[: cut if cut > limit // 2 else limit].rstrip() + "…"


def _switched_off(section: Section) -> Section:
    return replace(section, blocks=tuple(replace(block, on=False) for block in section.blocks))


def _at(sections: Sequence[Section], index: int) -> Section:
    if index not in range(len(sections)):
        raise BookError(f"There is no chapter {index + 1}; the book has {len(sections)}.")
    return sections[index]


def _with(sections: Sequence[Section], index: int, section: Section) -> list[Section]:
    return [*sections[:index], section, *sections[index + 1 :]]

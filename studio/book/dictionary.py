"""How words are to be pronounced, for a whole project: the text stays as written, what is said changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from studio.book.errors import BookError
from studio.book.manuscript import is_unspaced

LONGEST_WORD, LONGEST_SAYING = 80, 200
MOST_ENTRIES = 2000


@dataclass(frozen=True)
class Pronunciation:
    """``say`` is a respelling ("Hermione" -> "Her-my-oh-nee") or phones in braces ("行" -> "{hang2}")."""

    word: str
    say: str
    match_case: bool = False

    def check(self) -> None:
        """Raises BookError naming the word and what is wrong."""
        if not self.word.strip() or len(self.word) > LONGEST_WORD:
            raise BookError(f"A word of the dictionary has 1 to {LONGEST_WORD} characters; “{self.word[:20]}” has not.")
        if not self.say.strip() or len(self.say) > LONGEST_SAYING:
            raise BookError(f"How “{self.word}” is said needs 1 to {LONGEST_SAYING} characters.")
        if not any(char.isalnum() for char in self.say):
            raise BookError(f"“{self.say}” says nothing; write how “{self.word}” sounds, with letters.")
        if self.say.count("{") != self.say.count("}"):
            raise BookError(f"“{self.say}” has an open brace; phones stand between two, as in {{ni3}}.")


class Dictionary:
    """All entries of a project, applied in one pass: what an entry puts in is not looked at again."""

    def __init__(self, entries: Iterable[Pronunciation]) -> None:
        self.entries = tuple(entries)
        if len(self.entries) > MOST_ENTRIES:
            raise BookError(f"A dictionary has at most {MOST_ENTRIES} words; this one has {len(self.entries)}.")
        for entry in self.entries:
            entry.check()
        self._exact = {" ".join(e.word.split()): e.say for e in self.entries if e.match_case}
        self._folded = {" ".join(e.word.split()).casefold(): e.say for e in self.entries if not e.match_case}
        self._pattern = _pattern([*self._exact, *(" ".join(e.word.split()) for e in self.entries if not e.match_case)])

    def say(self, text: str) -> str:
        """The text with every known word as it is said. What stands in braces already is left alone."""
        return self._pattern.sub(self._said, text) if self._pattern else text

    def _said(self, found: re.Match[str]) -> str:
        if found["kept"]:
            return found[0]
        word = " ".join(found[0].split())
        return self._exact.get(word) or self._folded.get(word.casefold()) or found[0]


def _pattern(words: list[str]) -> re.Pattern[str] | None:
    """Longest first, so that "New York" wins over "York"."""
    if not words:
        return None
    choices = "|".join(_whole(word) for word in sorted(set(words), key=len, reverse=True))
    return re.compile(rf"(?P<kept>\{{[^{{}}]{{0,200}}\}})|(?:{choices})", re.IGNORECASE)


# Han and kana have no word boundaries, and a Latin word may touch them: only Latin letters and digits extend it.
_LETTER = r"[^\W_\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"


def _whole(word: str) -> str:
    body = r"\s+".join(map(re.escape, word.split()))
    before = rf"(?<!{_LETTER})" if _extends(word[0]) else ""
    after = rf"(?!{_LETTER})" if _extends(word[-1]) else ""
    return f"{before}{body}{after}"


def _extends(char: str) -> bool:
    return char.isalnum() and not is_unspaced(char)


def affected(texts: Sequence[str], before: Dictionary, after: Dictionary) -> list[int]:
    """The numbers of the texts that are said differently after a change of the dictionary."""
    return [number for number, text in enumerate(texts) if before.say(text) != after.say(text)]

"""Where a text may be cut, and how good each place is. Positions only: the text itself is never touched.

One pass of a few regular expressions over a paragraph; the time is linear in its length.
"""

from __future__ import annotations

import re

from studio.book.manuscript import is_unspaced

# How good a cut is, from worst to best. Between two letters is a place of last resort and has no number.
HAN, BLANK, CLAUSE, SENTENCE = 1, 2, 3, 4

_OPENERS = "\"'“‘«‹([{（【「『《〈—–"
_CLOSERS = "\"'”’»›)\\]}）】」』》〉"
_ENDS = re.compile(rf"[.!?…。！？；⋯‥․．｡]+[{_CLOSERS}]*(?:\s?»)?")
_CLAUSES = re.compile(rf"[,;:，、；：﹐﹑]+[{_CLOSERS}]*|[—–]+|\s--+(?=\s)")
_BLANKS = re.compile(r"\s+")
_HAN_ENDS = "。！？；｡．"

# Never cut inside: braces, tags, addresses, numbers.
_WHOLE = re.compile(
    r"\{[^{}]{0,200}\}"
    r"|\[[^\[\]\n]{1,80}\]"
    r"|(?:https?://|www\.)[^\s<>\"“”，。！？；：、（）]{1,300}"
    r"|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,5}"
    r"|[$€£¥]?\d+(?:[.,:/]\d+)*%?",
    re.ASCII,
)

# Followed by a name or a number: the stop after them ends nothing.
_TITLES = frozenset(
    "mr mrs ms messrs mme mlle dr prof rev hon st ste sr jr gen col capt cpt lt sgt cpl maj adm gov sen rep pres supt "
    "fr bro sis sir mt ft no nos vol vols fig figs ch chap sec art pp p pg ed eds vs v cf viz approx c ca al op tr "
    "bros jan feb mar apr jun jul aug sept sep oct nov dec".split()
)
# May also end a sentence: it does when a word that begins sentences follows.
_EITHER = frozenset(
    "etc inc ltd co corp dept est ave blvd rd u.s u.k u.n u.s.a a.m p.m d.c b.c a.d ph.d m.d esq".split()
)
_STARTERS = frozenset(
    "the a an he she it they we i you his her their our my its this that these those there then when while where what "
    "why who how but and so or yet for nor if as at in on by from with after before once now here no yes not one all "
    "some perhaps maybe suddenly meanwhile however still even".split()
)
_LAST_WORD = re.compile(r"(?:[A-Za-z]\.)*[A-Za-z]+$|\d{1,3}$")
_ITEM_AFTER = re.compile(r"(\w+)[.!?;]\s$")  # what comes before the number of an item within a paragraph
_SAID = re.compile(r"[^，。！？；：“”「」『』\s]{0,8}[说說道问問答喊叫嚷笑吼叹嘆]")


def cuts(text: str) -> bytearray:
    """For every position 0..len(text) how good a cut before it is; 0 where none may be."""
    quality = bytearray(len(text) + 1)
    _mark_han(text, quality)
    for found in _BLANKS.finditer(text):
        quality[found.start()] = BLANK
    for found in _CLAUSES.finditer(text):
        end = found.end()
        if end < len(text) and (text[end].isspace() or _is_wide(text, found.start(), end) or text[end - 1] in "—–"):
            quality[end] = CLAUSE
    for found in _ENDS.finditer(text):
        if found.end() < len(text) and _ends_sentence(text, found.start(), found.end()):
            quality[found.end()] = SENTENCE
    for found in _WHOLE.finditer(text):
        quality[found.start() + 1 : found.end()] = bytes(found.end() - found.start() - 1)
    quality[0] = 0
    return quality


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph, without the blanks between them."""
    quality = cuts(text)
    ends = [place for place in range(1, len(text)) if quality[place] == SENTENCE]
    pieces = (text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
    return [piece for piece in pieces if piece]


def may_part(text: str, place: int) -> bool:
    """Whether a cut there leaves both letters whole: never between a letter and the accents that belong to it."""
    before, after = text[place - 1], text[place]
    return not _joins(after) and before != "\u200d" and not "\ud800" <= before <= "\udbff"


def _joins(char: str) -> bool:
    code = ord(char)
    return (
        0x0300 <= code <= 0x036F or 0xDC00 <= code <= 0xDFFF or code == 0x200D or 0xFE00 <= code <= 0xFE0F
        or 0x1F3FB <= code <= 0x1F3FF or 0x0900 <= code <= 0x0DFF and not char.isalpha()
        or 0x064B <= code <= 0x065F or 0x0E31 <= code <= 0x0E4E and not char.isalpha() or 0x20D0 <= code <= 0x20FF
    )  # fmt: skip


def _mark_han(text: str, quality: bytearray) -> None:
    """Between two Han or kana characters, but not where a line must not begin or end."""
    for place in range(1, len(text)):
        before, after = text[place - 1], text[place]
        if before > "\u2e7f" and after > "\u2e7f" and is_unspaced(before) and is_unspaced(after):
            if after.isalnum() and before not in _OPENERS and after not in "ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々":
                quality[place] = HAN


def _is_wide(text: str, start: int, end: int) -> bool:
    """Punctuation of scripts without blanks: a cut may follow at once."""
    return any(is_unspaced(char) for char in text[start:end])


def _ends_sentence(text: str, start: int, end: int) -> bool:
    marks = text[start:end]
    after = text[end]
    if any(mark in _HAN_ENDS for mark in marks) or ("…" in marks and is_unspaced(after)):
        return _ends_han(text, marks, end)
    if not after.isspace():
        return False
    following = text[end : end + 60].lstrip()
    word = following.lstrip(_OPENERS + " ")[:40]
    if not word or word[0].islower():
        return not word
    if marks[0] == "." and not marks.startswith(".."):
        return not _is_abbreviation(text, start, word)
    return True


def _ends_han(text: str, marks: str, end: int) -> bool:
    """A quote that ends and goes on as "他说" belongs to what follows."""
    quoted = marks[-1] in '”’」』"'
    return not (quoted and _SAID.match(text, end, min(len(text), end + 12)))


def _is_abbreviation(text: str, stop: int, following: str) -> bool:
    """Whether the stop at ``stop`` belongs to the word before it and the sentence goes on."""
    found = _LAST_WORD.search(text, max(0, stop - 24), stop)
    if found is None:
        return False
    before, lower = found[0], found[0].lower()
    starts_anew = re.split(r"[^\w’']", following, maxsplit=1)[0].lower() in _STARTERS
    if before.isdigit():  # "12. Apples": the number of an item, at its beginning
        earlier = _ITEM_AFTER.search(text, max(0, found.start() - 24), found.start())
        return found.start() == 0 or (earlier is not None and earlier[1].lower() not in _TITLES)
    if lower in _TITLES:
        return not (
            starts_anew and lower in ("no", "art", "ch", "sec", "mar", "p", "v", "c", "al", "co", "st", "jr", "sr")
        )
    if lower in _EITHER:
        return not starts_anew
    if len(before) == 1 and before.isupper():
        return not starts_anew if before != "I" else False
    return bool(re.fullmatch(r"(?:[A-Za-z]\.)+[A-Za-z]", before)) and not starts_anew

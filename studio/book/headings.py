"""Which line is a chapter's heading, and what kind of section a title announces. English and Chinese."""

from __future__ import annotations

import re

from studio.book.manuscript import SectionKind, count_words

LONGEST_HEADING = 80  # characters

_ROMAN = r"(?=[MDCLXVI])M{0,3}(?:C[MD]|D?C{0,3})(?:X[CL]|L?X{0,3})(?:I[XV]|V?I{0,3})"
_NUMBER_WORDS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    "eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|first|second|third|fourth|fifth|"
    "last|the"
)
_NUMBER = rf"(?:\d{{1,4}}|{_ROMAN}|(?:{_NUMBER_WORDS})(?:[- ](?:{_NUMBER_WORDS}))*)"
_CHAPTER = re.compile(
    rf"(?:chapter|chap\.|letter|canto|scene|act|stave)\s+{_NUMBER}\b(?P<rest>.*)$", re.IGNORECASE | re.DOTALL
)
_PART = re.compile(rf"(?:part|book|volume|vol\.)\s+{_NUMBER}\b(?P<rest>.*)$", re.IGNORECASE | re.DOTALL)
_ALONE = re.compile(
    r"(?:prologue|epilogue|preface|foreword|introduction|afterword|interlude|conclusion|appendix(?:\s+\w{1,4})?|"
    r"prelude|postscript)\.?$",
    re.IGNORECASE,
)
_HAN_NUMBER = "[0-9０-９一二三四五六七八九十百千零〇两廿卅]{1,7}"
_HAN_CHAPTER = re.compile(rf"第\s*{_HAN_NUMBER}\s*[章回节節集话話](?P<rest>.*)$", re.DOTALL)
_HAN_PART = re.compile(rf"第\s*{_HAN_NUMBER}\s*[卷部篇册冊](?P<rest>.*)$", re.DOTALL)
_HAN_ALONE = re.compile(r"(?:序|序章|序言|前言|楔子|引子|尾声|尾聲|后记|後記|番外|终章|終章|自序|跋)(?:[\s:：].*)?$")
_SENTENCE_END = re.compile(r"[.。;；,，:：]\s*$")

_KINDS: list[tuple[SectionKind, re.Pattern[str]]] = [
    (
        "contents",
        re.compile(r"(?:table of )?contents|list of (?:illustrations|figures|maps|tables)|目\s*[录錄次]", re.I),
    ),
    (
        "legal",
        re.compile(
            r"copyright(?: page| notice)?|imprint|colophon|legal notice|the full project gutenberg licen[cs]e|"
            r"版权(?:信息|页|声明)?|版權(?:頁|聲明)?",
            re.I,
        ),
    ),
    (
        "notes",
        re.compile(r"(?:foot|end)?notes?(?: to .*)?|translator['’]s notes?|注释|註釋|注釋|脚注|尾注|附注|译注", re.I),
    ),
    ("front matter", re.compile(r"cover|title ?page|half[- ]title|frontispiece|封面|扉页|书名页", re.I)),
    (
        "back matter",
        re.compile(
            r"index|bibliography|references|works cited|glossary|acknowledge?ments?|about the (?:author|publisher)|"
            r"also by .*|other books by .*|索引|参考文献|參考文獻|致谢|致謝|关于作者|作者简介",
            re.I,
        ),
    ),
]


def is_heading(line: str) -> bool:
    """Whether a line of its own announces a chapter or a part by its words."""
    return chapter_kind(line) is not None


def chapter_kind(line: str) -> SectionKind | None:
    """ "chapter" or "part" for a line that announces one, None for any other."""
    line = " ".join(line.split())
    if not line or len(line) > LONGEST_HEADING:
        return None
    for kind, patterns in (("chapter", (_CHAPTER, _HAN_CHAPTER)), ("part", (_PART, _HAN_PART))):
        for pattern in patterns:
            found = pattern.match(line)
            if found and _is_title(found["rest"]):
                return kind
    return "chapter" if _ALONE.match(line) or _HAN_ALONE.match(line) else None


def _is_title(rest: str) -> bool:
    """What follows "Chapter 3" is a title, not the rest of a sentence ("Chapter 3 was the worst of all.")."""
    rest = rest.strip()
    if not rest or rest in (".", ":", "：", "—", "-"):
        return True
    if _SENTENCE_END.search(rest):  # "I. Down the Rabbit-Hole." is a title for all that
        return rest[0] in ".:：—–-" and rest.count(". ") <= 1 and count_words(rest) <= 8
    return rest[0] in ".:：—–-、|(（" or not rest[0].islower()


def kind_of_title(title: str) -> SectionKind | None:
    """The kind of section that a title names, None when it names none that is left out by default."""
    title = " ".join(title.split()).strip(" .:：*#").lower()
    for kind, pattern in _KINDS:
        if pattern.fullmatch(title):
            return kind
    return None


_SCENE = re.compile(r"(?:[*＊·•~～#§⁂❦✦◇◆☆★○●※_=—–+-]\s*){1,}$")


def is_scene_break(line: str) -> bool:
    """A line of ornaments only: three or more, or one of those that nothing else is written with."""
    line = line.strip()
    marks = line.replace(" ", "").replace("\u3000", "")
    return bool(marks) and bool(_SCENE.match(line)) and (len(marks) >= 3 or marks[0] in "*＊#§⁂❦✦◇◆☆★※")

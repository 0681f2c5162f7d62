"""Who may be speaking: quoted speech and the name beside it. Suggestions for casting; the text is never changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

# Speech between two marks; the straight one is both. An English ’ also is an apostrophe: ‘...’ ends where a word ends.
_QUOTES = re.compile(
    r"“(?P<a>[^“”]{1,2000})(?:”|$)"
    r"|\"(?P<b>[^\"]{1,2000})(?:\"|$)"
    r"|「(?P<c>[^「」]{1,2000})(?:」|$)"
    r"|『(?P<d>[^『』]{1,2000})(?:』|$)"
    r"|«\s?(?P<e>[^«»]{1,2000})(?:»|$)"
    r"|(?<![\w])‘(?P<f>(?:[^‘’]|’(?=\w)){1,2000})(?:’(?!\w)|$)"
)
_VERBS = (
    "said|asked|replied|answered|cried|whispered|shouted|muttered|murmured|called|exclaimed|returned|continued|added|"
    "began|went on|repeated|observed|remarked|demanded|declared|insisted|sighed|laughed|snapped|growled|screamed|told|"
    "inquired|enquired|agreed|admitted|announced|explained|says|asks|replies"
)
_TITLE = r"(?:(?:Mr|Mrs|Ms|Miss|Dr|Sir|Lady|Lord|Captain|Colonel|Professor|Aunt|Uncle|Father|Mother|Old)\.?\s)"
_NAME = rf"(?P<name>{_TITLE}?[A-ZÀ-Þ][\w’'-]{{1,24}}(?:\s[A-ZÀ-Þ][\w’'-]{{1,24}}){{0,2}})"
_ADVERB = r"(?:\s\w{2,16}ly)?"
_VERB_NAME = re.compile(rf"[\s,.—–-]{{0,4}}(?:{_VERBS}){_ADVERB}\s(?:the\s|old\s|young\s|little\s|poor\s)?{_NAME}")
_NAME_VERB = re.compile(rf"[\s,.—–-]{{0,4}}{_NAME}{_ADVERB}\s(?:{_VERBS})\b")
_BEFORE = re.compile(rf"(?:^|[.!?…]\s|\s){_NAME}{_ADVERB}\s(?:{_VERBS})(?:\s\w{{1,16}}){{0,4}}[\s,:—–-]{{0,4}}$")
_NO_NAMES = frozenset(
    "he she it they we you i the a an and but then so when as his her this that there what who not no yes if for in on "
    "at after before while now well".split()
)
_HAN_VERBS = "说道|问道|答道|喊道|叫道|笑道|回答|低声说|大声说|说|道|问|喊|叫|答|說道|問道|說|問"
_HAN_NAME = r"(?P<name>[\u4e00-\u9fff·]{1,6}?)"
_HAN_ADVERB = r"(?:[\u4e00-\u9fff]{1,4}地|[低轻輕大小高柔厉厲齐齊]声|[低輕大小高柔厲齊]聲|冷冷|连忙|急忙|微微)?"
_HAN_AFTER = re.compile(rf"[，,\s]?{_HAN_NAME}{_HAN_ADVERB}(?:{_HAN_VERBS})(?=[，。：！？、\s“「]|$)")
_HAN_BEFORE = re.compile(rf"(?:^|[。！？，”」\s]){_HAN_NAME}{_HAN_ADVERB}(?:{_HAN_VERBS})[：:，,]\s?$")
_HAN_NO_NAMES = frozenset(
    "他 她 它 我 你 您 他们 她们 我们 你们 谁 有人 又 才 便 就 只 也 都 再 还 大家 接着 然后".split()
)
_REACH = 60  # characters beside a quote that are looked at


@dataclass(frozen=True)
class Speech:
    """Quoted speech from ``start`` to ``end`` of a text, marks included; ``speaker`` is "" when nothing tells."""

    start: int
    end: int
    speaker: str = ""


def find_speech(text: str) -> list[Speech]:
    """Every quote in a paragraph, with the name that stands beside it. Time is linear in the length."""
    found = list(_QUOTES.finditer(text))
    speeches = []
    for number, quote in enumerate(found):
        before = text[found[number - 1].end() if number else 0 : quote.start()][-_REACH:]
        after = text[quote.end() : found[number + 1].start() if number + 1 < len(found) else len(text)][:_REACH]
        speeches.append(Speech(quote.start(), quote.end(), _speaker(before, after)))
    return _one_speaker(speeches)


def _speaker(before: str, after: str) -> str:
    """The name beside a quote; what follows it tells more than what comes before."""
    places = [
        (_VERB_NAME.match(after), _NO_NAMES),
        (_NAME_VERB.match(after), _NO_NAMES),
        (_HAN_AFTER.match(after), _HAN_NO_NAMES),
        (_BEFORE.search(before), _NO_NAMES),
        (_HAN_BEFORE.search(before), _HAN_NO_NAMES),
    ]
    return next((name for found, no_names in places if (name := _name(found, no_names))), "")


def _name(found: re.Match[str] | None, ruled_out: frozenset[str]) -> str:
    name = " ".join(found["name"].split()) if found else ""
    return "" if name.lower() in ruled_out else name


def _one_speaker(speeches: list[Speech]) -> list[Speech]:
    """Quotes of one paragraph are one person's when only one is named."""
    named = {speech.speaker for speech in speeches if speech.speaker}
    if len(named) != 1:
        return speeches
    speaker = named.pop()
    return [Speech(speech.start, speech.end, speaker) for speech in speeches]


def speakers(texts: Iterable[str]) -> list[tuple[str, int]]:
    """(name, how many speeches) of a book, the most frequent first. "" counts those without a name."""
    counted = Counter(speech.speaker for text in texts for speech in find_speech(text))
    return counted.most_common()

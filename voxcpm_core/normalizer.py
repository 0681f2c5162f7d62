"""Numbers, dates, amounts and symbols as words, for English and Chinese; other languages are left alone.

The grammars come from the optional package ``wetext`` (measured with 0.1.8). They are good at money, dates,
units and Chinese numbers, and they fail on a known list of things: several blanks crash them, quotes come
back escaped, braces are rewritten, version and phone numbers and year ranges are misread. So the text is
cut into spans first. A span that must stay, or that :mod:`readings` reads better, never reaches the
grammars, and a span they cannot read stays as typed.
"""

import importlib
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

from . import readings as read
from .errors import TextError

BRACES = re.compile(r"\{[^{}]*\}")
LINKS = re.compile(
    r"(?:https?://|www\.)[\w.~:/?#@!$&()+,;=%-]*[\w/=&#%]"
    r"|(?<![\w@.+-])[\w.+-]+@\w[\w-]*(?:\.\w[\w-]*)+"
    r"|(?<![\w@.-])(?:\w[\w-]*\.)+(?:com|org|net|edu|gov|io|ai|dev|app|cn|uk|de|fr|jp|eu)\b"
    r"(?:/[\w./?=&#%-]*[\w/])?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True)
class _Rule:
    """What to do with the pieces a pattern finds. A final piece is not shown to the grammars any more."""

    pattern: re.Pattern[str]
    read: read.Reader
    final: bool = True


def _final(pattern: str, reader: read.Reader = read.as_typed) -> _Rule:
    return _Rule(re.compile(pattern, re.ASCII), reader)


def _repair(pattern: str, reader: read.Reader | str) -> _Rule:
    """Rewrite into something the grammars read well; they still see it."""
    return _Rule(re.compile(pattern, re.ASCII), reader if callable(reader) else lambda m: m.expand(reader), final=False)


# ---------------------------------------------------------------- the rules, in the order they are applied

_VERSION = (
    r"(?<![\w.])(?!\d{4}\.\d{1,2}\.\d{1,2}(?!\.?\d)|\d{1,2}\.\d{1,2}\.\d{4}(?!\.?\d))"  # these are dates
    r"(?:(?P<letter>[vV])(?=\d+\.)|(?=\d+\.\d+\.))(?P<number>\d+(?:\.\d+)+)"
)
_WORLD_PHONE = r"\+\d{1,3}(?:[ .-]?(?:\(\d{1,4}\)|\d{2,4})){2,5}"
_PHONE_EN = (
    rf"(?<![\w.,$€£¥-])(?:{_WORLD_PHONE}|(?:1[-. ])?(?:\(\d{{3}}\) ?|\d{{3}}[-. ])\d{{3}}[-. ]\d{{4}}"
    r"|(?!\d\d0-\d{3}0)\d{3}-\d{4})(?![\w-]|[.,]\d)"  # 500-1000 is a range, 555-1234 a telephone
)
_PHONE_ZH = (
    rf"(?<![\w.,-])(?:{_WORLD_PHONE}|0\d{{2,3}}[- ]\d{{7,8}}|1[3-9]\d[- ]\d{{4}}[- ]\d{{4}}"
    r"|[48]00[- ]\d{3}[- ]\d{4})(?![\d-])"
)
_YEARS = (
    r"(?<![\w.,/$€£¥￥-])(?P<first>(?:1\d|20)\d\d)\s?[-~～]\s?(?P<last>(?:1\d|20)\d\d|\d\d)"
    r"(?![\d/~-]|[.,:]\d|\s?%)"
)
_NOT_YEARS_EN = r"(?!\s?(?:[kcm]?[mg]|people|words|dollars|euros|miles|calories|steps)\b)"
_NOT_YEARS_ZH = r"(?! ?[a-zA-Z㎏㎞\u4e00-\u5e73\u5e75-\u9fff])"  # Han may follow only if it is 年
_DECADE = r"(?<![\w.,])(?P<century>1\d|20)(?P<tens>\d)0'?s\b"
_LONG_NUMBER = r"(?<![\w.,$€£¥￥])(?!\d+000(?!\d))\d{10,}(?!\d|[.,]\d)"
_MONEY_EN = (
    r"(?P<sign>[$€£¥]) ?(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?:\.(?P<small>\d\d))?"
    r"(?![.,]?\d|[a-zA-Z]| ?(?:thousand|[mbt]r?illion)\b)"
)

_KEPT = (_final(BRACES.pattern), _final(r"\[[^\[\]]*\]"))  # phones typed by hand; tags
_REPAIRS = (
    _repair("[０-９％＄＋]", lambda m: chr(ord(m[0]) - 0xFEE0)),
    _repair(r"−(?=\d)|(?<=\d)\s?[–—‑‒]\s?(?=\d)", "-"),
)
_GRAMMAR_TRAPS = _final(r'["\\{}\[\]|]+')  # they escape quotes and choke on braces

_RULES = {
    "en": (
        *_KEPT,
        _Rule(LINKS, read.address_en),
        *_REPAIRS,
        _repair("￥", "¥"),
        _repair(read.CIRCLED + r"(?=[.,;:!?)，。；：！？）]|$)", read.circled),
        _repair(read.CIRCLED + " ?", lambda m: f"{read.circled(m)}, "),
        _final(_VERSION, read.version_en),
        _final(_PHONE_EN, read.phone_en),
        _final(_YEARS + _NOT_YEARS_EN, read.years_en),
        _final(_DECADE, read.decade_en),
        _final(r"(?<![\w/])24/7(?![\w/])", lambda m: "twenty four seven"),
        _final(r"(?<![\w/])50/50(?![\w/])", lambda m: "fifty fifty"),
        _final(r"(?<![\w/])9/11(?![\w/])", lambda m: "nine eleven"),
        _final(_LONG_NUMBER, read.digits_en),
        _repair(r"(?P<number>\d\.\d+)(?P<letter>[KMB])\b", read.scale_en),
        _repair(r"([$€£¥])(\d+(?:\.\d+)?)-(?=\d)", r"\1\2 to \1"),
        _repair(_MONEY_EN, read.money_en),
        _repair(r"(?<![\d.,])1,(?P<rest>\d{3})(?!\d|,\d)", read.thousand_en),
        _repair(r"(?<!\w)#(?=\d)", "number "),
        _repair(r"\b([Nn])o\. ?(?=\d)", r"\1umber "),
        _repair(r"~\s?(?=[\d$€£¥])", "about "),
        _final(r"\b[Nn]o\.|\b[A-Za-z]{2,}(?:\.[A-Za-z]{2,})+\b"),
        _GRAMMAR_TRAPS,
    ),
    "zh": (
        *_KEPT,
        _Rule(LINKS, read.as_typed),
        *_REPAIRS,
        _repair(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d|,\d)", lambda m: m[0].replace(",", "")),
        _repair(read.CIRCLED + "(?=[中和与的或到至、，。！？]|$)", read.circled),
        _repair(read.CIRCLED + " ?", lambda m: f"{read.circled(m)}、"),
        _final(_VERSION, read.version_zh),
        _final(_PHONE_ZH, read.phone_zh),
        _final(_YEARS + _NOT_YEARS_ZH, read.years_zh),
        _final(_DECADE, read.decade_zh),
        _final(_LONG_NUMBER, read.digits_zh),
        _repair(r"%\s?[-~～]\s?(?=\d)", "%到"),
        _repair(r"(?<![\d%])~\s?(?=\d)", "约"),
        _GRAMMAR_TRAPS,
    ),
}
_PIECE = re.compile(  # at most 100 characters: up to the end of a clause, else a blank, else anywhere
    r".{1,100}(?:(?<=[,.;:!?])(?=\s)|(?<=[，。；：！？])|$)|.{1,100}(?=\s)|.{1,100}", re.DOTALL
)
_NEEDS_GRAMMAR = {"en": re.compile(r"[0-9$€£¥%&+=@#°½¼¾©®™§]"), "zh": re.compile(r"[0-9]")}


# ---------------------------------------------------------------- which language a sentence is in

_ENGLISH = frozenset(
    "the of and to is you that it for are with his they at be this have from or one had by but not what "
    "all were we when your can said there each which she how their if will up about out many then them "
    "these some her would like him into has my i he our its who did get been only over new see call".split()
)
_NOT_ENGLISH = frozenset(
    "der das und ist nicht ein eine einen dem den mit für auf von zu ich sie wir ihr auch sich nach bei "
    "bis avec kosten kostet habe uhr le la les des du est et dans pour une un que qui il elle nous vous "
    "sur au aux ce cette pas el los las en por una para del se lo su al da dos um uma não di che gli è "
    "sono de het een voor met zijn och att det som är på av til ikke og jeg na nie jest się ve bir bu "
    "için của là và có những yang dan ini itu cuesta coûte costa hay tengo".split()
)
_FOREIGN_LETTER = re.compile("[ßñ¿¡łřğşőåøæãõđơưçûùàâäčšžțșąęćśźżěýķļņīūē]", re.IGNORECASE)
_SENTENCE = re.compile(r".+?(?:[。！？；!?]+[”’」』\"')）]*|\.(?=\s)|$)\s*", re.DOTALL)
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]+")
_HAN = re.compile("[\u3400-\u9fff\U00020000-\U0003ffff]")
_KANA = re.compile("[\u3041-\u30fa]")


def _is_english(text: str) -> bool:
    """Function words decide; without any (``v2.0``, ``$5``) English is assumed."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    foreign = sum(w in _NOT_ENGLISH or bool(_FOREIGN_LETTER.search(w)) for w in words)
    return foreign <= sum(w in _ENGLISH for w in words)


def _sentence_language(sentence: str, latin: str, japanese: bool) -> str | None:
    """``latin`` is the language of the text's Latin letters. None: no letters."""
    letters = sum(map(str.isalpha, sentence))
    han, words = len(_HAN.findall(sentence)), _LATIN.findall(sentence)
    known = han + sum(map(len, words))
    if not letters:
        return None
    if letters - known > known or (japanese and han >= len(words)):
        return "other"
    return "zh" if han and han >= len(words) else latin


def _languages(text: str) -> list[tuple[str, str]]:
    """Cut into ``(language, run of sentences)``; the language is ``en``, ``zh`` or ``other``."""
    letters_only = BRACES.sub(" ", LINKS.sub(" ", text))
    japanese = len(_KANA.findall(text)) * 8 > len(_HAN.findall(text))
    latin = "en" if _is_english(letters_only) else "other"
    tagged = []
    for sentence in _SENTENCE.findall(text):
        plain = BRACES.sub(" ", LINKS.sub(" ", sentence))
        tagged.append((_sentence_language(plain, latin, japanese), sentence))
    current = next((language for language, _ in tagged if language), "en")
    named = []
    for language, sentence in tagged:  # a sentence without letters follows the one before it
        current = language or current
        named.append((current, sentence))
    return [(language, "".join(s for _, s in run)) for language, run in groupby(named, key=lambda n: n[0])]


# ---------------------------------------------------------------- the grammars

_lock = threading.Lock()
_grammars: dict[str, Callable[[str], str]] = {}


def _require_wetext() -> None:
    try:
        importlib.import_module("wetext")
    except (ImportError, OSError) as error:  # OSError: its compiled part does not fit the machine
        raise TextError(
            f"Normalising needs the package wetext, which cannot be loaded ({error}). "
            "Install it with `pip install wetext`, or turn normalising off."
        ) from error


def _run_grammar(language: str, text: str) -> str:
    """Load on first use. One at a time: the compiled grammars do not promise to be thread-safe."""
    with _lock:
        if language not in _grammars:
            wetext = importlib.import_module("wetext")
            _grammars[language] = wetext.Normalizer(lang=language, operator="tn").normalize
        return _grammars[language](text)


def _read_span(language: str, span: str, failed: list[str]) -> str:
    """One open span through the grammars, in pieces: their time grows faster than the length."""
    if not _NEEDS_GRAMMAR[language].search(span):
        return span
    return "".join(_read_piece(language, piece, failed) for piece in _PIECE.findall(span))


def _read_piece(language: str, piece: str, failed: list[str]) -> str:
    """Blanks at the ends are kept; what the grammars cannot read stays as typed."""
    words = " ".join(piece.split())
    if not _NEEDS_GRAMMAR[language].search(words):
        return piece
    try:
        spoken = _run_grammar(language, words)
    except Exception:  # anything the package raises (it asserts on its input) must not cost the user the text
        spoken = ""
    if not spoken.strip():
        failed.append(words)
        return piece
    before, after = piece[: len(piece) - len(piece.lstrip())], piece[len(piece.rstrip()) :]
    return f"{before}{spoken}{after}"


def _apply(rule: _Rule, spans: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Run one rule over the open spans; ``(text, final)``."""
    result = []
    for text, final in spans:
        if final or not rule.final:
            result.append((text if final else rule.pattern.sub(rule.read, text), final))
            continue
        start = 0
        for match in rule.pattern.finditer(text):
            spoken = rule.read(match)
            if spoken is not None:
                result += [(text[start : match.start()], False), (spoken, True)]
                start = match.end()
        result.append((text[start:], False))
    return result


def _normalize_run(language: str, text: str, failed: list[str]) -> str:
    spans = [(text, False)]
    for rule in _RULES[language]:
        spans = _apply(rule, spans)
    return "".join(span if final else _read_span(language, span, failed) for span, final in spans)


def normalize_with_notes(text: str) -> tuple[str, list[str]]:
    """Write out numbers and symbols; also says in sentences what was changed and what was left.

    Raises:
        TextError: the package ``wetext`` is missing.
    """
    _require_wetext()
    names = {"en": "English", "zh": "Chinese"}
    failed: list[str] = []
    pieces, changed, skipped = [], [], False
    for language, run in _languages(" ".join(text.split())):
        spoken = _normalize_run(language, run, failed) if language in names else run
        skipped |= language not in names and bool(re.search(r"\d", run))
        if spoken != run and names[language] not in changed:
            changed.append(names[language])
        pieces.append(spoken)
    notes = [f"Numbers and symbols are written out ({' and '.join(changed)})."] if changed else []
    if skipped:
        notes.append("Numbers in other languages than English and Chinese are left as they are.")
    notes += [f"“{span[:40]}” could not be normalised; it is spoken as typed." for span in dict.fromkeys(failed)]
    return " ".join("".join(pieces).split()), notes

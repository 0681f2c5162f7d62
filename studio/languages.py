"""What language a text is in, whether the model speaks it, and about how long it takes to say.

Scripts that one language has to itself need no detector, and English is known by its small words. For the others
(Latin, Cyrillic, Arabic, Devanagari) lingua is asked where it is installed; a Latin text it cannot decide, or cannot be
asked about, stays undecided.
"""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

PIP_LINE = "pip install lingua-language-detector==2.1.1"

# The languages of VoxCPM2, from its model card.
LANGUAGES = {
    "ar": "Arabic",
    "my": "Burmese",
    "zh": "Chinese",
    "da": "Danish",
    "nl": "Dutch",
    "en": "English",
    "fi": "Finnish",
    "fr": "French",
    "de": "German",
    "el": "Greek",
    "he": "Hebrew",
    "hi": "Hindi",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "km": "Khmer",
    "ko": "Korean",
    "lo": "Lao",
    "ms": "Malay",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "es": "Spanish",
    "sw": "Swahili",
    "sv": "Swedish",
    "tl": "Tagalog",
    "th": "Thai",
    "tr": "Turkish",
    "vi": "Vietnamese",
}

# Earlier generations were trained on two of them, the embedded model on one.
_FEWER = {"nano": ("en",), "VoxCPM1.5": ("zh", "en"), "VoxCPM-0.5B": ("zh", "en")}

# Seconds that a usual speaker needs for one character of a script, pauses between words included.
_SECONDS = {
    "latin": 0.072,
    "cyrillic": 0.078,
    "greek": 0.075,
    "han": 0.22,
    "kana": 0.135,
    "hangul": 0.18,
    "thai": 0.085,
    "lao": 0.085,
    "khmer": 0.085,
    "myanmar": 0.085,
    "arabic": 0.105,
    "hebrew": 0.105,
    "devanagari": 0.1,
    "other": 0.09,
    "digit": 0.3,
}
_HAN_DIGIT = 0.22  # a digit among Han characters is one syllable
_LONG_STOP, _SHORT_STOP = 0.4, 0.2  # seconds of a pause after a sentence, a clause
_LONG_STOPS, _SHORT_STOPS = frozenset(".!?。！？…؟।"), frozenset(",;:，、；：،—–")
_OWN_SCRIPT = {
    "hangul": "ko",
    "thai": "th",
    "lao": "lo",
    "khmer": "km",
    "myanmar": "my",
    "greek": "el",
    "hebrew": "he",
}
_LIKELY = {"arabic": "ar", "devanagari": "hi", "cyrillic": "ru"}  # when there is no detector
_NAMED_SCRIPTS = ("latin", "cyrillic", "greek", "hangul", "thai", "lao", "khmer", "myanmar", "arabic", "hebrew")
_ENGLISH = frozenset("the and of to that was with his he she you this have are not my from what your would".split())
_ENGLISH_SHARE = 0.18  # of the words: other languages share one or two of them at most
_ENOUGH_LETTERS = 50  # below, the detector's light mode guesses
_SURE = 0.9


@dataclass(frozen=True)
class Language:
    """A language found in a text: ISO 639-1 code, English name, and whether the model speaks it."""

    code: str
    name: str
    spoken: bool


def languages_of(model: str, generation: str) -> frozenset[str]:
    """ISO 639-1 codes of the languages that a model was trained on, by its name and its generation."""
    return frozenset(_FEWER.get(model) or _FEWER.get(generation) or LANGUAGES)


@lru_cache(maxsize=4096)
def script_of(char: str) -> str:
    """latin, cyrillic, han, kana, hangul, ...; "digit"; "other"; "" for marks, signs and spaces."""
    if unicodedata.category(char) == "Nd":
        return "digit"
    if not char.isalpha() and unicodedata.category(char) not in ("Mc", "Mn", "Lo"):
        return ""
    name = unicodedata.name(char, "").lower().removeprefix("fullwidth ").removeprefix("halfwidth ")
    if name.startswith(("cjk ", "ideographic ")) or char == "々":
        return "han"
    if name.startswith(("hiragana", "katakana")):
        return "kana"
    if name.startswith("combining"):
        return ""
    first = name.split(" ", 1)[0]
    return first if first in (*_NAMED_SCRIPTS, "devanagari") else "other"


def scripts(text: str) -> Counter[str]:
    """How many characters of each script; digits count as "digit"."""
    found = Counter(script_of(char) for char in text)
    del found[""]
    return found


def estimate_seconds(text: str) -> float:
    """About how long a usual speaker takes for a text, 0.0 for nothing to say. Good to a third either way."""
    found = scripts(text)
    if not found:
        return 0.0
    digit = _HAN_DIGIT if found["han"] > found["latin"] else _SECONDS["digit"]
    said = sum(count * (digit if script == "digit" else _SECONDS[script]) for script, count in found.items())
    inside = text.strip().rstrip("".join(_LONG_STOPS | _SHORT_STOPS))
    stops = sum(_LONG_STOP * (char in _LONG_STOPS) + _SHORT_STOP * (char in _SHORT_STOPS) for char in inside)
    return said + stops


def available() -> tuple[bool, str]:
    """Whether lingua is installed, and otherwise the line that installs it."""
    return (True, "") if importlib.util.find_spec("lingua") else (False, PIP_LINE)


def detect_language(text: str) -> Language | None:
    """The language of a text, None when it is too short or undecided."""
    found = scripts(text)
    del found["digit"]
    letters = sum(found.values())
    if not letters:
        return None
    if found["kana"] and found["kana"] + found["han"] > letters / 2:
        return _language("ja")
    script = found.most_common(1)[0][0]
    if script == "han":
        return _language("zh")
    if script in _OWN_SCRIPT:
        return _language(_OWN_SCRIPT[script])
    if script == "latin" and _is_english(text):
        return _language("en")
    code = _ask_lingua(text) if letters >= _ENOUGH_LETTERS and available()[0] else _LIKELY.get(script, "")
    return _language(code) if code else None


def _language(code: str) -> Language:
    code = "no" if code in ("nb", "nn") else code
    return Language(code, LANGUAGES.get(code) or _lingua_name(code), code in LANGUAGES)


def _is_english(text: str) -> bool:
    words = re.findall(r"[a-z']+", text.lower())
    known = sum(word in _ENGLISH for word in words)
    return text.isascii() and known >= 2 and known >= _ENGLISH_SHARE * len(words)


def _ask_lingua(text: str) -> str:
    detector, names = _lingua()
    best = detector.compute_language_confidence_values(text[:600])[0]
    return names[best.language.name][0] if best.value >= _SURE else ""


def _lingua_name(code: str) -> str:
    return next((name for known, name in _lingua()[1].values() if known == code), code)


@lru_cache(maxsize=1)
def _lingua() -> tuple[Any, dict[str, tuple[str, str]]]:
    """The detector and, by lingua's name, each language's ISO 639-1 code and name in plain English.

    Its light mode takes 1 s and 70 MB; the full one 20 s and 900 MB, for the same verdict on a sentence or more.
    """
    from lingua import Language as Known
    from lingua import LanguageDetectorBuilder

    names = {one.name: (one.iso_code_639_1.name.lower(), one.name.capitalize()) for one in Known.all()}
    return LanguageDetectorBuilder.from_all_languages().with_low_accuracy_mode().build(), names

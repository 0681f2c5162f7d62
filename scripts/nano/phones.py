"""nano's 40 phones, and words spelt in them: from the checkpoint's lexicon, or from the phonemes a teacher was given.

A phone is (name, stressed): ``("ah", True)``. In text it is one private-use character, as the tokenizer knows it.
"""

from __future__ import annotations

import gzip
import re
from functools import cache
from pathlib import Path

from voxcpm_core.training.alignment import PHONES, VOWELS

Phone = tuple[str, bool]

NAMES = tuple(PHONES)
PLAIN, STRESSED = 0xE000, 0xE040  # first private-use character of each row of the tokenizer

WORD = re.compile(r"[A-Za-z']+")
LEXICON = Path(__file__).resolve().parents[2] / "assets" / "nano" / "lexicon.txt.gz"

# The alphabet of the Kokoro family's phonemiser (misaki), American and British. Long marks are dropped beforehand.
_MISAKI = {
    "əɹ": "er", "ɜɹ": "er", "ɜ": "er", "A": "ey", "I": "ay", "O": "ow", "Q": "ow", "W": "aw", "Y": "oy",
    "ɑ": "aa", "ɒ": "aa", "æ": "ae", "a": "ae", "ʌ": "ah", "ɔ": "ao", "ə": "ax", "ɐ": "ax", "ᵊ": "ax",
    "ɛ": "eh", "ɪ": "ih", "ᵻ": "ih", "i": "iy", "ʊ": "uh", "u": "uw",
    "b": "b", "ʧ": "ch", "d": "d", "ð": "dh", "f": "f", "ɡ": "g", "h": "hh", "ʤ": "jh", "k": "k", "l": "l", "m": "m",
    "n": "n", "ŋ": "ng", "p": "p", "ɹ": "r", "s": "s", "ʃ": "sh", "t": "t", "T": "t", "ɾ": "t", "θ": "th", "v": "v",
    "w": "w", "j": "y", "z": "z", "ʒ": "zh",
}  # fmt: skip


def character(phone: Phone) -> str:
    """The private-use character of ``phone``; only vowels have a stressed form."""
    name, stressed = phone
    return chr((STRESSED if stressed and name in VOWELS else PLAIN) + PHONES[name])


def from_characters(text: str) -> list[Phone]:
    return [(NAMES[(ord(c) - PLAIN) % (STRESSED - PLAIN)], ord(c) >= STRESSED) for c in text]


@cache
def lexicon(path: Path = LEXICON) -> dict[str, list[Phone]]:
    """Word in lower case -> its phones, as the model will read it when it speaks."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        pairs = (line.rstrip("\n").split("\t") for line in file)
        return {word: from_characters(spelling) for word, spelling in pairs}


def from_misaki(word: str) -> list[Phone]:
    """Phones of one word of misaki's alphabet; punctuation is passed over. Raises KeyError for an unknown symbol."""
    phones: list[Phone] = []
    stressed, at, word = False, 0, re.sub(r"[ː.,;:?!\"“”—…()]", "", word)
    while at < len(word):
        if word[at] in "ˈˌ":
            stressed, at = True, at + 1
            continue
        size = 2 if word[at : at + 2] in _MISAKI else 1
        name = _MISAKI[word[at : at + size]]
        phones.append((name, stressed and name in VOWELS))
        stressed = stressed and name not in VOWELS  # the mark stands before its syllable and holds to the first vowel
        at += size
    return phones


def spell(spoken: str, phonemes: str) -> list[tuple[str, list[Phone]]] | None:
    """Words of ``spoken`` (letters and apostrophes) with their phones; None when a word can be found nowhere.

    The lexicon comes first, because it is what the model reads later. Other words take the teacher's ``phonemes``, when
    its words can be matched one to one.
    """
    written, sounded = spoken.split(), phonemes.split()
    pairs = zip(written, sounded, strict=True) if len(written) == len(sounded) else ((w, "") for w in written)
    found = []
    for token, sound in pairs:
        words = [word for word in WORD.findall(token) if word.strip("'")]
        for word in words:
            phones = lexicon().get(word.lower())
            if phones is None and len(words) == 1 and sound:
                phones = from_misaki(sound)
            if not phones:
                return None
            found.append((word.lower(), phones))
    return found or None

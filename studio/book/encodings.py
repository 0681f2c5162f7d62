"""Bytes of a text file -> characters, or a sentence why they are none."""

from __future__ import annotations

import codecs
import re
import unicodedata

from studio.book.errors import ImportingError

_BOMS = [
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]
_SAMPLE = 200_000  # bytes that are enough to tell an encoding
_ODD = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_EUROPE = "àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿœšžßÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜŒŠŽ£€¥©®°±²³½¼¾§¶·«»¡¿ªº´¨¸¹×÷…—–‘’“”„‚•†‡‰‹›™"


def decode(data: bytes, name: str = "The file") -> tuple[str, str]:
    """(text, encoding): UTF-8 with or without mark, UTF-16 and UTF-32, GB18030, Big5, Shift JIS or Windows-1252.

    Raises ImportingError when the bytes are no text.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _decoded(data, encoding, name), encoding
    try:
        return _checked(data.decode("utf-8"), name), "utf-8"
    except UnicodeDecodeError:
        pass
    encoding = _unmarked_utf16(data) or _best_of_old(data)
    if encoding is None:
        raise ImportingError(
            f"{name} is not a text file, or its encoding is not known. Save it as UTF-8 and try again."
        )
    return _decoded(data, encoding, name), encoding


def _decoded(data: bytes, encoding: str, name: str) -> str:
    try:
        return _checked(data.decode(encoding), name)
    except (UnicodeDecodeError, UnicodeError) as error:
        raise ImportingError(
            f"{name} begins like {encoding.upper()} text but is damaged ({error}). Save it as UTF-8 and try again."
        ) from error


def _checked(text: str, name: str) -> str:
    sample = text[:_SAMPLE]
    if len(_ODD.findall(sample)) > max(2, len(sample) // 1000):
        raise ImportingError(f"{name} is not a text file: it holds control characters. Choose a TXT, MD, EPUB or DOCX.")
    return text


def _unmarked_utf16(data: bytes) -> str | None:
    """Every second byte is zero in Latin text without a byte order mark."""
    sample = data[:_SAMPLE]
    if len(sample) < 4:
        return None
    half = len(sample) / 2
    even, odd = sample[0::2].count(0) / half, sample[1::2].count(0) / half
    if odd > 0.3 > even:
        return "utf-16-le"
    return "utf-16-be" if even > 0.3 > odd else None


def _best_of_old(data: bytes) -> str | None:
    """The encoding of before Unicode in which the text reads most like text."""
    sample = data[:_SAMPLE]
    scored = []
    for encoding in ("gb18030", "big5", "shift_jis", "cp1252"):
        decoder = codecs.getincrementaldecoder(encoding)()  # a sample may end in the middle of a character
        try:
            text = decoder.decode(sample)
            data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if not _ODD.search(text):
            scored.append((_likeness(text), encoding))
    best = max(scored, default=(-1.0, None), key=lambda found: found[0])
    return best[1] if best[0] > 0 else None


def _likeness(text: str) -> float:
    """Share of the characters beyond ASCII that texts in these encodings really use, common ones counted more."""
    beyond = [char for char in text if ord(char) > 0x7F]
    if not beyond:
        return 0.0
    return sum(map(_weight, beyond)) / len(beyond)


def _weight(char: str) -> float:
    if char in _COMMON:
        return 3.0
    if char in "，。、：；？！“”‘’（）《》「」『』…—　":
        return 2.5
    if char in _EUROPE:
        return 0.9
    if "\u3040" <= char <= "\u30ff":
        return 1.5
    if "\u4e00" <= char <= "\u9fff":
        return 0.6
    return -1.0 if unicodedata.category(char) in ("Co", "Cn", "Cc") else 0.0


# The characters that every page of Chinese and Japanese is full of, in both ways of writing.
_COMMON = frozenset(
    "的一是不了人在有我他这這个個们們来來到时時大地为為子中你说說生国國年着就那和要她出也得里裡后後自以会會家可下而过過天去能对對小多然"
    "于於心学學么麼之都好看起发發当當没沒成只如事把还還用第样樣道想作种種开開手头頭面日本気のはをにがとたしている"
)

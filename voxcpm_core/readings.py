"""How a matched piece of text is read aloud, in English (``_en``) and Chinese (``_zh``).

Each reader takes the match of one rule of the normaliser and returns the words, or None when the match is not
what it looked like and should be left to the next rule.
"""

import re
from collections.abc import Callable

Match = re.Match[str]
Reader = Callable[[Match], str | None]

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_HAN_DIGITS = "零一二三四五六七八九"
_ADDRESS_WORDS = {
    ".": "dot", "/": "slash", "@": "at", "-": "dash", "_": "underscore", "=": "equals", "?": "question mark",
    "&": "and", "#": "hash", "%": "percent", ":": "colon", "+": "plus", "~": "tilde",
}  # fmt: skip
_SCALES = {"K": "thousand", "M": "million", "B": "billion"}
_MONEY = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "¥": ("yen", "yen", "sen", "sen"),
}
# runs of numbers in circles, in brackets or with a dot: first and last code point, what the first means
_CIRCLED_RUNS = (
    (0x2460, 0x2473, 1), (0x2474, 0x2487, 1), (0x2488, 0x249B, 1), (0x24EA, 0x24EA, 0), (0x24EB, 0x24F4, 11),
    (0x24F5, 0x24FE, 1), (0x2776, 0x277F, 1), (0x2780, 0x2789, 1), (0x278A, 0x2793, 1), (0x3251, 0x325F, 21),
    (0x32B1, 0x32BF, 36),
)  # fmt: skip
CIRCLED = "[" + "".join(f"{chr(first)}-{chr(last)}" for first, last, _ in _CIRCLED_RUNS) + "]"


def as_typed(match: Match) -> str:
    return match[0]


def _below_hundred_en(number: int) -> str:
    if number < 20:
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f" {_ONES[ones]}" if ones else "")


def _below_hundred_zh(number: int) -> str:
    tens, ones = divmod(number, 10)
    if tens == 0:
        return _HAN_DIGITS[ones]
    return ("" if tens == 1 else _HAN_DIGITS[tens]) + "十" + (_HAN_DIGITS[ones] if ones else "")


def _digits_en(digits: str) -> str:
    return " ".join(_ONES[int(d)] for d in digits)


def _digits_zh(digits: str, one: str = "一") -> str:
    return "".join(one if d == "1" else _HAN_DIGITS[int(d)] for d in digits)


def _year_en(year: int) -> str:
    century, rest = divmod(year, 100)
    if century == 20 and rest < 10:
        return "two thousand" + (f" {_ONES[rest]}" if rest else "")
    tail = "hundred" if rest == 0 else f"oh {_ONES[rest]}" if rest < 10 else _below_hundred_en(rest)
    return f"{_below_hundred_en(century)} {tail}"


def digits_en(match: Match) -> str:
    return _digits_en(match[0])


def digits_zh(match: Match) -> str:
    return _digits_zh(match[0], one="幺")


def address_en(match: Match) -> str:
    """``me@b.example`` -> ``me at b dot example``; the scheme of a web address is not spoken."""
    address = re.sub(r"^https?://", "", match[0], flags=re.IGNORECASE).rstrip("/")
    pieces = re.findall(r"[A-Za-z]+|[0-9]+|.", address)
    return " ".join(_digits_en(p) if p.isdigit() else _ADDRESS_WORDS.get(p, p) for p in pieces)


def version_en(match: Match) -> str:
    """``v2.0.3`` -> ``v two point zero point three``; long parts digit by digit (IP addresses)."""
    parts = match["number"].split(".")
    words = [_below_hundred_en(int(p)) if len(p) < 3 else _digits_en(p) for p in parts]
    return (f"{match['letter']} " if match["letter"] else "") + " point ".join(words)


def version_zh(match: Match) -> str:
    parts = match["number"].split(".")
    words = [_below_hundred_zh(int(p)) if len(p) < 3 else _digits_zh(p) for p in parts]
    return (match["letter"] or "") + "点".join(words)


def phone_en(match: Match) -> str:
    plus = "plus " if match[0].startswith("+") else ""
    return plus + ", ".join(_digits_en(group) for group in re.findall("[0-9]+", match[0]))


def phone_zh(match: Match) -> str:
    plus = "加" if match[0].startswith("+") else ""
    return plus + "，".join(_digits_zh(group, one="幺") for group in re.findall("[0-9]+", match[0]))


def _ascending(match: Match) -> bool:
    """A range of years goes up (``1914-1918``, ``1914-18``); anything else is a sum, a score or a number."""
    first, last = match["first"], match["last"]
    return int(last) > int(first if len(last) == 4 else first[2:])


def years_en(match: Match) -> str | None:
    last = int(match["last"])
    spoken = _year_en(last) if last > 99 else _below_hundred_en(last)
    return f"{_year_en(int(match['first']))} to {spoken}" if _ascending(match) else None


def years_zh(match: Match) -> str | None:
    return f"{_digits_zh(match['first'])}到{_digits_zh(match['last'])}" if _ascending(match) else None


def decade_en(match: Match) -> str:
    century, tens = int(match["century"]), int(match["tens"])
    if tens > 1:
        return f"{_below_hundred_en(century)} {_TENS[tens - 2][:-1]}ies"
    if tens == 1:
        return f"{_below_hundred_en(century)} tens"
    return "two thousands" if century == 20 else f"{_below_hundred_en(century)} hundreds"


def decade_zh(match: Match) -> str:
    return f"{_digits_zh(match['century'] + match['tens'])}零年代"


def circled(match: Match) -> str:
    """The plain number: ``③`` -> ``3``."""
    code = ord(match[0][0])
    return str(next(value + code - first for first, last, value in _CIRCLED_RUNS if first <= code <= last))


def _amount_en(number: int) -> str:
    """What the grammar reads well: it says ``1000 dollars`` as ten hundred, ``1,000`` without the one."""
    if 1000 <= number < 2000:
        return "one thousand" + (f" {number - 1000}" if number > 1000 else "")
    return f"{number:,}"


def thousand_en(match: Match) -> str:
    return _amount_en(1000 + int(match["rest"]))


def money_en(match: Match) -> str:
    """``$3.50`` -> ``3 dollars and 50 cents``; the numbers themselves are left to the grammar."""
    whole, small = int(match["whole"].replace(",", "")), int(match["small"] or 0)
    unit, units, coin, coins = _MONEY[match["sign"]]
    words = [f"{_amount_en(whole)} {unit if whole == 1 else units}"] if whole or not small else []
    words += [f"{small} {coin if small == 1 else coins}"] if small else []
    return " and ".join(words)


def scale_en(match: Match) -> str:
    """``1.5M`` -> ``1.5 million``."""
    return f"{match['number']} {_SCALES[match['letter']]}"

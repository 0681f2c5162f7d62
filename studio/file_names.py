"""Names for files that every system takes, made from titles in any language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

LONGEST = 100  # bytes of UTF-8: room for a number, a suffix and a temporary name below the usual 255
_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # devices on Windows


def safe_name(title: str, fallback: str = "untitled") -> str:
    """A title as a file name without suffix: nothing forbidden, hidden, reserved, too long or ending in a dot."""
    name = unicodedata.normalize("NFC", title.encode("utf-8", "ignore").decode())
    name = " ".join(_FORBIDDEN.sub(" ", name).split()).lstrip(". ")
    name = name.encode()[:LONGEST].decode("utf-8", "ignore").rstrip(". ")
    if _RESERVED.fullmatch(name):
        name = f"_{name}"
    return name or fallback


def unique_names(names: Iterable[str]) -> list[str]:
    """The same names; one that occurs again (also in other capitals, as some systems see it) gets a number."""
    seen: set[str] = set()
    result = []
    for name in names:
        chosen, number = name, 2
        while chosen.casefold() in seen:
            chosen, number = f"{name} ({number})", number + 1
        seen.add(chosen.casefold())
        result.append(chosen)
    return result

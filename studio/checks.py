"""One line of a check card: what was looked at, what was found, and what to do about it.

The sentence in ``advice`` is English. A page in another language looks up ``check_<name>_<verdict>`` and fills in
``facts``; so a name and a verdict together always mean the same sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

Verdict = Literal["ok", "warn", "fail"]
VERDICTS: tuple[Verdict, ...] = ("ok", "warn", "fail")  # from good to bad


@dataclass(frozen=True)
class Check:
    """``value`` is short and for the eye ("3.2 s", "-41 dB"); ``facts`` are its numbers and words, JSON-able."""

    name: str
    value: str
    verdict: Verdict
    advice: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For a recipe; :meth:`from_dict` reads it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Check:
        """Fields that this version does not know are left out."""
        return cls(**{f.name: found[f.name] for f in fields(cls) if f.name in found})


def worst(checks: Iterable[Check]) -> Verdict:
    """The worst verdict of all; "ok" for no checks."""
    return max((check.verdict for check in checks), key=VERDICTS.index, default="ok")

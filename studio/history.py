"""Questions about every take ever made: search, filters, pages, and what there is to filter by."""

from __future__ import annotations

from dataclasses import dataclass

from studio.search import matching
from studio.store import Store
from studio.takes import TakeRecord, readable

PAGE = 20


@dataclass(frozen=True)
class Filter:
    """What takes must have; an empty field asks for nothing.

    ``since`` and ``until`` are moments as takes write them (UTC, ISO 8601) or the first part of one: "2026-05" is the
    whole month, to its end in ``until``.
    """

    query: str = ""
    tab: str = ""
    voice: str = ""  # id of a saved voice
    model: str = ""
    ended_by: str = ""
    verdict: str = ""  # "ok" | "warn" | "fail"
    group: str = ""
    control: str = ""  # the exact description
    starred: bool = False
    picked: bool = False
    least_rating: int = 0
    since: str = ""
    until: str = ""


@dataclass(frozen=True)
class Page:
    """Some of the takes that were found, and how many there are in all."""

    takes: list[TakeRecord]
    count: int

    def has_more(self, offset: int = 0) -> bool:
        return offset + len(self.takes) < self.count


class History:
    """``session=None`` sees everything, a session's name only its own. Raises StoreError like the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def page(
        self, wanted: Filter | None = None, limit: int = PAGE, offset: int = 0, session: str | None = None
    ) -> Page:
        """Takes, the newest first, and their number."""
        condition, values = _condition(wanted or Filter())
        count = self._store.count_where(condition, values, session)
        return Page(self._store.select(condition, values, session, limit, offset), count)

    def count(self, wanted: Filter | None = None, session: str | None = None) -> int:
        return self._store.count_where(*_condition(wanted or Filter()), session)

    def group(self, group: str, session: str | None = None) -> list[TakeRecord]:
        """The takes of one request, in the order in which they were made."""
        return self.page(Filter(group=group), limit=1000, session=session).takes[::-1] if group else []

    def choices(self, session: str | None = None) -> dict[str, list[str]]:
        """What there is to filter by: the values of "tab", "voice", "model", "ended_by" and "verdict"."""
        owner, values = ("", []) if session is None else (" AND session = ?", [session])
        found = {}
        for column in ("tab", "voice", "model", "ended_by", "verdict"):
            sql = f"SELECT DISTINCT {column} FROM takes WHERE deleted = '' AND {column} != ''{owner} ORDER BY 1"
            found[column] = [value for (value,) in self._store.database.read(sql, values)]
        return found


def _condition(wanted: Filter) -> tuple[str, list]:
    text, values = matching(wanted.query)
    conditions = [text] if text else []
    equal = {
        "tab": wanted.tab,
        "voice": wanted.voice,
        "model": wanted.model,
        "ended_by": wanted.ended_by,
        "verdict": wanted.verdict,
        "grouping": wanted.group,
        "control": wanted.control,
    }
    for column, value in equal.items():
        if value:
            conditions.append(f"{column} = ?")
            values.append(readable(value))
    conditions += ["starred = 1"] * wanted.starred + ["picked = 1"] * wanted.picked
    if wanted.least_rating > 0:
        conditions.append("rating >= ?")
        values.append(wanted.least_rating)
    if wanted.since:
        conditions.append("created >= ?")
        values.append(readable(wanted.since))
    if wanted.until:  # "~" comes after everything that a moment is written with
        conditions.append("created <= ?")
        values.append(readable(wanted.until) + "~")
    return " AND ".join(conditions), values

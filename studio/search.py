"""What somebody types into a search box, as an SQL condition on takes."""

from __future__ import annotations

import unicodedata

from studio.takes import readable

SEARCH_WORDS = 32  # words of a search that count; SQLite refuses conditions without end
SEARCH_CHARACTERS = 2000
TRIGRAM = 3  # the index knows pieces of this length; shorter words are looked for in the rows


def matching(query: str) -> tuple[str, list]:
    """Condition and values for takes with every word of ``query`` in the spoken text or the control; "" for no word.

    A part of a word is enough, in any script. Nothing in a query is an operator: ``"``, ``*``, ``NEAR(`` and ``%`` are
    looked for as they are.
    """
    conditions, values = [], []
    words = words_of(query)
    indexed = [word for word in words if len(word) >= TRIGRAM]
    if indexed:
        conditions.append("number IN (SELECT rowid FROM take_words WHERE take_words MATCH ?)")
        values.append(" AND ".join('"' + word.replace('"', '""') + '"' for word in indexed))
    for word in words:
        if len(word) < TRIGRAM:
            pattern = like(word)
            conditions.append("(spoken_text LIKE ? ESCAPE '\\' OR control LIKE ? ESCAPE '\\')")
            values += [pattern, pattern]
    return " AND ".join(conditions), values


def like(part: str) -> str:
    """A pattern for ``LIKE ? ESCAPE '\\'`` that finds ``part`` anywhere."""
    return "%" + part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"


def words_of(query: str) -> list[str]:
    """The words of a query that count."""
    composed = unicodedata.normalize("NFC", readable(query[:SEARCH_CHARACTERS]))  # as what is stored
    printable = "".join(c if c.isprintable() else " " for c in composed)
    return printable.split()[:SEARCH_WORDS]

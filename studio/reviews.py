"""What people think of takes: stars, a mark, a note, and which take of a group was picked.

Rows of their own that point at takes; a take itself is never edited.
"""

from __future__ import annotations

from dataclasses import dataclass

from studio.store import Store, StoreError
from studio.takes import TakeRecord, readable, utc_text

NOTE_CHARACTERS = 2000
MOST_STARS = 5


@dataclass(frozen=True)
class SeedScore:
    """How a seed did. ``score`` is 0 for a seed nobody said anything about, positive for a liked one."""

    seed: int
    takes: int
    picked: int
    starred: int
    rating: float  # mean of the takes that have stars, 0.0 without any
    score: float


class Reviews:
    """``session=None`` may review every take, a session's name only its own. Raises StoreError like the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def rate(self, take_id: str, rating: int, session: str | None = None) -> TakeRecord:
        """Give a take 0 (none) to 5 stars."""
        if rating not in range(MOST_STARS + 1):
            raise StoreError(f"A rating is 0 to {MOST_STARS} stars, not {rating!r}.")
        return self._write(take_id, session, "rating", int(rating))

    def star(self, take_id: str, starred: bool = True, session: str | None = None) -> TakeRecord:
        """Mark a take, or take the mark off."""
        return self._write(take_id, session, "starred", int(bool(starred)))

    def note(self, take_id: str, note: str, session: str | None = None) -> TakeRecord:
        """Write a note at a take; "" removes it."""
        note = readable(note or "").replace("\0", "").strip()
        if len(note) > NOTE_CHARACTERS:
            raise StoreError(f"The note has {len(note)} characters; {NOTE_CHARACTERS} is the most. Shorten it.")
        return self._write(take_id, session, "note", note)

    def pick(self, take_id: str, picked: bool = True, session: str | None = None) -> TakeRecord:
        """Choose a take; what was picked of its group before no longer is."""
        return self._write(take_id, session, "picked", int(bool(picked)))

    def seeds_for(
        self, voice: str = "", description: str = "", session: str | None = None, limit: int = 20
    ) -> list[SeedScore]:
        """Which seeds did well with a saved voice (its id), or with a description (its exact words); the best first.

        A take counts 2 when it was picked, 2 when starred, and its stars above (or below) three. A seed's score is the
        sum over its takes divided by one more than there are, so that one lucky take does not beat three good ones.
        """
        if not voice and not description:
            return []
        conditions = [("voice = ?", voice), ("control = ?", description), ("session = ?", session)]
        asked = [(condition, readable(value)) for condition, value in conditions if value]
        sql = f"""SELECT CAST(json_extract(recipe, '$.seed') AS INTEGER) AS seed, count(*),
                sum(coalesce(picked, 0)), sum(coalesce(starred, 0)), coalesce(avg(nullif(rating, 0)), 0.0),
                sum(2 * coalesce(picked, 0) + 2 * coalesce(starred, 0) + coalesce(nullif(rating, 0) - 3, 0))
                    / (count(*) + 1.0) AS score
            FROM takes LEFT JOIN ratings ON take_id = takes.id
            WHERE deleted = '' AND {" AND ".join(condition for condition, _ in asked)}
            GROUP BY seed ORDER BY score DESC, count(*) DESC, seed LIMIT ?"""
        values = [value for _, value in asked]
        return [SeedScore(*row) for row in self._store.database.read(sql, [*values, min(max(limit, 0), 1000)])]

    def _write(self, take_id: str, session: str | None, column: str, value: int | str) -> TakeRecord:
        take = self._store.take(take_id, session)
        with self._store.database.changing("The review") as db:
            if column == "picked" and value and take.group:
                db.execute(
                    "UPDATE ratings SET picked = 0 WHERE take_id IN "
                    "(SELECT id FROM takes WHERE grouping = ? AND session = ?)",
                    (take.group, take.session),
                )
            db.execute(
                "INSERT INTO ratings (take_id, rating, changed) VALUES (?, 0, '') ON CONFLICT DO NOTHING", (take.id,)
            )
            changed = (value, utc_text(), take.id)
            db.execute(f"UPDATE ratings SET {column} = ?, changed = ? WHERE take_id = ?", changed)
        return self._store.take(take_id, session)

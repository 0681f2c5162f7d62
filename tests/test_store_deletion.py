"""Deleted takes can be brought back for a while; then they are gone with everything that belonged to them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from studio.reviews import Reviews
from studio.store import UNDO_DAYS, Store, StoreError
from studio.takes import utc_text
from tests.records import TONE, make_record


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def days_later(store: Store, take_id: str, days: float) -> None:
    """As if the take had been deleted ``days`` ago."""
    moment = utc_text(datetime.now(timezone.utc) - timedelta(days=days))
    store.database.execute("UPDATE takes SET deleted = ? WHERE id = ?", (moment, take_id))


def test_a_deleted_take_is_in_no_list_and_can_be_brought_back(store: Store) -> None:
    saved, kept = store.save_take(make_record(), TONE), store.save_take(make_record(spoken_text="river"), TONE)
    store.delete_take(saved.id)
    assert store.takes() == [kept] and store.count() == 1 and store.takes(query="hello") == []
    for ask in (store.take, store.audio_path, store.delete_take):
        with pytest.raises(StoreError, match="There is no take"):
            ask(saved.id)
    assert store.undo_delete(saved.id) == saved
    assert store.takes() == [kept, saved] and store.audio_path(saved.id).is_file()
    assert store.undo_delete(saved.id) == saved  # nothing to undo is no fault


def test_nobody_brings_back_the_take_of_another(store: Store) -> None:
    saved = store.save_take(make_record(session="a"), TONE)
    store.delete_take(saved.id, session="a")
    with pytest.raises(StoreError, match="There is no take"):
        store.undo_delete(saved.id, session="b")
    assert store.takes() == []
    assert store.undo_delete(saved.id, session="a") == saved


@pytest.mark.parametrize("later", ["the next deletion", "the next start"])
def test_what_was_deleted_long_ago_is_gone_with_file_and_rating(store: Store, later: str) -> None:
    old, young, kept = (store.save_take(make_record(), TONE) for _ in range(3))
    Reviews(store).rate(old.id, 3)
    for take, days in [(old, UNDO_DAYS + 0.01), (young, UNDO_DAYS - 0.01)]:
        store.delete_take(take.id)
        days_later(store, take.id, days)
    if later == "the next start":
        Store(store.data_dir).close()
    else:
        store.delete_take(kept.id)
        store.undo_delete(kept.id)
    assert {path.stem for path in store.takes_dir.iterdir()} == {young.id, kept.id}
    assert store.undo_delete(young.id) == young
    with pytest.raises(StoreError, match="There is no take"):
        store.undo_delete(old.id)
    assert store.database.read("SELECT count(*) FROM ratings") == [(0,)]

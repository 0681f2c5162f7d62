"""Data folders of earlier versions open with all their takes, and everything new works on them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.history import Filter, History
from studio.migrations import MIGRATIONS
from studio.reviews import Reviews
from studio.store import Store
from studio.takes import BESIDE_THE_RECIPE, TakeRecord, new_take_id
from tests.records import TONE
from voxcpm_core.audio import wav_bytes

# A recipe as 0.1.0 wrote it, field by field.
OLD_RECIPE = {
    "id": "", "created": "2026-01-02T03:04:05.678Z", "tab": "tts", "typed_text": "Old  words", "typed_control": "calm",
    "normalize": True, "spoken_text": "Old words", "control": "calm", "notes": ["Two blanks became one."],
    "mode": "design", "voice": "", "reference_hash": "", "reference_name": "", "prompt_hash": "", "prompt_name": "",
    "prompt_text": "", "seed": 4294967295, "attempt": 0, "cfg_value": 2.0, "inference_timesteps": 10,
    "temperature": 1.0, "min_len": 2, "max_len": 4096, "model_id": "nano", "generation": "VoxCPM2",
    "weights_hash": "e0da2e0ab6fa0829", "lora_hash": "", "lora_name": "", "device": "cpu", "dtype": "float32",
    "versions": {"voxcpm_core": "0.1.0", "torch": "2.9"}, "sample_rate": 48000, "seconds": 0.1, "patches": 1,
    "ended_by": "limit", "message": "Ended at its limit.", "generation_seconds": 0.1, "first_audio_seconds": None,
    "file_name": "", "file_hash": "ab" * 32,
}  # fmt: skip


def old_folder(folder: Path, steps: int, sessions: list[str]) -> list[str]:
    """A data folder after the first ``steps`` migrations, with a take per session and stars where they existed."""
    (folder / "takes").mkdir(parents=True)
    db = sqlite3.connect(folder / "studio.sqlite3")
    db.execute("CREATE TABLE migrations (name TEXT PRIMARY KEY, applied TEXT NOT NULL)")
    for name, step in MIGRATIONS[:steps]:
        step(db)
        db.execute("INSERT INTO migrations VALUES (?, '2026-01-01')", (name,))
    ids = []
    for session in sessions:
        take_id = new_take_id()
        recipe = {**OLD_RECIPE, "id": take_id, "file_name": f"{take_id}.wav"}
        db.execute(
            "INSERT INTO takes (id, created, session, spoken_text, control, recipe) VALUES (?, ?, ?, ?, ?, ?)",
            (take_id, recipe["created"], session, "Old words", "calm", json.dumps(recipe)),
        )
        if steps > 1:
            db.execute("INSERT INTO ratings (take_id, rating, changed) VALUES (?, 4, '2026-01-01')", (take_id,))
        (folder / "takes" / f"{take_id}.wav").write_bytes(wav_bytes(TONE, 48_000))
        ids.append(take_id)
    db.commit()
    db.close()
    return ids


@pytest.fixture(params=[1, 2, 3], ids=["takes only", "with ratings", "0.1.0"])
def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, list[str], int]]:
    ids = old_folder(tmp_path, request.param, ["local", "local"])
    store = Store(tmp_path)
    yield store, ids, 4 if request.param > 1 else 0
    store.close()


def test_every_take_and_rating_is_still_there(upgraded) -> None:
    store, ids, stars = upgraded
    assert [take.id for take in store.takes()] == ids[::-1]
    take = store.take(ids[0])
    assert (take.spoken_text, take.seed, take.ended_by, take.rating) == ("Old words", 2**32 - 1, "limit", stars)
    assert (take.notes, take.versions) == (("Two blanks became one.",), {"voxcpm_core": "0.1.0", "torch": "2.9"})
    assert (take.group, take.batch, take.checks, take.verdict, take.loudness) == ("", (), (), "", None)
    assert store.audio_path(ids[0]).read_bytes() == wav_bytes(TONE, 48_000)


def test_what_is_new_works_on_old_takes(upgraded) -> None:
    store, ids, stars = upgraded
    history, reviews = History(store), Reviews(store)
    assert history.page(Filter(query="ld wor", tab="tts", model="nano", ended_by="limit")).count == 2
    assert history.page(Filter(verdict="ok")).count == 0
    reviews.pick(ids[0])
    reviews.star(ids[1])
    assert [take.picked for take in store.takes()] == [False, True]  # without a group each is picked for itself
    assert reviews.pick(ids[1]).picked and store.take(ids[0]).picked
    assert store.take(ids[0]).rating == stars
    store.delete_take(ids[0])
    assert store.undo_delete(ids[0]).id == ids[0]


def test_an_upgrade_is_made_once(tmp_path: Path) -> None:
    old_folder(tmp_path, 3, ["local"])
    for _ in range(2):
        Store(tmp_path).close()
    db = sqlite3.connect(tmp_path / "studio.sqlite3")
    applied = [name for (name,) in db.execute("SELECT name FROM migrations ORDER BY rowid")]
    db.close()
    assert applied == [name for name, _ in MIGRATIONS]


def test_a_recipe_has_all_fields_of_the_old_one() -> None:
    assert set(OLD_RECIPE) <= set(TakeRecord.__dataclass_fields__) - BESIDE_THE_RECIPE
    assert TakeRecord.from_recipe(OLD_RECIPE).recipe().items() >= OLD_RECIPE.items()

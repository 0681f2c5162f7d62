"""Chosen takes in a zip: sound, a table for spreadsheets, recipes in full."""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from studio.export_takes import COLUMNS, MOST_TAKES, export_takes, marked_wav
from studio.files import read_pcm
from studio.provenance import read_comment, was_made_here
from studio.reviews import Reviews
from studio.store import Store, StoreError
from studio.takes import TakeRecord
from tests.recordings import ffprobe
from tests.records import TONE, make_record


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "data")
    yield opened
    opened.close()


def table(archive: zipfile.ZipFile) -> list[dict[str, str]]:
    data = archive.read("recipes.csv")
    assert data.startswith("\ufeff".encode())
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))


def test_a_zip_holds_sound_table_and_recipes(store: Store, tmp_path: Path) -> None:
    first = store.save_take(make_record(spoken_text="Good morning, 世界!", seed=7), TONE)
    second = store.save_take(make_record(spoken_text='a, "b"\nc', group="g"), TONE)
    Reviews(store).note(first.id, "nice")
    path = export_takes(store, [first.id, second.id, first.id], tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == [path]
    with zipfile.ZipFile(path) as archive:
        name = f"takes/Good-morning-世界_seed7_{first.id}.wav"
        assert archive.read(name) == marked_wav(store, first)
        rows, recipes = table(archive), json.loads(archive.read("recipes.json"))
        assert len(archive.namelist()) == 4
    assert list(rows[0]) == list(COLUMNS)
    assert (rows[0]["file"], rows[0]["seed"], rows[0]["note"], rows[0]["session"] if "session" in rows[0] else "") == (
        name, "7", "nice", "",
    )  # fmt: skip
    assert (rows[1]["spoken_text"], rows[1]["group"], rows[1]["loudness"]) == ('a, "b"\nc', "g", "")
    assert [TakeRecord.from_recipe(recipe, note="nice" if recipe["seed"] == 7 else "") for recipe in recipes] == [
        store.take(first.id), second,
    ]  # fmt: skip


def test_what_leaves_the_studio_says_that_it_is_made_by_a_machine(store: Store, tmp_path: Path) -> None:
    take = store.save_take(make_record(spoken_text="Good morning, 世界!", model_id="/models/openbmb__VoxCPM2"), TONE)
    path = tmp_path / "take.wav"
    path.write_bytes(marked_wav(store, take))
    tags = ffprobe(path)["format"]["tags"]
    assert tags["title"] == "Good morning, 世界!" and tags["date"] == take.created[:10]
    facts = read_comment(tags["comment"])
    assert (facts.models, facts.created) == (("openbmb__VoxCPM2",), take.created)
    assert np.array_equal(read_pcm(path)[0], read_pcm(store.audio_path(take.id))[0])
    answer = was_made_here(path, store)
    assert {check["name"] for check in answer["checks"] if check["status"] == "found"} >= {"tags", "take"}
    store.audio_path(take.id).write_bytes(b"damaged")
    with pytest.raises(StoreError, match="is damaged"):
        marked_wav(store, take)


def test_every_column_is_a_field() -> None:
    assert set(COLUMNS) - {"file"} <= set(TakeRecord.__dataclass_fields__) - {"session"}


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =cmd|' /C calc'!A0"])
def test_no_text_is_a_formula(store: Store, tmp_path: Path, text: str) -> None:
    take = store.save_take(make_record(spoken_text=text, typed_text=text, loudness=-20.5), TONE)
    with zipfile.ZipFile(export_takes(store, [take.id], tmp_path)) as archive:
        [row] = table(archive)
        assert row["spoken_text"] == f"'{text}" and row["loudness"] == "-20.5"
        assert json.loads(archive.read("recipes.json"))[0]["spoken_text"] == text
        assert all(".." not in name and "=" not in name for name in archive.namelist())


def test_a_take_whose_file_is_gone_is_in_the_table(store: Store, tmp_path: Path) -> None:
    take = store.save_take(make_record(), TONE)
    store.audio_path(take.id).unlink()
    with zipfile.ZipFile(export_takes(store, [take.id], tmp_path)) as archive:
        assert table(archive)[0]["file"] == "" and len(archive.namelist()) == 2


def test_only_own_takes_are_exported(store: Store, tmp_path: Path) -> None:
    other = store.save_take(make_record(session="b"), TONE)
    for ids, said in [([other.id], "There is no take"), ([], "Choose at least one"), (["../x"], "There is no take")]:
        with pytest.raises(StoreError, match=said):
            export_takes(store, ids, tmp_path / "out", session="a")
    assert not (tmp_path / "out").exists()


def test_too_many_are_refused(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "take", lambda take_id, session: make_record(id=take_id))
    with pytest.raises(StoreError, match=f"{MOST_TAKES} takes can be exported at once"):
        export_takes(store, [str(number) for number in range(MOST_TAKES + 1)], tmp_path)


def test_a_full_disk_leaves_nothing(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take = store.save_take(make_record(), TONE)

    def full(*_args) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match="could not be written.*No space left"):
        export_takes(store, [take.id], tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []

"""The store: takes come back as they were saved, crashes leave nothing, sessions and paths stay apart."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
import subprocess
import sys
import threading
import time
import wave
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from studio import database, files, migrations
from studio.files import write_once
from studio.migrations import MIGRATIONS
from studio.reviews import Reviews
from studio.store import Store, StoreError, default_data_dir
from studio.takes import TakeRecord, hidden_owner, is_take_id, new_take_id
from tests.records import TONE, make_record

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def store(tmp_path: Path):
    with_store = Store(tmp_path)
    yield with_store
    with_store.close()


def test_a_take_comes_back_as_it_was_saved(store: Store, tmp_path: Path) -> None:
    saved = store.save_take(make_record(), TONE)
    store.close()
    again = Store(tmp_path)
    assert again.take(saved.id) == saved
    assert again.takes() == [saved]
    again.close()


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000])
def test_the_file_has_the_takes_rate_and_every_sample(store: Store, rate: int) -> None:
    saved = store.save_take(make_record(sample_rate=rate), TONE)
    data = store.audio_path(saved.id).read_bytes()
    assert saved.file_name == f"{saved.id}.wav"
    assert saved.file_hash == hashlib.sha256(data).hexdigest()
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (rate, 1, 2)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
    assert len(samples) == len(TONE)
    assert np.abs(samples - TONE).max() < 2 / 32768


def test_takes_are_listed_newest_first_in_pages(store: Store) -> None:
    ids = [store.save_take(make_record(), TONE).id for _ in range(5)]
    assert [take.id for take in store.takes()] == ids[::-1]
    assert [take.id for take in store.takes(limit=2, offset=1)] == [ids[3], ids[2]]
    assert store.takes(limit=0) == []
    assert store.count() == 5


@pytest.mark.parametrize(
    "query, found",
    [
        ("river", ["The river"]),
        ("RIVER the", ["The river"]),
        ("calm", ["The river", "100% sure"]),  # in the control
        ("你好", ["你好世界"]),
        ("%", ["100% sure"]),
        ("_", []),
        ("river sure", []),
        ("  ", ["The river", "你好世界", "100% sure"]),
        ("'; DROP TABLE takes; --", []),
        ("好世", ["你好世界"]),
        ("你好世", ["你好世界"]),
        ("iver al", ["The river"]),
        ("RIV", ["The river"]),
        ("10 0%", ["100% sure"]),
    ],
)
def test_search_finds_every_word_in_text_or_control(store: Store, query: str, found: list[str]) -> None:
    for text, control in [("The river", "calm"), ("你好世界", ""), ("100% sure", "calm")]:
        store.save_take(make_record(spoken_text=text, control=control), TONE)
    assert [take.spoken_text for take in store.takes(query=query)] == found[::-1]
    assert store.count(query) == len(found)


def test_a_session_sees_only_its_own(store: Store) -> None:
    mine = store.save_take(make_record(session="a"), TONE)
    other = store.save_take(make_record(session="b"), TONE)
    assert store.takes(session="a") == [mine]
    assert store.count(session="b") == 1
    assert store.count(session="' OR 1=1 --") == 0
    assert len(store.takes()) == 2
    for ask in (store.take, store.audio_path, store.delete_take):
        with pytest.raises(StoreError, match="There is no take"):
            ask(other.id, session="a")
    assert store.audio_path(other.id, session="b").is_file()


@pytest.mark.parametrize(
    "take_id",
    [
        "../../etc/passwd",
        "..",
        "/etc/passwd",
        "C:\\Windows\\win.ini",
        "20260101-000000-0123456789abcdef/../x",
        "20260101-000000-0123456789abcdef\n",
        "20260101-000000-0123456789ABCDEF",
        "٢٠٢٦٠١٠١-000000-0123456789abcdef",
        "nul\0",
        "",
        None,
        7,
    ],
)
def test_only_take_ids_name_files(store: Store, take_id) -> None:
    assert not is_take_id(take_id)
    for ask in (store.take, store.audio_path, store.delete_take):
        with pytest.raises(StoreError):
            ask(take_id)
    with pytest.raises(StoreError, match="not the id of a take"):
        store.save_take(make_record(id=take_id), TONE)
    assert list(store.takes_dir.iterdir()) == []


def test_ids_sort_by_time_and_do_not_repeat() -> None:
    ids = [new_take_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(map(is_take_id, ids))
    assert [take_id[:15] for take_id in ids] == sorted(take_id[:15] for take_id in ids)


@pytest.mark.parametrize("limit, offset, found", [(10**30, 0, 3), (-5, 0, 0), (2, 10**30, 0), (3, -7, 3)])
def test_a_page_beyond_reason_is_cut_down(store: Store, limit: int, offset: int, found: int) -> None:
    for _ in range(3):
        store.save_take(make_record(), TONE)
    assert len(store.takes(limit=limit, offset=offset)) == found


def test_a_held_database_refuses_small_changes_in_a_sentence(store: Store, held: sqlite3.Connection) -> None:
    held.execute("ROLLBACK")
    saved = store.save_take(make_record(), TONE)
    held.execute("BEGIN IMMEDIATE")
    for change in (store.delete_take, store.undo_delete, lambda take_id: Reviews(store).rate(take_id, 3)):
        with pytest.raises(StoreError, match="was not saved: another program holds its database"):
            change(saved.id)
    held.execute("ROLLBACK")
    assert store.take(saved.id) == saved


def test_a_missing_file_is_named(store: Store) -> None:
    saved = store.save_take(make_record(), TONE)
    store.audio_path(saved.id).unlink()
    with pytest.raises(StoreError, match=f"audio of take {saved.id} is missing"):
        store.audio_path(saved.id)
    assert store.take(saved.id) == saved


def test_a_full_disk_leaves_nothing_and_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(StoreError, match="could not be saved.*No space left.*Free some space"):
        store.save_take(make_record(), TONE)
    assert store.takes() == [] and list(store.takes_dir.iterdir()) == []
    monkeypatch.undo()
    store.save_take(make_record(), TONE)
    assert store.count() == 1


@pytest.fixture
def held(store: Store, monkeypatch: pytest.MonkeyPatch):
    """The database, held by another program; the store is patient for a moment only."""
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.7)
    store.database.execute("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(store.data_dir / "studio.sqlite3", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


def test_a_held_database_costs_the_row_and_not_the_audio(store: Store, held: sqlite3.Connection) -> None:
    record = make_record()
    with pytest.raises(StoreError, match=rf"another program holds.*takes/unlisted-{record.id}\.wav"):
        store.save_take(record, TONE)
    held.execute("ROLLBACK")
    Store(store.data_dir).close()  # the next start does not take it for a stray
    assert [path.name for path in store.takes_dir.iterdir()] == [f"unlisted-{record.id}.wav"]
    assert len(store.takes()) == 0 and store.save_take(make_record(), TONE).file_name


def test_a_database_that_comes_free_gets_the_take_and_readers_do_not_wait(store, held) -> None:
    saving = threading.Thread(target=lambda: store.save_take(make_record(), TONE))
    began = time.monotonic()
    saving.start()
    time.sleep(0.1)
    assert store.takes() == [] and time.monotonic() - began < 0.5
    held.execute("ROLLBACK")
    saving.join(5)
    assert store.count() == 1


def test_a_lost_database_does_not_cost_the_audio(tmp_path: Path) -> None:
    with closing(Store(tmp_path)) as store:
        saved = store.save_take(make_record(), TONE)
    (tmp_path / "studio.sqlite3").write_bytes(b"this is not a database, whatever its name says" * 50)
    with pytest.raises(StoreError, match="is damaged.*Move that file"):
        Store(tmp_path)
    (tmp_path / "studio.sqlite3").unlink()
    for _ in range(2):
        Store(tmp_path).close()
    assert [path.name for path in (tmp_path / "takes").iterdir()] == [f"unlisted-{saved.file_name}"]


def test_owners_that_were_stored_are_hidden(tmp_path: Path) -> None:
    record, own = make_record(session="a" * 32), make_record()
    with closing(Store(tmp_path)) as store:
        for take in (record, own):
            store.save_take(take, TONE)
        for take in (record, own):  # as it was written before
            old = json.dumps({**take.recipe(), "session": take.session})
            store.database.execute("UPDATE takes SET recipe = ? WHERE id = ?", (old, take.id))
        store.database.execute("DELETE FROM migrations WHERE name = 'hidden owners'")
    with closing(Store(tmp_path)) as store:
        assert [take.id for take in store.takes()] == [own.id, record.id]
        assert [take.id for take in store.takes(session=hidden_owner("a" * 32))] == [record.id]
        assert store.takes(session="a" * 32) == [] and len(store.takes(session="local")) == 1
        recipes = store.database.execute("SELECT group_concat(recipe || session) FROM takes").fetchone()[0]
        assert "a" * 32 not in recipes and '"session"' not in recipes


def test_saving_an_id_twice_keeps_the_first(store: Store) -> None:
    first = store.save_take(make_record(), TONE)
    with pytest.raises(StoreError):
        store.save_take(make_record(id=first.id, spoken_text="other"), TONE[:100])
    assert store.take(first.id) == first
    assert hashlib.sha256(store.audio_path(first.id).read_bytes()).hexdigest() == first.file_hash


CRASH = """
import os, sys
sys.path[:0] = [{root!r}, {tests!r}]
from test_store import TONE, Store, files, make_record
store = Store({folder!r})
store.save_take(make_record(spoken_text="whole"), TONE)
replace = os.replace
def crash(part, path):
    if {renamed}:
        replace(part, path)
    os._exit(9)
files.os.replace = crash
store.save_take(make_record(spoken_text="broken"), TONE)
"""


@pytest.mark.parametrize("renamed", [False, True], ids=["before the rename", "before the row"])
def test_a_crash_while_saving_leaves_nothing_visible(tmp_path: Path, renamed: bool) -> None:
    source = CRASH.format(root=str(ROOT), tests=str(ROOT / "tests"), folder=str(tmp_path), renamed=renamed)
    assert subprocess.run([sys.executable, "-c", source], check=False, timeout=120).returncode == 9
    assert len(list((tmp_path / "takes").iterdir())) == 2  # the crash did leave something
    store = Store(tmp_path)
    assert [take.spoken_text for take in store.takes()] == ["whole"]
    assert [path.name for path in store.takes_dir.iterdir()] == [store.takes()[0].file_name]
    store.close()


def test_the_clean_up_touches_only_its_own_files(store: Store, tmp_path: Path) -> None:
    for name in ("notes.txt", "mine.wav", "20260101.wav"):
        (store.takes_dir / name).write_text("keep me")
    Store(tmp_path).close()
    assert len(list(store.takes_dir.iterdir())) == 3


def test_starting_again_beside_a_running_studio_loses_no_take(tmp_path: Path) -> None:
    """Each Store has its own connection, so SQLite sees them as it sees processes."""

    def write(_number: int) -> None:
        with closing(Store(tmp_path)) as store:
            for _ in range(20):
                store.save_take(make_record(), TONE)

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write, number) for number in range(2)]
        while not all(writer.done() for writer in writers):
            Store(tmp_path).close()  # cleans up, again and again
            time.sleep(0.001)
        for writer in writers:
            writer.result()
    with closing(Store(tmp_path)) as store:
        assert store.count() == 40
        assert all(store.audio_path(take.id).is_file() for take in store.takes(limit=100))


def test_many_threads_save_read_and_delete_at_once(store: Store) -> None:
    def work(number: int) -> list[str]:
        session = f"s{number}"
        saved = [store.save_take(make_record(session=session), TONE) for _ in range(8)]
        assert {take.id for take in store.takes(session=session)} == {take.id for take in saved}
        store.delete_take(saved[0].id, session)
        return [take.id for take in saved[1:]]

    with ThreadPoolExecutor(8) as pool:
        kept = [take_id for ids in pool.map(work, range(8)) for take_id in ids]
    assert {take.id for take in store.takes(limit=1000)} == set(kept)
    assert len(list(store.takes_dir.iterdir())) == len(kept) + 8  # the deleted ones, for a while


def test_readers_do_not_wait_for_another_process_that_writes(store: Store, tmp_path: Path) -> None:
    saved = store.save_take(make_record(), TONE)
    other = sqlite3.connect(tmp_path / "studio.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer: list[TakeRecord] = []
    reader = threading.Thread(target=lambda: answer.extend(store.takes()))
    reader.start()
    reader.join(5)
    other.execute("ROLLBACK")
    other.close()
    assert answer == [saved]


def test_a_failing_migration_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(tmp_path).close()

    def broken(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE half (x)")
        db.execute("SELECT * FROM nowhere")

    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", [*MIGRATIONS, ("broken", broken)])
        with pytest.raises(StoreError, match="cannot be used"):
            Store(tmp_path)
    store = Store(tmp_path)
    tables = {name for (name,) in store.database.execute("SELECT name FROM sqlite_master")}
    assert "half" not in tables
    store.close()


def test_a_folder_of_a_newer_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(migrations, "MIGRATIONS", [*MIGRATIONS, ("holograms", lambda db: None)])
        Store(tmp_path).close()
    with pytest.raises(StoreError, match=r"newer version of the studio \(holograms\).*--data-dir"):
        Store(tmp_path)


def test_migration_names_are_unique_and_the_released_ones_stay_in_order() -> None:
    names = [name for name, _ in MIGRATIONS]
    assert names[:8] == [
        *("takes", "ratings", "hidden owners", "reviews", "deleted", "facets", "words", "voices"),
    ]
    assert len(set(names)) == len(names)


def test_a_python_with_an_old_sqlite_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "OLDEST_SQLITE", (99, 0))
    with pytest.raises(StoreError, match="brings SQLite .*needs .* or newer"):
        Store(tmp_path)


def test_an_unusable_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match="cannot be used.*--data-dir"):
        Store(tmp_path / "file")
    (tmp_path / "studio.sqlite3").write_bytes(b"this is not a database, whatever its name says" * 50)
    with pytest.raises(StoreError, match="cannot be used.*--data-dir"):
        Store(tmp_path)


def test_a_recipe_of_a_newer_version_can_be_read() -> None:
    recipe = make_record().recipe()
    assert TakeRecord.from_recipe(json.loads(json.dumps({**recipe, "hologram": 3}))) == TakeRecord.from_recipe(recipe)


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_once(tmp_path / "a", b"old")

    def broken(_part, _path) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(files.os, "replace", broken)
    with pytest.raises(PermissionError):
        write_once(tmp_path / "a", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"old")]


@pytest.mark.parametrize(
    "platform, environ, expected",
    [
        ("linux", {}, "/home/u/.local/share/voxcpm-studio"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/voxcpm-studio"),
        ("linux", {"XDG_DATA_HOME": ""}, "/home/u/.local/share/voxcpm-studio"),
        ("darwin", {"XDG_DATA_HOME": "/data"}, "/home/u/Library/Application Support/VoxCPM Studio"),
        ("win32", {}, "/home/u/AppData/Local/VoxCPM Studio"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/VoxCPM Studio"),
    ],
)
def test_the_default_folder_is_where_the_system_keeps_such_data(platform, environ, expected) -> None:
    assert default_data_dir(platform, environ, Path("/home/u")) == Path(expected)

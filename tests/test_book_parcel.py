"""A project as one zip: everything comes back elsewhere; what is no whole, honest project is refused, traceless."""

from __future__ import annotations

import json
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.book import casting, editing, parcel
from studio.book.credits import set_credits, suggested
from studio.book.dictionary import Pronunciation
from studio.book.errors import BookError, ImportingError
from studio.book.importing import read_text
from studio.book.library import Library
from studio.book.project import BookTake, CastMember, Settings
from studio.book.review import lines
from studio.checks import Check
from studio.store import Store, StoreError
from tests.records import TONE, make_record
from voxcpm_core import Audio

TEXT = "Chapter 1\n\nThe fox ran home.\n\n[voice: Bob] I know. [pause 0.8] So it was.\n\nChapter 2\n\n你好，世界。"
FAULT = Check("silence", "2.0 s", "warn", "A pause.", {"seconds": 2.0, "at": 0.3})
CLIP = Audio(np.sin(np.arange(32_000) / 9).astype(np.float32) / 4, 16_000)


@pytest.fixture
def library(data_dir: Path) -> Iterator[Library]:
    store = Store(data_dir)
    yield Library(store)
    store.close()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Library]:
    store = Store(tmp_path / "elsewhere")
    yield Library(store)
    store.close()


@pytest.fixture
def project(library: Library) -> int:
    return rich_book(library)


def rich_book(library: Library) -> int:
    """A book with everything that a book can have."""
    number = library.create(read_text(TEXT), "Fox / 狐", Settings(seed=7, normalize=True), source="fox.txt").id
    clip = library.clips.keep(CLIP)
    library.store.clips.keep(CLIP)
    casting.set_member(library, number, CastMember("Bob", "voice-id", clip, "exact words", "calm"))
    casting.set_words(library, number, [Pronunciation("fox", "focks"), Pronunciation("狐", "{hu2}", True)])
    set_credits(library, number, suggested("Fox", "A. Author"))
    book = library.book(number)
    for segment in book.spoken:
        for attempt in range(2):
            facts = {
                "seed": attempt,
                "spoken_text": book.say(segment),
                "reference_hash": clip if segment.speaker else "",
            }
            record = make_record(checks=(FAULT.as_dict(),), verdict="warn", loudness=-20.0, voice="voice-id", **facts)
            take = library.store.save_take(record, TONE * (attempt + 1)).id
            noted = BookTake(take, segment.id, book.key(segment), attempt, "warn", 0.1, "A pause.", -20.0, 0.8)
            library.add_take(replace(noted, faults=(FAULT.as_dict(),)))
    spoken = library.book(number).spoken
    editing.approve(library, spoken[1].id, library.book(number).takes[spoken[1].id][1].take)
    editing.set_note(library, spoken[2].id, "Slower")
    editing.set_pause(library, spoken[2].id, 900)
    editing.set_locked(library, [spoken[2].id], True)
    library.database.execute(
        "INSERT INTO book_anchors VALUES (?, '', 0, ?, ?, 'words')",
        [number, library.book(number).takes[1][0].take, clip],
    )
    return number


def shape(library: Library, project: int) -> list[Any]:
    """Everything of a book but the numbers that another data folder gives anew."""
    book = library.book(project)
    rows = [replace(line, segment=0, chapter=0, take=library.store.take(line.take).audio_hash) for line in lines(book)]
    cast = {name: replace(member, voice="") for name, member in book.cast.items()}
    chapters = [
        (c.title, c.kind, c.on, [replace(s, id=0, chapter=0, chosen="") for s in c.segments]) for c in book.chapters
    ]
    known = [[replace(t, take="", segment=0) for t in takes] for takes in book.takes.values()]
    head = replace(book.project, id=0, created="", session="")
    return [head, rows, cast, chapters, book.dictionary.entries, sorted(known, key=str)]


# ------------------------------------------------------------------------------------------------- there and back


def test_a_whole_project_comes_back_elsewhere(
    library: Library, elsewhere: Library, project: int, tmp_path: Path
) -> None:
    told: list[float] = []
    path = parcel.pack(library, project, tmp_path / "out", progress=told.append)
    assert path.name == "Fox 狐.voxcpm-book.zip" and parcel.is_parcel(path) and told[-1] == 1.0
    found = parcel.unpack(elsewhere, path, "somebody", progress=told.append)
    assert found.session == "somebody" and told[-1] == 1.0
    assert shape(elsewhere, found.id) == shape(library, project)
    book = elsewhere.book(found.id)
    assert {book.state(segment) for segment in book.spoken} == {"ready"}  # nothing has to be made again
    clip = library.book(project).cast["Bob"].reference
    assert elsewhere.clips.audio(clip).seconds == elsewhere.store.clips.audio(clip).seconds == 2.0
    record = elsewhere.store.take(next(iter(book.takes.values()))[0].take, "somebody")
    assert (record.session, record.voice, record.checks) == ("somebody", "", (FAULT.as_dict(),))
    anchors = [there.database.read("SELECT take, clip, words FROM book_anchors")[0] for there in (library, elsewhere)]
    assert anchors[0][1:] == anchors[1][1:] == (clip, "words")
    carriers = [there.store.take(take) for there, (take, *_) in zip((library, elsewhere), anchors, strict=True)]
    assert carriers[0].spoken_text == carriers[1].spoken_text and carriers[0].audio_hash == carriers[1].audio_hash
    assert elsewhere.undo_label(found.id) == ""


def test_a_project_beside_itself_gets_a_number(library: Library, project: int, tmp_path: Path) -> None:
    path = parcel.pack(library, project, tmp_path)
    titles = [parcel.unpack(library, path, "local").title for _ in range(2)]
    assert titles == ["Fox / 狐 (2)", "Fox / 狐 (3)"]
    assert parcel.unpack(library, path, "local", "Hare").title == "Hare"
    assert len(library.projects()) == 4 and library.store.count() == 4 * sum(
        map(len, library.book(project).takes.values())
    )


def test_another_session_s_book_is_not_packed(library: Library, project: int, tmp_path: Path) -> None:
    with pytest.raises(BookError, match="no such book"):
        parcel.pack(library, project, tmp_path / "out", session="somebody")
    assert not (tmp_path / "out").exists()


def test_takes_whose_sound_is_gone_stay_behind(
    library: Library, elsewhere: Library, project: int, tmp_path: Path
) -> None:
    book = library.book(project)
    lost = book.takes[book.spoken[1].id]
    for take in lost:
        library.store.audio_path(take.take).unlink()
    found = parcel.unpack(elsewhere, parcel.pack(library, project, tmp_path), "local")
    states = [elsewhere.book(found.id).state(segment) for segment in elsewhere.book(found.id).spoken]
    assert states.count("missing") == 1 and states.count("ready") == len(states) - 1


def test_a_full_disk_leaves_nothing(
    library: Library, elsewhere: Library, project: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parcel.pack(library, project, tmp_path / "out")
    real, count = elsewhere.store.save_take, [0]

    def full(record: Any, samples: Any) -> Any:
        count[0] += 1
        if count[0] == 4:
            raise StoreError("The take could not be saved. Free some space.")
        return real(record, samples)

    monkeypatch.setattr(elsewhere.store, "save_take", full)
    with pytest.raises(StoreError, match="Free some space"):
        parcel.unpack(elsewhere, path, "local")
    assert elsewhere.projects() == [] and elsewhere.store.count() == 0
    assert list(elsewhere.store.takes_dir.iterdir()) == []
    monkeypatch.setattr(parcel.os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(StoreError, match="could not be written"):
        parcel.pack(library, project, tmp_path / "again")
    assert list((tmp_path / "again").iterdir()) == []


# ------------------------------------------------------------------------------------------------- hostile zips


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The entries of an honest project."""
    folder = tmp_path_factory.mktemp("honest")
    store = Store(folder / "data")
    library = Library(store)
    with zipfile.ZipFile(parcel.pack(library, rich_book(library), folder)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    store.close()
    return entries


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    store = Store(tmp_path_factory.mktemp("victim") / "data")
    yield Library(store)
    store.close()


@pytest.fixture
def refused(victim: Library, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Tries to import a hostile zip: refused with a sentence, and no file is anywhere afterwards."""

    def files() -> list[Path]:
        return [path for path in sorted(victim.store.data_dir.parent.rglob("*")) if "sqlite" not in path.name]

    before = files()

    def refuse(entries: dict | bytes, said: str, packed: bool = False) -> None:
        path = tmp_path / "hostile.zip"
        if isinstance(entries, bytes):
            path.write_bytes(entries)
        else:
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
                for name, data in entries.items():
                    archive.writestr(name, data)
        with pytest.raises(ImportingError, match=said):
            parcel.unpack(victim, path, "local")
        assert list(tmp_path.iterdir()) == [path]

    yield refuse
    assert victim.projects() == [] and victim.store.count() == 0
    assert files() == before


def with_manifest(whole: dict[str, bytes], change: Callable[[dict], None]) -> dict[str, bytes]:
    manifest = json.loads(whole["manifest.json"])
    change(manifest)
    return {**whole, "manifest.json": json.dumps(manifest).encode()}


def first_take(manifest: dict) -> dict:
    return manifest["chapters"][0]["segments"][0]["takes"][0]


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"no zip" * 100, b"PK\3\4" + b"\0" * 50, b"PK\5\6", b"PK\5\6" + b"\0" * 18]
)
def test_what_is_no_zip(refused, data: bytes) -> None:
    refused(data, "is not a zip file|not a readable zip|is incomplete")


@pytest.mark.parametrize(
    "name",
    ["../evil.wav", "/etc/evil.wav", "takes/../../evil.wav", "C:\\evil.wav", "takes//a.wav", "a\nb.wav", "takes/"],
)
def test_names_that_point_somewhere(whole, refused, name: str) -> None:
    refused({**whole, name: b"x"}, "unusable name|points outside")


def test_links_strangers_and_absences(whole, refused) -> None:
    link = zipfile.ZipInfo("takes/link.wav")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    refused({**whole, link: "/etc/passwd"}, "a link or no file")
    refused({**whole, "run.sh": "rm"}, "holds 'run.sh'")
    gone = next(name for name in whole if name.startswith("takes/"))
    refused({name: data for name, data in whole.items() if name != gone}, "which is not in the project")
    refused({name: data for name, data in whole.items() if name != "mimetype"}, "'mimetype' is not in it")
    refused({**whole, "mimetype": b"application/epub+zip"}, "not a project of the studio")


def test_bombs_and_crowds(whole, refused, monkeypatch: pytest.MonkeyPatch) -> None:
    refused({**whole, "manifest.json": b" " * 3_000_000}, "packed more tightly", packed=True)
    refused({**whole, "takes/x.wav": bytes(40_000_000)}, "packed more tightly", packed=True)
    with monkeypatch.context() as small:
        small.setattr(parcel, "LIMITS", replace(parcel.LIMITS, entries=3))
        refused(whole, "too many entries")
        lying = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 10**6, 10**6, 1, 0)
        lying += struct.pack("<4sIQI", b"PK\6\7", 0, 0, 1) + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, 9, 0, 0)
        refused(lying, "too many entries")
    with monkeypatch.context() as small:
        small.setattr(parcel, "TAKE_BYTES", 100)
        refused(whole, r"has \d+ bytes; 100 is the most")


def test_sound_that_is_not_what_it_says(whole, refused) -> None:
    take, clip = (next(name for name in whole if name.startswith(kind)) for kind in ("takes/", "clips/"))
    refused({**whole, take: whole[take][:-2] + b"\1\1"}, "is not what the manifest says")
    other = next(data for name, data in whole.items() if name.startswith("takes/"))
    refused({**whole, clip: other}, "not what its name says")
    refused({**whole, clip: b"no sound"}, "cannot be read")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.update(format="else"), "not that of a project"),
        (lambda m: m.update(version=2), "has version 2"),
        (lambda m: m.update(title=7), "title must be a text"),
        (lambda m: m.update(chapters={}), "chapters must be a list"),
        (lambda m: m["settings"].update(seed=-1), "seed -1 is not possible"),
        (lambda m: m["settings"]["limits"].update(seconds=1e999), "seconds must be a number"),
        (lambda m: m["chapters"][0].update(kind="evil"), "kind must be one of"),
        (lambda m: m["chapters"][0]["segments"][0].update(text=" "), "no text"),
        (lambda m: m["chapters"][0]["segments"][0].update(text="x" * 100_001), "at most 100000 characters"),
        (lambda m: m["chapters"][0]["segments"][0].update(pause_ms=-4), "pause of -4 ms"),
        (lambda m: m["chapters"][0]["segments"][0].update(chosen="20260101-000000-" + "0" * 16), "not its own"),
        (lambda m: m["chapters"][0]["segments"][0].update(on="yes"), "on must be true or false"),
        (lambda m: m["cast"][0].update(reference="../../etc"), "does not name a clip"),
        (lambda m: m["words"][0].update(say="{"), "says nothing|open brace"),
        (lambda m: m["anchors"][0].update(take="20260101-000000-" + "0" * 16), "anchor names a take"),
        (lambda m: first_take(m)["recipe"].update(id="../../x"), "are not ids"),
        (lambda m: first_take(m)["recipe"].update(seed=2**40), "seed or a number"),
        (lambda m: first_take(m)["recipe"].update(ended_by="<b>"), "an ending, a verdict or a mode"),
        (lambda m: first_take(m)["recipe"].update(created="now"), "no time"),
        (lambda m: first_take(m)["recipe"].update(checks=[dict(FAULT.as_dict(), name="<b>")]), "check"),
        (lambda m: first_take(m)["recipe"].pop("typed_text"), "has no typed_text"),
        (lambda m: first_take(m).update(verdict="splendid"), "verdict must be one of"),
        (lambda m: first_take(m).update(number=True), "number must be a whole number"),
    ],
)  # fmt: skip
def test_manifests_of_strangers(whole, refused, change: Callable[[dict], None], said: str) -> None:
    refused(with_manifest(whole, change), said)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe{}", b"[]", b"7", b"[" * 100_000])
def test_manifests_that_are_no_json(whole, refused, text: bytes) -> None:
    refused({**whole, "manifest.json": text}, "not readable JSON|not that of a project")

"""Voices leave as a bundle and come back the same; hostile bundles are refused with a sentence and leave nothing."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio import bundle as module
from studio.bundle import BundleError, export_voices, import_voices
from studio.store import Store, StoreError
from studio.voices import Voice, VoiceLibrary
from voxcpm_core import Audio
from voxcpm_core.audio import wav_bytes

RATE = 16_000
TONE = (0.3 * np.sin(np.arange(RATE) / 20)).astype(np.float32)
WAV = wav_bytes(TONE, RATE)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[VoiceLibrary]:
    store = Store(tmp_path / "data")
    yield VoiceLibrary(store)
    store.close()


def voice_entry(**changes: Any) -> dict[str, Any]:
    entry = {"name": "Anna", "file": "voices/a.wav", "sha256": hashlib.sha256(WAV).hexdigest()}
    return {**entry, **changes}


def manifest(*voices: Any, **changes: Any) -> str:
    return json.dumps({"format": module.FORMAT, "version": 1, "voices": list(voices), **changes})


def write_zip(path: Path, entries: list[tuple[str | zipfile.ZipInfo, str | bytes]], packed: bool = False) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return path


@pytest.fixture
def refused(library: VoiceLibrary, tmp_path: Path) -> Callable[..., None]:
    """Imports what it is given and sees it refused, with nothing left anywhere."""

    def check(entries: list | Path, sentence: str) -> None:
        path = entries if isinstance(entries, Path) else write_zip(tmp_path / "hostile.zip", entries)
        before = {p for p in tmp_path.rglob("*") if p.is_file()}
        with pytest.raises(BundleError, match=sentence) as caught:
            import_voices(library, path, "local")
        assert str(caught.value).endswith(".") and len(str(caught.value)) < 500
        assert library.voices() == []
        after = {p for p in tmp_path.rglob("*") if p.is_file()}
        assert {p for p in after - before if "sqlite" not in p.name} == set()

    return check


def comparable(voice: Voice) -> dict[str, Any]:
    own = ("id", "created", "session", "colour", "file_name", "source")
    return {name: value for name, value in vars(voice).items() if name not in own}


def test_voices_come_back_as_they_left(library: VoiceLibrary, tmp_path: Path) -> None:
    quiet = library.save_clip(Audio(TONE, RATE), "Anna", "local", description="calm “voice”", transcript="你好")
    loud = library.save_clip(  # not on the grid of 16 bits
        Audio(TONE * 1.9, 44_100), "声音", "local", tags=("a", "b"), seed=2**32 - 1, consent=True,
        recipe={"id": "x", "nested": [1.5, None]}, clip_choices={"trim": [0.5, 2]},
    )  # fmt: skip
    path = export_voices(library, [loud.id, quiet.id, loud.id], tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == [path] and path.suffix == ".zip"

    other = VoiceLibrary(Store(tmp_path / "elsewhere"))
    back = import_voices(other, path, "visitor")
    assert [comparable(voice) for voice in back] == [comparable(loud), comparable(quiet)]
    assert {voice.source for voice in back} == {"bundle"} and {voice.session for voice in back} == {"visitor"}
    assert np.array_equal(other.audio(back[0].id).samples, TONE * np.float32(1.9))
    assert other.voices(session="somebody else") == []
    other.store.close()


def test_a_bundle_tells_nobody_whose_voices_they_were(library: VoiceLibrary, tmp_path: Path) -> None:
    voice = library.save_clip(Audio(TONE, RATE), "Anna", "0123secret")
    path = export_voices(library, [voice.id], tmp_path, session="0123secret")
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == ["manifest.json", f"voices/{voice.id}.wav"]
        assert b"0123secret" not in archive.read("manifest.json")


def test_names_that_are_taken_get_a_number(library: VoiceLibrary, tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", [
        ("manifest.json", manifest(voice_entry(), voice_entry(name="anna", file="b.wav"))),
        ("voices/a.wav", WAV), ("b.wav", WAV),
    ])  # fmt: skip
    names = [voice.name for _ in range(2) for voice in import_voices(library, path, "local")]
    assert names == ["Anna", "anna 2", "Anna 3", "anna 4"]


def test_only_own_voices_are_exported(library: VoiceLibrary, tmp_path: Path) -> None:
    other = library.save_clip(Audio(TONE, RATE), "Other", "b")
    with pytest.raises(StoreError, match="There is no voice"):
        export_voices(library, [other.id], tmp_path / "out", session="a")
    with pytest.raises(StoreError, match="Choose at least one"):
        export_voices(library, [], tmp_path / "out")
    library.audio_path(other.id).unlink()
    with pytest.raises(StoreError, match="Other is missing"):
        export_voices(library, [other.id], tmp_path / "out")
    assert not (tmp_path / "out").exists() or list((tmp_path / "out").iterdir()) == []


def test_a_full_disk_leaves_no_half_bundle(library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    voice = library.save_clip(Audio(TONE, RATE), "Anna", "local")

    def full(*_args) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match="could not be written.*No space left"):
        export_voices(library, [voice.id], tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


# ----------------------------------------------------------------------------------------- hostile bundles


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip" * 100, b"PK\3\4" + b"\0" * 50, b"PK\5\6"])
def test_what_is_no_zip(refused, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(data)
    refused(tmp_path / "x.zip", "not a zip file|not a readable zip")


def test_a_zip_that_is_not_there(refused, tmp_path: Path) -> None:
    refused(tmp_path / "nowhere.zip", "not a readable zip")


def test_a_zip_that_is_cut_off_or_damaged(refused, tmp_path: Path) -> None:
    whole = write_zip(tmp_path / "a.zip", [("manifest.json", manifest(voice_entry())), ("voices/a.wav", WAV)])
    data = bytearray(whole.read_bytes())
    (tmp_path / "cut.zip").write_bytes(data[:-10])
    refused(tmp_path / "cut.zip", "not a zip file|not a readable zip")
    data[len(data) // 2] ^= 0xFF  # inside the sound: the sum of its bytes no longer fits
    (tmp_path / "flipped.zip").write_bytes(data)
    refused(tmp_path / "flipped.zip", "not a readable zip|is not what the manifest says")


@pytest.mark.parametrize(
    "name", ["../evil.wav", "/etc/evil.wav", "voices/../../evil.wav", "C:\\evil.wav", "c:evil.wav", "voices//a.wav",
             "..\\evil.wav", "voices/", "a\nb.wav", "x" * 300, "\u202egnp.wav"],
)  # fmt: skip
def test_names_that_point_somewhere(refused, name: str) -> None:
    entries = [("manifest.json", manifest(voice_entry(file=name))), (name, WAV)]
    refused(entries, "unusable name|points outside|which is not in the bundle|at most 200")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices(refused, kind: int) -> None:
    info = zipfile.ZipInfo("voices/a.wav")
    info.external_attr = (kind | 0o777) << 16
    refused([("manifest.json", manifest(voice_entry())), (info, "/etc/passwd")], "a link or no file")


def test_a_bomb(refused, tmp_path: Path) -> None:
    sound = [("manifest.json", manifest(voice_entry())), ("voices/a.wav", bytes(40_000_000))]
    for number, entries in enumerate([sound, [("manifest.json", " " * 3_000_000)]]):
        refused(write_zip(tmp_path / f"{number}.zip", entries, packed=True), "packed more tightly")


def test_what_we_export_is_never_taken_for_a_bomb(library: VoiceLibrary, tmp_path: Path) -> None:
    """Forty seconds of nothing behind a word: packed it would be a hundredth of its size."""
    voice = library.save_clip(Audio(np.concatenate([TONE, np.zeros(40 * RATE, np.float32)]), RATE), "Anna", "a")
    assert import_voices(library, export_voices(library, [voice.id], tmp_path), "b")[0].seconds == 41


def test_what_can_be_saved_can_be_carried_away(library: VoiceLibrary) -> None:
    for seconds, rate in [(301, 16_000), (100, 192_000)]:
        noise = np.random.default_rng(0).random(seconds * rate, np.float32) - np.float32(0.5)
        with pytest.raises(StoreError, match="too long for a voice.*cut out the best 5 to 30 s"):
            library.save_clip(Audio(noise, rate), "Long", "local")


def test_sizes_beyond_the_limits(refused, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [("manifest.json", manifest(voice_entry())), ("voices/a.wav", WAV)]
    with monkeypatch.context() as small:
        small.setattr(module, "MOST_CLIP_BYTES", 1000)
        refused(entries, r"has \d+ bytes; 1000 is the most")
    with monkeypatch.context() as small:
        small.setattr(module, "MOST_BYTES", 1000)
        refused(entries, "would unpack to")
    with monkeypatch.context() as small:
        small.setattr(module, "MOST_CLIP_SECONDS", 0.5)
        refused(entries, "Anna cannot be used.*more than the 500 ms allowed")


def test_an_entry_that_lies_about_its_size(refused, tmp_path: Path) -> None:
    entries = [("manifest.json", manifest(voice_entry())), ("voices/a.wav", WAV)]
    data = write_zip(tmp_path / "a.zip", entries, packed=True).read_bytes()
    size = struct.pack("<I", len(WAV))
    assert data.count(size) == 2  # beside the sound and in the list
    (tmp_path / "liar.zip").write_bytes(data.replace(size, struct.pack("<I", 1000)))
    refused(tmp_path / "liar.zip", "not a readable zip|larger than it says|not what the manifest says")


def test_a_crowd_is_refused_before_it_is_listed(refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = [("manifest.json", manifest(voice_entry()))] + [(f"{number}.wav", b"") for number in range(200)]
    path = write_zip(tmp_path / "crowd.zip", crowd)
    monkeypatch.setattr(zipfile, "ZipFile", None)  # not even opened
    refused(path, "too many entries")
    lying = path.read_bytes()[:-22] + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, 10**6, 0, 0)
    (tmp_path / "lying.zip").write_bytes(lying)
    refused(tmp_path / "lying.zip", "too many entries")
    (tmp_path / "big.zip").write_bytes(b"PK\6\7" + b"\0" * 16 + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, 9, 0, 0))
    refused(tmp_path / "big.zip", "too many entries")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name(refused) -> None:
    refused([("manifest.json", manifest(voice_entry())), ("voices/a.wav", WAV), ("voices/a.wav", WAV)], "two entries")


def test_entries_and_manifest_must_agree(refused) -> None:
    refused([("voices/a.wav", WAV)], "no manifest.json")
    refused([("manifest.json", manifest(voice_entry()))], "names 'voices/a.wav', which is not in the bundle")
    refused([("manifest.json", manifest(voice_entry(file="manifest.json")))], "which is not in the bundle")
    refused([("manifest.json", manifest(voice_entry())), ("voices/a.wav", WAV), ("run.sh", "rm")], "holds 'run.sh'")
    refused(
        [("manifest.json", manifest(voice_entry(), voice_entry(name="B"))), ("voices/a.wav", WAV)], "share one file"
    )


def test_an_encrypted_entry(refused, tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", [("manifest.json", manifest(voice_entry())), ("voices/a.wav", WAV)])
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\1\2")
    data[at + 8] |= 1
    (tmp_path / "locked.zip").write_bytes(data)
    refused(tmp_path / "locked.zip", "is encrypted")


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("", "not readable JSON"), ("{", "not readable JSON"), ("[" * 100_000, "not readable JSON|packed more tightly"),
        (b"\xff\xfe{}", "not readable JSON"), ("[]", "not that of a bundle"), ("7", "not that of a bundle"),
        (json.dumps({"format": "else"}), "not that of a bundle"),
        (manifest(voice_entry(), version=2), "has version 2; this studio reads 1"),
        (manifest(), "must list 1 to 100"), (manifest(voices="x"), "must list 1 to 100"),
        (manifest(*[voice_entry()] * 101), "must list 1 to 100|packed more tightly"),
        (manifest("x"), "not an object"),
        (manifest(voice_entry()).replace('"Anna"', "NaN"), "not readable JSON.*NaN"),
        (manifest(voice_entry()).replace('"Anna"', "9" * 5000), "not readable JSON|name must be a text"),
        (manifest(voice_entry(name=None)), "name must be a text"), (manifest(voice_entry(name="")), "needs a name"),
        (manifest(voice_entry(name="x" * 90)), "80 is the most"), (manifest(voice_entry(name="x" * 9999)), "1000"),
        (manifest(voice_entry(file=7)), "file must be a text"), (manifest(voice_entry(sha256="zz")), "no sha256"),
        (manifest(voice_entry(seed=-1)), "seed -1"), (manifest(voice_entry(seed=2**32)), "seed 4294967296"),
        (manifest(voice_entry(seed=1.5)), "seed must be"), (manifest(voice_entry(seed=True)), "seed must be"),
        (manifest(voice_entry(consent="yes")), "consent must be"), (manifest(voice_entry(tags="x")), "tags must be"),
        (manifest(voice_entry(tags=[1])), "tags must be"), (manifest(voice_entry(tags=["x" * 99])), "40 is the most"),
        (manifest(voice_entry(recipe=[1])), "recipe must be"), (manifest(voice_entry(description=[])), "description"),
        (manifest(voice_entry(transcript="ab" * 3000)), "transcript must be at most 5000"),
        (manifest(voice_entry(recipe={str(n): n for n in range(20_000)})), "recipe must be"),
        (manifest(voice_entry(sha256="0" * 64)), "not what the manifest says"),
    ],
)  # fmt: skip
def test_manifests_that_are_wrong(refused, text: str, sentence: str) -> None:
    refused([("manifest.json", text), ("voices/a.wav", WAV)], sentence)


def wav_of(samples: np.ndarray) -> bytes:
    import io

    import soundfile as sf

    buffer = io.BytesIO()
    sf.write(buffer, samples, RATE, format="WAV", subtype="FLOAT")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data, sentence",
    [
        (b"not a sound", "is not a WAV file"), (b"", "is not a WAV file"), (b"RIFF\0\0\0\0WAVE", "cannot be used"),
        (WAV[:44], "cannot be used.*no sound"), (b"#EXTM3U\nfile:///etc/passwd", "is not a WAV file"),
        (wav_of(np.full(RATE, np.nan)), "NaN"), (wav_of(np.full(RATE, np.inf)), "NaN or infinite"),
        (wav_of(np.random.default_rng(0).random(RATE) * 1e-6), "silent"),
    ],
)  # fmt: skip
def test_sounds_that_are_none(refused, data: bytes, sentence: str) -> None:
    entry = voice_entry(sha256=hashlib.sha256(data).hexdigest())
    refused([("manifest.json", manifest(entry)), ("voices/a.wav", data)], sentence)


def test_one_bad_voice_keeps_all_out(refused) -> None:
    second = voice_entry(name="B", file="b.wav", sha256="1" * 64)
    refused(
        [("manifest.json", manifest(voice_entry(), second)), ("voices/a.wav", WAV), ("b.wav", WAV)], "voice B is not"
    )


def test_a_disk_that_fills_up_half_way_keeps_all_out(refused, library, tmp_path, monkeypatch) -> None:
    second = voice_entry(name="B", file="b.wav")
    path = write_zip(
        tmp_path / "a.zip", [("manifest.json", manifest(voice_entry(), second)), ("voices/a.wav", WAV), ("b.wav", WAV)]
    )
    save, saved = library.save_clip, []

    def fills_up(*args: Any, **options: Any) -> Voice:
        if saved:
            raise StoreError("The disk is full.")
        saved.append(save(*args, **options))
        return saved[-1]

    monkeypatch.setattr(library, "save_clip", fills_up)
    with pytest.raises(StoreError, match="disk is full"):
        import_voices(library, path, "local")
    assert len(saved) == 1 and library.voices() == [] and list(library.folder.glob("voice-*")) == []


def test_odd_texts_of_a_stranger_are_kept_readable(library: VoiceLibrary, tmp_path: Path) -> None:
    entry = voice_entry(
        name="<script>\u202e\ud800Anna", description="\ud800a\0b", recipe={"k\ud800": ["\udfff"]}, tags=["\ud800t"]
    )
    path = write_zip(tmp_path / "a.zip", [("manifest.json", manifest(entry)), ("voices/a.wav", WAV)])
    [voice] = import_voices(library, path, "local")
    assert library.voice(voice.id) == voice
    assert (voice.name, voice.description, voice.tags) == ("<script> Anna", "ab", ("t",))
    assert voice.recipe == {"k": [""]}

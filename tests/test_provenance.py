"""What files say about themselves, and the question "Was this made here?"."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

from studio import content_credentials, watermark
from studio.containers import FORMATS, Encoder, ExportError, add_tags, probe
from studio.files import pcm_hash
from studio.provenance import (
    Facts,
    comment,
    credentials_folder,
    facts_now,
    read_comment,
    sound_hash,
    tagged_wav,
    tags,
    was_made_here,
)
from studio.store import Store
from studio.takes import TakeRecord, new_take_id, utc_text
from tests.recordings import ffprobe, speech
from voxcpm_core.audio import load_audio, wav_bytes

FACTS = Facts(("openbmb/VoxCPM2", "nano"), "2026-12-01T10:00:00.000Z")
needs_c2pa = pytest.mark.skipif(not content_credentials.available(), reason=content_credentials.PIP_LINE)


@pytest.fixture
def store(tmp_path: Path):
    store = Store(tmp_path / "data")
    yield store
    store.close()


def made(path: Path, marked: bool = True) -> Path:
    """A file of the studio's own kind, with or without its tags."""
    kind, raw = FORMATS[path.suffix[1:]], path.with_name(f"raw{path.suffix}")
    with Encoder(raw, kind, 24_000) as encoder:
        encoder.write(speech(2.0))
    add_tags(raw, path, kind, tags(FACTS, kind) if marked else {"title": "x"})
    return path


def save(store: Store, samples: np.ndarray) -> TakeRecord:
    record = TakeRecord(
        id=new_take_id(),
        created=utc_text(),
        session="local",
        tab="tts",
        typed_text="a",
        typed_control="",
        normalize=False,
        spoken_text="a",
        control="",
        notes=(),
        mode="plain",
        seed=7,
        sample_rate=24_000,
    )
    return store.save_take(record, samples)


def checks(path: Path, store: Store | None = None) -> tuple[str, dict[str, str]]:
    answer = was_made_here(path, store)
    return answer["verdict"], {check["name"]: check["status"] for check in answer["checks"]}


# ------------------------------------------------------------------------------------------------------ tags


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_that_it_is_made_by_a_machine(tmp_path: Path, name: str) -> None:
    path = made(tmp_path / f"x{FORMATS[name].suffix}")
    found = {key.lower(): value for key, value in ffprobe(path)["format"]["tags"].items()}
    said = found["comment"]
    for part in ("AI-generated speech", "VoxCPM Studio", "openbmb/VoxCPM2", "2026-12-01", "trainedAlgorithmicMedia"):
        assert part in said
    assert read_comment(said) == FACTS
    if name in ("mp3", "flac"):
        assert (found["ai_generated"], found["ai_model"]) == ("true", "openbmb/VoxCPM2, nano")
        assert found["digital_source_type"] == content_credentials.SOURCE_TYPE


def test_the_mark_cannot_be_broken_by_a_model_s_name() -> None:
    odd = Facts(("a | made=never | b",), FACTS.created)
    assert read_comment(comment(odd)) == Facts(("a / made=never / b",), FACTS.created)


@pytest.mark.parametrize("text", ["", "a fine recording", "AI-generated speech by others", "x | tool=y"])
def test_other_comments_are_not_ours(text: str) -> None:
    assert read_comment(text) is None


def test_folders_of_this_machine_are_not_told() -> None:
    names = ["/home/anna/models/VoxCPM2/", "C:\\Users\\anna\\nano", "openbmb/VoxCPM2", "nano", "nano", ""]
    assert facts_now(names).models == ("VoxCPM2", "nano", "openbmb/VoxCPM2")


def test_a_tagged_wav_has_the_same_sound_and_says_what_it_is(tmp_path: Path) -> None:
    for count in (48_000, 48_001, 0):
        data = wav_bytes(speech(2.1)[:count], 24_000)
        tagged = tagged_wav(data, FACTS, "标题")
        with wave.open(io.BytesIO(data)) as before, wave.open(io.BytesIO(tagged)) as after:
            assert before.getparams() == after.getparams()
            assert before.readframes(count) == after.readframes(count)
        assert pcm_hash(tagged) == pcm_hash(data)
        assert int.from_bytes(tagged[4:8], "little") == len(tagged) - 8
    (tmp_path / "x.wav").write_bytes(tagged_wav(wav_bytes(speech(2.0), 24_000), FACTS, "标题"))
    found = ffprobe(tmp_path / "x.wav")["format"]["tags"]
    assert (found["title"], found["date"], read_comment(found["comment"])) == ("标题", "2026-12-01", FACTS)
    assert np.array_equal(load_audio(tmp_path / "x.wav").samples, load_audio(wav_bytes(speech(2.0), 24_000)).samples)


def test_what_is_no_wav_is_not_tagged() -> None:
    with pytest.raises(ValueError, match="not a WAV"):
        tagged_wav(b"ID3\x04 something else that is long enough", FACTS)


# ------------------------------------------------------------------------------------------ was it made here?


def test_a_stored_take_is_found_by_its_sound(tmp_path: Path, store: Store) -> None:
    record = save(store, speech(2.0))
    stored = store.audio_path(record.id)
    download, copy = tmp_path / "a.wav", tmp_path / "b.flac"
    download.write_bytes(tagged_wav(stored.read_bytes(), FACTS))
    sf.write(copy, sf.read(stored, dtype="int16")[0], 24_000)
    for path in (stored, download, copy):
        assert sound_hash(path) == record.audio_hash
        answer = was_made_here(path, store)
        assert answer["verdict"] == "yes"
        assert record.id in answer["checks"][-1]["detail"]
    sf.write(copy, sf.read(stored, dtype="int16")[0][1:], 24_000)
    assert checks(copy, store)[1]["take"] == "not found"
    store.delete_take(record.id)
    assert checks(download, store)[1]["take"] == "not found"


def test_another_visitor_s_take_is_not_told(store: Store) -> None:
    record = save(store, speech(2.0))
    answer = was_made_here(store.audio_path(record.id), store, session="another")
    assert answer["checks"][-1]["status"] == "not found"


def test_tags_alone_are_a_hint(tmp_path: Path) -> None:
    assert checks(made(tmp_path / "x.mp3"))[0] == "likely"
    verdict, found = checks(made(tmp_path / "y.mp3", marked=False))
    assert verdict == "unknown"
    assert (found["tags"], found["take"]) == ("not found", "not available")


def test_what_is_no_sound_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.wav").write_text("no sound")
    with pytest.raises(ExportError, match="x.wav"):
        was_made_here(tmp_path / "x.wav")


def test_without_the_packages_the_answer_says_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_credentials, "available", lambda: False)
    monkeypatch.setattr(watermark, "available", lambda: False)
    answer = was_made_here(made(tmp_path / "x.wav"))
    assert answer["verdict"] == "likely"
    missing = {check["name"]: check["detail"] for check in answer["checks"] if check["status"] == "not available"}
    assert missing["credentials"].startswith("pip install c2pa-python==")
    assert missing["watermark"].startswith("pip install resemble-perth==")


def test_nothing_optional_is_loaded_at_the_start() -> None:
    code = (
        "import sys; import studio.provenance, studio.delivery; "
        "from studio import content_credentials, watermark; content_credentials.available(); watermark.available(); "
        "print([name for name in ('c2pa', 'perth', 'cryptography', 'scipy', 'torch') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(eval(said)) - {"torch"}  # our own core brings torch
    assert not loaded


# --------------------------------------------------------------------------------------- Content Credentials


@needs_c2pa
@pytest.mark.parametrize("name", FORMATS)
def test_credentials_are_valid_and_a_changed_byte_is_seen(tmp_path: Path, store: Store, name: str) -> None:
    plain, signed = made(tmp_path / f"x{FORMATS[name].suffix}"), tmp_path / f"s{FORMATS[name].suffix}"
    folder = credentials_folder(store.data_dir)
    assert content_credentials.read(plain, folder).state == "none"
    content_credentials.sign(plain, signed, folder, FACTS.tool, "书", FACTS.model)
    credential = content_credentials.read(signed, folder)
    assert (credential.state, credential.made_here, credential.tool) == ("valid", True, "VoxCPM Studio")
    assert credential.source_type.endswith("/trainedAlgorithmicMedia")
    assert checks(signed, store)[0] == "yes"
    assert probe(signed).tags["comment"] == probe(plain).tags["comment"]
    assert np.array_equal(load_audio(signed).samples, load_audio(plain).samples)

    data = bytearray(signed.read_bytes())
    data[len(data) // 2] ^= 1
    signed.write_bytes(data)
    credential = content_credentials.read(signed, folder)
    assert (credential.state, credential.made_here) == ("broken", False)
    assert any("mismatch" in problem for problem in credential.problems)


@needs_c2pa
def test_another_studio_s_signature_is_valid_but_not_ours(tmp_path: Path) -> None:
    signed = tmp_path / "s.wav"
    content_credentials.sign(made(tmp_path / "x.wav"), signed, tmp_path / "theirs", FACTS.tool, "t", "m")
    content_credentials.sign(tmp_path / "x.wav", tmp_path / "o.wav", tmp_path / "ours", FACTS.tool, "t", "m")
    for folder in (tmp_path / "ours", tmp_path / "nothing here", None):
        credential = content_credentials.read(signed, folder)
        assert (credential.state, credential.made_here) == ("valid", False)


@needs_c2pa
def test_the_key_is_made_once_and_kept_private(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "credentials"
    for number in range(2):
        content_credentials.sign(made(tmp_path / "x.wav"), tmp_path / f"{number}.wav", folder, FACTS.tool, "t", "m")
        key = (folder / "key.pem").read_bytes()
    assert (folder / "key.pem").read_bytes() == key
    assert b"PRIVATE" not in (folder / "root.pem").read_bytes() + (folder / "chain.pem").read_bytes()
    if sys.platform != "win32":
        assert (folder / "key.pem").stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["credentials"]
    assert content_credentials.read(tmp_path / "0.wav", folder).made_here


@needs_c2pa
def test_a_file_that_cannot_be_signed_is_not_left_half_written(tmp_path: Path) -> None:
    (tmp_path / "x.wav").write_bytes(b"no sound at all")
    with pytest.raises(ExportError, match="Content Credentials"):
        content_credentials.sign(tmp_path / "x.wav", tmp_path / "s.wav", tmp_path / "id", FACTS.tool, "t", "m")
    with pytest.raises(ExportError, match=r"\.ogg files cannot"):
        content_credentials.sign(tmp_path / "x.wav", tmp_path / "s.ogg", tmp_path / "id", FACTS.tool, "t", "m")
    assert not (tmp_path / "s.wav").exists() and not (tmp_path / "s.ogg").exists()


@needs_c2pa
def test_converting_drops_the_credentials_and_keeps_the_tags(tmp_path: Path, store: Store) -> None:
    signed = tmp_path / "s.mp3"
    content_credentials.sign(
        made(tmp_path / "x.mp3"), signed, credentials_folder(store.data_dir), FACTS.tool, "t", FACTS.model
    )
    subprocess.run([shutil.which("ffmpeg"), "-v", "error", "-i", signed, tmp_path / "c.flac"], check=True)
    verdict, found = checks(tmp_path / "c.flac", store)
    assert (verdict, found["credentials"], found["tags"]) == ("likely", "not found", "found")

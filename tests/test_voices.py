"""Saved voices: what is kept of a take or a clip, names, tags, deletion, and whose they are."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studio import files
from studio.store import UNDO_DAYS, Store, StoreError
from studio.trimming import trim_to_pause
from studio.voice import COLOURS, clean_tags, voice_name
from studio.voices import VoiceLibrary
from tests.records import make_record
from voxcpm_core import Audio, AudioError
from voxcpm_core.audio import content_hash, load_audio

RATE = 16_000


def clip(seconds: float = 6.0, hertz: float = 150.0) -> Audio:
    t = np.arange(round(seconds * RATE)) / RATE
    return Audio((0.3 * np.sin(2 * np.pi * hertz * t) * np.sin(2 * np.pi * t) ** 2).astype(np.float32), RATE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture
def library(store: Store) -> VoiceLibrary:
    return VoiceLibrary(store)


def take(store: Store, seconds: float = 6.0, **changes):
    record = make_record(sample_rate=RATE, seconds=seconds, seed=7, **changes)
    return store.save_take(record, clip(seconds).samples)


def test_a_take_becomes_a_voice_with_all_that_is_known(library: VoiceLibrary, store: Store) -> None:
    saved = take(store, control="a calm voice", spoken_text="Hello there")
    voice = library.save_from_take(saved.id, "Anna", "local")
    assert library.voice(voice.id) == voice and library.voices() == [voice]
    assert (voice.description, voice.transcript, voice.seed) == ("a calm voice", "Hello there", 7)
    assert (voice.source, voice.consent, voice.seconds, voice.sample_rate) == ("design", None, 6.0, RATE)
    assert voice.recipe == saved.recipe() and voice.colour == COLOURS[0]
    path = library.audio_path(voice.id)
    assert path == library.folder / f"{voice.id}.wav"
    assert path.read_bytes() == store.audio_path(saved.id).read_bytes()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == voice.file_hash
    assert content_hash(library.audio(voice.id)) == voice.audio_hash


def test_a_voice_outlives_its_take_and_the_program(library: VoiceLibrary, store: Store) -> None:
    voice = library.save_from_take(take(store).id, "Anna", "local")
    store.delete_take(store.takes()[0].id)
    store.close()
    again = Store(store.data_dir)
    assert VoiceLibrary(again).voices() == [voice]
    assert VoiceLibrary(again).audio(voice.id).seconds == 6.0
    again.close()


def test_a_long_take_is_cut_at_a_pause_and_loses_its_transcript(library: VoiceLibrary, store: Store) -> None:
    voice = library.save_from_take(take(store, 40.0).id, "Long", "local")
    assert 15 <= voice.seconds <= 30 and voice.transcript == ""
    samples = library.audio(voice.id).samples
    assert np.abs(samples[-80:]).max() < 0.01
    assert 2 * voice.seconds == pytest.approx(round(2 * voice.seconds), abs=0.1)  # the clip pauses every half second


@pytest.mark.parametrize("ended_by, transcript", [("stop", "Hello there"), ("limit", ""), ("cancelled", "")])
def test_a_broken_off_take_has_no_transcript(library, store, ended_by: str, transcript: str) -> None:
    assert library.save_from_take(take(store, ended_by=ended_by).id, "A", "local").transcript == transcript


def test_a_clip_is_kept_sample_for_sample(library: VoiceLibrary) -> None:
    odd = Audio(np.float32(1.7) * clip().samples + np.float32(1e-4 / 3), 44_100)  # not on the grid of 16 bits
    voice = library.save_clip(
        odd, "Clip", "local", transcript="words", description="mine", consent=True, clip_choices={"denoise": False}
    )
    assert np.array_equal(library.audio(voice.id).samples, odd.samples)
    assert voice.audio_hash == content_hash(odd) == content_hash(load_audio(library.audio_path(voice.id)))
    assert (voice.source, voice.consent, voice.clip_choices) == ("clip", True, {"denoise": False})


def test_consent_stays_with_what_is_spoken_in_a_cloned_voice(library: VoiceLibrary, store: Store) -> None:
    cloned = library.save_clip(clip(), "Clip", "local", consent=True)
    spoken = take(store, mode="reference", voice=cloned.id)
    assert library.save_from_take(spoken.id, "Again", "local").consent is True
    library.delete(cloned.id)
    voice = library.save_from_take(spoken.id, "And again", "local")
    assert (voice.source, voice.consent) == ("take", True)


def test_consent_that_was_given_for_a_clip_goes_with_its_take(library: VoiceLibrary, store: Store) -> None:
    """A take cloned from a clip that was never saved: what was said then is not asked for again."""
    for consent in (True, None):
        spoken = take(store, mode="reference", consent=consent)
        voice = library.save_from_take(spoken.id, f"Voice {consent}", "local")
        assert (voice.source, voice.consent) == ("take", consent) and voice.recipe["consent"] is consent


def test_an_adapter_may_be_somebodys_voice(library: VoiceLibrary, store: Store) -> None:
    spoken = take(store, mode="plain", lora_name="anna", lora_hash="a" * 16)
    assert library.save_from_take(spoken.id, "Anna", "local").source == "take"


def test_the_original_of_an_improved_clip_stays_while_its_voice_does(library: VoiceLibrary, store: Store) -> None:
    original, unused = store.clips.keep(clip(8.0)), store.clips.keep(clip(9.0))
    steps = [{"step": "trim", "start": 0.0, "end": 6.0}]
    voice = library.save_clip(clip(6.0), "Cut", "local", clip_choices={"original": original, "steps": steps})
    for digest in (original, unused):
        os.utime(store.clips.path(digest), (time.time() - 3 * 86_400,) * 2)

    def left() -> set[str]:
        store.close()
        again = Store(store.data_dir)
        again.close()
        return {path.stem for path in store.clips.folder.glob("*.wav")}

    assert left() == {original}
    again = Store(store.data_dir)
    VoiceLibrary(again).forget(voice.id)
    again.close()
    assert left() == set()


@pytest.mark.parametrize(
    "samples", [np.zeros(0), np.zeros(RATE), np.full(RATE, np.nan), np.full(RATE, 0.3)], ids=["none", "0", "nan", "dc"]
)
def test_what_is_no_sound_is_no_voice(library: VoiceLibrary, samples: np.ndarray) -> None:
    with pytest.raises(AudioError):
        library.save_clip(Audio(samples.astype(np.float32), RATE), "Nothing", "local")
    assert library.voices() == [] and list(library.folder.glob("voice-*")) == []


# ---------------------------------------------------------------------------------------- names and tags


@pytest.mark.parametrize("name", ["", "   ", "\0", "\ud800", "…", "🙂", "\n\t", None, "x" * 81])
def test_a_name_must_be_readable(library: VoiceLibrary, name: str) -> None:
    with pytest.raises(StoreError, match="needs a name|is the most"):
        library.save_clip(clip(), name, "local")
    assert library.voices() == []


@pytest.mark.parametrize(
    "typed, kept",
    [("  Anna \n Maria ", "Anna Maria"), ("A\0nna\ud800", "A nna"), ("声音", "声音"), ("e\u0301va", "éva"),
     ("x" * 80, "x" * 80), ("../../etc", "../../etc"), ("<b>&", "<b>&")],
)  # fmt: skip
def test_a_name_is_one_line(typed: str, kept: str) -> None:
    assert voice_name(typed) == kept


def test_a_name_is_given_once_whatever_its_case(library: VoiceLibrary) -> None:
    first = library.save_clip(clip(), "Anna", "local")
    with pytest.raises(StoreError, match="already a voice called “ANNA”"):
        library.save_clip(clip(), "ANNA", "local")
    second = library.save_clip(clip(), "Ben", "local")
    with pytest.raises(StoreError, match="already a voice called “anna”"):
        library.rename(second.id, "anna")
    assert library.rename(first.id, "ANNA").name == "ANNA"  # its own name is free
    assert library.save_clip(clip(), "Anna", "other").name == "Anna"  # another session's
    assert library.save_clip(clip(), "Anna", "local", number_taken_names=True).name == "Anna 2"
    assert len(list(library.folder.glob("*.wav"))) == 4


def test_a_long_taken_name_gets_its_number_inside_the_limit(library: VoiceLibrary) -> None:
    library.save_clip(clip(), "x" * 80, "local")
    assert library.save_clip(clip(), "x" * 80, "local", number_taken_names=True).name == "x" * 72 + " 2"


def test_renaming_changes_the_name_only(library: VoiceLibrary) -> None:
    voice = library.save_clip(clip(), "Anna", "local")
    assert library.rename(voice.id, "Berta") == replace(voice, name="Berta") == library.voice(voice.id)


def test_tags_are_lines_without_repeats(library: VoiceLibrary) -> None:
    voice = library.save_clip(clip(), "Anna", "local", tags=("calm",))
    assert library.tag(voice.id, [" warm ", "", "en\nus", "warm", "中文"]).tags == ("warm", "en us", "中文")
    assert library.tags() == ["en us", "warm", "中文"]
    assert library.voices(tag="warm") == [library.voice(voice.id)] and library.voices(tag="calm") == []
    for wrong in (["x" * 41], [str(number) for number in range(21)]):
        with pytest.raises(StoreError, match="is the most|at most"):
            clean_tags(wrong)


def test_voices_are_listed_by_name_and_found_by_words(library: VoiceLibrary) -> None:
    for name, description, tags in [("Zoë", "old sailor", ()), ("anna", "calm", ("DE",)), ("Ben", "calm", ())]:
        library.save_clip(clip(), name, "local", description=description, tags=tags)

    def names(**asked: str) -> list[str]:
        return [voice.name for voice in library.voices(**asked)]

    assert names() == ["anna", "Ben", "Zoë"]
    assert names(query="CALM") == ["anna", "Ben"] and names(query="calm de") == ["anna"]
    assert names(query="zoë sail") == ["Zoë"] and names(query="nobody") == [] and names(query="\0 ") == names()
    assert [voice.colour for voice in library.voices()] == [COLOURS[1], COLOURS[2], COLOURS[0]]


# ------------------------------------------------------------------------------------------------ deletion


def test_a_deleted_voice_can_be_brought_back(library: VoiceLibrary) -> None:
    voice = library.save_clip(clip(), "Anna", "local")
    library.delete(voice.id)
    assert library.voices() == []
    for ask in (library.voice, library.audio, library.audio_path, library.delete):
        with pytest.raises(StoreError, match="There is no voice"):
            ask(voice.id)
    taken = library.save_clip(clip(), "Anna", "local")  # its name is free meanwhile
    assert library.undo_delete(voice.id) == replace(voice, name="Anna 2")
    assert {v.id for v in library.voices()} == {voice.id, taken.id}
    assert library.audio(voice.id).seconds == 6.0


def test_what_was_deleted_long_ago_goes_with_the_next_start(library: VoiceLibrary, store: Store) -> None:
    old, young, kept = (library.save_clip(clip(), name, "local") for name in ("old", "young", "kept"))
    library.cache_folder.mkdir()
    for voice in (old, kept):
        (library.cache_folder / f"{voice.id}-abc-cpu.safetensors").write_bytes(b"x")
    (library.folder / "mine.wav").write_text("keep me")
    (library.folder / "voice-0000000000000000.wav.part").write_text("a crash left me")
    for voice in (old, young):
        library.delete(voice.id)
    store.database.execute("UPDATE voices SET deleted = '2020-01-01T00:00:00.000Z' WHERE id = ?", (old.id,))
    again = VoiceLibrary(store)
    left = {path.name for path in [*library.folder.glob("*.*"), *library.cache_folder.iterdir()]}
    assert left == {young.file_name, kept.file_name, f"{kept.id}-abc-cpu.safetensors", "mine.wav"}
    assert again.undo_delete(young.id).name == "young" and UNDO_DAYS == 7
    with pytest.raises(StoreError, match="deleted for good"):
        again.undo_delete(old.id)


# ------------------------------------------------------------------------------------------ whose, and faults


def test_a_session_sees_its_own_voices_only(library: VoiceLibrary, store: Store) -> None:
    mine = library.save_clip(clip(), "Mine", "a", tags=("t",))
    other = library.save_clip(clip(), "Other", "b", tags=("u",))
    assert library.voices(session="a") == [mine] and len(library.voices()) == 2
    assert library.tags(session="a") == ["t"]
    for ask in (library.voice, library.audio, library.audio_path, library.delete, library.undo_delete):
        with pytest.raises(StoreError, match="There is no voice"):
            ask(other.id, session="a")
    with pytest.raises(StoreError, match="There is no voice"):
        library.rename(other.id, "Stolen", session="a")
    with pytest.raises(StoreError, match="There is no voice"):
        library.tag(other.id, ["stolen"], session="a")
    assert library.voice(other.id, session="b") == other
    saved = take(store, session="b")
    with pytest.raises(StoreError, match="There is no take"):
        library.save_from_take(saved.id, "Stolen", "a")
    assert library.save_from_take(saved.id, "By the person at the machine", "local").session == "local"


@pytest.mark.parametrize(
    "voice_id", ["", None, "..", "voice-0123456789abcdef/../x", "voice-0123456789ABCDEF", "voice-0123456789abcdef\n", 7]
)
def test_only_ids_of_voices_name_files(library: VoiceLibrary, voice_id) -> None:
    for ask in (library.voice, library.audio_path, library.delete, library.undo_delete):
        with pytest.raises(StoreError, match="There is no voice"):
            ask(voice_id)


def test_a_file_that_is_gone_or_changed_is_named(library: VoiceLibrary) -> None:
    voice = library.save_clip(clip(), "Anna", "local")
    path = library.audio_path(voice.id)
    path.write_bytes(files.exact_wav(clip(hertz=151)))
    with pytest.raises(StoreError, match="sound of the voice Anna was changed"):
        library.audio(voice.id)
    path.write_bytes(b"not a sound")
    with pytest.raises(StoreError, match="sound of the voice Anna is damaged"):
        library.audio(voice.id)
    path.unlink()
    with pytest.raises(StoreError, match="sound of the voice Anna is missing"):
        library.audio(voice.id)
    assert library.voices() == [voice]


def test_a_lost_database_does_not_cost_the_sound(library: VoiceLibrary, store: Store) -> None:
    voice = library.save_clip(clip(), "Anna", "local")
    store.close()
    for path in store.data_dir.glob("studio.sqlite3*"):
        path.unlink()
    for _ in range(2):
        with closing(Store(store.data_dir)) as again:
            assert VoiceLibrary(again).voices() == []
    assert [path.name for path in library.folder.glob("*.wav")] == [f"unlisted-{voice.file_name}"]


def test_a_full_disk_leaves_no_voice(library: VoiceLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="Anna could not be saved.*No space left.*Free some space"):
        library.save_clip(clip(), "Anna", "local")
    assert library.voices() == [] and list(library.folder.glob("voice-*")) == []


@pytest.mark.parametrize("text", ["a\ud800b\0c", "'; DROP TABLE voices; --", "x" * 5000])
def test_odd_texts_are_kept_readable(library: VoiceLibrary, text: str) -> None:
    voice = library.save_clip(clip(), "Anna", "local", description=text, transcript=text)
    assert library.voice(voice.id).description == text.replace("\ud800", "").replace("\0", "")
    with pytest.raises(StoreError, match="transcript has 5001 characters"):
        library.save_clip(clip(), "Ben", "local", transcript="x" * 5001)


# ------------------------------------------------------------------------------------------------ trimming


def test_the_cut_is_in_the_last_pause() -> None:
    speech, pause = np.full(RATE, 0.3, np.float32), np.zeros(RATE // 2, np.float32)
    samples = np.concatenate([speech, pause] * 6)  # pauses at 1.0-1.5, 2.5-3.0, ..., 8.5-9.0
    kept = trim_to_pause(samples, RATE, 8.0)
    assert 7.0 < len(kept) / RATE < 7.5
    assert np.array_equal(kept[: 7 * RATE], samples[: 7 * RATE])
    assert trim_to_pause(samples, RATE, 9.0) is samples


def test_without_a_pause_the_cut_is_where_it_is_quietest() -> None:
    samples = np.full(10 * RATE, 0.3, np.float32)
    samples[6 * RATE : round(6.06 * RATE)] = 0.2
    kept = trim_to_pause(samples, RATE, 8.0)
    assert 6.0 <= len(kept) / RATE < 6.06
    assert kept[-1] == 0 and samples[len(kept) - 1] != 0  # a fade, and the take itself is not touched

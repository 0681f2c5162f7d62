"""From chosen takes to a delivery: files, marks, report, credits, and what happens when it is given up."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

from studio import containers, delivery
from studio.book import editing
from studio.book.credits import Credits, set_credits, suggested
from studio.book.errors import BookError
from studio.book.export import export_project
from studio.book.from_text import sections_from_text
from studio.book.library import Library
from studio.book.manuscript import Manuscript
from studio.book.project import BookTake
from studio.book.script import words_to_say
from studio.book.word_times import lay_over
from studio.containers import ExportError
from studio.delivery import BookInfo, ExportCancelled, Order, deliver
from studio.layout import ChapterAudio, Piece
from studio.provenance import facts_now
from studio.store import Store
from studio.takes import TakeRecord, new_take_id, utc_text
from tests.recordings import chapter, ffprobe, speech
from tests.test_containers import picture
from voxcpm_core.audio import Audio

INFO = BookInfo("书: Book / 1", "Anna Author", "Nora Narrator", "zh")
FACTS = facts_now(["openbmb/VoxCPM2"])
PLAIN = Order(watermark=False, credentials=False)
TITLES = ["第一章：开始", "Two = ; #", "Глава 3"]


def book(seconds: float = 3.0) -> list[ChapterAudio]:
    return [chapter(title, 3, seconds, 3 * number) for number, title in enumerate(TITLES)]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ------------------------------------------------------------------------------------------------- deliveries


def test_an_audiobook_of_mp3_passes_its_report(tmp_path: Path) -> None:
    result = deliver(INFO, book(), replace(PLAIN, sample=True), tmp_path / "out", FACTS)
    report = result["report"]
    assert (report["status"], report["failed"]) == ("pass", [])
    stems = ["01 第一章：开始", "02 Two = ; #", "03 Глава 3", "书 Book 1 - sample"]
    assert names(tmp_path / "out") == sorted(
        [f"{stem}.{end}" for stem in stems for end in ("mp3", "srt", "vtt")]
        + ["书 Book 1.report.html", "书 Book 1.report.json"]
    )
    assert sorted(map(str, (tmp_path / "out").iterdir())) == sorted(result["files"])
    assert json.loads((tmp_path / "out" / "书 Book 1.report.json").read_text("utf-8")) == report
    found = ffprobe(tmp_path / "out" / "02 Two = ; #.mp3")
    tags = found["format"]["tags"]
    assert (tags["title"], tags["album"], tags["track"]) == ("Two = ; #", INFO.title, "2/4")
    assert (tags["artist"], tags["composer"], tags["genre"]) == ("Anna Author", "Nora Narrator", "Audiobook")
    assert abs(int(found["streams"][0]["bit_rate"]) - 192_000) < 1000


def test_an_m4b_has_its_chapters_its_cover_and_its_sound_in_place(tmp_path: Path) -> None:
    info = replace(INFO, cover=picture())
    result = deliver(info, book(), replace(PLAIN, format="m4b"), tmp_path, FACTS)
    found = ffprobe(tmp_path / "书 Book 1.m4b")
    assert [one["tags"]["title"] for one in found["chapters"]] == TITLES
    assert any(stream["disposition"]["attached_pic"] for stream in found["streams"])
    rows = {row["name"]: row for row in result["report"]["files"][0]["rows"]}
    assert rows["chapters"]["status"] == "pass" and rows["chapters"]["value"] < 5.0
    assert result["report"]["status"] == "pass"
    length = float(found["format"]["duration"])
    times = re.findall(r"(\d+):(\d+):(\d+),(\d+)", (tmp_path / "书 Book 1.srt").read_text("utf-8"))
    seconds = [int(h) * 3600 + int(m) * 60 + int(s) + int(ms) / 1000 for h, m, s, ms in times]
    assert seconds == sorted(seconds) and seconds[-1] <= length
    for mark in found["chapters"][1:]:  # the first words of a chapter come after its mark and its head
        assert any(0.4 < at - float(mark["start_time"]) < 0.9 for at in seconds[::2])


def test_without_mastering_a_wav_holds_the_very_takes(tmp_path: Path) -> None:
    order = replace(PLAIN, format="wav", preset="none", sample_rate=48_000, subtitles=False)
    pieces = [Audio(np.round(speech(1.0, 48_000, n) * 32768).astype(np.float32) / 32768, 48_000) for n in range(2)]
    one = ChapterAudio("One", tuple(Piece("a", audio, 250) for audio in pieces))
    deliver(INFO, [one], order, tmp_path, FACTS)
    samples, rate = sf.read(tmp_path / "01 One.wav", dtype="float32")
    pause = np.zeros(12_000, np.float32)
    assert rate == 48_000
    assert np.array_equal(samples, np.concatenate([pieces[0].samples, pause, pieces[1].samples, pause]))


@pytest.mark.parametrize(("name", "preset"), [("flac", "broadcast"), ("m4a", "podcast")])
@pytest.mark.parametrize("rate", [16_000, 48_000])
def test_other_formats_and_presets_pass_as_one_file(tmp_path: Path, name: str, preset: str, rate: int) -> None:
    order = replace(PLAIN, format=name, preset=preset, whole=True, sample_rate=rate)
    result = deliver(INFO, book(2.0), order, tmp_path, FACTS)
    assert result["report"]["status"] == "pass", result["report"]["failed"]
    assert (
        names(tmp_path)[1:]
        == [f"书 Book 1.{end}" for end in sorted([name, "report.html", "report.json", "srt", "vtt"])][1:]
    )


def test_peaks_that_the_encoder_raises_are_met_with_a_larger_margin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a margin that is too small by 3 dB the first file would fail its report."""
    monkeypatch.setattr(containers, "LOSSY_MARGIN", -2.0)
    tries: list[float] = []
    real = delivery.master
    monkeypatch.setattr(delivery, "master", lambda *a: (tries.append(a[3]), real(*a))[1])
    order = replace(PLAIN, format="m4a", preset="podcast", sample_rate=24_000)
    result = deliver(INFO, book()[:1], order, tmp_path, FACTS)
    assert result["report"]["status"] == "pass"
    assert len(tries) > 1 and tries == sorted(tries) and tries[0] == -2.0
    peak = next(row["value"] for row in result["report"]["files"][0]["rows"] if row["name"] == "true_peak")
    assert -4.0 < peak <= -1.5


def test_progress_grows_to_the_end(tmp_path: Path) -> None:
    seen: list[tuple[float, str, str]] = []
    deliver(INFO, book(1.0), PLAIN, tmp_path, FACTS, progress=lambda *step: seen.append(step))
    shares = [share for share, _, _ in seen]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert {stage for _, stage, _ in seen} == {"levels", "sound", "report"}


def test_exporting_again_replaces_the_files(tmp_path: Path) -> None:
    first = deliver(INFO, book(1.0), PLAIN, tmp_path, FACTS)
    again = deliver(INFO, book(1.0), PLAIN, tmp_path, FACTS)
    assert first["files"] == again["files"]
    assert len(names(tmp_path)) == len(again["files"])


# ----------------------------------------------------------------------------------------------- giving up


@pytest.mark.parametrize("after", [1, 4, 9, 14])
def test_a_cancelled_export_leaves_nothing(tmp_path: Path, after: int) -> None:
    asked = iter(range(1000))
    with pytest.raises(ExportCancelled, match="cancelled"):
        deliver(INFO, book(1.0), PLAIN, tmp_path / "out", FACTS, cancelled=lambda: next(asked) >= after)
    assert not (tmp_path / "out").exists()


def test_a_failed_export_leaves_the_last_one_untouched(tmp_path: Path) -> None:
    deliver(INFO, book(1.0), PLAIN, tmp_path, FACTS)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def gone() -> Audio:
        raise OSError(28, "No space left on device")

    broken = [*book(1.0)[:2], ChapterAudio("Three", (Piece("a", gone),))]
    with pytest.raises(ExportError, match="No space left on device"):
        deliver(INFO, broken, PLAIN, tmp_path, FACTS)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (Order(format="ogg"), "format 'ogg' is not known: choose wav, flac"),
        (Order(preset="loud"), "preset 'loud' is not known"),
        (Order(sample_rate=11_025), "11025 Hz is not offered: choose 16000"),
    ],
)
def test_impossible_orders_are_refused_in_a_sentence(tmp_path: Path, order: Order, said: str) -> None:
    with pytest.raises(ExportError, match=said):
        deliver(INFO, book(1.0), order, tmp_path / "out", FACTS)
    assert not (tmp_path / "out").exists()


def test_what_is_not_installed_is_refused_only_when_it_was_asked_for(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("studio.watermark.available", lambda: False)
    with pytest.raises(ExportError, match="pip install resemble-perth"):
        deliver(INFO, book(1.0), Order(watermark=True), tmp_path / "out", FACTS)
    assert deliver(INFO, book(1.0)[:1], Order(credentials=False), tmp_path / "out", FACTS)["files"]


def test_a_chapter_without_sound_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"nothing to hear in: Empty"):
        deliver(INFO, [*book(1.0), ChapterAudio("Empty", ())], PLAIN, tmp_path / "out", FACTS)


# --------------------------------------------------------------------------------------------- the studio's book

TEXT = "Chapter 1\n\nThe fox ran home.\n\nIt was late, and dark.\n\nChapter 2\n\nAll was well."


@pytest.fixture
def library(tmp_path: Path):
    store = Store(tmp_path / "data")
    yield Library(store)
    store.close()


def spoken_book(library: Library, leave: int = 0) -> int:
    """A project of which every segment but the last ``leave`` has a take."""
    project = library.create(Manuscript("Fox", tuple(sections_from_text(TEXT)), "A. Author")).id
    current = library.book(project)
    for one in current.spoken[: len(current.spoken) - leave]:
        record = library.store.save_take(record_of(one.id), speech(1.5, 24_000, one.id))
        library.add_take(BookTake(record.id, one.id, current.key(one), 0, "ok", 1.5))
    return project


def record_of(seed: int) -> TakeRecord:
    text = {"typed_text": "a", "typed_control": "", "spoken_text": "a", "control": "", "mode": "plain"}
    facts = {"seed": seed, "sample_rate": 24_000, "model_id": "openbmb/VoxCPM2"}
    return TakeRecord(
        id=new_take_id(), created=utc_text(), session="local", tab="book", normalize=False, notes=(), **text, **facts
    )


def test_a_project_is_exported_with_its_words_and_its_model(library: Library, tmp_path: Path) -> None:
    project = spoken_book(library)
    result = export_project(library, project, replace(PLAIN, format="m4b"), tmp_path / "out")
    assert (result["report"]["status"], result["incomplete"], result["red"]) == ("pass", [], [])
    found = ffprobe(tmp_path / "out" / "Fox.m4b")
    assert [one["tags"]["title"] for one in found["chapters"]] == ["Chapter 1", "Chapter 2"]
    assert "model=openbmb/VoxCPM2" in found["format"]["tags"]["comment"]
    assert found["format"]["tags"]["artist"] == "A. Author"
    heard = re.sub(r"(?m)^(\d+|.*-->.*|)\n", "", (tmp_path / "out" / "Fox.srt").read_text("utf-8")).split()
    assert heard == TEXT.split()


def test_what_has_no_take_is_refused_or_left_out(library: Library, tmp_path: Path) -> None:
    project = spoken_book(library, leave=1)
    with pytest.raises(BookError, match=r"One segment has no take .* “All was well\.” in “Chapter 2”"):
        export_project(library, project, PLAIN, tmp_path / "out")
    result = export_project(library, project, PLAIN, tmp_path / "out", allow_incomplete=True)
    assert [one["text"] for one in result["incomplete"]] == ["All was well."]
    assert "All was well" not in (tmp_path / "out" / "02 Chapter 2.srt").read_text("utf-8")


def test_a_sentence_that_was_edited_is_not_delivered_with_its_old_words(library: Library, tmp_path: Path) -> None:
    project = spoken_book(library)
    editing.edit_text(library, library.book(project).spoken[1].id, "The fox ran away.")
    with pytest.raises(BookError, match="The fox ran away"):
        export_project(library, project, PLAIN, tmp_path / "out")


def test_another_visitor_s_book_is_not_exported(library: Library, tmp_path: Path) -> None:
    project = spoken_book(library)
    with pytest.raises(BookError, match="no such book"):
        export_project(library, project, PLAIN, tmp_path / "out", session="another")


# -------------------------------------------------------------------------------------------------- credits


@pytest.mark.parametrize(("language", "said"), [("en", "artificial intelligence"), ("zh-CN", "人工智能")])
def test_credits_name_everyone_and_say_that_it_is_a_machine(language: str, said: str) -> None:
    credits = suggested("The Fox", "A. Author", "Nora", language)
    for text in (credits.opening, credits.closing):
        assert all(name in text for name in ("The Fox", "A. Author", "Nora"))
    assert said in credits.opening
    assert "None" not in suggested("X", language=language).opening


def test_credits_are_chapters_of_their_own_and_are_replaced(library: Library, tmp_path: Path) -> None:
    project = spoken_book(library)
    before = library.book(project).chapters
    for title in ("Once", "Twice"):
        set_credits(library, project, suggested(title))
    chapters = library.book(project).chapters
    assert [one.kind for one in chapters] == ["opening credits", "chapter", "chapter", "closing credits"]
    assert chapters[0].spoken[0].text.startswith("Twice.") and chapters[1:3] == before
    assert library.book(project).state(chapters[0].spoken[0]) == "missing"
    set_credits(library, project, Credits("", "", "", ""))
    assert library.book(project).chapters == before
    library.undo(project)
    assert library.book(project).chapters[0].spoken[0].text.startswith("Twice.")


# ------------------------------------------------------------------------------------------------- words


def test_subtitles_by_word_follow_what_was_heard(library: Library, tmp_path: Path) -> None:
    """A recogniser that hears the words evenly, one of them wrong: every written word has its time in the file."""
    project = spoken_book(library)
    current = library.book(project)
    asked: list[float] = []

    def hear(audio: Audio) -> list[tuple[float, float, str]]:
        asked.append(audio.seconds)
        said = words_to_say(current.spoken[len(asked) - 1].text).replace("The", "De").split()
        return [(0.2 + 0.1 * place, 0.3 + 0.1 * place, word) for place, word in enumerate(said)]

    order = replace(PLAIN, format="wav", preset="none", whole=True)
    result = export_project(library, project, order, tmp_path / "out", hear=hear)
    files = {Path(path).suffixes[-2] + Path(path).suffix: Path(path) for path in result["files"] if ".words" in path}
    assert set(files) == {".words.srt", ".words.vtt"}
    said = " ".join(re.findall(r"-->.*\n(.+)", files[".words.srt"].read_text("utf-8")))
    assert said.split() == " ".join(words_to_say(one.text) for one in current.spoken).split()
    times = re.findall(r"(\d+):(\d+):(\d+),(\d+)", files[".words.srt"].read_text("utf-8"))
    seconds = [int(h) * 3600 + int(m) * 60 + int(s) + int(ms) / 1000 for h, m, s, ms in times]
    assert seconds == sorted(seconds) and seconds[0] == pytest.approx(0.2)
    export_project(library, project, order, tmp_path / "out", hear=hear)
    assert len(asked) == len(current.spoken)  # each take is listened to once


@pytest.mark.parametrize(
    ("text", "heard", "wanted"),
    [
        ("Well — yes!", ["well", "yes"], [(0, 1, "Well"), (1, 2, "yes!")]),
        ("你好，世界。", ["你好", "世界"], [(0, 0.5, "你"), (0.5, 1, "好，"), (1, 1.5, "世"), (1.5, 2, "界。")]),
        ("one two three", ["one", "tree"], [(0, 1, "one"), (1, 1.3, "two"), (1.3, 2, "three")]),
        ("one two three", ["something", "else"], []),
        ("...", ["uh"], []),
        ("one two", [], []),
    ],
)
def test_written_words_take_the_times_of_heard_ones(text: str, heard: list[str], wanted: list) -> None:
    found = lay_over(text, [(float(place), place + 1.0, word) for place, word in enumerate(heard)])
    assert [word for _, _, word in found] == [word for _, _, word in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert one[:2] == pytest.approx(other[:2], abs=0.35)
    assert [time for start, end, _ in found for time in (start, end)] == sorted(t for s, e, _ in found for t in (s, e))

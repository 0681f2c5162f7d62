"""A chapter laid out: pauses, head and tail, fades, where pieces lie, the retail sample, file names."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from studio.file_names import safe_name, unique_names
from studio.layout import ChapterAudio, Piece, Spooled, gains_for, lay_out, retail_sample
from studio.loudness import loudness
from studio.loudness_meter import measure
from studio.mastering import PRESETS
from tests.recordings import chapter, quiet_room, speech
from voxcpm_core.audio import Audio


def laid_out(one: ChapterAudio, rate: int = 44_100, preset: str = "audiobook", **more):
    file = io.BytesIO()
    spans = lay_out(one, file, rate, PRESETS[preset], **more)
    return np.frombuffer(file.getvalue(), "<f4"), spans


def test_without_mastering_the_pieces_are_joined_with_their_pauses_and_nothing_else() -> None:
    one = chapter("One", pieces=3, seconds=2.0, rate=48_000)
    samples, spans = laid_out(one, 48_000, "none")
    pause = np.zeros(24_000, np.float32)
    expected = np.concatenate([part for piece in one.pieces for part in (piece.load().samples, pause)])
    assert np.array_equal(samples, expected)
    assert [(span.start, span.stop) for span in spans] == [(0, 96_000), (120_000, 216_000), (240_000, 336_000)]


@pytest.mark.parametrize("rate", [16_000, 22_050, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("lead", [0.0, 0.3, 3.0])
def test_head_and_tail_have_their_length_whatever_the_takes_begin_with(rate: int, lead: float) -> None:
    silence = quiet_room(round(lead * 24_000), -80.0)
    audio = Audio(np.concatenate([silence, speech(3.0, seed=7)[2400:], silence]), 24_000)
    samples, _ = laid_out(ChapterAudio("One", (Piece("Text.", audio, 900),)), rate)
    levels = measure(samples, rate)
    assert levels.head == pytest.approx(0.75, abs=0.06)
    assert levels.tail == pytest.approx(2.5, abs=0.06)


def test_nothing_of_the_speech_is_cut() -> None:
    spoken = speech(3.0, seed=7)
    audio = Audio(np.concatenate([np.zeros(72_000, np.float32), spoken, np.zeros(120_000, np.float32)]), 24_000)
    samples, _ = laid_out(ChapterAudio("One", (Piece("Text.", audio),)), 24_000)
    energy = float(np.square(spoken, dtype=float).sum())
    assert float(np.square(samples, dtype=float).sum()) == pytest.approx(energy, rel=1e-3)


def test_pieces_fade_so_that_joins_do_not_click() -> None:
    loud = Audio(np.full(24_000, 0.5, np.float32), 24_000)
    samples, spans = laid_out(ChapterAudio("One", (Piece("a", loud, 100), Piece("b", loud))), 24_000)
    assert np.abs(np.diff(samples)).max() < 0.05
    assert samples[spans[0].start] == 0 and samples[spans[0].stop - 1] == 0


def test_spans_are_in_order_and_pauses_are_exact() -> None:
    one = chapter("One", pieces=5, seconds=1.3)
    samples, spans = laid_out(one, 22_050)
    gaps = [after.start - before.stop for before, after in zip(spans, spans[1:], strict=False)]
    assert gaps == [11_025] * 4
    assert spans[-1].stop <= len(samples)
    assert not np.any(samples[spans[0].stop : spans[1].start])


def test_two_voices_meet_with_one_gain_each() -> None:
    one = chapter("One", pieces=6)
    gains = gains_for([one], PRESETS["audiobook"])
    samples, spans = laid_out(one, 24_000, gains=gains)
    by_voice: dict[str, set[float]] = {}
    for span in spans:
        before = loudness(span.piece.load().samples, 24_000)
        after = loudness(samples[span.start : span.stop], 24_000)
        by_voice.setdefault(span.piece.voice, set()).add(round(after - before, 1))
        assert after == pytest.approx(-28, abs=1.5)
    assert all(max(gains) - min(gains) <= 0.11 for gains in by_voice.values())


def test_one_voice_is_not_read_twice() -> None:
    def never() -> Audio:
        raise AssertionError("read for a gain that nobody needs")

    assert gains_for([ChapterAudio("One", (Piece("a", never), Piece("b", never)))], PRESETS["podcast"]) == {}


def test_a_watermark_is_put_into_every_piece() -> None:
    seen: list[int] = []

    def mark(samples: np.ndarray, rate: int) -> np.ndarray:
        seen.append(rate)
        return samples

    laid_out(chapter("One", pieces=3, seconds=1.0), 16_000, mark=mark)
    assert seen == [16_000] * 3


def test_an_empty_take_is_no_trouble() -> None:
    one = ChapterAudio(
        "One", (Piece("a", Audio(np.zeros(0, np.float32), 24_000), 300), Piece("b", Audio(speech(1.0), 24_000)))
    )
    samples, spans = laid_out(one)
    assert spans[0].start == spans[0].stop and len(samples) > 44_100


def test_memory_does_not_grow_with_the_chapter(tmp_path: Path) -> None:
    """Two chapters of one and three minutes: the longer one has 21 MB of samples more."""
    audio, peaks = Audio(speech(10.0, 44_100), 44_100), []
    for count in (6, 18):
        tracemalloc.start()
        with open(tmp_path / "chapter.f32", "wb") as file:
            lay_out(ChapterAudio("Long", (Piece("a", lambda: audio, 200),) * count), file, 44_100, PRESETS["audiobook"])
        measure(Spooled(tmp_path / "chapter.f32"), 44_100)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (tmp_path / "chapter.f32").stat().st_size > 31e6
    assert peaks[1] < peaks[0] + 1e6


def test_what_is_on_disk_reads_like_an_array(tmp_path: Path) -> None:
    values = np.arange(1000, dtype=np.float32)
    (tmp_path / "x").write_bytes(values.tobytes())
    spooled = Spooled(tmp_path / "x")
    assert len(spooled) == 1000
    for part in (slice(0, 10), slice(990, 1200), slice(None, None), slice(500, 400)):
        assert np.array_equal(spooled[part], values[part])


# --------------------------------------------------------------------------------------------- retail sample


def test_the_retail_sample_ends_at_a_pause_and_is_short_enough() -> None:
    book = [ChapterAudio("Opening", chapter("x", 1).pieces, "opening"), chapter("One", pieces=9, seconds=4.0)]
    sample = retail_sample(book, "Sample", seconds=20.0)
    assert sample.kind == "sample"
    assert [piece.text for piece in sample.pieces] == [piece.text for piece in book[1].pieces[:3]]
    samples, _ = laid_out(sample, 24_000)
    assert len(samples) / 24_000 <= 20.0


def test_a_first_piece_that_is_too_long_is_cut_at_a_pause() -> None:
    sample = retail_sample([chapter("One", pieces=1, seconds=30.0)], "Sample", seconds=20.0)
    audio = sample.pieces[0].load()
    assert 7.0 < audio.seconds <= 15.0
    assert np.abs(audio.samples[-100:]).max() < 0.01


def test_a_book_of_credits_has_no_sample() -> None:
    assert retail_sample([ChapterAudio("Credits", chapter("x", 1).pieces, "opening")], "Sample") is None


# ------------------------------------------------------------------------------------------------ file names


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Chapter 1", "Chapter 1"),
        ("第一章：开始", "第一章：开始"),
        ('a/b\\c:d*e?f"g<h>i|j', "a b c d e f g h i j"),
        ("..hidden", "hidden"),
        ("ends with dots...", "ends with dots"),
        ("con", "_con"),
        ("LPT1.txt", "_LPT1.txt"),
        ("line\nbreak\ttab\x00", "line break tab"),
        ("\u202eevil\u200b", "evil"),
        ("\ud800", "untitled"),
        ("", "untitled"),
        ("...", "untitled"),
        ("e\u0301", "\u00e9"),
    ],
)
def test_a_title_becomes_a_name_that_every_system_takes(title: str, name: str) -> None:
    assert safe_name(title) == name


def test_long_titles_are_cut_between_characters() -> None:
    name = safe_name("书" * 200)
    assert name == "书" * 33 and len(name.encode()) <= 100


def test_names_differ_also_where_capitals_do_not_count() -> None:
    assert unique_names(["One", "one", "One (2)", "two"]) == ["One", "one (2)", "One (2) (2)", "two"]

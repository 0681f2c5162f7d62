"""The report on finished files: a good delivery passes every row, and every row can fail."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from studio.containers import FORMATS, Chapter, Encoder, add_tags, bit_rate
from studio.delivery_report import Landmark, Plan, report_file, whole_report
from studio.mastering import PRESETS, master
from studio.provenance import facts_now, tags
from studio.report_page import report_html
from studio.report_words import ADVICE, LABELS, PHRASES
from tests.recordings import quiet_room, speech

RATE = 44_100
FACTS = facts_now(["openbmb/VoxCPM2"])
MARKED = tags(FACTS, FORMATS["mp3"])
AUDIOBOOK = PRESETS["audiobook"]


def good(seconds: float = 8.0, rate: int = RATE) -> np.ndarray:
    """A chapter as the audiobook preset makes it: quiet for 0.75 s, speech, quiet for 2.5 s."""
    quiet = [np.zeros(round(length * rate), np.float32) for length in (0.75, 2.5)]
    laid_out = np.concatenate([quiet[0], speech(seconds, rate, 6), quiet[1]])
    return np.concatenate(list(master(laid_out, rate, AUDIOBOOK, 0.9).blocks()))


def write(path: Path, samples: np.ndarray, rate: int = RATE, marks: dict[str, str] = MARKED, chapters=()) -> Path:
    kind = FORMATS[path.suffix[1:]]
    with Encoder(path.with_name(f"raw{path.suffix}"), kind, rate) as encoder:
        encoder.write(samples)
    add_tags(path.with_name(f"raw{path.suffix}"), path, kind, marks, chapters)
    return path


def ffmpeg(*words: str | Path) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-y", *map(str, words)], check=True)


def rows_of(report: dict) -> dict[str, dict]:
    return {row["name"]: row for row in report["rows"]}


def test_a_good_chapter_passes_every_row(tmp_path: Path) -> None:
    samples = good()
    path = write(tmp_path / "x.mp3", samples)
    report = report_file(path, AUDIOBOOK, Plan(len(samples) / RATE))
    asked = {name: row["status"] for name, row in rows_of(report).items() if row["status"] != "info"}
    assert set(asked) == set(LABELS) - {"lufs", "chapters"}
    assert set(asked.values()) == {"pass"}, report["failed"]
    assert (report["status"], report["failed"]) == ("pass", [])
    assert all(row["label"] and row["shown"] and not row["advice"] for row in report["rows"])


def noisy(samples: np.ndarray) -> np.ndarray:
    return samples + quiet_room(len(samples), -52.0)


BAD: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rms": lambda samples: samples * 0.3,
    "true_peak": lambda samples: np.clip(samples * 1.6, -0.95, 0.95),
    "noise_floor": noisy,
    "head": lambda samples: samples[round(0.6 * RATE) :],
    "tail": lambda samples: samples[: -round(2.0 * RATE)],
}


@pytest.mark.parametrize("row", BAD)
def test_a_bad_master_fails_the_row_that_is_about_it(tmp_path: Path, row: str) -> None:
    report = report_file(write(tmp_path / "x.mp3", BAD[row](good())), AUDIOBOOK)
    assert row in report["failed"]
    assert report["status"] == "fail"
    found = rows_of(report)[row]
    assert found["advice"] == ADVICE[row][0]
    assert found["wanted"] and re.search(r"\d", found["shown"])


@pytest.mark.parametrize(
    ("head", "tail", "failed"), [(1.4, 2.0, ["head"]), (0.7, 6.5, ["tail"]), (0.0, 0.0, ["head", "tail"])]
)
def test_too_much_quiet_fails_too(tmp_path: Path, head: float, tail: float, failed: list[str]) -> None:
    body = good()[round(0.75 * RATE) : -round(2.5 * RATE)]
    samples = np.concatenate([quiet_room(round(head * RATE), -72.0), body, quiet_room(round(tail * RATE), -72.0)])
    report = report_file(write(tmp_path / "x.mp3", samples), AUDIOBOOK)
    assert [name for name in report["failed"] if name in ("head", "tail")] == failed


def test_loudness_is_judged_for_podcasts_and_broadcast(tmp_path: Path) -> None:
    samples = speech(6.0, RATE, 6, -30.0)
    path = write(tmp_path / "x.mp3", samples)
    for name in ("podcast", "broadcast"):
        assert "lufs" in report_file(path, PRESETS[name])["failed"]
        mastered = np.concatenate(list(master(samples, RATE, PRESETS[name], 0.9).blocks()))
        assert report_file(write(tmp_path / "y.mp3", mastered), PRESETS[name])["failed"] == []


def test_another_sample_rate_fails(tmp_path: Path) -> None:
    report = report_file(write(tmp_path / "x.mp3", good(rate=24_000), 24_000), AUDIOBOOK)
    assert set(report["failed"]) == {"sample_rate", "bit_rate"}


@pytest.mark.parametrize("words", [("-b:a", "128k"), ("-q:a", "0")], ids=["too low", "variable"])
def test_another_bit_rate_fails(tmp_path: Path, words: tuple[str, ...]) -> None:
    source = write(tmp_path / "x.wav", good())
    ffmpeg("-i", source, *words, "-metadata", f"comment={MARKED['comment']}", tmp_path / "y.mp3")
    assert "bit_rate" in report_file(tmp_path / "y.mp3", AUDIOBOOK)["failed"]


def test_two_channels_fail(tmp_path: Path) -> None:
    ffmpeg("-i", write(tmp_path / "x.mp3", good()), "-ac", "2", "-b:a", "192k", tmp_path / "y.mp3")
    assert "channels" in report_file(tmp_path / "y.mp3", AUDIOBOOK)["failed"]


def test_a_chapter_that_is_no_mp3_fails_and_a_book_for_players_does_not(tmp_path: Path) -> None:
    path = write(tmp_path / "x.m4b", good())
    assert report_file(path, AUDIOBOOK)["failed"] == ["format"]
    assert "format" not in report_file(path, AUDIOBOOK, Plan(11.25, one_chapter=False))["failed"]


def test_a_file_that_does_not_say_what_it_is_fails_everywhere(tmp_path: Path) -> None:
    path = write(tmp_path / "x.mp3", good(), marks={"comment": "a fine recording"})
    assert all("marked" in report_file(path, preset)["failed"] for preset in PRESETS.values())


def test_too_long_a_chapter_fails(tmp_path: Path) -> None:
    preset = replace(AUDIOBOOK, longest=6.0)
    path = write(tmp_path / "x.mp3", good())
    assert report_file(path, preset)["failed"] == ["duration"]
    assert report_file(path, preset, Plan(11.25, one_chapter=False))["failed"] == []


def test_a_file_that_was_cut_off_fails(tmp_path: Path) -> None:
    samples = good()
    path = write(tmp_path / "x.mp3", samples)
    path.write_bytes(path.read_bytes()[: -3 * 24_000])
    assert "complete" in report_file(path, AUDIOBOOK, Plan(len(samples) / RATE))["failed"]


# -------------------------------------------------------------------------------------------- chapter marks


def book(seconds: float = 4.0) -> tuple[np.ndarray, Plan]:
    parts = [np.concatenate([np.zeros(RATE // 2, np.float32), speech(seconds, RATE, n)]) for n in range(3)]
    edges = np.cumsum([0, *map(len, parts)])
    chapters = tuple(Chapter(f"第{n}章", edges[n] / RATE, edges[n + 1] / RATE) for n in range(3))
    marks = tuple(Landmark(int(edges[n]) + RATE, parts[n][RATE : RATE + RATE // 2]) for n in range(3))
    return np.concatenate(parts), Plan(edges[-1] / RATE, chapters, marks, one_chapter=False)


def test_chapter_marks_at_their_places_pass(tmp_path: Path) -> None:
    samples, plan = book()
    row = rows_of(report_file(write(tmp_path / "x.m4b", samples, chapters=plan.chapters), PRESETS["none"], plan))[
        "chapters"
    ]
    assert row["status"] == "pass"
    assert row["value"] < 2.0


def test_a_moved_mark_fails(tmp_path: Path) -> None:
    samples, plan = book()
    moved = [replace(one, start=one.start + 0.025 * (n == 1)) for n, one in enumerate(plan.chapters)]
    row = rows_of(report_file(write(tmp_path / "x.m4b", samples, chapters=moved), PRESETS["none"], plan))["chapters"]
    assert (row["status"], row["value"]) == ("fail", pytest.approx(25.0, abs=1.5))


def test_sound_that_drifted_under_right_marks_fails(tmp_path: Path) -> None:
    """The marks are where they were meant to be, but half a chapter in, 40 ms of sound were added."""
    samples, plan = book()
    drifted = np.concatenate([samples[:100_000], np.zeros(round(0.04 * RATE), np.float32), samples[100_000:]])
    row = rows_of(report_file(write(tmp_path / "x.m4b", drifted, chapters=plan.chapters), PRESETS["none"], plan))[
        "chapters"
    ]
    assert (row["status"], row["value"]) == ("fail", pytest.approx(40.0, abs=1.5))


def test_other_titles_and_other_sound_fail(tmp_path: Path) -> None:
    samples, plan = book()
    renamed = [replace(one, title="x") for one in plan.chapters]
    for made in (
        write(tmp_path / "a.m4b", samples, chapters=renamed),
        write(tmp_path / "b.m4b", samples),
        write(tmp_path / "c.m4b", speech(len(samples) / RATE, RATE, 77), chapters=plan.chapters),
    ):
        assert "chapters" in report_file(made, PRESETS["none"], plan)["failed"]


# ------------------------------------------------------------------------------------------ words and pages


class Text(HTMLParser):
    """Collects a page's text, its tags, and whatever would be fetched from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.tags, self.links = "", [], []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_tells_everything_and_needs_nothing_else(tmp_path: Path, language: str) -> None:
    path = write(tmp_path / "章 <1>.mp3", BAD["rms"](good()))
    report = whole_report([report_file(path, AUDIOBOOK, language=language)], AUDIOBOOK, FACTS.tool, FACTS.created)
    page = Text()
    page.feed(report_html(report, "Book & <i>", language))
    for row in report["files"][0]["rows"]:
        for key in ("label", "shown", "wanted", "advice"):
            assert row[key] in page.text
    assert "章 <1>.mp3" in page.text and "Book & <i>" in page.text
    assert not page.links and "script" not in page.tags and "i" not in page.tags
    assert json.loads(json.dumps(report)) == report
    assert (report["status"], report["failed"]) == ("fail", ["章 <1>.mp3"])


def test_every_word_exists_in_both_languages() -> None:
    for table in (LABELS, ADVICE, PHRASES):
        for key, (english, chinese) in table.items():
            assert english and chinese and english != chinese, key
            assert set(re.findall(r"{\w+}", english)) == set(re.findall(r"{\w+}", chinese)), key
            assert re.search(r"[\u4e00-\u9fff]", chinese) or chinese == "RMS", key
    assert set(ADVICE) == set(LABELS)


def test_bit_rates_suit_the_presets() -> None:
    assert bit_rate(FORMATS["mp3"], AUDIOBOOK.sample_rate) >= AUDIOBOOK.mp3_kbps

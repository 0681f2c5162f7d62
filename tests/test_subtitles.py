"""SRT and WebVTT: inside the sound, never going back, readable lines, no word lost."""

from __future__ import annotations

import re

import numpy as np
import pytest

from studio.layout import Piece, Span
from studio.subtitles import LINE_WIDTH, Cue, columns, cues_of, split_text, srt, vtt, words_of
from voxcpm_core.audio import Audio

RATE = 24_000
SILENCE = Audio(np.zeros(10, np.float32), RATE)
TEXTS = (
    "The old lighthouse keeper climbed the stairs every evening before the sun went down. He trimmed the lamp.",
    "第一章，老守塔人每天傍晚在太阳落山之前爬上楼梯。他修剪了灯芯，擦了玻璃，在他的书里写了几行字。“真的吗？”她问。",
    "Mixed 中文 text 和 English words，很好。Is it? 3.14 it is!",
    "a" * 130 + " b",
    "No.",
    "«Vraiment ?» dit-elle… — Oui !",
    "  ",
    "…",
)


def spans(texts: tuple[str, ...] = TEXTS, seconds: float = 5.0, gap: float = 0.5, words=()) -> list[Span]:
    step = seconds + gap
    return [
        Span(round(n * step * RATE), round((n * step + seconds) * RATE), Piece(text, SILENCE, words=words))
        for n, text in enumerate(texts)
    ]


def clocks(text: str) -> list[float]:
    found = re.findall(r"(\d\d):(\d\d):(\d\d)[,.](\d\d\d)", text)
    return [int(h) * 3600 + int(m) * 60 + int(s) + int(ms) / 1000 for h, m, s, ms in found]


@pytest.mark.parametrize("text", TEXTS)
def test_no_character_is_lost_and_lines_are_short(text: str) -> None:
    cues = split_text(text)
    assert "".join("".join(cues).split()) == "".join(text.split())
    for cue in cues:
        lines = cue.split("\n")
        assert len(lines) <= 2
        assert all(0 < columns(line) <= LINE_WIDTH for line in lines)


def test_lines_do_not_begin_with_closing_marks() -> None:
    long = "他修剪了灯芯，擦了玻璃，在他的书里写了几行字，然后他又回到了楼上，看着远处的灯光，等着船来。" * 3
    lines = [line for cue in split_text(long) for line in cue.split("\n")]
    assert len(lines) > 5
    assert not [line for line in lines if line[0] in "，。！？”、"]


def test_a_cue_ends_where_a_sentence_does() -> None:
    cues = split_text("He came in late at night and sat down. She did not look up from her book, not even once.")
    assert cues[0].replace("\n", " ") == "He came in late at night and sat down."


@pytest.mark.parametrize("seed", range(20))
def test_times_are_monotone_and_inside_the_sound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made, at = [], 0
    for _ in range(30):
        text = TEXTS[rng.integers(len(TEXTS))]
        at += int(rng.integers(0, RATE))
        stop = at + int(rng.integers(0, 8 * RATE))
        made.append(Span(at, stop, Piece(text, SILENCE)))
        at = stop
    total = at / RATE - rng.uniform(0, 3)  # also when the file came out shorter
    for text in (srt(cues_of(made, RATE, total)), vtt(cues_of(made, RATE, total))):
        times = clocks(text)
        assert times and times == sorted(times)
        assert times[-1] <= total
        assert all(start < end for start, end in zip(times[::2], times[1::2], strict=True))


def test_cues_stay_inside_their_piece() -> None:
    made = spans()
    for cue in cues_of(made, RATE, 1000.0):
        assert any(span.start / RATE - 1e-6 <= cue.start < cue.end <= span.stop / RATE + 1e-6 for span in made)


def test_longer_text_takes_longer() -> None:
    cues = cues_of(
        spans(("Short one. This sentence is a good deal longer than the first one was, is it not?",)), RATE, 9
    )
    first, *rest = cues
    assert first.end - first.start < (rest[-1].end - first.end)


def test_words_give_the_times_when_they_are_known() -> None:
    text = "He came in late at night and sat down. She did not look."
    words = tuple((0.1 + 0.3 * n, 0.3 + 0.3 * n, word) for n, word in enumerate(text.split()))
    made = spans((text,), words=words)
    first, second = cues_of(made, RATE, 9)
    assert (first.start, first.end) == pytest.approx((words[0][0], words[8][1]))
    assert (second.start, second.end) == pytest.approx((words[9][0], words[12][1]))
    each = words_of(made, RATE, 9)
    assert [cue.text for cue in each] == text.split()
    assert each[3].start == pytest.approx(words[3][0])


def test_words_of_another_text_are_not_used() -> None:
    words = ((0.1, 0.2, "something"), (0.3, 0.4, "else"))
    with_words, without = (cues_of(spans(TEXTS[:1], words=w), RATE, 9) for w in (words, ()))
    assert with_words == without


def test_words_that_overlap_or_leave_the_sound_are_put_right() -> None:
    words = ((0.0, 1.0, "a"), (0.5, 1.5, "b"), (4.0, 9.0, "c"), (7.0, 8.0, "d"))
    times = clocks(vtt(words_of(spans(("a b c d",), words=words), RATE, 4.5)))
    assert times == [0.0, 1.0, 1.0, 1.5, 4.0, 4.5]


def test_the_formats_look_as_players_want_them() -> None:
    cues = [Cue(0.0, 1.5, "One"), Cue(3661.25, 3662.0, "Two\nlines <&>", "A <b>")]
    assert srt(cues) == "1\n00:00:00,000 --> 00:00:01,500\nOne\n\n2\n01:01:01,250 --> 01:01:02,000\nTwo\nlines <&>\n"
    assert vtt(cues, "made by --> x\ny") == (
        "WEBVTT\n\nNOTE made by -> x y\n\n00:00:00.000 --> 00:00:01.500\nOne\n"
        "\n01:01:01.250 --> 01:01:02.000\n<v A &lt;b&gt;>Two\nlines &lt;&amp;&gt;\n"
    )


def test_nothing_to_say_makes_an_empty_file() -> None:
    assert srt(cues_of([], RATE, 0.0)) == ""
    assert vtt([]) == "WEBVTT\n"

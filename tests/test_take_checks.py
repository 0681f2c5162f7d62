"""The checks of a take find what they are named after, and leave good takes alone."""

from __future__ import annotations

import time

import numpy as np
import pytest

from studio.checks import Check, worst
from studio.take_checks import check_take, error_rate, expected_seconds

RATE = 48_000
TEXT = "The river ran slowly past the old mill and into the sea."


def speech(seconds: float, rate: int = RATE, level: float = 0.3) -> np.ndarray:
    """Syllables: a buzz whose level rises and falls about five times a second, from silence to silence."""
    t = np.arange(round(seconds * rate)) / rate
    syllables = np.sin(np.pi * round(5 * seconds) / seconds * t) ** 2
    return (level * np.sin(2 * np.pi * 140 * t) * syllables).astype(np.float32)


def found(samples: np.ndarray, text: str = TEXT, ended_by: str = "stop", rate: int = RATE, **more) -> dict[str, Check]:
    return {check.name: check for check in check_take(samples, rate, spoken_text=text, ended_by=ended_by, **more)}


def faults(checks: dict[str, Check]) -> dict[str, str]:
    return {name: check.verdict for name, check in checks.items() if check.verdict != "ok"}


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000])
def test_a_good_take_has_no_fault_and_every_line(rate: int) -> None:
    checks = found(speech(4.0, rate), rate=rate)
    assert faults(checks) == {}
    assert list(checks) == ["ending", "length", "sound", "silence", "clipping", "edges"]
    assert worst(checks.values()) == "ok"


@pytest.mark.parametrize(
    "text, seconds, fault",
    [
        ("Hi", 30.0, {"too_long": "fail"}),  # regression 11
        ("Hi", 1.9, {}),
        ("好", 1.9, {}),
        ("行。", 30.0, {"too_long": "fail"}),
        ("No.", 4.0, {"too_long": "fail"}),
        (TEXT, 4.2, {}),
        (TEXT, 2.5, {}),  # quick
        (TEXT, 7.5, {}),  # slow
        (TEXT, 10.0, {"too_long": "warn"}),
        (TEXT, 20.0, {"too_long": "fail"}),
        (TEXT, 1.8, {"too_short": "warn"}),
        (TEXT, 0.8, {"too_short": "fail"}),
        ("今天的天气真好，我们一起去公园散步吧。", 4.4, {}),
        ("今天的天气真好，我们一起去公园散步吧。", 20.0, {"too_long": "fail"}),
        ("今天的天气真好，我们一起去公园散步吧。", 1.0, {"too_short": "fail"}),
        ("안녕하세요, 만나서 반갑습니다.", 3.0, {}),
        ("こんにちは、お元気ですか。", 2.2, {}),
        ("1996", 1.5, {}),  # read as words
    ],
)
def test_the_length_must_fit_the_text(text: str, seconds: float, fault: dict) -> None:
    checks = found(speech(seconds), text)
    assert faults(checks) == fault
    [length] = [check for name, check in checks.items() if name in ("length", "too_long", "too_short")]
    assert length.facts == {
        "seconds": seconds,
        "characters": len(text),
        "expected": pytest.approx(expected_seconds(text), abs=0.05),
    }


def test_a_short_text_is_told_so_in_plain_words() -> None:
    advice = found(speech(30.0), "Hi")["too_long"].advice
    assert advice.startswith("Too long for this short text: 30.0 s for 2 characters") and "Re-roll" in advice


def test_the_models_own_rule_counts_above_two_seconds_only() -> None:
    assert faults(found(speech(4.2), too_long_for_model=True)) == {"too_long": "fail"}
    assert faults(found(speech(1.9), "Hi", too_long_for_model=True)) == {}


@pytest.mark.parametrize(
    "ended_by, fault",
    [("stop", {}), ("cancelled", {"ending": "warn"}), ("limit", {"ending": "fail"}), ("error", {"ending": "fail"})],
)
def test_how_it_ended(ended_by: str, fault: dict) -> None:
    assert faults(found(speech(4.0), ended_by=ended_by)) == fault


def test_what_was_stopped_is_not_called_short() -> None:
    assert faults(found(speech(0.4), ended_by="cancelled")) == {"ending": "warn"}


@pytest.mark.parametrize("samples", [np.zeros(0), np.zeros(4 * RATE), np.full(4 * RATE, 3e-4), np.zeros(5)])
def test_no_sound(samples: np.ndarray) -> None:
    checks = found(samples.astype(np.float32), "Hi")
    assert checks["sound"].verdict == "fail" and "silence" not in checks and "clipping" not in checks


@pytest.mark.parametrize("pause, verdict", [(0.8, "ok"), (2.0, "warn"), (5.0, "fail")])
def test_a_pause_inside(pause: float, verdict: str) -> None:
    gap = np.zeros(round(pause * RATE), np.float32)
    check = found(np.concatenate([speech(2.0), gap, speech(2.0)]), TEXT * 3)["silence"]
    assert check.verdict == verdict
    assert check.facts["seconds"] == pytest.approx(pause, abs=0.1)
    assert check.facts["at"] == pytest.approx(2.0, abs=0.1)


def test_silence_around_is_no_pause() -> None:
    quiet = np.zeros(2 * RATE, np.float32)
    assert found(np.concatenate([quiet, speech(3.0), quiet]))["silence"].facts["seconds"] < 0.2


@pytest.mark.parametrize("cut, verdict", [(3, "ok"), (30, "warn"), (300, "fail")])
def test_clipping(cut: int, verdict: str) -> None:
    """Samples beyond full scale, and tops that are flat at full scale for five samples (of which three count)."""
    beyond, flat = speech(4.0), speech(4.0)
    beyond[RATE : RATE + 2 * cut : 2] = 1.2
    for place in range(cut):
        flat[RATE + 40 * place : RATE + 40 * place + 5] = -1.0
    for samples in (beyond, flat):
        check = found(samples)["clipping"]
        assert check.verdict == verdict and check.facts["percent"] > 0


def test_a_loud_take_is_not_clipped() -> None:
    assert found(0.98 / 0.3 * speech(4.0))["clipping"].verdict == "ok"


@pytest.mark.parametrize("where", ["start", "end"])
@pytest.mark.parametrize("what", ["click", "noise", "cut"])
def test_the_edges(where: str, what: str) -> None:
    samples = speech(4.0)
    size = round(0.05 * RATE)
    if what == "click":
        samples[100] = 0.6
    elif what == "noise":
        samples[:size] = 0.05 * np.random.default_rng(0).standard_normal(size)
    else:
        samples = samples[round(0.1 * RATE) :]  # in the middle of a syllable
    checks = found(samples if where == "start" else samples[::-1].copy())
    assert faults(checks) == {"edges": "warn"}
    assert checks["edges"].facts == {"where": where, "what": what}


def test_the_end_of_what_was_stopped_is_not_looked_at() -> None:
    samples = speech(4.0)[: -round(0.1 * RATE)]
    assert "edges" in faults(found(samples)) and "edges" not in faults(found(samples, ended_by="cancelled"))


@pytest.mark.parametrize(
    "heard, verdict", [(TEXT, "ok"), ("the river ran slowly", "fail"), (TEXT.replace("old", "cold").upper(), "ok"),
                       (TEXT.replace("old mill", "cold bill"), "warn"), ("", "fail")],
)  # fmt: skip
def test_a_recogniser_is_asked_when_there_is_one(heard: str, verdict: str) -> None:
    asked = []

    def recognise(samples: np.ndarray, rate: int) -> str:
        asked.append((len(samples), rate))
        return heard

    check = found(speech(4.0), recognise=recognise)["words"]
    assert check.verdict == verdict and check.facts["heard"] == heard
    assert asked == [(4 * RATE, RATE)]
    assert "words" not in found(np.zeros(RATE, np.float32), recognise=recognise)  # silence is not sent to it


@pytest.mark.parametrize(
    "text, heard, rate, unit",
    [
        ("one two three four", "one two three four", 0.0, "words"),
        ("one two three four", "one too three", 0.5, "words"),
        ("one two", "one two three four", 1.0, "words"),
        ("It's 5 o'clock!", "its 5 oclock", 0.0, "words"),
        ("你好世界", "你好，世界！", 0.0, "characters"),
        ("你好世界", "你好时界", 0.25, "characters"),
        ("안녕 하세요", "안녕하세요", 0.0, "characters"),
        ("ＡＢＣ", "abc", 0.0, "words"),
        ("...", "", 0.0, "words"),
        ("...", "noise", 1.0, "words"),
        ("a b c", "c a b", 2 / 3, "words"),
    ],
)
def test_the_error_rate_counts_edits(text: str, heard: str, rate: float, unit: str) -> None:
    assert error_rate(text, heard) == (pytest.approx(rate), unit)


def test_edits_agree_with_the_table_of_the_textbook() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        one, other = ("".join(rng.choice(list("ab c"), rng.integers(0, 12))) for _ in range(2))
        a, b = one.split(), other.split()
        table = np.zeros((len(a) + 1, len(b) + 1), int)
        table[:, 0], table[0] = np.arange(len(a) + 1), np.arange(len(b) + 1)
        for i in range(1, len(a) + 1):
            for j in range(1, len(b) + 1):
                table[i, j] = min(
                    table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a[i - 1] != b[j - 1])
                )
        if a:
            assert error_rate(one, other)[0] == pytest.approx(table[-1, -1] / len(a))


def test_a_check_survives_its_record() -> None:
    check = found(speech(4.0))["length"]
    assert Check.from_dict({**check.as_dict(), "of a newer version": 1}) == check
    assert worst([]) == "ok"


def test_the_same_take_gives_the_same_checks_quickly() -> None:
    samples = speech(10.0) + 0.001 * np.random.default_rng(0).standard_normal(10 * RATE).astype(np.float32)
    first, seconds = found(samples, TEXT * 3), []
    for _ in range(5):
        began = time.process_time()
        assert found(samples, TEXT * 3) == first
        seconds.append(time.process_time() - began)
    assert min(seconds) < 0.02

"""Loudness against known values of BS.1770, and gains that make takes comparable."""

from __future__ import annotations

import math

import numpy as np
import pytest

from studio import loudness as module
from studio.loudness import CEILING, TARGET, common_target, loudness, match_gain, peak

RATES = [16_000, 44_100, 48_000]


def sine(rate: int, seconds: float, level: float = 0.0, hertz: float = 997.0) -> np.ndarray:
    """A sine whose top is at ``level`` dBFS."""
    time = np.arange(round(rate * seconds)) / rate
    return (10 ** (level / 20) * np.sin(2 * np.pi * hertz * time)).astype(np.float32)


def speech_like(rate: int, seconds: float, seed: int = 0) -> np.ndarray:
    """Syllables of noise with pauses: a crest of about 15 dB, as in speech."""
    rng, n = np.random.default_rng(seed), round(rate * seconds)
    gate = np.repeat(rng.choice([0.02, 0.5, 1.0], size=n // 2000 + 1), 2000)[:n]
    return (rng.standard_normal(n) * gate * 0.1).astype(np.float32)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("level", [0.0, -20.0, -40.0])
def test_a_sine_reads_3_lu_below_its_top(rate: int, level: float) -> None:
    assert loudness(sine(rate, 5, level), rate) == pytest.approx(level - 3.01, abs=0.06)


def test_the_filters_are_those_that_the_standard_lists_for_48_khz() -> None:
    (head, head_back), (_, ear_back) = module._shelf(48_000), module._high_pass(48_000)
    assert head == pytest.approx((1.53512485958697, -2.69169618940638, 1.19839281085285), abs=1e-12)
    assert head_back == pytest.approx((-1.69065929318241, 0.73248077421585), abs=1e-12)
    assert ear_back == pytest.approx((-1.99004745483398, 0.99007225036621), abs=1e-12)


def test_the_spectrum_gives_what_the_recursion_gives() -> None:
    samples = speech_like(48_000, 0.3).astype(float)
    expected = samples
    for (b0, b1, b2), (a1, a2) in (module._shelf(48_000), module._high_pass(48_000)):
        out = np.zeros(len(expected) + 2)
        x = np.concatenate([[0, 0], expected])
        for n in range(2, len(x)):
            out[n] = b0 * x[n] + b1 * x[n - 1] + b2 * x[n - 2] - a1 * out[n - 1] - a2 * out[n - 2]
        expected = out[2:]
    assert np.abs(module._k_weighted(samples, 48_000) - expected).max() < 1e-9


def test_deep_hum_counts_little_and_hiss_counts_more() -> None:
    assert loudness(sine(48_000, 5, -20, 20), 48_000) < -33
    assert loudness(sine(48_000, 5, -20, 8000), 48_000) == pytest.approx(-23.01 + 3.3, abs=0.3)


def test_pauses_do_not_count() -> None:
    """Gating: a minute of near silence around ten seconds of tone changes nothing."""
    tone, quiet = sine(48_000, 10, -20), sine(48_000, 30, -75)
    assert loudness(np.concatenate([quiet, tone, quiet]), 48_000) == pytest.approx(-23.01, abs=0.2)  # ungated: -31


def test_the_relative_gate_leaves_out_what_is_10_lu_below() -> None:
    """Of the cases of EBU Tech 3341: -36, -23 and -36 dBFS read as if the loud middle were alone."""
    parts = [sine(48_000, 10, -36), sine(48_000, 60, -23), sine(48_000, 10, -36)]
    assert loudness(np.concatenate(parts), 48_000) == pytest.approx(-23 - 3.01, abs=0.1)


def test_a_long_take_reads_as_if_it_were_filtered_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = speech_like(16_000, 50)
    in_pieces = loudness(samples, 16_000)
    monkeypatch.setattr(module, "_PIECE", 100.0)
    assert in_pieces == pytest.approx(loudness(samples, 16_000), abs=1e-6)


@pytest.mark.parametrize("seconds", [0.02, 0.1, 0.399, 0.4, 0.41])
def test_a_short_take_has_a_loudness_too(seconds: float) -> None:
    assert loudness(sine(48_000, seconds, -20), 48_000) == pytest.approx(-23.01, abs=0.5)


@pytest.mark.parametrize("samples", [np.zeros(0, np.float32), np.zeros(48_000, np.float32), sine(48_000, 1, -80)])
def test_silence_has_no_loudness_and_gets_no_gain(samples: np.ndarray) -> None:
    assert loudness(samples, 48_000) is None
    assert match_gain(loudness(samples, 48_000), peak(samples)) == 0.0


def test_a_peak_is_in_dbfs() -> None:
    assert peak(np.array([0.1, -0.5], np.float32)) == pytest.approx(20 * math.log10(0.5))
    assert peak(np.zeros(3)) is None and peak(np.zeros(0)) is None


@pytest.mark.parametrize("level, other", [(-30.0, -12.0), (-12.0, -40.0), (-20.0, -20.0)])
def test_takes_are_matched_to_within_half_a_lu(level: float, other: float) -> None:
    takes = []
    for number, wanted in enumerate((level, other)):
        samples = speech_like(48_000, 6, seed=number)
        takes.append(samples * 10 ** ((wanted - loudness(samples, 48_000)) / 20))
    measured = [(loudness(samples, 48_000), peak(samples)) for samples in takes]
    assert [lufs for lufs, _ in measured] == pytest.approx([level, other], abs=0.01)
    target = common_target(measured)
    assert target == TARGET  # the ceiling is not met by speech
    played = [samples * 10 ** (match_gain(*facts, target) / 20) for samples, facts in zip(takes, measured, strict=True)]
    heard = [loudness(samples, 48_000) for samples in played]
    assert abs(heard[0] - heard[1]) < 0.5 and heard == pytest.approx([TARGET] * 2, abs=0.05)
    assert all(peak(samples) <= CEILING + 0.01 for samples in played)


def test_a_take_with_high_peaks_lowers_the_level_of_all() -> None:
    spiky = (-40.0, -12.0)  # 28 dB between loudness and peak
    target = common_target([(-20.0, -5.0), spiky, (None, None)])
    assert target == pytest.approx(-29.0)
    assert [match_gain(*take, target) for take in [(-20.0, -5.0), spiky]] == pytest.approx([-9.0, 11.0])


def test_one_odd_take_does_not_pull_the_others_into_silence() -> None:
    assert common_target([(-60.0, -1.0)]) == -30.0
    assert match_gain(-60.0, -1.0, -30.0) == 0.0  # what it can have
    assert common_target([]) == TARGET

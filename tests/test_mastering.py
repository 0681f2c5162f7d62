"""Levels: true peak and limiter, meter, presets, voice gains, room tone."""

from __future__ import annotations

import time

import numpy as np
import pytest

from studio import loudness
from studio.loudness_meter import NOTHING, Meter, measure
from studio.mastering import PRESETS, Master, gain_of, master, room_tone, voice_gains
from studio.true_peak import limit, true_peak
from tests.recordings import quiet_room, speech

RATES = (16_000, 22_050, 24_000, 44_100, 48_000)


def db(factor: float) -> float:
    return 20 * np.log10(factor)


def mastered(samples: np.ndarray, rate: int, preset: str) -> np.ndarray:
    return np.concatenate(list(master(samples, rate, PRESETS[preset]).blocks()))


# ------------------------------------------------------------------------------------------------- true peak


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("share", [0.02, 0.25, 0.37, 0.44])
def test_true_peak_finds_what_lies_between_samples(rate: int, share: float) -> None:
    at = np.arange(rate)
    sine = 0.5 * np.sin(2 * np.pi * share * at + np.pi / 4) * np.hanning(rate)
    assert db(true_peak(sine.astype(np.float32))) == pytest.approx(db(0.5), abs=0.15)


def test_a_sine_at_a_quarter_of_the_rate_hides_three_decibels_from_its_samples() -> None:
    sine = (np.sin(np.pi / 2 * np.arange(4000) + np.pi / 4) * np.hanning(4000)).astype(np.float32)
    assert db(float(np.abs(sine).max())) == pytest.approx(-3.0, abs=0.1)
    assert db(true_peak(sine)) == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("gain", [1.0, 4.0, 30.0])
def test_the_limiter_keeps_true_peaks_below_its_ceiling(rate: int, gain: float) -> None:
    samples, ceiling = speech(6.0, rate, 3), 10 ** (-3 / 20)
    limited = limit(samples, rate, gain, ceiling)
    assert true_peak(limited) <= ceiling * 1.005
    assert len(limited) == len(samples)


def test_the_limiter_leaves_alone_what_is_below_the_ceiling() -> None:
    samples = speech(3.0)
    assert np.array_equal(limit(samples, 24_000, 1.0, 1.0), samples)


def test_the_limiter_acts_near_a_peak_only() -> None:
    samples = np.full(48_000, 0.1, np.float32)
    samples[24_000] = 2.0
    limited = limit(samples, 48_000, 1.0, 0.5)
    changed = np.flatnonzero(limited != samples)
    assert changed.min() >= 24_000 - 0.032 * 48_000
    assert changed.max() <= 24_000 + 0.032 * 48_000
    assert limited[24_000] == pytest.approx(0.5, abs=0.01)


def test_pieces_equal_the_whole() -> None:
    samples = speech(5.0, 44_100, 5)
    whole = limit(samples, 44_100, 6.0, 0.5)
    edges = [0, 1, 700, 50_000, 50_001, 130_000, len(samples)]
    pieces = [limit(samples, 44_100, 6.0, 0.5, start, stop) for start, stop in zip(edges, edges[1:], strict=False)]
    assert np.allclose(np.concatenate(pieces), whole, atol=1e-6)


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_very_short_sounds(count: int) -> None:
    samples = np.full(count, 0.9, np.float32)
    assert len(limit(samples, 16_000, 2.0, 0.5)) == count
    assert true_peak(samples) >= 0.899 if count else true_peak(samples) == 0.0


# ----------------------------------------------------------------------------------------------------- meter


@pytest.mark.parametrize("rate", [16_000, 22_050, 48_000])
@pytest.mark.parametrize("seconds", [0.2, 3.0, 43.3])
def test_the_meter_hears_in_blocks_what_is_there_as_a_whole(rate: int, seconds: float) -> None:
    samples = speech(seconds, rate, 2)
    meter = Meter(rate)
    at, rng = 0, np.random.default_rng(0)
    while at < len(samples):
        step = int(rng.integers(1, 60_000))
        meter.add(samples[at : at + step])
        at += step
    levels = meter.levels()
    assert levels.lufs == pytest.approx(loudness.loudness(samples, rate), abs=1e-3)
    assert levels.rms == pytest.approx(db(float(np.sqrt(np.mean(np.square(samples, dtype=float))))), abs=1e-6)
    assert levels.peak == pytest.approx(db(true_peak(samples)), abs=1e-4)
    assert levels.seconds == pytest.approx(len(samples) / rate)


def test_the_meter_reads_floor_head_and_tail() -> None:
    rate = 44_100
    room = quiet_room(rate * 8, -66.0)
    room[round(0.8 * rate) : round(5.5 * rate)] += 0.2 * np.sin(np.arange(round(5.5 * rate) - round(0.8 * rate)) / 9)
    levels = measure(room.astype(np.float32), rate)
    assert levels.floor == pytest.approx(-66.0, abs=0.3)
    assert levels.head == pytest.approx(0.8, abs=0.011)
    assert levels.tail == pytest.approx(2.5, abs=0.011)


def test_silence_and_nothing_have_levels() -> None:
    silent, empty = measure(np.zeros(48_000, np.float32), 48_000), measure(np.zeros(0, np.float32), 48_000)
    assert (silent.rms, silent.lufs, silent.floor, silent.head) == (NOTHING, None, NOTHING, 1.0)
    assert (empty.seconds, empty.lufs, empty.peak) == (0.0, None, NOTHING)


# --------------------------------------------------------------------------------------------------- presets


@pytest.mark.parametrize("rate", [16_000, 44_100])
@pytest.mark.parametrize("name", ["audiobook", "podcast", "broadcast"])
@pytest.mark.parametrize("level", [-45.0, -12.0])
def test_a_preset_brings_any_level_to_its_numbers(rate: int, name: str, level: float) -> None:
    preset = PRESETS[name]
    levels = measure(mastered(speech(12.0, rate, 4, level), rate, name), rate)
    reached = levels.rms if preset.measure == "rms" else levels.lufs
    assert reached == pytest.approx(preset.target, abs=0.5)
    assert levels.peak <= preset.ceiling


def test_the_preset_none_changes_nothing() -> None:
    samples = speech(3.0)
    assert np.array_equal(mastered(samples, 24_000, "none"), samples)


def test_silence_is_not_made_of_noise() -> None:
    assert measure(mastered(np.zeros(48_000, np.float32), 48_000, "podcast"), 48_000).rms < -70.0


def test_mastering_reads_no_more_than_a_block_at_once() -> None:
    """What lies on disk is asked for in pieces: RAM does not grow with a chapter's length."""

    class Counted:
        asked: list[int] = []

        def __len__(self) -> int:
            return 44_100 * 40

        def __getitem__(self, part: slice) -> np.ndarray:
            start, stop, _ = part.indices(len(self))
            self.asked.append(stop - start)
            return np.resize(speech(2.0, 44_100), stop - start)

    samples = Counted()
    total = sum(len(block) for block in master(samples, 44_100, PRESETS["audiobook"]).blocks())
    assert total == len(samples)
    assert max(samples.asked) <= 11 * 44_100


def test_mastering_is_much_faster_than_listening() -> None:
    """A limit of CPU time, generous for busy machines: an hour of sound stays below two minutes."""
    samples = np.tile(speech(15.0, 44_100), 4)
    begin = time.process_time()
    mastered(samples, 44_100, "podcast")
    assert time.process_time() - begin < 2 * len(samples) / 44_100 / 60 * 2


# ---------------------------------------------------------------------------------------- voices, room tone


def test_every_voice_has_one_gain_and_they_meet() -> None:
    gains = voice_gains([("a", -20.0, 10.0), ("a", -22.0, 10.0), ("b", -30.0, 20.0), ("", None, 3.0)])
    assert set(gains) == {"a", "b"}
    assert -20.9 + gains["a"] == pytest.approx(-30.0 + gains["b"], abs=0.05)
    assert gain_of(gains, "a") == pytest.approx(10 ** (gains["a"] / 20))
    assert gain_of(gains, "never heard") == 1.0


def test_a_whisper_does_not_pull_its_voice_up() -> None:
    with_whisper = voice_gains([("a", -20.0, 60.0), ("a", -45.0, 60.0), ("b", -20.0, 60.0)])
    assert abs(with_whisper["a"] - with_whisper["b"]) < 0.01


def test_voices_are_not_moved_beyond_reason() -> None:
    assert voice_gains([("a", -10.0, 5.0), ("b", -60.0, 5.0)]) == {"a": -12.0, "b": 12.0}


@pytest.mark.parametrize("rate", RATES)
def test_room_tone_is_quiet_endless_and_the_same_every_time(rate: int) -> None:
    tone = room_tone(rate, -72.0, 0, 25 * rate)
    assert db(float(np.sqrt(np.mean(np.square(tone, dtype=float))))) == pytest.approx(-72.0, abs=0.1)
    assert np.array_equal(room_tone(rate, -72.0, 7 * rate, 13 * rate), tone[7 * rate : 13 * rate])
    step = float(np.abs(np.diff(tone)).max())
    assert abs(tone[10 * rate] - tone[10 * rate - 1]) <= step  # the loop has no seam
    assert np.abs(np.diff(tone[9 * rate : 11 * rate])).max() == pytest.approx(step, rel=0.5)


def test_room_tone_lies_under_everything() -> None:
    silent = np.zeros(48_000 * 2, np.float32)
    levels = measure(np.concatenate(list(Master(silent, 48_000, room_tone=-70.0).blocks())), 48_000)
    assert levels.floor == pytest.approx(-70.0, abs=1.5)

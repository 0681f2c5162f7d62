"""The mark in the sound: found after what happens to files, not found where it is not, and nothing lost above it."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from studio import watermark
from tests.clips import RATE, room, spoken
from tests.recordings import quiet_room, speech
from voxcpm_core.audio import Audio, load_audio, resample, write_wav

pytestmark = pytest.mark.skipif(not watermark.available(), reason=f"not installed: {watermark.PIP_LINE}")


@lru_cache(maxsize=4)
def plain(rate: int = 48_000) -> np.ndarray:
    """Real speech of 9 s with a little noise up to half the rate."""
    samples = resample(Audio(spoken((0, 1)), RATE), rate).samples
    return samples + quiet_room(len(samples), -50.0)


@lru_cache(maxsize=4)
def marked(rate: int = 48_000) -> np.ndarray:
    return watermark.mark(plain(rate), rate)


def band_power(samples: np.ndarray, rate: int, low: float, high: float) -> float:
    power = np.abs(np.fft.rfft(samples)) ** 2
    hertz = np.fft.rfftfreq(len(samples), 1 / rate)
    return float(power[(hertz >= low) & (hertz < high)].sum())


@pytest.mark.parametrize("rate", [16_000, 24_000, 44_100, 48_000])
def test_the_mark_is_found_at_every_rate(rate: int) -> None:
    assert watermark.score(plain(rate), rate) < 0.1
    assert watermark.score(marked(rate), rate) > 0.9


def test_the_band_above_16_khz_is_kept_and_so_is_the_length() -> None:
    before, after = plain(), marked()
    assert len(before) == len(after)
    kept = band_power(after, 48_000, 16_000, 24_000) / band_power(before, 48_000, 16_000, 24_000)
    assert kept == pytest.approx(1.0, abs=1e-3)
    change = after - before
    assert band_power(change, 48_000, 2_100, 24_000) < 1e-4 * band_power(change, 48_000, 0, 24_000)


def test_the_mark_is_much_quieter_than_the_speech() -> None:
    change = marked() - plain()
    assert 10 * np.log10(np.mean(plain() ** 2) / np.mean(change**2)) > 12.0


def test_the_same_sound_gets_the_same_mark() -> None:
    assert np.array_equal(watermark.mark(plain(), 48_000), marked())


@pytest.mark.parametrize(
    "words",
    [("-b:a", "128k", "x.mp3"), ("-b:a", "96k", "x.m4a"), ("-ar", "16000", "x.wav"), ("-af", "volume=-12dB", "x.flac")],
    ids=["mp3 128k", "aac 96k", "16 kHz", "quieter"],
)
def test_the_mark_survives(tmp_path: Path, words: tuple[str, ...]) -> None:
    write_wav(tmp_path / "in.wav", marked(), 48_000)
    command = ["ffmpeg", "-v", "error", "-i", str(tmp_path / "in.wav"), *words[:-1], str(tmp_path / words[-1])]
    subprocess.run(command, check=True)
    heard = load_audio(tmp_path / words[-1])
    assert watermark.score(heard.samples, heard.sample_rate) > watermark.FOUND
    middle = len(heard.samples) // 3
    second = heard.samples[middle : middle + heard.sample_rate]
    assert watermark.score(second, heard.sample_rate) > watermark.FOUND  # one second, cut out of the middle


def test_pauses_with_room_tone_do_not_hide_the_mark() -> None:
    silence = np.zeros(48_000 * 4, np.float32)
    samples = np.concatenate([silence, marked(), silence])
    assert watermark.score(samples + quiet_room(len(samples), -72.0), 48_000) > 0.9


@pytest.mark.parametrize("number", range(20))
def test_twenty_clips_without_the_mark(number: int) -> None:
    factor = 0.85 + 0.02 * number  # twenty sizes of the vocal tract
    clip = spoken((number, number + 3), (factor,)) + room(1, -50.0, number)
    assert watermark.score(clip, RATE) < 0.3


def test_other_sounds_have_no_mark() -> None:
    assert watermark.score(quiet_room(RATE * 4, -20.0), RATE) < 0.3
    assert watermark.score(speech(6.0), RATE) < 0.3


@pytest.mark.parametrize("count", [0, 10, 3000])
def test_what_is_too_short_or_silent_stays_as_it_is(count: int) -> None:
    silence, short = np.zeros(count, np.float32), speech(1.0)[: min(count, 1000)]
    assert np.array_equal(watermark.mark(silence, RATE), silence)
    assert np.array_equal(watermark.mark(short, RATE), short)
    assert watermark.score(silence, RATE) == 0.0


def test_a_long_recording_is_marked_in_pieces_without_a_seam() -> None:
    rate = 16_000
    long = np.tile(plain(rate), 9)  # more than one piece of 60 s
    after = watermark.mark(long, rate)
    seam = slice(59 * rate, 62 * rate)
    assert watermark.score(after[seam], rate) > 0.9
    change = after - long
    assert np.abs(np.diff(change[seam])).max() <= 1.5 * np.abs(np.diff(change[: 50 * rate])).max()
    assert len(after) == len(long)

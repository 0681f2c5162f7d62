"""Pictures: they show what is in the sound, at the right place, quickly, in both variants."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest
from PIL import Image

from studio.pictures import (
    BOTTOM,
    DARK,
    LEFT,
    LIGHT,
    RIGHT,
    TOP,
    colour_map,
    mel_levels,
    spectrogram_png,
    waveform_png,
)

RATE = 48_000


def _tone(hertz: float, seconds: float, rate: int = RATE, level: float = 0.5) -> np.ndarray:
    return (level * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


def _lane(png: bytes) -> np.ndarray:
    """The drawn area without margins, uint8 [height, width, 3]."""
    image = Image.open(io.BytesIO(png))
    return np.asarray(image.convert("RGB").crop((LEFT, TOP, image.width - RIGHT, image.height - BOTTOM)))


def _mel(hertz: float) -> float:
    return 2595 * np.log10(1 + hertz / 700)


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000])
@pytest.mark.parametrize("hertz", [300, 1000, 5000])
def test_a_tone_is_brightest_at_its_frequency(rate: int, hertz: float) -> None:
    levels = mel_levels(_tone(hertz, 1.0, rate), rate, columns=50, rows=200)
    brightest = 199.5 - levels[:, 25].argmax()  # rows from the bottom, middle of the row
    assert abs(brightest - 200 * _mel(hertz) / _mel(rate / 2)) < 2


def test_a_burst_is_where_it_happens() -> None:
    samples = np.zeros(4 * RATE, np.float32)
    samples[RATE : 2 * RATE] = _tone(1000, 1.0)
    loud = mel_levels(samples, RATE, columns=400, rows=100).max(axis=0) > 200
    assert loud[105:195].all()
    assert not loud[:95].any() and not loud[205:].any()


def test_the_waveform_shows_level_and_place() -> None:
    samples = np.zeros(2 * RATE, np.float32)
    samples[RATE:] = 0.7 * np.sign(_tone(200, 1.0))
    lane = _lane(waveform_png(samples, RATE))
    drawn = (lane != np.array(LIGHT.lane)).any(axis=2).sum(axis=0) / lane.shape[0]
    half = lane.shape[1] // 2
    assert drawn[: half - 2].max() < 0.03
    assert np.allclose(drawn[half + 4 : -4], 0.7, atol=0.03)


def test_a_quiet_take_is_drawn_on_a_finer_scale_and_a_clipped_one_is_marked() -> None:
    quiet = _lane(waveform_png(_tone(200, 1.0, level=0.12), RATE))
    assert (quiet != np.array(LIGHT.lane)).any(axis=2).sum(axis=0).max() > 0.9 * quiet.shape[0]
    red = np.array(LIGHT.clip)
    assert (_lane(waveform_png(_tone(200, 1.0, level=1.0), RATE)) == red).all(axis=2).any()
    assert not (_lane(waveform_png(_tone(200, 1.0, level=0.9), RATE)) == red).all(axis=2).any()


@pytest.mark.parametrize("draw", [waveform_png, spectrogram_png])
@pytest.mark.parametrize("dark", [False, True])
def test_both_variants_keep_their_ground_and_readable_ink(draw, dark: bool) -> None:
    image = np.asarray(Image.open(io.BytesIO(draw(_tone(440, 3.0), RATE, dark=dark))).convert("RGB"))
    palette = DARK if dark else LIGHT
    assert tuple(image[-1, 0]) == palette.ground
    contrast = abs(_lightness(palette.ink) - _lightness(palette.ground))
    assert contrast > 110
    assert (image == np.array(palette.ink)).all(axis=2).sum() > 200  # ticks and labels are there


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_the_colour_map_goes_one_way_in_lightness(palette) -> None:
    lightness = np.array([_lightness(colour) for colour in colour_map(palette)])
    steps = np.diff(lightness) * (1 if lightness[-1] > lightness[0] else -1)
    assert steps.min() > -1.0
    assert abs(lightness[-1] - lightness[0]) > 180


@pytest.mark.parametrize("draw", [waveform_png, spectrogram_png])
@pytest.mark.parametrize(
    "samples",
    [[], [0.1], np.zeros(100), np.full(5000, np.nan), np.array([np.inf, -np.inf] * 50), np.ones((2, 50))],
    ids=["empty", "one", "silent", "nan", "inf", "two-dimensional"],
)
def test_any_samples_make_a_picture(draw, samples) -> None:
    for rate in (8_000, 48_000):
        assert Image.open(io.BytesIO(draw(np.asarray(samples), rate))).size[0] > 500


def test_silence_is_dark_not_full_of_noise() -> None:
    assert mel_levels(np.zeros(RATE, np.float32), RATE, columns=20, rows=20).max() == 0


@pytest.mark.parametrize("draw", [waveform_png, spectrogram_png])
def test_half_a_minute_is_drawn_quickly(draw) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 30 * RATE).astype(np.float32)
    best = min(_seconds(lambda: draw(noise, RATE)) for _ in range(4))
    assert best < 0.15


def _seconds(work) -> float:
    began = time.process_time()  # this process alone: a busy machine does not fail the test
    work()
    return time.process_time() - began


def _lightness(colour) -> float:
    red, green, blue = (float(value) for value in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

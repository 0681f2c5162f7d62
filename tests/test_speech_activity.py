"""Speech regions on clips whose sentences lie at known places, and voices told apart by their embeddings."""

from __future__ import annotations

import numpy as np
import pytest

from studio import speakers
from studio.clip_analysis import analyse
from studio.clip_measures import HOP, read_frames
from studio.speech_activity import Activity, find_speech
from tests import clips
from voxcpm_core.audio import Audio, resample


def find(samples: np.ndarray, rate: int = clips.RATE) -> Activity:
    return find_speech(read_frames(Audio(samples.astype(np.float32), rate)))


@pytest.fixture(scope="module")
def placed() -> tuple[np.ndarray, np.ndarray]:
    """Three sentences with pauses of 1.5 s and more, without any noise; and which frames have speech in them."""
    sound = clips.spoken((0, 2, 4), pause=1.0) - clips.room(len(clips.spoken((0, 2, 4), pause=1.0)))
    frames = sound[: len(sound) // 240 * 240].reshape(-1, 240)
    loud = np.sqrt((frames**2).mean(axis=1)) > 0.003
    return sound, np.convolve(loud, np.ones(21), mode="same") > 0  # short gaps between words are speech


@pytest.mark.parametrize("snr", [60, 20, 10])
@pytest.mark.parametrize("rate", [8_000, 24_000, 44_100])
def test_speech_is_found_where_it_was_put(placed: tuple[np.ndarray, np.ndarray], snr: int, rate: int) -> None:
    sound, truth = placed
    level = 10 * np.log10(np.mean(sound**2)) - snr
    noisy = resample(Audio(sound + clips.room(len(sound), level), clips.RATE), rate)
    activity = find(noisy.samples, rate)
    found = np.zeros(len(truth), bool)
    for start, end in activity.regions:
        found[round(start / HOP) : round(end / HOP)] = True
    assert np.mean(truth & ~found) < 0.06 * truth.mean() + 0.02
    assert np.mean(found & ~truth) < 0.06


@pytest.mark.parametrize(
    "sound",
    [
        clips.room(3 * clips.RATE, -20),
        0.3 * np.sin(np.arange(3 * clips.RATE) / 15),
        clips.room(3 * clips.RATE, -80),
        np.zeros(240),
        np.zeros(1),
    ],
    ids=["hiss", "tone", "soft hiss", "10 ms", "one sample"],
)
def test_steady_sounds_are_no_speech(sound: np.ndarray) -> None:
    assert find(sound).regions == []


def test_frames_measure_level_and_pitch() -> None:
    moments = np.arange(2 * clips.RATE) / clips.RATE
    for hertz in (80, 150, 300):
        buzz = sum(np.sin(2 * np.pi * hertz * number * moments) / number for number in range(1, 9))
        frames = read_frames(Audio((0.1 * buzz).astype(np.float32), clips.RATE))
        assert np.median(frames.pitch_hz) == pytest.approx(hertz, rel=0.03)
        assert np.median(frames.voicing) > 0.9
        assert np.median(frames.level_db) == pytest.approx(10 * np.log10(np.mean((0.1 * buzz) ** 2)), abs=0.5)
    assert np.median(read_frames(Audio(clips.room(48_000, -20), clips.RATE)).voicing) < 0.4


def test_pieces_of_a_long_clip_are_measured_like_a_short_one() -> None:
    """Blocks of frames meet without a seam."""
    sound = clips.clip("3 min").samples[: 45 * clips.RATE]
    whole, head = (read_frames(Audio(part, clips.RATE)) for part in (sound, sound[: 15 * clips.RATE]))
    np.testing.assert_allclose(whole.level_db[:1490], head.level_db[:1490], atol=0.05)
    late = read_frames(Audio(sound[25 * clips.RATE :], clips.RATE))
    np.testing.assert_allclose(whole.level_db[2510:4490], late.level_db[10:1990], atol=0.05)


@pytest.mark.skipif(not speakers.available()[0], reason=f"needs {speakers.PIP_LINE}")
def test_one_voice_is_one_and_two_are_two() -> None:
    one = analyse(clips.clip("3 min")).speakers
    two = analyse(clips.clip("two speakers")).speakers
    assert (one.count, two.count) == (1, 2)
    assert one.similarity > 0.8 > two.similarity
    middles = [(start + end) / 2 for start, end, _ in two.turns]
    who = [speaker for _, _, speaker in two.turns]
    changes = sum(first != second for first, second in zip(who, who[1:], strict=False))
    assert changes == 3 and middles == sorted(middles)  # the four sentences took turns


@pytest.mark.skipif(not speakers.available()[0], reason=f"needs {speakers.PIP_LINE}")
def test_embeddings_have_length_one_and_do_not_hear_the_level() -> None:
    sound = Audio(clips.sentence(0), clips.RATE)
    soft = Audio(clips.sentence(0) * np.float32(0.1), clips.RATE)
    first, second = (speakers.embed(audio, [(0.5, 2.1)])[0] for audio in (sound, soft))
    assert np.linalg.norm(first) == pytest.approx(1, abs=1e-5) and first @ second > 0.999


def test_too_little_speech_is_not_compared() -> None:
    assert speakers.count_speakers(clips.clip("2 s"), [(0.3, 1.1)]) is None

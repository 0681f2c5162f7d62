"""Cutting, levelling and what is remembered of it."""

from __future__ import annotations

import numpy as np
import pytest

from studio import speakers
from studio.checks import Check
from studio.clip_analysis import analyse
from studio.clips import Clip, improve, level, propose_cut, redo, remove_dc, trim
from studio.loudness import loudness, peak
from studio.reference_checks import check_reference
from tests import clips
from voxcpm_core.audio import Audio, content_hash
from voxcpm_core.errors import AudioError

CUTTABLE = [name for name in clips.CLIPS if name != "silent"]


def quiet_at(audio: Audio, moment: float) -> bool:
    """Whether the clip is well below its own mean level in the 20 ms around a moment."""
    at = round(moment * audio.sample_rate)
    near = audio.samples[max(0, at - 240) : at + 240]
    loud = np.sqrt(np.mean(np.square(audio.samples - audio.samples.mean())))
    return float(np.std(near)) < loud * 10 ** (-14 / 20)


@pytest.mark.parametrize("name", CUTTABLE)
def test_the_proposed_cut_is_a_good_clip(name: str) -> None:
    audio = clips.clip(name)
    start, end = propose_cut(audio)
    assert 0 <= start < end <= audio.seconds
    voice = Audio(clips.spoken((0, 1, 2), pause=0.7), clips.RATE) if name == "music under speech" else audio
    assert quiet_at(voice, start) and quiet_at(voice, end)
    cut = trim(Clip.of(audio), start, end).audio
    speech = analyse(cut).activity.seconds
    if name not in ("2 s", "two speakers"):
        assert 5 <= end - start <= 30 and speech >= 5
    left = {check.name for check in check_reference(cut).checks if check.verdict != "ok"}
    assert not left & {"start", "end"}
    if name != "2 s":
        assert "speech" not in left


def test_a_long_clip_is_cut_to_about_fifteen_seconds() -> None:
    start, end = propose_cut(clips.clip("3 min"))
    assert 10 <= end - start <= 20


def test_half_words_at_the_ends_are_left_out() -> None:
    """The prepared clip begins within "lighthouse" and ends within the last word."""
    audio = clips.clip("cut in mid-word")
    start, end = propose_cut(audio)
    assert 0.3 < start < 1.6 and 0.2 < audio.seconds - end < 1.6


@pytest.mark.skipif(not speakers.available()[0], reason=f"needs {speakers.PIP_LINE}")
def test_of_two_speakers_one_is_kept() -> None:
    audio = clips.clip("two speakers")
    analysis = analyse(audio)
    start, end = propose_cut(audio, analysis)
    inside = {who for first, last, who in analysis.speakers.turns if first < end and last > start}
    assert len(inside) == 1


def test_speech_without_pauses_is_cut_at_soft_moments() -> None:
    dense = np.concatenate([clips.sentence(number)[6000:-9000] for number in range(6)] * 3)
    start, end = propose_cut(Audio(dense + clips.room(len(dense)), clips.RATE))
    assert 5 <= end - start <= 30


def test_no_speech_no_cut() -> None:
    assert propose_cut(Audio(clips.room(5 * clips.RATE, -40), clips.RATE)) is None


def test_every_step_makes_a_new_clip_and_is_remembered() -> None:
    original = clips.clip("DC")
    untouched = original.samples.copy()
    better = level(remove_dc(trim(Clip.of(original), 1.0, 12.0)))
    np.testing.assert_array_equal(original.samples, untouched)
    assert [choice["step"] for choice in better.choices] == ["trim", "remove_dc", "level"]
    assert better.original == content_hash(original)
    assert abs(better.audio.samples.mean()) < 1e-4
    again = redo(original, better.choices)
    assert content_hash(again.audio) == content_hash(better.audio) and again.choices == better.choices


def test_an_unknown_step_is_named() -> None:
    with pytest.raises(ValueError, match="'reverse'"):
        redo(clips.clip("clean"), [{"step": "reverse"}])


def test_trim_has_no_click_and_says_when_nothing_is_left() -> None:
    cut = trim(Clip.of(clips.clip("clean")), 1.0, 3.0).audio
    assert abs(cut.samples[[0, -1]]).max() < 1e-4 and len(cut.samples) == 2 * clips.RATE
    whole = trim(Clip.of(clips.clip("clean")), 0.0, 99.0).audio
    np.testing.assert_array_equal(whole.samples, clips.clip("clean").samples)
    with pytest.raises(ValueError, match="Nothing lies between"):
        trim(Clip.of(clips.clip("clean")), 3.0, 3.0)


@pytest.mark.parametrize("gain_db", [-40, -10, 6])
def test_level_reaches_its_target_and_never_clips(gain_db: float) -> None:
    samples = clips.clip("clean").samples * np.float32(10 ** (gain_db / 20))
    louder = level(Clip.of(Audio(samples, clips.RATE))).audio
    assert -23 <= loudness(louder.samples, clips.RATE) <= -20
    assert peak(louder.samples) <= -1.0 + 1e-6
    ratio = louder.samples[1000:] @ samples[1000:] / (samples[1000:] @ samples[1000:])
    np.testing.assert_allclose(louder.samples, ratio * samples, atol=1e-6)  # one gain, no bending


def test_a_clip_with_one_high_peak_stays_below_the_target() -> None:
    samples = clips.clip("clean").samples * np.float32(0.02)
    samples = samples.copy()
    samples[5000] = 0.9
    assert peak(level(Clip.of(Audio(samples, clips.RATE))).audio.samples) <= -1.0 + 1e-6


def test_one_click_improves_what_can_be_improved() -> None:
    better = improve(Clip.of(clips.clip("DC"))).audio
    bad = [check for check in check_reference(better).checks if isinstance(check, Check) and check.verdict != "ok"]
    assert bad == []
    with pytest.raises(AudioError, match="silent"):
        improve(Clip.of(clips.clip("silent")))

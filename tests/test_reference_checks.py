"""The check card on twelve prepared clips, on files as people have them, and the transcript line."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio import speakers
from studio.checks import worst
from studio.clip_picture import clip_png
from studio.clips import Clip, improve
from studio.pictures import LEFT, RIGHT, TOP, WIDTH
from studio.reference_checks import ReferenceReport, check_reference
from studio.transcripts import Transcript, Word
from tests import clips
from tests.clips import run_ffmpeg
from voxcpm_core.audio import Audio, content_hash, load_audio, resample, write_wav


def findings(report: ReferenceReport) -> dict[str, str]:
    """The lines that are not ok."""
    return {check.name: check.verdict for check in report.checks if check.verdict != "ok"}


@pytest.mark.parametrize("name", clips.CLIPS)
def test_the_card_is_right_for_each_prepared_clip(name: str) -> None:
    expected = dict(clips.EXPECTED[name])
    if not speakers.available()[0]:
        expected.pop("speakers", None)  # an honest "not measured", see below
    report = check_reference(clips.clip(name))
    assert findings(report) == expected
    assert report.verdict == worst(report.checks)
    assert all(bool(check.advice) for check in report.checks if check.verdict != "ok")
    json.dumps(report.as_list())


def test_a_name_and_a_verdict_always_have_the_same_sentence() -> None:
    """Else a page could not translate them: `check_<name>_<verdict>`. Only a refusal quotes its reason."""
    sentences: dict[tuple[str, str], set[str]] = {}
    for name in ("clipped", "hum", "2 s", "3 min", "cut in mid-word", "whisper", "16k in 48k", "DC"):
        for check in check_reference(clips.clip(name), "123").checks:
            sentences.setdefault((check.name, check.verdict), set()).add(check.advice)
    assert {key: said for key, said in sentences.items() if len(said) > 1} == {}


def test_values_name_the_measured_thing() -> None:
    def value(clip: str, line: str) -> str:
        return check_reference(clips.clip(clip)).named(line).value

    assert value("16k in 48k", "bandwidth") == "up to 8.0 kHz: a 16 kHz recording in a 48 kHz file"
    assert value("hum", "hum").startswith("50 Hz")
    assert value("DC", "offset") == "+8.0%"
    assert value("3 min", "length") == "3:00 min"
    assert value("clean", "speech").startswith("11.")
    noise = check_reference(clips.clip("clean")).named("noise").facts
    assert abs(noise["floor"] + 72) < 2 and 44 < noise["snr"] < 52  # the room was made at -72 dB


@pytest.mark.parametrize("snr", [5, 12, 30])
def test_snr_is_the_one_that_was_made(snr: int) -> None:
    clean = clips.clip("clean")
    speech = np.concatenate([clips.sentence(number) for number in range(3)])
    level = 10 * np.log10(np.mean(speech**2)) - snr
    noisy = Audio(clean.samples + clips.room(len(clean.samples), level, seed=4), clean.sample_rate)
    check = check_reference(noisy).named("noise")
    assert check.facts["snr"] == pytest.approx(snr, abs=2.5)
    assert check.verdict == {5: "fail", 12: "warn", 30: "ok"}[snr]


@pytest.mark.parametrize("mains", [50, 60])
def test_hum_of_both_mains_and_no_hum_in_a_low_voice(mains: int) -> None:
    clean = clips.clip("clean")
    moments = np.arange(len(clean.samples)) / clean.sample_rate
    lines = sum(np.sin(2 * np.pi * mains * number * moments) / number for number in (1, 2, 3))
    found = check_reference(Audio(clean.samples + (0.004 * lines).astype(np.float32), clean.sample_rate))
    assert found.named("hum").facts["hertz"] == mains
    low = check_reference(Audio(clips.spoken((0, 1, 2), factors=(0.6,)), clips.RATE))
    assert low.named("hum").verdict == "ok"


@pytest.mark.parametrize("suffix, options", [("mp3", ("-b:a", "128k")), ("m4a", ("-b:a", "96k"))])
def test_clipping_is_still_seen_after_a_codec(tmp_path: Path, suffix: str, options: tuple[str, ...]) -> None:
    """The codec ripples the flat tops: no two samples are equal any more."""
    write_wav(tmp_path / "x.wav", clips.clip("clipped").samples, clips.RATE)
    run_ffmpeg("-i", tmp_path / "x.wav", *options, tmp_path / f"x.{suffix}")
    assert check_reference(load_audio(tmp_path / f"x.{suffix}")).named("clipping").verdict != "ok"
    assert check_reference(resample(clips.clip("clipped"), 48_000)).named("clipping").verdict != "ok"


def test_one_side_only_clips_too() -> None:
    loud = np.maximum(clips.clip("clean").samples * 4, -0.5)
    assert check_reference(Audio(loud, clips.RATE)).named("clipping").verdict != "ok"


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(0, np.float32),
        np.zeros(480, np.float32),
        np.full(24_000, 0.3, np.float32),
        np.full(24_000, np.nan, np.float32),
    ],
    ids=["empty", "20 ms of nothing", "constant", "NaN"],
)
def test_what_is_no_recording_is_refused_in_one_line(samples: np.ndarray) -> None:
    report = check_reference(Audio(samples, 24_000), "Hello.")
    assert findings(report) == {"usable": "fail"} and len(report.checks) == 1
    assert report.cut is None and report.named("usable").advice.endswith(".")


@pytest.mark.parametrize("kind", ["hiss", "20 ms", "tone", "mostly silence"])
def test_clips_with_hardly_any_speech_fail(kind: str) -> None:
    sounds = {
        "hiss": clips.room(5 * clips.RATE, -30),
        "20 ms": clips.sentence(0)[14_400:14_880],
        "tone": (0.3 * np.sin(np.arange(5 * clips.RATE) / 20)).astype(np.float32),
        "mostly silence": np.pad(clips.sentence(4)[6000:22_000], (0, 60 * clips.RATE)),
    }
    report = check_reference(Audio(sounds[kind], clips.RATE))
    assert report.named("speech").verdict == "fail"


@pytest.mark.parametrize(
    "name, options",
    [
        ("clip.mp3", ("-b:a", "64k")),
        ("clip.m4a", ("-b:a", "64k")),
        ("clip.opus", ("-b:a", "24k")),
        ("声音 样本 (1).wav", ("-ac", "2", "-ar", "44100", "-c:a", "pcm_s24le")),
        ("100%20'quoted'.flac", ("-ac", "2")),
    ],
)
def test_real_files_of_a_good_clip_are_good(tmp_path: Path, name: str, options: tuple[str, ...]) -> None:
    write_wav(tmp_path / "source.wav", clips.clip("clean").samples, clips.RATE)
    run_ffmpeg("-i", tmp_path / "source.wav", *options, tmp_path / name)
    audio = load_audio(tmp_path / name)
    assert audio.seconds == pytest.approx(clips.clip("clean").seconds, abs=0.08)
    assert findings(check_reference(audio, clips.TEXT)) == {}


def test_a_voice_in_one_of_six_channels_is_only_soft(tmp_path: Path) -> None:
    """The mean of the channels is what the model hears: -15.6 dB; one click brings it back."""
    write_wav(tmp_path / "source.wav", clips.clip("clean").samples, clips.RATE)
    run_ffmpeg("-i", tmp_path / "source.wav", "-ac", "6", "-ar", "48000", tmp_path / "六声道.wav")
    audio = load_audio(tmp_path / "六声道.wav")
    assert findings(check_reference(audio, clips.TEXT)) == {"loudness": "warn"}
    assert findings(check_reference(improve(Clip.of(audio)).audio, clips.TEXT)) == {}


def test_a_telephone_file_is_said(tmp_path: Path) -> None:
    write_wav(tmp_path / "source.wav", clips.clip("clean").samples, clips.RATE)
    run_ffmpeg("-i", tmp_path / "source.wav", "-ar", "8000", "-c:a", "pcm_mulaw", tmp_path / "电话.wav")
    report = check_reference(load_audio(tmp_path / "电话.wav"))
    assert findings(report) == {"bandwidth": "warn"}
    assert report.named("bandwidth").value == "up to 4.0 kHz"


@pytest.mark.parametrize(
    "text, verdict",
    [
        ("", "ok"),
        (clips.TEXT, "ok"),
        ("123", "fail"),
        ("x" * 600, "fail"),
        (" ".join(clips.SENTENCES), "warn"),
        ("这是一段完全不相干的话。" * 20, "fail"),
    ],
    ids=["none", "its own", "123", "600 letters", "twice as long", "Chinese, too long"],
)
def test_a_transcript_must_be_plausible_for_the_length(text: str, verdict: str) -> None:
    assert check_reference(clips.clip("clean"), text).named("transcript").verdict == verdict


def test_words_are_compared_with_what_is_heard() -> None:
    audio, asked = clips.clip("clean"), []

    def hear(clip: Audio) -> Transcript:
        asked.append(content_hash(clip))
        return Transcript(clips.TEXT.replace("lamp", "lump"), content_hash(clip), "en", (Word("The", 0.5, 0.7),))

    other = "Quick foxes jump over lazy dogs while bright zebras gaze at six pretty kangaroos in a warm and windy park."
    assert check_reference(audio, clips.TEXT, recognise=hear).named("words").verdict == "ok"
    assert check_reference(audio, other, recognise=hear).named("words").verdict == "fail"
    assert check_reference(audio, "", recognise=hear).named("words") is None
    assert asked == [content_hash(audio)] * 2


def test_without_the_encoder_speakers_are_said_to_be_unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speakers, "_weights_path", lambda: None)
    report = check_reference(clips.clip("two speakers"))
    check = report.named("speakers_unknown")
    assert (check.value, check.verdict) == ("not measured", "ok")
    assert "pip install --no-deps Resemblyzer" in check.advice and report.named("speakers") is None


def test_half_a_minute_is_checked_quickly() -> None:
    audio = resample(Audio(clips.clip("3 min").samples[: 30 * clips.RATE], clips.RATE), 48_000)
    check_reference(audio)  # loads what is loaded once
    began = time.thread_time()
    check_reference(audio)
    assert time.thread_time() - began < 2.0


@pytest.mark.parametrize("dark", [False, True])
def test_the_picture_marks_speech_clipping_and_cut(dark: bool) -> None:
    def lane(name: str, cut: tuple[float, float] | None) -> np.ndarray:
        report = check_reference(clips.clip(name))
        picture = Image.open(io.BytesIO(clip_png(report.analysis, cut, dark)))
        return np.asarray(picture)[TOP:220, LEFT : WIDTH - RIGHT].astype(int)

    whole, cut = lane("clean", None), lane("clean", (5.0, 10.0))
    changed = np.abs(whole - cut).sum(axis=(0, 2)) > 0
    third = len(changed) // 3
    assert (
        changed[:third].mean() > 0.9
        and changed[-third:].mean() > 0.9
        and not changed[third + 20 : 2 * third - 60].any()
    )
    speech_bar = (whole[-3] != whole[-3, 0]).any(axis=1).mean()
    assert speech_bar == pytest.approx(11.5 / 15.3, abs=0.05)  # its share of the clip
    red = np.array([200, 40, 48] if not dark else [255, 107, 107])
    assert (lane("clipped", None)[2] == red).all(axis=1).mean() > 0.2
    assert not (whole[2] == red).all(axis=1).any()

"""Decoding, checking, resampling and writing of sound, on real files made by soundfile and FFmpeg."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import wave
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

from voxcpm_core import audio as audio_module
from voxcpm_core import decode as decode_module
from voxcpm_core.audio import (
    Audio,
    check_audio,
    content_hash,
    ffmpeg_path,
    load_audio,
    load_reference,
    resample,
    wav_bytes,
    write_wav,
)
from voxcpm_core.errors import AudioError

ENCODER_RATE = 16_000
PATCH = 0.080  # seconds, the smallest of the three generations
SECONDS = 6.3


def voice(rate: int, seconds: float = SECONDS, peak: float = 0.5) -> np.ndarray:
    """A vowel-like buzz with syllables, float32 [n]."""
    t = np.arange(int(rate * seconds)) / rate
    buzz = sum(np.sin(2 * np.pi * 140 * k * t + k * k) / k for k in range(1, 8))
    syllables = 0.3 + np.sin(2 * np.pi * 1.7 * t) ** 2
    sound = buzz * syllables
    return (sound * peak / np.abs(sound).max()).astype(np.float32)


def run_ffmpeg(*arguments: str | os.PathLike, program: str | None = None) -> None:
    command = [program or ffmpeg_path(), "-nostdin", "-v", "error", "-y", *map(os.fspath, arguments)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def encode(folder: Path, name: str, rate: int, *options: str, seconds: float = SECONDS) -> Path:
    """Encode the voice with FFmpeg to ``folder/name``."""
    (folder / name).write_bytes(encoded(Path(name).suffix, rate, options, seconds))
    return folder / name


@functools.cache
def encoded(suffix: str, rate: int, options: tuple[str, ...], seconds: float) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "source.wav"), Path(folder, "target" + suffix)
        sf.write(source, voice(rate, seconds), rate, subtype="FLOAT")
        run_ffmpeg("-i", source, *options, target)
        return target.read_bytes()


@pytest.fixture
def no_ffmpeg(monkeypatch):
    """A machine without FFmpeg: nothing on PATH, imageio-ffmpeg not installed."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)


def delay_seconds(audio: Audio, rate: int) -> float:
    """How much later than the original the decoded voice is, by cross-correlation of the first second."""
    got = resample(audio, 16_000).samples[:16_000]
    want = resample(Audio(voice(rate), rate), 16_000).samples[:16_000]
    spectrum = np.fft.rfft(got, 1 << 15) * np.conj(np.fft.rfft(want, 1 << 15))
    lags = np.fft.irfft(spectrum)
    lag = int(np.argmax(lags))
    return (lag if lag < 1 << 14 else lag - (1 << 15)) / 16_000


# ------------------------------------------------------------------------------------------------- formats


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 96_000, 192_000])
def test_every_rate_comes_out_at_the_encoder_rate(tmp_path, rate):
    sf.write(tmp_path / "a.wav", voice(rate), rate)
    loaded = load_audio(tmp_path / "a.wav")
    assert loaded.sample_rate == rate and len(loaded.samples) == int(rate * SECONDS)
    for wanted in (16_000, 44_100):
        clip, _ = load_reference(tmp_path / "a.wav", wanted)
        assert clip.sample_rate == wanted and clip.samples.dtype == np.float32 and clip.samples.ndim == 1
        assert abs(clip.seconds - SECONDS) < 1e-3
        ideal = voice(wanted)[: len(clip.samples)]  # no partial lies above 1 kHz, so this is the same sound
        middle = slice(wanted // 4, -wanted // 4)
        assert np.abs(clip.samples[: len(ideal)] - ideal)[middle].max() < 5e-3


@pytest.mark.parametrize(
    ("name", "subtype", "step"),
    [
        ("a.wav", "PCM_U8", 1 / 128),
        ("a.wav", "PCM_16", 1 / 32768),
        ("a.wav", "PCM_24", 1 / 2**23),
        ("a.wav", "PCM_32", 1e-7),
        ("a.wav", "FLOAT", 0),
        ("a.wav", "DOUBLE", 0),
        ("a.wav", "ULAW", 0.03),
        ("a.wav", "ALAW", 0.03),
        ("a.flac", "PCM_16", 1 / 32768),
        ("a.flac", "PCM_24", 1 / 2**23),
        ("a.aiff", "PCM_24", 1 / 2**23),
        ("a.w64", "PCM_16", 1 / 32768),
        ("a.rf64", "PCM_16", 1 / 32768),
    ],
)
def test_lossless_depths(tmp_path, name, subtype, step):
    sf.write(tmp_path / name, voice(22_050), 22_050, subtype=subtype)
    loaded = load_audio(tmp_path / name)
    assert loaded.sample_rate == 22_050
    assert np.abs(loaded.samples - voice(22_050)).max() <= step


def test_float_peaks_above_full_scale_are_kept(tmp_path):
    sf.write(tmp_path / "hot.wav", voice(24_000, peak=1.4), 24_000, subtype="FLOAT")
    assert np.abs(load_audio(tmp_path / "hot.wav").samples).max() == pytest.approx(1.4)
    clip, warnings = load_reference(tmp_path / "hot.wav", 24_000)
    assert np.abs(clip.samples).max() == pytest.approx(1.4) and warnings == []


@pytest.mark.parametrize("channels", [2, 3, 6, 8])
@pytest.mark.parametrize("through_ffmpeg", [False, True])
def test_channels_are_averaged(tmp_path, channels, through_ffmpeg):
    sound = np.stack([np.roll(voice(48_000), 500 * c) * (c + 1) / channels for c in range(channels)], axis=1)
    path = tmp_path / "a.wav"
    sf.write(path, sound, 48_000, subtype="FLOAT", format="WAVEX" if channels > 2 else "WAV")
    if through_ffmpeg:  # matroska: libsndfile cannot read it, and no channel may get a weight of its own
        run_ffmpeg("-i", path, "-c:a", "pcm_f32le", tmp_path / "a.mka")
        path = tmp_path / "a.mka"
    loaded = load_audio(path)
    assert len(loaded.samples) == len(sound)
    assert np.abs(loaded.samples - sound.mean(axis=1)).max() < 1e-6


def test_stereo_of_equal_channels_is_not_doubled(tmp_path):
    sf.write(tmp_path / "a.wav", np.stack([voice(44_100)] * 2, axis=1), 44_100, subtype="FLOAT")
    assert np.array_equal(load_audio(tmp_path / "a.wav").samples, voice(44_100))


LOSSY = {
    "mp3": ("a.mp3", "-c:a", "libmp3lame"),
    "mp3 vbr": ("a.mp3", "-c:a", "libmp3lame", "-q:a", "9"),
    "mp3 cbr without header": ("a.mp3", "-c:a", "libmp3lame", "-write_xing", "0"),
    "mp3 vbr without header": ("a.mp3", "-c:a", "libmp3lame", "-q:a", "9", "-write_xing", "0"),
    "m4a": ("a.m4a", "-c:a", "aac"),
    "m4a index first": ("a.m4a", "-c:a", "aac", "-movflags", "+faststart"),
    "mp4 fragments": ("a.mp4", "-c:a", "aac", "-movflags", "frag_keyframe+empty_moov"),
    "alac": ("a.m4a", "-c:a", "alac"),
    "ogg vorbis": ("a.ogg", "-c:a", "libvorbis"),
    "ogg opus": ("a.opus", "-c:a", "libopus"),
    "webm opus": ("a.webm", "-c:a", "libopus"),
    "flac": ("a.flac", "-c:a", "flac"),
    "wma": ("a.wma", "-c:a", "wmav2"),
    "mp3 in wav": ("a.wav", "-c:a", "libmp3lame"),
    "wavpack": ("a.wv", "-c:a", "wavpack"),
}


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000])
@pytest.mark.parametrize("kind", LOSSY)
def test_lossy_formats_keep_duration_place_and_level(tmp_path, kind, rate):
    name, *options = LOSSY[kind]
    clip, _ = load_reference(encode(tmp_path, name, rate, *options), ENCODER_RATE)
    assert clip.sample_rate == ENCODER_RATE
    assert abs(clip.seconds - SECONDS) <= PATCH + 1e-9
    assert abs(delay_seconds(clip, rate)) <= PATCH
    level = np.sqrt(np.mean(clip.samples**2)) / np.sqrt(np.mean(voice(rate) ** 2))
    assert 0.85 < level < 1.15


@pytest.mark.parametrize("kind", ["mp3", "m4a", "m4a index first", "ogg opus", "webm opus"])
def test_duration_at_8_khz_where_one_aac_frame_is_longer_than_a_patch(tmp_path, kind):
    name, *options = LOSSY[kind]
    clip, _ = load_reference(encode(tmp_path, name, 8_000, *options), ENCODER_RATE)
    assert abs(clip.seconds - SECONDS) <= PATCH
    assert abs(delay_seconds(clip, 8_000)) <= PATCH


def test_headerless_aac_is_read(tmp_path):
    clip = load_audio(encode(tmp_path, "a.aac", 44_100, "-c:a", "aac"))
    assert abs(clip.seconds - SECONDS) <= PATCH


def test_first_sound_track_of_a_video(tmp_path):
    sf.write(tmp_path / "a.wav", voice(44_100), 44_100)
    picture = ("-f", "lavfi", "-i", "color=c=red:s=64x64:r=5:d=9")
    run_ffmpeg(*picture, "-i", tmp_path / "a.wav", "-c:v", "mpeg4", "-c:a", "aac", tmp_path / "a.mp4")
    assert abs(load_audio(tmp_path / "a.mp4").seconds - SECONDS) <= PATCH
    run_ffmpeg(*picture, "-c:v", "mpeg4", tmp_path / "mute.mp4")
    with pytest.raises(AudioError, match='"mute.mp4" has no sound track'):
        load_audio(tmp_path / "mute.mp4")


@pytest.mark.parametrize("kind", ["m4a", "mp3", "ogg opus", "flac"])
@pytest.mark.parametrize("name", ["a.wav", "a.raw", "a.vox", "a.txt", "a", "a.gsm"])
def test_the_extension_is_not_believed(tmp_path, kind, name):
    path = encode(tmp_path, LOSSY[kind][0], 44_100, *LOSSY[kind][1:])
    path.rename(tmp_path / name)
    assert abs(load_audio(tmp_path / name).seconds - SECONDS) <= PATCH


STRANGE_NAMES = [
    "声音 样本 (1).wav",
    "50%20off.m4a",
    'it\'s "mine".m4a',
    "-i.m4a",
    "-version",
    "a%03d.m4a",
    "pipe:0",
    "concat:a|b.m4a",
    "http:example.m4a",
    "file:x.m4a",
    "$(touch hacked).m4a",
    "a;b&c.m4a",
    " lead and trail .m4a ",
    "new\nline.m4a",
    "*?[x].m4a",
]


@pytest.mark.parametrize("name", STRANGE_NAMES)
def test_names_are_only_names(tmp_path, monkeypatch, name):
    for kind in ("m4a", "flac"):  # one for FFmpeg, one for libsndfile
        shutil.move(encode(tmp_path, LOSSY[kind][0], 44_100, *LOSSY[kind][1:]), tmp_path / name)
        before = (
            hashlib.sha256((tmp_path / name).read_bytes()).hexdigest(),
            (tmp_path / name).stat().st_mtime_ns,
        )
        assert abs(load_audio(tmp_path / name).seconds - SECONDS) <= PATCH
        monkeypatch.chdir(tmp_path)
        assert abs(load_audio(name).seconds - SECONDS) <= PATCH
        after = (
            hashlib.sha256((tmp_path / name).read_bytes()).hexdigest(),
            (tmp_path / name).stat().st_mtime_ns,
        )
        assert before == after
        assert [p.name for p in tmp_path.iterdir()] == [name]


def test_quotes_and_percent_signs_in_folders(tmp_path):
    folder = tmp_path / 'it\'s 100%20 "sure"'
    folder.mkdir()
    assert abs(load_audio(encode(folder, "a.m4a", 44_100, "-c:a", "aac")).seconds - SECONDS) <= PATCH


@pytest.mark.parametrize("kind", ["flac", "m4a", "ogg opus"])
def test_bytes_and_files_equal_the_path(tmp_path, monkeypatch, kind):
    path = encode(tmp_path, LOSSY[kind][0], 48_000, *LOSSY[kind][1:])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    data = path.read_bytes()
    want = content_hash(load_audio(path))
    with open(path, "rb") as file:
        sources = [str(path), data, bytearray(data), memoryview(data), io.BytesIO(data), file]
        assert {content_hash(load_audio(source)) for source in sources} == {want}
    assert list(temporary.iterdir()) == []


def test_wav_of_unknown_length(tmp_path):
    """What programs write that stream a WAV: the sizes in the header are all ones, or zero."""
    data = bytearray(wav_bytes(voice(16_000), 16_000))
    for size in (0xFFFFFFFF, 0):
        data[4:8] = data[40:44] = struct.pack("<I", size)
        assert len(load_audio(bytes(data)).samples) == int(16_000 * SECONDS)


# ------------------------------------------------------------------------------------- what is not readable


NOT_AUDIO = {
    "text.wav": b"Hello, this is not a sound at all.\n" * 200,
    "text.mp3": b"Hello, this is not a sound at all.\n" * 200,
    "text.aac": b"ID3 mp3 RIFF WAVE\n" * 200,
    "page.m4a": b"<!doctype html><html><body>404</body></html>",
    "zeros.wav": bytes(5000),
    "one.wav": b"\0",
    "header.wav": b"RIFF\x24\0\0\0WAVEfmt ",
    "random.vox": np.random.default_rng(1).bytes(20_000),
    "random.mp3": np.random.default_rng(2).bytes(20_000),
    "picture.wav": b"\x89PNG\r\n\x1a\n" + bytes(200),
}


@pytest.mark.parametrize("name", NOT_AUDIO)
def test_not_audio_is_refused_by_name(tmp_path, name):
    (tmp_path / name).write_bytes(NOT_AUDIO[name])
    with pytest.raises(AudioError, match=f'^"{name}" is not audio or is damaged: .*\\.$'):
        load_reference(tmp_path / name, ENCODER_RATE)
    with pytest.raises(AudioError, match="^The audio data is not audio or is damaged"):
        load_reference(NOT_AUDIO[name], ENCODER_RATE)


def test_truncated_files_are_refused_or_read_up_to_the_cut(tmp_path):
    m4a = encode(tmp_path, "a.m4a", 44_100, "-c:a", "aac").read_bytes()
    with pytest.raises(AudioError, match="damaged"):  # its index stands at the end
        load_audio(m4a[: len(m4a) // 2])
    wav = wav_bytes(voice(16_000), 16_000)
    assert load_audio(wav[: len(wav) // 2]).seconds == pytest.approx(SECONDS / 2, abs=0.01)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "gone.wav", '"gone.wav" does not exist'),
        (lambda folder: str(folder), "is not a file"),
        (lambda folder: "", "is not a file"),
        (lambda folder: "http://127.0.0.1:9/a.wav", "does not exist"),
        (lambda folder: "a\0b.wav", 'file "a.b.wav" does not exist'),
        (lambda folder: "x" * 5000 + ".wav", r'file "x{60}\.\.\.x{13}\.wav" does not exist'),
        (lambda folder: "/dev/zero", "is not a file"),
        (lambda folder: b"", r"empty \(0 bytes\)"),
        (lambda folder: io.BytesIO(), r"empty \(0 bytes\)"),
        (lambda folder: io.StringIO("text"), "binary mode, not as str"),
        (lambda folder: None, "not as NoneType"),
        (lambda folder: 3, "not as int"),
    ],
)
def test_no_file_to_read(tmp_path, make, message):
    with pytest.raises(AudioError, match=message):
        load_audio(make(tmp_path))


def test_empty_and_unreadable_files(tmp_path):
    (tmp_path / "empty.wav").touch()
    with pytest.raises(AudioError, match=r'"empty.wav" is empty \(0 bytes\)'):
        load_audio(tmp_path / "empty.wav")
    if hasattr(os, "mkfifo"):  # opening one would wait for ever
        os.mkfifo(tmp_path / "pipe.wav")
        with pytest.raises(AudioError, match='"pipe.wav" is not a file'):
            load_audio(tmp_path / "pipe.wav")


@pytest.mark.parametrize("rate", [1, 3_000, 2_000_000])
def test_impossible_rates_are_refused(rate):
    data = bytearray(wav_bytes(voice(16_000), 16_000))
    data[24:28] = struct.pack("<I", rate)
    with pytest.raises(AudioError, match=f"sample rate of {rate} Hz"):
        load_audio(bytes(data))


def test_playlists_do_not_read_other_files(tmp_path):
    """An upload must not be able to name a file of this machine, nor an address."""
    secret = encode(tmp_path, "secret.m4a", 44_100, "-c:a", "aac")
    run_ffmpeg("-i", secret, "-c:a", "copy", "-f", "mpegts", tmp_path / "secret.ts")
    head = "#EXTM3U\n#EXT-X-TARGETDURATION:7\n#EXTINF:6.3,\n"
    lists = {
        "hls.m3u8": f"{head}file://{tmp_path}/secret.ts\n#EXT-X-ENDLIST\n",
        "hls.m4a": f"{head}{tmp_path}/secret.ts\n#EXT-X-ENDLIST\n",
        "list.ffconcat": "ffconcat version 1.0\nfile secret.m4a\n",
        "list.wav": f"ffconcat version 1.0\nfile '{secret}'\n",
    }
    for name, text in lists.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(AudioError, match="is not audio"):
            load_audio(tmp_path / name)


# -------------------------------------------------------------------------------------------------- FFmpeg


def test_without_ffmpeg_one_sentence_names_it(tmp_path, request):
    path = encode(tmp_path, "声音.m4a", 44_100, "-c:a", "aac")
    request.getfixturevalue("no_ffmpeg")
    with pytest.raises(AudioError) as caught:
        load_reference(path, ENCODER_RATE)
    sentence = str(caught.value)
    assert '"声音.m4a"' in sentence and "FFmpeg" in sentence and "pip install imageio-ffmpeg" in sentence
    assert sentence.count(". ") == 0 and sentence.endswith(".") and "\n" not in sentence
    assert ffmpeg_path() is None


@pytest.mark.parametrize("kind", ["mp3", "mp3 vbr", "ogg vorbis", "ogg opus", "flac"])
def test_common_formats_need_no_ffmpeg(tmp_path, kind, request):
    path = encode(tmp_path, LOSSY[kind][0], 44_100, *LOSSY[kind][1:])
    request.getfixturevalue("no_ffmpeg")
    assert abs(load_audio(path).seconds - SECONDS) <= PATCH


def test_a_shortened_mp3_is_never_taken_for_the_whole(tmp_path, request):
    """libsndfile believes a guessed length: without FFmpeg that is an error and not half a clip."""
    name, *options = LOSSY["mp3 vbr without header"]
    path = encode(tmp_path, name, 44_100, *options)
    assert sf.info(path).duration < SECONDS / 2  # the trap is there
    request.getfixturevalue("no_ffmpeg")
    with pytest.raises(AudioError, match="FFmpeg"):
        load_audio(path)


def test_the_carried_binary_is_the_second_choice(tmp_path, monkeypatch):
    path = encode(tmp_path, "a.m4a", 8_000, "-c:a", "aac")
    on_path = ffmpeg_path()
    monkeypatch.setenv("PATH", "")
    carried = ffmpeg_path()
    assert carried and carried != on_path and "imageio" in carried
    assert abs(load_audio(path).seconds - SECONDS) <= PATCH
    (tmp_path / "text.m4a").write_text("no sound")
    with pytest.raises(AudioError, match="is not audio"):
        load_audio(tmp_path / "text.m4a")


def test_ffmpeg_that_hangs_is_ended(tmp_path, monkeypatch):
    if os.name == "nt":
        pytest.skip("the stand-in for FFmpeg is a shell script")
    pid = tmp_path / "pid"
    (tmp_path / "ffmpeg").write_text(f"#!/bin/sh\necho $$ > '{pid}'\nexec /bin/sleep 60\n")
    (tmp_path / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(decode_module, "FFMPEG_SECONDS", 0.5)
    start = time.monotonic()
    with pytest.raises(AudioError, match="took longer than 500 ms to decode"):
        load_audio(b"\0\0\0\x20ftypM4A " + bytes(500))
    assert time.monotonic() - start < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_ffmpeg_that_cannot_start(tmp_path, monkeypatch):
    if os.name == "nt":
        pytest.skip("the stand-in for FFmpeg is a text file with the executable bit")
    (tmp_path / "ffmpeg").write_text("not a program")
    (tmp_path / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AudioError, match="FFmpeg .* does not start"):
        load_audio(b"\0\0\0\x20ftypM4A " + bytes(500))


def test_many_threads_at_once(tmp_path):
    paths = [encode(tmp_path, f"{n}.{e}", 44_100) for n, e in enumerate(["m4a", "mp3", "flac", "opus"] * 2)]
    want = [content_hash(load_audio(path)) for path in paths]
    got: dict[int, str] = {}

    def work(n: int) -> None:
        got[n] = content_hash(load_audio(paths[n]))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(paths))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert [got[n] for n in range(len(paths))] == want


# ------------------------------------------------------------------------------------------------- long clips


def test_too_long_is_refused_early(tmp_path):
    sf.write(tmp_path / "long.flac", np.zeros(8_000 * 1900, np.int16), 8_000)
    message = "is 31 min 40 s long, more than the 30 min allowed: cut out the best 5 to 30 s"
    with pytest.raises(AudioError, match=f'"long.flac" {message}'):
        load_reference(tmp_path / "long.flac", ENCODER_RATE)
    with pytest.raises(AudioError, match=f"The prompt {message}"):
        check_audio(Audio(np.zeros(8_000 * 1900, np.float32), 8_000), "prompt")
    assert load_audio(tmp_path / "long.flac").seconds == 1900
    m4a = encode(tmp_path, "a.m4a", 16_000, "-c:a", "aac")
    with pytest.raises(AudioError, match="more than the 2.0 s allowed"):
        load_audio(m4a, max_seconds=2)


PEAK_MEMORY = """
import re, sys
from voxcpm_core.audio import load_audio, load_reference
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
load_reference(sys.argv[1], 16000)  # imports, threads, filters
before = peak()
audio = load_audio(sys.argv[2]) if sys.argv[3] == "load" else load_reference(sys.argv[2], 16000)[0]
print(peak() - before, audio.seconds)
"""


@pytest.mark.parametrize(("kind", "call"), [("flac", "load"), ("alac", "load"), ("flac", "reference")])
def test_a_long_clip_is_held_about_once(tmp_path, kind, call):
    """Two and a half minutes of 48 kHz stereo are 58 MB, 29 MB as mono."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the peak is read from /proc")
    name, *options = LOSSY[kind]
    short = encode(tmp_path, f"short-{name}", 48_000, *options)
    tone = ("-f", "lavfi", "-i", "sine=f=300:r=48000:d=150", "-ac", "2")
    run_ffmpeg(*tone, *options, tmp_path / name)
    command = [sys.executable, "-c", PEAK_MEMORY, str(short), str(tmp_path / name), call]
    root = Path(audio_module.__file__).parents[1]
    result = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True, timeout=120)
    grown, seconds = map(float, result.stdout.split())
    size = 150 * 48_000 * 4
    assert abs(seconds - 150) < PATCH
    assert 0.9 * size < grown < (1.5 if call == "load" else 2.2) * size


# -------------------------------------------------------------------------------------------------- checking


def clip_of(samples: np.ndarray, rate: int = 24_000) -> Audio:
    return Audio(np.asarray(samples, dtype=np.float32), rate)


def spoiled(value: float, place: int) -> np.ndarray:
    samples = voice(24_000)
    samples[place] = value
    return samples


DITHER = np.random.default_rng(3).integers(-1, 2, 150_000) / 32768

REFUSED = {
    "0 samples": (np.zeros(0), r"^The reference holds no sound \(0 samples\)"),
    "zeros": (np.zeros(150_000), "^The reference is silent"),
    "one sample": (np.full(1, 0.5), "constant value"),
    "dither only": (DITHER, "^The reference is silent"),
    "constant 0.3": (np.full(150_000, 0.3), r"^The reference is one constant value \(0\.3\)"),
    "constant -1": (np.full(999, -1.0), "constant value"),
    "constant with dither": (0.3 + DITHER, "constant value"),
    "nan": (spoiled(np.nan, 0), "NaN"),
    "nan at the end": (spoiled(np.nan, -1), "NaN"),
    "infinite": (spoiled(np.inf, 77_777), "NaN or infinite"),
    "minus infinite": (spoiled(-np.inf, 5), "NaN or infinite"),
    "all nan": (np.full(100, np.nan), "NaN"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_before_any_work(tmp_path, kind, monkeypatch):
    samples, message = REFUSED[kind]
    monkeypatch.setitem(sys.modules, "torch", None)  # an import of it would fail
    monkeypatch.setitem(sys.modules, "torchaudio", None)
    sf.write(tmp_path / "a.wav", samples, 24_000, subtype="FLOAT")
    for source in (tmp_path / "a.wav", clip_of(samples)):
        with pytest.raises(AudioError, match=message) as caught:
            load_reference(source, ENCODER_RATE)
        assert isinstance(caught.value, ValueError)
    with pytest.raises(AudioError, match=message.replace("reference", "prompt")):
        load_reference(tmp_path / "a.wav", ENCODER_RATE, name="prompt")


NOISE = np.random.default_rng(4).standard_normal(24_000 * 6) * 0.002
SPEECH_THEN_SILENCE = np.concatenate([voice(24_000, 2.0), np.zeros(24_000 * 60)])
SPEECH_IN_NOISE = np.concatenate([voice(24_000, 2.0), NOISE * 0.1, NOISE * 0.1])

WARNED = {
    "20 ms": (voice(24_000)[:480], ["only 20 ms long, too short to carry a voice: use 5 to 30 s"]),
    "3.2 s": (voice(24_000, 3.2), ["only 3.2 s long: the voice is steadier with 5 to 30 s"]),
    "just right": (voice(24_000, 5.0), []),
    "30 s": (voice(24_000, 30.0), []),
    "45 s": (voice(24_000, 45.0), ["45.0 s long, .*: cut out the best 5 to 30 s"]),
    "10 min": (np.tile(voice(24_000, 10.0), 60), ["10 min long, .*: cut out the best 5 to 30 s"]),
    "quiet": (NOISE, [r"very quiet \(RMS 0\.0020\) and used as it is: record it louder or raise its level"]),
    "square": (
        np.sign(voice(24_000)) * 0.999,
        [r"clipped \(9\d\.\d% of it .* record it again with less gain"],
    ),
    "square at -12 dB": (np.sign(voice(24_000)) * 0.25, ["clipped"]),
    "overdriven": (np.clip(voice(24_000) * 4, -1, 1), ["clipped"]),
    "low tone": (0.5 * np.sin(np.arange(24_000 * 6) * 2 * np.pi * 90 / 24_000), []),
    "silence after": (
        SPEECH_THEN_SILENCE,
        ["1 min 2 s long", r"mostly silence \(2\.0 s of sound in 1 min 2 s\)"],
    ),
    "noise after": (SPEECH_IN_NOISE, [r"mostly silence \(2\.0 s of sound in 14\.0 s\)"]),
}


@pytest.mark.parametrize("kind", WARNED)
def test_warnings(tmp_path, kind):
    samples, messages = WARNED[kind]
    sf.write(tmp_path / "a.wav", samples, 24_000, subtype="FLOAT")
    clip, warnings = load_reference(tmp_path / "a.wav", ENCODER_RATE)
    assert len(warnings) == len(messages), warnings
    for warning, message in zip(warnings, messages, strict=True):
        assert re.search(message, warning), warning
        assert warning.startswith("The reference ") and warning.endswith(".")
    assert np.isfinite(clip.samples).all()
    original = clip_of(samples)
    assert np.array_equal(clip.samples, resample(original, ENCODER_RATE).samples)  # no level was changed
    assert check_audio(original, "prompt") == [w.replace("The reference", "The prompt") for w in warnings]


def test_telephone_rate_is_mentioned():
    (warning,) = check_audio(Audio(voice(8_000), 8_000))
    assert "8000 Hz" in warning and "dull" in warning


def test_check_changes_nothing():
    samples = voice(24_000)
    samples.flags.writeable = False
    assert check_audio(Audio(samples, 24_000)) == []


# ------------------------------------------------------------------------------------------------ resampling


@pytest.mark.parametrize("old", [8_000, 44_100, 48_000])
@pytest.mark.parametrize("new", [16_000, 24_000])
def test_resampling_in_pieces_equals_torchaudio_in_one(old, new):
    import torch
    from torchaudio.functional import resample as one_pass

    samples = np.random.default_rng(5).standard_normal(old * 40 + 17).astype(np.float32) * 0.1
    assert len(samples) > audio_module._BLOCK
    want = one_pass(torch.from_numpy(samples), old, new).numpy()
    got = resample(Audio(samples, old), new)
    assert got.sample_rate == new and got.samples.shape == want.shape
    assert np.abs(got.samples - want).max() < 1e-6


@pytest.mark.parametrize("n", [0, 1, 2, 7, 159, 160, 161, 1000])
def test_resampling_of_very_short_clips(n):
    got = resample(Audio(np.full(n, 0.1, np.float32), 44_100), 16_000)
    assert len(got.samples) == -(-n * 160 // 441) and np.isfinite(got.samples).all()


def test_resampling_an_odd_rate_needs_no_huge_filter():
    seconds = 20
    t = np.arange(44_099 * seconds) / 44_099
    got = resample(Audio(np.sin(2 * np.pi * 440 * t).astype(np.float32), 44_099), 16_000)
    assert abs(got.seconds - seconds) < 1e-3
    ideal = np.sin(2 * np.pi * 440 * np.arange(len(got.samples)) / 16_000)
    assert np.abs(got.samples - ideal)[200:-200].max() < 0.1  # still in step after 8800 periods


def test_resampling_does_not_alias():
    t = np.arange(48_000 * 2) / 48_000
    got = resample(Audio(np.sin(2 * np.pi * 11_000 * t).astype(np.float32), 48_000), 16_000)
    assert np.abs(got.samples[500:-500]).max() < 0.01


def test_the_same_rate_is_the_same_audio():
    audio = Audio(voice(16_000), 16_000)
    assert resample(audio, 16_000) is audio


# -------------------------------------------------------------------------------------- Audio and its hash


def test_audio_refuses_what_is_not_one_channel_of_floats():
    for samples in (np.zeros((10, 2), np.float32), np.zeros(10, np.int16), np.float32(1)):
        with pytest.raises(AudioError, match="one channel of floating-point"):
            Audio(samples, 16_000)
    with pytest.raises(AudioError, match="sample rate of 0"):
        Audio(np.zeros(10, np.float32), 0)
    assert Audio(np.zeros(8_000), 16_000).samples.dtype == np.float32
    assert Audio(np.zeros(8_000), 16_000).seconds == 0.5


def test_content_hash_is_of_the_sound(tmp_path):
    samples = np.round(voice(16_000) * 32767).astype(np.int16)
    sf.write(tmp_path / "a.wav", samples, 16_000)
    sf.write(tmp_path / "b.flac", samples, 16_000)
    base = content_hash(load_audio(tmp_path / "a.wav"))
    assert len(base) == 64 and int(base, 16) >= 0
    assert content_hash(load_audio(tmp_path / "b.flac")) == base  # same samples, other name and format
    same = load_audio(tmp_path / "a.wav")
    assert content_hash(Audio(same.samples, 16_001)) != base
    changed = same.samples.copy()
    changed[-1] += 1 / 32768
    assert content_hash(Audio(changed, 16_000)) != base
    assert content_hash(Audio(same.samples[::-1], 16_000)) != base


# ---------------------------------------------------------------------------------------------------- writing


def test_wav_bytes_are_16_bit_clipped_and_not_normalised():
    samples = np.array([0, 0.5, -0.5, 1.0, -1.0, 1.4, -1.4, 1e-5, np.nan, np.inf, -np.inf], np.float32)
    with wave.open(io.BytesIO(wav_bytes(samples, 44_100))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 44_100)
        assert file.getnframes() == len(samples)
        values = np.frombuffer(file.readframes(len(samples)), "<i2")
    assert values.tolist() == [0, 16384, -16384, 32767, -32768, 32767, -32768, 0, 0, 32767, -32768]


def test_wav_bytes_of_nothing_and_of_many_blocks():
    assert len(load_audio(wav_bytes(np.zeros(0, np.float32), 16_000)).samples) == 0
    samples = voice(48_000, 15.0)
    assert len(samples) > 2 * audio_module._BLOCK
    assert np.abs(load_audio(wav_bytes(samples, 48_000)).samples - samples).max() <= 0.5 / 32768 + 1e-9


def test_sixteen_bits_survive_a_round_trip(tmp_path):
    every = np.arange(-32768, 32768).astype(np.int16)
    sf.write(tmp_path / "a.wav", every, 16_000)
    write_wav(tmp_path / "b.wav", load_audio(tmp_path / "a.wav").samples, 16_000)
    assert np.array_equal(sf.read(tmp_path / "b.wav", dtype="int16")[0], every)
    assert (tmp_path / "b.wav").read_bytes() == wav_bytes(every / np.float32(32768), 16_000)


def test_write_wav_replaces_in_one_step(tmp_path):
    path = tmp_path / "声音 (1).wav"
    path.write_bytes(b"old")
    write_wav(path, voice(16_000), 16_000)
    write_wav(str(path), voice(16_000, 1.0), 16_000)
    assert sf.info(path).duration == 1.0 and sf.info(path).subtype == "PCM_16"
    assert list(tmp_path.iterdir()) == [path]
    if os.name != "nt":  # as readable as any other new file
        (tmp_path / "other").touch()
        assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_write_wav_takes_a_name_of_full_length(tmp_path):
    write_wav(tmp_path / ("n" * 251 + ".wav"), voice(16_000, 0.1), 16_000)


def test_write_wav_leaves_nothing_behind_on_failure(tmp_path):
    (tmp_path / "folder.wav").mkdir()
    with pytest.raises(OSError):  # the rename fails
        write_wav(tmp_path / "folder.wav", voice(16_000), 16_000)
    with pytest.raises(OSError):
        write_wav(tmp_path / "missing" / "a.wav", voice(16_000), 16_000)
    with pytest.raises(AudioError, match="one channel"):
        write_wav(tmp_path / "a.wav", np.zeros((2, 10), np.float32), 16_000)
    with pytest.raises(AudioError, match="one channel"):  # as ±1 it would be a clipped square
        wav_bytes(np.arange(10, dtype=np.int32), 16_000)
    assert [p.name for p in tmp_path.iterdir()] == ["folder.wav"]


def test_write_wav_on_a_full_disk_keeps_the_old_file(tmp_path):
    resource = pytest.importorskip("resource")  # not on Windows
    path = tmp_path / "a.wav"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(OSError):
            write_wav(path, voice(16_000), 16_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]

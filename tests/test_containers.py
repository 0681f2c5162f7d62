"""Files as FFmpeg writes them, read back with ffprobe: sound, tags, chapters, covers, and what goes wrong."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from PIL import Image

from studio import containers
from studio.containers import (
    FORMATS,
    SAMPLE_RATES,
    Chapter,
    Encoder,
    ExportError,
    add_tags,
    cover_jpeg,
    decoded,
    ffmetadata,
    probe,
)
from studio.mp3_frames import bit_rates
from tests.recordings import ffprobe, heard, speech

TITLES = ("第一章：开始 = ; # \\ ", "Zwei\nZeilen", "Глава 3")
TAGS = {"title": "书 = ; # \\ “x”", "artist": "Ärzte", "comment": "made | by=a; machine", "track": "2/7"}
EDGES = (0.0, 2.0137, 3.9999, 6.1)
CHAPTERS = [Chapter(title, *edges) for title, edges in zip(TITLES, zip(EDGES, EDGES[1:], strict=False), strict=True)]


def picture(kind: str = "PNG", size: tuple[int, int] = (300, 200)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGBA" if kind == "PNG" else "RGB", size, (200, 30, 90)).save(buffer, kind)
    return buffer.getvalue()


def encode(path: Path, name: str, rate: int = 44_100, seconds: float = 6.1) -> np.ndarray:
    samples = speech(seconds, rate, 4)
    with Encoder(path, FORMATS[name], rate) as encoder:
        for start in range(0, len(samples), 10_000):
            encoder.write(samples[start : start + 10_000])
    return samples


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("rate", SAMPLE_RATES)
def test_every_format_at_every_rate(tmp_path: Path, name: str, rate: int) -> None:
    path = tmp_path / f"声音 (1){FORMATS[name].suffix}"
    samples = encode(path, name, rate, 2.0)
    stream = ffprobe(path)["streams"][0]
    assert (int(stream["sample_rate"]), stream["channels"]) == (rate, 1)
    sound = heard(path, rate)
    assert abs(len(sound) - len(samples)) <= 0.05 * rate
    head = len(samples) // 2
    match = np.corrcoef(sound[:head], samples[:head])[0, 1]  # also: not a sample late
    assert match > 0.95


@pytest.mark.parametrize("name", ["wav", "flac"])
def test_lossless_files_hold_the_very_samples(tmp_path: Path, name: str) -> None:
    steps = np.random.default_rng(1).integers(-32768, 32768, 30_000)
    with Encoder(tmp_path / "x", FORMATS[name], 48_000) as encoder:
        encoder.write((steps / 32768).astype(np.float32))
    read, _ = sf.read(tmp_path / "x", dtype="int16")
    assert np.array_equal(read, steps)


def test_what_is_too_loud_is_cut_off_and_does_not_wrap(tmp_path: Path) -> None:
    with Encoder(tmp_path / "x.wav", FORMATS["wav"], 48_000) as encoder:
        encoder.write(np.array([1.5, -1.5, 0.0], np.float32))
    assert sf.read(tmp_path / "x.wav", dtype="int16")[0].tolist() == [32767, -32768, 0]


@pytest.mark.parametrize(("rate", "kbps"), [(44_100, 192), (48_000, 192), (24_000, 160), (16_000, 160)])
def test_mp3_has_a_constant_bit_rate(tmp_path: Path, rate: int, kbps: int) -> None:
    encode(tmp_path / "x.mp3", "mp3", rate)
    assert bit_rates(tmp_path / "x.mp3") == {kbps}
    add_tags(tmp_path / "x.mp3", tmp_path / "y.mp3", FORMATS["mp3"], TAGS, (), cover_jpeg(picture()))
    assert bit_rates(tmp_path / "y.mp3") == {kbps}


def test_a_variable_bit_rate_is_seen(tmp_path: Path) -> None:
    encode(tmp_path / "x.wav", "wav")
    containers._run(["-i", str(tmp_path / "x.wav")], ["-q:a", "4", str(tmp_path / "x.mp3")], tmp_path / "x.mp3")
    assert len(bit_rates(tmp_path / "x.mp3")) > 1
    assert bit_rates(tmp_path / "x.wav") == set()


@pytest.mark.parametrize("name", FORMATS)
def test_tags_and_cover_are_read_by_others_and_by_us(tmp_path: Path, name: str) -> None:
    kind, raw, path = FORMATS[name], tmp_path / f"raw{FORMATS[name].suffix}", tmp_path / f"out{FORMATS[name].suffix}"
    encode(raw, name, seconds=2.0)
    add_tags(raw, path, kind, TAGS, CHAPTERS, cover_jpeg(picture()))
    found = ffprobe(path)
    tags = {key.lower(): value for key, value in found["format"]["tags"].items()}
    for key, value in TAGS.items():
        assert tags[key] == value, key
        assert probe(path).tags[key] == value, key
    has_cover = any(stream.get("disposition", {}).get("attached_pic") for stream in found["streams"])
    assert has_cover == probe(path).has_cover == (name != "wav")
    before, after = heard(raw, 44_100), heard(path, 44_100)
    assert np.array_equal(before, after)


@pytest.mark.parametrize("name", ["m4a", "m4b"])
def test_chapter_marks_are_at_their_places(tmp_path: Path, name: str) -> None:
    encode(tmp_path / "raw.m4a", name)
    path = tmp_path / f"x.{name}"
    add_tags(tmp_path / "raw.m4a", path, FORMATS[name], TAGS, CHAPTERS)
    found = ffprobe(path)["chapters"]
    ours = probe(path).chapters
    assert [one["tags"]["title"] for one in found] == [one.title for one in ours] == [c.title for c in CHAPTERS]
    for theirs, mine, wanted in zip(found, ours, CHAPTERS, strict=True):
        assert float(theirs["start_time"]) == pytest.approx(wanted.start, abs=0.002)
        assert (mine.start, mine.end) == pytest.approx((wanted.start, wanted.end), abs=0.002)


def test_an_m4b_says_that_it_is_one(tmp_path: Path) -> None:
    encode(tmp_path / "raw.m4b", "m4b")
    add_tags(tmp_path / "raw.m4b", tmp_path / "x.m4b", FORMATS["m4b"], TAGS | {"media_type": "2"}, CHAPTERS)
    assert ffprobe(tmp_path / "x.m4b")["format"]["tags"]["major_brand"] == "M4B "
    assert ffprobe(tmp_path / "x.m4b")["format"]["tags"]["media_type"] == "2"


def test_what_we_read_is_what_ffprobe_reads(tmp_path: Path) -> None:
    for name in FORMATS:
        path = tmp_path / f"x{FORMATS[name].suffix}"
        encode(path, name, 24_000, 1.0)
        facts, stream = probe(path), ffprobe(path)["streams"][0]
        assert (facts.codec, facts.sample_rate, facts.channels) == (stream["codec_name"], 24_000, 1)


def test_odd_tags_survive_the_metadata_file() -> None:
    tags = {"title": "a=b;c#d\\e\nf", "comment": "; not a comment", "empty": "", "end": "x\\"}
    read, chapters = containers._parsed(ffmetadata(tags, CHAPTERS))
    assert read == {"title": tags["title"], "comment": tags["comment"], "end": "x\\ "}
    assert [chapter.title for chapter in chapters] == list(TITLES)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_covers_become_small_enough_jpegs(kind: str) -> None:
    with Image.open(io.BytesIO(cover_jpeg(picture(kind, (3000, 1500))))) as made:
        assert (made.format, made.size) == ("JPEG", (2400, 1200))


def test_a_cover_that_is_no_picture_is_refused() -> None:
    with pytest.raises(ExportError, match="not a picture"):
        cover_jpeg(b"GIF89a not really")


def test_an_error_while_writing_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyError), Encoder(tmp_path / "x.flac", FORMATS["flac"], 48_000) as encoder:
        encoder.write(speech(1.0, 48_000))
        raise KeyError("the next take is gone")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="x.mp3 could not be written"):
        encode(tmp_path / "gone" / "x.mp3", "mp3")
    encode(tmp_path / "x.mp3", "mp3")
    with pytest.raises(ExportError, match=r"could not be written: .*No such file"):
        add_tags(tmp_path / "x.mp3", tmp_path / "gone" / "y.mp3", FORMATS["mp3"], TAGS)


def test_what_is_no_sound_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.mp3").write_text("not audio")
    with pytest.raises(ExportError, match="x.mp3"):
        probe(tmp_path / "x.mp3")
    with pytest.raises(ExportError, match="cannot be read"):
        list(decoded(tmp_path / "x.mp3", 44_100))


def test_without_ffmpeg_the_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "ffmpeg_path", lambda: None)
    with pytest.raises(ExportError, match="pip install imageio-ffmpeg"):
        probe(tmp_path / "x.mp3")


def test_a_file_that_is_given_up_while_it_is_read_stops_ffmpeg(tmp_path: Path) -> None:
    encode(tmp_path / "x.wav", "wav")
    blocks = decoded(tmp_path / "x.wav", 48_000)
    next(blocks)
    blocks.close()

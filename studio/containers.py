"""Files for listeners: WAV, FLAC, MP3 (constant bit rate), M4A and M4B, written and read by FFmpeg.

Sound goes to FFmpeg block by block through a pipe and is encoded once; chapter marks, cover and tags are put in by a
second run that copies the sound. Everything is mono.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from voxcpm_core.audio import ffmpeg_path
from voxcpm_core.errors import VoxCPMError

SAMPLE_RATES = (16_000, 22_050, 24_000, 44_100, 48_000)
COVER_PIXELS = 2400  # the longer side at most
LOSSY_MARGIN = 0.9  # dB by which encoding may raise a peak
LOSSLESS_MARGIN = 0.1

_DECODED = 1 << 20  # bytes read at once


class ExportError(VoxCPMError, RuntimeError):
    """A file cannot be written, or cannot be read back."""


@dataclass(frozen=True)
class Format:
    """One kind of file. ``codec`` are FFmpeg's words for it."""

    name: str
    codec: tuple[str, ...]
    container: str  # FFmpeg's muxer
    suffix: str
    lossy: bool = False
    chapters: bool = False

    @property
    def margin(self) -> float:
        return LOSSY_MARGIN if self.lossy else LOSSLESS_MARGIN


FORMATS: dict[str, Format] = {
    kind.name: kind
    for kind in (
        Format("wav", ("-c:a", "pcm_s16le"), "wav", ".wav"),
        Format("flac", ("-c:a", "flac", "-sample_fmt", "s16"), "flac", ".flac"),
        Format("mp3", ("-c:a", "libmp3lame"), "mp3", ".mp3", lossy=True),
        Format("m4a", ("-c:a", "aac"), "ipod", ".m4a", lossy=True, chapters=True),
        Format("m4b", ("-c:a", "aac"), "ipod", ".m4b", lossy=True, chapters=True),
    )
}


@dataclass(frozen=True)
class Chapter:
    """A mark inside a file, in seconds."""

    title: str
    start: float
    end: float


@dataclass(frozen=True)
class FileFacts:
    """What a file says about itself. ``bit_rate`` in kbit/s, 0 where the container does not tell."""

    codec: str
    sample_rate: int
    channels: int
    bit_rate: int
    tags: dict[str, str]  # keys in lower case
    chapters: tuple[Chapter, ...]
    has_cover: bool


def bit_rate(kind: Format, sample_rate: int) -> int:
    """kbit/s of a lossy format at this rate: MP3 below 32 kHz has no more than 160, AAC needs less."""
    if kind.name == "mp3":
        return 192 if sample_rate >= 32_000 else 160
    return 128 if sample_rate >= 32_000 else 64


class Encoder:
    """Writes one file from float blocks. As a context manager: an error inside leaves no file."""

    def __init__(self, path: Path, kind: Format, sample_rate: int) -> None:
        self._path = path
        self._messages = tempfile.TemporaryFile()
        rate = ("-b:a", f"{bit_rate(kind, sample_rate)}k") if kind.lossy else ()
        self._process = _start(
            ["-f", "f32le", "-ar", str(sample_rate), "-ac", "1", "-i", "pipe:0"],
            [*kind.codec, *rate, "-map_metadata", "-1", *_muxer(kind), _file(path)],
            self._messages,
        )

    def write(self, block: np.ndarray) -> None:
        """The next samples, float [n], full scale +-1; what is louder is cut off."""
        try:
            self._process.stdin.write(np.clip(block, -1.0, 1.0).astype("<f4").data)
        except OSError as error:
            raise self._refused() from error

    def __enter__(self) -> Encoder:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                with contextlib.suppress(OSError):  # the exit status tells
                    self._process.stdin.close()
                if self._process.wait():
                    raise self._refused()
        finally:
            self._process.kill()
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process.wait()
            self._messages.close()
            if error is not None or self._process.returncode:
                self._path.unlink(missing_ok=True)

    def _refused(self) -> ExportError:
        self._process.kill()
        self._process.wait()
        return ExportError(f"{self._path.name} could not be written: {_last_words(self._messages)}")


def add_tags(
    source: Path,
    target: Path,
    kind: Format,
    tags: Mapping[str, str],
    chapters: Sequence[Chapter] = (),
    cover: bytes | None = None,
) -> None:
    """Write ``source`` again as ``target`` with tags, chapter marks and a JPEG cover; the sound is copied as it is.

    Raises ExportError, and then leaves no ``target``.
    """
    with tempfile.TemporaryDirectory(prefix="voxcpm-tags-") as folder:
        facts = Path(folder, "facts.txt")
        facts.write_text(ffmetadata(tags, chapters if kind.chapters else ()), encoding="utf-8", newline="\n")
        picture = Path(folder, "cover.jpg")
        inputs = ["-i", _file(source), "-f", "ffmetadata", "-i", _file(facts)]
        outputs = ["-map", "0:a", "-map_metadata", "1", "-map_chapters", "1" if kind.chapters else "-1"]
        if cover is not None and kind.name != "wav":  # WAV has no place for one
            picture.write_bytes(cover)
            inputs += ["-i", _file(picture)]
            outputs += ["-map", "2:v", "-disposition:v", "attached_pic", "-metadata:s:v", "comment=Cover (front)"]
        _run([*inputs], [*outputs, "-c", "copy", *_muxer(kind), _file(target)], target)


def ffmetadata(tags: Mapping[str, str], chapters: Sequence[Chapter] = ()) -> str:
    """FFmpeg's metadata file: tags, then chapter marks in microseconds."""
    lines = [";FFMETADATA1", *(f"{_escaped(key)}={_escaped(value)}" for key, value in tags.items() if value)]
    for chapter in chapters:
        start, end = round(chapter.start * 1e6), round(chapter.end * 1e6)
        lines += ["[CHAPTER]", "TIMEBASE=1/1000000", f"START={start}", f"END={end}", f"title={_escaped(chapter.title)}"]
    return "\n".join(lines) + "\n"


def cover_jpeg(data: bytes) -> bytes:
    """Any picture as a JPEG of at most COVER_PIXELS a side. Raises ExportError when it is none."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as picture:
            picture = picture.convert("RGB")
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        raise ExportError("The cover is not a picture that can be read: choose a JPEG or PNG file.") from error
    picture.thumbnail((COVER_PIXELS, COVER_PIXELS))
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def probe(path: Path) -> FileFacts:
    """What FFmpeg finds in a file. Raises ExportError when it is no sound file."""
    with tempfile.TemporaryDirectory(prefix="voxcpm-tags-") as folder:
        facts = Path(folder, "facts.txt")
        said = _run(["-i", _file(path)], ["-map_metadata", "0", "-f", "ffmetadata", _file(facts)], path, reading=True)
        tags, chapters = _parsed(facts.read_text(encoding="utf-8", errors="replace"))
    stream = re.search(r"Stream #0:\d+.*?: Audio: (\w+).*?, (\d+) Hz, ([\w.() ]+?),([^\n]*)", said)
    if not stream:
        raise ExportError(f"{path.name} has no sound track.")
    for key, value in re.findall(r"(?m)^    ([A-Za-z_]+) *: ([^\n]*)$", said):
        tags.setdefault(key.lower(), value.strip())
    rate = re.search(r"(\d+) kb/s", stream[4])
    return FileFacts(
        codec=stream[1],
        sample_rate=int(stream[2]),
        channels={"mono": 1, "stereo": 2}.get(stream[3].strip(), 0) or int(re.sub(r"\D", "", stream[3]) or 0),
        bit_rate=int(rate[1]) if rate else 0,
        tags=tags,
        chapters=chapters,
        has_cover=re.search(r"Stream #0:\d+.*?: Video: (mjpeg|png)", said) is not None,
    )


def decoded(path: Path, sample_rate: int) -> Iterator[np.ndarray]:
    """The file's sound at ``sample_rate``, mixed to mono, as float32 blocks [n]. Raises ExportError when damaged."""
    with tempfile.TemporaryFile() as messages:
        process = _start(
            ["-i", _file(path)],
            ["-map", "0:a:0", "-ac", "1", "-ar", str(sample_rate), "-f", "f32le", "pipe:1"],
            messages,
        )
        try:
            while data := process.stdout.read(_DECODED):
                yield np.frombuffer(data, "<f4")
            if process.wait():
                raise ExportError(f"{path.name} cannot be read: {_last_words(messages)}")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def _muxer(kind: Format) -> list[str]:
    extra = {
        "wav": ["-rf64", "auto"],
        "mp3": ["-id3v2_version", "4", "-write_xing", "1"],
        "ipod": ["-movflags", "+faststart", "-brand", "M4B " if kind.name == "m4b" else "M4A "],
    }
    return [*extra.get(kind.container, []), "-f", kind.container]


def _start(inputs: list[str], outputs: list[str], messages: io.BufferedRandom) -> subprocess.Popen:
    program = ffmpeg_path()
    if program is None:
        raise ExportError("FFmpeg was not found: install FFmpeg, or run: pip install imageio-ffmpeg")
    quiet = ["-nostdin"] if "pipe:0" not in inputs else []
    command = [program, *quiet, "-hide_banner", "-nostats", "-loglevel", "info", *inputs, "-y", *outputs]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE if "pipe:0" in inputs else subprocess.DEVNULL,
            stdout=subprocess.PIPE if "pipe:1" in outputs else subprocess.DEVNULL,
            stderr=messages,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError as error:
        raise ExportError(f"FFmpeg ({program}) does not start: {error.strerror}.") from error


def _run(inputs: list[str], outputs: list[str], path: Path, reading: bool = False) -> str:
    """Run FFmpeg to its end and return what it said."""
    with tempfile.TemporaryFile() as messages:
        process = _start(inputs, outputs, messages)
        try:
            status = process.wait()
        finally:
            process.kill()
            process.wait()
        if status:
            if not reading:
                path.unlink(missing_ok=True)
            done = "read" if reading else "written"
            raise ExportError(f"{path.name} could not be {done}: {_last_words(messages)}")
        messages.seek(0)
        return messages.read().decode("utf-8", "replace")


def _last_words(messages: io.BufferedRandom) -> str:
    messages.seek(0)
    lines = messages.read()[-2000:].decode("utf-8", "replace").split("\n")
    said = [line.strip() for line in lines if line.strip() and "Conversion failed" not in line]
    return (said[-1] if said else "FFmpeg stopped without a word").rstrip(".") + "."


def _file(path: Path) -> str:
    """ "file:" keeps a name from being an option or an address."""
    return f"file:{os.path.abspath(path)}"


def _escaped(text: str) -> str:
    if text.endswith("\\"):  # FFmpeg would take the end of the line for escaped and swallow the next one
        text += " "
    return re.sub(r"([=;#\\\n])", r"\\\1", text)


def _parsed(text: str) -> tuple[dict[str, str], tuple[Chapter, ...]]:
    """Tags and chapter marks of FFmpeg's metadata file."""
    head, *sections = re.split(r"(?m)^\[(?:CHAPTER|STREAM)\]\n", text)
    chapters = []
    for values in map(_values, sections):
        if "start" in values:
            over, under = map(int, values["timebase"].split("/"))
            start, end = (int(values[key]) * over / under for key in ("start", "end"))
            chapters.append(Chapter(values.get("title", ""), start, end))
    return _values(head), tuple(chapters)


def _values(lines: str) -> dict[str, str]:
    """key=value lines; a backslash keeps the next character, a line break included."""
    found = {}
    for entry in re.findall(r"(?:[^\\\n]|\\(?:.|\n))+", lines):
        parts = re.match(r"((?:[^\\=]|\\(?:.|\n))+)=((?:.|\n)*)", entry)
        if parts and not entry.startswith(";"):
            key, value = (re.sub(r"\\((?:.|\n))", r"\1", part) for part in parts.groups())
            found[key.lower()] = value
    return found

"""Decode any clip to mono float32: libsndfile (``soundfile``) first, and FFmpeg for what it cannot read.

The content decides the format, never the name. FFmpeg runs in a process of its own, with a time limit, and
may open neither the network nor playlists. The public face is :func:`voxcpm_core.audio.load_audio`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import soundfile as sf

from .errors import AudioError

log = logging.getLogger(__name__)

MAX_SAMPLES = 500_000_000  # of one decoded clip: 2 GB as mono float32, about three hours at 44.1 kHz
MIN_RATE, MAX_RATE = 4_000, 768_000  # Hz; outside, the header is wrong or it is no recording of a voice
FFMPEG_SECONDS = 180.0  # time limit of one decode

_BLOCK = 1 << 18  # frames decoded at once
_AAC_FRAME = 2048  # samples: the longest padding an AAC encoder leaves at the end

# Containers that FFmpeg may open. Left out on purpose: playlists (hls, concat, ...), which read other files
# of this machine, and headerless formats, which make noise out of anything.
_FFMPEG_FORMATS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,dsf,dts,eac3,flac,flv,iff,matroska,webm,mov,mp4,m4a,3gp,mp2,mp3,mpc,"
    "mpc8,mpeg,mpegts,nist,ogg,oma,rm,swf,tak,tta,voc,w64,wav,wv,xwma"
)

Source = str | os.PathLike | bytes | bytearray | memoryview | BinaryIO


def decode(source: Source, max_seconds: float | None = None) -> tuple[np.ndarray, int]:
    """Return float32 samples [n] (mean of the channels) and the file's rate; raise :class:`AudioError`."""
    with _as_file(source) as (path, label):
        mono = _Mono(label, max_seconds)
        try:
            _decode_with_soundfile(path, mono)
        except (sf.SoundFileError, _Incomplete) as error:
            log.debug("libsndfile cannot read %s: %s", label, error)
            mono = _Mono(label, max_seconds)
            _decode_with_ffmpeg(path, mono)
        return mono.samples(), mono.rate


def ffmpeg_path() -> str | None:
    """The FFmpeg on PATH, else the binary that the package imageio-ffmpeg carries, else None."""
    found = shutil.which("ffmpeg")
    if found:
        return found
    try:
        import imageio_ffmpeg

        return imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        return None


def too_long(label: str, seconds: float | None, limit: float) -> str:
    """The sentence for a clip of ``seconds`` (None: not known) above ``limit``."""
    length = "" if seconds is None else f" {spell_seconds(seconds)} long,"
    return f"{label} is{length} more than the {spell_seconds(limit)} allowed: cut out the best 5 to 30 s."


def spell_seconds(seconds: float) -> str:
    """``0.02 -> "20 ms"``, ``3.2 -> "3.2 s"``, ``605 -> "10 min 5 s"``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "", f"{rest} s" if rest else "")
    return " ".join(part for part in parts if part)


class _Mono:
    """Mixes decoded blocks into one growing mono buffer, so that a long clip is held once."""

    def __init__(self, label: str, max_seconds: float | None) -> None:
        self.label = label
        self.rate = 0
        self._max_seconds, self._limit = max_seconds, 0
        self._buffer = bytearray()  # grows in place

    def __len__(self) -> int:
        return len(self._buffer) // 4

    def open(self, rate: int) -> None:
        if not MIN_RATE <= rate <= MAX_RATE:
            raise AudioError(
                f"{self.label} has a sample rate of {rate} Hz: save it with one between 8000 and 192000 Hz."
            )
        most = MAX_SAMPLES / rate
        self.rate = rate
        self._limit = int(min(most, self._max_seconds or most) * rate)

    def expect(self, frames: int) -> None:
        """Refuse a clip that is known to be too long before decoding it."""
        if frames > self._limit:
            raise AudioError(too_long(self.label, frames / self.rate, self._limit / self.rate))

    def add(self, block: np.ndarray) -> None:
        """Append float32 [frames, channels]."""
        channels = block.shape[1]
        mono = block[:, 0] if channels == 1 else block @ np.full(channels, 1 / channels, np.float32)
        self._buffer += mono.tobytes()
        if len(self) > self._limit:
            raise AudioError(too_long(self.label, None, self._limit / self.rate))

    def trim_padding(self, seconds: float) -> None:
        """Drop what an encoder padded behind ``seconds``, if it is no more than one of its frames."""
        keep = int(min(seconds, MAX_SAMPLES) * self.rate)
        if keep < len(self) <= keep + _AAC_FRAME:
            del self._buffer[keep * 4 :]

    def samples(self) -> np.ndarray:
        return np.frombuffer(self._buffer, dtype=np.float32)


# ----------------------------------------------------------------------------------------------- the source


@contextlib.contextmanager
def _as_file(source: Source) -> Iterator[tuple[Path, str]]:
    """Yield a regular file and the words that name it; bytes lie in a temporary file meanwhile."""
    if isinstance(source, str | os.PathLike):
        yield _existing_file(source)
        return
    data = source.read() if hasattr(source, "read") else source
    if not isinstance(data, bytes | bytearray | memoryview):
        kind = type(data).__name__
        raise AudioError(f"Audio is given as a path, bytes or a file opened in binary mode, not as {kind}.")
    if not len(data):
        raise AudioError("The audio data is empty (0 bytes): record or choose it again.")
    with tempfile.TemporaryDirectory(prefix="voxcpm-audio-") as folder:
        path = Path(folder, "clip")
        path.write_bytes(data)
        yield path, "The audio data"


def _existing_file(source: str | os.PathLike) -> tuple[Path, str]:
    path = Path(os.fsdecode(source))
    label = f'"{_printable(path.name)}"'
    if not os.path.isfile(path):
        problem = "is not a file" if os.path.exists(path) else "does not exist"
        raise AudioError(f"The audio file {label} {problem}: choose an audio file on this machine.")
    if not path.stat().st_size:
        raise AudioError(f"The audio file {label} is empty (0 bytes): record or copy it again.")
    return path, label


def _printable(name: str) -> str:
    kept = "".join(c if c.isprintable() else "?" for c in name)
    return kept if len(kept) <= 80 else kept[:60] + "..." + kept[-17:]


# -------------------------------------------------------------------------------------------- the decoders


class _Incomplete(Exception):
    """libsndfile stopped long before the end of the file."""


def _decode_with_soundfile(path: Path, mono: _Mono) -> None:
    with _open_nameless(path, mono.label) as raw, sf.SoundFile(raw) as sound:
        mono.open(sound.samplerate)
        if sound.format != "MP3":  # where the length may be a guess
            mono.expect(sound.frames)
        while len(block := sound.read(_BLOCK, dtype="float32", always_2d=True)):
            mono.add(block)
        # libsndfile believes the length in the header: of a WAV that was streamed it may be 0, and for a
        # variable-rate MP3 without a Xing header it is a guess. What lies behind would be dropped.
        unread = path.stat().st_size - raw.tell()
        if unread > 4096 and (sound.format == "MP3" or not len(mono)):
            raise _Incomplete(f"{unread} bytes left")


def _open_nameless(path: Path, label: str) -> BinaryIO:
    """Open by number: given a name, soundfile and libsndfile believe its extension (.raw, .vox, ...)."""
    try:
        return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0)), "rb")
    except OSError as error:
        raise AudioError(f"The audio file {label} cannot be opened: {error.strerror}.") from error


def _decode_with_ffmpeg(path: Path, mono: _Mono) -> None:
    program = ffmpeg_path()
    if program is None:
        raise AudioError(
            f"{mono.label} cannot be read as WAV, FLAC, OGG or MP3, and other formats need FFmpeg, which was "
            "not found: install FFmpeg (or run: pip install imageio-ffmpeg) or save the clip as WAV."
        )
    with tempfile.TemporaryFile() as messages:
        status = _run_ffmpeg(_ffmpeg_command(program, path), mono, messages)
        messages.seek(0)
        said = messages.read(1 << 16).decode("utf-8", "replace")
    if status or not len(mono):
        log.info("FFmpeg cannot decode %s: %s", mono.label, said[-2000:])
        if "matches no streams" in said:
            raise AudioError(f"{mono.label} has no sound track: choose a file with sound.")
        raise AudioError(
            f"{mono.label} is not audio or is damaged: neither libsndfile nor FFmpeg can decode it. "
            "Choose another file or export it again as WAV."
        )
    mono.trim_padding(_container_seconds(said))


def _ffmpeg_command(program: str, path: Path) -> list[str]:
    """First sound track -> Sun AU, float, on stdout. "file:" keeps a name from being an option or a URL."""
    return [
        *(program, "-nostdin", "-hide_banner", "-nostats", "-loglevel", "info"),
        *("-protocol_whitelist", "file,pipe", "-format_whitelist", _FFMPEG_FORMATS),
        *("-i", f"file:{os.path.abspath(path)}", "-map", "0:a:0", "-vn", "-sn", "-dn", "-map_metadata", "-1"),
        *("-c:a", "pcm_f32be", "-f", "au", "pipe:1"),
    ]


def _run_ffmpeg(command: list[str], mono: _Mono, messages: BinaryIO) -> int:
    """Feed FFmpeg's sound into ``mono`` and return its exit status. It is never left running."""
    no_window = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=messages,
            creationflags=no_window,
        )
    except OSError as error:
        raise AudioError(f"FFmpeg ({command[0]}) does not start: {error.strerror}.") from error
    late = threading.Event()
    timer = threading.Timer(FFMPEG_SECONDS, lambda: (late.set(), process.kill()))
    timer.daemon = True
    timer.start()
    try:
        _read_au(process.stdout, mono)
        status = process.wait()
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
    if late.is_set():
        limit = spell_seconds(FFMPEG_SECONDS)
        raise AudioError(f"{mono.label} took longer than {limit} to decode: cut out the best 5 to 30 s.")
    return status


def _read_au(stream: BinaryIO, mono: _Mono) -> None:
    header = stream.read(24)
    if len(header) < 24:
        return
    _, offset, _, _, rate, channels = struct.unpack(">4s5I", header)
    stream.read(offset - 24)
    mono.open(rate)
    frame = 4 * channels
    while data := stream.read(_BLOCK * frame):
        values = np.frombuffer(data, dtype=">f4", count=len(data) // frame * channels)
        mono.add(values.astype(np.float32).reshape(-1, channels))


def _container_seconds(said: str) -> float:
    """Length that an MP4 states, else infinite. Older FFmpeg keeps the padding of the last AAC frame."""
    stated = re.search(r"(?ms)^Input #0, mov,.*?^  Duration: (\d+):(\d\d):(\d\d\.\d+)", said)
    if not stated:
        return float("inf")
    hours, minutes, seconds = map(float, stated.groups())
    return hours * 3600 + minutes * 60 + seconds + 0.005  # it is printed to 0.01 s

"""Files of the data folder: written whole or not at all, and read back with a sentence when they are damaged."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import wave
from pathlib import Path

import numpy as np
import soundfile as sf

from studio.database import StoreError
from voxcpm_core import Audio
from voxcpm_core.audio import wav_bytes

logger = logging.getLogger(__name__)


def write_once(path: Path, data: bytes) -> None:
    """Write a whole file or nothing: a temporary file in the same folder, flushed to disk, then renamed."""
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def remove(path: Path) -> None:
    """Remove a file that has no row. On Windows it may be playing; then the next start tries again."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("%s could not be removed (%s)", path.name, error)


def read_pcm(path: Path) -> tuple[np.ndarray, int]:
    """A take's file as float32 [n] and its rate. Only what the store writes: 16-bit mono PCM.

    Raises StoreError when the file is damaged.
    """
    try:
        with wave.open(str(path), "rb") as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
            return samples.astype(np.float32) / 32768, file.getframerate()
    except (wave.Error, EOFError, OSError, ValueError) as error:
        raise StoreError(f"The audio of take {path.stem} is damaged ({error or 'it is cut off'}).") from error


def pcm_hash(data: bytes) -> str:
    """SHA-256 (hex) of a 16-bit WAV file's rate and samples, whatever else its header says."""
    with wave.open(io.BytesIO(data)) as file:
        digest = hashlib.sha256(f"{file.getframerate()}:".encode())
        digest.update(file.readframes(file.getnframes()))
    return digest.hexdigest()


def exact_wav(audio: Audio) -> bytes:
    """A WAV file from which the very same samples are read: 16-bit where they fit, else 32-bit float."""
    data = wav_bytes(audio.samples, audio.sample_rate)
    steps = audio.samples.astype(np.float64) * 32768
    if np.array_equal(steps, np.clip(np.rint(steps), -32768, 32767)):
        return data
    buffer = io.BytesIO()
    sf.write(buffer, audio.samples, audio.sample_rate, format="WAV", subtype="FLOAT")
    return buffer.getvalue()

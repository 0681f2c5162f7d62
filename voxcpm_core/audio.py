"""Sound in and out: load a clip, check it as a reference, resample it, write 16-bit WAV.

A sample rate travels with its samples in :class:`Audio`. Nothing here changes a level, trims silence or edits
the user's file: a clip is decoded, checked and reported.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import uuid
import wave
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .decode import Source, decode, ffmpeg_path, spell_seconds, too_long
from .errors import AudioError

__all__ = [
    "Audio",
    "Source",
    "check_audio",
    "content_hash",
    "ffmpeg_path",
    "load_audio",
    "load_reference",
    "resample",
    "wav_bytes",
    "write_wav",
]

GOOD_SECONDS = (5.0, 30.0)  # a reference of this length is enough and cheap
MAX_REFERENCE_SECONDS = 30 * 60.0

_BLOCK = 1 << 18  # samples checked, resampled or written at once
_FRAME_SECONDS = 0.02  # one level reading
_SILENT = 1e-4  # RMS (-80 dBFS) of the loudest frame: down there is dither and hiss, no voice
_QUIET = 1e-2  # RMS (-40 dBFS) of the sounding frames; speech usually has 0.03 to 0.15
_PAUSE = 10 ** (-35 / 20)  # a frame this far below the loudest one is silence
_CLIPPED_SHARE = 1e-3  # of all samples


@dataclass(frozen=True, eq=False)
class Audio:
    """Mono sound: ``samples`` float32 [n], full scale +-1 (higher peaks are kept), at ``sample_rate`` Hz.

    Raises :class:`AudioError` unless the samples are one channel of floats and the rate is from 1000 to 1000000.
    """

    samples: np.ndarray
    sample_rate: int

    def __post_init__(self) -> None:
        samples = _one_channel(self.samples)
        if not 1000 <= int(self.sample_rate) <= 1_000_000:
            raise AudioError(f"A sample rate of {self.sample_rate} Hz is not possible; 1000 to 1000000 are.")
        object.__setattr__(self, "samples", np.ascontiguousarray(samples, dtype=np.float32))
        object.__setattr__(self, "sample_rate", int(self.sample_rate))

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.sample_rate


def _one_channel(samples: np.ndarray) -> np.ndarray:
    samples = np.asarray(samples)
    if samples.ndim != 1 or not np.issubdtype(samples.dtype, np.floating):
        kind = f"{samples.dtype} of shape {samples.shape}"
        raise AudioError(f"Audio needs one channel of floating-point samples between -1 and 1, not {kind}.")
    return samples


def load_audio(source: Source, *, max_seconds: float | None = None) -> Audio:
    """Decode a path, bytes or a binary file to mono (mean of the channels) at the file's own rate.

    The content decides the format, never the name, and the source is only read. Raises :class:`AudioError`
    when it is missing, not audio, damaged, longer than ``max_seconds`` (or about three hours), or needs an
    FFmpeg that is not there.
    """
    return Audio(*decode(source, max_seconds))


def load_reference(
    source: Source | Audio,
    sample_rate: int,
    *,
    name: str = "reference",
) -> tuple[Audio, list[str]]:
    """Load a clip (or take an :class:`Audio`), check it, and bring it to the encoder's ``sample_rate``.

    Returns the clip, at the level it had, and the warnings of :func:`check_audio`, whose errors it raises.
    """
    audio = source if isinstance(source, Audio) else load_audio(source, max_seconds=MAX_REFERENCE_SECONDS)
    warnings = check_audio(audio, name)
    return resample(audio, sample_rate), warnings


def content_hash(audio: Audio) -> str:
    """SHA-256 (hex) of the sample rate and the float32 samples: equal for equal sound, whatever its name."""
    digest = hashlib.sha256(f"{audio.sample_rate}:".encode())
    digest.update(audio.samples.astype("<f4", copy=False).data)
    return digest.hexdigest()


# ------------------------------------------------------------------------------------------------- checking


def check_audio(audio: Audio, name: str = "reference") -> list[str]:
    """Refuse what cannot be a ``name`` (reference or prompt); return warnings, as sentences, about the rest.

    Raises :class:`AudioError` for no samples, NaN or infinite values, silence, a constant value, or more than
    ``MAX_REFERENCE_SECONDS``. Nothing is changed.
    """
    peak = _refuse_unusable(audio, name)
    levels, flat = _levels(audio.samples, audio.sample_rate, peak)
    if levels.max() < _SILENT:
        raise AudioError(_no_sound(audio, peak, name))
    sounding = levels > levels.max() * _PAUSE
    loudness = float(np.sqrt(np.mean(np.square(levels[sounding]))))
    warnings = (
        _length_warning(audio.seconds, name),
        _rate_warning(audio.sample_rate, name),
        _clipping_warning(flat / len(audio.samples), name),
        _quiet_warning(loudness, name),
        _silence_warning(audio.seconds, float(np.mean(sounding)), name),
    )
    return [warning for warning in warnings if warning]


def _refuse_unusable(audio: Audio, name: str) -> float:
    """Refuse by length and by values that are no numbers; return the peak."""
    if not len(audio.samples):
        raise AudioError(f"The {name} holds no sound (0 samples): record or choose it again.")
    if audio.seconds > MAX_REFERENCE_SECONDS:
        raise AudioError(too_long(f"The {name}", audio.seconds, MAX_REFERENCE_SECONDS))
    low, high = float(audio.samples.min()), float(audio.samples.max())  # both keep a NaN
    if not (np.isfinite(low) and np.isfinite(high)):
        raise AudioError(f"The {name} contains NaN or infinite values: export it again.")
    return max(-low, high)


def _no_sound(audio: Audio, peak: float, name: str) -> str:
    if peak < 10 * _SILENT:
        return f"The {name} is silent (peak {peak:.2g}): check the microphone or choose another clip."
    return f"The {name} is one constant value ({audio.samples[0]:.3g}) without any sound: record it again."


def _levels(samples: np.ndarray, sample_rate: int, peak: float) -> tuple[np.ndarray, int]:
    """RMS around the mean of each 20 ms (a shorter last one too); how many samples lie on a flat top."""
    frame = max(1, round(sample_rate * _FRAME_SECONDS))
    step = frame * max(1, _BLOCK // frame)
    levels, flat = [], 0
    for start in range(0, len(samples), step):
        block = samples[start : start + step]
        whole = len(block) // frame * frame
        levels.append(block[:whole].reshape(-1, frame).std(axis=1))
        if whole < len(block):
            levels.append(block[whole:].std(keepdims=True))
        flat += _flat_tops(block, peak)
    return np.concatenate(levels), flat


def _flat_tops(block: np.ndarray, peak: float) -> int:
    """Samples in the middle of three or more that stay at the clip's peak, whatever its level: clipping."""
    at_peak = np.abs(block) >= 0.98 * peak
    level = (np.abs(np.diff(block)) <= 1e-4 * peak) & at_peak[1:] & at_peak[:-1]
    return int(np.count_nonzero(level[1:] & level[:-1]))


def _length_warning(seconds: float, name: str) -> str:
    shortest, longest = GOOD_SECONDS
    wanted = f"{shortest:.0f} to {longest:.0f} s of one speaker"
    if seconds < 0.5:
        return f"The {name} is only {spell_seconds(seconds)} long, too short to carry a voice: use {wanted}."
    if seconds < shortest:
        return f"The {name} is only {spell_seconds(seconds)} long: the voice is steadier with {wanted}."
    if seconds > longest:
        cost = "which costs time and memory and seldom helps the voice"
        return f"The {name} is {spell_seconds(seconds)} long, {cost}: cut out the best {wanted}."
    return ""


def _rate_warning(sample_rate: int, name: str) -> str:
    if sample_rate >= 16_000:
        return ""
    return (
        f"The {name} has a sample rate of {sample_rate} Hz, like a telephone, and the voice will sound dull: "
        "use a recording of 16000 Hz or more if you have one."
    )


def _clipping_warning(share: float, name: str) -> str:
    if share < _CLIPPED_SHARE:
        return ""
    return (
        f"The {name} is clipped ({share:.1%} of it is cut off at its peak) and the voice may sound harsh: "
        "record it again with less gain."
    )


def _quiet_warning(rms: float, name: str) -> str:
    if rms >= _QUIET:
        return ""
    return f"The {name} is very quiet (RMS {rms:.4f}) and used as it is: record it louder or raise its level."


def _silence_warning(seconds: float, share: float, name: str) -> str:
    if share >= 0.5:
        return ""
    sound, whole = spell_seconds(share * seconds), spell_seconds(seconds)
    return f"The {name} is mostly silence ({sound} of sound in {whole}): cut the silence away."


# ----------------------------------------------------------------------------------------------- resampling


def resample(audio: Audio, sample_rate: int) -> Audio:
    """Change the rate with torchaudio's windowed sinc (its defaults); the same rate returns ``audio`` itself.

    Works through the clip in pieces with the filter's reach on both sides, so that a long clip needs little
    besides itself and its result; the pieces equal one pass. Output length: ceil(n * new / old).
    """
    if audio.sample_rate == sample_rate:
        return audio
    # An odd rate such as 44099 Hz would need gigabytes of filter; a small ratio is off by a millionth.
    ratio = Fraction(int(sample_rate), audio.sample_rate).limit_denominator(1000)
    new, old = ratio.numerator, ratio.denominator
    out = np.empty(-(-len(audio.samples) * new // old), dtype=np.float32)
    step = max(1, _BLOCK // old)  # in periods of `old` samples, each of which gives `new`
    reach = 8  # periods; the filter looks 6 / 0.99 periods to either side at most, and one sample
    for period in range(0, -(-len(audio.samples) // old), step):
        first = max(0, period - reach)
        piece = _sinc(audio.samples[first * old : (period + step + reach) * old], old, new)
        part = out[period * new : (period + step) * new]
        part[:] = piece[(period - first) * new :][: len(part)]
    return Audio(out, sample_rate)


def _sinc(samples: np.ndarray, old: int, new: int) -> np.ndarray:
    import torch
    from torchaudio.functional import resample as sinc_resample

    # A copy, because torch warns about arrays that cannot be written to.
    return sinc_resample(torch.from_numpy(samples.copy()), old, new).numpy()


# -------------------------------------------------------------------------------------------------- writing


def wav_bytes(samples: np.ndarray, sample_rate: int) -> bytes:
    """Mono samples [n] (full scale +-1) as a 16-bit PCM WAV file; see :func:`write_wav` for the numbers."""
    buffer = io.BytesIO()
    _write_pcm(buffer, _one_channel(samples), sample_rate)
    return buffer.getvalue()


def write_wav(path: str | os.PathLike, samples: np.ndarray, sample_rate: int) -> None:
    """Write mono samples [n] as 16-bit PCM WAV: a temporary file in the same folder, then a rename.

    Clipped to full scale, never normalised; NaN becomes 0. A 16-bit mono file read by :func:`load_audio` is
    written back bit for bit. Whoever sees ``path`` sees a whole file; on failure (``OSError``, or
    :class:`AudioError` for samples that are not one channel) nothing is left behind.
    """
    samples, path = _one_channel(samples), Path(path)
    part = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with open(part, "xb") as file:
            _write_pcm(file, samples, sample_rate)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _write_pcm(file: BinaryIO, samples: np.ndarray, sample_rate: int) -> None:
    with contextlib.closing(wave.open(file, "wb")) as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(int(sample_rate))
        out.setnframes(len(samples))
        for start in range(0, len(samples), _BLOCK):
            out.writeframesraw(_to_int16(samples[start : start + _BLOCK]).tobytes())


def _to_int16(samples: np.ndarray) -> np.ndarray:
    scaled = np.nan_to_num(samples.astype(np.float64) * 32768, nan=0.0)
    return np.clip(np.rint(scaled), -32768, 32767).astype("<i2")

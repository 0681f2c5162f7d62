"""What a clip says, by Whisper through faster-whisper: an optional extra, loaded when it is first used.

The model is a name that faster-whisper knows (fetched from the hub once) or a folder. It runs on the CPU, where it
takes nothing from the speech model; a clip of 30 s takes a few seconds with "base".
"""

from __future__ import annotations

import importlib.util
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

from studio.clip_measures import read_frames
from studio.speech_activity import find_speech
from studio.transcripts import Transcript, Word
from voxcpm_core.audio import Audio, check_audio, content_hash, resample
from voxcpm_core.errors import AudioError, UnsupportedError

PIP_LINE = "pip install faster-whisper==1.2.1"
DEFAULT_MODEL = "base"
MAX_SECONDS = 600.0  # of a clip that is transcribed

_RATE = 16_000
_one_at_a_time = threading.Lock()


def available() -> tuple[bool, str]:
    """Whether the recogniser is installed, and otherwise the line that installs it."""
    return (True, "") if importlib.util.find_spec("faster_whisper") else (False, PIP_LINE)


def transcribe(audio: Audio, model: str = DEFAULT_MODEL, language: str = "", threads: int = 2) -> Transcript:
    """The words of a clip with their times, its language (found when ``language`` is ""), bound to its samples.

    ``model``: a Whisper size ("tiny", "base", "small", "turbo" ...) or a folder. One clip at a time; the model
    stays loaded. Raises :class:`UnsupportedError` when the package or the model is not there, and
    :class:`AudioError` for a clip that is too long, no recording, or without any speech.
    """
    check_audio(audio, "clip")
    if audio.seconds > MAX_SECONDS:
        raise AudioError(f"The clip is {audio.seconds:.0f} s long; up to {MAX_SECONDS:.0f} s are transcribed: cut it.")
    if not find_speech(read_frames(audio)).regions:
        raise AudioError("No speech was found in the clip: choose another one.")
    with _one_at_a_time:
        whisper = _load(model, threads)
        segments, info = whisper.transcribe(
            resample(audio, _RATE).samples,
            language=language or None,
            beam_size=5,
            temperature=0.0,
            condition_on_previous_text=False,
            word_timestamps=True,
        )
        found = list(segments)
    text = "".join(segment.text for segment in found).strip()
    if not text:
        raise AudioError("The recogniser heard no words in the clip: write the transcript by hand.")
    words = (word for segment in found for word in segment.words or ())
    kept = tuple(Word(word.word.strip(), float(word.start), float(word.end), float(word.probability)) for word in words)
    return Transcript(text, content_hash(audio), info.language, kept)


def prepare(model: str = DEFAULT_MODEL, threads: int = 2) -> None:
    """Load a model before it is needed. Raises :class:`UnsupportedError` as :func:`transcribe` does."""
    with _one_at_a_time:
        _load(model, threads)


@lru_cache(maxsize=1)
def _load(model: str, threads: int) -> Any:
    installed, pip_line = available()
    if not installed:
        raise UnsupportedError(f"The recogniser is not installed. It comes with: {pip_line}")
    from faster_whisper import WhisperModel

    if Path(model).is_dir() and not Path(model, "model.bin").is_file():
        raise UnsupportedError(f"The folder {model} holds no Whisper model: it needs a model.bin in CTranslate2 form.")
    try:
        return WhisperModel(model, device="cpu", compute_type="int8", cpu_threads=threads)
    except Exception as error:  # the hub client, CTranslate2 and the file system each raise their own
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UnsupportedError(
            f"The recogniser {model!r} cannot be loaded ({reason}). Give the folder of a Whisper model, or connect "
            "to the internet once."
        ) from error

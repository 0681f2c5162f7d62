"""Validation by listening: sentences spoken with the weights as they are, judged by functions the caller brings.

A recogniser turns sound into words, an embedding turns it into a vector that stands for the speaker. Neither is part of
this package; without them only the distance to true recordings is measured.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..audio import Audio, load_audio, resample
from ..request import SpeechRequest
from ..voxcpm import VoxCPM
from .loop import write_result
from .trainer import Trainer

Recognise = Callable[[np.ndarray, int], str]  # float32 samples, sample rate -> words
Embed = Callable[[np.ndarray, int], np.ndarray]  # float32 samples, sample rate -> vector

_MEL_RATE, _WINDOW, _HOP, _BANDS = 16000, 512, 256, 40


@dataclass(frozen=True)
class Sentence:
    """What to say; ``reference`` is a clip to clone, ``recording`` the same words by the true speaker."""

    text: str
    control: str = ""
    reference: Path | None = None
    recording: Path | None = None


class Listening:
    """Speaks ``sentences`` with fixed seeds and returns means: "wer" (0 to 1 and above), "similarity" (cosine to the
    reference or recording), "mel" (log-mel distance to the recording, nat), each where it can be measured; "unended" is
    the share of takes that did not end by themselves."""

    def __init__(
        self,
        sentences: Sequence[Sentence],
        recognise: Recognise | None = None,
        embed: Embed | None = None,
        max_len: int = 400,
    ):
        self._sentences, self._recognise, self._embed, self._max_len = sentences, recognise, embed, max_len

    def __call__(self, model: VoxCPM) -> dict[str, float]:
        requests = [
            SpeechRequest(
                text=sentence.text,
                control=sentence.control,
                reference_wav_path=sentence.reference,
                seed=number,
                max_len=self._max_len,
            )
            for number, sentence in enumerate(self._sentences)
        ]
        takes = model.generate_batch(requests)
        errors, words, similarities, distances = 0, 0, [], []
        for sentence, take in zip(self._sentences, takes, strict=True):
            if self._recognise is not None:
                said = _words(sentence.text)
                errors += edits(said, _words(self._recognise(take.samples, take.sample_rate)))
                words += len(said)
            model_for_voice = sentence.reference or sentence.recording
            if self._embed is not None and model_for_voice is not None:
                true = load_audio(model_for_voice)
                mine = self._embed(take.samples, take.sample_rate)
                similarities.append(_cosine(mine, self._embed(true.samples, true.sample_rate)))
            if sentence.recording is not None:
                spoken = Audio(take.samples, take.sample_rate)
                distances.append(mel_distance(spoken, load_audio(sentence.recording)))
        result = {"unended": float(np.mean([take.ended_by != "stop" for take in takes]))}
        result |= {"wer": errors / words} if words else {}
        result |= {"similarity": float(np.mean(similarities))} if similarities else {}
        return result | ({"mel": float(np.mean(distances))} if distances else {})


class Heard:
    """A validation for the loop: ``first`` (held-out losses), then listening. Its score is word errors where there is
    a recogniser, and otherwise that of ``first``."""

    def __init__(self, first: Callable[[Trainer], dict[str, float]], listening: Listening, base: Path):
        self._first, self._listening, self._base = first, listening, base

    def __call__(self, trainer: Trainer) -> dict[str, float]:
        values = self._first(trainer)
        heard = self._listening_to(trainer)
        score = {"score": heard["wer"]} if "wer" in heard else {}
        return {**values, **heard, **score}

    def _listening_to(self, trainer: Trainer) -> dict[str, float]:
        with tempfile.TemporaryDirectory() as folder:
            made = write_result(trainer, self._base, Path(folder) / "made")
            adapter = trainer.options.lora is not None
            model = VoxCPM.from_pretrained(str(self._base if adapter else made), device=trainer.options.device)
            try:
                if adapter:
                    model.load_lora(str(made))
                return self._listening(model)
            finally:
                model.close()


def edits(wanted: Sequence[str], heard: Sequence[str]) -> int:
    """Least number of words to insert, remove or replace."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(wanted, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(heard, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (word != other))
    return row[-1]


def mel_distance(one: Audio, other: Audio) -> float:
    """Mean absolute log-mel difference (nat) along the best alignment in time, levels evened out."""
    a, b = _log_mel(one), _log_mel(other)
    cost = np.abs(a[:, None] - b[None]).mean(-1)
    total = np.full((len(a) + 1, len(b) + 1), np.inf)
    length = np.zeros((len(a) + 1, len(b) + 1))
    total[0, 0] = 0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            k = min(((i - 1, j - 1), (i - 1, j), (i, j - 1)), key=total.__getitem__)
            total[i, j], length[i, j] = total[k] + cost[i - 1, j - 1], length[k] + 1
    return float(total[-1, -1] / max(1.0, length[-1, -1]))


def _log_mel(audio: Audio) -> np.ndarray:
    samples = resample(audio, _MEL_RATE).samples
    samples = np.pad(samples, (0, max(0, _WINDOW - len(samples))))
    samples = samples / max(1e-6, float(np.sqrt(np.mean(samples**2))))  # evens the level out
    frames = np.lib.stride_tricks.sliding_window_view(samples, _WINDOW)[::_HOP]
    power = np.abs(np.fft.rfft(frames * np.hanning(_WINDOW), axis=1)) ** 2
    return np.log(power @ _filters().T + 1e-2)


def _filters() -> np.ndarray:
    """Triangles evenly spaced on the mel scale, [bands, bins]."""
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + _MEL_RATE / 1400), _BANDS + 2) / 2595) - 1)
    bins = np.fft.rfftfreq(_WINDOW, 1 / _MEL_RATE)
    rising = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    return np.clip(np.minimum(rising, falling), 0, None)


def _words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    a, b = np.asarray(a, np.float64).ravel(), np.asarray(b, np.float64).ravel()
    return float(a @ b / max(1e-12, np.linalg.norm(a) * np.linalg.norm(b)))

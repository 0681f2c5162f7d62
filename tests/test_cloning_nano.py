"""Ultimate cloning with the embedded model, the clip as reference too: the take goes on from it, in its voice.

nano is weak, so the bounds are loose; they are about the direction. `python -m scripts.nano.evaluate` measures more.
The clips are its own speech: a low and a high voice out of several descriptions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from studio import speakers
from studio.clip_measures import read_frames
from studio.speech_activity import find_speech
from studio.transcripts import likeness
from studio.voice_use import with_voice
from studio.voices import Voice
from voxcpm_core import Audio, SpeechRequest

pytestmark = pytest.mark.slow

DESCRIPTIONS = ("", "a man with a low voice", "an old man with a deep voice", "a woman with a high voice")
SEEDS = (1, 2)
WORDS = "Sometimes a fishing boat came close enough to wave at."
TEXT = "Good morning, the boat leaves at nine."


@pytest.fixture(scope="module")
def prompts(nano: Any) -> dict[str, Audio]:
    """The lowest and the highest of some voices, saying WORDS."""
    made = nano.generate_batch([SpeechRequest(WORDS, control=control, seed=3) for control in DESCRIPTIONS])
    voices = sorted((Audio(take.samples, take.sample_rate) for take in made), key=pitch)
    return {"low": voices[0], "high": voices[-1]}


@pytest.fixture(scope="module")
def takes(nano: Any, prompts: dict[str, Audio]) -> dict[tuple[str, int], Audio]:
    """Takes by voice and seed: a saved voice with its transcript, continued and heard as reference as well."""
    voice = Voice(id="voice-0123456789abcdef", name="Anna", created="", session="local", transcript=WORDS)
    made = {}
    for name, clip in prompts.items():
        request = with_voice(with_voice(SpeechRequest(TEXT), voice, clip, "reference"), voice, clip, "prompt")
        for seed, take in zip(SEEDS, nano.generate_takes(request, seeds=list(SEEDS)), strict=True):
            made[name, seed] = Audio(take.samples, take.sample_rate)
    return made


def pitch(audio: Audio) -> float:
    """The usual pitch of the louder speech, in octaves."""
    frames = read_frames(audio)
    voiced = (frames.voicing > 0.7) & (frames.level_db > np.median(frames.level_db))
    return float(np.median(np.log2(frames.pitch_hz[voiced])))


def runs_of(words: str, length: int = 3) -> set[tuple[str, ...]]:
    """All runs of so many words."""
    split = "".join(c if c.isalnum() or c == " " else " " for c in words.lower()).split()
    return {tuple(split[at : at + length]) for at in range(len(split) - length + 1)}


def test_the_take_goes_on_and_does_not_repeat_the_prompt(takes: dict, recognise: Any) -> None:
    heard = {key: recognise(take.samples, take.sample_rate) for key, take in takes.items()}
    assert not [words for words in heard.values() if runs_of(words) & runs_of(WORDS)], heard
    nearer = [likeness(words, TEXT) > likeness(words, WORDS) for words in heard.values()]
    assert sum(nearer) >= len(nearer) - 1, heard


def test_the_pitch_is_the_clips(takes: dict, prompts: dict[str, Audio]) -> None:
    own = {name: pitch(clip) for name, clip in prompts.items()}
    assert own["high"] - own["low"] > 0.3, own
    found = {key: pitch(take) for key, take in takes.items()}
    other = {"low": "high", "high": "low"}
    nearer = [abs(said - own[name]) < abs(said - own[other[name]]) for (name, _), said in found.items()]
    assert sum(nearer) >= len(nearer) - 1, (own, found)


def embedding(audio: Audio) -> np.ndarray:
    mean = speakers.embed(audio, speakers.pieces_of(find_speech(read_frames(audio)).regions)).mean(axis=0)
    return mean / np.linalg.norm(mean)


@pytest.mark.skipif(not speakers.available()[0], reason=speakers.PIP_LINE)
def test_the_voice_is_nearer_to_its_clip_than_to_another(takes: dict, prompts: dict[str, Audio]) -> None:
    low, high = embedding(prompts["low"]), embedding(prompts["high"])
    margins = {key: float(embedding(take) @ (low - high)) for key, take in takes.items()}
    towards = [margin if name == "low" else -margin for (name, _), margin in margins.items()]
    assert np.mean(towards) > 0.1, margins  # about 0.37 when this was written

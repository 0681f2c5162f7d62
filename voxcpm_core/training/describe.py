"""Descriptions in brackets for recordings whose voice is known by a few facts, said in many ways."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

_PERSONS = {
    ("F", 0): ("a woman", "a lady", "a female voice", "a female speaker", "woman"),
    ("F", -1): ("a woman with a low voice", "a woman with a deep voice", "an older woman", "a low female voice"),
    ("F", 1): ("a young woman", "a woman with a high voice", "a girl", "a high female voice"),
    ("M", 0): ("a man", "a gentleman", "a male voice", "a male speaker", "man"),
    ("M", -1): ("a man with a low voice", "a man with a deep voice", "an old man", "a deep male voice"),
    ("M", 1): ("a young man", "a man with a high voice", "a boy", "a high male voice"),
}
_CHILD = ("a child", "a small child", "a kid", "a young girl", "a little girl")
_FAST = ("fast", "quickly", "speaking fast", "speaking quickly", "fast speech")
_SLOW = ("slow", "slowly", "speaking slowly", "slow speech")
_UNREMARKABLE = ("normal speed", "calm", "clear voice", "neutral tone")


def describe(voice: Mapping[str, Any], rng: random.Random) -> str:
    """Says a voice: ``sex`` F or M, ``accent``, ``pitch`` and ``tempo`` as factors (1 = as recorded; tempo 1.3 =
    slower). Empty when the sex is not known."""
    sex, accent = voice.get("sex"), voice.get("accent")
    if sex not in ("F", "M"):
        return ""
    pitch, tempo = voice.get("pitch") or 1.0, voice.get("tempo") or 1.0
    parts = [rng.choice(_CHILD if pitch >= 1.25 else _PERSONS[sex, (pitch > 1.05) - (pitch < 0.95)])]
    # The commonest accent is what nobody mentions.
    if accent and rng.random() < (0.2 if accent == "american" else 0.75):
        parts.append(rng.choice((f"{accent} accent", f"with {_article(accent)} {accent} accent")))
    pace = tempo_word(tempo, rng)
    if pace:
        parts.append(pace)
    elif rng.random() < 0.15:
        parts.append(rng.choice(_UNREMARKABLE))
    rng.shuffle(parts)
    return rng.choice((", ", " ")).join(parts)


def tempo_word(tempo: float, rng: random.Random) -> str:
    """Says the pace alone; empty at an ordinary one."""
    return rng.choice(_FAST) if tempo < 0.9 else rng.choice(_SLOW) if tempo > 1.1 else ""


def _article(word: str) -> str:
    return "an" if word[:1].lower() in "aeiou" else "a"

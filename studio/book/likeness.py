"""How much a take sounds like the voice that it is to have: the cosine of two voice embeddings.

Needs the weights that studio/speakers.py describes; without them nothing is compared.
"""

from __future__ import annotations

import logging

import numpy as np

from studio.checks import Check
from studio.clip_measures import read_frames
from studio.files import read_pcm
from studio.speakers import available, embed, pieces_of
from studio.speech_activity import find_speech
from studio.store import Store
from studio.takes import TakeRecord
from voxcpm_core.audio import Audio

logger = logging.getLogger(__name__)

# Takes that continue one anchor lie at 0.75 to 0.95, takes of a small model after a person's clip at 0.6 to 0.7, and
# strangers at 0.4 to 0.65: an absolute bound finds only what is far off. studio/book/verdicts.py compares a take with
# the others of its voice besides.
WARN, FAIL = 0.5, 0.4
SHORTEST_SECONDS = 1.5  # of speech; less says too little about a voice
_KEPT = 64  # voices whose embedding is remembered


class VoiceLikeness:
    """Compares takes with the clips that they were made with. Several threads may ask at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._voices: dict[str, np.ndarray | None] = {}

    def of(self, record: TakeRecord) -> float | None:
        """0..1; None for a take without a clip, when either says too little, or when nothing can compare.

        A comparison that breaks costs the comparison and not the take.
        """
        clip = record.reference_hash or record.prompt_hash
        if not clip or not available()[0]:
            return None
        try:
            if clip not in self._voices:
                if len(self._voices) >= _KEPT:
                    self._voices.clear()
                self._voices[clip] = _embedding(self._store.clips.audio(clip))
            voice, own = self._voices[clip], _embedding(Audio(*read_pcm(self._store.audio_path(record.id))))
        except Exception:
            logger.exception("take %s was not compared with its voice", record.id)
            return None
        return None if voice is None or own is None else round(max(0.0, float(voice @ own)), 3)


def check(likeness: float, warn: float = WARN) -> Check:
    """The line of a check card; below ``warn`` it is amber."""
    verdict = "fail" if likeness < FAIL else "warn" if likeness < warn else "ok"
    said = {
        "ok": "It sounds like its voice.",
        "warn": "It sounds a little unlike its voice: compare it with its neighbours.",
        "fail": "It sounds like another voice. Re-roll it.",
    }
    percent = round(100 * likeness)
    return Check("likeness", f"{percent}%", verdict, said[verdict], {"percent": percent})


def _embedding(audio: Audio) -> np.ndarray | None:
    """The mean voice of a recording, length 1; None for too little speech."""
    speech = find_speech(read_frames(audio))
    pieces = pieces_of(speech.regions)
    if not pieces or speech.seconds < SHORTEST_SECONDS:
        return None
    mean = embed(audio, pieces).mean(axis=0)
    return mean / np.linalg.norm(mean)

"""When is which phone heard? Forced alignment with pocketsphinx, whose English model travels in its wheel.

The first pass finds the words, the second the phones inside them (10 ms steps). A text that is not what was said gives
no alignment: that is a check of the recording, too.
"""

from __future__ import annotations

import numpy as np

from scripts.nano.latents import RATE, Samples
from scripts.nano.phones import Phone

FRAME_MS = 10
Segment = tuple[str, int, bool, int]  # phone or "pau", number of the word or -1, stressed, end in ms


class Aligner:
    """Keeps the acoustic model and the words it has learnt so far; about 1 % of the audio's length per clip."""

    def __init__(self) -> None:
        from pocketsphinx import Decoder

        self._decoder = Decoder(samprate=RATE, lm=None, loglevel="FATAL")
        self._known: dict[str, str] = {}

    def align(self, samples: Samples, words: list[list[Phone]]) -> list[Segment] | None:
        """``samples`` float32 [n] at 16 kHz and the phones of each word -> segments from 0 to the end of the clip.

        None when the words are not found in the sound.
        """
        text = " ".join(self._name(phones) for phones in words)
        pcm = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
        decoder = self._decoder
        decoder.set_align_text(text)
        try:
            self._listen(pcm)
            if decoder.hyp() is None:
                return None
            decoder.set_alignment()
            self._listen(pcm)
        except RuntimeError:  # "Failed to stop utterance processing": the phones do not fit into their words
            return None
        heard = decoder.get_alignment()
        spans = [(entry.name, [(p.start, p.duration) for p in entry]) for entry in heard] if heard else []
        return _segments(spans, words, round(1000 * len(samples) / RATE))

    def _listen(self, pcm: bytes) -> None:
        self._decoder.start_utt()
        self._decoder.process_raw(pcm, full_utt=True)
        self._decoder.end_utt()

    def _name(self, phones: list[Phone]) -> str:
        """A dictionary word that sounds exactly like ``phones``; pocketsphinx knows no schwa apart from AH."""
        sound = " ".join("AH" if name == "ax" else name.upper() for name, _ in phones)
        if sound not in self._known:
            self._known[sound] = f"word{len(self._known)}"
            self._decoder.add_word(self._known[sound], sound, False)  # set_align_text reads the dictionary anew
        return self._known[sound]


def _segments(
    spans: list[tuple[str, list[tuple[int, int]]]], words: list[list[Phone]], end: int
) -> list[Segment] | None:
    """Names pocketsphinx's spans; gaps between words are pauses, and the last one reaches to ``end`` (ms)."""
    out: list[Segment] = []
    at = 0
    for name, parts in spans:
        if not name.startswith("word"):
            continue
        if at >= len(words) or len(parts) != len(words[at]):
            return None
        start = parts[0][0] * FRAME_MS
        if start > (out[-1][3] if out else 0):
            out.append(("pau", -1, False, start))
        for (phone, stressed), (begin, length) in zip(words[at], parts, strict=True):
            out.append((phone, at, stressed, min(end, (begin + length) * FRAME_MS)))
        at += 1
    if at != len(words):
        return None
    if out[-1][3] < end:
        out.append(("pau", -1, False, end))
    return out

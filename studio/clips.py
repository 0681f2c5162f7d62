"""Clips made better: cut at pauses, levelled, without DC or noise; each a new clip beside the untouched original.

A :class:`Clip` remembers what was done to it. The same choices on the same original give the same samples, so a voice
stores its original and its choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from studio.clip_analysis import Analysis, analyse
from studio.clip_faults import cut_ends
from studio.denoise import denoise
from studio.loudness import loudness, match_gain, peak
from studio.speech_activity import Region
from voxcpm_core.audio import GOOD_SECONDS, Audio, check_audio, content_hash

LEVEL_LUFS = -22.0  # what `level` aims at; speech usually peaks 12 to 18 dB above
BEST_SECONDS = 15.0  # enough for a voice, and cheap

_MARGIN = 0.15  # seconds of pause kept on either side of a cut
_FADE = 0.005  # seconds: no click where a cut meets a sound
_CONTINUED = 0.25  # of the score, for a cut in speech that has no pause
_BROKEN = 0.7  # of the score, for keeping a word that the recording cuts off
_WORD_GAP_DB = 18.0  # this far below usual speech, the voice rests


@dataclass(frozen=True)
class Clip:
    """Sound, the content hash of the recording it was made from, and what was done to that, in order."""

    audio: Audio
    original: str
    choices: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, audio: Audio) -> Clip:
        """The original itself."""
        return cls(audio, content_hash(audio))

    def _made(self, audio: Audio, **choice: Any) -> Clip:
        return replace(self, audio=audio, choices=(*self.choices, choice))


def trim(clip: Clip, start: float, end: float) -> Clip:
    """What lies between two moments (seconds), faded for 5 ms at each cut. ``ValueError`` when nothing does.

    The fade goes to the clip's mean, so that a DC offset makes no step.
    """
    audio = clip.audio
    first, last = max(0, round(start * audio.sample_rate)), min(len(audio.samples), round(end * audio.sample_rate))
    if last <= first:
        raise ValueError(f"Nothing lies between {start:g} s and {end:g} s of a clip of {audio.seconds:.1f} s.")
    samples = audio.samples[first:last].copy()
    ramp = np.linspace(0, 1, min(round(_FADE * audio.sample_rate), len(samples) // 2), dtype=np.float32)
    mean = audio.samples.mean()
    if first > 0:
        samples[: len(ramp)] = mean + ramp * (samples[: len(ramp)] - mean)
    if last < len(audio.samples):
        tail = slice(len(samples) - len(ramp), None)
        samples[tail] = mean + ramp[::-1] * (samples[tail] - mean)
    begin, stop = first / audio.sample_rate, last / audio.sample_rate
    return clip._made(Audio(samples, audio.sample_rate), step="trim", start=begin, end=stop)


def level(clip: Clip, target: float = LEVEL_LUFS) -> Clip:
    """One gain that brings the clip to ``target`` LUFS, less where a sample would exceed -1 dBFS; nothing is bent."""
    audio = clip.audio
    gain = match_gain(loudness(audio.samples, audio.sample_rate), peak(audio.samples), target)
    louder = Audio(audio.samples * np.float32(10 ** (gain / 20)), audio.sample_rate)
    return clip._made(louder, step="level", target=target, gain_db=round(gain, 2))


def remove_dc(clip: Clip) -> Clip:
    """The mean of the samples taken away: a constant offset, nothing that is heard."""
    audio = clip.audio
    mean = float(audio.samples.mean(dtype=np.float64))
    return clip._made(Audio(audio.samples - np.float32(mean), audio.sample_rate), step="remove_dc", offset=mean)


def lower_noise(clip: Clip, strength_db: float = 100.0) -> Clip:
    """The clip through the denoiser, see :func:`studio.denoise.denoise`, whose errors it raises."""
    return clip._made(denoise(clip.audio, strength_db), step="denoise", strength_db=strength_db)


def redo(original: Audio, choices: Iterable[Mapping[str, Any]]) -> Clip:
    """Apply stored choices to an original. ``ValueError`` for a step that this version does not know."""
    clip = Clip.of(original)
    for choice in choices:
        if choice["step"] == "trim":
            clip = trim(clip, choice["start"], choice["end"])
        elif choice["step"] == "level":
            clip = level(clip, choice["target"])
        elif choice["step"] == "remove_dc":
            clip = remove_dc(clip)
        elif choice["step"] == "denoise":
            clip = lower_noise(clip, choice["strength_db"])
        else:
            raise ValueError(f"A clip was made with the step {choice['step']!r}, which this version does not know.")
    return clip


def propose_cut(audio: Audio, analysis: Analysis | None = None) -> Region | None:
    """The best 5 to 30 s of a clip, from pause to pause in seconds; None without speech.

    One voice, no word that the recording's own ends cut off, few and short silences, little clipping, about 15 s
    where there is a choice. A clip with less good speech than 5 s gives all of it.
    """
    analysis = analysis or analyse(audio)
    phrases = _phrases(analysis)
    if not phrases:
        return None
    spans = [(first, last) for first in range(len(phrases)) for last in range(first, len(phrases))]
    spans = [span for span in spans if phrases[span[1]].end - phrases[span[0]].start <= GOOD_SECONDS[1]]
    first, last = max(spans, key=lambda span: _score(phrases, *span))
    return phrases[first].start - phrases[first].before, phrases[last].end + phrases[last].after


@dataclass(frozen=True)
class _Phrase:
    """Speech from pause to pause (seconds), what of the pauses to keep, and what speaks against it.

    ``voice`` is -1 when unknown and 2 when both speak. The costs are those of beginning, or ending, a cut here.
    """

    start: float
    end: float
    before: float
    after: float
    voice: int
    clipped: float  # share of its samples
    start_cost: float
    end_cost: float


def _phrases(analysis: Analysis) -> list[_Phrase]:
    regions, total = analysis.activity.regions, analysis.frames.seconds
    ends = [0.0, *(end for _, end in regions)]
    starts = [*(start for start, _ in regions), total]
    cut_start, cut_end = cut_ends(analysis.frames, analysis.activity)
    phrases = []
    for number, (start, end) in enumerate(regions):
        before = (start - ends[number]) / (2 if number else 1)
        after = (starts[number + 1] - end) / (2 if number + 1 < len(regions) else 1)
        edges = _edges(analysis, start, end, cut_start and number == 0, cut_end and number + 1 == len(regions))
        for (begin, start_cost), (stop, end_cost) in zip(edges, edges[1:], strict=False):
            kept = (min(_MARGIN, before) if begin == start else 0.0, min(_MARGIN, after) if stop == end else 0.0)
            about = _voice(analysis, begin, stop), _clipped(analysis, begin, stop)
            phrases.append(_Phrase(begin, stop, *kept, *about, start_cost, end_cost))
    return phrases


def _edges(analysis: Analysis, start: float, end: float, cut_start: bool, cut_end: bool) -> list[tuple[float, float]]:
    """Where a phrase may be cut (seconds) and what each costs: its ends, and soft moments inside where needed.

    Needed they are when it is longer than a clip may be, and near an end at which a word is cut off.
    """
    edges = {start: _BROKEN if cut_start else 0.0, end: _BROKEN if cut_end else 0.0}
    for wanted in np.linspace(start, end, int(np.ceil((end - start) / 10.0)) + 1)[1:-1]:
        if end - start > GOOD_SECONDS[1] - 2 * _MARGIN:
            edges[_softest(analysis, wanted - 2, wanted + 2)[0]] = _CONTINUED
    near = [(start + 0.08, min(start + 1.5, end - 0.3))] * cut_start + [
        (max(end - 1.5, start + 0.3), end - 0.08)
    ] * cut_end
    for first, last in near:
        moment, depth = _softest(analysis, first, last)
        if depth >= _WORD_GAP_DB:
            edges[moment] = 0.0
    return sorted(edges.items())


def _softest(analysis: Analysis, first: float, last: float) -> tuple[float, float]:
    """The softest moment between two, and how far it lies below the usual speech (dB)."""
    frames = analysis.frames
    between = np.flatnonzero((frames.times >= first) & (frames.times < last))
    if not len(between):
        return first, 0.0
    padded = np.pad(frames.level_db, 1, mode="edge")
    level = np.maximum(np.maximum(padded[:-2], padded[1:-1]), padded[2:])  # soft for 60 ms, not only in one frame
    softest = between[np.argmin(level[between])]
    usual = np.median(frames.level_db[frames.inside(analysis.activity.regions)])
    return float(frames.times[softest]), float(usual - level[softest])


def _voice(analysis: Analysis, start: float, end: float) -> int:
    if analysis.speakers is None or analysis.speakers.count < 2:
        return -1
    heard = {who for first, last, who in analysis.speakers.turns if first < end and last > start}
    return heard.pop() if len(heard) == 1 else 2 if heard else -1


def _clipped(analysis: Analysis, start: float, end: float) -> float:
    rate = analysis.audio.sample_rate
    marks = analysis.clipping.marks[round(start * rate) : round(end * rate)]
    return float(marks.mean()) if len(marks) else 0.0


def _score(phrases: list[_Phrase], first: int, last: int) -> float:
    """How good the cut from one phrase to another is; 1 is the best."""
    chosen = phrases[first : last + 1]
    seconds = chosen[-1].end - chosen[0].start
    speech = sum(phrase.end - phrase.start for phrase in chosen)
    voices = {phrase.voice for phrase in chosen} - {-1}
    score = min(seconds / GOOD_SECONDS[0], 1.0) - 0.15 * abs(np.log(seconds / BEST_SECONDS))
    score -= 0.5 * max(0.0, 1 - speech / seconds - 0.25)  # long silences
    score -= min(0.3, 20 * max(phrase.clipped for phrase in chosen))
    score -= 1.5 * (len(voices) > 1 or 2 in voices)
    return float(score - chosen[0].start_cost - chosen[-1].end_cost)


def improve(clip: Clip, analysis: Analysis | None = None) -> Clip:
    """One click: take the offset out, cut to the best seconds, level. What cannot be a clip raises AudioError."""
    check_audio(clip.audio, "clip")
    cut = propose_cut(clip.audio, analysis)
    centred = remove_dc(clip)
    return level(trim(centred, *cut) if cut else centred)

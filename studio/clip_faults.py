"""What recordings suffer from, measured: clipping, a cut-off band, hum, background, cut words, a missing voice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from studio.clip_measures import BIN_HZ, HOP, Frames, decibels
from studio.speech_activity import Activity

_FLAT = 1e-4  # of the peak: samples that differ by less lie on one level
_TOP = 0.98  # of the peak: flat places below are not the ceiling
_CROWDED = 0.022  # share of samples in the top fifth; 27 synthetic and two human voices stay below 0.0146
_GROUP = 20  # bins: the band edge is looked for in steps of 500 Hz
_BLOCK = 1 << 20  # samples looked at at once
_ENOUGH = 4_000_000  # samples for a share; of more, every so many-th
_BAND_DROP_DB = 24.0  # below the hiss of the consonants: nothing there
_FALLEN_DB = 10.0  # below the 2 kHz before: here the fall has begun
_CLIFF_DB = 20.0  # a natural voice fades out more slowly than this in 2 kHz
_RECORDED_RATES = (8_000, 11_025, 16_000, 22_050, 24_000, 32_000)
_HUM_DB = 10.0  # a line stands out this far of the bins around it ...
_HUM_LEVEL_DB = -70.0  # ... and is at least this loud
_AWAY = 0.12  # seconds from speech: echoes have died out
_EDGE = 0.02  # seconds at either end that are loud when a word is cut off
_VOICED = 0.55  # periodicity of a frame with a voice in it


@dataclass(frozen=True)
class Clipping:
    """Share of samples on flat tops; share of a side's samples in its highest fifth; which samples to mark."""

    flat: float
    crowded: float
    marks: np.ndarray  # bool [n]

    @property
    def found(self) -> bool:
        return self.flat >= 3e-4 or self.crowded >= _CROWDED


def find_clipping(samples: np.ndarray) -> Clipping:
    """Flat tops at any level, and, for what a codec or a new rate has rippled since, a crowd below the peak.

    Both sides of the wave are looked at by themselves: a recorder may cut only one.
    """
    flat, ripples = np.zeros((2, len(samples)), bool)
    crowded = 0.0
    for sign in (1, -1):
        peak = float((sign * samples).max(initial=0.0))
        if peak <= 0:
            continue
        for start in range(0, len(samples), _BLOCK):
            side = sign * samples[start : start + _BLOCK + 2]  # two more, so that a run across the border is seen
            top = side >= _TOP * peak
            level = (np.abs(np.diff(side)) <= _FLAT * peak) & top[1:] & top[:-1]
            flat[start + 1 : start + len(side) - 1] |= level[1:] & level[:-1]
        thinned = sign * samples[:: 1 + len(samples) // _ENOUGH]
        thinned = thinned[thinned > 0]
        top = float(np.percentile(thinned, 99.9)) if len(thinned) else peak
        share = float(np.mean(thinned > 0.8 * top)) if len(thinned) else 0.0
        if share >= _CROWDED:
            ripples |= sign * samples >= 0.9 * top
        crowded = max(crowded, share)
    return Clipping(float(flat.mean()) if len(samples) else 0.0, crowded, flat | ripples)


def band_edge(frames: Frames, sample_rate: int) -> tuple[float, int]:
    """Highest frequency with sound in it (Hz), and the rate it was recorded at when that is lower than the file's.

    The second value is 0 for a voice that fades out by itself, and for a band that fills the file. Resampling filters
    fall over a kilohertz or more and mirror what lies below: the edge is where the fall begins.
    """
    loud = np.percentile(frames.spectra, 90, axis=0)
    whole = len(loud) // _GROUP * _GROUP
    levels = decibels(loud[:whole].reshape(-1, _GROUP).sum(axis=1))
    hiss = levels[min(5, len(levels) // 3) :].max()
    last = int(np.flatnonzero(levels >= hiss - _BAND_DROP_DB).max())
    step = BIN_HZ * _GROUP
    above = levels[last + 3 :]
    if not len(above) or levels[max(last - 1, 0)] - above.max() < _CLIFF_DB:
        return min((last + 1) * step, sample_rate / 2), 0
    before = max(last - 5, 0)
    usual = levels[before : max(last - 1, 1)].mean()
    fallen = before + int(np.argmax(levels[before:] <= usual - _FALLEN_DB))
    edge = fallen * step
    likely = min(_RECORDED_RATES, key=lambda rate: abs(np.log(edge / (rate / 2))))
    return (likely / 2, likely) if likely <= 0.75 * sample_rate else (edge, 0)


def find_hum(spectrum: np.ndarray) -> tuple[int, float]:
    """Mains frequency (50, 60 or 0 for none) and level in dB of the lines at its multiples up to the eighth.

    ``spectrum``: from :func:`studio.clip_measures.hum_spectrum`, 2 Hz per bin. Two lines at least, one of them among
    the first three, and more of this mains frequency than of the other.
    """
    found = {mains: _lines(spectrum, mains) for mains in (50, 60)}
    mains = max(found, key=lambda key: sum(found[key].values()))
    lines = found[mains]
    if len(lines) < 2 or min(lines) > 3:
        return 0, -120.0
    return mains, float(decibels(sum(lines.values())))


def _lines(spectrum: np.ndarray, mains: int) -> dict[int, float]:
    lines = {}
    for number in range(1, 9):
        at = number * mains // 2
        if at + 12 > len(spectrum):
            break
        line = float(spectrum[at - 2 : at + 3].sum())
        around = np.concatenate([spectrum[max(at - 11, 0) : at - 4], spectrum[at + 5 : at + 12]])
        if decibels(line) > decibels(5 * float(around.mean())) + _HUM_DB and decibels(line) > _HUM_LEVEL_DB:
            lines[number] = line
    return lines


@dataclass(frozen=True)
class Background:
    """What is heard between words: its level, the speech above it, and how tonal it is (dB; hiss has 8 to 11)."""

    level_db: float
    snr_db: float
    tonality_db: float


def background(frames: Frames, activity: Activity) -> Background:
    """From the pauses, or from the softest twentieth where there are none."""
    speech = frames.inside(activity.regions)
    wide = frames.inside([(start - _AWAY, end + _AWAY) for start, end in activity.regions])
    pauses = ~wide if np.count_nonzero(~wide) * HOP >= 0.15 else frames.level_db <= np.percentile(frames.level_db, 5)
    noise = float(np.mean(10 ** (frames.level_db[pauses] / 10)))
    voice = float(np.mean(10 ** (frames.level_db[speech] / 10))) if speech.any() else 0.0
    snr = decibels(max(voice - noise, 0.0)) - decibels(noise)
    return Background(float(decibels(noise)), float(snr), float(np.median(frames.tonality_db[pauses])))


def cut_ends(frames: Frames, activity: Activity) -> tuple[bool, bool]:
    """Whether the clip begins, and ends, while somebody is speaking."""
    speech = frames.inside(activity.regions)
    if not speech.any():
        return False, False
    usual = float(np.median(frames.level_db[speech]))
    count = max(1, round(_EDGE / HOP))
    loud = max(usual - 15.0, activity.threshold_db)
    return bool(frames.level_db[:count].min() > loud), bool(frames.level_db[-count:].min() > loud)


def voiced_share(frames: Frames, activity: Activity) -> float:
    """How much of the louder half of the speech has a pitch: about 0.8 of normal speech, hardly any of a whisper."""
    speech = frames.inside(activity.regions)
    if not speech.any():
        return 0.0
    loud = speech & (frames.level_db >= np.median(frames.level_db[speech]))
    return float(np.mean(frames.voicing[loud] > _VOICED))

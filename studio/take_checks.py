"""What is wrong with a take, found in its samples: deterministic, numpy only, a few milliseconds per ten seconds.

=============  ===========================================  =====================================================
name           verdicts                                     facts
=============  ===========================================  =====================================================
length         ok                                           seconds, characters, expected
too_long       warn, fail                                   seconds, characters, expected
too_short      warn, fail                                   seconds, characters, expected
ending         ok; warn (cancelled); fail (limit, error)    ended_by
sound          ok; fail (no sound at all)                   level (dBFS)
silence        ok, warn, fail (a pause inside)              seconds, at (where it begins)
clipping       ok, warn, fail                               percent
edges          ok; warn (noise, click or cut-off word)      where ("start" or "end"), what ("noise", "click", "cut")
words          ok, warn, fail (only with a recogniser)      percent (of wrong words or characters), heard
=============  ===========================================  =====================================================

How long a text takes is estimated from its letters, by script. Within two seconds no take is too long, however
short its text is.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import numpy as np

from studio.checks import Check, Verdict

Recogniser = Callable[[np.ndarray, int], str]  # float32 samples [n], sample rate -> the words that are heard

SHORTEST_BUDGET = 2.0  # seconds that every text may take
WORDS_WARN, WORDS_FAIL = 0.15, 0.4  # share of words (characters) that are wrong

_FRAME = 0.02  # seconds per level
_NO_SOUND = 1e-3  # RMS (-60 dBFS) of the loudest frame
_PAUSE = 10 ** (-35 / 20)  # a frame this far below the loudest one is silence
_PAUSE_WARN, _PAUSE_FAIL = 1.5, 4.0  # seconds without sound inside a take
_CLIPPED_WARN, _CLIPPED_FAIL = 1e-4, 1e-3  # share of the samples
_EDGE = 0.04  # seconds at each end that should be near silence
_CUT = 10 ** (-12 / 20)  # an edge this near to the loudest frame is in the middle of a word
_CLICK = 0.2  # a jump from one sample to the next, at full scale 1
_LONELY = 12  # so many times the usual jump, or it is noise
_NOISE = 10 ** (-30 / 20)  # an edge this near to the loudest frame, and without pitch, is noise

# Seconds that one letter takes in calm speech.
_LATIN, _DIGIT, _HAN, _KANA, _HANGUL = 0.07, 0.3, 0.24, 0.15, 0.19


def check_take(
    samples: np.ndarray,
    sample_rate: int,
    *,
    spoken_text: str,
    ended_by: str,
    too_long_for_model: bool = False,
    recognise: Recogniser | None = None,
) -> tuple[Check, ...]:
    """All checks of a take: ``samples`` float [n].

    ``too_long_for_model`` is the model's own retry rule, which counts tokens: it makes the length a "fail". A
    recogniser that fails gives no line.
    """
    checks = [_ending(ended_by), _length(len(samples) / sample_rate, spoken_text, ended_by, too_long_for_model)]
    levels = _levels(samples, sample_rate)
    loudest = float(levels.max()) if len(levels) else 0.0
    checks.append(_sound(loudest))
    if loudest >= _NO_SOUND:
        checks += [_silence(levels, loudest), _clipping(samples), _edges(samples, sample_rate, loudest, ended_by)]
        if recognise is not None:
            checks += _words(recognise, samples, sample_rate, spoken_text)
    return tuple(checks)


def expected_seconds(text: str) -> float:
    """How long calm speech takes for ``text``."""
    return 0.3 + sum(map(_letter_seconds, text))


def _letter_seconds(letter: str) -> float:
    if letter.isdigit():
        return _DIGIT
    code = ord(letter)
    if 0x3400 <= code <= 0x9FFF or code >= 0x20000:
        return _HAN
    if 0x3040 <= code <= 0x30FF:
        return _KANA
    if 0xAC00 <= code <= 0xD7A3:
        return _HANGUL
    return _LATIN


def _length(seconds: float, text: str, ended_by: str, too_long_for_model: bool) -> Check:
    expected = expected_seconds(text)
    facts = {"seconds": round(seconds, 2), "characters": len(text), "expected": round(expected, 1)}
    value = f"{seconds:.1f} s"
    told = f"{seconds:.1f} s for {len(text)} characters, where about {expected:.1f} s would do"
    long = "Too long" if len(text) > 12 else "Too long for this short text"
    if seconds > SHORTEST_BUDGET and (too_long_for_model or seconds > 2.6 * expected + 1.5):
        return Check("too_long", value, "fail", f"{long}: {told}. It may repeat or ramble. Re-roll it.", facts)
    if seconds > SHORTEST_BUDGET and seconds > 1.8 * expected + 1.0:
        return Check("too_long", value, "warn", f"{long}, perhaps: {told}. Listen for repeats and long pauses.", facts)
    if ended_by == "stop" and seconds < 0.3 * expected:
        return Check("too_short", value, "fail", f"Too short: {told}. Words are missing. Re-roll it.", facts)
    if ended_by == "stop" and seconds < 0.5 * expected:
        return Check("too_short", value, "warn", f"Short: {told}. Listen for missing words.", facts)
    return Check("length", value, "ok", "The length fits the text.", facts)


_ENDINGS: dict[str, tuple[Verdict, str]] = {
    "stop": ("ok", "The model said by itself that it was done."),
    "cancelled": ("warn", "Stopped on request: the text is not spoken to its end."),
    "limit": ("fail", "Ended at its length limit: it may run on, repeat itself or miss its end. Re-roll it."),
    "error": ("fail", "The model failed on the way: the text is not spoken to its end. Make it again."),
}


def _ending(ended_by: str) -> Check:
    verdict, advice = _ENDINGS[ended_by]
    return Check("ending", ended_by, verdict, advice, {"ended_by": ended_by})


def _sound(loudest: float) -> Check:
    level = _db(loudest)
    facts, value = {"level": round(level)}, f"{level:.0f} dB"
    if loudest < _NO_SOUND:
        return Check("sound", value, "fail", "There is next to no sound in it. Re-roll it.", facts)
    return Check("sound", value, "ok", "There is sound in it.", facts)


def _levels(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    """RMS of each 20 ms, a shorter last one left out unless it is all there is; float [frames]."""
    frame = max(1, round(_FRAME * sample_rate))
    whole = len(samples) // frame * frame
    frames = samples[:whole].reshape(-1, frame) if whole else samples[None, : len(samples)]
    return np.sqrt(np.mean(np.square(frames), axis=1)) if frames.size else np.zeros(0)


def _silence(levels: np.ndarray, loudest: float) -> Check:
    """The longest pause between the first and the last sound."""
    sounding = np.flatnonzero(levels > loudest * _PAUSE)
    gaps = np.diff(sounding)
    longest = int(gaps.max()) - 1 if len(gaps) else 0
    seconds = longest * _FRAME
    at = float(sounding[int(gaps.argmax())] + 1) * _FRAME if longest else 0.0
    verdict = _grade(seconds, _PAUSE_WARN, _PAUSE_FAIL)
    said = {
        "ok": "No long pause in it.",
        "warn": f"A pause of {seconds:.1f} s at {at:.1f} s: listen whether it belongs there.",
        "fail": f"{seconds:.1f} s of silence at {at:.1f} s: something is missing. Re-roll it.",
    }
    return Check(
        "silence", f"{seconds:.1f} s", verdict, said[verdict], {"seconds": round(seconds, 2), "at": round(at, 2)}
    )


def _clipping(samples: np.ndarray) -> Check:
    """Samples that 16 bits cannot hold, or that stay at full scale for three in a row."""
    size = np.abs(samples)
    flat = (size[:-1] >= 0.985) & (np.abs(np.diff(samples)) <= 1e-4)
    cut = int(np.count_nonzero(size > 1.0)) + int(np.count_nonzero(flat[1:] & flat[:-1]))
    share = min(1.0, cut / len(samples))
    verdict = _grade(share, _CLIPPED_WARN, _CLIPPED_FAIL)
    said = {
        "ok": "No clipping.",
        "warn": "A few samples are cut off at full scale: listen for crackle.",
        "fail": f"{share:.1%} of it is cut off at full scale and sounds harsh. Re-roll it, or lower cfg_value.",
    }
    return Check("clipping", f"{share:.2%}", verdict, said[verdict], {"percent": round(100 * share, 3)})


def _edges(samples: np.ndarray, sample_rate: int, loudest: float, ended_by: str) -> Check:
    size = max(2, round(_EDGE * sample_rate))
    found = [("start", _edge_fault(samples[:size], loudest))]
    if ended_by == "stop":  # what was broken off ends anywhere
        found.append(("end", _edge_fault(samples[-size:][::-1], loudest)))
    faults = [(where, what) for where, what in found if what]
    if not faults:
        return Check("edges", "clean", "ok", "It begins and ends in silence.", {"where": "", "what": ""})
    where, what = faults[0]
    said = {
        "click": f"A click at the {where}: listen, and trim it or re-roll.",
        "cut": f"Sound to the very {where}: a word may be cut off.",
        "noise": f"Noise at the {where}: listen, and trim it or re-roll.",
    }
    return Check("edges", f"{what}, {where}", "warn", said[what], {"where": where, "what": what})


def _edge_fault(edge: np.ndarray, loudest: float) -> str:
    """What is wrong with the first 40 ms (of a take, or of a take turned round); "" for nothing."""
    level = float(np.sqrt(np.mean(np.square(edge))))
    jumps = np.abs(np.diff(edge, prepend=0.0))
    if jumps.max() > max(_CLICK, _LONELY * float(np.median(jumps))):
        return "click"
    if level > loudest * _NOISE and _flatness(edge) > 0.3:
        return "noise"
    first = edge[: max(2, len(edge) // 8)]
    return "cut" if float(np.sqrt(np.mean(np.square(first)))) > loudest * _CUT else ""


def _flatness(piece: np.ndarray) -> float:
    """1 for white noise, near 0 for a tone: geometric over arithmetic mean of the spectrum."""
    power = np.abs(np.fft.rfft(piece * np.hanning(len(piece)))[1:]) ** 2 + 1e-12
    return float(np.exp(np.mean(np.log(power))) / np.mean(power))


# ------------------------------------------------------------------------------------------------- words


def _words(recognise: Recogniser, samples: np.ndarray, sample_rate: int, text: str) -> list[Check]:
    heard = recognise(samples, sample_rate)
    share, unit = error_rate(text, heard)
    verdict = _grade(share, WORDS_WARN, WORDS_FAIL)
    said = {
        "ok": "The recogniser hears the text.",
        "warn": f"The recogniser hears {share:.0%} of the {unit} differently: listen to it.",
        "fail": f"The recogniser hears something else ({share:.0%} of the {unit} are wrong). Re-roll it.",
    }
    facts = {"percent": round(100 * share), "heard": heard}
    return [Check("words", f"{share:.0%}", verdict, said[verdict], facts)]


def error_rate(text: str, heard: str) -> tuple[float, str]:
    """Edits over length: of words (WER), or of characters (CER) for scripts that do not part words with blanks.

    Returns (rate, "words" or "characters"). Case, punctuation and widths do not count.
    """
    wanted, found = _plain(text), _plain(heard)
    unspaced = sum(_letter_seconds(c) in (_HAN, _KANA, _HANGUL) for c in wanted)
    if 2 * unspaced > len(wanted.replace(" ", "")):
        target, got, unit = list(wanted.replace(" ", "")), list(found.replace(" ", "")), "characters"
    else:
        target, got, unit = wanted.split(), found.split(), "words"
    if not target:
        return float(bool(got)), unit
    return _edits(target, got) / len(target), unit


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold().replace("'", "").replace("’", "")
    return " ".join("".join(c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in text).split())


def _edits(target: list[str], got: list[str]) -> int:
    """Levenshtein distance, one row of the table at a time."""
    numbers = {word: number for number, word in enumerate(dict.fromkeys([*target, *got]))}
    columns = np.array([numbers[word] for word in got], dtype=np.int64)
    steps = np.arange(len(got) + 1)
    row = steps.copy()
    for count, word in enumerate(target, 1):
        best = np.minimum(row[1:] + 1, row[:-1] + (columns != numbers[word]))
        # insertions run along the row: the least of what is to the left, plus the way from there
        row = np.minimum.accumulate(np.concatenate([[count], best]) - steps) + steps
    return int(row[-1])


def _grade(value: float, warn: float, fail: float) -> Verdict:
    if value >= fail:
        return "fail"
    return "warn" if value >= warn else "ok"


def _db(level: float) -> float:
    return 20 * float(np.log10(max(level, 1e-5)))

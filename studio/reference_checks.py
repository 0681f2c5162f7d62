"""The check card of a clip: can a voice be cloned from it, and if not, what to do. Everything in it is measured.

Each line is a :class:`studio.checks.Check`. A name and a verdict together always have the same sentence, so a page
can translate them; ``facts`` hold the numbers. The names, in order: usable (alone, when the clip is refused), length,
speech, loudness, clipping, noise, hum, background, bandwidth, offset, voicing, speakers (or
speakers_unknown, without the encoder), start, end, transcript, words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from studio.checks import Check, Verdict, worst
from studio.clip_analysis import Analysis, analyse
from studio.clip_faults import background, band_edge, cut_ends, find_hum, voiced_share
from studio.clip_measures import hum_spectrum
from studio.clips import propose_cut
from studio.languages import estimate_seconds
from studio.loudness import loudness
from studio.speakers import PIP_LINE as SPEAKERS_PIP_LINE
from studio.speakers import available as speakers_available
from studio.speech_activity import Region
from studio.transcripts import IMPOSSIBLE, UNLIKELY, Transcript, likeness, spoken_seconds, text_ratio
from voxcpm_core.audio import GOOD_SECONDS, Audio, check_audio
from voxcpm_core.errors import AudioError

Recognise = Callable[[Audio], Transcript]

LEAST_SPEECH = 1.0  # seconds: with less there is no voice to take
GOOD_SPEECH = 4.0
GOOD_LUFS = (-32.0, -13.0)
GOOD_SNR, LEAST_SNR = 20.0, 6.0  # dB
CLIPPED_BADLY = 0.01  # share of samples on flat tops
MUSIC_DB = 25.0  # tonality of a background that is more than hiss
MUSIC_LEVEL = -60.0  # dB below full scale; softer tones are no matter
MUSIC_SNR = 40.0  # dB; nor is what lies this far below the voice
TELEPHONE_HZ = 5000.0
OFFSET = 0.004  # of full scale
WHISPER = 0.3  # voiced share of the louder speech; normal speech has more than 0.85
SAME_WORDS = (0.4, 0.75)  # likeness of a transcript to what is heard


@dataclass(frozen=True)
class ReferenceReport:
    """The lines of the card, and what its picture shows. ``analysis`` is None for a clip that is refused."""

    checks: tuple[Check, ...]
    analysis: Analysis | None = None
    heard: Transcript | None = None  # what the recogniser heard, when it was asked

    @property
    def verdict(self) -> Verdict:
        return worst(self.checks)

    @cached_property
    def cut(self) -> Region | None:
        """The best 5 to 30 s (start, end in seconds); None when there is no speech."""
        return propose_cut(self.analysis.audio, self.analysis) if self.analysis else None

    def named(self, name: str) -> Check | None:
        return next((check for check in self.checks if check.name == name), None)

    def as_list(self) -> list[dict[str, Any]]:
        """JSON-able: name, value, verdict, advice and facts of every line."""
        return [check.as_dict() for check in self.checks]


def check_reference(audio: Audio, transcript: str = "", *, recognise: Recognise | None = None) -> ReferenceReport:
    """Look at a clip, and at the transcript that is said to belong to it. Never raises for a bad clip.

    ``recognise`` (see :func:`studio.transcription.transcribe`) compares the transcript's words with what is heard; it
    is asked only when there is a transcript, and its own errors are passed on.
    """
    try:
        check_audio(audio, "clip")
    except AudioError as error:
        return ReferenceReport((Check("usable", "no", "fail", str(error), {"reason": str(error)}),))
    analysis = analyse(audio)
    heard = recognise(audio) if recognise and transcript.strip() and analysis.activity.regions else None
    return ReferenceReport(tuple(_lines(analysis, transcript.strip(), heard)), analysis, heard)


def _lines(analysis: Analysis, transcript: str, heard: Transcript | None) -> Iterator[Check]:
    yield _length(analysis)
    yield _speech(analysis)
    if not analysis.activity.regions:
        return
    yield _loudness(analysis)
    yield _clipping(analysis)
    yield from _noise(analysis)
    yield _bandwidth(analysis)
    yield _offset(analysis)
    yield _voicing(analysis)
    yield _speakers(analysis)
    yield from _ends(analysis)
    yield _transcript(analysis, transcript)
    if heard is not None:
        yield words_check(transcript, heard.text)


def _length(analysis: Analysis) -> Check:
    seconds = analysis.audio.seconds
    good = GOOD_SECONDS[0] <= seconds <= GOOD_SECONDS[1]
    advice = "" if good else "5 to 30 s of one speaker are best: record more, or cut out the best part."
    return Check("length", _seconds(seconds), "ok" if good else "warn", advice, {"seconds": round(seconds, 2)})


def _speech(analysis: Analysis) -> Check:
    speech, seconds = analysis.activity.seconds, analysis.audio.seconds
    facts = {"speech": round(speech, 2), "share": round(speech / seconds, 2), "least": LEAST_SPEECH}
    value = f"{_seconds(speech)} ({speech / seconds:.0%})"
    if speech < LEAST_SPEECH:
        return Check("speech", value, "fail", "There is hardly any speech in the clip: choose another one.", facts)
    if speech < min(GOOD_SPEECH, 0.9 * seconds) or speech < 0.4 * seconds:
        return Check(
            "speech", value, "warn", "There is little speech in the clip: cut silence away or record more.", facts
        )
    return Check("speech", value, "ok", "", facts)


def _loudness(analysis: Analysis) -> Check:
    lufs = loudness(analysis.audio.samples, analysis.audio.sample_rate)
    lufs = -70.0 if lufs is None else lufs
    good = GOOD_LUFS[0] <= lufs <= GOOD_LUFS[1]
    advice = "" if good else "The level is far from usual: press Level, which changes nothing else."
    return Check("loudness", f"{lufs:.1f} LUFS", "ok" if good else "warn", advice, {"lufs": round(lufs, 1)})


def _clipping(analysis: Analysis) -> Check:
    clipping = analysis.clipping
    share = max(clipping.flat, float(clipping.marks.mean()) if clipping.found else 0.0)
    facts = {"share": round(share, 5), "percent": round(100 * share, 2)}
    if not clipping.found:
        return Check("clipping", "none", "ok", "", facts)
    if share >= CLIPPED_BADLY:
        advice = "The recording is badly clipped and the voice will sound harsh: record it again with less gain."
        return Check("clipping", f"{share:.1%}", "fail", advice, facts)
    return Check(
        "clipping", f"{share:.2%}", "warn", "Peaks are cut off: record again with less gain if you can.", facts
    )


def _noise(analysis: Analysis) -> Iterator[Check]:
    """Noise, hum and tones: three looks at what is heard between the words."""
    found = background(analysis.frames, analysis.activity)
    facts = {"snr": round(found.snr_db, 1), "floor": round(found.level_db, 1)}
    value = f"{found.snr_db:.0f} dB above {found.level_db:.0f} dB" if found.level_db > -100 else "silent background"
    if found.snr_db < LEAST_SNR:
        yield Check("noise", value, "fail", "The noise is nearly as loud as the voice: choose another clip.", facts)
    elif found.snr_db < GOOD_SNR:
        yield Check("noise", value, "warn", "The clip is noisy: try Denoise, or record in a quieter room.", facts)
    else:
        yield Check("noise", value, "ok", "", facts)
    mains, level = find_hum(hum_spectrum(analysis.audio))
    if mains:
        advice = f"Mains hum of {mains} Hz: try Denoise, or record away from chargers and lamps."
        yield Check("hum", f"{mains} Hz, {level:.0f} dB", "warn", advice, {"hertz": mains, "level": round(level, 1)})
    else:
        yield Check("hum", "none", "ok")
    tones = found.tonality_db > MUSIC_DB and found.level_db > MUSIC_LEVEL and found.snr_db < MUSIC_SNR and not mains
    facts = {"tonality": round(found.tonality_db, 1)}
    if tones:
        advice = (
            "There is music, or another sound with tones, behind the voice and it will be cloned: use a clip without."
        )
        yield Check("background", "tones", "warn", advice, facts)
    else:
        yield Check("background", "no tones", "ok", "", facts)


def _bandwidth(analysis: Analysis) -> Check:
    rate = analysis.audio.sample_rate
    edge, recorded = band_edge(analysis.frames, rate)
    facts = {"khz": round(edge / 1000, 1), "rate": rate, "recorded": recorded}
    value = f"up to {edge / 1000:.1f} kHz"
    narrow = 0 < recorded < 22_050
    if narrow:
        value = f"{value}: a {recorded / 1000:g} kHz recording in a {rate / 1000:g} kHz file"
    if narrow or edge < TELEPHONE_HZ:
        advice = (
            f"Nothing lies above {edge / 1000:.1f} kHz: the voice will be dull. Use the original recording if you can."
        )
        return Check("bandwidth", value, "warn", advice, facts)
    return Check("bandwidth", value, "ok", "", facts)


def _offset(analysis: Analysis) -> Check:
    offset = float(analysis.audio.samples.mean(dtype=float))
    bad = abs(offset) >= OFFSET
    advice = "The wave is not centred (DC offset): press Level, which also takes the offset out." if bad else ""
    return Check(
        "offset", f"{offset:+.1%}" if bad else "none", "warn" if bad else "ok", advice, {"offset": round(offset, 4)}
    )


def _voicing(analysis: Analysis) -> Check:
    share = voiced_share(analysis.frames, analysis.activity)
    bad = share < WHISPER
    advice = "This is a whisper, or no voice at all: the clone will whisper too. Use normal speech." if bad else ""
    return Check("voicing", f"{share:.0%} voiced", "warn" if bad else "ok", advice, {"share": round(share, 2)})


def _speakers(analysis: Analysis) -> Check:
    found = analysis.speakers
    if found is None and speakers_available()[0]:
        return Check("speakers", "not measured", "ok", "", {"measured": False})  # too little speech to compare
    if found is None:
        advice = f"The number of speakers is measured after: {SPEAKERS_PIP_LINE}"
        return Check("speakers_unknown", "not measured", "ok", advice, {"pip": SPEAKERS_PIP_LINE, "measured": False})
    facts = {"count": found.count, "similarity": round(found.similarity, 2), "measured": True}
    if found.count > 1:
        advice = "More than one voice speaks: cut out one speaker, or the clone will be a mixture."
        return Check("speakers", "2 or more", "warn", advice, facts)
    return Check("speakers", "1", "ok", "", facts)


def _ends(analysis: Analysis) -> Iterator[Check]:
    for name, cut in zip(("start", "end"), cut_ends(analysis.frames, analysis.activity), strict=True):
        advice = f"The clip {name}s inside a word: cut it at a pause." if cut else ""
        yield Check(name, "inside a word" if cut else "at a pause", "warn" if cut else "ok", advice)


def _transcript(analysis: Analysis, transcript: str) -> Check:
    if not transcript:
        return Check("transcript", "none", "ok")
    seconds = spoken_seconds(analysis.activity.regions)
    ratio, estimate = text_ratio(transcript, seconds), estimate_seconds(transcript)
    letters = sum(char.isalnum() for char in transcript)
    facts = {"estimate": round(estimate, 1), "speech": round(seconds, 1), "per_second": round(letters / seconds, 1)}
    value = f"{letters / seconds:.1f} characters per second"
    if not IMPOSSIBLE[0] <= ratio <= IMPOSSIBLE[1]:
        advice = (
            "This text cannot be what is said in the clip: write the words of this clip, all of them and no others."
        )
        return Check("transcript", value, "fail", advice, facts)
    if not UNLIKELY[0] <= ratio <= UNLIKELY[1]:
        advice = "The text is unusually long or short for the clip: compare it with what is said."
        return Check("transcript", value, "warn", advice, facts)
    return Check("transcript", value, "ok", "", facts)


def words_check(transcript: str, heard: str) -> Check:
    """The line that compares a transcript with what the recogniser heard."""
    alike = likeness(transcript, heard)
    facts = {"likeness": round(alike, 2), "heard": heard}
    value = f"{alike:.0%} as heard"
    if alike < SAME_WORDS[0]:
        advice = "The recogniser hears other words in the clip: the transcript belongs to another one."
        return Check("words", value, "fail", advice, facts)
    if alike < SAME_WORDS[1]:
        return Check("words", value, "warn", "The recogniser hears some other words: check the transcript.", facts)
    return Check("words", value, "ok", "", facts)


def _seconds(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d} min" if seconds >= 120 else f"{seconds:.1f} s"

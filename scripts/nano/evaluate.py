"""How well does a small checkpoint speak? One table of figures.

    python -m scripts.nano.evaluate [--model assets/nano] [--voices FOLDER] [--short] [--json FILE] [--wavs FOLDER]

FOLDER holds reference clips of voices the model has never heard, one folder per voice with 0.wav, 0.txt, 1.wav ...
(``python -m scripts.nano.corpus --voices CORPUS FOLDER`` makes them). Sentences: scripts/nano/sentences.txt, none of
them in the training text. Measures whose package is missing say what to install. ``--short``: eight sentences, one
seed, words only.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from time import perf_counter

import numpy as np

from scripts.nano import measures
from scripts.nano.measures import Likeness, Recogniser, Samples
from voxcpm_core import SpeechRequest, VoxCPM
from voxcpm_core.audio import load_audio, write_wav

HERE = Path(__file__).resolve().parent
NANO = HERE.parents[1] / "assets" / "nano"
SENTENCES = [line for line in (HERE / "sentences.txt").read_text(encoding="utf-8").splitlines() if line]
SHORT_SET = [0, 17, 20, 23, 27, 33, 40, 50]  # of all lengths
ROWS = 8
LOWER, SLOWER = "lower", "slower"
CONTRASTS = (  # the first description against the second, with the same sentence and seed
    ("a man with a low voice", "a young woman with a high voice", LOWER),
    ("a man", "a woman", LOWER),
    ("a woman with a low voice", "a woman with a high voice", LOWER),
    ("a woman, speaking slowly", "a woman, speaking fast", SLOWER),
)
DESIGN_SENTENCES = SENTENCES[24:34]
CLONED = SENTENCES[20:22]
CONTINUED = SENTENCES[15:19]

Figures = dict[str, float | str]


@dataclass(frozen=True)
class Spoken:
    """One take with what was asked for."""

    text: str
    samples: Samples
    rate: int
    ended_by: str

    @property
    def is_empty(self) -> bool:
        start, end = measures.speech_span(self.samples, self.rate)
        return end - start < 0.1


def speak(model: VoxCPM, requests: list[SpeechRequest]) -> list[Spoken]:
    """All requests, a few side by side."""
    takes = []
    for start in range(0, len(requests), ROWS):
        takes += model.generate_batch(requests[start : start + ROWS])
    return [Spoken(r.text, t.samples, t.sample_rate, t.ended_by) for r, t in zip(requests, takes, strict=True)]


def words(takes: list[Spoken], recognise: Recogniser, seeds: Sequence[int]) -> tuple[Figures, list[str]]:
    """Word errors over takes ordered by seed, runaways, silent takes; and what was heard."""
    heard = [recognise(take.samples, take.rate) for take in takes]
    errors = [measures.word_errors(take.text, text) for take, text in zip(takes, heard, strict=True)]
    size = len(takes) // len(seeds)
    by_seed = [_share(errors[k : k + size]) for k in range(0, len(errors), size)]
    short = [pair for pair in errors if pair[1] <= 4]
    figures: Figures = {
        "word errors, median of seeds, %": median(by_seed),
        "  of each seed, %": " ".join(f"{value:.1f}" for value in by_seed),
        "  texts of 1 to 4 words, %": _share(short) if short else "none",
        "  longer texts, %": _share([pair for pair in errors if pair[1] > 4]),
        "takes that did not stop": sum(take.ended_by == "limit" for take in takes),
        "takes without speech": sum(take.is_empty for take in takes),
        "takes in all": len(takes),
    }
    lines = [f"{e}/{n}  {take.text}  |  {text}" for take, text, (e, n) in zip(takes, heard, errors, strict=True)]
    return figures, lines


def sound(takes: list[Spoken], patch_seconds: float) -> Figures:
    """What the signal itself says, and DNSMOS where it is installed."""
    clicks = [measures.border_clicks(take.samples, take.rate, patch_seconds) for take in takes]
    tails = [measures.tail_seconds(take.samples, take.rate) for take in takes]
    scores = [measures.quality(t.samples, t.rate) for t in takes if len(t.samples) > 2 * t.rate]
    rated = [score for score in scores if score is not None]
    return {
        "kinks at patch borders against elsewhere (1 = none), median": median(clicks),
        "last sound to end, median, s": median(tails),
        "last sound to end, longest of 20, s": float(np.percentile(tails, 95)),
        "DNSMOS, mean of takes over 2 s": mean(rated) if rated else f"not measured: {measures.MISSING['quality']}",
    }


def design(model: VoxCPM) -> Figures:
    """Forty pairs of descriptions: does pitch or pace move the right way?"""
    pairs = [(one, other, what, text) for one, other, what in CONTRASTS for text in DESIGN_SENTENCES]
    requests = [
        SpeechRequest(text, control=control, seed=number)
        for number, (one, other, _, text) in enumerate(pairs)
        for control in (one, other)
    ]
    takes = speak(model, requests)
    right: dict[str, list[bool]] = {}
    for number, (one, other, what, _) in enumerate(pairs):
        a, b = (_pitch_or_pace(take, what) for take in takes[2 * number : 2 * number + 2])
        right.setdefault(f"  {one} {what} than {other}, %", []).append(bool(0 < a < b))
    shares: Figures = {name: 100 * mean(hits) for name, hits in right.items()}
    every = [hit for hits in right.values() for hit in hits]
    men = [measures.median_f0(take.samples, take.rate) for take in takes[: 2 * len(DESIGN_SENTENCES) : 2]]
    return {
        f"descriptions that move pitch or pace the right way ({len(every)} pairs), %": 100 * mean(every),
        **shares,
        f"  {CONTRASTS[0][0]}: median pitch, Hz": median(men),
        "  British accent": "not measured: no accent classifier that works offline",
    }


def _pitch_or_pace(take: Spoken, what: str) -> float:
    if what == LOWER:
        return measures.median_f0(take.samples, take.rate)
    return measures.pace(take.text, take.samples, take.rate)


def read_voices(folder: Path) -> dict[str, list[tuple[Path, str]]]:
    """Voice -> (clip, its words); needs at least two clips each."""
    voices = {}
    for one in sorted(path for path in folder.iterdir() if path.is_dir()):
        clips = [(wav, wav.with_suffix(".txt").read_text().strip()) for wav in sorted(one.glob("*.wav"))]
        if len(clips) >= 2:
            voices[one.name] = clips
    return voices


def cloning(model: VoxCPM, folder: Path | None, likeness: Likeness) -> Figures:
    """Two references of each unheard voice, two sentences; compared with the clips that were not the reference."""
    if folder is None or not folder.is_dir():
        return {"cloning": "not measured: give --voices FOLDER (python -m scripts.nano.corpus --voices makes it)"}
    if not likeness.available:
        return {"cloning": f"not measured: {measures.MISSING['likeness']}"}
    voices = read_voices(folder)
    asked = [
        (name, SpeechRequest(text, reference_wav_path=clip, seed=number))
        for name, clips in voices.items()
        for number, (clip, _) in enumerate(clips[:2])
        for text in CLONED
    ]
    takes = speak(model, [request for _, request in asked])
    compared: dict[str, tuple[list[Samples], list[Samples]]] = {}
    semitones = []
    for name, clips in voices.items():
        # with only two clips there is no third to compare with
        originals = [load_audio(clip) for clip, _ in (clips[2:] or clips)]
        copies = [take for (voice, _), take in zip(asked, takes, strict=True) if voice == name]
        sounds = (measures.at_16k(clip.samples, clip.sample_rate) for clip in originals)
        compared[name] = list(sounds), [measures.at_16k(take.samples, take.rate) for take in copies]
        own = median(measures.median_f0(clip.samples, clip.sample_rate) for clip in originals)
        semitones += [12 * abs(np.log2(max(1.0, measures.median_f0(t.samples, t.rate)) / own)) for t in copies]
    return {
        f"cloning of {len(voices)} unheard voices, takes": len(takes),
        **{f"  {name}": value for name, value in likeness.matrix(compared).items()},
        "  pitch off, median, semitones": float(median(semitones)),
    }


def continuation(model: VoxCPM, folder: Path | None, recognise: Recogniser) -> Figures:
    """Goes on after a clip and its words: are the new words said, and the old ones not said again?"""
    if folder is None or not folder.is_dir():
        return {"continuation": "not measured: give --voices FOLDER"}
    asked = [
        SpeechRequest(text, prompt_wav_path=clips[number][0], prompt_text=clips[number][1], seed=number)
        for clips in read_voices(folder).values()
        for number, text in enumerate(CONTINUED[: len(clips)])
    ]
    heard = [
        (request, recognise(take.samples, take.rate)) for request, take in zip(asked, speak(model, asked), strict=True)
    ]
    again = [repeats(request.prompt_text or "", request.text, text) for request, text in heard]
    return {
        "continuation: word errors, %": _share([measures.word_errors(r.text, text) for r, text in heard]),
        "  takes that say the prompt again": f"{sum(again)} of {len(again)}",
    }


def repeats(prompt: str, text: str, heard: str) -> bool:
    """Whether at least half of the prompt's own words, those not in ``text``, are heard."""
    own = set(measures.plain_words(prompt)) - set(measures.plain_words(text))
    return bool(own) and len(own & set(measures.plain_words(heard))) >= len(own) / 2


def speed(model: VoxCPM) -> Figures:
    """One take alone, and three takes of one text in one batch."""
    request = SpeechRequest(SENTENCES[40], seed=0)
    one = model.generate_takes(request)[0]  # warm
    start = perf_counter()
    one = model.generate_takes(request)[0]
    alone = perf_counter() - start
    start = perf_counter()
    model.generate_takes(request, n=3)
    return {
        "seconds of computing per second of sound, one take": alone / one.seconds,
        "first sound after, s": one.first_audio_seconds or float("nan"),
        "three takes against one, times as long": (perf_counter() - start) / alone,
    }


def short(model: VoxCPM, recognise: Recogniser) -> tuple[Figures, list[str]]:
    """Eight sentences, one seed."""
    takes = speak(model, [SpeechRequest(SENTENCES[k], seed=0) for k in SHORT_SET])
    return words(takes, recognise, [0])


def everything(
    model: VoxCPM, seeds: Sequence[int], voices: Path | None, wavs: Path | None, say: Callable[[str], None]
) -> Figures:
    """All figures, told section by section as they come."""
    recognise, likeness, figures = Recogniser(), Likeness(), {}

    def add(new: Figures) -> None:
        figures.update(new)
        for name, value in new.items():
            say(row(name, value))

    takes = speak(model, [SpeechRequest(text, seed=seed) for seed in seeds for text in SENTENCES])
    if recognise.available:
        found, lines = words(takes, recognise, seeds)
        add(found)
        if wavs is not None:
            keep(takes, lines, wavs)
    else:
        add({"words": f"not measured: {measures.MISSING['words']}"})
    add(sound(takes[: len(SENTENCES)], model.patch_seconds))
    add(design(model))
    add(cloning(model, voices, likeness))
    if recognise.available:
        add(continuation(model, voices, recognise))
    add(speed(model))
    return figures


def keep(takes: list[Spoken], lines: list[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, take in enumerate(takes):
        write_wav(folder / f"{number:03d}.wav", take.samples, take.rate)
    (folder / "heard.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def row(name: str, value: float | str) -> str:
    return f"| {name} | {f'{value:.2f}' if isinstance(value, float) else value} |"


def _share(errors: list[tuple[int, int]]) -> float:
    return 100 * sum(e for e, _ in errors) / max(1, sum(n for _, n in errors))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=NANO, help="checkpoint folder")
    parser.add_argument("--voices", type=Path, help="reference clips of unheard voices")
    parser.add_argument("--seeds", type=int, default=3, help="takes of each sentence")
    parser.add_argument("--short", action="store_true", help="eight sentences, one seed")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--wavs", type=Path, help="also write the takes and what was heard there")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    with VoxCPM.from_pretrained(given.model, device=given.device) as model:
        print(f"| {given.model.name}: {model.weights_hash}, {model.defaults} | |\n|---|---|")
        if given.short:
            recognise = Recogniser()
            if not recognise.available:
                raise SystemExit(f"Words are not measured: {measures.MISSING['words']}")
            figures, lines = short(model, recognise)
            print("\n".join([*(row(*pair) for pair in figures.items()), "", *lines]))
        else:
            figures = everything(
                model, range(given.seeds), given.voices, given.wavs, lambda line: print(line, flush=True)
            )
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1, default=float))


if __name__ == "__main__":
    main()

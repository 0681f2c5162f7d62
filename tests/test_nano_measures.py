"""The measures of scripts.nano.evaluate on signals whose answer is known."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from scripts.nano import evaluate, measures
from scripts.nano.evaluate import SENTENCES, SHORT_SET, repeats
from scripts.nano.latents import PATCH, RATE
from voxcpm_core.audio import write_wav


def tone(pitch: float, seconds: float) -> np.ndarray:
    t = np.arange(round(seconds * RATE)) / RATE
    return sum(0.2 / k * np.sin(2 * np.pi * pitch * k * t) for k in range(1, 11)).astype("float32")


@pytest.mark.parametrize(("pitch", "rate"), [(110, 16000), (210, 16000), (210, 48000)])
def test_median_pitch(pitch, rate):
    t = np.arange(rate) / rate
    x = sum(0.2 / k * np.sin(2 * np.pi * pitch * k * t) for k in range(1, 11)).astype("float32")
    assert measures.median_f0(x, rate) == pytest.approx(pitch, rel=0.02)


def test_silence_has_no_pitch_no_speech_and_no_pace():
    silence = np.zeros(RATE, "float32")
    assert measures.median_f0(silence, RATE) == 0
    assert measures.speech_span(silence, RATE) == (0, 0)
    assert measures.pace("hello", silence, RATE) == 0
    assert measures.speech_span(silence[:20], RATE) == (0, 0)


def test_span_pace_and_tail_of_a_tone_between_silences():
    x = np.concatenate([np.zeros(RATE // 2), tone(150, 2.0), np.zeros(RATE // 4)]).astype("float32")
    start, end = measures.speech_span(x, RATE)
    assert (start, end) == (pytest.approx(0.5, abs=0.02), pytest.approx(2.5, abs=0.02))
    assert measures.pace("ten letters 5!", x, RATE) == pytest.approx(11 / 2, rel=0.03)
    assert measures.tail_seconds(x, RATE) == pytest.approx(0.25, abs=0.02)


def test_clicks_at_patch_borders_are_seen_and_elsewhere_are_not():
    hiss = np.random.default_rng(0).standard_normal(4 * RATE)
    clean = (0.05 * np.convolve(hiss, np.hanning(9), "same")).astype("float32")  # soft, like a breath
    assert measures.border_clicks(clean, RATE) == pytest.approx(1, abs=0.4)
    broken = clean.copy()
    for border in range(PATCH, len(clean), PATCH):
        broken[border : border + PATCH] += 0.2 if (border // PATCH) % 2 else 0
    assert measures.border_clicks(broken, RATE) > 3
    moved = np.roll(broken, 200)
    assert measures.border_clicks(moved, RATE) < 2


@pytest.mark.parametrize(
    ("said", "heard", "errors"),
    [
        ("The cat sat.", "the cat sat", (0, 3)),
        ("The cat sat.", "the bat sat down", (2, 3)),
        ("Room 14.", "room fourteen", (0, 2)),
        ("9000 books", "nine thousand books", (0, 3)),
        ("300 years", "three hundred years", (0, 3)),
        ("Yes.", "", (1, 1)),
        ("Yes.", "well yes I do think so", (1, 1)),
    ],
)
def test_word_errors(said, heard, errors):
    assert measures.word_errors(said, heard) == errors


def test_a_continuation_that_says_the_prompt_again_is_noticed():
    prompt, text = "The garden was full of roses.", "The kettle is boiling."
    assert repeats(prompt, text, "the garden was full of roses the kettle is boiling")
    assert not repeats(prompt, text, "the kettle is boiling of")


def test_sentences_cover_what_they_should():
    counts = [len(sentence.split()) for sentence in SENTENCES]
    assert len(SENTENCES) == len(set(SENTENCES)) == 60
    assert min(counts) == 1 and 24 <= max(counts) <= 30
    assert sum(count <= 4 for count in counts) >= 12
    assert sum(any(c.isdigit() for c in sentence) for sentence in SENTENCES) >= 6
    assert len(SHORT_SET) == 8 and max(SHORT_SET) < 60


def test_likeness_knows_a_voice_again():
    likeness = measures.Likeness()
    if not likeness.available:
        pytest.skip(f"likeness is not installed: {measures.MISSING['likeness']}")
    low, high = tone(100, 2.0), tone(260, 2.0)
    figures = likeness.matrix({"low": ([low], [low * 0.3]), "high": ([high], [high * 0.3])})
    assert figures["likeness to the own reference"] == pytest.approx(1, abs=0.01)
    assert figures["likeness to the others"] < 0.98
    assert figures["nearest is the own, %"] == 100


class ToneModel:
    """Obeys descriptions: men at 110 Hz, women at 220, low and high a third away, slow twice as long as fast."""

    patch_seconds = 0.08

    def generate_batch(self, requests):
        return [self.take(request) for request in requests]

    def generate_takes(self, request, n=1):
        return [self.take(request)] * n

    def take(self, request):
        control = request.control
        pitch = (110 if control.startswith("a man") else 220) * (
            0.8 if "low" in control else 1.25 if "high" in control else 1
        )
        x = tone(pitch, 0.8 if "fast" in control else 1.6)
        return SimpleNamespace(
            samples=x, sample_rate=RATE, ended_by="stop", seconds=len(x) / RATE, first_audio_seconds=0.1
        )


@pytest.fixture
def voices(tmp_path: Path) -> Path:
    for name, pitch in (("low", 110), ("high", 220)):
        (tmp_path / name).mkdir()
        for number in range(3):
            write_wav(tmp_path / name / f"{number}.wav", tone(pitch + number, 1.0), RATE)
            (tmp_path / name / f"{number}.txt").write_text("The garden was full of roses.\n")
    return tmp_path


def test_design_is_all_right_for_a_model_that_obeys_and_all_wrong_for_its_opposite():
    figures = evaluate.design(ToneModel())
    name = next(iter(figures))
    assert "40 pairs" in name and figures[name] == 100
    assert figures[f"  {evaluate.CONTRASTS[0][0]}: median pitch, Hz"] == pytest.approx(88, rel=0.03)

    class Stubborn(ToneModel):
        def take(self, request):
            return super().take(evaluate.SpeechRequest(request.text))

    assert evaluate.design(Stubborn())[name] == 0


def test_cloning_compares_with_clips_that_were_not_the_reference(voices):
    class Ear:
        """Hears only the pitch."""

        available = True
        voice = staticmethod(lambda x, rate=RATE: np.eye(2)[int(measures.median_f0(x, rate) > 150)])
        matrix = measures.Likeness.matrix

    figures = evaluate.cloning(ToneModel(), voices, Ear())  # without a description the model is at 220 Hz
    assert figures["cloning of 2 unheard voices, takes"] == 8
    assert figures["  likeness to the own reference"] == 0.5
    assert figures["  nearest is the own, %"] == 50
    assert figures["  pitch off, median, semitones"] == pytest.approx(6, abs=0.5)  # of 0 and 12
    assert "--voices" in evaluate.cloning(ToneModel(), None, Ear())["cloning"]


def test_continuation_counts_takes_that_say_the_prompt_again(voices):
    heard = iter(["the kettle is boiling over", *["the garden was full of roses"] * 5])
    figures = evaluate.continuation(ToneModel(), voices, lambda samples, rate: next(heard))
    assert figures["  takes that say the prompt again"] == "5 of 6"
    assert 0 < figures["continuation: word errors, %"] <= 100


def test_sound_and_speed_of_a_steady_model():
    model = ToneModel()
    takes = evaluate.speak(model, [evaluate.SpeechRequest("One."), evaluate.SpeechRequest("Two.")])
    figures = evaluate.sound(takes, model.patch_seconds)
    assert figures["last sound to end, median, s"] == pytest.approx(0, abs=0.02)
    told = evaluate.speed(model)
    assert told["first sound after, s"] == 0.1
    assert told["three takes against one, times as long"] > 0


def test_words_counts_runaways_and_silence():
    takes = [
        evaluate.Spoken("The cat sat.", tone(150, 1.0), RATE, "stop"),
        evaluate.Spoken("The dog ran away from home.", np.zeros(RATE, "float32"), RATE, "limit"),
    ]
    heard = iter(["the cat sat", "the dog"])
    figures, lines = evaluate.words(takes, lambda samples, rate: next(heard), [0])
    assert figures["word errors, median of seeds, %"] == pytest.approx(100 * 4 / 9)
    assert figures["  texts of 1 to 4 words, %"] == 0
    assert (figures["takes that did not stop"], figures["takes without speech"], figures["takes in all"]) == (1, 1, 2)
    assert lines[1].startswith("4/6")

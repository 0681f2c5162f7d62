"""Validation by listening, and the picture of the curves."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from tests.test_training_loop import PLAIN, clips, trainer
from voxcpm_core import VoxCPM
from voxcpm_core.audio import Audio, write_wav
from voxcpm_core.training import loop
from voxcpm_core.training.adapters import AdapterOptions
from voxcpm_core.training.curves import draw_curves
from voxcpm_core.training.journal import Journal, read_curves
from voxcpm_core.training.listening import Heard, Listening, Sentence, edits, mel_distance
from voxcpm_core.training.validate import HeldOut

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    "heard, wrong",
    [("a b c", 0), ("a c", 1), ("a x c", 1), ("a b b c", 1), ("", 3), ("c b a", 2)],
)
def test_word_errors(heard, wrong):
    assert edits("a b c".split(), heard.split()) == wrong


def tone(hertz, seconds=0.5, rate=16000):
    return Audio((0.3 * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)).astype(np.float32), rate)


def test_mel_distance_ignores_level_and_pace():
    clip = tone(300)
    assert mel_distance(clip, clip) == 0
    quieter = Audio(clip.samples * 0.5, clip.sample_rate)
    assert mel_distance(clip, quieter) < 0.1
    assert mel_distance(clip, tone(300, 0.8)) < 0.3 < mel_distance(clip, tone(3000))


def test_sentences_are_spoken_and_judged(v2_48k, data_dir):
    heard, compared = [], []

    def recognise(samples, rate):
        heard.append((len(samples), rate))
        return "One two!" if len(heard) == 1 else "nothing like it"

    def embed(samples, rate):
        compared.append(rate)
        return np.array([1.0, 0.0]) if len(compared) % 2 else np.array([1.0, 1.0])

    recording = data_dir / "said.wav"
    write_wav(recording, tone(200).samples, 16000)
    sentences = [Sentence("One two."), Sentence("three four", reference=v2_48k.reference, recording=recording)]
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu") as model:
        found = Listening(sentences, recognise, embed, max_len=4)(model)
        bare = Listening([Sentence("One two.")], max_len=4)(model)
    assert found["wer"] == (0 + 3) / 4
    assert abs(found["similarity"] - np.sqrt(0.5)) < 1e-9 and found["mel"] > 0
    assert [rate for _, rate in heard] == [48000, 48000] and set(bare) == {"unended"}


@pytest.mark.parametrize("adapter", [None, AdapterOptions(r=2)])
def test_the_best_model_is_the_one_that_was_heard_best(v2_48k, data_dir, adapter):
    training = trainer(v2_48k, replace(PLAIN, lora=adapter, export_dtype="float32"), clips(6, (0,)))
    words = iter(["x y", "one two", "x two"])
    listening = Listening([Sentence("one two")], lambda samples, rate: next(words), max_len=3)
    validate = Heard(HeldOut(training.stream), listening, v2_48k.path)
    journal, scores, written = Journal(data_dir), [], []
    file = data_dir / "best" / ("model.safetensors" if adapter is None else "lora_weights.safetensors")
    for _ in range(3):
        training.step(0.0)
        loop.checkpoint(training, v2_48k.path, data_dir, journal, validate)
        scores.append(training.progress.best)
        written.append(file.read_bytes())
    assert scores == [1.0, 0.0, 0.0]
    assert written[0] != written[1] and written[1] == written[2]
    assert (data_dir / "log.csv").read_text().count("val") == 3


def test_curves_are_drawn_from_the_log(data_dir):
    journal = Journal(data_dir)
    draw_curves(journal.file, data_dir / "curves.png")
    assert not (data_dir / "curves.png").exists(), "nothing to draw yet"
    for step in range(1, 4):
        journal.report("train", step, 10 * step, {"diffusion": 1.0 / step, "stop": 0.1, "attention": 0.0})
    journal.report("val", 3, 30, {"diffusion": 0.5})
    curves = read_curves(journal.file)
    assert curves["train"]["diffusion"] == [(1, 1.0), (2, 0.5), (3, 0.33333)] and "attention" not in curves["train"]
    draw_curves(journal.file, data_dir / "curves.png")
    with Image.open(data_dir / "curves.png") as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20)}
    assert (130, 190, 197) in colours and (200, 90, 40) in colours

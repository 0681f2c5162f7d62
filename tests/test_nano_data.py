"""How nano's training data is made: latents of known signals, phones, alignment, the folder, the packed checkpoint."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from scripts.nano import corpus, phones
from scripts.nano.latents import HOP, RATE, constants, f0_of, latents, mel_bands

NANO = Path(__file__).resolve().parents[1] / "assets" / "nano"


def voice_like(pitch: float, seconds: float = 1.0) -> np.ndarray:
    """A buzz of twenty harmonics, float32 at 16 kHz."""
    t = np.arange(round(seconds * RATE)) / RATE
    return sum(0.2 / k * np.sin(2 * np.pi * pitch * k * t) for k in range(1, 21)).astype("float32")


@pytest.mark.parametrize("pitch", [85.0, 130.0, 250.0])
def test_latents_hold_the_pitch(pitch):
    f0, voicing = f0_of(latents(voice_like(pitch)))
    inside = slice(4, -4)
    assert np.median(f0[inside]) == pytest.approx(pitch, rel=0.01)
    assert np.median(voicing[inside]) > 0.8


def test_noise_is_not_voiced_and_silence_has_no_voicing_at_all():
    noise = 0.1 * np.random.default_rng(0).standard_normal(RATE).astype("float32")
    assert np.median(f0_of(latents(noise))[1]) < 0.4
    f0, voicing = f0_of(latents(np.zeros(RATE, "float32")))
    assert np.abs(voicing).max() < 1e-5
    assert f0 == pytest.approx(150, rel=1e-3)


@pytest.mark.parametrize("length", [1, 2 * HOP - 1, 2 * HOP, 2 * HOP + 1, RATE])
def test_latents_fill_whole_patches(length):
    z = latents(0.1 * np.ones(length, "float32"))
    assert z.shape == (2 * -(-length // (2 * HOP)), 32)
    assert np.abs(z).max() <= 6


def test_twice_as_loud_moves_the_components_by_one_constant():
    x = voice_like(120)
    recipe = constants()
    step = (latents(2 * x) - latents(x))[2:-2, :28]
    expected = np.log(2) * recipe["pca_V"].sum(0) / recipe["scale"][:28]
    # bands at the floor do not move, so this holds for a sound that fills them all
    noise = 0.1 * np.random.default_rng(1).standard_normal(RATE).astype("float32")
    moved = (latents(2 * noise) - latents(noise))[2:-2, :28]
    assert np.allclose(moved, expected, atol=1e-3)
    assert not np.allclose(step, 0, atol=0.1)


def test_mel_bands_are_triangles_of_equal_area():
    bands = mel_bands().numpy()
    assert bands.shape == (80, 257) and (bands >= 0).all()
    centres = bands.argmax(1)
    assert (np.diff(centres) >= 0).all() and centres[-1] > 230
    assert (bands[40:] * (RATE / 512)).sum(1) == pytest.approx(1, rel=0.05)


def test_phones_survive_the_way_through_characters():
    spelt = [("hh", False), ("ax", False), ("l", False), ("ow", True)]
    assert phones.from_characters("".join(map(phones.character, spelt))) == spelt


@pytest.mark.parametrize(
    ("sound", "expected"),
    [
        ("həlˈO", "hh ax l ow1"),
        ("fˈɜɹst", "f er1 s t"),
        ("wˈɔːtə", "w ao1 t ax"),
        ("ʤˈʌmpt,", "jh ah1 m p t"),
        ("fˈIəɹ", "f ay1 er"),
    ],
)
def test_teacher_phonemes_become_phones(sound, expected):
    assert " ".join(name + "1" * stressed for name, stressed in phones.from_misaki(sound)) == expected


def test_spelling_takes_the_lexicon_first_and_the_teacher_for_the_rest():
    spelt = phones.spell("The zorbly well-known cat.", "ðə zˈɔɹbli wˌɛlnˈOn kˈæt.")
    assert [word for word, _ in spelt] == ["the", "zorbly", "well", "known", "cat"]
    assert [name for name, _ in spelt[0][1]] == ["dh", "ax"]
    assert [name for name, _ in spelt[1][1]] == ["z", "ao", "r", "b", "l", "iy"]
    assert phones.spell("A zorbly-well cat", "ɐ zˈɔɹbliwˈɛl kˈæt") is None


def test_alignment_finds_the_words_where_they_are(nano):
    """The embedded voice says two words; a second of silence between two copies must come out as a pause."""
    pytest.importorskip("pocketsphinx", reason="pip install pocketsphinx (scripts/nano/requirements.txt)")
    from scripts.nano.align import Aligner

    said = nano.generate("Seven chickens.", seed=3)
    gap = np.zeros(RATE, "float32")
    spelt = [sound for _, sound in phones.spell("seven chickens seven chickens", "")]
    segments = Aligner().align(np.concatenate([said, gap, said]), spelt)
    total = round(1000 * (2 * len(said) + len(gap)) / RATE)
    assert segments[-1][3] == total
    assert [phone for phone, word, _, _ in segments if word == 0] == [name for name, _ in spelt[0]]
    ends = [end for *_, end in segments]
    assert ends == sorted(ends)
    starts = [0, *ends[:-1]]
    pauses = [(start, end) for (phone, *_, end), start in zip(segments, starts, strict=True) if phone == "pau"]
    middle = total / 2
    assert any(start < middle < end and end - start > 900 for start, end in pauses)


def make_source(folder: Path, sound: np.ndarray, spoken: str) -> None:
    from voxcpm_core.audio import write_wav

    folder.mkdir()
    write_wav(folder / "0.wav", sound, RATE)
    row = dict(
        file="0.wav", spoken=spoken, phonemes="", voice="af_test", speed="slow", split="train", kind="short",
        duration_s=len(sound) / RATE,
    )  # fmt: skip
    (folder / "manifest.jsonl").write_text(json.dumps(row) + "\n")
    voice = dict(
        gender="female", accent="uk", teacher="a test", median_f0_hz=200.0, pitch="low", brightness="dark",
        descriptions=["a woman"],
    )  # fmt: skip
    (folder / "voices.json").write_text(json.dumps({"voices": {"af_test": voice}}))


def test_a_corpus_becomes_a_training_folder(nano, tmp_path):
    pytest.importorskip("pocketsphinx", reason="pip install pocketsphinx (scripts/nano/requirements.txt)")
    from voxcpm_core.training.dataset import read_folder

    said = nano.generate("Seven chickens.", seed=3)
    make_source(tmp_path / "source", said, "Seven chickens.")
    corpus.prepare([tmp_path / "source"], tmp_path / "out", [1.0, 1.1])
    with gzip.open(tmp_path / "out" / "train" / "items.jsonl.gz", "rt") as file:
        one, faster = map(json.loads, file)
    assert (one["pitch"], one["tempo"]) == (0.94, 1.18)
    assert (faster["pitch"], faster["tempo"]) == (1.034, 1.073)
    assert faster["n"] == pytest.approx(one["n"] / 1.1, rel=0.01)
    dataset = read_folder(tmp_path / "out" / "train", held_out_every=0)
    assert [item.words for item in dataset.items] == [("seven", "chickens")] * 2
    assert dataset.items[0].voice["accent"] == "british"
    expected = latents((said * corpus.GAIN).astype("float32"))
    assert np.abs(dataset.frames(0) - expected).max() < 0.05  # half floats, and a 16-bit file on the way


def test_packed_checkpoint_loads_and_a_misfit_leaves_the_old_one(tmp_path):
    from scripts.nano.pack import pack, read_weights
    from voxcpm_core.errors import CheckpointError

    out = tmp_path / "packed"
    weights = read_weights(NANO)
    pack(weights, NANO, out)
    assert {file.name for file in out.iterdir()} == {file.name for file in NANO.iterdir()}
    before = (out / "model.safetensors").read_bytes()
    name = next(iter(weights))
    with pytest.raises(CheckpointError, match=name):
        pack({key: tensor for key, tensor in weights.items() if key != name}, NANO, out)
    assert (out / "model.safetensors").read_bytes() == before
    assert not (tmp_path / "packed.part").exists()


def test_logs_of_old_and_new_runs_become_one_table(tmp_path):
    from scripts.nano import curve

    old, new = tmp_path / "one" / "log.csv", tmp_path / "two" / "log.csv"
    old.parent.mkdir()
    new.parent.mkdir()
    old.write_text("run,processes,steps,items,diff,stop,att,aux\nlm2,1,25,882,2.1,0.4,3.3,4.2\n")
    new.write_text(
        "kind,step,examples,diffusion,stop,attention,phones\ntrain,50,2000,1.5,0.2,2.5,1.3\nval,50,2000,9,9,9,9\n"
    )
    rows = curve.read(old) + curve.read(new)
    curve.write(rows, tmp_path / "table.csv")
    again = curve.read(tmp_path / "table.csv")
    assert again == rows
    assert [row["run"] for row in again] == ["lm2", "two"]
    assert [row["examples"] for row in again] == ["882", "2000"]
    assert [row["attention"] for row in again] == ["3.3", "2.5"]


def test_a_model_run_begins_with_the_recipe_and_goes_on_without_it(tmp_path):
    from scripts.nano.model import RECIPE, arguments
    from voxcpm_core.training.flags import options_from, parser

    first = arguments(tmp_path, ["--data", "x", "--minutes", "5"])
    options = options_from(vars(parser().parse_args(first)))
    assert options.optimiser == "muon" and options.minutes == 5 and len(options.losses.latent_weights) == 32
    assert RECIPE.is_file()
    (tmp_path / "state.pt").touch()
    assert arguments(tmp_path, ["--minutes", "5"]) == ["--resume", str(tmp_path), "--minutes", "5"]

"""Training data: what is refused and named, and how recordings become sequences."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
import torch

from voxcpm_core.checkpoint import NANO
from voxcpm_core.config import read_config
from voxcpm_core.training import alignment
from voxcpm_core.training.dataset import Dataset, Item, join, read_folder, write_folder
from voxcpm_core.training.errors import DataError
from voxcpm_core.training.examples import LAYOUTS, Example, Examples, Recipe
from voxcpm_core.training.latents import encode_manifest, read_latent_weights
from voxcpm_core.training.manifest import read_manifest
from voxcpm_core.training.packing import collate, pack
from voxcpm_core.training.stream import Position, Stream

A, B, C, D = 101, 102, 103, 104  # audio start and end, reference start and end


def latents(frames, start=0.0, dim=8):
    return (start + np.arange(frames * dim, dtype=np.float32).reshape(frames, dim)) / 100


def two_voices(frames=(4, 6)):
    """Two recordings of one speaker, with a description, made of rising numbers."""
    items = [
        Item(text="one", key=("ann",), controls=("calm",), voice={"sex": "F"}),
        Item(text="two three", key=("ann",), controls=("calm",), voice={"sex": "F"}),
    ]
    parts = [latents(frames[0]), latents(frames[1], 50.0)]
    return Dataset(items, lambda index: parts[index])


def examples(golden, dataset, layout):
    recipe = Recipe(layouts={layout: 1.0}, reference_seconds=(0.16, 0.16))
    return Examples(dataset, golden.config_read, golden.path, recipe)


class Checkpoint:
    def __init__(self, golden):
        self.path, self.config_read = golden.path, read_config(golden.path)


@pytest.fixture
def v2(v2_48k):
    return Checkpoint(v2_48k)


@pytest.fixture
def v1(v1_16k):
    return Checkpoint(v1_16k)


# ---------------------------------------------------------------------------------------------- manifests


def manifest(folder: Path, *lines) -> Path:
    (folder / "clips").mkdir(exist_ok=True)
    for name, rate in (("a.wav", 16000), ("b.wav", 16000), ("c.wav", 44100)):
        tone = 0.1 * np.sin(np.arange(rate // 4) * 0.05)
        sf.write(folder / "clips" / name, tone, rate)
    file = folder / "manifest.jsonl"
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return file


def test_a_manifest_is_read_with_paths_beside_it(data_dir):
    file = manifest(
        data_dir,
        {"audio": "clips/a.wav", "text": " One\n two. ", "ref_audio": "clips/b.wav", "duration": 0.25},
        {"audio": "clips/b.wav", "text": "Three", "description": "(a calm man)", "dataset_id": 7},
    )
    one, two = read_manifest(file)
    assert one.text == "One two." and one.seconds == 0.25
    assert one.reference == (data_dir / "clips" / "b.wav").resolve()
    assert two.control == "a calm man" and two.dataset == "7" and two.reference is None


@pytest.mark.parametrize(
    "line, reason",
    [
        ("{", "line 2: Expecting"),
        ('["a"]', "line 2: it is not a JSON object"),
        ({"audio": "clips/a.wav"}, "line 2: 'text' is missing or empty"),
        ({"audio": "clips/a.wav", "text": "  "}, "line 2: 'text' is missing or empty"),
        ({"audio": "clips/a.wav", "text": 3}, "line 2: 'text' is 3"),
        ({"text": "One"}, "line 2: 'audio' is missing"),
        ({"audio": "clips/none.wav", "text": "One"}, "line 2: 'audio' names clips/none.wav"),
        ({"audio": "clips/a.wav", "text": "One", "ref_audio": "x.wav"}, "line 2: 'ref_audio' names x.wav"),
        ({"audio": "clips/a.wav", "text": "One", "ref_audio": "clips/a.wav"}, "line 2: 'ref_audio' is the recording"),
        ({"audio": "clips/a.wav", "text": "One", "duration": "long"}, "line 2: 'duration' is 'long'"),
        ({"audio": "clips/a.wav", "text": "One", "duration": -1}, "line 2: 'duration' is -1"),
    ],
)
def test_bad_lines_are_named(data_dir, line, reason):
    file = manifest(data_dir, {"audio": "clips/a.wav", "text": "One"}, line, {"audio": "clips/b.wav", "text": ""})
    with pytest.raises(DataError) as error:
        read_manifest(file)
    assert reason in str(error.value) and str(file) in str(error.value)
    assert "line 3" in str(error.value), "all bad lines at once"


def test_references_are_refused_for_the_first_generation(data_dir):
    line = {"audio": "clips/a.wav", "text": "One", "ref_audio": "clips/b.wav"}
    with pytest.raises(DataError, match="knows no reference"):
        read_manifest(manifest(data_dir, line), references=False)


def test_an_empty_or_missing_manifest(data_dir):
    with pytest.raises(DataError, match="no lines"):
        read_manifest(manifest(data_dir))
    with pytest.raises(DataError, match="cannot be read"):
        read_manifest(data_dir / "none.jsonl")


def test_clips_are_encoded_once_and_references_are_no_targets(data_dir, v2, monkeypatch):
    file = manifest(
        data_dir,
        {"audio": "clips/a.wav", "text": "One", "ref_audio": "clips/c.wav", "speaker": "ann"},
        {"audio": "clips/b.wav", "text": "Two", "speaker": "ann"},
    )
    dataset = encode_manifest(file, v2.path, data_dir / "cache", held_out_every=0)
    assert dataset.training == [0, 1] and dataset.items[0].reference == 2
    hop, patch = 640, v2.config_read.patch_size
    assert len(dataset.frames(0)) == -(-4000 // (hop * patch)) * patch
    monkeypatch.setattr("voxcpm_core.training.latents.LatentCache._encode", None)  # a second encoding would fail
    again = encode_manifest(file, v2.path, data_dir / "cache", held_out_every=0)
    assert np.array_equal(again.frames(2), dataset.frames(2))


def test_another_sample_rate_is_refused_by_choice(data_dir, v2):
    file = manifest(data_dir, {"audio": "clips/c.wav", "text": "One"}, {"audio": "clips/a.wav", "text": "Two"})
    with pytest.raises(DataError, match=r"c\.wav: It has 44100 Hz, the model's encoder 16000 Hz"):
        encode_manifest(file, v2.path, data_dir / "cache", other_rate="refuse")
    assert encode_manifest(file, v2.path, data_dir / "cache").items[0].seconds > 0.2


# ------------------------------------------------------------------------------------------- folders


def test_a_folder_comes_back_as_it_was_written(data_dir):
    rows = [
        {
            "text": "Ab c",
            "voice": "ann",
            "tempo": 0.8,
            "n": 3200,
            "words": "ab c",
            "segs": "ae,0,1,80 b,0,0,120 k,1,0,200",
        },
        {"text": "free", "voice": "bob", "control": ["a man", "low"], "n": 1280},
    ]
    voices = {"default": ["ann", 1.0, 0.8], "voices": {"ann": {"sex": "F", "accent": "british"}}}
    write_folder(data_dir / "set", rows, [latents(5).astype(np.float16), latents(2).astype(np.float16)], voices)
    dataset = read_folder(data_dir / "set", held_out_every=0, default_weight=2.0)
    one, two = dataset.items
    assert one.key == ("ann", 1.0, 0.8) and one.is_default and one.weight == 2.0 and one.seconds == 0.2
    assert one.voice["accent"] == "british" and not two.is_default and two.controls == ("a man", "low")
    assert dataset.frames(1).dtype == np.float32 and np.allclose(dataset.frames(1), latents(2), atol=1e-3)
    both = join([dataset, dataset])
    assert len(both.items) == 4 and np.array_equal(both.frames(3), dataset.frames(1))
    assert both.groups[(0, "ann")] == [0] and both.groups[(1, "ann")] == [2], "groups stay within their data set"


@pytest.mark.parametrize(
    "row, reason",
    [
        ({"voice": "ann"}, "lacks 'text'"),
        ({"text": ""}, "'text' is empty"),
        ({"text": "ab", "words": "ac d", "segs": "ae,0,1,80"}, "letters of 'text'"),
        ({"text": "ab c", "words": "ab c", "segs": "ae,0,1,80"}, "no phone in 'segs' belongs to the word 'c'"),
        ({"text": "ab", "words": "ab", "segs": "ae,0"}, "items.jsonl, line 1: not enough values"),
    ],
)
def test_bad_items_are_named(data_dir, row, reason):
    write_folder(data_dir / "set", [row], [latents(2)], None)
    with pytest.raises(DataError, match="line 1") as error:
        read_folder(data_dir / "set")
    assert reason in str(error.value)


def test_latents_that_do_not_belong_to_the_items(data_dir):
    write_folder(data_dir / "set", [{"text": "a"}, {"text": "b"}], [latents(2)], None)
    with pytest.raises(DataError, match="do not belong together"):
        read_folder(data_dir / "set")


def test_latent_weights_have_mean_one(data_dir):
    (data_dir / "weights.json").write_text("[1, 3]")
    assert read_latent_weights(data_dir / "weights.json") == (0.5, 1.5)
    np.savez(data_dir / "recipe.npz", pca_eigenvalues=[100.0, 1.0, 0.25], shift=np.zeros(5))
    weights = read_latent_weights(data_dir / "recipe.npz")
    assert np.allclose(weights, np.array([3.0, 1.0, 0.5, 1.5, 1.5]) / 1.5)
    with pytest.raises(DataError, match="does not hold latent weights"):
        read_latent_weights(data_dir / "none.json")


# ----------------------------------------------------------------------------------------- alignment


SEGMENTS = "pau,-1,0,40 k,0,0,100 ae,0,1,200 t,0,0,280 s,1,0,400 pau,-1,0,480"


def test_letters_share_the_time_of_their_word():
    timed = alignment.spell("Cat's s.", ("cat", "s", "s"), _with_third_word(), [False] * 3, end=0.8)
    assert timed.characters == list("cat's s.")
    spans = [(round(a, 3), round(b, 3)) for a, b in timed.spans]
    assert spans[:3] == [(0.04, 0.12), (0.12, 0.2), (0.2, 0.28)]
    assert spans[3:] == [(0.28, 0.28), (0.28, 0.4), (0.4, 0.48), (0.48, 0.6), (0.6, 0.8)]


def _with_third_word():
    return alignment.read_segments(SEGMENTS + " s,2,0,600")


def test_words_in_phones():
    segments = alignment.read_segments(SEGMENTS)
    timed = alignment.spell("cat s", ("cat", "s"), segments, [True, False], end=0.5)
    stressed = chr(0xE040 + alignment.PHONES["ae"])
    assert timed.characters == [
        chr(0xE000 + alignment.PHONES["k"]),
        stressed,
        chr(0xE000 + alignment.PHONES["t"]),
        " ",
        "s",
    ]
    assert timed.spans[1] == (0.1, 0.2) and timed.spans[4] == (0.28, 0.4)


def test_attention_target_and_phones_by_hand():
    """Patches of 80 ms: the first is half pause (40 ms) and 40 ms of k."""
    segments = alignment.read_segments(SEGMENTS)
    timed = alignment.spell("cat s", ("cat", "s"), segments, [True, True], end=0.5)
    share = alignment.attention_target(timed.spans, 6, 0.08)
    assert share.shape == (6, 6) and np.allclose(share.sum(1), 1)
    assert np.allclose(share[0], [1, 0, 0, 0, 0, 0], atol=0.01)
    assert np.allclose(share[1], [0.25, 0.75, 0, 0, 0, 0], atol=0.01)
    assert share[5, -1] == 1, "what no character covers belongs to the token after the text"
    heard = alignment.phones_heard(segments, 6, 0.08)
    assert heard[1, alignment.PHONES["k"]] and heard[1, alignment.PHONES["ae"]] and heard[1].sum() == 2
    assert heard[5].sum() == 0


# ------------------------------------------------------------------------------------------- layouts


def only(batch, name):
    return getattr(batch, name).tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_by_hand(v2, layout):
    """Item 1 has 6 frames: two patches of four, the last frame repeated twice. Item 0 is one patch."""
    made = examples(v2, two_voices(), layout).build(1, random.Random(0))
    assert made.layout == layout
    ids = made.sequence.rest[0][:-1]
    encode = examples(v2, two_voices(), layout).tokenizer.encode
    said = {"design": "(calm)two three"}.get(layout, "one two three" if "continuation" in layout else "two three")
    assert ids == encode(said)
    spans = ([C], 1, [D]) if layout.startswith("reference") else ()
    spans += (ids + [A],) + ((1,) if "continuation" in layout else ())
    batch = collate([made])
    positions, audio = [], []
    for span in spans:
        audio += list(range(len(positions), len(positions) + span)) if isinstance(span, int) else []
        positions += [0] * span if isinstance(span, int) else span
    first = len(positions) - 1  # decides the first patch
    audio += [first + 1]  # of the two learnt patches only the first is read
    assert only(batch, "ids")[0][: len(positions)] == positions and set(only(batch, "ids")[0][len(positions) :]) <= {0}
    assert only(batch, "audio") == audio
    assert only(batch, "query") == [first, first + 1]
    assert only(batch, "stop") == [0, 1]
    whole = torch.from_numpy(np.concatenate((latents(6, 50.0), latents(6, 50.0)[-1:], latents(6, 50.0)[-1:])))
    assert torch.equal(batch.target, whole.view(2, 4, 8))
    before = torch.from_numpy(latents(4)) if "continuation" in layout else torch.zeros(4, 8)
    assert torch.equal(batch.condition, torch.stack((before, batch.target[0])))
    assert torch.equal(batch.patches[-1], batch.target[0])


def test_the_first_generation_knows_plain_and_continuation(v1):
    recipe = Recipe(layouts={name: 1.0 for name in LAYOUTS})
    maker = Examples(two_voices(), v1.config_read, v1.path, recipe)
    assert {maker.build(1, random.Random(seed)).layout for seed in range(40)} == {"plain", "continuation"}


def test_bare_text_means_the_default_voice(v2):
    dataset = two_voices()
    dataset.items[1] = Item(**{**vars(dataset.items[1]), "is_default": False})
    maker = Examples(dataset, v2.config_read, v2.path, Recipe())
    assert {maker.build(1, random.Random(seed)).layout for seed in range(40)} == {"design", "reference"}


def test_aligned_items_are_spelt_for_the_model_that_can_spell(data_dir):
    rows = [{"text": "cat s", "n": 7680, "words": "cat s", "segs": SEGMENTS, "voice": "ann"}]
    write_folder(data_dir / "set", rows, [latents(12, dim=32)], {"voices": {"ann": {"sex": "F"}}})
    config = read_config(NANO)
    maker = Examples(read_folder(data_dir / "set", 0), config, NANO, Recipe(layouts={"plain": 1.0}))
    letters, phones = (maker.build(0, random.Random(0), way) for way in ((1, 0, 0), (0, 1, 0)))
    assert letters.sequence.rest[0] == [7, 5, 24, 4, 23, A]
    assert all(token >= 112 for token in phones.sequence.rest[0][:3])
    batch = collate([letters])
    assert batch.attention.shape == (6, batch.ids.shape[1]) and batch.phones.shape == (6, 40)
    assert torch.allclose(batch.attention[:, :6].sum(1), torch.ones(6)), "on the text and the token after it"
    design = Examples(read_folder(data_dir / "set", 0), config, NANO, Recipe(layouts={"design": 1.0}))
    described = design.build(0, random.Random(0), (1, 0, 0))
    assert described.attention.shape[1] == len(described.sequence.rest[0]) and described.attention[:, 0].sum() == 0


# ------------------------------------------------------------------------------------- batches, order


def numbered(lengths):
    from voxcpm_core.sequence import Sequence

    return [Example(Sequence((), ([5] * n + [A],), None), torch.zeros(1, 4, 8), "plain") for n in lengths]


def test_batches_keep_to_the_budget_and_hold_like_lengths():
    groups = pack(numbered([3, 60, 5, 30, 7, 61, 29]), positions=64)
    for group in groups:
        assert len(group) == 1 or len(group) * -(-len(group[-1]) // 8) * 8 <= 64
    assert sorted(len(e) for group in groups for e in group) == [4, 6, 8, 30, 31, 61, 62]
    assert [len(group) for group in groups] == [3, 2, 1, 1]


def many(count=10):
    items = [Item(text=f"text {index}") for index in range(count)]
    return Dataset(items, lambda index: latents(4 + index), held_out=(0,))


def test_every_item_comes_once_before_any_comes_again(v2):
    stream = Stream(examples(v2, many(), "plain"), positions=10, seed=1, pool_size=4)
    drawn = [index for pool in range(9) for index in stream._draw(pool, random.Random(0))]
    for epoch in range(4):
        assert sorted(drawn[9 * epoch : 9 * epoch + 9]) == list(range(1, 10)), "and item 0 is held out"


def test_a_position_gives_the_same_batch_again(v2):
    first = Stream(examples(v2, many(), "plain"), positions=40, seed=1, pool_size=4)
    position, seen = Position(), []
    for _ in range(8):
        batch, after = first.next(position)
        seen.append((position, batch))
        position = after
    second = Stream(examples(v2, many(), "plain"), positions=40, seed=1, pool_size=4)
    for position, batch in reversed(seen):
        assert torch.equal(second.next(position)[0].target, batch.target)


def test_what_does_not_fit_the_model_is_said(v2):
    long = Dataset([Item(text="long")], lambda index: latents(4 * 600))
    with pytest.raises(DataError, match="Item 0 .'long'. takes .* positions, the model has 512"):
        examples(v2, long, "plain").build(0, random.Random(0))
    wide = Dataset([Item(text="wide")], lambda index: latents(4, dim=9))
    with pytest.raises(DataError, match="9 values per latent, the model 8"):
        examples(v2, wide, "plain")
    with pytest.raises(DataError, match="Layout 'song' is unknown"):
        examples(v2, long, "song")
    with pytest.raises(DataError, match="nothing to train on"):
        Stream(examples(v2, long, "plain"), 100, 0, max_seconds=-1)

"""Adapters: the numbers of the reference, everything from the file, all keys or none, off is the base model."""

import json
import shutil
import threading

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from voxcpm_core import LoRAError, SpeechRequest, VoxCPM

TEXT = "hello world, the end."
EXACT = 1e-4


@pytest.fixture(scope="module")
def loaded(v2_48k, torch_threads):
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu") as model:
        yield model


@pytest.fixture
def model(loaded):
    yield loaded
    loaded.unload_lora()


@pytest.fixture(scope="module")
def base(loaded):
    """What the model says without an adapter."""
    return speak(loaded)


@pytest.fixture
def adapter(v2_48k, tmp_path):
    """adapter(change=None, config={...}): a folder with the golden adapter, changed."""

    def make(name="adapter", change=None, config="as it is", file="lora_weights.safetensors"):
        folder = tmp_path / name
        folder.mkdir()
        tensors = load_file(v2_48k.lora / "lora_weights.safetensors")
        tensors = tensors if change is None else change(tensors) or tensors
        if file.endswith(".safetensors"):
            save_file(tensors, folder / file)
        else:
            torch.save({"state_dict": tensors}, folder / file)
        if config == "as it is":
            shutil.copyfile(v2_48k.lora / "lora_config.json", folder / "lora_config.json")
        elif config is not None:
            (folder / "lora_config.json").write_text(config if isinstance(config, str) else json.dumps(config))
        return folder

    return make


def speak(model, **fields):
    return model.generate_takes(SpeechRequest(text=TEXT, **{"seed": 7, "max_len": 4, "min_len": 100, **fields}))[
        0
    ].samples


def apart(a, b):
    assert a.shape == b.shape
    return np.abs(a - b).max()


def scaled(factor):
    def change(tensors):
        return {name: t * factor if name.endswith("lora_B") else t for name, t in tensors.items()}

    return change


# ---- the arithmetic


def test_audio_with_an_adapter_equals_the_reference(golden, torch_threads):
    vectors = golden.vectors()
    short = min(len(vectors["plain_lora_wav"]), len(vectors["plain_full_wav"]))
    assert apart(vectors["plain_lora_wav"][:short], vectors["plain_full_wav"][:short]) > 1e-2
    text = json.loads(str(vectors["run_texts"]))["plain"]
    wanted = {"text": text, "seed": 123, "cfg_value": 2.0, "inference_timesteps": 10, "max_len": 6}
    with VoxCPM.from_pretrained(golden.path, device="cpu", lora_weights_path=golden.lora) as model:
        assert apart(model.generate(**wanted, retry_badcase=False), vectors["plain_lora_wav"]) <= EXACT
        model.set_lora_enabled(False)
        assert apart(model.generate(**wanted, retry_badcase=False), vectors["plain_full_wav"]) <= EXACT


def test_off_and_unloaded_are_the_base_model_bit_for_bit(model, base, v2_48k):
    model.load_lora(v2_48k.lora)
    with_adapter = speak(model)
    assert apart(with_adapter, base) > 1e-2
    model.set_lora_enabled(False)
    assert np.array_equal(speak(model), base) and not model.lora_enabled
    model.set_lora_enabled(True)
    assert np.array_equal(speak(model), with_adapter) and model.lora_enabled
    model.unload_lora()
    assert np.array_equal(speak(model), base) and model.lora is None


def test_off_is_the_base_model_in_a_batch_too(model, v2_48k):
    wanted = [SpeechRequest(text=TEXT, seed=k, max_len=3 + k, min_len=100) for k in range(3)]
    wanted.append(SpeechRequest(text=TEXT, seed=9, max_len=4, reference_wav_path=v2_48k.reference))
    before = model.generate_batch(wanted)
    model.load_lora(v2_48k.lora)
    with_adapter = model.generate_batch(wanted)
    for take, single in zip(with_adapter, wanted, strict=True):
        # the adapter's random weights make more of a rounding that differs with the batch and the processor
        assert apart(take.samples, model.generate_takes(single)[0].samples) <= 5e-4
    model.set_lora_enabled(False)
    for take, plain, changed in zip(model.generate_batch(wanted), before, with_adapter, strict=True):
        assert np.array_equal(take.samples, plain.samples)
        assert apart(changed.samples, plain.samples) > 1e-3


def test_a_switch_waits_for_the_takes_that_are_being_made(model, base, v2_48k):
    """A take is made with one state of the adapter from its first to its last patch."""
    running = model.start(SpeechRequest(text=TEXT, seed=7, max_len=30, min_len=100))
    stream = iter(running)
    next(stream)
    switch = threading.Thread(target=model.load_lora, args=(v2_48k.lora,))
    switch.start()
    list(stream)
    switch.join()
    assert np.array_equal(running.takes[0].samples, speak(model_without(model), max_len=30))


def model_without(model):
    model.unload_lora()
    return model


def test_a_voice_read_before_the_adapter_is_read_again_after_it(model, v2_48k):
    voice = {"reference_wav_path": v2_48k.reference}
    before = speak(model, **voice)
    model.load_lora(v2_48k.lora)
    warm = speak(model, **voice)
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu", lora_weights_path=v2_48k.lora) as fresh:
        assert apart(warm, speak(fresh, **voice)) == 0
    model.set_lora_enabled(False)
    assert np.array_equal(speak(model, **voice), before)


def test_an_adapter_on_the_time_embedding_comes_and_goes(model, base, adapter, v2_48k):
    """Its result is kept from patch to patch, so it has to be forgotten when the adapter changes."""
    layer = "feat_decoder.estimator.time_mlp.linear_1"
    size = model.model.config.dit.hidden_size
    weights = {f"{layer}.lora_A": torch.ones(4, size), f"{layer}.lora_B": torch.ones(size, 4)}
    model.load_lora(adapter(change=lambda _: weights))
    assert apart(speak(model), base) > 1e-3
    model.unload_lora()
    assert np.array_equal(speak(model), base)


# ---- one after the other


def test_a_then_b_is_b(model, base, adapter, v2_48k):
    other = adapter(change=scaled(-2.0))
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu", lora_weights_path=other) as fresh:
        only_b = speak(fresh)
    model.load_lora(v2_48k.lora)
    only_a = speak(model)
    model.set_lora_enabled(False)
    model.set_lora_enabled(True)
    model.load_lora(other)
    assert np.array_equal(speak(model), only_b) and apart(only_a, only_b) > 1e-3
    model.set_lora_enabled(False)
    assert np.array_equal(speak(model), base)
    model.load_lora(v2_48k.lora)
    assert model.lora_enabled and np.array_equal(speak(model), only_a)
    model.set_lora_enabled(False)
    model.load_lora(other)
    assert model.lora_enabled and np.array_equal(speak(model), only_b)


def test_an_adapter_for_fewer_layers_leaves_nothing_of_the_last_one(model, adapter, v2_48k):
    few = adapter(change=lambda tensors: {n: t for n, t in tensors.items() if n.startswith("enc_to_lm_proj")})
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu", lora_weights_path=few) as fresh:
        expected = speak(fresh)
    model.load_lora(v2_48k.lora)
    model.load_lora(few)
    assert np.array_equal(speak(model), expected)


# ---- rank and alpha


def test_rank_and_alpha_come_from_the_files(model, adapter, v2_48k):
    loaded, skipped = model.load_lora(v2_48k.lora)
    assert len(loaded) == len(load_file(v2_48k.lora / "lora_weights.safetensors")) // 2 and skipped == []
    told = dict(model.lora)
    assert told.pop("path") == str(v2_48k.lora) and len(told.pop("hash")) == 16
    assert told == {"rank": 4, "alpha": 8, "enabled": True}


def test_another_rank_needs_no_setting(model, adapter, v2_48k):
    """The golden adapter (rank 4, alpha 8) as one of rank 64, alpha 32: zeros fill up, B makes up for alpha / r."""

    def widen(tensors):
        wide = {}
        for name, t in tensors.items():
            if name.endswith("lora_A"):
                wide[name] = torch.cat((t, torch.zeros(60, t.shape[1])))
            else:
                wide[name] = torch.cat((t * 4, torch.zeros(t.shape[0], 60)), dim=1)
        return wide

    model.load_lora(v2_48k.lora)
    expected = speak(model, max_len=2)
    for config in ({"lora_config": {"r": 64, "alpha": 32}}, {"r": 32, "alpha": 32}):
        model.load_lora(adapter(f"wide {len(config)}", change=widen, config=config))
        assert (model.lora["rank"], model.lora["alpha"]) == (64, 32)
        assert apart(speak(model, max_len=2), expected) <= EXACT


def test_without_a_config_alpha_is_the_rank(model, adapter, v2_48k):
    model.load_lora(v2_48k.lora)
    expected = speak(model, max_len=2)
    bare = adapter(change=scaled(2.0), config=None)
    for path in (bare, bare / "lora_weights.safetensors"):
        model.load_lora(path)
        assert (model.lora["rank"], model.lora["alpha"]) == (4, 4)
        assert apart(speak(model, max_len=2), expected) <= EXACT


@pytest.mark.parametrize("file", ["lora_weights.safetensors", "lora_weights.ckpt"])
def test_a_file_that_changes_later_does_not_change_the_voice(model, adapter, file):
    """A training run overwrites its newest adapter; what is attached was read when it was attached."""
    folder = adapter(file=file)
    model.load_lora(folder)
    expected = speak(model)
    size = (folder / file).stat().st_size
    with (folder / file).open("r+b") as handle:
        handle.write(bytes(size))
    assert np.array_equal(speak(model), expected)


def test_the_older_file_format(model, adapter, v2_48k):
    model.load_lora(v2_48k.lora)
    expected = speak(model)
    model.load_lora(adapter(file="lora_weights.ckpt"))
    assert np.array_equal(speak(model), expected)


# ---- all keys or none


def rename_half(tensors):
    half = sorted(tensors)[: len(tensors) // 2]
    return {f"model.{name}" if name in half else name: t for name, t in tensors.items()}


def spoil(key_end, change):
    def spoiled(tensors):
        name = next(name for name in sorted(tensors) if name.endswith(key_end))
        tensors[name] = change(tensors[name])

    return spoiled


def drop_a_b(tensors):
    del tensors[next(name for name in sorted(tensors) if name.endswith("lora_B"))]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (rename_half, "no such layer"),
        (spoil("lora_A", lambda t: t.fill_(float("nan"))), "not finite"),
        (spoil("lora_B", lambda t: t.fill_(float("inf"))), "not finite"),
        (spoil("lora_B", lambda t: t[:-1]), "the layer is"),
        (spoil("lora_A", lambda t: t[:2]), "the layer is"),
        (drop_a_b, "other half is missing"),
        (lambda tensors: {"some.weight": torch.zeros(2)}, "no such layer"),
    ],
)
def test_what_does_not_fit_is_listed_and_nothing_changes(model, base, adapter, v2_48k, change, sentence):
    bad = adapter(change=change)
    with pytest.raises(LoRAError, match=sentence):
        model.load_lora(bad)
    assert model.lora is None and np.array_equal(speak(model), base)
    model.load_lora(v2_48k.lora)
    with_adapter, told = speak(model), model.lora
    with pytest.raises(LoRAError):
        model.load_lora(bad)
    assert model.lora == told and np.array_equal(speak(model), with_adapter)


def test_every_key_that_does_not_fit_is_named(model, adapter):
    bad = adapter(change=rename_half)
    names = [name for name in load_file(bad / "lora_weights.safetensors") if name.startswith("model.")]
    with pytest.raises(LoRAError) as error:
        model.load_lora(bad)
    assert len(names) > 5 and all(name in str(error.value) for name in names[:20])
    assert f"({len(names)} of {2 * len(names)} keys)" in str(error.value)


def test_an_adapter_of_another_generation_is_refused(model, base, v15_44k, v1_16k):
    for other in (v15_44k, v1_16k):
        with pytest.raises(LoRAError, match="It was made for v1"):
            model.load_lora(other.lora)
    assert np.array_equal(speak(model), base)


def test_a_model_with_an_adapter_that_does_not_fit_does_not_load(v2_48k, v15_44k, torch_threads):
    before = threading.active_count()
    with pytest.raises(LoRAError):
        VoxCPM.from_pretrained(v2_48k.path, device="cpu", lora_weights_path=v15_44k.lora)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "config",
    [*("{", "[]", "null", '{"lora_config": null}', '{"lora_config": 3}', '{"alpha": "much"}', '{"alpha": null}')],
)
def test_a_config_that_makes_no_sense_is_named(model, adapter, config):
    with pytest.raises(LoRAError, match="lora_config.json"):
        model.load_lora(adapter(config=config))
    assert model.lora is None


def test_what_is_not_there_or_not_readable_is_named(model, tmp_path):
    with pytest.raises(LoRAError, match="No adapter at .*nowhere"):
        model.load_lora(tmp_path / "nowhere")
    with pytest.raises(LoRAError, match="expected a folder with"):
        model.load_lora(tmp_path)
    (tmp_path / "lora_weights.safetensors").write_bytes(b"half a fi")
    with pytest.raises(LoRAError, match="lora_weights.safetensors is not a readable"):
        model.load_lora(tmp_path)


def test_switching_without_an_adapter_does_nothing(model, base):
    model.set_lora_enabled(True)
    assert not model.lora_enabled and model.lora is None
    model.unload_lora()
    assert np.array_equal(speak(model), base)

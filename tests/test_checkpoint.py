"""Loading: strict about every tensor, deaf to code in files, honest about rates; says what a half folder lacks."""

import json
import pickle
import shutil
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from voxcpm_core import CheckpointError, LoRAError, VoxCPM
from voxcpm_core.checkpoint import NANO, checkpoint_files, find_checkpoint, fingerprint, fold_weight_norm, load
from voxcpm_core.config import read_config, read_generation_defaults, vae_config_from_shapes

CPU = torch.device("cpu")
RATES = {"v1_16k": (16000, 16000), "v15_44k": (44100, 44100), "v2_48k": (16000, 48000)}


@pytest.fixture
def folder(v2_48k, tmp_path, torch_threads):
    """A copy of a checkpoint to spoil."""
    return copy_of(v2_48k, tmp_path)


def copy_of(golden, tmp_path):
    names = ("config.json", "tokenizer.json", "model.safetensors", "pytorch_model.bin", "audiovae.pth")
    folder = tmp_path / golden.name
    folder.mkdir()
    for name in names:
        if (golden.path / name).is_file():
            shutil.copyfile(golden.path / name, folder / name)
    return folder


def edit_model(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def edit_config(folder, change):
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def vae_tensors(folder):
    content = torch.load(folder / "audiovae.pth", weights_only=True)
    return content.get("state_dict", content)


def audio(path):
    with VoxCPM.from_pretrained(path, device="cpu") as model:
        return model.generate(text="hello world, the end.", seed=123, max_len=6, retry_badcase=False)


# ---- every tensor is accounted for


@pytest.mark.parametrize("name", ["stop_head.weight", "stop_proj.bias", "base_lm.layers.1.self_attn.q_proj.weight"])
def test_a_missing_tensor_is_named(folder, name):
    edit_model(folder, lambda tensors: tensors.pop(name))
    with pytest.raises(CheckpointError, match=f"model.safetensors does not fit.*Missing \\(1\\): {name}"):
        load(folder, CPU)


def test_a_tensor_of_another_shape_is_named_with_both_shapes(folder):
    edit_model(folder, lambda tensors: tensors.update({"stop_head.weight": torch.zeros(3, 64)}))
    with pytest.raises(CheckpointError, match=r"stop_head.weight \(3, 64\) instead of \(2, 64\)"):
        load(folder, CPU)


def test_an_unknown_tensor_is_warned_about_by_name(folder, v2_48k, caplog):
    edit_model(folder, lambda tensors: tensors.update({"left.over": torch.zeros(2)}))
    samples = audio(folder)
    assert "left.over" in caplog.text and "1 tensors" in caplog.text
    assert np.array_equal(samples, audio(v2_48k.path))


def test_all_that_is_wrong_is_told_at_once(folder):
    def change(tensors):
        tensors["renamed.weight"] = tensors.pop("stop_head.weight")
        tensors["stop_proj.bias"] = torch.zeros(5)

    edit_model(folder, change)
    with pytest.raises(CheckpointError) as error:
        load(folder, CPU)
    for part in ("Missing (1): stop_head.weight", "stop_proj.bias (5,)", "Unknown (1): renamed.weight"):
        assert part in str(error.value)


def test_a_missing_tensor_of_the_audio_vae_is_named(folder):
    tensors = vae_tensors(folder)
    del tensors["encoder.fc_mu.bias"]
    torch.save({"state_dict": tensors}, folder / "audiovae.pth")
    with pytest.raises(CheckpointError, match="audiovae.pth.*encoder.fc_mu.bias"):
        load(folder, CPU)


def test_half_of_a_weight_normalised_layer_is_named(folder):
    tensors = {f"encoder.block.0.{name}": torch.ones(4, 1, 7) for name in ("weight_v", "bias")}
    with pytest.raises(CheckpointError, match="lacks encoder.block.0.weight_g"):
        fold_weight_norm(tensors)


def test_a_model_that_failed_to_load_leaves_no_thread(folder):
    import threading

    before = threading.active_count()
    edit_model(folder, lambda tensors: tensors.pop("stop_head.weight"))
    with pytest.raises(CheckpointError):
        VoxCPM.from_pretrained(folder, device="cpu")
    assert threading.active_count() == before


# ---- every file is accounted for


def test_an_empty_folder_lists_all_it_lacks(tmp_path):
    with pytest.raises(CheckpointError) as error:
        checkpoint_files(tmp_path)
    for name in ("config.json", "tokenizer.json", "model.safetensors", "audiovae"):
        assert name in str(error.value)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors", "audiovae.pth"])
def test_a_half_copied_folder_names_the_file(folder, name):
    (folder / name).unlink()
    with pytest.raises(CheckpointError) as error:
        VoxCPM.from_pretrained(folder, device="cpu")
    assert name in str(error.value) and str(folder) in str(error.value)


def test_a_half_downloaded_file_is_named(folder):
    data = (folder / "model.safetensors").read_bytes()
    for length in (0, 4, 1000, len(data) // 2):
        (folder / "model.safetensors").write_bytes(data[:length])
        with pytest.raises(CheckpointError, match="model.safetensors is not a readable safetensors file"):
            VoxCPM.from_pretrained(folder, device="cpu")


def test_a_half_downloaded_audio_vae_is_named(folder):
    data = (folder / "audiovae.pth").read_bytes()
    for length in (0, 1000, len(data) // 2):
        (folder / "audiovae.pth").write_bytes(data[:length])
        with pytest.raises(CheckpointError, match="audiovae.pth"):
            VoxCPM.from_pretrained(folder, device="cpu")


@pytest.mark.parametrize("content", ["", "{", "\x00\xff", '{"architecture": "voxcpm2"}', "[]", "null", "3"])
def test_a_broken_config_is_named(folder, content):
    (folder / "config.json").write_text(content, encoding="latin-1")
    with pytest.raises(CheckpointError, match="config.json"):
        VoxCPM.from_pretrained(folder, device="cpu")


@pytest.mark.parametrize(
    ("key", "value"),
    [("lm_config", None), ("lm_config", 3), ("patch_size", "four"), ("feat_dim", None), ("encoder_config", [])],
)
def test_a_config_value_that_makes_no_sense_is_named(folder, key, value):
    edit_config(folder, lambda config: config.update({key: value}))
    with pytest.raises(CheckpointError, match="config.json"):
        VoxCPM.from_pretrained(folder, device="cpu")


@pytest.mark.parametrize("content", ["{", "[]", '{"cfg_value": "high"}', '{"inference_timesteps": 0}'])
def test_broken_generation_defaults_are_named(folder, content):
    (folder / "generation_config.json").write_text(content)
    with pytest.raises(CheckpointError, match="generation_config.json"):
        VoxCPM.from_pretrained(folder, device="cpu")


def test_a_broken_tokenizer_is_named(folder):
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match="tokenizer.json"):
        VoxCPM.from_pretrained(folder, device="cpu")


def test_an_unknown_architecture_is_named(folder):
    edit_config(folder, lambda config: config.update(architecture="voxcpm9"))
    with pytest.raises(CheckpointError, match="'voxcpm9'; this program knows 'voxcpm' and 'voxcpm2'"):
        VoxCPM.from_pretrained(folder, device="cpu")


def test_a_config_of_another_size_does_not_fit_the_weights(folder):
    edit_config(folder, lambda config: config["lm_config"].update(num_hidden_layers=4))
    with pytest.raises(CheckpointError, match="Missing.*base_lm.layers.3"):
        load(folder, CPU)


def test_a_folder_or_name_that_does_not_exist(tmp_path):
    for name in (tmp_path / "none", "./none", "none", "~/none", "a/b/c"):
        with pytest.raises(CheckpointError, match="There is no folder"):
            find_checkpoint(name)
    assert find_checkpoint("nano") == NANO and (NANO / "config.json").is_file()


def test_a_hub_id_without_a_network_ends_fast_with_a_sentence(tmp_path):
    start = time.perf_counter()
    for more in ({}, {"local_files_only": True}):
        with pytest.raises(CheckpointError) as error:
            VoxCPM.from_pretrained("openbmb/VoxCPM2", cache_dir=tmp_path, device="cpu", **more)
        assert "openbmb/VoxCPM2 could not be taken from the hub" in str(error.value)
        assert "give its path" in str(error.value)
    assert time.perf_counter() - start < 10


# ---- other layouts of the same weights


def test_pickled_weights_equal_safetensors(folder, v2_48k):
    expected = audio(v2_48k.path)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    for content in (tensors, {"state_dict": tensors}):
        torch.save(content, folder / "pytorch_model.bin")
        assert np.array_equal(audio(folder), expected)
    torch.save({"state_dict": tensors}, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    assert np.array_equal(audio(folder), expected)


def test_safetensors_are_preferred(folder):
    (folder / "pytorch_model.bin").write_bytes(b"not even a pickle")
    load(folder, CPU)


def test_shards(folder, v2_48k):
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = [names[0::3], names[1::3], names[2::3]]
    files = [f"model-{number:05d}-of-00003.safetensors" for number in (1, 2, 3)]
    for file, part in zip(files, parts, strict=True):
        save_file({name: tensors[name] for name in part}, folder / file)
    index = {name: file for file, part in zip(files, parts, strict=True) for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    assert np.array_equal(audio(folder), audio(v2_48k.path))
    (folder / files[1]).unlink()
    with pytest.raises(CheckpointError) as error:
        VoxCPM.from_pretrained(folder, device="cpu")
    assert parts[1][0] in str(error.value) or files[1] in str(error.value)


def test_both_spellings_of_weight_norm_and_folded_weights(golden, tmp_path, torch_threads):
    folder = copy_of(golden, tmp_path)
    expected = audio(golden.path)
    tensors = vae_tensors(folder)
    kinds = {"weight_g": "parametrizations.weight.original0", "weight_v": "parametrizations.weight.original1"}
    renamed = {}
    for name, tensor in tensors.items():
        stem, _, leaf = name.rpartition(".")
        renamed[f"{stem}.{kinds.get(leaf, leaf)}"] = tensor
    assert renamed.keys() != tensors.keys(), "the golden file has no weight norm: nothing is tested"
    torch.save({"state_dict": renamed}, folder / "audiovae.pth")
    assert np.array_equal(audio(folder), expected)
    folded = {name: tensor.contiguous() for name, tensor in fold_weight_norm(tensors).items()}
    assert not any("weight_g" in name or "parametrizations" in name for name in folded)
    (folder / "audiovae.pth").unlink()
    save_file(folded, folder / "audiovae.safetensors")
    assert np.array_equal(audio(folder), expected)


def test_folding_is_torchs_weight_norm():
    for layer in (torch.nn.Conv1d(3, 5, 7), torch.nn.ConvTranspose1d(3, 5, 4)):
        weight = layer.weight.detach().clone()
        normed = torch.nn.utils.parametrizations.weight_norm(layer)
        tensors = {f"a.{name}": tensor * 1.5 for name, tensor in normed.state_dict().items()}
        torch.testing.assert_close(fold_weight_norm(tensors)["a.weight"], weight * 1.5, atol=1e-6, rtol=1e-5)


# ---- rates


def test_rates_are_those_of_the_generation(golden, torch_threads):
    with VoxCPM.from_pretrained(golden.path, device="cpu") as model:
        config = model.tts_model.audio_vae.config
        take = model.generate_takes(text="hello", seed=1, max_len=3)[0]
    assert (config.sample_rate, config.out_sample_rate) == RATES[golden.name]
    assert take.sample_rate == model.sample_rate == RATES[golden.name][1]
    assert len(take.samples) == take.patches * round(model.patch_seconds * model.sample_rate)


def test_without_audio_vae_config_rates_are_read_off_the_weights(golden, tmp_path, torch_threads):
    folder = copy_of(golden, tmp_path)
    edit_config(folder, lambda config: config.pop("audio_vae_config", None))
    _, vae = load(folder, CPU)
    _, original = load(golden.path, CPU)
    assert (vae.config.sample_rate, vae.config.out_sample_rate) == RATES[golden.name]
    assert vae.config == original.config
    assert np.array_equal(audio(folder), audio(golden.path))


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_strange_strides_without_audio_vae_config_are_an_error(v2_48k, side):
    shapes = {name: tuple(t.shape) for name, t in fold_weight_norm(vae_tensors(v2_48k.path)).items()}
    assert vae_config_from_shapes(shapes, 2).out_sample_rate == 48000
    name = "encoder.block.1.block.4.weight" if side == "encoder" else "decoder.model.2.block.1.weight"
    shapes[name] = (*shapes[name][:2], shapes[name][2] * 2)
    with pytest.raises(CheckpointError, match="Add audio_vae_config to config.json"):
        vae_config_from_shapes(shapes, 2)


def test_a_config_that_contradicts_the_audio_vae_is_an_error(folder):
    edit_config(folder, lambda config: config["audio_vae_config"].update(decoder_rates=[8, 6, 5, 4, 2]))
    with pytest.raises(CheckpointError, match="audiovae.pth does not fit"):
        load(folder, CPU)


def test_an_audio_vae_of_another_kind_without_config_is_an_error():
    with pytest.raises(CheckpointError, match="config.json has no audio_vae_config"):
        vae_config_from_shapes({"encoder.conv.weight": (3, 3, 7)}, 1)


# ---- files that carry code


class Payload:
    """Unpickled, it would write a file."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (open, (str(self.marker), "w"))


def hostile_files(marker):
    payload = Payload(marker)
    return {
        "plain pickle": lambda path: path.write_bytes(pickle.dumps(payload, protocol=2)),
        "old torch file": lambda path: torch.save({"a": payload}, path, _use_new_zipfile_serialization=False),
        "zipped torch file": lambda path: torch.save({"state_dict": {"a": torch.zeros(1), "b": payload}}, path),
    }


@pytest.mark.parametrize("kind", ["plain pickle", "old torch file", "zipped torch file"])
@pytest.mark.parametrize("name", ["pytorch_model.bin", "audiovae.pth", "lora_weights.ckpt"])
def test_code_in_a_file_is_not_run(folder, v2_48k, tmp_path, kind, name):
    marker = tmp_path / "code was run"
    write = hostile_files(marker)[kind]
    if name == "lora_weights.ckpt":
        write(tmp_path / name)
        with VoxCPM.from_pretrained(v2_48k.path, device="cpu") as model:
            for path in (tmp_path, tmp_path / name):
                with pytest.raises(LoRAError, match="lora_weights.ckpt cannot be read as plain weights"):
                    model.load_lora(path)
            assert model.lora is None
    else:
        if name == "pytorch_model.bin":
            (folder / "model.safetensors").unlink()
        write(folder / name)
        with pytest.raises(CheckpointError, match=f"{name} cannot be read as plain weights"):
            VoxCPM.from_pretrained(folder, device="cpu")
    assert not marker.exists()
    pickle.loads(pickle.dumps(Payload(marker))).close()
    assert marker.exists(), "the payload is harmless: nothing is tested"


def test_a_file_of_something_else_than_tensors_is_refused(folder):
    (folder / "model.safetensors").unlink()
    for content in ([torch.zeros(1)], {"a": 1}, {"state_dict": {"a": {"b": torch.zeros(1)}}}):
        torch.save(content, folder / "pytorch_model.bin")
        with pytest.raises(CheckpointError, match="not a dictionary of tensors"):
            load(folder, CPU)


# ---- what else loading tells


def test_on_progress_is_called_from_start_to_ready(folder):
    told = []
    VoxCPM.from_pretrained(folder, device="cpu", on_progress=lambda *what: told.append(what)).close()
    assert told[-1] == ("ready", 1.0)
    stages = list(dict.fromkeys(stage for stage, _ in told))
    assert "loading weights" in stages and len(stages) >= 3
    fractions = [fraction for stage, fraction in told if stage == "loading weights"]
    assert fractions == sorted(fractions) and 0 < fractions[0] < 0.1 and fractions[-1] == pytest.approx(1.0)


def test_the_fingerprint_changes_with_the_weights(folder, v2_48k):
    before = fingerprint(folder)
    assert before == fingerprint(v2_48k.path) and len(before) == 16
    edit_model(folder, lambda tensors: tensors["stop_head.weight"].add_(1.0))
    assert fingerprint(folder) != before


def test_generation_defaults_are_the_checkpoints_own(folder):
    assert read_generation_defaults(folder).inference_timesteps == 10
    (folder / "generation_config.json").write_text('{"inference_timesteps": 5, "cfg_value": 1.5, "unknown": 1}')
    with VoxCPM.from_pretrained(folder, device="cpu") as model:
        take = model.generate_takes(text="hi", seed=1, max_len=2)[0]
        assert (take.inference_timesteps, take.cfg_value, take.temperature) == (5, 1.5, 1.0)
        assert model.generate_takes(text="hi", seed=1, max_len=2, cfg_value=0.0)[0].cfg_value == 0.0


def test_unused_keys_of_the_config_are_ignored(folder):
    edit_config(folder, lambda config: config.update(training_only={"a": 1}))
    assert read_config(folder) == read_config(folder) and read_config(folder).version == 2


def test_loaded_weights_need_no_gradient(folder):
    model, vae = load(folder, CPU)
    tensors = [*model.parameters(), *vae.parameters()]
    assert tensors and not any(tensor.requires_grad for tensor in tensors)

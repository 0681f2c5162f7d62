"""An adapter belongs to a request: rows with different ones never share a batch, and each sounds as it does alone."""

import json
import os
import shutil

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from voxcpm_core import LoRAError, RequestError, SpeechRequest, VoxCPM

TEXT = "hello world, the end."


@pytest.fixture(scope="module")
def model(v2_48k, torch_threads):
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu") as model:
        yield model


@pytest.fixture(scope="module")
def other(v2_48k, tmp_path_factory):
    """The golden adapter the other way round."""
    return scaled(v2_48k.lora, tmp_path_factory.mktemp("other"), -1.5)


@pytest.fixture(scope="module")
def alone(v2_48k, model, other):
    """Without an adapter, with one, and with the other: attached to a model that does nothing else."""
    found = {"": made(model)}
    for path in (v2_48k.lora, other):
        model.load_lora(path)
        found[str(path)] = made(model)
    model.unload_lora()
    return found


def scaled(source, folder, factor):
    tensors = load_file(source / "lora_weights.safetensors")
    save_file(
        {n: t * factor if n.endswith("B") else t for n, t in tensors.items()}, folder / "lora_weights.safetensors"
    )
    shutil.copyfile(source / "lora_config.json", folder / "lora_config.json")
    return folder


def request(lora=None, **fields):
    return SpeechRequest(text=TEXT, lora=lora, **{"seed": 7, "max_len": 4, "min_len": 100, **fields})


def made(model, lora=None, **fields):
    return model.generate_takes(request(lora, **fields))[0].samples


def test_a_mixed_batch_sounds_as_each_request_alone(model, alone, v2_48k, other):
    one, two = str(v2_48k.lora), str(other)
    order = [one, "", two, one, ""]
    assert min(np.abs(alone[a] - alone[b]).max() for a, b in ((one, two), (one, ""), (two, ""))) > 1e-3
    takes = model.generate_batch([request(lora) for lora in order])
    for take, lora in zip(takes, order, strict=True):
        assert np.array_equal(take.samples, alone[lora]), f"the row with {lora!r} heard another adapter"


def test_rows_with_one_adapter_share_their_turns(model, v2_48k):
    before = model.steps
    model.generate_batch([request(v2_48k.lora, seed=k) for k in range(3)])
    together = model.steps - before
    model.generate_batch([request(v2_48k.lora), request(""), request(v2_48k.lora)])
    assert together == 6, "four patches, and one request is read in each turn"
    assert model.steps - before - together == 12


def test_who_comes_later_does_not_overtake_who_waits_for_the_switch(model, v2_48k):
    """One adapter after the other, in order of arrival: nobody waits for ever."""
    running = model.start(request(v2_48k.lora, max_len=12))
    waiting = model.start(request("", max_len=12))
    late = model.start(request(v2_48k.lora, max_len=2))
    assert late.wait(60)
    assert running.takes[0] is not None and waiting.takes[0] is not None


def test_what_is_attached_counts_for_requests_that_say_nothing(model, alone, v2_48k, other):
    model.load_lora(v2_48k.lora)
    one, two = str(v2_48k.lora), str(other)
    takes = model.generate_batch([request(), request(""), request(two)])
    assert [np.array_equal(t.samples, alone[k]) for t, k in zip(takes, (one, "", two), strict=True)] == [True] * 3
    assert model.lora_of(request())["hash"] == model.lora["hash"] and model.lora_of(request("")) is None
    model.set_lora_enabled(False)
    assert model.lora_of(request()) is None and np.array_equal(made(model), alone[""])
    model.unload_lora()


def test_strength_scales_what_the_adapter_adds(model, alone, v2_48k, tmp_path):
    half = scaled(v2_48k.lora, tmp_path, 0.5)
    assert np.array_equal(made(model, v2_48k.lora, lora_strength=0.0), alone[""])
    weak = made(model, v2_48k.lora, lora_strength=0.5)
    assert np.abs(weak - made(model, half)).max() <= 1e-4
    assert np.abs(weak - alone[str(v2_48k.lora)]).max() > 1e-3
    assert model.lora_of(request(v2_48k.lora, lora_strength=0.5))["strength"] == 0.5
    for wrong in (-0.1, 2.5, float("nan"), True, "1"):
        with pytest.raises(RequestError, match="lora_strength"):
            model.start(request(v2_48k.lora, lora_strength=wrong))


def test_a_voice_is_read_once_for_each_adapter(model, v2_48k, monkeypatch):
    reads, original = [], model.model.prefill_voice
    monkeypatch.setattr(model.model, "prefill_voice", lambda *a: reads.append(1) or original(*a))
    voice = {"reference_wav_path": v2_48k.reference, "max_len": 2}
    first = [made(model, lora, **voice) for lora in ("", v2_48k.lora)]
    again = [made(model, lora, **voice) for lora in ("", v2_48k.lora)]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True)) and len(reads) == 2
    assert set(model.voice_state(v2_48k.reference)) != {"latents"}, "the base model's part of the voice is kept"


def test_a_wrong_adapter_is_refused_before_any_work(model, v15_44k, tmp_path):
    before = model.steps
    with pytest.raises(LoRAError, match="was made for v15_44k") as error:
        model.start(request(v15_44k.lora))
    assert error.value.made_for == "v15_44k"
    with pytest.raises(LoRAError, match="No adapter at"):
        model.start([request(""), request(tmp_path / "nowhere")])
    with pytest.raises(RequestError, match="lora is 3"):
        model.start(request(3))
    assert model.steps == before


def test_an_adapter_whose_file_has_changed_is_read_again(model, alone, v2_48k, other, tmp_path):
    folder = scaled(v2_48k.lora, tmp_path, 1.0)
    first = model.lora_of(request(folder))
    assert np.array_equal(made(model, folder), alone[str(v2_48k.lora)])
    scaled(v2_48k.lora, folder, -1.5)
    os.utime(folder / "lora_weights.safetensors", ns=(1, 1))
    assert model.lora_of(request(folder))["hash"] != first["hash"]
    assert np.array_equal(made(model, folder), alone[str(other)])
    config = json.loads((folder / "lora_config.json").read_text())
    config["lora_config"]["alpha"] *= 2
    (folder / "lora_config.json").write_text(json.dumps(config))
    os.utime(folder / "lora_config.json", ns=(2, 2))
    assert np.abs(made(model, folder) - alone[str(other)]).max() > 1e-3

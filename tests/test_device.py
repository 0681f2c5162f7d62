"""Which device and which number format, for machines we do not have (as fakes) and for the one we are on."""

import numpy as np
import pytest
import torch

from voxcpm_core import RequestError, SpeechRequest, VoxCPM, VoxCPMError
from voxcpm_core.device import choose_device, choose_dtype, choose_dtype_here

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32


@pytest.fixture
def machine(monkeypatch):
    """machine(cuda=2, mps=True): makes torch report such a machine."""

    def become(cuda=0, mps=False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return become


@pytest.mark.parametrize("name", ["auto", None, ""])
@pytest.mark.parametrize(
    ("cuda", "mps", "expected"), [(0, False, "cpu"), (1, False, "cuda"), (0, True, "mps"), (2, True, "cuda")]
)
def test_auto_takes_the_best_there_is(machine, name, cuda, mps, expected):
    machine(cuda, mps)
    assert choose_device(name).type == expected


@pytest.mark.parametrize("name", ["cpu", "cuda", "cuda:0", "cuda:1", "mps"])
def test_what_is_asked_for_is_taken(machine, name):
    machine(cuda=2, mps=True)
    assert choose_device(name) == torch.device(name)


@pytest.mark.parametrize(
    ("name", "cuda", "sentence"),
    [
        ("cuda", 0, "'cuda' is not there: this machine has 0 CUDA devices"),
        ("cuda:1", 1, "'cuda:1' is not there: this machine has 1 CUDA devices"),
        ("mps", 1, "'mps' is not there"),
        ("gpu", 1, "'gpu' is unknown; use auto, cpu"),
        ("cuda:x", 1, "'cuda:x' is unknown"),
        ("meta", 1, "'meta' is unknown"),
        ("xpu", 1, "'xpu' is unknown"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(machine, name, cuda, sentence):
    machine(cuda)
    with pytest.raises(RequestError, match=sentence):
        choose_device(name)


@pytest.mark.parametrize(
    ("wanted", "published", "device", "cuda_bf16", "cpu_bf16", "expected"),
    [
        ("auto", "bfloat16", "cuda", True, False, BF16),
        ("auto", "bfloat16", "cuda", False, True, FP32),  # a card before Ampere
        ("auto", "bfloat16", "cpu", True, False, FP32),
        ("auto", "bfloat16", "cpu", False, True, BF16),
        ("auto", "bf16", "cuda", True, False, BF16),
        ("auto", "float32", "cuda", True, True, FP32),
        ("auto", "float32", "cpu", True, True, FP32),
        ("auto", "float16", "cuda", True, True, FP32),  # float16 overflows in these models
        ("auto", "bfloat16", "mps", False, False, FP32),
        ("bfloat16", "bfloat16", "mps", True, True, FP32),
        ("bfloat16", "float32", "cpu", False, False, BF16),
        ("float32", "bfloat16", "cuda", True, True, FP32),
        ("float16", "bfloat16", "cuda", True, True, FP16),
        ("fp32", "bfloat16", "cuda", True, True, FP32),
    ],
)
def test_number_format(wanted, published, device, cuda_bf16, cpu_bf16, expected):
    assert choose_dtype(wanted, published, device, cuda_bf16=cuda_bf16, cpu_bf16=cpu_bf16) == expected


def test_an_unknown_format_is_named():
    with pytest.raises(VoxCPMError, match="'int8' is unknown; use one of bfloat16"):
        choose_dtype("int8", "bfloat16", "cpu", cuda_bf16=True, cpu_bf16=True)


@pytest.mark.parametrize("supported", [True, False])
def test_the_card_is_asked_for_real_bfloat16(monkeypatch, supported):
    """An old card emulates it: is_bf16_supported says yes unless asked not to count that."""
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or supported
    )
    expected = BF16 if supported else FP32
    assert choose_dtype_here("auto", "bfloat16", torch.device("cuda")) == expected


def test_the_cpu_we_are_on_gets_a_format():
    assert choose_dtype_here("auto", "bfloat16", torch.device("cpu")) in (BF16, FP32)
    assert choose_dtype_here("auto", "float32", torch.device("cpu")) == FP32


def test_an_absent_device_is_refused_before_loading(machine, v2_48k):
    machine()
    told = []
    with pytest.raises(RequestError, match="CUDA devices"):
        VoxCPM.from_pretrained(v2_48k.path, device="cuda:3", on_progress=lambda stage, _: told.append(stage))
    assert "loading weights" not in told


def test_bfloat16_on_the_cpu_makes_audio_like_float32(golden, torch_threads):
    request = SpeechRequest(text="hello world, the end.", seed=123, max_len=6, min_len=100)
    made = {}
    for dtype in ("bfloat16", "float32"):
        with VoxCPM.from_pretrained(golden.path, device="cpu", dtype=dtype) as model:
            assert model.dtype == dtype and model.device == "cpu"
            assert model.model.dtype == getattr(torch, dtype)
            take = model.generate_takes(request)[0]
            assert take.patches == 6 and take.ended_by == "limit"
            assert len(take.samples) == 6 * round(model.patch_seconds * model.sample_rate)
            made[dtype] = take.samples
    coarse, fine = made["bfloat16"], made["float32"]
    assert coarse.dtype == np.float32 and np.isfinite(coarse).all()
    first = len(fine) // 6
    assert np.corrcoef(coarse[:first], fine[:first])[0, 1] > 0.9
    assert 0.5 < np.abs(coarse).max() / np.abs(fine).max() < 2.0


def test_bfloat16_serves_every_mode_an_adapter_and_a_batch(v2_48k, torch_threads):
    clip = {"prompt_wav_path": v2_48k.prompt, "prompt_text": "hello the world."}
    voice = {"reference_wav_path": v2_48k.reference}
    modes = [{}, {"control": "calm"}, voice, clip, {**voice, **clip}]
    requests = [SpeechRequest(text="hello", seed=1, max_len=4, min_len=100, **mode) for mode in modes]
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu", dtype="bfloat16", lora_weights_path=v2_48k.lora) as model:
        takes = model.generate_batch(requests)
        again = model.generate_batch(requests)
    assert all(take.patches == 4 and np.isfinite(take.samples).all() for take in takes)
    assert all(np.array_equal(one.samples, two.samples) for one, two in zip(takes, again, strict=True))


def test_the_audio_vae_stays_in_float32(v2_48k, torch_threads):
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu", dtype="bfloat16") as model:
        vae = model.tts_model.audio_vae
        assert {tensor.dtype for tensor in vae.parameters()} == {FP32}

"""Whole generations against the reference (at most 1e-4 apart), and streamed against whole (at most 1e-5)."""

import json

import numpy as np
import pytest

from voxcpm_core import SpeechRequest, VoxCPM

RUNS = ["plain", "design", "continuation", "reference", "ref_continuation"]


@pytest.fixture(scope="module")
def model(golden, torch_threads):
    with VoxCPM.from_pretrained(golden.path, device="cpu") as model:
        yield model


def fields(golden, run):
    texts = json.loads(str(golden.vectors()["run_texts"]))
    if run not in texts:
        pytest.skip(f"{golden.name} has no voice design and no reference")
    wanted = {"text": texts[run], "seed": 123, "cfg_value": 2.0, "inference_timesteps": 10, "min_len": 2, "max_len": 6}
    if "continuation" in run:
        wanted |= {"prompt_wav_path": golden.prompt, "prompt_text": "hello the world."}
    if run.startswith("ref"):
        wanted |= {"reference_wav_path": golden.reference}
    return wanted


@pytest.mark.parametrize("run", RUNS)
def test_whole_audio_equals_the_reference(model, golden, run):
    samples = model.generate(**fields(golden, run), retry_badcase=False)
    wanted = golden.vectors()[f"{run}_full_wav"]
    assert samples.shape == wanted.shape and samples.dtype == np.float32
    assert np.abs(samples - wanted).max() <= 1e-4


@pytest.mark.parametrize("run", RUNS)
def test_streamed_equals_whole_first_patch_included(model, golden, run):
    chunks = list(model.generate_streaming(**fields(golden, run)))
    assert [len(chunk) for chunk in chunks] == golden.vectors()[f"{run}_stream_chunks"].tolist()
    assert np.abs(np.concatenate(chunks) - golden.vectors()[f"{run}_full_wav"]).max() <= 1e-4
    whole = model.generate(**fields(golden, run), retry_badcase=False)
    assert np.abs(np.concatenate(chunks) - whole).max() <= 1e-5


@pytest.mark.parametrize("run", RUNS)
def test_a_first_prefix_equals_a_cached_one(model, golden, run):
    """The second request of a voice reuses what the first one computed; the audio must not show it."""
    first = model.generate(**fields(golden, run), retry_badcase=False)
    second = model.generate(**fields(golden, run), retry_badcase=False)
    assert np.array_equal(first, second)


def test_noise_is_the_private_generator_of_the_row(model, golden):
    """golden.npz records the reference's noise: ours is drawn from a CPU generator with the same seed."""
    import torch

    generator = torch.Generator().manual_seed(123)
    noise = golden.vectors()["plain_full_noise"]
    drawn = torch.stack([torch.randn(noise.shape[1:], generator=generator) for _ in noise])
    np.testing.assert_array_equal(drawn.numpy(), noise)


def test_stop_head_decides_the_length(golden, torch_threads, tmp_path):
    """With the two rows of the stop head swapped, what ran to the limit stops, or the other way round."""
    import shutil

    import torch

    from voxcpm_core import checkpoint

    folder = tmp_path / golden.name
    shutil.copytree(golden.path, folder, copy_function=shutil.copyfile)
    files, _ = checkpoint.checkpoint_files(folder)
    tensors = {name: tensor.clone() for name, tensor in checkpoint.read_tensors(files)}
    tensors["stop_head.weight"] = tensors["stop_head.weight"].flip(0)
    files[0].unlink()
    torch.save(tensors, folder / "pytorch_model.bin")
    request = SpeechRequest(text="hello world, the end.", seed=123, max_len=6)
    for path, key in ((golden.path, "samples_stop_as_is"), (folder, "samples_stop_swapped")):
        with VoxCPM.from_pretrained(path, device="cpu") as model:
            take = model.generate_takes(request)[0]
        assert len(take.samples) == int(golden.vectors()[key])
        assert take.ended_by == ("limit" if take.patches == 6 else "stop")

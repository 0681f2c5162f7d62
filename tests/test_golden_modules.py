"""Every module alone against what the reference computes on the tiny checkpoints: at most 1e-5 apart in float32."""

import json

import numpy as np
import pytest
import soundfile as sf
import torch

from voxcpm_core import checkpoint
from voxcpm_core.flow_matching import time_grid
from voxcpm_core.tokenizer import Tokenizer

TOLERANCE = 1e-5


class Loaded:
    def __init__(self, golden):
        self.golden, self.vectors = golden, golden.vectors()
        self.model, self.vae = checkpoint.load(golden.path, torch.device("cpu"))

    def vector(self, name):
        return torch.from_numpy(self.vectors[name])


@pytest.fixture(scope="module")
def loaded(golden, torch_threads):
    with torch.inference_mode():
        yield Loaded(golden)


def assert_close(ours, theirs):
    assert ours.shape == theirs.shape
    assert (ours - theirs).abs().max().item() <= TOLERANCE


def test_tokens(loaded):
    tokenizer = Tokenizer(loaded.golden.path / "tokenizer.json", loaded.model.config.lm.vocab_size)
    for text, ids in zip(loaded.vectors["token_texts"], loaded.vectors["token_ids"], strict=True):
        assert tokenizer.encode(str(text)) == json.loads(str(ids))


@pytest.mark.parametrize("name", ["base_lm", "residual_lm"])
def test_language_models(loaded, name):
    hidden, _ = getattr(loaded.model, name).prefill(loaded.vector("lm_in"))
    assert_close(hidden, loaded.vector(f"{name}_out"))


@pytest.mark.parametrize("name", ["base_lm", "residual_lm"])
def test_prefill_in_pieces_equals_one_shot(loaded, name):
    stack, x = getattr(loaded.model, name), loaded.vector("lm_in")
    first, prefix = stack.prefill(x[:, :4])
    second, _ = stack.prefill(x[:, 4:], prefix)
    assert_close(torch.cat((first, second), 1), loaded.vector(f"{name}_out"))


@pytest.mark.parametrize("name", ["base_lm", "residual_lm"])
def test_steps_after_a_prefill_equal_one_shot_for_rows_of_different_length(loaded, name):
    batch = loaded.model.new_batch()
    stack, x = getattr(loaded.model, name), loaded.vector("lm_in")
    cache = batch.base if name == "base_lm" else batch.residual
    for start in (2, 5):
        cache.add_row(stack.prefill(x[:, :start])[1])
    for offset in range(4):
        out = stack.step(torch.cat((x[:, 2 + offset], x[:, 5 + offset])), cache)
        wanted = loaded.vector(f"{name}_out")[0]
        assert_close(out, torch.stack((wanted[2 + offset], wanted[5 + offset])))


def test_fsq(loaded):
    assert_close(loaded.model.fsq_layer(loaded.vector("lm_in")), loaded.vector("fsq_out"))


def test_local_encoder(loaded):
    assert_close(loaded.model.feat_encoder(loaded.vector("locenc_in")[0]), loaded.vector("locenc_out")[0])


def test_diffusion_estimator(loaded):
    estimator = loaded.model.feat_decoder.estimator
    mu = loaded.vector("dit_mu").view(2, -1, estimator.hidden)
    condition = estimator.cond_proj(loaded.vector("dit_cond").transpose(1, 2))
    times = estimator.time_embedding(loaded.vector("dit_t"))
    x = loaded.vector("dit_x").transpose(1, 2)
    out = [estimator(x[i : i + 1], times[i], mu[i : i + 1], condition[i : i + 1]) for i in range(2)]
    assert_close(torch.cat(out).transpose(1, 2), loaded.vector("dit_out"))


def test_decoder_whole(loaded):
    samples, _ = loaded.vae.decode(loaded.vector("vae_decode_in").transpose(1, 2))
    assert_close(samples, loaded.vector("vae_decode_out")[0])


@pytest.mark.parametrize("pieces", [(1,) * 8, (2, 4, 2), (5, 3)])
def test_decoder_in_pieces_equals_whole(loaded, pieces):
    latents, state, parts = loaded.vector("vae_decode_in").transpose(1, 2), None, []
    for piece in latents.split(pieces, dim=1):
        samples, state = loaded.vae.decode(piece, state)
        parts.append(samples)
    assert_close(torch.cat(parts, 1), loaded.vector("vae_decode_out")[0])


@pytest.mark.parametrize("clip", ["ref", "prompt"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_encoder(loaded, clip, side):
    if f"feat_{clip}_{side}" not in loaded.vectors:
        pytest.skip("the first generations pad on the left only")
    path = loaded.golden.reference if clip == "ref" else loaded.golden.prompt
    samples, rate = sf.read(path, dtype="float32")
    assert rate == loaded.vae.config.sample_rate
    config = loaded.model.config
    short = -len(samples) % (config.patch_size * loaded.vae.config.encoder_hop)
    padded = np.pad(samples, (short, 0) if side == "left" else (0, short))
    latents = loaded.vae.encode(torch.from_numpy(padded)[None])
    assert_close(latents.view(-1, config.patch_size, config.feat_dim), loaded.vector(f"feat_{clip}_{side}"))


def test_times_of_the_solver():
    """The first of the published ten steps is at zero velocity; the times are those of the reference."""
    times, deltas = time_grid(10, torch.float32)
    wanted = [0.956434, 0.909017, 0.85399, 0.787785, 0.707107, 0.609017, 0.491007, 0.351057, 0.187688]
    np.testing.assert_allclose(times.numpy(), wanted, atol=1e-6)
    np.testing.assert_allclose(deltas.sum().item(), wanted[0], atol=1e-6)
    wanted_bf16 = [0.953125, 0.910156, 0.851562, 0.789062, 0.707031, 0.609375, 0.492188, 0.349609, 0.188477]
    np.testing.assert_allclose(time_grid(10, torch.bfloat16)[0].float().numpy(), wanted_bf16, atol=1e-6)

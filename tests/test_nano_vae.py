"""Training an AudioVAE: gradients, a loss that falls, going on after a stop, the file that comes out."""

import itertools
import json
from pathlib import Path

import pytest
import torch

from voxcpm_core.audio_vae import AudioVAE
from voxcpm_core.audio_vae_gradients import DepthwiseWithGradient, SnakeWithGradient
from voxcpm_core.checkpoint import fold_weight_norm, read_tensors
from voxcpm_core.config import read_config
from voxcpm_core.training.vae import CONTEXT, Length, load_trainable, save_vae, train_decoder, train_encoder
from voxcpm_core.training.vae_losses import Discriminators, adversarial_losses, feature_distance, spectral_loss

NANO = Path(__file__).resolve().parents[1] / "assets" / "nano"


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype).requires_grad_()


def test_gradient_of_snake():
    alpha = (random(3, seed=1).detach().abs() + 0.3).requires_grad_()
    torch.autograd.gradcheck(lambda x, a: SnakeWithGradient.apply(x, a, 1 / (a + 1e-9)), (random(2, 7, 3), alpha))


def test_gradient_of_the_depthwise_convolution():
    history, taps, bias = random(2, 9 + 12, 3), random(7, 3, seed=1), random(3, seed=2)
    torch.autograd.gradcheck(lambda h, t, b: DepthwiseWithGradient.apply(h, t, b, 2), (history, taps, bias))


def test_training_and_inference_compute_the_same():
    vae = load_trainable(NANO)
    samples = 0.1 * random(1, 4 * vae.hop_length, dtype=torch.float32).detach()
    with torch.no_grad():
        latents = vae.encode(samples)
        sound, _ = vae.decode(latents)
    vae.requires_grad_(True)
    trained = vae.encode(samples)
    assert trained.requires_grad
    assert torch.allclose(trained, latents, atol=1e-5)
    assert torch.allclose(vae.decode(latents)[0], sound, atol=1e-5)


def small_problem(vae: AudioVAE):
    """Always the same half second: latents that the encoder as it is misses by a constant."""
    samples = 0.1 * random(1, 12 * vae.hop_length, dtype=torch.float32).detach()
    with torch.no_grad():
        target = vae.encode(samples) + 0.5
    weight = torch.ones_like(target)
    weight[:, :2] = 0
    return samples, target, weight


def test_the_encoder_learns_and_goes_on_after_a_stop(tmp_path):
    vae = load_trainable(NANO)
    batch = small_problem(vae)
    state = tmp_path / "state.pt"

    def error(net: AudioVAE) -> float:
        with torch.no_grad():
            return float((net.encode(batch[0]) - batch[1])[:, 2:].pow(2).mean())

    before = error(vae)
    train_encoder(vae, itertools.repeat(batch), Length(steps=12), state)
    assert error(vae) < 0.7 * before
    assert not any(p.requires_grad for p in vae.parameters())
    fresh = load_trainable(NANO)
    train_encoder(fresh, itertools.repeat(batch), Length(steps=12), state)  # the steps are over: only the state is read
    assert error(fresh) == pytest.approx(error(vae))
    old = load_trainable(NANO)
    assert all(torch.equal(a, b) for a, b in zip(old.decoder.parameters(), vae.decoder.parameters(), strict=True))


@pytest.mark.parametrize("adversarial", [False, True])
def test_the_decoder_learns(tmp_path, adversarial):
    vae = load_trainable(NANO)
    z = random(1, CONTEXT + 4, vae.config.latent_dim, dtype=torch.float32).detach()
    with torch.no_grad():
        goal = 0.5 * vae.decode(z)[0][:, CONTEXT * vae.hop_length :]

    def distance(net: AudioVAE) -> float:
        with torch.no_grad():
            return float(spectral_loss(net.decode(z)[0][:, CONTEXT * net.hop_length :], goal))

    before = distance(vae)
    train_decoder(
        vae, itertools.repeat((z, goal)), Length(steps=8), tmp_path / "state.pt", rate=1e-3, adversarial=adversarial
    )
    assert distance(vae) < before


def test_a_saved_codec_is_the_codec(tmp_path):
    vae = load_trainable(NANO)
    with torch.no_grad():
        vae.encoder.fc_mu.bias += 1
    save_vae(vae, tmp_path / "audiovae.safetensors")
    tensors = dict(read_tensors([tmp_path / "audiovae.safetensors"]))
    published = dict(read_tensors([NANO / "audiovae.safetensors"]))
    assert {name: t.shape for name, t in tensors.items()} == {name: t.shape for name, t in published.items()}
    again = AudioVAE(read_config(NANO).vae)
    again.load_state_dict({name: tensor.float() for name, tensor in fold_weight_norm(tensors).items()})
    for (name, one), other in zip(vae.named_parameters(), again.parameters(), strict=True):
        assert torch.allclose(one, other, rtol=3e-3, atol=1e-4), name


def test_spectral_loss_and_judges_tell_sounds_apart():
    real = 0.1 * random(1, 4000, dtype=torch.float32).detach()
    assert spectral_loss(real, real) == pytest.approx(0, abs=1e-6)
    assert spectral_loss(0.5 * real, real) > 0.5
    torch.manual_seed(0)
    judges = Discriminators()
    assert feature_distance(judges(real), judges(real)) == 0
    optimiser = torch.optim.AdamW(judges.parameters(), lr=1e-2)
    quiet = 0.2 * real
    for _ in range(40):
        optimiser.zero_grad()
        judging, _ = adversarial_losses(judges(real), judges(quiet))
        judging.backward()
        optimiser.step()
    assert judging < 1.9  # 2 at the beginning
    assert all(one.mean() > other.mean() for (one, _), (other, _) in zip(judges(real), judges(quiet), strict=True))


def test_check_uses_held_out_voices_and_compares_three_sounds(tmp_path, monkeypatch):
    from scripts.nano import measures, vae
    from tests.test_nano_measures import tone
    from voxcpm_core.audio import write_wav

    rows = []
    for name, split, pitch in (("one", "heldout_voice", 110), ("two", "heldout_voice", 210), ("three", "train", 150)):
        write_wav(tmp_path / f"{name}.wav", 0.3 * tone(pitch, 2.1), 16000)
        rows.append(
            dict(file=f"{name}.wav", voice=name, split=split, kind="short", duration_s=2.1, spoken="Seven birds.")
        )
    (tmp_path / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = []

    class Deaf:
        def __call__(self, samples, rate):
            asked.append(len(samples))
            return "seven"

    class Absent:
        available = False

    monkeypatch.setattr(measures, "Recogniser", Deaf)
    monkeypatch.setattr(measures, "Likeness", Absent)
    monkeypatch.setattr(measures, "quality", lambda samples, rate: 3.0)
    figures = vae.check([tmp_path], NANO, None, 5)
    assert len(asked) == 2 * 3  # the training voice is left out
    assert figures["word errors %, encoded"] == 50
    assert figures["DNSMOS, true latents"] == 3
    assert 0 < figures["latents, mean square error"] < 5
    assert figures["log-mel, mean absolute error"] > 0

"""Training an AudioVAE whose latents are given: the encoder learns to hit them, the decoder to turn them into sound.

Both run by the clock, or for a number of steps: the rate rises, then falls on a cosine until the end. A run is saved
every few minutes (file replaced at once) and goes on from there when it is started again. Batches are tensors from any
iterator; nothing here knows where latents come from.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from ..audio_vae import AudioVAE
from ..checkpoint import fold_weight_norm, read_tensors
from ..config import read_config
from ..errors import CheckpointError
from ..weights_file import save_weights
from .optim import Muon
from .vae_losses import Discriminators, adversarial_losses, feature_distance, spectral_loss

log = logging.getLogger(__name__)

SAVE_EVERY = 180.0  # seconds
LOG_EVERY = 50  # steps
WARM_UP = 50  # steps, in a short run a tenth of it
FINAL_SHARE = 0.05  # of the rate, at the end
CONTEXT = 6  # latents on the left of a crop that the decoder sees and is not scored on


def load_trainable(folder: Path) -> AudioVAE:
    """The AudioVAE of a checkpoint folder as plain modules: weights in their published shapes, nothing prepared."""
    config = read_config(folder)
    if config.vae is None:
        raise CheckpointError(f"{folder / 'config.json'} has no audio_vae_config; training an AudioVAE needs one.")
    vae = AudioVAE(config.vae)
    tensors = fold_weight_norm(dict(read_tensors([folder / "audiovae.safetensors"])))
    vae.load_state_dict({name: t.float() if t.is_floating_point() else t for name, t in tensors.items()})
    return vae


def save_vae(vae: AudioVAE, path: Path) -> None:
    """Writes ``audiovae.safetensors`` as published: float16, every convolution as direction and length."""
    tensors = {}
    for name, tensor in vae.state_dict().items():
        if name.endswith(".weight") and tensor.ndim == 3:
            stem = name.removesuffix("weight")
            length = tensor.flatten(1).norm(dim=1).view(-1, *[1] * (tensor.ndim - 1))
            tensors[stem + "weight_g"], tensors[stem + "weight_v"] = length, tensor
        else:
            tensors[name] = tensor
    halves = {k: (t.half() if t.is_floating_point() else t).contiguous().clone() for k, t in tensors.items()}
    part = path.with_name(path.name + ".part")
    save_weights(halves, part)
    os.replace(part, path)


@dataclass(frozen=True)
class Length:
    """Of a run: minutes in all, or steps in all where they are given."""

    minutes: float = 0.0
    steps: int = 0


@dataclass
class Run:
    """What a training run keeps between starts: networks, optimisers, the clock, smoothed losses."""

    length: Length
    state: Path
    networks: dict[str, nn.Module]
    optimisers: dict[str, torch.optim.Optimizer]
    done: float = 0.0  # minutes of earlier starts
    step: int = 0
    _sums: dict[str, float] = field(default_factory=dict)
    _started: float = field(default_factory=time.monotonic)
    _saved: float = field(default_factory=time.monotonic)

    def resume(self) -> bool:
        """Takes up the saved state, if there is one."""
        if not self.state.is_file():
            return False
        saved = torch.load(self.state, map_location="cpu", weights_only=True)
        for name, part in {**self.networks, **self.optimisers}.items():
            part.load_state_dict(saved[name])
        self.done, self.step = saved["done"], saved["step"]
        return True

    @property
    def elapsed(self) -> float:
        return self.done + (time.monotonic() - self._started) / 60

    def goes_on(self) -> bool:
        """Sets the rates for the next step; False when the time is over."""
        share = self.step / self.length.steps if self.length.steps else self.elapsed / self.length.minutes
        share = min(1.0, share)
        warm_up = min(WARM_UP, self.length.steps // 10 + 1) if self.length.steps else WARM_UP
        rising = min(1.0, (self.step + 1) / warm_up)
        falling = FINAL_SHARE + (1 - FINAL_SHARE) * (1 + math.cos(math.pi * share)) / 2
        for optimiser in self.optimisers.values():
            for group in optimiser.param_groups:
                group["lr"] = group.setdefault("highest", group["lr"]) * rising * falling
        return share < 1

    def after_step(self, losses: dict[str, Tensor]) -> None:
        self.step += 1
        for name, value in losses.items():
            self._sums[name] = self._sums.get(name, 0.0) + float(value.detach())
        if self.step % LOG_EVERY == 0:
            means = ", ".join(f"{name} {total / LOG_EVERY:.4f}" for name, total in self._sums.items())
            log.info("%.1f min, step %d: %s", self.elapsed, self.step, means)
            self._sums.clear()
        if time.monotonic() - self._saved > SAVE_EVERY:
            self.save()

    def save(self) -> None:
        content = {name: part.state_dict() for name, part in {**self.networks, **self.optimisers}.items()}
        part = self.state.with_name(self.state.name + ".part")
        torch.save(content | {"done": self.elapsed, "step": self.step}, part)
        os.replace(part, self.state)
        self._saved = time.monotonic()


def train_encoder(
    vae: AudioVAE,
    batches: Iterator[tuple[Tensor, Tensor, Tensor]],
    length: Length,
    state: Path,
    rate: float = 2e-3,
    matrix_rate: float = 0.02,
) -> None:
    """Regression on given latents. A batch: samples ``[B, n]``, latents ``[B, T, D]``, their weights ``[B, T, D]``.

    A frame of weight 0 is not scored. Loss: absolute plus half the squared error. Dense convolutions, seen as matrices,
    learn by Muon (``matrix_rate``), the rest by AdamW. Clips go through one at a time: their tensors then stay in the
    cache, which saves a third of the time. Changes ``vae`` in place.
    """
    parameters = _trained(vae.encoder, without=vae.encoder.fc_logvar)
    dense = [p for p in parameters if p.ndim == 3 and p.shape[1] > 1]
    matrices = [nn.Parameter(p.data.flatten(1)) for p in dense]  # the same memory
    rest = [p for p in parameters if not any(p is d for d in dense)]
    optimisers: dict[str, torch.optim.Optimizer] = {
        "adamw": torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True),
        "muon": Muon(matrices, lr=matrix_rate, weight_decay=0.0),
    }
    run = Run(length, state, {"encoder": vae.encoder}, optimisers)
    run.resume()
    while run.goes_on():
        square = _regress(vae, *next(batches))
        norm = nn.utils.clip_grad_norm_(parameters, 1.0)
        for parameter, matrix in zip(dense, matrices, strict=True):
            matrix.grad = parameter.grad.flatten(1)
        if torch.isfinite(norm):
            for optimiser in optimisers.values():
                optimiser.step()
        for parameter in parameters:
            parameter.grad = None
        run.after_step({"weighted square error": square})
    run.save()
    vae.requires_grad_(False)


def _regress(vae: AudioVAE, samples: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Adds the gradients of a batch; its weighted mean square error."""
    total, squares = weight.sum().clamp(min=1e-6), samples.new_zeros(())
    for x, z, w in zip(samples, target, weight, strict=True):
        error = vae.encode(x[None])[0] - z
        square = (w * error**2).sum() / total
        ((w * error.abs()).sum() / total + 0.5 * square).backward()
        squares += square.detach()
    return squares


def train_decoder(
    vae: AudioVAE,
    batches: Iterator[tuple[Tensor, Tensor]],
    length: Length,
    state: Path,
    rate: float = 3e-4,
    adversarial: bool = False,
) -> None:
    """Latents -> sound. A batch is latents ``[B, CONTEXT + T, D]`` and samples ``[B, T * hop]`` of the last T frames.

    Spectral loss on several resolutions; with ``adversarial`` also small discriminators of spectrograms and the
    distance of their features. Noise of up to 0.25 on the latents makes the decoder forgiving to a model's errors.
    """
    parameters = _trained(vae.decoder)
    optimiser = torch.optim.AdamW(parameters, lr=rate, betas=(0.8, 0.99), weight_decay=0.0, fused=True)
    run = Run(length, state, {"decoder": vae.decoder}, {"optimiser": optimiser})
    judges = Discriminators() if adversarial else None
    if judges is not None:
        run.networks["judges"] = judges
        run.optimisers["judge"] = torch.optim.AdamW(judges.parameters(), lr=rate, betas=(0.8, 0.99), fused=True)
    run.resume()
    while run.goes_on():
        z, samples = next(batches)
        z = z + torch.randn_like(z) * (torch.rand(len(z), 1, 1) * 0.25)
        made = vae.decode(z)[0][:, -samples.shape[1] :]
        losses = {"spectral": spectral_loss(made, samples)}
        loss = losses["spectral"]
        if judges is not None:
            losses |= _judge(judges, run.optimisers["judge"], made, samples)
            loss = loss + 0.1 * losses["fooling"] + 0.2 * losses["features"]
        _step(optimiser, loss, parameters, clip=10.0)
        run.after_step(losses)
    run.save()
    vae.requires_grad_(False)


def _judge(judges: nn.Module, optimiser: torch.optim.Optimizer, made: Tensor, real: Tensor) -> dict[str, Tensor]:
    """One step of the discriminators, then what they say of ``made`` for the decoder's step."""
    judging, _ = adversarial_losses(judges(real), judges(made.detach()))
    _step(optimiser, judging, list(judges.parameters()), clip=10.0)
    with torch.no_grad():
        seen = judges(real)
    heard = judges(made)
    _, fooling = adversarial_losses(seen, heard)
    return {"judging": judging, "fooling": fooling, "features": feature_distance(seen, heard)}


def _trained(module: nn.Module, without: nn.Module | None = None) -> list[nn.Parameter]:
    module.requires_grad_(True)
    if without is not None:
        without.requires_grad_(False)
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def _step(optimiser: torch.optim.Optimizer, loss: Tensor, parameters: list[nn.Parameter], clip: float) -> None:
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(parameters, clip)
    if torch.isfinite(norm):
        optimiser.step()

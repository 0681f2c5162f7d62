"""Noise -> patch: Euler steps along the learnt flow, with classifier-free guidance.

Follows the reference's conditional flow matching: sway-shifted times, CFG-Zero* (arXiv 2503.18886: optimised scale, and
the first step left at zero velocity). Everything runs in the model's dtype, as published.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .config import ModelConfig
from .local import LocalDiT


class FlowMatching(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        self.estimator = LocalDiT(config)
        self._times: dict[int, list[tuple[Tensor, Tensor]]] = {}  # constants per number of steps

    def forward(self, noise: Tensor, mu: Tensor, condition: Tensor, cfg_value: Tensor, steps: int) -> Tensor:
        """One patch for each row.

        ``noise [B, P, D]`` (already scaled by the temperature), ``mu [B, n, hidden]``, ``condition [B, P, D]`` (the
        patch before), ``cfg_value [B, 1, 1]``, ``steps`` = inference_timesteps >= 2 -> ``[B, P, D]``.
        """
        estimator, x, rows = self.estimator, noise, noise.shape[0]
        mu, condition = estimator.context(mu, condition)
        for time, delta in self.times(steps, noise):
            guided, free = estimator(x, time, mu, condition).split(rows)
            scale = self._zero_star_scale(guided, free)
            velocity = free * scale + cfg_value * (guided - free * scale)
            x = x - delta * velocity
        return x

    def times(self, steps: int, like: Tensor) -> list[tuple[Tensor, Tensor]]:
        """(time embedding [hidden], step length) for each evaluation; the first, at zero velocity, is left out."""
        if steps not in self._times:
            t, deltas = time_grid(steps, like.dtype)
            embedded = self.estimator.time_embedding(t.to(like.device))
            self._times[steps] = list(zip(embedded, deltas.to(like.device), strict=True))
        return self._times[steps]

    def forget_times(self) -> None:
        """To be called when an adapter changes: it may sit on the time embedding's layers."""
        self._times.clear()

    @staticmethod
    def _zero_star_scale(guided: Tensor, free: Tensor) -> Tensor:
        dot = (guided * free).sum((1, 2), keepdim=True)
        return dot / (free.square().sum((1, 2), keepdim=True) + 1e-8)


def time_grid(steps: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Times and step lengths of the evaluations after the skipped ones, each [n], in ``dtype`` arithmetic."""
    span = torch.linspace(1, 0, steps + 1, dtype=dtype)
    span = span + (torch.cos(math.pi / 2 * span) - 1 + span)
    skipped = max(1, int((steps + 1) * 0.04))
    t, delta = span[0], span[0] - span[1]
    times, deltas = [], []
    for index in range(1, steps + 1):
        if index > skipped:
            times.append(t)
            deltas.append(delta)
        t = t - delta
        if index < steps:
            delta = t - span[index + 1]
    return torch.stack(times), torch.stack(deltas)

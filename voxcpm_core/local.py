"""The two local networks: patch -> one vector (encoder), and the velocity estimator of the diffusion (decoder)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import ModelConfig
from .linear import Linear
from .transformer import Transformer


class LocalEncoder(nn.Module):
    """Patches ``[N, P, D]`` -> vectors ``[N, hidden]``: a learnt token reads the patch and answers for it."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        hidden = config.encoder.hidden_size
        self.special_token = nn.Parameter(torch.empty(1, 1, 1, hidden), requires_grad=False)
        self.in_proj = Linear(config.feat_dim, hidden, bias=True)
        self.encoder = Transformer(config.encoder)

    def forward(self, patches: Tensor) -> Tensor:
        token = self.special_token[0].expand(patches.shape[0], 1, -1)
        x = torch.cat((token, self.in_proj(patches)), dim=1)
        return self.encoder(x, keep=slice(0, 1))[:, 0]


class TimestepMLP(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.linear_1 = Linear(size, size, bias=True)
        self.linear_2 = Linear(size, size, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear_2(F.silu(self.linear_1(x)))


class LocalDiT(nn.Module):
    """Velocity of the flow for one patch, given what the language models want and the patch before.

    Token order: generation 1 ``[mu + t, condition x P, x x P]``, generation 2 ``[mu_lm, mu_residual, t, condition x
    P, x x P]``.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        hidden = config.dit.hidden_size
        self.version, self.hidden, self.patch_size = config.version, hidden, config.patch_size
        self.in_proj = Linear(config.feat_dim, hidden, bias=True)
        self.cond_proj = Linear(config.feat_dim, hidden, bias=True)
        self.out_proj = Linear(hidden, config.feat_dim, bias=True)
        self.time_mlp = TimestepMLP(hidden)
        self.delta_time_mlp = TimestepMLP(hidden)
        self.decoder = Transformer(config.dit)

    def time_embedding(self, t: Tensor) -> Tensor:
        """Times ``t [N]`` in the model's dtype -> ``[N, hidden]``. Costs four products: cache it per time."""
        return self.time_mlp(self._waves(t)) + self.delta_time_mlp(self._waves(torch.zeros_like(t)))

    def context(self, mu: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """What stays the same over the steps of one patch, from ``mu [B, n, hidden]`` and ``condition [B, P, D]``.

        Returns both for the guided pair: rows 0..B-1 see mu, rows B..2B-1 see zeros instead.
        """
        both = torch.cat((mu, torch.zeros_like(mu)))
        return both, self.cond_proj(condition).repeat(2, 1, 1)

    def forward(self, x: Tensor, time: Tensor, mu: Tensor, condition: Tensor) -> Tensor:
        """``x [B, P, D]``, ``time [hidden]``, mu and condition of :meth:`context` [2B, ...] -> velocity [2B, P, D]."""
        x = self.in_proj(x).repeat(mu.shape[0] // x.shape[0], 1, 1)
        if self.version == 1:
            head = mu + time
        else:
            head = torch.cat((mu, time.expand(mu.shape[0], 1, -1)), dim=1)
        hidden = self.decoder(torch.cat((head, condition, x), dim=1), keep=slice(-self.patch_size, None))
        return self.out_proj(hidden)

    def _waves(self, t: Tensor) -> Tensor:
        # All in the model's dtype: in bfloat16 this rounding is part of what the checkpoint was trained with.
        half = self.hidden // 2
        frequencies = torch.exp(torch.arange(half, dtype=t.dtype, device=t.device) * -(math.log(10000) / (half - 1)))
        angles = 1000 * t[:, None] * frequencies
        return torch.cat((angles.sin(), angles.cos()), dim=-1)

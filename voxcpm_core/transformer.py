"""MiniCPM blocks and the key/value cache they are handed.

One stack serves all four networks: the base and the residual language model (causal, with a cache) and, inside the
local encoder and the local diffusion transformer, short sequences with full attention. The blocks hold weights only;
whatever belongs to a generation (keys, values, positions) comes in as an argument.
Follows MiniCPM4 (arXiv 2506.07900): pre-norm, grouped-query attention, SwiGLU, rotary positions with LongRoPE factors.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import TransformerConfig
from .gradients import RMSNormGradient, RotateGradient, SwiGLUGradient
from .linear import Linear, LinearGroup

Rope = tuple[Tensor, Tensor]  # cos and sin, broadcastable to [B, L, heads, head_dim / 2]
LayerKV = tuple[Tensor, Tensor]  # keys and values, each [B, kv_heads, L, head_dim]
Prefix = list[LayerKV]  # one entry per layer: what a causal stack remembers of a sequence


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size), requires_grad=False)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return RMSNormGradient.apply(x, self.weight, self.eps)
        wide = x.float()  # the mean is taken in float32 whatever the model's dtype
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True).add_(self.eps))
        return (wide * scale).to(x.dtype) * self.weight


class Attention(nn.Module):
    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = config.num_heads, config.num_kv_heads, config.head_dim
        self.q_proj = Linear(config.hidden_size, self.heads * self.head_dim)
        self.k_proj = Linear(config.hidden_size, self.kv_heads * self.head_dim)
        self.v_proj = Linear(config.hidden_size, self.kv_heads * self.head_dim)
        self.o_proj = Linear(self.heads * self.head_dim, config.hidden_size)
        self.qkv = LinearGroup(self.q_proj, self.k_proj, self.v_proj)
        self.linear_groups = (self.qkv,)

    def project(self, x: Tensor, rope: Rope | None) -> tuple[Tensor, Tensor, Tensor]:
        """``x [B, L, hidden]`` -> queries [B, L, heads, d], keys and values [B, kv_heads, L, d]."""
        batch, length, _ = x.shape
        heads = self.qkv(x).view(batch, length, self.heads + 2 * self.kv_heads, self.head_dim)
        turned, values = heads.split((self.heads + self.kv_heads, self.kv_heads), dim=2)
        if rope is not None:
            turned = rotate(turned, rope)
        queries, keys = turned.split((self.heads, self.kv_heads), dim=2)
        return queries, keys.transpose(1, 2), values.transpose(1, 2)

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attention of ``queries [B, L, heads, d]`` over ``keys, values [B, kv_heads, S, d]`` -> [B, L, hidden].

        The queries that share a key head are laid side by side along the length, so keys are never repeated.
        ``mask`` broadcasts to [B, 1, L, S]; True = may look.
        """
        batch, length = queries.shape[:2]
        group = self.heads // self.kv_heads
        q = queries.view(batch, length, self.kv_heads, group, self.head_dim).permute(0, 2, 3, 1, 4)
        q = q.reshape(batch, self.kv_heads, group * length, self.head_dim)
        if mask is not None and length > 1:
            mask = mask.repeat(1, 1, group, 1)
        out = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        out = out.view(batch, self.kv_heads, group, length, self.head_dim).permute(0, 3, 1, 2, 4)
        return self.o_proj(out.reshape(batch, length, self.heads * self.head_dim))


class MLP(nn.Module):
    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.gate_proj = Linear(config.hidden_size, config.intermediate_size)
        self.up_proj = Linear(config.hidden_size, config.intermediate_size)
        self.down_proj = Linear(config.intermediate_size, config.hidden_size)
        self.gate_up = LinearGroup(self.gate_proj, self.up_proj)
        self.linear_groups = (self.gate_up,)

    def forward(self, x: Tensor) -> Tensor:
        gate_up = self.gate_up(x)
        if torch.is_grad_enabled():
            return self.down_proj(SwiGLUGradient.apply(gate_up))
        gate, up = gate_up.chunk(2, dim=-1)
        return self.down_proj(F.silu(gate) * up)


class Block(nn.Module):
    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config)
        self.residual_scale = config.residual_scale

    def add(self, x: Tensor, update: Tensor) -> Tensor:
        return x + update if self.residual_scale == 1.0 else x + update * self.residual_scale

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        x = self.add(x, attended)
        return self.add(x, self.mlp(self.post_attention_layernorm(x)))


class Transformer(nn.Module):
    """A stack of blocks with its final norm; the embedding exists only where ``vocab_size`` is set."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        if config.vocab_size:
            shape = config.vocab_size, config.hidden_size
            # a given weight: drawing a random one on the meta device imports torch's compiler (1.3 s, 150 MB)
            self.embed_tokens = nn.Embedding(*shape, _weight=torch.empty(shape))
        self.layers = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        # constants, filled on first use: per device, and per length, dtype and device
        self._frequencies: dict[torch.device, Tensor] = {}
        self._short_ropes: dict[tuple, Rope | None] = {}

    def embed(self, ids: Tensor) -> Tensor:
        """Token ids [...] -> [..., hidden]."""
        return self.embed_tokens(ids) * self.config.embedding_scale

    def forward(self, x: Tensor, keep: slice = slice(None)) -> Tensor:
        """Full (not causal) attention over ``x [B, L, hidden]``; returns the positions ``keep``.

        The last block computes only what is kept: exact, and a sixth of a two-frame diffusion step saved.
        """
        rope = self._short_rope(x)
        for index, block in enumerate(self.layers):
            queries, keys, values = block.self_attn.project(block.input_layernorm(x), rope)
            if index == len(self.layers) - 1:
                queries, x = queries[:, keep], x[:, keep]
            x = block.finish(x, block.self_attn.attend(queries, keys, values))
        return self.norm(x)

    def prefill(self, x: Tensor, past: Prefix | None = None) -> tuple[Tensor, Prefix]:
        """Causal pass over ``x [1, L, hidden]`` after ``past``; returns hidden [1, L, hidden] and past + x."""
        start = past[0][0].shape[2] if past else 0
        rope = self.rope(torch.arange(start, start + x.shape[1], device=x.device)[None], x.dtype)
        mask = _causal_mask(x.shape[1], start, x.device)
        kept: Prefix = []
        for index, block in enumerate(self.layers):
            queries, keys, values = block.self_attn.project(block.input_layernorm(x), rope)
            if past:
                keys, values = torch.cat((past[index][0], keys), 2), torch.cat((past[index][1], values), 2)
            kept.append((keys, values))
            x = block.finish(x, block.self_attn.attend(queries, keys, values, mask))
        return self.norm(x), kept

    def step(self, x: Tensor, cache: KVCache) -> Tensor:
        """One more position for each row of ``cache``: ``x [B, hidden]`` -> [B, hidden]."""
        rope = self.rope(cache.positions()[:, None], x.dtype)
        mask = cache.begin_step()
        x = x[:, None]
        for index, block in enumerate(self.layers):
            queries, keys, values = block.self_attn.project(block.input_layernorm(x), rope)
            keys, values = cache.write(index, keys, values)
            x = block.finish(x, block.self_attn.attend(queries, keys, values, mask))
        cache.end_step()
        return self.norm(x)[:, 0]

    def rope(self, positions: Tensor, dtype: torch.dtype) -> Rope | None:
        """Cosine and sine for ``positions [B, L]``, each [B, L, 1, head_dim / 2] float32; None without positions.

        The reference keeps its tables in the model's dtype, so they are rounded the same way here.
        """
        if not self.config.use_rope:
            return None
        if positions.device not in self._frequencies:
            self._frequencies[positions.device] = _rope_frequencies(self.config).to(positions.device)
        angles = (positions[..., None].float() * self._frequencies[positions.device])[:, :, None]
        return angles.cos().to(dtype).float(), angles.sin().to(dtype).float()

    def _short_rope(self, x: Tensor) -> Rope | None:
        key = (x.shape[1], x.dtype, x.device)
        if key not in self._short_ropes:
            self._short_ropes[key] = self.rope(torch.arange(x.shape[1], device=x.device)[None], x.dtype)
        return self._short_ropes[key]


def _rope_frequencies(config: TransformerConfig) -> Tensor:
    """Radians per position, [head_dim / 2] float32."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    factors = torch.tensor(config.rope_factors, dtype=torch.float32)
    return 1.0 / (factors * config.rope_theta**exponents)


def rotate(x: Tensor, rope: Rope) -> Tensor:
    """Rotary positions on ``x [B, L, heads, d]``, computed in float32."""
    cos, sin = rope
    if torch.is_grad_enabled():
        return RotateGradient.apply(x, cos, sin)
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


def _causal_mask(length: int, start: int, device: torch.device) -> Tensor | None:
    """[1, 1, length, start + length]; position i sees everything up to itself."""
    if length == 1:
        return None
    return torch.ones(length, start + length, dtype=torch.bool, device=device).tril(start)[None, None]


class KVCache:
    """Keys and values of the running rows, row ``i`` of every tensor belonging to row ``i`` of the batch.

    Grows to what the rows need (positions in steps of 128, rows one by one up to twice what was needed), never to
    the model's whole context.
    """

    GRAIN = 128

    def __init__(self, config: TransformerConfig, device: torch.device, dtype: torch.dtype):
        self.config, self.device, self.dtype = config, device, dtype
        self.lengths: list[int] = []
        self._layers: list[LayerKV] = []
        self._where: tuple[Tensor, Tensor] | int = 0

    @property
    def capacity(self) -> int:
        return self._layers[0][0].shape[2] if self._layers else 0

    def add_row(self, prefix: Prefix) -> None:
        """Copies ``prefix`` (from :meth:`Transformer.prefill`) into a new last row."""
        length = prefix[0][0].shape[2]
        self._reserve(len(self.lengths) + 1, length + 1)
        row = len(self.lengths)
        for mine, given in zip(self._layers, prefix, strict=True):
            for target, source in zip(mine, given, strict=True):
                target[row, :, :length] = source[0]
        self.lengths.append(length)

    def remove_row(self, row: int) -> None:
        """Drops ``row``; the last row takes its place."""
        last = len(self.lengths) - 1
        for pair in self._layers:
            for tensor in pair:
                tensor[row] = tensor[last]
                tensor[last] = 0  # a row that broke may leave NaN, which no mask keeps from the next one here
        self.lengths[row] = self.lengths[last]
        self.lengths.pop()
        if not self.lengths:
            self._layers = []

    def positions(self) -> Tensor:
        return torch.tensor(self.lengths, device=self.device)

    def begin_step(self) -> Tensor | None:
        """Makes room for one position a row; returns the mask [B, 1, 1, S], or None when all rows are as long."""
        longest = max(self.lengths) + 1
        self._reserve(len(self.lengths), longest)
        if min(self.lengths) == longest - 1:
            self._where = longest - 1
            return None
        positions = self.positions()
        self._where = torch.arange(len(self.lengths), device=self.device), positions
        return (torch.arange(longest, device=self.device) <= positions[:, None])[:, None, None]

    def write(self, layer: int, keys: Tensor, values: Tensor) -> LayerKV:
        """Stores this step's keys and values [B, kv_heads, 1, d]; returns all of them [B, kv_heads, S, d]."""
        rows, longest = len(self.lengths), max(self.lengths) + 1
        for target, source in zip(self._layers[layer], (keys, values), strict=True):
            if isinstance(self._where, int):
                target[:rows, :, self._where] = source[:, :, 0]
            else:
                target[self._where[0], :, self._where[1]] = source[:, :, 0]
        stored_keys, stored_values = self._layers[layer]
        return stored_keys[:rows, :, :longest], stored_values[:rows, :, :longest]

    def end_step(self) -> None:
        self.lengths = [length + 1 for length in self.lengths]

    def _reserve(self, rows: int, positions: int) -> None:
        have_rows = self._layers[0][0].shape[0] if self._layers else 0
        if rows <= have_rows and positions <= self.capacity:
            return
        new_rows = have_rows if rows <= have_rows else max(rows, 2 * have_rows)
        new_positions = -(-positions // self.GRAIN) * self.GRAIN
        if self._layers and positions > self.capacity:
            new_positions = max(new_positions, self.capacity * 3 // 2)
        shape = (new_rows, self.config.num_kv_heads, max(new_positions, self.capacity), self.config.head_dim)
        old, self._layers = self._layers, []
        for index in range(self.config.num_layers):
            # zeros, not empty: masked positions are multiplied by zero and must not be NaN
            pair = tuple(torch.zeros(shape, device=self.device, dtype=self.dtype) for _ in range(2))
            if old:
                for target, source in zip(pair, old[index], strict=True):
                    target[: source.shape[0], :, : source.shape[2]] = source
                old[index] = ()
            self._layers.append(pair)

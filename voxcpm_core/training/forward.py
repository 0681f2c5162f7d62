"""The model read with the truth as its history: every patch of every sequence of a batch at once.

The same modules as in generation, unprepared, so that autograd sees their weights. Three things differ from
``Model.prefill``: many sequences lie side by side, rounding in the FSQ passes gradients straight through, and what no
loss reads is not computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ..model import FSQ, Model
from ..transformer import Block, Rope, Transformer
from .packing import Batch

Heads = tuple[Tensor, Tensor]  # of the first head: queries and keys after rotation, [B, T, d] each


@dataclass(frozen=True)
class Hidden:
    """What decides each learnt patch, and what the guided layers looked at."""

    plan: Tensor  # [N, H] of the base language model, quantised after audio
    detail: Tensor  # [N, H] of the residual language model
    guided: list[Heads]


class _RoundStraight(torch.autograd.Function):
    """Rounds to multiples of ``1 / scale``; gradients pass as if nothing had happened."""

    @staticmethod
    def forward(ctx, x: Tensor, scale: int) -> Tensor:
        return torch.round(x * scale) / scale

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def teacher_forced(
    model: Model, batch: Batch, read: Tensor, guided_layers: Sequence[int] = (), save_memory: bool = False
) -> Hidden:
    """Both language models over ``batch``, hearing ``read [A, P, D]`` (its patches, perhaps with noise).

    ``guided_layers``: layers of the base model whose first head is wanted. ``save_memory`` computes the blocks anew in
    the backward pass instead of keeping what they computed.
    """
    rows, length = batch.ids.shape
    embedded = model.base_lm.embed(batch.ids).flatten(0, 1)
    heard = model.enc_to_lm_proj(model.feat_encoder(read))
    x = embedded.index_copy(0, batch.audio, heard.to(embedded.dtype)).view(rows, length, -1)
    hidden, guided = _causal(model.base_lm, x, guided_layers, save_memory)
    hidden = hidden.flatten(0, 1)
    plan = hidden.index_copy(0, batch.audio, quantise(model.fsq_layer, hidden[batch.audio]).to(hidden.dtype))
    heard = torch.zeros_like(plan).index_copy(0, batch.audio, heard.to(plan.dtype))
    fused = model._fuse(plan, heard).view(rows, length, -1)
    detail, _ = _causal(model.residual_lm, fused, (), save_memory, keep=batch.query)
    return Hidden(plan[batch.query], detail, guided)


def velocity(model: Model, x: Tensor, time: Tensor, hidden: Hidden, condition: Tensor, keep: Tensor) -> Tensor:
    """The flow's velocity at ``x [N, P, D]``, ``time [N]`` between 0 (speech) and 1 (noise) -> ``[N, P, D]``.

    Where ``keep [N]`` is 0 the language models' wish is withheld, as for guidance at inference.
    """
    estimator = model.feat_decoder.estimator
    mu = model._mu(hidden.plan, hidden.detail) * keep[:, None, None]
    at, none = estimator._waves(time), estimator._waves(time[:1] * 0)
    embedded = estimator.time_mlp(at) + estimator.delta_time_mlp(none)  # the second is the same for all
    return estimator(x, embedded[:, None], mu, estimator.cond_proj(condition))


def quantise(fsq: FSQ, x: Tensor) -> Tensor:
    return fsq.out_proj(_RoundStraight.apply(torch.tanh(fsq.in_proj(x)), fsq.scale))


def _causal(
    stack: Transformer, x: Tensor, guided_layers: Sequence[int], save_memory: bool, keep: Tensor | None = None
) -> tuple[Tensor, list[Heads]]:
    """``x [B, T, H]`` -> hidden ``[B, T, H]``, or ``[N, H]`` at the positions ``keep`` (index into B * T).

    Padding on the right is seen by padding alone.
    """
    length = x.shape[1]
    rope = stack.rope(torch.arange(length, device=x.device)[None], torch.float32)
    mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()[None, None]
    heads: list[Heads] = []
    for index, block in enumerate(stack.layers):
        kept = keep if index == len(stack.layers) - 1 else None
        if save_memory and index not in guided_layers:
            x, _ = checkpoint(_block, block, x, rope, mask, kept, use_reentrant=False)
            continue
        x, looked_at = _block(block, x, rope, mask, kept)
        if index in guided_layers:
            heads.append(looked_at)
    return stack.norm(x), heads


def _block(block: Block, x: Tensor, rope: Rope | None, mask: Tensor, keep: Tensor | None) -> tuple[Tensor, Heads]:
    queries, keys, values = block.self_attn.project(block.input_layernorm(x), rope)
    attended = block.self_attn.attend(queries, keys, values, mask)
    if keep is not None:
        x, attended = x.flatten(0, 1)[keep], attended.flatten(0, 1)[keep]
    return block.finish(x, attended), (queries[:, :, 0], keys[:, 0])

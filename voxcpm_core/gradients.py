"""Backward passes written by hand for the three element-wise parts of a block, used only while gradients are recorded.

Autograd would keep, and read again, several temporaries the size of the activations for each of them; on a CPU, where
these parts are bound by memory, the hand-written passes take about half the time. Results equal the plain expressions.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


class RMSNormGradient(torch.autograd.Function):
    """``x / rms(x) * weight`` over the last axis; the mean is taken in float32."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True).add_(eps))
        normed = (wide * scale).to(x.dtype)
        ctx.save_for_backward(normed, scale, weight)
        return normed * weight

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        normed, scale, weight = ctx.saved_tensors
        product = (gradient * normed).flatten(0, -2)
        of_weight = product.sum(0).to(weight.dtype) if ctx.needs_input_grad[1] else None
        if not ctx.needs_input_grad[0]:
            return None, of_weight, None
        along = (product @ weight.to(product.dtype)).div_(weight.shape[0]).view_as(scale)
        of_x = torch.addcmul(gradient * weight, normed, along.to(normed.dtype), value=-1).float().mul_(scale)
        return of_x.to(normed.dtype), of_weight, None


class RotateGradient(torch.autograd.Function):
    """Rotary positions; the gradient is turned back by the same angle."""

    @staticmethod
    def forward(ctx, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turn(x, cos, sin)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return _turn(gradient, cos, -sin), None, None


class SwiGLUGradient(torch.autograd.Function):
    """``silu(gate) * up`` of ``[gate, up]`` side by side: ``[..., 2 n] -> [..., n]``."""

    @staticmethod
    def forward(ctx, gate_up: Tensor) -> Tensor:
        gate, up = gate_up.chunk(2, dim=-1)
        ctx.save_for_backward(gate_up)
        return F.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        (gate_up,) = ctx.saved_tensors
        gate, up = gate_up.chunk(2, dim=-1)
        result = torch.empty_like(gate_up)
        of_gate, of_up = result.chunk(2, dim=-1)
        torch.mul(F.silu(gate), gradient, out=of_up)
        torch.ops.aten.silu_backward.grad_input(gradient * up, gate, grad_input=of_gate)
        return result


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """``x [..., d]`` with cos and sin ``[..., d / 2]``, in float32."""
    wide = x.float()
    turned = wide * torch.cat((cos, cos), -1)
    return turned.addcmul_(wide.roll(wide.shape[-1] // 2, -1), torch.cat((-sin, sin), -1)).to(x.dtype)

"""Linear layers as inference wants them: one matrix product per input, weights in the order the CPU reads best.

Modules keep the published weight names. :class:`Preparation` is told of each weight that has been loaded: it joins
layers that share an input (q, k, v; gate, up), packs CPU weights for oneDNN and lets go of the unpacked ones at once,
so that loading needs little more memory than the model. Unprepared (for training) everything runs on the plain weights.

Adapters (LoRA) add to the result and never touch the base weights, so switching one off gives back the base model bit
for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Kernel = Callable[[Tensor], Tensor]
# oneDNN lays weights out for an expected number of rows; 16 measured as good as the exact number from 1 to 66 rows.
_PACK_ROWS = 16


@dataclass
class LoRA:
    """Low-rank addition: ``scale * (x A^T) B^T`` with A [r, in] and B [out, r]."""

    a: Tensor
    b: Tensor
    scale: float
    enabled: bool = True

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(F.linear(x, self.a), self.b) * self.scale


class Linear(nn.Module):
    """``x [..., in] -> [..., out]``."""

    def __init__(self, in_features: int, out_features: int, bias: bool = False):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = nn.Parameter(torch.empty(out_features, in_features), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(out_features), requires_grad=False) if bias else None
        self.lora: LoRA | None = None
        self.kernel: Kernel | None = None

    def forward(self, x: Tensor) -> Tensor:
        y = self.kernel(x) if self.kernel is not None else F.linear(x, self.weight, self.bias)
        return y + self.lora(x) if self.lora is not None and self.lora.enabled else y

    def prepare(self) -> None:
        self.kernel = make_kernel(self.weight, self.bias)
        self.release()

    def release(self) -> None:
        self.weight = None
        self.bias = None


class LinearGroup:
    """Several bias-free :class:`Linear` of one input as one product: ``x [..., in] -> [..., sum of outs]``.

    Not a module: the parts stay registered (and named) where they were.
    """

    def __init__(self, *parts: Linear):
        self.parts = parts
        self.kernel: Kernel | None = None

    def __call__(self, x: Tensor) -> Tensor:
        if self.kernel is None:  # unprepared: joining the weights costs less than joining the results
            y = F.linear(x, torch.cat([part.weight for part in self.parts]))
        else:
            y = self.kernel(x)
        if any(part.lora is not None and part.lora.enabled for part in self.parts):
            y = y + torch.cat([self._addition(part, x) for part in self.parts], dim=-1)
        return y

    def prepare(self) -> None:
        weight = torch.cat([part.weight for part in self.parts])
        self.kernel = make_kernel(weight, None)
        for part in self.parts:
            part.release()

    @staticmethod
    def _addition(part: Linear, x: Tensor) -> Tensor:
        if part.lora is not None and part.lora.enabled:
            return part.lora(x)
        return x.new_zeros(*x.shape[:-1], part.out_features)


class Preparation:
    """Readies the linear layers below ``module`` for inference, each as soon as its weights are there."""

    def __init__(self, module: nn.Module):
        groups = [group for child in module.modules() for group in getattr(child, "linear_groups", ())]
        self._group = {part: group for group in groups for part in group.parts}

    def loaded(self, layer: Linear) -> None:
        """To be called whenever a weight of ``layer`` was put in its place, on the final device."""
        whole = self._group.get(layer, layer)
        parts = whole.parts if isinstance(whole, LinearGroup) else (whole,)
        if not any(tensor.is_meta for part in parts for tensor in part.parameters()):
            whole.prepare()


def make_kernel(weight: Tensor, bias: Tensor | None) -> Kernel:
    """The fastest exact ``x -> x W^T + b`` for where ``weight [out, in]`` lives."""
    weight = weight.detach()
    bias = None if bias is None else bias.detach()
    if _can_pack(weight):
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _PACK_ROWS)
        return lambda x: torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return lambda x: F.linear(x, weight, bias)


def _can_pack(weight: Tensor) -> bool:
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if not hasattr(torch.ops.mkldnn, "_reorder_linear_weight"):  # builds without oneDNN's graph rewrites
        return False
    if weight.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype == torch.float32

"""What a model remembers of a reference, as named tensors that can be put into a file.

latents                          [T, P, D] float32: the clip's patches
base.<layer>.keys / .values      [1, kv_heads, T + 2, head_dim]: the base model's voice part
residual.<layer>.keys / .values  the same of the residual model
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from .config import TransformerConfig
from .model import Model, VoicePrefix
from .transformer import Prefix

_MARKS = 2  # tokens around a reference, see sequence.py


def pack(latents: Tensor, prefix: VoicePrefix | None) -> dict[str, Tensor]:
    """Copies on the CPU, by name; without a voice part the latents alone."""
    state = {"latents": latents}
    for name, layers in [("base", prefix.base), ("residual", prefix.residual)] if prefix else []:
        for number, (keys, values) in enumerate(layers):
            state[f"{name}.{number}.keys"], state[f"{name}.{number}.values"] = keys, values
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in state.items()}


@torch.inference_mode()
def unpack(state: Mapping[str, Tensor], model: Model, patches: int) -> tuple[Tensor, VoicePrefix | None] | None:
    """Latents and voice part on the model's device; None unless every tensor has the shape that the model needs."""
    config = model.config
    latents = _fitting(state.get("latents"), (patches, config.patch_size, config.feat_dim), torch.float32)
    if latents is None:
        return None
    latents = latents.to(model.device)
    base = _prefix(state, "base", config.lm, patches + _MARKS, model)
    residual = _prefix(state, "residual", config.residual_lm, patches + _MARKS, model)
    return latents, VoicePrefix(base, residual) if base and residual else None


def _prefix(
    state: Mapping[str, Tensor], name: str, config: TransformerConfig, length: int, model: Model
) -> Prefix | None:
    shape, layers = (1, config.num_kv_heads, length, config.head_dim), []
    for number in range(config.num_layers):
        pair = [_fitting(state.get(f"{name}.{number}.{part}"), shape, model.dtype) for part in ("keys", "values")]
        if any(tensor is None for tensor in pair):
            return None
        layers.append(tuple(tensor.to(model.device) for tensor in pair))
    return layers


def _fitting(tensor: Tensor | None, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor | None:
    fits = tensor is not None and tuple(tensor.shape) == shape and tensor.dtype == dtype
    return tensor if fits and bool(torch.isfinite(tensor).all()) else None

"""What is trained: every weight, some parts, or adapters (LoRA) in the published layout."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ..linear import Linear, LoRA
from ..model import Model
from ..weights_file import save_weights
from .errors import TrainingError

_ATTENTION = ("q_proj", "v_proj", "k_proj", "o_proj")
_PROJECTIONS = ("enc_to_lm_proj", "lm_to_dit_proj", "res_to_dit_proj", "fusion_concat_proj")


@dataclass(frozen=True)
class AdapterOptions:
    """The published fields: both language models, the diffusion transformer, the projections between them."""

    r: int = 32
    alpha: float = 32.0
    enable_lm: bool = True
    enable_dit: bool = True
    enable_proj: bool = False
    target_modules_lm: tuple[str, ...] = _ATTENTION
    target_modules_dit: tuple[str, ...] = _ATTENTION
    target_proj_modules: tuple[str, ...] = _PROJECTIONS


def choose(model: Model, prefixes: tuple[str, ...] = ()) -> dict[str, nn.Parameter]:
    """Makes the weights whose names start with one of ``prefixes`` (all, if none is given) trainable, by name."""
    chosen = {name: p for name, p in model.named_parameters() if not prefixes or name.startswith(prefixes)}
    unused = [prefix for prefix in prefixes if not any(name.startswith(prefix) for name in chosen)]
    if unused:
        raise TrainingError(f"No weight of the model begins with '{unused[0]}'.")
    for parameter in chosen.values():
        parameter.requires_grad_(True)
    return chosen


def add_adapters(model: Model, options: AdapterOptions, generator: torch.Generator) -> dict[str, nn.Parameter]:
    """Attaches fresh adapters, which change nothing yet (B is zero), and returns their weights by published name."""
    chosen: dict[str, nn.Parameter] = {}
    for name, layer in _targets(model, options).items():
        bound = 1 / math.sqrt(layer.in_features)
        start = torch.empty(options.r, layer.in_features).uniform_(-bound, bound, generator=generator)
        a = nn.Parameter(start.to(model.device))
        b = nn.Parameter(torch.zeros(layer.out_features, options.r, device=model.device))
        layer.lora = LoRA(a, b, options.alpha / options.r)
        chosen[f"{name}.lora_A"], chosen[f"{name}.lora_B"] = a, b
    if not chosen:
        raise TrainingError("The adapter options name no layer of this model: nothing would be trained.")
    return chosen


def save_adapters(weights: Mapping[str, Tensor], options: AdapterOptions, base: str, folder: Path) -> Path:
    """``lora_weights.safetensors`` and ``lora_config.json`` in ``folder``, each replaced only when written."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().to("cpu", torch.float32).contiguous() for name, tensor in weights.items()}
    save_weights(tensors, folder / ".lora_weights.new", {"format": "pt"})
    (folder / ".lora_weights.new").replace(folder / "lora_weights.safetensors")
    content = {"base_model": base, "lora_config": {**asdict(options), "dropout": 0.0}}
    (folder / ".lora_config.new").write_text(json.dumps(content, indent=2), encoding="utf-8")
    (folder / ".lora_config.new").replace(folder / "lora_config.json")
    return folder


def _targets(model: Model, options: AdapterOptions) -> dict[str, Linear]:
    found = {}
    for name, module in model.named_modules():
        if not isinstance(module, Linear):
            continue
        leaf = name.rsplit(".", 1)[-1]
        in_lm = name.startswith(("base_lm.layers.", "residual_lm.layers."))
        in_dit = name.startswith("feat_decoder.estimator.decoder.layers.")
        wanted = (
            (options.enable_lm and in_lm and leaf in options.target_modules_lm)
            or (options.enable_dit and in_dit and leaf in options.target_modules_dit)
            or (options.enable_proj and "." not in name and leaf in options.target_proj_modules)
        )
        if wanted:
            found[name] = module
    return found

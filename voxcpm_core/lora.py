"""Adapters (LoRA) in the published layout: ``lora_weights.safetensors`` (or ``.ckpt``) beside ``lora_config.json``.

Keys are ``<layer>.lora_A`` [r, in] and ``<layer>.lora_B`` [out, r]; the addition is ``alpha / r * B A x``.
Every key must find its layer and every shape must fit, otherwise nothing is loaded. Base weights never change.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from .checkpoint import read_tensors
from .errors import CheckpointError, LoRAError
from .linear import Linear, LoRA


@dataclass(frozen=True)
class AdapterInfo:
    path: str
    rank: int
    alpha: float
    layers: list[str]
    weights_hash: str  # 16 hex digits of the weights file's sha256


def load_lora(model: nn.Module, path: str | Path) -> AdapterInfo:
    """Attaches the adapter in ``path`` (folder or weights file), replacing one that is attached. Raises LoRAError."""
    file, settings = _find(Path(path).expanduser())
    tensors = _read(file)
    layers = {name: module for name, module in model.named_modules() if isinstance(module, Linear)}
    pairs = _pair_up(tensors, layers, file)
    rank = next(iter(pairs.values()))[0].shape[0]
    alpha = float(settings.get("alpha", rank))
    unload_lora(model)
    like = next(model.parameters())
    for name, (a, b) in pairs.items():
        layers[name].lora = LoRA(a.to(like, copy=True), b.to(like, copy=True), alpha / a.shape[0])
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    return AdapterInfo(str(path), rank, alpha, list(pairs), digest)


def unload_lora(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, Linear):
            module.lora = None


def set_lora_enabled(model: nn.Module, enabled: bool) -> None:
    for module in model.modules():
        if isinstance(module, Linear) and module.lora is not None:
            module.lora.enabled = enabled


def _find(path: Path) -> tuple[Path, dict]:
    folder = path if path.is_dir() else path.parent
    names = ("lora_weights.safetensors", "lora_weights.ckpt")
    file = next((folder / name for name in names if (folder / name).is_file()), None) if path.is_dir() else path
    if file is None or not file.is_file():
        raise LoRAError(f"No adapter at {path}: expected a folder with {' or '.join(names)}, or such a file.")
    config = folder / "lora_config.json"
    if not config.is_file():
        return file, {}  # rank comes from the shapes, alpha is then the rank (scale 1)
    try:
        content = json.loads(config.read_text(encoding="utf-8"))
        settings = content.get("lora_config", content)
        return file, {"alpha": float(settings["alpha"])} if "alpha" in settings else {}
    except (ValueError, TypeError, AttributeError) as error:
        raise LoRAError(f"{config} is not a readable adapter config: {error}.") from None


def _read(file: Path) -> dict[str, Tensor]:
    try:
        return dict(read_tensors([file]))
    except CheckpointError as error:
        raise LoRAError(str(error)) from None


def _pair_up(tensors: dict[str, Tensor], layers: dict[str, Linear], file: Path) -> dict[str, tuple[Tensor, Tensor]]:
    problems: list[str] = []
    pairs: dict[str, tuple[Tensor, Tensor]] = {}
    for key, tensor in tensors.items():
        stem, _, leaf = key.rpartition(".")
        if leaf not in ("lora_A", "lora_B") or stem not in layers:
            problems.append(f"{key} (no such layer)")
        elif not torch.isfinite(tensor).all():
            problems.append(f"{key} (not finite)")
        elif f"{stem}.lora_A" not in tensors or f"{stem}.lora_B" not in tensors:
            problems.append(f"{key} (its other half is missing)")
        elif leaf == "lora_A":
            a, b = tensor, tensors[f"{stem}.lora_B"]
            wanted = layers[stem].in_features, layers[stem].out_features
            if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[1] or (a.shape[1], b.shape[0]) != wanted:
                problems.append(
                    f"{stem} (A {tuple(a.shape)}, B {tuple(b.shape)}; the layer is {wanted[0]} -> {wanted[1]})"
                )
            pairs[stem] = a, b
    if problems or not pairs:
        shown = ", ".join(problems[:40]) or "it has no adapter weights"
        raise LoRAError(
            f"{file} does not fit the loaded model ({len(problems)} of {len(tensors)} keys): {shown}. "
            "It was probably made for another model generation."
        )
    return pairs

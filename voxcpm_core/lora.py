"""Adapters (LoRA) in the published layout: ``lora_weights.safetensors`` (or ``.ckpt``) beside ``lora_config.json``.

Keys are ``<layer>.lora_A`` [r, in] and ``<layer>.lora_B`` [out, r]; the addition is ``alpha / r * B A x``, times the
strength that is asked for. Every key must find its layer and every shape must fit, otherwise nothing is read. Base
weights never change.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from .checkpoint import read_tensors
from .errors import CheckpointError, LoRAError
from .linear import Linear, LoRA

_KEPT = 4  # adapters in memory: those that were spoken with last


@dataclass(frozen=True, eq=False)
class Adapter:
    """An adapter that was read and fits the model: [r, in] and [out, r] of each layer, on the model's device."""

    path: str
    rank: int
    alpha: float
    weights_hash: str  # 16 hex digits of the weights file's sha256
    pairs: dict[str, tuple[Tensor, Tensor]] = field(repr=False)

    @property
    def layers(self) -> list[str]:
        return list(self.pairs)


@dataclass(frozen=True)
class Worn:
    """An adapter as a row is spoken with it. Two are equal when they sound the same."""

    adapter: Adapter = field(compare=False, repr=False)
    strength: float = 1.0
    sound: tuple[str, float] = ("", 0.0)

    @classmethod
    def of(cls, adapter: Adapter, strength: float = 1.0) -> Worn | None:
        """None, the base model, at strength 0."""
        return cls(adapter, float(strength), (adapter.weights_hash, adapter.alpha)) if strength else None


def read_lora(model: nn.Module, path: str | Path) -> Adapter:
    """Reads the adapter in ``path`` (folder or weights file) and changes nothing. Raises LoRAError."""
    file, settings = _find(Path(path).expanduser())
    tensors = _read(file)
    layers = {name: module for name, module in model.named_modules() if isinstance(module, Linear)}
    pairs = _pair_up(tensors, layers, file, settings.get("base", ""))
    rank = next(iter(pairs.values()))[0].shape[0]
    like = next(model.parameters())
    placed = {name: (a.to(like, copy=True), b.to(like, copy=True)) for name, (a, b) in pairs.items()}
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    return Adapter(str(path), rank, float(settings.get("alpha", rank)), digest, placed)


def wear(model: nn.Module, worn: Worn | None) -> None:
    """Puts an adapter on the model, in place of any other; None takes it off."""
    for name, module in model.named_modules():
        if isinstance(module, Linear):
            pair = worn.adapter.pairs.get(name) if worn is not None else None
            module.lora = LoRA(*pair, worn.strength * worn.adapter.alpha / len(pair[0])) if pair is not None else None


def load_lora(model: nn.Module, path: str | Path) -> Adapter:
    """Attaches the adapter in ``path``, replacing one that is attached. Raises LoRAError."""
    adapter = read_lora(model, path)
    wear(model, Worn.of(adapter))
    return adapter


class Wardrobe:
    """Adapters that were read lately, by path. A file that has changed is read again. For any thread."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._read: OrderedDict[str, tuple[object, Adapter]] = OrderedDict()

    def adapter(self, path: str | Path) -> Adapter:
        """Raises LoRAError for what is no adapter, or does not fit the model."""
        name = str(path)
        with self._lock:
            state = _file_state(Path(path).expanduser())
            known = self._read.pop(name, None)
            if known is None or known[0] != state:
                known = state, read_lora(self._model, path)
            self._read[name] = known
            while len(self._read) > _KEPT:
                self._read.popitem(last=False)
            return known[1]


def _file_state(path: Path) -> object:
    """Times and sizes of an adapter's files; a new value when one of them was written."""
    file, _ = _find(path, settings=False)
    files = [file, file.parent / "lora_config.json"]
    return [(stat.st_mtime_ns, stat.st_size) for stat in (one.stat() for one in files if one.is_file())]


def _find(path: Path, settings: bool = True) -> tuple[Path, dict]:
    folder = path if path.is_dir() else path.parent
    names = ("lora_weights.safetensors", "lora_weights.ckpt")
    file = next((folder / name for name in names if (folder / name).is_file()), None) if path.is_dir() else path
    if file is None or not file.is_file():
        raise LoRAError(f"No adapter at {path}: expected a folder with {' or '.join(names)}, or such a file.")
    return file, _settings(folder / "lora_config.json") if settings else {}


def _settings(config: Path) -> dict:
    """``alpha`` and ``base``, the name of the model that it was made for; what the file does not say is left out."""
    if not config.is_file():
        return {}  # rank comes from the shapes, alpha is then the rank (scale 1)
    try:
        content = json.loads(config.read_text(encoding="utf-8"))
        settings = content.get("lora_config", content)
        base = str(content.get("base_model") or "").rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]
        found = {"base": base} if base else {}
        return {**found, "alpha": float(settings["alpha"])} if "alpha" in settings else found
    except (ValueError, TypeError, AttributeError) as error:
        raise LoRAError(f"{config} is not a readable adapter config: {error}.") from None


def _read(file: Path) -> dict[str, Tensor]:
    try:
        return dict(read_tensors([file]))
    except CheckpointError as error:
        raise LoRAError(str(error)) from None


def _pair_up(
    tensors: dict[str, Tensor], layers: dict[str, Linear], file: Path, base: str
) -> dict[str, tuple[Tensor, Tensor]]:
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
        made_for = f"It was made for {base}." if base else "It was probably made for another model generation."
        raise LoRAError(
            f"{file} does not fit the loaded model ({len(problems)} of {len(tensors)} keys): {shown}. {made_for}", base
        )
    return pairs

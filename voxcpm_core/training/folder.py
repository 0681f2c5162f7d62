"""Checkpoint folders in the official layout: in as plain trainable weights, out as something any VoxCPM loads."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from ..checkpoint import checkpoint_files, read_tensors
from ..config import read_config
from ..model import Model
from ..weights_file import save_weights
from .errors import TrainingError

BESIDE = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "lexicon.txt.gz",
)


def load_model(folder: Path, device: torch.device, dtype: torch.dtype = torch.float32) -> Model:
    """The model of ``folder`` with plain weights, none of them trainable yet. The AudioVAE is not read.

    Raises CheckpointError for files and TrainingError for tensors that are missing or do not fit.
    """
    files, _ = checkpoint_files(folder)
    with torch.device("meta"):
        model = Model(read_config(folder))
    places = model.state_dict()
    tensors = {name: tensor for name, tensor in read_tensors(files) if name in places}
    wrong = [name for name, place in places.items() if name not in tensors or tensors[name].shape != place.shape]
    if wrong:
        raise TrainingError(f"{files[0]} lacks or misshapes {len(wrong)} tensors, first {', '.join(wrong[:5])}.")
    tensors = {name: tensor.to(device, dtype, copy=True) for name, tensor in tensors.items()}
    model.load_state_dict(tensors, assign=True)
    return model.requires_grad_(False)


def export(weights: Mapping[str, Tensor], base: Path, out: Path, dtype: torch.dtype = torch.bfloat16) -> Path:
    """Writes ``out`` as a checkpoint folder: ``weights`` in ``dtype``, everything else copied from ``base``.

    An existing ``out`` is replaced once the new one is complete.
    """
    _, vae = checkpoint_files(base)
    fresh = out.with_name(f".{out.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for name in (*BESIDE, vae.name):
        if (base / name).is_file():
            shutil.copyfile(base / name, fresh / name)
    tensors = {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in weights.items()}
    save_weights(tensors, fresh / "model.safetensors", {"format": "pt"})
    if out.exists():
        old = out.with_name(f".{out.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        out.replace(old)
        fresh.replace(out)
        shutil.rmtree(old)
    else:
        fresh.replace(out)
    return out

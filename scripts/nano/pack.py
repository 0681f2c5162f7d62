"""A trained state -> a checkpoint folder like assets/nano, complete or not at all.

    python -m scripts.nano.pack --weights RUN_OR_FILE [--vae RUN/audiovae.safetensors] [--base assets/nano] --out FOLDER

The weights come from a folder in the published layout (model.safetensors), from such a file, or from a training state
(.pt, averaged weights preferred). Configuration, tokenizer, lexicon, defaults and licence are those of ``--base``.
What is written is loaded once before it takes the place of ``--out``.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from scripts.nano.vae import NANO
from voxcpm_core.checkpoint import load
from voxcpm_core.errors import CheckpointError
from voxcpm_core.weights_file import save_weights

MOST_MEGABYTES = 25.0


def read_weights(source: Path) -> dict[str, Tensor]:
    """Tensors of the model without its AudioVAE; from a state, averaged weights in place of the last ones."""
    if source.is_dir():
        source = next((source / n for n in ("model.safetensors", "state.pt") if (source / n).is_file()), source)
    if source.suffix == ".safetensors":
        return load_file(str(source))
    if not source.is_file():
        raise CheckpointError(f"{source} holds neither model.safetensors nor state.pt.")
    state = torch.load(source, map_location="cpu", weights_only=True)
    # "model" and "ema": states from before the project had a trainer of its own
    trained, averaged = state.get("weights") or state.get("model"), state.get("average") or state.get("ema")
    if not trained:
        raise CheckpointError(f"{source} has no weights in it, but {', '.join(sorted(state)[:10])}.")
    tensors = trained | (averaged or {})
    return {name: tensor for name, tensor in tensors.items() if not name.startswith("audio_vae.")}


def pack(weights: dict[str, Tensor], base: Path, out: Path, vae: Path | None = None) -> None:
    """Writes the folder beside its place, loads it, then renames it. Raises CheckpointError naming what does not
    fit.
    """
    part = out.with_name(out.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(base, part)
    halves = {name: t.to(torch.bfloat16).contiguous().clone() for name, t in weights.items()}
    save_weights(halves, part / "model.safetensors", {"format": "pt"})
    if vae is not None:
        shutil.copyfile(vae, part / "audiovae.safetensors")
    try:
        load(part, torch.device("cpu"))
        size = sum(file.stat().st_size for file in part.iterdir()) / 1e6
        if size > MOST_MEGABYTES:
            raise CheckpointError(f"{out} would have {size:.1f} MB; an embedded model may have {MOST_MEGABYTES:.0f}.")
    except CheckpointError:
        shutil.rmtree(part)
        raise
    for file in part.iterdir():
        file.chmod(0o644)
    _replace(part, out)


def _replace(part: Path, out: Path) -> None:
    old = out.with_name(out.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        os.replace(out, old)
    os.replace(part, out)
    shutil.rmtree(old, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, help="run folder, model.safetensors or state.pt")
    parser.add_argument("--vae", type=Path, help="audiovae.safetensors; default: that of --base")
    parser.add_argument("--base", type=Path, default=NANO)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    try:
        pack(read_weights(given.weights or given.base), given.base, given.out, given.vae)
    except CheckpointError as error:
        raise SystemExit(str(error)) from None
    for file in sorted(given.out.iterdir()):
        print(f"{file.stat().st_size / 1e6:8.2f} MB  {file.name}")


if __name__ == "__main__":
    main()

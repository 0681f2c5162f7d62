"""The command line: flags -> :class:`Options`. A flag that is not given leaves the preset or the resumed run alone."""

from __future__ import annotations

import argparse
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from .adapters import AdapterOptions
from .errors import TrainingError
from .losses import LossOptions
from .options import Options, read_options
from .presets import PRESETS

_LOSS_FLAGS = {
    "stop_loss": "stop",
    "attention_loss": "attention",
    "phone_loss": "phones",
    "timbre_loss": "timbre",
    "onset_weight": "onset_weight",
    "stop_weight": "stop_weight",
    "history_noise": "history_noise",
    "diffusion_share": "diffusion_share",
}


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="python -m voxcpm_core.training",
        description="Trains a VoxCPM model: adapters (LoRA), every weight, or the embedded nano model.",
        argument_default=argparse.SUPPRESS,
    )
    p.add_argument("--preset", choices=sorted(PRESETS), help="what to begin with; default lora")
    p.add_argument("--resume", metavar="RUN", help="go on from a run's folder, with its options")
    p.add_argument("--weights-only", action="store_true", help="with --resume: fresh optimisers, new warm-up")
    p.add_argument("--export", metavar="FOLDER", help="with --resume: only write the model (or adapter) and stop")
    p.add_argument("--base", help="checkpoint to start from: nano, a folder or a hub id")
    p.add_argument("--data", action="append", help="data set folder or manifest.jsonl; may be given more than once")
    p.add_argument("--out", help="folder of this run; default: that of --resume")
    _length_flags(p.add_argument_group("length and batches"))
    _optimiser_flags(p.add_argument_group("optimisers"))
    _content_flags(p.add_argument_group("what is trained on what"))
    _machine_flags(p.add_argument_group("machine and files"))
    _listening_flags(p.add_argument_group("validation by listening, at every save"))
    return p


def _length_flags(g: argparse._ArgumentGroup) -> None:
    g.add_argument("--steps", type=int, help="optimiser steps in all")
    g.add_argument("--minutes", type=float, help="minutes of this run, instead of --steps")
    g.add_argument("--positions", type=int, help="sequence positions per batch, padding included")
    g.add_argument("--accumulate", type=int, help="batches per step")
    g.add_argument("--max-seconds", type=float, help="leave longer recordings out")
    g.add_argument("--held-out-every", type=int, help="keep every n-th item back for validation; 0: none")
    g.add_argument("--seed", type=int)


def _optimiser_flags(g: argparse._ArgumentGroup) -> None:
    g.add_argument("--optimiser", choices=("adamw", "muon"))
    g.add_argument("--rate", type=float, help="learning rate of AdamW")
    g.add_argument("--muon-rate", type=float)
    g.add_argument("--weight-decay", type=float)
    g.add_argument("--warmup", type=int, help="steps")
    g.add_argument("--decay", type=float, help="last share of the run in which the rates fall to 3 %%; 0: never")
    g.add_argument("--clip", type=float, help="largest gradient norm; 0: any")
    g.add_argument("--average", type=float, help="moving average of the weights per step, such as 0.995; 0: none")


def _content_flags(g: argparse._ArgumentGroup) -> None:
    g.add_argument("--lora-rank", type=int, help="train adapters of this rank; 0: the weights themselves")
    g.add_argument("--lora-alpha", type=float)
    g.add_argument("--lora-parts", type=_words, help="comma list of lm, dit, proj")
    g.add_argument("--train", type=_words, help="only weights that begin with one of these, comma list")
    g.add_argument("--layouts", type=_shares, help="such as plain=.6,design=.2,reference=.2")
    g.add_argument("--spelling", type=_numbers, help="aligned data: shares of letters, phones, mixed")
    g.add_argument("--default-weight", type=float, help="how often the default voice is drawn against its share")
    g.add_argument("--stop-loss", type=float, help="weight of the stop loss; likewise the next three")
    g.add_argument("--attention-loss", type=float)
    g.add_argument("--phone-loss", type=float)
    g.add_argument("--timbre-loss", type=float, help="makes the first patches know the voice that was asked for")
    g.add_argument("--onset-weight", type=float, help="of the first patch within the diffusion loss")
    g.add_argument("--stop-weight", type=float, help="of the last patch within the stop loss")
    g.add_argument("--diffusion-share", type=float, help="share of the patches in the diffusion loss; less is cheaper")
    g.add_argument("--phone-head", help="safetensors file to start the phone head from")
    g.add_argument("--latent-weights", help="latent_recipe.npz or a .json list: weight of each latent in the loss")
    g.add_argument("--history-noise", type=float, help="largest noise on the patches that are read")


def _machine_flags(g: argparse._ArgumentGroup) -> None:
    g.add_argument("--device", help="cpu, cuda, cuda:1, ...; default: cuda where there is one")
    g.add_argument("--precision", choices=("auto", "float32", "bfloat16"))
    g.add_argument("--save-memory", action="store_true", help="compute activations anew in the backward pass")
    g.add_argument("--threads", type=int, help="CPU threads; with other work on the machine take 1")
    g.add_argument("--save-minutes", type=float)
    g.add_argument("--log-every", type=int, help="steps between reports")
    g.add_argument("--export-dtype", choices=("bfloat16", "float32"))
    g.add_argument("--other-rate", choices=("refuse", "resample"), help="manifest clips of another sample rate")
    g.add_argument("--cache", help="folder for the latents of manifests; default: in --out")


def _listening_flags(g: argparse._ArgumentGroup) -> None:
    g.add_argument("--sentences", help="text file, one sentence to speak per line")
    g.add_argument("--recogniser", help="package.module:function, (samples, sample rate) -> words; for word errors")
    g.add_argument("--embedding", help="package.module:function, (samples, sample rate) -> vector; for likeness")
    g.add_argument("--reference", help="clip that the sentences are spoken after and compared with")


def options_from(given: dict[str, Any]) -> Options:
    """``given``: the flags that were given, by name. Raises TrainingError for what does not go together."""
    if "resume" in given:
        options = read_options(Path(given["resume"]))
        given = {"out": given["resume"], **given}
    else:
        options = PRESETS[given.get("preset", "lora")]()
    own = {f.name for f in fields(Options)}
    changes = {name: value for name, value in given.items() if name in own}
    if "minutes" in given and "steps" not in given:
        changes["steps"] = 0
    if "data" in changes:
        changes["data"] = tuple(changes["data"])
    changes["lora"] = _lora(options.lora, given)
    changes["losses"] = _losses(options.losses, given)
    recipe = {name: given[name] for name in ("layouts", "spelling") if name in given}
    options = replace(options, **changes, recipe=replace(options.recipe, **recipe))
    if not options.data and "export" not in given:
        raise TrainingError("There is no data: give a data set folder or a manifest with --data.")
    if not options.steps and not options.minutes:
        raise TrainingError("The run has no length: give --steps or --minutes.")
    return options


def _lora(before: AdapterOptions | None, given: dict[str, Any]) -> AdapterOptions | None:
    if given.get("lora_rank") == 0:
        return None
    if before is None and "lora_rank" not in given:
        return None
    adapter = before or AdapterOptions()
    rank = given.get("lora_rank", adapter.r)
    adapter = replace(adapter, r=rank, alpha=given.get("lora_alpha", adapter.alpha if before else rank))
    if "lora_parts" in given:
        parts = given["lora_parts"]
        if not set(parts) <= {"lm", "dit", "proj"}:
            raise TrainingError(f"--lora-parts {','.join(parts)}: the parts are lm, dit and proj.")
        adapter = replace(adapter, **{f"enable_{part}": part in parts for part in ("lm", "dit", "proj")})
    return adapter


def _losses(before: LossOptions, given: dict[str, Any]) -> LossOptions:
    changes = {field: given[flag] for flag, field in _LOSS_FLAGS.items() if flag in given}
    if "latent_weights" in given:
        from .latents import read_latent_weights

        changes["latent_weights"] = read_latent_weights(Path(given["latent_weights"]))
    return replace(before, **changes)


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


def _shares(text: str) -> dict[str, float]:
    pairs = (part.split("=") for part in text.split(","))
    return {name.strip(): float(value) for name, value in pairs}

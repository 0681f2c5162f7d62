"""``python -m voxcpm_core.training``: train, resume, export."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from ..checkpoint import find_checkpoint
from ..errors import VoxCPMError
from .dataset import Dataset, join, read_folder
from .errors import TrainingError
from .examples import Examples
from .flags import options_from, parser
from .folder import load_model
from .latents import encode_manifest
from .listening import Heard, Listening, Sentence
from .loop import Validate, run, write_result
from .options import Options, read_options
from .stream import Stream
from .trainer import Trainer, read_state
from .validate import HeldOut

log = logging.getLogger("voxcpm_core.training")


def main(arguments: list[str] | None = None) -> int:
    given = vars(parser().parse_args(arguments))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    try:
        return _main(given)
    except (VoxCPMError, OSError) as error:
        log.error("%s", error)
        return 1


def _main(given: dict) -> int:
    options = options_from(given)
    if "threads" in given:
        torch.set_num_threads(given["threads"])
    if "device" not in given and "resume" not in given:
        options = replace(options, device="cuda" if torch.cuda.is_available() else "cpu")
    base = find_checkpoint(options.base)
    model = load_model(base, torch.device(options.device))
    stream = Stream(
        Examples(read_data(options, base), model.config, base, options.recipe),
        options.positions,
        options.seed,
        options.max_seconds,
    )
    trainer = Trainer(model, stream, options)
    if "resume" in given:
        state = read_state(Path(given["resume"]))
        trainer.restore({**state, "optimisers": []} if given.get("weights_only") else state)
        if read_options(Path(given["resume"])).data != options.data:
            trainer.progress.best = None  # scores on other recordings say nothing about these
    if "export" in given:
        log.info("Wrote %s.", write_result(trainer, base, Path(given["export"])))
        return 0
    log.info(
        "Training %d weights in %d tensors on %d items; %d held out; from step %d.",
        sum(p.numel() for p in trainer.trainable.values()),
        len(trainer.trainable),
        len(stream.examples.dataset.training),
        len(stream.examples.dataset.held_out),
        trainer.progress.step,
    )
    run(trainer, base, Path(options.out), _validation(given, stream, base))
    return 0


def read_data(options: Options, base: Path) -> Dataset:
    """Data set folders as they are; manifests through the AudioVAE, kept in ``options.cache``."""
    return join([_read(Path(path), options, base) for path in options.data])


def _validation(given: dict, stream: Stream, base: Path) -> Validate:
    held_out = HeldOut(stream)
    if "sentences" not in given:
        return held_out
    reference = Path(given["reference"]) if "reference" in given else None
    lines = Path(given["sentences"]).read_text(encoding="utf-8").splitlines()
    sentences = [Sentence(line.strip(), reference=reference) for line in lines if line.strip()]
    judges = (_function(given[flag]) if flag in given else None for flag in ("recogniser", "embedding"))
    return Heard(held_out, Listening(sentences, *judges), base)


def _function(name: str) -> Callable:
    """The function that ``package.module:function`` names. Raises TrainingError."""
    module, _, function = name.partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise TrainingError(f"There is no function {name} ({error}); write package.module:function.") from None


def _read(path: Path, options: Options, base: Path) -> Dataset:
    if path.is_dir():
        return read_folder(path, options.held_out_every, options.default_weight)
    return encode_manifest(
        path,
        base,
        Path(options.cache or Path(options.out) / "latents"),
        other_rate=options.other_rate,
        held_out_every=options.held_out_every,
        device=options.device,
    )


if __name__ == "__main__":
    sys.exit(main())

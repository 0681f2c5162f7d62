"""One training: the model, what of it is trained, its optimisers, and one step after another.

Order of the data and all noise are functions of (seed, step). So the state that a resumed run needs is small, and with
``steps`` as its length it goes on bit for bit as if it had never stopped.
"""

from __future__ import annotations

import logging
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from ..model import Model
from .adapters import add_adapters, choose
from .alignment import PHONES
from .errors import TrainingError
from .examples import seeded
from .losses import Losses, compute, draw
from .optim import Average, Muon, rate_scale, split_for_muon
from .options import Options
from .packing import Batch
from .stream import Position, Stream

log = logging.getLogger(__name__)
STATE_FORMAT = 1


@dataclass
class Progress:
    """Where a training stands; everything here is saved."""

    step: int = 0
    examples: int = 0
    optimiser_steps: int = 0  # since the optimisers began with empty moments: what the warm-up counts
    position: Position = Position()
    best: float | None = None


class Trainer:
    def __init__(self, model: Model, stream: Stream, options: Options):
        self.model, self.stream, self.options = model, stream, options
        self.progress = Progress()
        self.phone_head = _phone_head(model, options)
        self.timbre_head = _head(model, options, model.config.feat_dim) if options.losses.timbre else None
        self.trainable = self._choose()
        everything = {**self.trainable, **self._helpers()}
        self.optimisers = _optimisers(everything, options, compute_dtype(options, model.device))
        self.average = Average(self.trainable, options.average) if options.average else None
        self._parameters = list(everything.values())
        self._generator = torch.Generator(model.device)

    def step(self, fraction: float) -> dict[str, float]:
        """One step of the optimisers; ``fraction`` of the run that is done (0 to 1) sets the rates.

        Returns losses (means over the learnt patches), gradient norm, rate scale and the number of examples.
        """
        batches = self._batches()
        patches = sum(len(batch.target) for batch in batches)
        scale = self._set_rates(fraction)
        sums: dict[str, float] = {}
        for number, batch in enumerate(batches):
            share = len(batch.target) / patches
            losses = self.losses(batch.to(self.model.device), number)
            (losses.total * share).backward()
            for name, value in vars(losses).items():
                sums[name] = sums.get(name, 0.0) + value.detach() * share
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, self.options.clip or float("inf"))
        if torch.isfinite(norm):
            for optimiser in self.optimisers:
                optimiser.step()
            if self.average is not None:
                self.average.update(self.trainable)
        else:
            log.warning("Step %d was left out: its gradient is not finite.", self.progress.step)
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)
        self.progress.step += 1
        self.progress.optimiser_steps += 1
        self.progress.examples += sum(batch.examples for batch in batches)
        result = {name: float(value) for name, value in sums.items()}
        return {**result, "norm": float(norm), "scale": scale, "patches": float(patches)}

    def losses(self, batch: Batch, number: int = 0) -> Losses:
        """The losses of ``batch`` with the noise that belongs to this step and the ``number``-th batch of it."""
        options = self.options.losses
        seed = seeded(self.options.seed, self.progress.step, number).getrandbits(63)
        with self.arithmetic():
            chance = draw(batch, options, self._generator.manual_seed(seed))
            heads = self.phone_head, self.timbre_head
            return compute(self.model, batch, chance, options, *heads, self.options.save_memory)

    def arithmetic(self) -> AbstractContextManager:
        dtype = compute_dtype(self.options, self.model.device)
        return torch.autocast(self.model.device.type, torch.bfloat16, enabled=dtype == torch.bfloat16)

    def weights(self) -> dict[str, Tensor]:
        """What is to be used of the trained weights: their average where there is one."""
        return dict(self.average.weights) if self.average else {n: p.detach() for n, p in self.trainable.items()}

    def state(self) -> dict[str, Any]:
        progress = {**vars(self.progress), "position": [self.progress.position.pool, self.progress.position.batch]}
        return {
            "format": STATE_FORMAT,
            "weights": {name: p.detach() for name, p in self.trainable.items()},
            "average": self.average.weights if self.average else None,
            "phone_head": self.phone_head.state_dict() if self.phone_head else None,
            "timbre_head": self.timbre_head.state_dict() if self.timbre_head else None,
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
            "progress": progress,
            "options": self.options.to_json(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from ``state``. Without optimiser state (or with another optimiser) the warm-up begins anew."""
        if set(state["weights"]) != set(self.trainable):
            odd = sorted(set(state["weights"]) ^ set(self.trainable))
            raise TrainingError(f"The saved training trains other weights than this one, for example {odd[0]}.")
        _copy(self.trainable, state["weights"])
        if self.average is not None:
            _copy(self.average.weights, state["average"] or state["weights"])
        if self.phone_head is not None and state["phone_head"]:
            self.phone_head.load_state_dict(state["phone_head"])
        if self.timbre_head is not None and state.get("timbre_head"):
            self.timbre_head.load_state_dict(state["timbre_head"])
        saved = dict(state["progress"])
        self.progress = Progress(**{**saved, "position": Position(*saved["position"])})
        if _sizes(state["optimisers"]) == _sizes([optimiser.state_dict() for optimiser in self.optimisers]):
            for optimiser, content in zip(self.optimisers, state["optimisers"], strict=True):
                optimiser.load_state_dict(content)
        else:  # another optimiser, or a head that was not there before
            self.progress.optimiser_steps = 0

    def _batches(self) -> list[Batch]:
        batches = []
        for _ in range(self.options.accumulate):
            batch, self.progress.position = self.stream.next(self.progress.position)
            batches.append(batch)
        return batches

    def _set_rates(self, fraction: float) -> float:
        options = self.options
        scale = rate_scale(self.progress.optimiser_steps, fraction, options.warmup, options.decay)
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = scale * (options.muon_rate if isinstance(optimiser, Muon) else options.rate)
        return scale

    def _choose(self) -> dict[str, nn.Parameter]:
        if self.options.lora is None:
            return choose(self.model, self.options.train)
        generator = torch.Generator().manual_seed(self.options.seed)
        return add_adapters(self.model, self.options.lora, generator)

    def _helpers(self) -> dict[str, nn.Parameter]:
        heads = {"phone_head": self.phone_head, "timbre_head": self.timbre_head}
        return {f"{name}.{n}": p for name, head in heads.items() if head for n, p in head.named_parameters()}


def compute_dtype(options: Options, device: torch.device) -> torch.dtype:
    """The dtype of the large products. "auto": bfloat16 where the hardware multiplies it, float32 elsewhere."""
    if options.precision != "auto":
        return {"float32": torch.float32, "bfloat16": torch.bfloat16}[options.precision]
    fast = device.type == "cuda" or (device.type == "cpu" and torch.cpu._is_avx512_bf16_supported())
    return torch.bfloat16 if fast else torch.float32


def save_state(trainer: Trainer, folder: Path) -> Path:
    """``state.pt`` in ``folder``, replaced only when the new one is complete on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / ".state.new"
    with fresh.open("wb") as file:
        torch.save(trainer.state(), file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(folder / "state.pt")
    return folder / "state.pt"


def read_state(path: Path) -> dict[str, Any]:
    """The state in ``path`` (a file or the folder of a run). Raises TrainingError."""
    file = path / "state.pt" if path.is_dir() else path
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for files that are not its own
        raise TrainingError(f"{file} cannot be read as the state of a training: {error}.") from None
    if not isinstance(state, dict) or state.get("format") != STATE_FORMAT:
        raise TrainingError(f"{file} is not a training state of this program (format {STATE_FORMAT}).")
    return state


def _optimisers(
    parameters: dict[str, nn.Parameter], options: Options, dtype: torch.dtype
) -> list[torch.optim.Optimizer]:
    settings = {"lr": options.rate, "betas": options.betas, "weight_decay": options.weight_decay}
    if options.optimiser == "adamw":
        return [torch.optim.AdamW(list(parameters.values()), **settings, fused=True)]
    matrices, rest = split_for_muon(parameters)
    muon = Muon(matrices, options.muon_rate, weight_decay=options.weight_decay, dtype=dtype)
    return [muon, torch.optim.AdamW(rest, **settings, fused=True)]


def _sizes(states: list[dict[str, Any]]) -> list[list[int]]:
    return [[len(group["params"]) for group in state["param_groups"]] for state in states]


def _phone_head(model: Model, options: Options) -> nn.Linear | None:
    if not options.losses.phones:
        return None
    head = _head(model, options, len(PHONES))
    if options.phone_head:
        try:
            head.load_state_dict(load_file(options.phone_head))
        except (OSError, RuntimeError) as error:
            raise TrainingError(f"{options.phone_head} does not hold a fitting phone head: {error}.") from None
    return head


def _head(model: Model, options: Options, size: int) -> nn.Linear:
    """Reads ``size`` values from the hidden state of the language model, for the sake of what it must then hold."""
    head = nn.Linear(model.config.lm.hidden_size, size)
    with torch.no_grad():
        head.weight.normal_(std=0.02, generator=torch.Generator().manual_seed(options.seed))
        head.bias.zero_()
    return head.to(model.device)


def _copy(places: dict[str, Any], values: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, place in places.items():
            place.copy_(values[name])

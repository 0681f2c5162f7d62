"""Every knob of a training, as plain data. The command line and the saved state both carry exactly this."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .adapters import AdapterOptions
from .examples import Recipe
from .losses import LossOptions


@dataclass(frozen=True)
class Options:
    """A training. Either ``steps`` or ``minutes`` says how long; only with ``steps`` is a resumed run exactly an
    unbroken one, because the rates then do not follow the clock."""

    base: str = "nano"
    data: tuple[str, ...] = ()
    out: str = "training"
    steps: int = 0  # of the optimiser, in all
    minutes: float = 0.0  # of this run
    positions: int = 3000  # per batch, padding included
    accumulate: int = 1  # batches per optimiser step
    seed: int = 0
    max_seconds: float = 0.0
    held_out_every: int = 250
    default_weight: float = 1.0
    other_rate: str = "resample"  # manifest clips of another sample rate: or "refuse"
    cache: str = ""  # where latents of manifests are kept; empty: in ``out``

    optimiser: str = "adamw"  # or "muon": Muon for matrices inside transformer layers, AdamW for the rest
    rate: float = 1e-5
    muon_rate: float = 0.02
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.01
    warmup: int = 30
    decay: float = 0.55
    clip: float = 1.0
    average: float = 0.0  # EMA per step, for example 0.995; 0 = none

    train: tuple[str, ...] = ()  # prefixes of weights; empty: all
    lora: AdapterOptions | None = None
    recipe: Recipe = field(default_factory=Recipe)
    losses: LossOptions = field(default_factory=LossOptions)
    phone_head: str = ""  # safetensors with weight and bias to begin with

    device: str = "cpu"
    precision: str = "auto"  # float32 or bfloat16 arithmetic; the weights stay float32
    save_memory: bool = False
    save_minutes: float = 10.0
    export_dtype: str = "bfloat16"
    log_every: int = 25

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)


def from_json(text: str) -> Options:
    raw = json.loads(text)
    lora, recipe, losses = raw.pop("lora"), raw.pop("recipe"), raw.pop("losses")
    return Options(
        **_tuples(raw),
        lora=AdapterOptions(**_tuples(lora)) if lora else None,
        recipe=Recipe(**_tuples(recipe)),
        losses=LossOptions(**_tuples(losses)),
    )


def read_options(folder: Path) -> Options:
    return from_json((folder / "options.json").read_text(encoding="utf-8"))


def _tuples(raw: dict) -> dict:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()}

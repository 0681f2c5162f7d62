"""Options that go together, for the three things people train."""

from __future__ import annotations

from dataclasses import replace

from .adapters import AdapterOptions
from .examples import Recipe
from .losses import LossOptions
from .options import Options

ALL_ALIKE = Recipe(layouts={"plain": 0.5, "design": 0.2, "reference": 0.3})


def lora() -> Options:
    """A few minutes to hours of one speaker on a published model."""
    return Options(
        lora=AdapterOptions(), rate=1e-4, steps=300, warmup=30, positions=4096, held_out_every=20, recipe=ALL_ALIKE
    )


def full() -> Options:
    """Every weight of a published model: from hours of data on."""
    return Options(rate=1e-5, steps=1000, warmup=100, positions=4096, held_out_every=20, recipe=ALL_ALIKE)


def nano() -> Options:
    """The embedded model: small, from aligned machine speech, with helper losses."""
    return Options(
        optimiser="muon",
        rate=2e-3,
        muon_rate=0.02,
        warmup=50,
        minutes=60.0,
        average=0.995,
        default_weight=2.5,
        losses=LossOptions(
            stop=0.2,
            stop_weight=3.0,
            attention=0.3,
            phones=0.2,
            timbre=0.5,
            onset_weight=6.0,
            condition_noise=(0.3, 0.3),
            history_noise=0.25,
        ),
    )


PRESETS = {"lora": lora, "full": full, "nano": nano}


def named(name: str) -> Options:
    return replace(PRESETS[name]())

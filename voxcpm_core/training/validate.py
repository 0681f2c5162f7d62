"""How good a training is: losses on held-out recordings, and listening to what it says."""

from __future__ import annotations

import random
from dataclasses import replace

import torch

from .losses import compute, no_noise
from .packing import Batch, collate, pack
from .stream import Stream
from .trainer import Trainer

_LETTERS = (1.0, 0.0, 0.0)


class HeldOut:
    """Losses on the held-out items, always with the same layouts and the same noise, so that runs can be compared.

    Aligned items are read in letters. ``limit`` bounds how many items are used (0: all).
    """

    def __init__(self, stream: Stream, limit: int = 0):
        rng = random.Random(0)
        held_out = stream.examples.dataset.held_out
        chosen = held_out[:: max(1, len(held_out) // limit)][:limit] if limit else held_out
        examples = [stream.examples.build(index, rng, _LETTERS) for index in chosen]
        self.batches: list[Batch] = [collate(group) for group in pack(examples, stream.positions)]

    def __call__(self, trainer: Trainer) -> dict[str, float]:
        """Means over the learnt patches; ``score`` is the sum of diffusion and stop loss."""
        if not self.batches:
            return {}
        if trainer.average is not None:
            trainer.average.swap(trainer.trainable)
        try:
            means = self._means(trainer)
        finally:
            if trainer.average is not None:
                trainer.average.swap(trainer.trainable)
        return {**means, "score": means["diffusion"] + means["stop"]}

    @torch.no_grad()
    def _means(self, trainer: Trainer) -> dict[str, float]:
        device = trainer.model.device
        options = replace(trainer.options.losses, condition_noise=(0.0, 0.0), history_noise=0.0)
        sums: dict[str, float] = {}
        total = sum(len(batch.target) for batch in self.batches)
        for number, batch in enumerate(self.batches):
            chance = no_noise(batch, torch.Generator().manual_seed(number)).to(device)
            with trainer.arithmetic():
                losses = compute(
                    trainer.model, batch.to(device), chance, options, trainer.phone_head, trainer.timbre_head
                )
            for name, value in vars(losses).items():
                sums[name] = sums.get(name, 0.0) + float(value) * len(batch.target) / total
        return sums

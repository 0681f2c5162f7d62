"""The endless order of batches. A pool of examples is a function of (seed, number): a position is two numbers."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .errors import DataError
from .examples import Examples, seeded
from .packing import Batch, collate, pack


@dataclass(frozen=True)
class Position:
    """The next batch: which pool, and which batch in it."""

    pool: int = 0
    batch: int = 0


class Stream:
    """Batches of at most ``positions`` with padding. Items longer than ``max_seconds`` (0: any) are left out."""

    def __init__(self, examples: Examples, positions: int, seed: int, max_seconds: float = 0.0, pool_size: int = 1000):
        self.examples, self.positions, self.seed = examples, positions, seed
        items = examples.dataset.items
        self._usable = [i for i in examples.dataset.training if not max_seconds or items[i].seconds < max_seconds]
        if not self._usable:
            raise DataError(
                "There is nothing to train on: the data set is empty, or every item is held out or too long."
            )
        self._weights = [items[index].weight for index in self._usable]
        self._pool_size = min(pool_size, len(self._usable)) if self._even else pool_size
        self._made: tuple[int, list] = (-1, [])

    @property
    def _even(self) -> bool:
        return len(set(self._weights)) == 1

    def next(self, position: Position) -> tuple[Batch, Position]:
        groups = self._groups(position.pool)
        batch = collate(groups[position.batch])
        last = position.batch + 1 == len(groups)
        return batch, Position(position.pool + 1, 0) if last else Position(position.pool, position.batch + 1)

    def _groups(self, pool: int) -> list:
        if self._made[0] != pool:
            rng = seeded(self.seed, pool)
            groups = pack([self.examples.build(index, rng) for index in self._draw(pool, rng)], self.positions)
            rng.shuffle(groups)
            self._made = pool, groups
        return self._made[1]

    def _draw(self, pool: int, rng: random.Random) -> list[int]:
        if not self._even:
            return rng.choices(self._usable, weights=self._weights, k=self._pool_size)
        # The same weight for all: every item once before any comes again.
        count, size = len(self._usable), self._pool_size
        drawn: list[int] = []
        for epoch in range(pool * size // count, ((pool + 1) * size - 1) // count + 1):
            order = self._usable.copy()
            seeded(self.seed, -1, epoch).shuffle(order)
            first = max(0, pool * size - epoch * count)
            drawn += order[first : (pool + 1) * size - epoch * count]
        return drawn

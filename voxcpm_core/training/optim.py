"""Optimisers and the schedule of their rates.

Muon (Jordan et al., 2024) orthogonalises the momentum of a matrix; small models learn about as much in two steps as in
three of AdamW. torch has one of its own, which iterates in bfloat16: on a CPU without bfloat16 arithmetic that takes
many times longer than the training step itself, so here the iteration runs in a dtype that fits the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

_COEFFICIENTS = (3.4445, -4.775, 2.0315)  # of the quintic iteration, as published
_ITERATIONS = 5
_FLOOR = 0.03  # the share of the rate that is left at the end of the decay


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, orthogonalised; decoupled weight decay; the same rule as ``torch.optim.Muon``."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        dtype: torch.dtype = torch.float32,
    ):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self._dtype = dtype

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)

    def _update(self, parameter: nn.Parameter, group: dict) -> None:
        state = self.state[parameter]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        buffer = state["momentum_buffer"].lerp_(parameter.grad, 1 - group["momentum"])
        update = orthogonal(parameter.grad.lerp(buffer, group["momentum"]), self._dtype)
        rows, columns = parameter.shape
        rate = group["lr"] * max(1.0, rows / columns) ** 0.5
        parameter.mul_(1 - group["lr"] * group["weight_decay"]).add_(update.to(parameter.dtype), alpha=-rate)


def orthogonal(matrix: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The nearest matrix with singular values around 1, by Newton-Schulz iteration in ``dtype``."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.T if tall else matrix).to(dtype)
    x = x / x.norm().clamp(min=1e-7)
    # The factors that the iteration multiplies onto x depend on x x^T alone: with at least twice as many columns as
    # rows it is cheaper to collect them and touch x once (in float32; bfloat16 would lose the small values).
    collected = dtype == torch.float32 and x.shape[1] >= 2 * x.shape[0]
    x = _collected(x) if collected else _iterated(x)
    return x.T if tall else x


def _iterated(x: Tensor) -> Tensor:
    a, b, c = _COEFFICIENTS
    for _ in range(_ITERATIONS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def _collected(x: Tensor) -> Tensor:
    a, b, c = _COEFFICIENTS
    gram, product = x @ x.T, None
    for iteration in range(_ITERATIONS):
        factor = torch.addmm(gram, gram, gram, beta=b, alpha=c)
        factor.diagonal().add_(a)
        product = factor if product is None else factor @ product
        if iteration + 1 < _ITERATIONS:
            gram = factor @ gram @ factor
    return product @ x


def split_for_muon(parameters: Mapping[str, nn.Parameter]) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Matrices inside transformer layers for Muon, everything else (embeddings, projections, norms) for AdamW."""
    matrices = [p for name, p in parameters.items() if p.ndim == 2 and ".layers." in name]
    chosen = {id(p) for p in matrices}
    return matrices, [p for p in parameters.values() if id(p) not in chosen]


def rate_scale(optimiser_steps: int, progress: float, warmup: int, decay: float) -> float:
    """Factor on the rates: linear warm-up over ``warmup`` steps, flat, and over the last ``decay`` share of the run
    linear down to 3 %. ``progress`` runs from 0 to 1."""
    rising = min(1.0, (optimiser_steps + 1) / max(1, warmup))
    left = 1.0 - min(1.0, progress)
    return rising * (1.0 if decay <= 0 or left > decay else max(_FLOOR, left / decay))


class Average:
    """Exponential moving average of weights (EMA); what is exported."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], decay: float):
        self.decay = decay
        self.weights = {name: parameter.detach().clone() for name, parameter in parameters.items()}

    @torch.no_grad()
    def update(self, parameters: Mapping[str, nn.Parameter]) -> None:
        current = [parameters[name].detach() for name in self.weights]
        torch._foreach_lerp_(list(self.weights.values()), current, 1 - self.decay)

    @torch.no_grad()
    def swap(self, parameters: Mapping[str, nn.Parameter]) -> None:
        """Exchanges the average and the current weights; a second call undoes it."""
        for name, mine in self.weights.items():
            theirs = parameters[name].data
            parameters[name].data = mine
            self.weights[name] = theirs

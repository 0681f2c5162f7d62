"""What is learnt: the velocity of the flow, when to stop, and for small models where the text is read.

Flow matching (arXiv 2210.02747): ``x_t = (1 - t) x + t z`` with noise z, velocity ``z - x``, one time per patch, t =
sigmoid of a normal draw around -0.4. The published ``sigma_min`` of 1e-6 is below what float32 shows and left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..model import Model
from .forward import Heads, Hidden, teacher_forced, velocity
from .packing import Batch

_TIME_CENTRE = -0.4
_PHONE_SCALE = 8.0  # brings the mean over many absent phones to the size of the other losses
_LEAST_SPREAD = 0.02  # of the mean latents within a batch, for batches of one voice
_TIMBRE_PATCHES = 2  # later ones hear the voice in what was already said


@dataclass(frozen=True)
class LossOptions:
    """Weights of the losses and strengths of the noise. The defaults suit fine-tuning; see docs/training.md."""

    stop: float = 1.0
    attention: float = 0.0  # needs aligned data
    phones: float = 0.0  # needs aligned data and a phone head
    timbre: float = 0.0  # needs a timbre head
    stop_weight: float = 1.0  # of the last patch against all others, in the stop loss
    guided_layers: tuple[int, ...] = (1, 2, 3)
    onset_weight: float = 1.0  # of an utterance's first patch in the diffusion loss: it decides the voice
    diffusion_share: float = 1.0  # of the learnt patches goes through the diffusion loss; less is cheaper
    drop_plan: float = 0.1  # share of patches learnt without the language models, for guidance
    condition_noise: tuple[float, float] = (0.0, 0.3)  # share of patches, strength
    history_noise: float = 0.0  # largest strength on the patches that are read; one draw per sequence
    latent_weights: tuple[float, ...] = field(default=())  # per latent, mean 1; empty: all alike


@dataclass(frozen=True)
class Chance:
    """Everything random in the losses of one batch, drawn beforehand."""

    time: Tensor  # [N]
    noise: Tensor  # [N, P, D]
    keep: Tensor  # [N] 0 or 1
    condition: Tensor  # [N, P, D], added to the condition
    history: Tensor  # [A, P, D], added to what is read
    chosen: Tensor | None = None  # of the N, those that go through the diffusion loss; None: all

    def to(self, device: torch.device) -> Chance:
        return Chance(*(value if value is None else value.to(device) for value in vars(self).values()))


@dataclass(frozen=True)
class Losses:
    """Means over the learnt patches of a batch; 0 where a loss is off."""

    total: Tensor
    diffusion: Tensor
    stop: Tensor
    attention: Tensor
    phones: Tensor
    timbre: Tensor
    plain: Tensor  # diffusion without latent weights, for comparison


def draw(batch: Batch, options: LossOptions, generator: torch.Generator) -> Chance:
    like = {"generator": generator, "device": generator.device}
    count, shape = len(batch.target), batch.target.shape
    time = torch.sigmoid(torch.randn(count, **like) + _TIME_CENTRE)
    noise = torch.randn(shape, **like)
    keep = (torch.rand(count, **like) >= options.drop_plan).float()
    share, strength = options.condition_noise
    hit = (torch.rand(count, 1, 1, **like) < share).float() * strength
    level = torch.rand(batch.ids.shape[0], **like)[batch.row] * options.history_noise
    history = torch.randn(batch.patches.shape, **like) * level[:, None, None]
    condition, chosen = torch.randn(shape, **like) * hit, None
    if options.diffusion_share < 1:
        chosen = torch.randperm(count, **like)[: max(1, round(count * options.diffusion_share))]
    return Chance(time, noise, keep, condition, history, chosen)


def no_noise(batch: Batch, generator: torch.Generator) -> Chance:
    """For validation: times and flow noise only."""
    return draw(batch, LossOptions(drop_plan=0.0, condition_noise=(0.0, 0.0)), generator)


def compute(
    model: Model,
    batch: Batch,
    chance: Chance,
    options: LossOptions,
    phone_head: nn.Module | None = None,
    timbre_head: nn.Module | None = None,
    save_memory: bool = False,
) -> Losses:
    watched = options.guided_layers if options.attention and batch.attention is not None else ()
    hidden = teacher_forced(model, batch, batch.patches + chance.history, watched, save_memory)
    diffusion, plain = flow_loss(model, batch, chance, hidden, options.latent_weights, options.onset_weight)
    stop = stop_loss(model, batch, hidden, options.stop_weight)
    zero = diffusion.new_zeros(())
    attention = attention_loss(batch, hidden.guided) if watched else zero
    phones = zero
    if options.phones and phone_head is not None and batch.phones is not None:
        phones = phone_loss(batch, phone_head(hidden.plan))
    timbre = zero
    if options.timbre and timbre_head is not None:
        timbre = timbre_loss(batch, timbre_head(hidden.plan))
    total = diffusion + options.stop * stop + options.attention * attention
    total = total + options.phones * phones + options.timbre * timbre
    return Losses(total, diffusion, stop, attention, phones, timbre, plain)


def flow_loss(
    model: Model,
    batch: Batch,
    chance: Chance,
    hidden: Hidden,
    latent_weights: tuple[float, ...],
    onset_weight: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Mean squared error of the velocity, weighted per latent and for the first patch, and plain."""
    pick = slice(None) if chance.chosen is None else chance.chosen
    hidden = Hidden(hidden.plan[pick], hidden.detail[pick], [])
    time, noise, target = chance.time[pick], chance.noise[pick], batch.target[pick]
    t = time[:, None, None]
    x = (1 - t) * target + t * noise
    condition = batch.condition[pick] + chance.condition[pick]
    guess = velocity(model, x, time, hidden, condition, chance.keep[pick])
    error = (guess.float() - (noise - target)).square()
    plain = error.mean()
    if latent_weights:
        error = error * error.new_tensor(latent_weights)
    weight = 1 + (onset_weight - 1) * (_places(batch)[1][pick] == 0)
    return (error.mean((1, 2)) * weight).sum() / weight.sum(), plain.detach()


def stop_loss(model: Model, batch: Batch, hidden: Hidden, weight: float) -> Tensor:
    logits = model.stop_head(F.silu(model.stop_proj(hidden.plan))).float()
    return F.cross_entropy(logits, batch.stop, weight=logits.new_tensor([1.0, weight]))


def attention_loss(batch: Batch, guided: list[Heads]) -> Tensor:
    """Kullback-Leibler divergence from the alignment to the first head of the guided layers, mean over patches."""
    rows, length = batch.ids.shape
    row, place = batch.query // length, batch.query % length
    known = batch.attention.sum(-1) > 0
    future = torch.arange(length, device=place.device) > place[:, None]
    loss = batch.attention.new_zeros(())
    for queries, keys in guided:
        scores = queries.float() @ keys.float().transpose(1, 2) * queries.shape[-1] ** -0.5
        looked = torch.log_softmax(scores[row, place].masked_fill(future, -1e9), -1)
        loss = loss - (batch.attention * looked).sum()
    entropy = torch.xlogy(batch.attention, batch.attention).sum()
    return (loss / len(guided) + entropy) / known.sum().clamp(min=1)


def phone_loss(batch: Batch, logits: Tensor) -> Tensor:
    known = batch.phones_known
    error = F.binary_cross_entropy_with_logits(logits.float(), batch.phones, reduction="none").mean(-1)
    return (error * known).sum() / known.sum().clamp(min=1) * _PHONE_SCALE


def timbre_loss(batch: Batch, guess: Tensor) -> Tensor:
    """How badly the first plans of an utterance know its mean latent: 1 where they know no more than the mean of all.

    ``guess [N, D]``. A voice is decided in the first patch, too little for the flow alone to teach that the words of a
    description decide it.
    """
    row, number = _places(batch)
    sums = guess.new_zeros(len(batch.ids), guess.shape[-1], dtype=torch.float32)
    counts = torch.bincount(row, minlength=len(batch.ids))
    mean = sums.index_add(0, row, batch.target.float().mean(1)) / counts[:, None]
    early = number < _TIMBRE_PATCHES
    spread = mean.var(0, correction=0) + _LEAST_SPREAD
    return ((guess.float() - mean[row])[early].square() / spread).mean()


def _places(batch: Batch) -> tuple[Tensor, Tensor]:
    """Of each learnt patch: its sequence, and its number within the utterance; ``[N]`` each."""
    row = batch.query // batch.ids.shape[1]
    first = row.new_zeros(len(batch.ids)).scatter_reduce(0, row, batch.query, "amin", include_self=False)
    return row, batch.query - first[row]

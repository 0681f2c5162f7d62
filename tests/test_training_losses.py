"""The training pass against the generating one, losses of a batch against single items, gradients against autograd."""

import random
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from tests.test_training_data import Checkpoint, examples, latents
from voxcpm_core import checkpoint
from voxcpm_core.gradients import RMSNormGradient, RotateGradient, SwiGLUGradient
from voxcpm_core.training import forward, losses
from voxcpm_core.training.dataset import Dataset, Item
from voxcpm_core.training.folder import load_model
from voxcpm_core.training.losses import LossOptions
from voxcpm_core.training.packing import collate

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("one_thread")
NAMES = ("v1_16k", "v15_44k", "v2_48k")


def voices():
    items = [Item(text=text, key=("ann",)) for text in ("one", "two three", "four five six")]
    generator = torch.Generator().manual_seed(1)
    parts = [torch.randn(count, 8, generator=generator).numpy() for count in (8, 12, 20)]
    return Dataset(items, lambda index: parts[index])


def load(golden):
    return load_model(golden.path, CPU)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", ["plain", "continuation", "reference_continuation"])
def test_the_training_pass_sees_what_generation_sees(goldens, name, layout):
    """Hidden states before every patch, teacher-forced in a padded batch, against prefill and single steps."""
    if name != "v2_48k" and layout.startswith("reference"):
        pytest.skip("the first generation knows no reference")
    golden = Checkpoint(goldens[name])
    maker = examples(golden, voices(), layout)
    made = [maker.build(index, random.Random(0)) for index in (1, 2)]
    batch = collate(made)
    with torch.no_grad():
        hidden = forward.teacher_forced(load(golden), batch, batch.patches)
    model, _ = checkpoint.load(golden.path, CPU)
    plan, detail = [], []
    for example in made:
        rows = model.new_batch()
        rows.add(model.prefill(example.sequence), [])
        for patch in [None, *example.target[:-1]]:
            if patch is not None:
                model.advance(rows, patch[None])
            plan.append(rows.lm_hidden)
            detail.append(rows.residual_hidden)
    assert torch.allclose(hidden.plan, torch.cat(plan), atol=2e-5)
    assert torch.allclose(hidden.detail, torch.cat(detail), atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_velocity_is_that_of_generation(goldens, name):
    """Guided and free half of the inference estimator, one time for all, against one time per patch here."""
    golden = goldens[name]
    model, _ = checkpoint.load(golden.path, CPU)
    config, generator = model.config, torch.Generator().manual_seed(2)
    draw = lambda *shape: torch.randn(*shape, generator=generator)  # noqa: E731
    x, condition = draw(3, config.patch_size, 8), draw(3, config.patch_size, 8)
    hidden = forward.Hidden(draw(3, 64), draw(3, 64), [])
    estimator, time = model.feat_decoder.estimator, torch.full((3,), 0.3)
    with torch.inference_mode():
        context = estimator.context(model._mu(hidden.plan, hidden.detail), condition)
        guided, free = estimator(x, estimator.time_embedding(time[:1])[0], *context).split(3)
    with torch.no_grad():
        keep = torch.tensor([1.0, 0.0, 1.0])
        ours = forward.velocity(load(golden), x, time, hidden, condition, keep)
    assert torch.allclose(ours, torch.where(keep[:, None, None] > 0, guided, free), atol=2e-5)


@pytest.mark.parametrize("layout", ["plain", "reference", "continuation"])
def test_a_batch_costs_what_its_items_cost_alone(v2_48k, layout):
    golden = Checkpoint(v2_48k)
    maker, model, options = examples(golden, voices(), layout), load(golden), LossOptions(history_noise=0.2)
    made = [maker.build(index, random.Random(index)) for index in range(3)]
    batch = collate(made)
    chance = losses.draw(batch, options, torch.Generator().manual_seed(3))
    with torch.no_grad():
        together = losses.compute(model, batch, chance, options)
        summed, at, read = torch.zeros(2), 0, 0
        for example in made:
            alone = collate([example])
            targets, patches = slice(at, at + len(alone.target)), slice(read, read + len(alone.patches))
            part = losses.Chance(
                *(getattr(chance, name)[targets] for name in ("time", "noise", "keep", "condition")),
                chance.history[patches],
            )
            one = losses.compute(model, alone, part, options)
            summed += torch.stack((one.diffusion, one.stop)) * len(alone.target)
            at, read = targets.stop, patches.stop
    assert torch.allclose(torch.stack((together.diffusion, together.stop)), summed / at, rtol=1e-5)


def test_a_share_of_the_patches_costs_what_those_patches_cost(v2_48k):
    golden = Checkpoint(v2_48k)
    maker, model, options = examples(golden, voices(), "plain"), load(golden), LossOptions(diffusion_share=0.5)
    batch = collate([maker.build(2, random.Random(0))])
    chance = losses.draw(batch, options, torch.Generator().manual_seed(3))
    with torch.no_grad():
        hidden = forward.teacher_forced(model, batch, batch.patches)
        some, _ = losses.flow_loss(model, batch, chance, hidden, ())
        ones = [replace(chance, chosen=index[None]) for index in chance.chosen]
        alone = [losses.flow_loss(model, batch, one, hidden, ())[0] for one in ones]
    assert len(alone) == 2 and torch.allclose(some, torch.stack(alone).mean(), rtol=1e-5)


def test_latents_count_by_their_weights(v2_48k):
    golden = Checkpoint(v2_48k)
    model, batch = load(golden), collate([examples(golden, voices(), "plain").build(2, random.Random(0))])
    chance = losses.draw(batch, LossOptions(), torch.Generator().manual_seed(3))
    with torch.no_grad():
        hidden = forward.teacher_forced(model, batch, batch.patches)
        even, plain = losses.flow_loss(model, batch, chance, hidden, (1.0,) * 8)
        parts = [
            losses.flow_loss(model, batch, chance, hidden, tuple(8.0 * (i == k) for i in range(8))) for k in (0, 5)
        ]
    assert torch.allclose(even, plain) and all(torch.equal(part[1], plain) for part in parts)
    assert not torch.allclose(parts[0][0], parts[1][0])


def test_the_first_patch_counts_by_its_weight(v2_48k):
    golden = Checkpoint(v2_48k)
    maker, model = examples(golden, voices(), "plain"), load(golden)
    batch = collate([maker.build(index, random.Random(0)) for index in (1, 2)])
    chance = losses.draw(batch, LossOptions(), torch.Generator().manual_seed(3))
    onsets = [int((batch.query // batch.ids.shape[1] == row).nonzero()[0, 0]) for row in (0, 1)]
    with torch.no_grad():
        hidden = forward.teacher_forced(model, batch, batch.patches)
        even, plain = losses.flow_loss(model, batch, chance, hidden, ())
        weighted, same = losses.flow_loss(model, batch, chance, hidden, (), 3.0)
        first, _ = losses.flow_loss(model, batch, replace(chance, chosen=torch.tensor(onsets)), hidden, ())
    count = len(batch.target)
    assert torch.equal(plain, same)
    assert torch.allclose(weighted * (count + 4), even * count + first * 4, rtol=1e-5)


def test_the_stop_loss_by_hand():
    """Two patches with known logits; the last one counts once, then three times."""
    model = torch.nn.Module()
    model.stop_proj, model.stop_head = torch.nn.Identity(), torch.nn.Linear(1, 2)
    with torch.no_grad():
        model.stop_head.weight.copy_(torch.tensor([[0.0], [1.0]]))
        model.stop_head.bias.zero_()
    stop = torch.tensor([0, 1])
    batch = type("B", (), {"stop": stop})
    hidden = forward.Hidden(torch.tensor([[1.0], [2.0]]), torch.zeros(2, 1), [])
    wanted = F.cross_entropy(torch.stack((torch.zeros(2), F.silu(torch.tensor([1.0, 2.0]))), 1), stop, reduction="none")
    assert torch.allclose(losses.stop_loss(model, batch, hidden, 1.0), wanted.mean())
    weighted = (wanted[0] + 3 * wanted[1]) / 4
    assert torch.allclose(losses.stop_loss(model, batch, hidden, 3.0), weighted)


def test_attention_loss_is_the_divergence_from_the_alignment():
    """One sequence, two patches, decided at positions 2 and 3; scores are the keys times 1."""
    keys = torch.tensor([[0.0, 1.0, 2.0, 3.0]])[..., None]
    queries = torch.ones(1, 4, 1)
    target = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])  # the second patch is not aligned
    batch = type("B", (), {"ids": torch.zeros(1, 4), "query": torch.tensor([2, 3]), "attention": target})
    looked = torch.log_softmax(torch.tensor([0.0, 1.0, 2.0]), 0)
    wanted = (0.5 * (0.5 * torch.ones(2)).log() * 2).sum() / 2 - 0.5 * (looked[0] + looked[1])
    ours = losses.attention_loss(batch, [(queries, keys), (queries, keys)])
    assert torch.allclose(ours, wanted, atol=1e-6)


def test_the_timbre_loss_asks_the_first_patches_for_the_voice():
    """Two utterances of 12 patches, mean latents +1 and -1; what later patches guess does not matter."""
    target = torch.cat((torch.ones(12, 4, 2), -torch.ones(12, 4, 2)))
    target[::2] *= 1.5
    target[1::2] *= 0.5
    query = torch.cat((torch.arange(12) + 4, torch.arange(12) + 20))
    batch = type("B", (), {"ids": torch.zeros(2, 16), "query": query, "target": target})
    truth = torch.cat((torch.ones(12, 2), -torch.ones(12, 2)))
    assert losses.timbre_loss(batch, truth) < 1e-12
    assert losses.timbre_loss(batch, torch.zeros(24, 2)) == pytest.approx(1 / 1.02, rel=1e-5)
    late = truth.clone()
    late[[2, 11, 14, 23]] += 5
    assert losses.timbre_loss(batch, late) < 1e-12
    early = truth.clone()
    early[12] += 1
    assert losses.timbre_loss(batch, early) == pytest.approx(1 / 4 / 1.02, rel=1e-5)


def test_noise_is_drawn_as_asked(v2_48k):
    maker = examples(Checkpoint(v2_48k), Dataset([Item(text="long")], lambda index: latents(4 * 400)), "plain")
    batch = collate([maker.build(0, random.Random(0))])
    options = LossOptions(drop_plan=0.25, condition_noise=(0.5, 0.3), history_noise=0.2)
    chance = losses.draw(batch, options, torch.Generator().manual_seed(4))
    assert abs(1 - chance.keep.mean() - 0.25) < 0.08
    hit = chance.condition.abs().sum((1, 2)) > 0
    assert abs(hit.float().mean() - 0.5) < 0.1 and abs(chance.condition[hit].std() - 0.3) < 0.01
    assert 0 < chance.history.std() < 0.2 and 0 < chance.time.min() and chance.time.max() < 1
    assert chance.chosen is None
    some = losses.draw(batch, LossOptions(diffusion_share=0.3), torch.Generator().manual_seed(4)).chosen
    assert len(some) == len(set(some.tolist())) == round(0.3 * len(batch.target))
    calm = losses.no_noise(batch, torch.Generator().manual_seed(4))
    assert calm.keep.all() and not calm.condition.any() and not calm.history.any()


def test_saving_memory_changes_nothing(v2_48k):
    golden = Checkpoint(v2_48k)
    batch = collate([examples(golden, voices(), "plain").build(2, random.Random(0))])
    found = []
    for save_memory in (False, True):
        model = load(golden).requires_grad_(True)
        chance = losses.draw(batch, LossOptions(), torch.Generator().manual_seed(5))
        losses.compute(model, batch, chance, LossOptions(), save_memory=save_memory).total.backward()
        found.append([p.grad for p in model.parameters() if p.grad is not None])
    assert len(found[0]) == len(found[1]) and all(torch.equal(a, b) for a, b in zip(*found, strict=True))


# ------------------------------------------------------------------- backward passes written by hand


def wide(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(6), requires_grad=True)


def compare(ours, plain, *inputs):
    a, b = ours(*inputs), plain(*inputs)
    assert torch.allclose(a, b, atol=1e-6)
    weight = torch.linspace(-1, 1, a.numel()).view_as(a)
    found = [torch.autograd.grad((y * weight).sum(), inputs) for y in (a, b)]
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-5, rtol=1e-4)


def test_norm_gradient():
    def plain(x, weight):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weight

    compare(lambda x, w: RMSNormGradient.apply(x, w, 1e-5), plain, wide(3, 5, 8), wide(8))


def test_rotation_gradient():
    cos, sin = torch.rand(1, 5, 1, 4), torch.rand(1, 5, 1, 4)

    def plain(x):
        first, second = x.chunk(2, -1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)

    compare(lambda x: RotateGradient.apply(x, cos, sin), plain, wide(2, 5, 3, 8))


def test_gated_unit_gradient():
    def plain(x):
        gate, up = x.chunk(2, -1)
        return F.silu(gate) * up

    compare(lambda x: SwiGLUGradient.apply(x), plain, wide(3, 10))


def test_rounding_passes_gradients_straight():
    x = wide(7)
    y = forward._RoundStraight.apply(x, 9)
    assert torch.equal(y, torch.round(x * 9) / 9)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], torch.ones(7))


def test_finite_differences_agree_with_the_backward_passes():
    double = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: SwiGLUGradient.apply(x), (double,))

"""Trainings on the tiny checkpoints: they learn, move only what they should, and resume exactly."""

import csv
import os
import shutil
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.test_training_data import Checkpoint
from voxcpm_core import VoxCPM, checkpoint
from voxcpm_core.training import __main__ as command
from voxcpm_core.training import loop
from voxcpm_core.training.adapters import AdapterOptions
from voxcpm_core.training.dataset import Dataset, Item, write_folder
from voxcpm_core.training.errors import TrainingError
from voxcpm_core.training.examples import Examples, Recipe
from voxcpm_core.training.folder import load_model
from voxcpm_core.training.losses import LossOptions
from voxcpm_core.training.optim import Muon, orthogonal, rate_scale
from voxcpm_core.training.options import Options, from_json
from voxcpm_core.training.stream import Stream
from voxcpm_core.training.trainer import Trainer, read_state, save_state
from voxcpm_core.training.validate import HeldOut

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("one_thread")
PLAIN = Options(
    steps=6, rate=1e-3, warmup=0, decay=0.5, positions=80, recipe=Recipe(layouts={"plain": 1.0}), precision="float32"
)


def clips(count=6, held_out=()):
    generator = torch.Generator().manual_seed(1)
    parts = [torch.randn(8 + 4 * (index % 3), 8, generator=generator).numpy() for index in range(count)]
    return Dataset([Item(text=f"text {index}") for index in range(count)], lambda index: parts[index], held_out)


def trainer(golden, options, dataset=None):
    golden = Checkpoint(golden)
    maker = Examples(dataset or clips(), golden.config_read, golden.path, options.recipe)
    model = load_model(golden.path, CPU)
    return Trainer(model, Stream(maker, options.positions, options.seed, pool_size=4), options)


def steps(training, count, options=PLAIN):
    return [training.step(training.progress.step / options.steps) for _ in range(count)]


def weights(training):
    state = {name: p.detach().clone() for name, p in training.model.named_parameters()}
    return state | {name: p.detach().clone() for name, p in training.trainable.items()}


def moved(before, after):
    return {name for name in before if not torch.equal(before[name], after[name])}


@pytest.mark.parametrize("name", ["v1_16k", "v2_48k"])
def test_a_training_learns_its_clips(goldens, name):
    options = replace(PLAIN, steps=40, rate=3e-3, decay=0.0)
    training = trainer(goldens[name], options, clips(3))
    seen = steps(training, 40, options)
    for loss, share in (("total", 0.8), ("stop", 0.5)):
        first, last = (np.mean([step[loss] for step in part]) for part in (seen[:6], seen[-6:]))
        assert last < share * first


def test_everything_moves_in_a_full_training(v2_48k):
    training = trainer(v2_48k, PLAIN)
    before = weights(training)
    steps(training, 2)
    still = set(before) - moved(before, weights(training))
    assert still == set()


def test_only_the_chosen_parts_move(v2_48k):
    training = trainer(v2_48k, replace(PLAIN, train=("residual_lm.", "stop_head")))
    before = weights(training)
    steps(training, 2)
    changed = moved(before, weights(training))
    assert changed == {name for name in before if name.startswith(("residual_lm.", "stop_head"))}
    assert all(not p.requires_grad for name, p in training.model.named_parameters() if name not in changed)
    with pytest.raises(TrainingError, match="begins with 'residual_ml'"):
        trainer(v2_48k, replace(PLAIN, train=("residual_ml",)))


@pytest.mark.parametrize(
    "adapter, layers",
    [
        (
            AdapterOptions(r=2, alpha=4),
            ("base_lm.layers", "residual_lm.layers", "feat_decoder.estimator.decoder.layers"),
        ),
        (AdapterOptions(r=2, enable_dit=False), ("base_lm.layers", "residual_lm.layers")),
        (
            AdapterOptions(r=2, enable_lm=False, enable_dit=False, enable_proj=True),
            ("enc_to_lm_proj", "lm_to_dit_proj", "res_to_dit_proj", "fusion_concat_proj"),
        ),
    ],
)
def test_adapters_move_and_the_base_does_not(v2_48k, data_dir, adapter, layers):
    options = replace(PLAIN, lora=adapter)
    training = trainer(v2_48k, options)
    before = weights(training)
    steps(training, 3)
    changed = moved(before, weights(training))
    assert changed == set(training.trainable), "both halves of every adapter, and nothing else"
    assert {name.rsplit(".", 1)[-1] for name in changed} == {"lora_A", "lora_B"}
    assert all(name.startswith(layers) for name in changed) and all(
        any(n.startswith(p) for n in changed) for p in layers
    )
    folder = loop.write_result(training, v2_48k.path, data_dir / "lora")
    model, _ = checkpoint.load(v2_48k.path, CPU)
    info = checkpoint_lora(model, folder)
    assert (info.rank, info.alpha) == (adapter.r, adapter.alpha)
    assert {f"{layer}.lora_A" for layer in info.layers} == {name for name in changed if name.endswith("A")}


def checkpoint_lora(model, folder):
    from voxcpm_core.lora import load_lora

    return load_lora(model, folder)


def test_a_fresh_adapter_changes_nothing(v2_48k):
    plain, adapted = trainer(v2_48k, PLAIN), trainer(v2_48k, replace(PLAIN, lora=AdapterOptions(r=2)))
    batch, _ = plain.stream.next(plain.progress.position)
    assert torch.equal(plain.losses(batch).total, adapted.losses(batch).total)


@pytest.mark.parametrize(
    "options",
    [
        replace(PLAIN, optimiser="muon", average=0.9, losses=LossOptions(history_noise=0.2), accumulate=2),
        replace(PLAIN, lora=AdapterOptions(r=2)),
    ],
)
def test_resuming_equals_never_having_stopped(v2_48k, data_dir, options):
    """Six steps against three, saved, loaded in a new trainer, and three more: bit for bit."""
    unbroken = trainer(v2_48k, options)
    steps(unbroken, 6)
    first = trainer(v2_48k, options)
    steps(first, 3)
    save_state(first, data_dir / "run")
    second = trainer(v2_48k, options)
    second.restore(read_state(data_dir / "run"))
    steps(second, 3)
    assert not moved(weights(unbroken), weights(second))
    assert not moved(unbroken.weights(), second.weights()), "the average too"
    assert second.progress == unbroken.progress and second.progress.step == 6
    assert moved(weights(unbroken), weights(first)), "the last three steps did something"


def test_states_that_do_not_fit(v2_48k, data_dir):
    save_state(trainer(v2_48k, replace(PLAIN, train=("stop_head",))), data_dir)
    with pytest.raises(TrainingError, match="trains other weights"):
        trainer(v2_48k, PLAIN).restore(read_state(data_dir))
    (data_dir / "state.pt").write_bytes(b"no state")
    with pytest.raises(TrainingError, match=r"state\.pt cannot be read"):
        read_state(data_dir)
    torch.save({"format": 99}, data_dir / "state.pt")
    with pytest.raises(TrainingError, match="not a training state"):
        read_state(data_dir)


def test_a_broken_gradient_is_left_out(v2_48k, torch_threads, caplog):
    dataset = Dataset([Item(text="bad")], lambda index: np.full((8, 8), np.nan, np.float32))
    training = trainer(v2_48k, PLAIN, dataset)
    before = weights(training)
    steps(training, 1)
    assert not moved(before, weights(training)) and "not finite" in caplog.text


def test_muon_does_what_torchs_own_does():
    """torch iterates in bfloat16, so directions agree to about two digits."""
    start = torch.randn(12, 8, generator=torch.Generator().manual_seed(2))
    ours, theirs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
    one = Muon([ours], lr=0.1, weight_decay=0.01)
    other = torch.optim.Muon([theirs], lr=0.1, momentum=0.95, weight_decay=0.01, adjust_lr_fn="original")
    for seed in range(3):
        gradient = torch.randn(12, 8, generator=torch.Generator().manual_seed(seed))
        ours.grad, theirs.grad = gradient, gradient.clone()
        one.step()
        other.step()
    change, wanted = ours - start, theirs - start
    assert (change - wanted).norm() < 0.05 * wanted.norm() and wanted.norm() > 0.1


@pytest.mark.parametrize("shape", [(5, 9), (5, 12), (12, 5), (6, 6)])
def test_both_ways_to_an_orthogonal_matrix_agree(shape):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    found = orthogonal(matrix)
    values = torch.linalg.svdvals(found)
    assert found.shape == matrix.shape and 0.3 < values.min() and values.max() < 1.3
    exact = orthogonal(matrix, torch.float64)  # always the plain iteration
    assert torch.allclose(found.double(), exact, atol=1e-4)


def test_rates_rise_stay_and_fall():
    assert rate_scale(0, 0.0, warmup=10, decay=0.5) == 0.1
    assert rate_scale(50, 0.4, warmup=10, decay=0.5) == 1.0
    assert abs(rate_scale(50, 0.75, warmup=10, decay=0.5) - 0.5) < 1e-9
    assert rate_scale(50, 1.0, warmup=10, decay=0.5) == 0.03
    assert rate_scale(50, 1.0, warmup=10, decay=0.0) == 1.0


def test_options_survive_being_written():
    options = replace(PLAIN, lora=AdapterOptions(r=3), losses=LossOptions(latent_weights=(1.0, 2.0)), data=("a",))
    assert from_json(options.to_json()) == options


# ------------------------------------------------------------------------------------- a whole run


def folder_of(data_dir):
    rows = [{"text": f"text {n}", "voice": "ann", "n": 640 * (8 + n)} for n in range(6)]
    generator = np.random.default_rng(0)
    write_folder(data_dir / "set", rows, [generator.normal(size=(8 + n, 8)).astype("f2") for n in range(6)], None)
    return str(data_dir / "set")


def rows_of(folder):
    with (folder / "log.csv").open() as file:
        return list(csv.DictReader(file))


def run(*arguments):
    return command.main([str(argument) for argument in arguments])


def test_from_the_command_line_to_a_model_that_speaks(v2_48k, data_dir):
    out = data_dir / "run"
    common = [
        "--held-out-every",
        3,
        "--log-every",
        2,
        "--positions",
        60,
        "--device",
        "cpu",
        "--export-dtype",
        "float32",
    ]
    begin = ["--preset", "full", "--base", v2_48k.path, "--data", folder_of(data_dir), "--out", out]
    assert run(*begin, "--steps", 4, "--rate", 1e-3, *common) == 0
    assert {"state.pt", "options.json", "log.csv", "curves.png", "best", "model"} <= set(os.listdir(out))
    assert run("--resume", out, "--steps", 6) == 0
    rows = rows_of(out)
    assert [row["step"] for row in rows if row["kind"] == "train"] == ["2", "4", "6"]
    assert [row["step"] for row in rows if row["kind"] == "val"] == ["4", "6"]
    with VoxCPM.from_pretrained(out / "model", device="cpu") as model:
        wav = model.generate(text="text 1", max_len=4, seed=1)
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu") as base:
        before = base.generate(text="text 1", max_len=4, seed=1)
    assert np.isfinite(wav).all() and len(wav) and (len(wav) != len(before) or not np.allclose(wav, before))
    # A helper loss may join on the way; the optimisers then begin anew.
    shutil.copytree(out, data_dir / "joined")
    assert run("--resume", data_dir / "joined", "--steps", 8, "--timbre-loss", 0.1, "--out", data_dir / "joined") == 0
    assert rows_of(data_dir / "joined")[-1]["timbre"]
    assert run("--resume", data_dir / "joined", "--steps", 9) == 0
    # Scores on other recordings do not count against these.
    state = read_state(data_dir / "joined")
    torch.save({**state, "progress": {**state["progress"], "best": 0.0}}, data_dir / "joined" / "state.pt")
    assert run("--resume", data_dir / "joined", "--steps", 10) == 0
    assert read_state(data_dir / "joined")["progress"]["best"] == 0.0
    other = folder_of(data_dir / "other")
    assert run("--resume", data_dir / "joined", "--steps", 11, "--data", other) == 0
    assert read_state(data_dir / "joined")["progress"]["best"] > 0.0
    assert run("--resume", out, "--export", data_dir / "again") == 0
    one, two = ((path / "model.safetensors").read_bytes() for path in (out / "model", data_dir / "again"))
    assert one == two


def test_an_adapter_from_the_command_line(v2_48k, data_dir):
    out, data = data_dir / "run", folder_of(data_dir)
    assert (
        run("--base", v2_48k.path, "--data", data, "--out", out, "--steps", 2, "--lora-rank", 2, "--device", "cpu") == 0
    )
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu") as model:
        loaded, skipped = model.load_lora(out / "lora")
    assert loaded and not skipped


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--steps", "1"], "There is no data"),
        (["--preset", "nano", "--data", "x", "--minutes", "0"], "has no length"),
        (["--data", "none", "--steps", "1", "--base", "nano"], "none"),
        (["--data", "x", "--lora-parts", "vae"], "the parts are lm, dit and proj"),
        (["--resume", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_one_sentence(arguments, message, caplog, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments, "--out", "out") == 1
    assert message in caplog.records[-1].getMessage() and not caplog.records[-1].exc_info


def test_a_stop_signal_saves_and_leaves(v2_48k, data_dir):
    training = trainer(v2_48k, replace(PLAIN, steps=100_000, log_every=5))
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    loop.run(training, v2_48k.path, data_dir / "run")
    timer.join()
    assert 0 < training.progress.step < 100_000
    assert read_state(data_dir / "run")["progress"]["step"] == training.progress.step
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_held_out_losses_are_always_the_same_and_of_the_average(v2_48k):
    options = replace(PLAIN, average=0.5)
    training = trainer(v2_48k, options, clips(6, held_out=(0, 3)))
    check = HeldOut(training.stream)
    first = check(training)
    assert first == check(training) and first["score"] == first["diffusion"] + first["stop"]
    before = weights(training)
    steps(training, 3)
    current = weights(training)
    now = check(training)
    assert now != first and not moved(current, weights(training)) and moved(before, current)
    training.average.weights = {name: p.detach().clone() for name, p in training.trainable.items()}
    assert check(training) != now, "the average was what was measured"

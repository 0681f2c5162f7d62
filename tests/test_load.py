"""Many requests for a long time: every one exact, nothing left in memory, nothing left on disk."""

import contextlib
import ctypes
import gc
import os
import queue
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from voxcpm_core import SpeechRequest, VoxCPM

EXACT = 1e-4  # float32; another batch size may order sums differently
TEXT = "hello world, the end. "
FLAT = 0.02


@dataclass(frozen=True)
class Order:
    """One request of the load and after how many patches its user stops it (None: never)."""

    request: SpeechRequest
    stop_after: int | None


@pytest.fixture(autouse=True, scope="module")
def one_thread(torch_threads):
    """Tiny models: a second thread only waits for the first, dearly so on a busy machine."""
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(torch_threads)


@pytest.fixture(autouse=True)
def own_temp_folder(tmp_path, monkeypatch):
    """Temporary files of the whole process go to a folder that must be empty in the end."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.rglob("*")) == []


def modes(reference, prompt, transcript):
    clip, voice = {"prompt_wav_path": prompt, "prompt_text": transcript}, {"reference_wav_path": reference}
    return [{}, {"control": "a calm man"}, voice, clip, {**voice, **clip}]


def orders(kinds, count, cancelled, longest, seed):
    """``count`` orders, all modes in turn, lengths from 1 patch to ``longest``, texts and settings mixed."""
    dice = random.Random(seed)
    stopped = set(dice.sample(range(count), cancelled))
    made = []
    for number in range(count):
        length = longest if number in stopped else dice.randint(1, longest)
        request = SpeechRequest(
            text=TEXT * dice.randint(3, 5),
            seed=number,
            max_len=length,
            min_len=1000,
            cfg_value=dice.choice([1.0, 2.0, 3.0]),
            inference_timesteps=dice.choice([2, 3, 4]),
            temperature=dice.choice([0.7, 1.0]),
            **kinds[number % len(kinds)],
        )
        made.append(Order(request, dice.randint(1, longest // 2) if number in stopped else None))
    return made


def serve(model, todo, users=4, keep=lambda *result: result):
    """``users`` threads take one order after the other; ``keep(order, take, joined stream)`` of each, in order."""
    waiting, done, problems = queue.SimpleQueue(), [None] * len(todo), []
    for number, order in enumerate(todo):
        waiting.put((number, order))

    def user():
        while True:
            try:
                number, order = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                done[number] = keep(*one(model, order))
            except Exception as error:
                problems.append(error)

    threads = [threading.Thread(target=user) for _ in range(users)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert problems == []
    return done


def one(model, order):
    generation = model.start(order.request)
    heard = []
    for _, chunk in generation:
        heard.append(chunk)
        if len(heard) == order.stop_after:
            generation.cancel()
    take = generation.takes[0]
    assert heard, f"{take.ended_by}: {take.message}"
    return order, take, np.concatenate(heard)


def check_against_alone(model, done, flips=0):
    """Every take equals the same request alone. ``flips``: how many may differ by a little where the model rounds.

    The plan is rounded to a few levels (FSQ): a value on the very edge may fall to the other side when sums are ordered
    otherwise. That is the model's nature, rare and inaudible, and not another row's audio, which would be all wrong.
    """
    differences = []
    for order, take, stream in done:
        alone = model.generate_takes(order.request)[0].samples
        assert np.array_equal(stream, take.samples)
        if order.stop_after is None:
            assert take.ended_by == "limit" and take.patches == order.request.max_len
            assert take.samples.shape == alone.shape
        else:
            assert take.ended_by == "cancelled" and take.patches >= order.stop_after
        differences.append(np.abs(take.samples - alone[: len(take.samples)]).max())
    assert max(differences) <= (1e-2 if flips else EXACT)
    assert sum(difference > EXACT for difference in differences) <= flips


def memory():
    """Resident bytes of this process; None where the system does not say."""
    if sys.platform != "linux":
        return None
    with contextlib.suppress(AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)  # what was freed counts as free
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def tensors():
    gc.collect()
    return [thing for thing in gc.get_objects() if type(thing) in (torch.Tensor, torch.nn.Parameter)]


def settled(model):
    """(resident bytes, number of live tensors) once the engine stands still."""
    steps = -1
    while steps != model.steps:
        steps = model.steps
        time.sleep(0.1)
    return memory(), len(tensors())


def assert_flat(before, after):
    if before[0] is not None:
        assert after[0] <= before[0] * (1 + FLAT), f"resident memory grew from {before[0]:,} to {after[0]:,} bytes"
    assert abs(after[1] - before[1]) <= before[1] * FLAT, f"live tensors: {before[1]}, then {after[1]}"


@pytest.mark.slow
def test_forty_requests_four_at_a_time(v2_48k, torch_threads):
    kinds = modes(v2_48k.reference, v2_48k.prompt, "hello the world.")
    todo = orders(kinds, count=40, cancelled=10, longest=16, seed=1)
    threads = threading.active_count()
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu", max_rows=4) as model:
        serve(model, todo, keep=len_only)
        before = settled(model)
        done = serve(model, todo)
        assert sum(take.ended_by == "cancelled" for _, take, _ in done) == 10
        assert len({take.patches for _, take, _ in done}) > 8, "the lengths are not mixed"
        check_against_alone(model, done)
        del done
        assert_flat(before, settled(model))
    assert threading.active_count() <= threads  # other tests' threads may end meanwhile


@pytest.mark.slow
def test_ten_requests_on_the_embedded_model(nano, v2_48k):
    kinds = modes(v2_48k.reference, v2_48k.prompt, "hello the world.")
    todo = orders(kinds, count=10, cancelled=2, longest=12, seed=2)
    check_against_alone(nano, serve(nano, todo), flips=1)


@pytest.mark.slow
def test_sixty_generations_leave_nothing_behind(v2_48k, torch_threads):
    kinds = modes(v2_48k.reference, v2_48k.prompt, "hello the world.")
    todo = [quick(order) for order in orders(kinds, count=60, cancelled=10, longest=80, seed=3)]
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu", max_rows=4) as model:
        longest_first = sorted(todo, key=lambda order: -order.request.max_len)
        serve(model, longest_first[:10], keep=len_only)
        before = settled(model)
        ended = serve(model, todo, keep=len_only)
        assert len(ended) == 60 and sum(reason == "cancelled" for reason, _ in ended) == 10
        assert max(patches for _, patches in ended) > 60
        assert not any(tensor.grad_fn is not None or tensor.requires_grad for tensor in tensors_of(model))
        assert_flat(before, settled(model))


def len_only(order, take, stream):
    """What to keep where memory is measured: no audio."""
    return take.ended_by, take.patches


def quick(order):
    return replace(order, request=replace(order.request, inference_timesteps=2))


def tensors_of(model):
    """Every live tensor that could keep a graph; those of this model among them, or the test looks at nothing."""
    live = tensors()
    own = {id(tensor) for tensor in model.model.parameters()}
    assert own <= {id(tensor) for tensor in live}
    return live


def test_a_leak_would_be_seen(v2_48k, torch_threads):
    """The measure itself: tensors that somebody keeps are counted."""
    before = len(tensors())
    kept = [torch.zeros(1) for _ in range(100)]
    assert len(tensors()) >= before + 100
    del kept
    assert len(tensors()) <= before + 5

"""The running batch: rows keep to themselves, whoever else comes, goes or is stopped."""

import hashlib
import itertools
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from voxcpm_core import EngineError, RequestError, SpeechRequest, UnsupportedError, VoxCPM
from voxcpm_core.transformer import KVCache

EXACT = 1e-4  # float32; another batch size may order sums differently


@pytest.fixture(scope="module")
def model(v2_48k, torch_threads):
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu") as model:
        yield model


def request(text="hello world, the end.", **fields):
    return SpeechRequest(text=text, **{"seed": 7, "max_len": 8, "min_len": 100, **fields})


def alone(model, wanted):
    return model.generate_takes(wanted)[0].samples


def apart(a, b):
    assert a.shape == b.shape
    return np.abs(a - b).max()


def modes(golden):
    clip = {"prompt_wav_path": golden.prompt, "prompt_text": "hello the world."}
    voice = {"reference_wav_path": golden.reference}
    return [{}, {"control": "a calm man"}, voice, clip, {**voice, **clip}]


def test_three_takes_equal_the_same_takes_alone(model):
    takes = model.generate_takes(request(), seeds=[100, 101, 5])
    assert [take.seed for take in takes] == [100, 101, 5]
    for take in takes:
        assert apart(take.samples, alone(model, request(seed=take.seed))) <= EXACT
    for one, other in itertools.combinations(takes, 2):
        assert apart(one.samples, other.samples) > 1e-3


def test_a_batch_of_all_modes_equals_each_alone(model, v2_48k):
    wanted = [request(seed=k, max_len=5 + k, **mode) for k, mode in enumerate(modes(v2_48k))]
    for take, single in zip(model.generate_batch(wanted), wanted, strict=True):
        assert apart(take.samples, alone(model, single)) <= EXACT


def test_rows_with_other_settings_share_a_batch(model):
    wanted = [
        request(cfg_value=1.0),
        request(inference_timesteps=4),
        request(temperature=0.3, cfg_value=3.0),
        request(inference_timesteps=4, seed=9),
    ]
    for take, single in zip(model.generate_batch(wanted), wanted, strict=True):
        assert apart(take.samples, alone(model, single)) <= EXACT


def test_more_requests_than_rows(v2_48k, torch_threads):
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu", max_rows=2) as model:
        wanted = [request(seed=k, max_len=3 + k % 4) for k in range(7)]
        takes = model.generate_batch(wanted)
        for take, single in zip(takes, wanted, strict=True):
            assert apart(take.samples, alone(model, single)) <= EXACT


def test_a_request_admitted_half_way_changes_neither(model, v2_48k):
    first, second = request(max_len=40, text="hello world, the end. " * 3), request(seed=11, **modes(v2_48k)[4])
    running = model.start(first)
    stream = iter(running)
    head = [next(stream)[1] for _ in range(4)]
    late = model.start(second)
    late_audio = np.concatenate([chunk for _, chunk in late])
    early_audio = np.concatenate(head + [chunk for _, chunk in stream])
    assert running.takes[0].patches == 40
    assert apart(early_audio, alone(model, first)) <= EXACT
    assert apart(late_audio, alone(model, second)) <= EXACT


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_cancelling_one_row_leaves_the_others_exact(model, victim):
    text = "hello world, the end. " * 3
    generation = model.start(request(text, max_len=30), seeds=[1, 2, 3])
    for row, _ in generation:
        if row == victim and generation.patches[row] >= 3:
            generation.cancel(victim)
    cut = generation.takes[victim]
    assert cut.ended_by == "cancelled" and 3 <= cut.patches < 30
    for row, seed in enumerate((1, 2, 3)):
        whole = alone(model, request(text, max_len=30, seed=seed))
        made = generation.takes[row].samples
        assert len(made) == (len(cut.samples) if row == victim else len(whole))
        assert np.abs(made - whole[: len(made)]).max() <= EXACT


def test_stop_takes_effect_within_two_patches(model):
    generation = model.start(request("hello world, the end. " * 20, max_len=2000))
    for count, _ in enumerate(generation, 1):
        if count == 3:
            generation.cancel()
            at_stop = generation.patches[0]  # read after the stop: this thread may have to wait between the two
            break
    assert generation.wait(10)
    steps = model.steps
    take = generation.takes[0]
    assert take.ended_by == "cancelled" and 3 <= take.patches <= at_stop + 2
    assert len(take.samples) == take.patches * round(model.patch_seconds * model.sample_rate)
    time.sleep(0.2)
    assert model.steps == steps
    assert apart(alone(model, request()), alone(model, request())) == 0


def test_leaving_a_stream_early_cancels_it_and_disturbs_nobody(model):
    before = alone(model, request())
    stream = model.generate_streaming(text="hello world, the end. " * 20, seed=1, max_len=500, min_len=1000)
    next(stream), next(stream)
    assert apart(alone(model, request()), before) <= EXACT
    stream.close()
    assert np.array_equal(alone(model, request()), before)


def test_streams_closed_in_any_order(model):
    before = alone(model, request())
    first = model.generate_streaming(text="hello world", seed=1, max_len=50, min_len=100)
    second = model.generate_streaming(text="hello world", seed=2, max_len=50, min_len=100)
    next(first), next(second)
    first.close()
    second.close()
    for _ in range(3):
        assert np.array_equal(alone(model, request()), before)


def test_threads_get_their_own_audio(model):
    wanted = [
        request(seed=k, text=text) for k, text in enumerate(["hello world", "the end.", "hello the end of the world."])
    ]
    expected = [alone(model, single) for single in wanted]
    problems = []

    def ask(index):
        for _ in range(5):
            if apart(alone(model, wanted[index]), expected[index]) > EXACT:
                problems.append(index)

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(len(wanted))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not problems


def test_seed_repeats_and_leaves_global_generators_alone(model):
    first = alone(model, request())
    torch.manual_seed(123)
    random.seed(5)
    np.random.seed(5)
    wanted = torch.rand(1).item(), random.random(), np.random.rand()
    torch.manual_seed(123)
    random.seed(5)
    np.random.seed(5)
    again = alone(model, request())
    assert (torch.rand(1).item(), random.random(), np.random.rand()) == wanted
    assert np.array_equal(first, again)
    open_seed = model.generate_takes(request(seed=None))[0]
    assert np.array_equal(open_seed.samples, alone(model, request(seed=open_seed.seed)))


def test_a_new_process_repeats_the_very_samples(model, v2_48k, torch_threads):
    script = (
        f"import sys, hashlib, torch; torch.set_num_threads({torch_threads}); from voxcpm_core import VoxCPM\n"
        "with VoxCPM.from_pretrained(sys.argv[1], device='cpu') as m:\n"
        "    s = m.generate('hello world, the end.', seed=7, min_len=100, max_len=8, retry_badcase=False)\n"
        "print(hashlib.sha256(s.tobytes()).hexdigest())"
    )
    root = Path(__file__).resolve().parents[1]
    made = subprocess.run(
        [sys.executable, "-c", script, str(v2_48k.path)], cwd=root, capture_output=True, text=True, check=True
    )
    assert made.stdout.strip() == hashlib.sha256(alone(model, request()).tobytes()).hexdigest()


def test_retries_count_up_and_an_exhausted_retry_replays(model):
    """A model that never stops: every attempt is too long, the first is returned under the seed that made it."""
    wanted = request("hi", max_len=4096, patches_per_token=1.0)
    take = model.speak(wanted, attempts=3)
    assert take.seed == 7 and take.attempt == 0 and "3 attempts" in take.message
    again = model.speak(request("hi", max_len=4096, patches_per_token=1.0, seed=take.seed), attempts=3)
    assert np.array_equal(take.samples, again.samples)
    assert model.generate(text="hi", seed=7, max_len=3, retry_badcase=True, retry_badcase_max_times=0).size


def test_a_take_within_two_seconds_is_never_retried(model):
    take = model.speak(request("hi", max_len=12, patches_per_token=0.1), attempts=3)
    assert take.seconds <= 2.0 and take.attempt == 0 and "attempts" not in take.message


def test_a_model_that_never_stops_is_bounded(model):
    short = model.generate_takes(request("Hello.", max_len=4096))[0]
    assert short.ended_by == "limit" and "plausible" in short.message
    assert short.seconds >= 2.0
    user = model.generate_takes(request(max_len=5))[0]
    assert user.ended_by == "limit" and user.patches == 5 and "max_len 5" in user.message
    long = model.generate_takes(request("hello world " * 40, max_len=4096))[0]
    assert long.ended_by == "limit" and "positions are full" in long.message
    assert long.patches > 100


def test_short_text_gets_two_seconds(v1_16k, torch_threads):
    with VoxCPM.from_pretrained(v1_16k.path, device="cpu") as model:
        take = model.generate_takes(text="好", min_len=1000, seed=1)[0]
        assert take.seconds >= 2.0


def test_text_and_clips_beyond_the_models_room_are_refused_before_any_work(model):
    with pytest.raises(RequestError, match="positions; the model has 512"):
        model.start(request("hello world " * 400))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"inference_timesteps": 1}, "inference_timesteps is 1"),
        ({"inference_timesteps": 0}, "inference_timesteps is 0"),
        ({"cfg_value": float("nan")}, "cfg_value is nan"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"seed": 2**32}, "seed is 4294967296"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"max_len": 0}, "max_len is 0"),
        ({"prompt_text": "hello"}, "without prompt_wav_path"),
        ({"prompt_wav_path": "clip.wav"}, "needs prompt_text"),
    ],
)
def test_bad_values_are_named(model, fields, message):
    with pytest.raises(RequestError, match=message):
        model.start(request(**fields))


def test_whole_numbers_of_any_kind_are_taken(model):
    wanted = alone(model, request(inference_timesteps=4))
    for kind in (np.int64, np.float64, float):
        take = model.generate_takes(request(inference_timesteps=kind(4)), seeds=np.array([7]))[0]
        assert np.array_equal(take.samples, wanted) and take.seed == 7 and type(take.seed) is int


@pytest.mark.parametrize("fields", [{"control": 5}, {"prompt_text": 5}, {"seed": "7"}, {"cfg_value": "2"}])
def test_wrong_kinds_are_named(model, fields):
    with pytest.raises(RequestError, match=next(iter(fields))):
        model.start(request(**fields))


def test_what_a_generation_refuses(model):
    generation = model.start(request(max_len=200))
    with pytest.raises(RequestError, match="no row 99"):
        generation.cancel(99)
    with pytest.raises(RequestError, match="no row -1"):
        generation.cancel(-1)
    stream = iter(generation)
    next(stream)
    with pytest.raises(EngineError, match="already"):
        next(iter(generation))
    stream.close()
    assert generation.wait(10)
    with pytest.raises(RequestError, match="list of SpeechRequest"):
        model.start(["hello"])
    with pytest.raises(RequestError, match="characters"):
        model.start(request("a" * 10_000))


def test_a_model_lives_as_long_as_what_it_makes(v2_48k, torch_threads):
    generation = VoxCPM.from_pretrained(v2_48k.path, device="cpu").start(request())
    assert len(list(generation)) == 8


def test_a_program_that_ends_while_the_model_works_ends_cleanly(v2_48k):
    script = (
        "import sys; from voxcpm_core import VoxCPM, SpeechRequest\n"
        "g = VoxCPM.from_pretrained(sys.argv[1], device='cpu').start(SpeechRequest('hello ' * 30, min_len=900))\n"
        "if sys.argv[2] == 'later': s = iter(g); next(s), next(s)\n"
        "if sys.argv[2] == 'dropped': del g\n"
    )
    root = Path(__file__).resolve().parents[1]
    for how in ("at once", "later", "dropped"):
        made = subprocess.run([sys.executable, "-c", script, str(v2_48k.path), how], cwd=root, capture_output=True)
        assert made.returncode == 0, made.stderr.decode()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_is_told_to_load_its_own(model):
    child = os.fork()
    if child == 0:
        try:
            model.start(request())
        except EngineError:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_first_generations_say_what_they_cannot_do(v15_44k, torch_threads):
    with VoxCPM.from_pretrained(v15_44k.path, device="cpu") as model:
        with pytest.raises(UnsupportedError, match="VoxCPM1.5 cannot take a reference"):
            model.generate(text="hello", reference_wav_path=v15_44k.reference)
        with pytest.raises(UnsupportedError, match="VoxCPM1.5 has no voice design"):
            model.generate(text="hello", control="calm")
        assert model.generate(text="(hello) world", max_len=3, retry_badcase=False).size


def test_values_that_are_not_numbers_end_the_row_and_keep_what_was_made(v2_48k, torch_threads):
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu") as model:
        original, calls = model.model.feat_decoder.forward, itertools.count(1)

        def broken(noise, *rest):
            patches = original(noise, *rest)
            if next(calls) == 3:
                patches[0] = float("nan")
            return patches

        model.model.feat_decoder.forward = broken
        generation = model.start([request(max_len=30), request(seed=8, max_len=30)])
        list(generation)
        bad = [take for take in generation.takes if take.ended_by == "error"]
        assert bad and all("not numbers" in take.message and np.isfinite(take.samples).all() for take in bad)
        model.model.feat_decoder.forward = original
        assert np.isfinite(alone(model, request())).all()


def test_a_failure_ends_the_rows_and_the_engine_lives_on(v2_48k, torch_threads, monkeypatch):
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu") as model:
        advance, turns = model.model.advance, itertools.count(-3)
        with monkeypatch.context() as patch:
            patch.setattr(model.model, "advance", lambda *given: 1 / next(turns) and advance(*given))
            generation = model.start([request(max_len=30), request(seed=8, max_len=30)])
            assert generation.wait(60)
        assert {take.ended_by for take in generation.takes} == {"error"}
        assert all("division" in take.message and take.patches for take in generation.takes)
        assert len(alone(model, request()))


def test_a_row_that_cannot_be_let_in_never_lets_the_others_go_on_without_their_memory(
    v2_48k, torch_threads, monkeypatch
):
    """The cache is made anew for it and there is no room: who was running is told so, with what was made."""
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu") as model:
        add_row = KVCache.add_row

        def full(cache, prefix):
            if cache.lengths:
                cache._layers = []
                raise MemoryError("no room")
            add_row(cache, prefix)

        monkeypatch.setattr(KVCache, "add_row", full)
        takes = model.generate_batch([request(max_len=30), request(seed=8)])
        assert [take.ended_by for take in takes] == ["error", "error"]
        assert len(alone(model, request()))


def test_a_row_that_broke_leaves_nothing_for_the_next_in_its_place(model):
    lm, hidden = model.model.base_lm, model.model.config.lm.hidden_size
    cache = KVCache(model.model.config.lm, torch.device("cpu"), torch.float32)
    for length in (9, 12, 4):
        cache.add_row(lm.prefill(torch.randn(1, length, hidden))[1])
    for tensor in cache._layers[0]:
        tensor[0, :, 8] = float("nan")
    cache.remove_row(0)
    assert torch.isfinite(lm.step(torch.randn(2, hidden), cache)).all()


def test_a_cache_that_grew_takes_rows_in_and_lets_them_go(model):
    """Growing makes new tensors; rows that come and go afterwards are written into them."""
    long = request("hello world, the end. " * 10, max_len=300)
    generation = model.start(long)
    stream = iter(generation)
    for _ in range(150):
        next(stream)
    takes = model.generate_batch([request(seed=k) for k in range(3)])
    assert {take.ended_by for take in takes} == {"limit"}
    generation.cancel()
    list(stream)
    assert apart(alone(model, request(seed=1)), takes[1].samples) <= EXACT


def test_closing_ends_everything_with_what_was_made(v2_48k, torch_threads):
    model = VoxCPM.from_pretrained(v2_48k.path, device="cpu")
    generation = model.start([request("hello world " * 30, max_len=400) for _ in range(12)])
    stream = iter(generation)
    next(stream)
    model.close()
    assert generation.wait(5)
    assert {take.ended_by for take in generation.takes} == {"cancelled"}
    with pytest.raises(RuntimeError, match="closed"):
        model.generate(text="hello")


def test_one_reference_is_read_once(model, v2_48k, monkeypatch):
    reads = []
    original = model.model.prefill_voice
    monkeypatch.setattr(model.model, "prefill_voice", lambda *a: reads.append(1) or original(*a))
    model._engine.call(model._engine._voices.clear)
    for seed in range(3):
        model.generate_takes(request(seed=seed, reference_wav_path=v2_48k.reference))
    assert len(reads) == 1


def test_waiting_rows_can_be_cancelled_at_once(v2_48k, torch_threads):
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu", max_rows=1) as model:
        running = model.start(request("hello world " * 30, max_len=400))
        waiting = model.start(request())
        stream = iter(running)
        next(stream)
        waiting.cancel()
        assert waiting.wait(5)
        assert waiting.takes[0].ended_by == "cancelled" and not len(waiting.takes[0].samples)
        assert running.takes[0] is None
        stream.close()

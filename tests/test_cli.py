"""The command line: files, exit codes, what goes to which stream, and what an interruption leaves behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from voxcpm_core import SpeechRequest, VoxCPM
from voxcpm_core.__main__ import describe, main
from voxcpm_core.device import default_model

ROOT = Path(__file__).resolve().parents[1]
TEXT = "hi"
STEPS = 2  # solver steps per patch: enough for what is tested here, and quick


@pytest.fixture
def run(torch_threads, v2_48k, capsys):
    """run("design", "--text", ...) on the golden checkpoint -> (exit code, lines on stdout, stderr)."""

    def run(command, *flags, model=v2_48k.path):
        steps = [] if command == "info" else ["--inference-timesteps", str(STEPS)]
        code = main([command, "--device", "cpu", "--model", str(model), *steps, *map(str, flags)])
        told = capsys.readouterr()
        return code, told.out.splitlines(), told.err

    return run


@pytest.fixture
def refused(run, capsys):
    """refused("design", ...) -> the sentence of an exit with code 2."""

    def refused(command, *flags, **more):
        with pytest.raises(SystemExit) as end:
            run(command, *flags, **more)
        assert end.value.code == 2
        return capsys.readouterr().err

    return refused


@pytest.fixture(scope="module")
def api(v2_48k, torch_threads):
    with VoxCPM.from_pretrained(v2_48k.path, device="cpu") as model:
        yield model


def take_of(api, text=TEXT, **fields):
    return api.generate_takes(SpeechRequest(text=text, **{"inference_timesteps": STEPS, **fields}))[0]


def heard(path):
    """float32 samples of a 16-bit WAV file at 48 kHz."""
    info = soundfile.info(path)
    assert (info.samplerate, info.channels, info.subtype) == (48000, 1, "PCM_16")
    return soundfile.read(path, dtype="float32")[0]


def same(path, take):
    """The file holds the take, up to 16-bit rounding."""
    samples = heard(path)
    assert samples.shape == take.samples.shape
    assert np.abs(samples - np.clip(take.samples, -1, 1)).max() <= 1 / 32767


def names(folder):
    return sorted(path.name for path in Path(folder).rglob("*") if path.is_file())


# ---- one text


def test_design_writes_what_the_library_makes(run, api, tmp_path):
    out = tmp_path / "new folder" / "a.wav"
    code, lines, err = run("design", "--text", TEXT, "--control", "a calm man", "--output", out, "--seed", 7)
    assert code == 0
    take = take_of(api, control="a calm man", seed=7)
    assert lines == [f"{out}\t7\t{take.seconds:.2f}\t{take.ended_by}"]
    same(out, take)
    assert names(tmp_path) == ["a.wav"]


def test_brackets_at_the_start_are_a_control_unless_one_is_given(run, api, tmp_path):
    made = {}
    for name, flags in {
        "brackets": ["-t", f"(a calm man){TEXT}"],
        "flag": ["-t", TEXT, "--control", "a calm man"],
        "words": ["-t", f"(a calm man){TEXT}", "--control", ""],
    }.items():
        assert run("design", *flags, "-o", tmp_path / f"{name}.wav", "--seed", 7)[0] == 0
        made[name] = heard(tmp_path / f"{name}.wav")
    assert np.array_equal(made["brackets"], made["flag"])
    assert made["words"].shape != made["flag"].shape or np.abs(made["words"] - made["flag"]).max() > 1e-3


def test_settings_reach_the_model(run, api, tmp_path):
    flags = ["--cfg-value", 3.5, "--inference-timesteps", 4, "--normalize", "--seed", 4294967295]
    assert run("design", "-t", "hi 3", "-o", tmp_path / "a.wav", *flags)[0] == 0
    wanted = {"cfg_value": 3.5, "inference_timesteps": 4, "normalize": True, "seed": 4294967295}
    same(tmp_path / "a.wav", take_of(api, "hi 3", **wanted))


def test_takes_count_the_seed_up(run, api, tmp_path):
    code, lines, _ = run("design", "-t", TEXT, "-o", tmp_path / "a.wav", "--takes", 3, "--seed", 4294967295)
    assert code == 0 and names(tmp_path) == ["a-1.wav", "a-2.wav", "a-3.wav"]
    assert [line.split("\t")[1] for line in lines] == ["4294967295", "0", "1"]
    same(tmp_path / "a-3.wav", take_of(api, seed=1))


def test_a_random_seed_is_told_and_replays(run, tmp_path):
    lines = run("design", "-t", TEXT, "-o", tmp_path / "a.wav")[1]
    again = run("design", "-t", TEXT, "-o", tmp_path / "b.wav", "--seed", lines[0].split("\t")[1])[1]
    assert lines[0].split("\t")[1:] == again[0].split("\t")[1:]
    assert (tmp_path / "a.wav").read_bytes() == (tmp_path / "b.wav").read_bytes()
    other = run("design", "-t", TEXT, "-o", tmp_path / "c.wav")[1]
    assert other[0].split("\t")[1] != lines[0].split("\t")[1]


def test_clone_in_all_its_modes(run, api, v2_48k, tmp_path):
    (tmp_path / "said.txt").write_text("hello the world.\n", encoding="utf-8-sig")
    voice, clip = ["--reference-audio", v2_48k.reference], ["-pa", v2_48k.prompt]
    words = {"prompt_wav_path": v2_48k.prompt, "prompt_text": "hello the world."}
    for name, flags, fields in (
        ("reference", voice, {"reference_wav_path": v2_48k.reference}),
        ("control", [*voice, "--control", "calm"], {"reference_wav_path": v2_48k.reference, "control": "calm"}),
        ("prompt", [*clip, "-pt", "hello the world."], words),
        ("file", [*clip, "--prompt-file", tmp_path / "said.txt"], words),
        ("both", [*voice, *clip, "-pt", "hello the world."], {"reference_wav_path": v2_48k.reference, **words}),
    ):
        code, _, err = run("clone", "-t", TEXT, "-o", tmp_path / f"{name}.wav", "--seed", 3, *flags)
        assert code == 0, err
        same(tmp_path / f"{name}.wav", take_of(api, seed=3, **fields))


def test_a_control_beside_a_transcript_is_said_to_be_left_out(run, v2_48k, tmp_path):
    clip = ["-pa", v2_48k.prompt, "-pt", "hello the world."]
    code, _, err = run("clone", "-t", TEXT, "--control", "calm", *clip, "-o", tmp_path / "a.wav")
    assert code == 0 and "not sent" in err


def test_a_take_that_runs_into_its_limit_is_written_with_a_warning(run, tmp_path):
    code, lines, err = run("design", "-t", "hi", "-o", tmp_path / "a.wav", "--seed", 1)
    assert code == 0
    assert lines[0].endswith("limit") and "plausible" in err


def test_flags_of_the_reference_package_that_change_nothing_are_accepted(run, tmp_path):
    idle = ["--no-denoiser", "--no-optimize", "--zipenhancer-path", "x", "--lora-enable-proj", "--lora-dropout", "0.1"]
    code, _, err = run("design", "-t", "hi", "-o", tmp_path / "a.wav", "--local-files-only", *idle)
    assert code == 0
    for flag in ("--no-optimize", "--zipenhancer-path", "--lora-dropout"):
        assert f"{flag} changes nothing" in err


def test_an_adapter_changes_the_voice_and_its_rank_is_checked(run, api, v2_48k, tmp_path):
    lora = ["--lora-path", v2_48k.lora]
    assert run("design", "-t", TEXT, "-o", tmp_path / "a.wav", "--seed", 7)[0] == 0
    assert run("design", "-t", TEXT, "-o", tmp_path / "b.wav", "--seed", 7, *lora, "--lora-r", 4)[0] == 0
    assert (tmp_path / "a.wav").read_bytes() != (tmp_path / "b.wav").read_bytes()
    api.load_lora(v2_48k.lora)
    take = take_of(api, seed=7)
    api.unload_lora()
    same(tmp_path / "b.wav", take)
    code, lines, err = run("design", "-t", TEXT, "-o", tmp_path / "c.wav", *lora, "--lora-alpha", 16)
    assert code == 1 and not lines and "--lora-alpha says 16" in err and "say 8" in err


# ---- refusals: a sentence, no work, no file


@pytest.mark.parametrize(
    ("command", "flags", "sentence"),
    [
        ("design", ["--denoise"], "--denoise is not available"),
        ("design", ["--lora-path", "x", "--lora-disable-lm"], "an adapter is used whole"),
        ("design", ["--lora-r", "8"], "give it with --lora-path"),
        ("design", ["--model-path", "x"], "one of --model"),
        ("design", ["--reference-audio", "x.wav"], "use clone"),
        ("design", ["--takes", "0"], "from 1 to 100"),
        ("clone", [], "clone needs a clip"),
        ("clone", ["--prompt-audio", "x.wav"], "belong together"),
        ("clone", ["--prompt-text", "x"], "belong together"),
        ("clone", ["-pa", "x.wav", "-pt", "x", "--prompt-file", "x"], "transcript once"),
    ],
)
def test_wrong_usage_ends_with_2(refused, tmp_path, command, flags, sentence):
    assert sentence in refused(command, "-t", TEXT, "-o", tmp_path / "a.wav", *flags)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["-t", "", "-o", "a.wav"], "Nothing to speak"),
        (["-t", TEXT, "-o", "a.mp3"], "ends in .wav"),
        (["-t", TEXT, "-o", "."], "ends in .wav"),
        (["-t", TEXT, "-o", "a.wav", "--seed", "-1"], "seed is -1"),
        (["-t", TEXT, "-o", "a.wav", "--cfg-value", "nan"], "cfg_value is nan"),
        (["-t", TEXT, "-o", "a.wav", "--inference-timesteps", "1"], "inference_timesteps is 1"),
        (["-t", TEXT, "-o", "a.wav", "--dtype", "int3"], "'int3' is unknown"),
        (["-t", TEXT, "-o", "a.wav", "--lora-path", "nowhere"], "No adapter at nowhere"),
    ],
)
def test_what_cannot_be_done_ends_with_1_and_a_sentence(run, tmp_path, monkeypatch, flags, sentence):
    monkeypatch.chdir(tmp_path)
    code, lines, err = run("design", *flags)
    assert code == 1 and lines == [] and sentence in err and "Traceback" not in err
    assert names(tmp_path) == []


def test_a_wrong_clip_fails_before_the_model_is_loaded(run, tmp_path):
    code, _, err = run("clone", "-t", TEXT, "-ra", tmp_path / "none.wav", "-o", tmp_path / "a.wav", model="no folder")
    assert code == 1 and "none.wav" in err and "no folder" not in err


def test_a_model_that_is_not_there_is_named(run, tmp_path):
    code, _, err = run("design", "-t", TEXT, "-o", tmp_path / "a.wav", model=tmp_path / "gone")
    assert code == 1 and "gone" in err and "nano" in err


def test_first_generations_refuse_a_reference(run, v15_44k, tmp_path):
    flags = ["-t", TEXT, "-ra", v15_44k.reference, "-o", tmp_path / "a.wav"]
    code, _, err = run("clone", *flags, model=v15_44k.path)
    assert code == 1 and "VoxCPM1.5 cannot take a reference" in err


# ---- batch


def test_batch_makes_a_file_for_each_line_that_is_not_blank(run, api, tmp_path):
    (tmp_path / "in.txt").write_text("\ufeffhello\r\n\n   \nhi\n", encoding="utf-8")
    code, lines, err = run("batch", "-i", tmp_path / "in.txt", "-od", tmp_path / "out", "--seed", 7)
    assert code == 0 and names(tmp_path / "out") == ["output_001.wav", "output_002.wav"]
    assert [line.split("\t")[0] for line in lines] == [str(tmp_path / "out" / n) for n in names(tmp_path / "out")]
    assert "2 of 2 lines" in err
    for name, text in (("output_001.wav", "hello"), ("output_002.wav", "hi")):
        take = take_of(api, text, seed=7)
        samples = heard(tmp_path / "out" / name)
        assert samples.shape == take.samples.shape
        assert np.abs(samples - np.clip(take.samples, -1, 1)).max() <= 1e-4 + 1 / 32767  # rows of one batch


def test_batch_names_the_line_that_failed_and_makes_the_others(run, tmp_path):
    (tmp_path / "in.txt").write_text(f"hi\n\n...\n{'hello world ' * 400}\nhi\n", encoding="utf-8")
    code, lines, err = run("batch", "-i", tmp_path / "in.txt", "-od", tmp_path / "out")
    assert code == 1
    assert names(tmp_path / "out") == ["output_001.wav", "output_004.wav"] and len(lines) == 2
    assert "Line 3 was not made" in err and "Line 4 was not made" in err and "positions" in err
    assert "2 of 4 lines" in err


def test_a_batch_longer_than_what_is_handed_over_at_once(run, tmp_path, monkeypatch):
    monkeypatch.setattr("voxcpm_core.__main__._AHEAD", 3)
    (tmp_path / "in.txt").write_text("hi\n" * 8, encoding="utf-8")
    code, lines, _ = run("batch", "-i", tmp_path / "in.txt", "-od", tmp_path / "out", "--seed", 5)
    assert code == 0 and len(lines) == len(names(tmp_path / "out")) == 8


def test_batch_speaks_with_a_voice_and_warns_about_the_clip_once(run, api, v2_48k, tmp_path):
    (tmp_path / "in.txt").write_text("hello\nthe end\n", encoding="utf-8")
    clip, rate = soundfile.read(v2_48k.reference, dtype="float32")
    soundfile.write(tmp_path / "short.wav", clip[: rate // 2], rate)
    flags = ["-i", tmp_path / "in.txt", "-od", tmp_path / "out", "-ra", tmp_path / "short.wav", "--seed", 7]
    code, _, err = run("batch", *flags)
    assert code == 0
    warnings = [line for line in err.splitlines() if line.startswith("reference")]
    assert warnings and len(warnings) == len(set(warnings))
    take = take_of(api, "the end", seed=7, reference_wav_path=tmp_path / "short.wav")
    assert len(heard(tmp_path / "out" / "output_002.wav")) == len(take.samples)


@pytest.mark.parametrize(("content", "sentence"), [(b"\n \n", "holds no text"), (b"\xff\xfe\x00", "not UTF-8")])
def test_batch_refuses_a_file_without_lines(run, tmp_path, content, sentence):
    (tmp_path / "in.txt").write_bytes(content)
    code, _, err = run("batch", "-i", tmp_path / "in.txt", "-od", tmp_path / "out")
    assert code == 1 and sentence in err
    code, _, err = run("batch", "-i", tmp_path / "gone.txt", "-od", tmp_path / "out")
    assert code == 1 and "gone.txt cannot be read" in err


# ---- info, default model


def test_info_tells_the_same_as_text_and_as_json(run, api):
    code, lines, _ = run("info", "--json")
    facts = json.loads("\n".join(lines))
    assert code == 0 and facts == {**describe(api), "model": facts["model"]}
    assert facts["generation"] == "VoxCPM2" and facts["sample_rate"] == 48000
    assert facts["reference_sample_rate"] == 16000 and facts["patch_seconds"] == 0.16
    assert facts["device"] == "cpu" and facts["dtype"] == "float32"
    assert facts["weights_hash"] == api.weights_hash and facts["lora"] is None
    assert facts["defaults"] == {"cfg_value": 2.0, "inference_timesteps": 10, "temperature": 1.0}
    text = "\n".join(run("info")[1])
    for value in ("VoxCPM2", "48000", "16000", "0.16", "float32", api.weights_hash, "cfg_value 2.0"):
        assert value in text


def test_info_counts_the_parameters_of_the_file(run, v2_48k):
    from safetensors.torch import load_file

    tensors = load_file(v2_48k.path / "model.safetensors")
    facts = json.loads("\n".join(run("info", "--json")[1]))
    assert facts["parameters"] == sum(tensor.numel() for tensor in tensors.values())
    vae = torch.load(v2_48k.path / "audiovae.pth", weights_only=True)
    vae = vae.get("state_dict", vae)
    folded = sum(
        t.numel() for n, t in vae.items() if not n.endswith(("weight_g", "original0")) and t.is_floating_point()
    )
    assert facts["audio_vae_parameters"] == folded


def test_info_of_an_adapter(run, v2_48k):
    facts = json.loads("\n".join(run("info", "--json", "--lora-path", v2_48k.lora)[1]))
    assert facts["lora"]["rank"] == 4 and facts["lora"]["alpha"] == 8


@pytest.mark.parametrize(
    ("memory", "device", "expected"),
    [
        ([], "auto", "nano"),
        ([24.0], "auto", "openbmb/VoxCPM2"),
        ([24.0], None, "openbmb/VoxCPM2"),
        ([24.0], "cpu", "nano"),
        ([24.0], "mps", "nano"),
        ([6.0], "auto", "nano"),
        ([7.8], "cuda", "openbmb/VoxCPM2"),  # GiB that a card sold with 8 GB reports
        ([6.0, 24.0], "cuda:1", "openbmb/VoxCPM2"),
        ([6.0, 24.0], "cuda:2", "nano"),
        ([], "cuda", "nano"),
    ],
)
def test_default_model(monkeypatch, memory, device, expected):
    class Properties:
        def __init__(self, index):
            self.total_memory = memory[index] * 2**30

    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(memory))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(memory))
    monkeypatch.setattr(torch.cuda, "get_device_properties", Properties)
    assert default_model(device) == expected


# ---- as a program


def start(*flags, cwd):
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "2", "PYTHONIOENCODING": "utf-8"}
    return subprocess.Popen(
        [sys.executable, "-m", "voxcpm_core", *map(str, flags)],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def test_as_a_program_on_nano_stdout_holds_the_results_alone(tmp_path):
    program = start(
        *("design", "--device", "cpu", "--text", "Hello.", "--normalize", "--output", "声音 (1).wav", "--seed", "7"),
        cwd=tmp_path,
    )
    out, err = program.communicate(timeout=120)
    assert program.returncode == 0, err
    path, seed, seconds, ended_by = out.removesuffix("\n").split("\t")
    assert (path, seed) == ("声音 (1).wav", "7") and ended_by in ("stop", "limit")
    info = soundfile.info(tmp_path / path)
    assert info.samplerate == 16000 and info.duration == pytest.approx(float(seconds), abs=0.006)
    assert "nano" in err and "Traceback" not in err


LONG = "The river ran slowly past the old mill, and nobody in the village could say how long it had been there. " * 4


def interrupt_when_speaking(program):
    """Ctrl-C a second after the model was loaded; returns both streams."""
    head = ""
    while "on cpu" not in head:
        line = program.stderr.readline()
        assert line, f"the program ended early: {head}"
        head += line
    time.sleep(1.5)
    assert program.poll() is None, "it was too quick to be interrupted"
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=60)
    return out, head + err


@pytest.mark.skipif(os.name == "nt", reason="Windows has no way to send Ctrl-C to one program")
def test_ctrl_c_keeps_what_was_made_as_a_marked_file(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"an older file")
    program = start(
        "design", "--model", "nano", "--device", "cpu", "-t", LONG, "-o", "a.wav", "--seed", "7", cwd=tmp_path
    )
    out, err = interrupt_when_speaking(program)
    assert program.returncode == 130 and out == "" and "Traceback" not in err
    assert names(tmp_path) == ["a.partial.wav", "a.wav"] and "a.partial.wav" in err
    assert (tmp_path / "a.wav").read_bytes() == b"an older file"
    assert 0.05 < soundfile.info(tmp_path / "a.partial.wav").duration < 60


@pytest.mark.skipif(os.name == "nt", reason="Windows has no way to send Ctrl-C to one program")
def test_ctrl_c_in_a_batch_says_what_became_of_each_line(tmp_path):
    (tmp_path / "in.txt").write_text(f"{LONG}\n" * 10, encoding="utf-8")
    program = start("batch", "--model", "nano", "--device", "cpu", "-i", "in.txt", "-od", "out", cwd=tmp_path)
    out, err = interrupt_when_speaking(program)
    assert program.returncode == 130 and out == "" and "Traceback" not in err
    kept = names(tmp_path / "out")
    assert "output_001.partial.wav" in kept and all(name.endswith(".partial.wav") for name in kept)
    for line in range(1, 11):
        assert f"Line {line}:" in err
    assert "0 of 10 lines" in err

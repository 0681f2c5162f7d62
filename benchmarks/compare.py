"""Ours against the reference package, in turn, on the same random weights of a published size.

    python benchmarks/compare.py                        # 0.5B, bf16
    python benchmarks/compare.py --model 2 --dtype fp32 --rounds 3 --json result.json

Makes the weights and an environment with the reference package where they are missing (below --cache), runs each side
in its own process with the same threads, A B A B, and prints a table. See README.md for the columns.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import venv
from pathlib import Path

from random_checkpoint import CONFIGS, DEFAULT_CACHE, DTYPES, bytes_per_patch, checkpoint, read_config

HERE = Path(__file__).resolve().parent
REFERENCE = "voxcpm==2.0.3"
# What importing it needs; its other requirements (web page, recogniser, data sets) take no part in making audio.
REFERENCE_NEEDS = ("transformers==4.57.6", "numpy", "safetensors", "einops", "pydantic", "tqdm", "librosa", "soundfile")
TEXT = "hello the world, the model speaks a sentence of some length."
# Read with as many threads as the measured processes use; the best of ten is what the memory can give.
BANDWIDTH = """
import sys, time, torch
torch.set_num_threads(int(sys.argv[1]))
x, best = torch.ones(250_000_000), 9e9
for _ in range(10):
    start = time.perf_counter(); x.sum(); best = min(best, time.perf_counter() - start)
print(x.numel() * 4 / best)
"""
# label, key in the worker's result, unit, factor
ROWS = (
    ("seconds per patch (stream, median)", "seconds_per_patch", "s", 1.0),
    ("first audio (stream)", "first_audio_s", "s", 1.0),
    ("one take", "take_s", "s", 1.0),
    ("three takes", "takes_s", "s", 1.0),
    ("load", "load_s", "s", 1.0),
    ("import", "import_s", "s", 1.0),
    ("peak memory", "peak", "GB", 1e-9),
    ("peak memory of loading", "load_peak", "GB", 1e-9),
)


def reference_python(cache: Path) -> Path:
    """The Python of an environment with the reference package, made on first use. Needs the package index."""
    folder = cache / "reference-venv"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / "complete").exists():
        say(f"installing {REFERENCE} into {folder} (once)")
        venv.create(folder, with_pip=True, clear=True)
        import torch

        pip = [python, "-m", "pip", "install", "--quiet"]
        same_torch = f"torch=={torch.__version__.split('+')[0]}"
        subprocess.run([*pip, same_torch, "torchaudio", *REFERENCE_NEEDS], check=True)
        subprocess.run([*pip, "--no-deps", REFERENCE], check=True)
        subprocess.run([python, "-c", "from voxcpm import VoxCPM"], check=True, stdout=subprocess.DEVNULL)
        (folder / "complete").touch()
    return python


def run_side(side: str, python: Path, folder: Path, arguments: argparse.Namespace) -> dict:
    command = [python, HERE / "worker.py", "--side", side, "--checkpoint", folder, "--text", arguments.text]
    command += ["--dtype", DTYPES[arguments.dtype], "--patches", arguments.patches, "--threads", arguments.threads]
    started = time.perf_counter()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment(arguments))
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    if done.returncode or line is None:
        raise SystemExit(f"{side} failed ({done.returncode}):\n{done.stderr[-3000:]}")
    say(f"  {side}: {time.perf_counter() - started:.0f} s")
    return json.loads(line.removeprefix("RESULT "))


def environment(arguments: argparse.Namespace) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": str(arguments.threads), "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}


def check_equal_work(ours: dict, reference: dict, patches: int) -> None:
    """Both must have made the same number of finite samples, as many as the fixed number of patches means."""
    if not (ours["finite"] and reference["finite"]):
        raise SystemExit("One side made samples that are not finite or louder than 1: the comparison says nothing.")
    if ours["sample_rate"] != reference["sample_rate"]:
        raise SystemExit(f"Sample rates differ: {ours['sample_rate']} and {reference['sample_rate']} Hz.")
    for key in ("stream_samples", "take_samples", "takes_samples"):
        if ours[key] != reference[key]:
            raise SystemExit(f"{key} differ: ours {ours[key]}, reference {reference[key]}; not the same work.")
    if ours["stream_samples"] % patches or ours["take_samples"] != ours["stream_samples"]:
        raise SystemExit(f"{ours['stream_samples']} samples are not {patches} whole patches.")


def read_bandwidth(arguments: argparse.Namespace) -> float:
    command = [sys.executable, "-c", BANDWIDTH, str(arguments.threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(arguments))
    return float(done.stdout)


def best(runs: list[dict], key: str) -> float:
    """The round that was disturbed least: everything here can only be made slower (or larger) by the rest."""
    return min(run[key] for run in runs)


def summary(results: dict[str, list[dict]], bandwidth: float, arguments: argparse.Namespace) -> dict:
    ours, reference = results["ours"], results["reference"]
    parts = bytes_per_patch(read_config(arguments.model), arguments.dtype)
    limit = sum(parts.values()) / bandwidth
    audio = ours[0]["stream_samples"] / ours[0]["sample_rate"]
    lines = {}
    for label, key, unit, factor in ROWS:
        a, b = best(ours, key) * factor, best(reference, key) * factor
        lines[key] = {"label": label, "unit": unit, "ours": a, "reference": b, "ratio": b / a}
    for side, runs in results.items():
        lines["seconds_per_patch"][f"{side}_over_limit"] = best(runs, "seconds_per_patch") / limit
    return {
        "lines": lines,
        "limit_s_per_patch": limit,
        "bytes_per_patch": parts,
        "read_bandwidth": bandwidth,
        "audio_seconds": audio,
        "rtf": {side: best(runs, "stream_s") / audio for side, runs in results.items()},
        "others_cpu": {side: [run["others_cpu"] for run in runs] for side, runs in results.items()},
    }


def print_table(result: dict, arguments: argparse.Namespace) -> None:
    lines = result["lines"]
    length = f"{arguments.patches} patches ({result['audio_seconds']:.2f} s of audio)"
    print(f"\nVoxCPM {arguments.model} {arguments.dtype}, {arguments.threads} threads, {length}")
    print(f"best of {arguments.rounds} rounds in turn; {processor()}")
    print(f"{'':<38}{'ours':>10}{'reference':>11}{'':>4}{'reference / ours':>18}")
    for line in lines.values():
        values = f"{line['ours']:>10.3f}{line['reference']:>11.3f} {line['unit']:<3}{line['ratio']:>17.2f}x"
        print(f"{line['label']:<38}{values}")
    print(f"{'RTF (stream)':<38}{result['rtf']['ours']:>10.2f}{result['rtf']['reference']:>11.2f}")
    patch = lines["seconds_per_patch"]
    over = f"{patch['ours_over_limit']:>9.1f}x{patch['reference_over_limit']:>10.1f}x"
    print(f"{'seconds per patch over the limit':<38}{over}")
    size, rate = sum(result["bytes_per_patch"].values()) / 1e9, result["read_bandwidth"] / 1e9
    limit = result["limit_s_per_patch"]
    print(f"limit: {size:.2f} GB of weights per patch at {rate:.1f} GB/s = {limit:.4f} s per patch")
    busy = {side: "/".join(f"{value:.2f}" for value in values) for side, values in result["others_cpu"].items()}
    print(f"cores kept busy by other processes meanwhile: ours {busy['ours']}, reference {busy['reference']}")


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=CONFIGS, default="0.5b")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--patches", type=int, default=24, help="length of every take")
    parser.add_argument("--rounds", type=int, default=2, help="how often each side runs, in turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--text", default=TEXT)
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    parser.add_argument("--reference-python", type=Path, help=f"a Python that has {REFERENCE} instead of making one")
    parser.add_argument("--json", type=Path, help="write all numbers here (default: below --cache)")
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    cache = arguments.cache.expanduser()
    folder = checkpoint(arguments.model, arguments.dtype, cache)
    pythons = {
        "ours": Path(sys.executable),
        "reference": arguments.reference_python or reference_python(cache),
    }
    bandwidths = [read_bandwidth(arguments)]
    results: dict[str, list[dict]] = {side: [] for side in pythons}
    for number in range(arguments.rounds):
        say(f"round {number + 1} of {arguments.rounds}")
        for side, python in pythons.items():
            results[side].append(run_side(side, python, folder, arguments))
        check_equal_work(results["ours"][-1], results["reference"][-1], arguments.patches)
        bandwidths.append(read_bandwidth(arguments))
    result = summary(results, max(bandwidths), arguments)
    print_table(result, arguments)
    settings = {"model": arguments.model, "dtype": arguments.dtype, "patches": arguments.patches}
    settings |= {"rounds": arguments.rounds, "threads": arguments.threads, "text": arguments.text}
    settings |= {"python": platform.python_version(), "torch": results["ours"][0]["torch"], "reference": REFERENCE}
    path = arguments.json or cache / f"compare-{arguments.model}-{arguments.dtype}.json"
    path.write_text(json.dumps({"settings": settings, **result, "runs": results}, indent=2), encoding="utf-8")
    say(f"all numbers: {path}")


if __name__ == "__main__":
    main()

"""Where the time of one patch goes in our implementation, by module.

    python benchmarks/profile_modules.py                         # 0.5B with random weights
    python benchmarks/profile_modules.py --checkpoint FOLDER --dtype fp32 --rows 3
    python benchmarks/profile_modules.py --ops                   # also torch's own table of operators

The engine runs as always; only its calls into the modules are timed, on the model thread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from random_checkpoint import CONFIGS, DEFAULT_CACHE, DTYPES, bytes_per_patch, checkpoint

from voxcpm_core import VoxCPM

TEXT = "hello the world, the model speaks a sentence of some length."
TURN = "one patch"
# What is timed inside a turn: label, owner, method. The key of bytes_per_patch stands where there is one.
PARTS = (
    ("DiT loop", "feat_decoder", "forward", "feat_decoder"),
    ("base LM step", "base_lm", "step", "base_lm"),
    ("residual LM step", "residual_lm", "step", "residual_lm"),
    ("local encoder", "feat_encoder", "forward", "feat_encoder"),
    ("FSQ", "fsq_layer", "forward", None),
    ("VAE chunk", None, "decode", "vae_decoder"),
)


class Stopwatch:
    """Collects the seconds of every call of the methods it is put on; ``seconds[label]`` has one entry a call."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def put_on(self, owner: object, method: str, label: str) -> None:
        setattr(owner, method, self._timed(getattr(owner, method), label))

    def _timed(self, function: Callable, label: str) -> Callable:
        def timed(*args: object, **kwargs: object) -> object:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[label].append(time.perf_counter() - start)

        return timed


def watch(model: VoxCPM) -> Stopwatch:
    stopwatch = Stopwatch()
    for label, part, method, _ in PARTS:
        owner = model.tts_model.audio_vae if part is None else getattr(model.model, part)
        stopwatch.put_on(owner, method, label)
    stopwatch.put_on(model._engine, "_prefill", "prefill")
    stopwatch.put_on(model._engine, "_step", TURN)
    return stopwatch


def run(model: VoxCPM, rows: int, patches: int) -> None:
    model.generate_takes(text=TEXT, n=rows, seed=1, min_len=patches, max_len=patches)


def table(stopwatch: Stopwatch, model_bytes: dict[str, int] | None) -> list[dict]:
    """Medians over the patches, in ms; the last turn reads nothing back and is left out."""
    turns = stopwatch.seconds[TURN][1:-1]
    whole = statistics.median(turns)
    lines, inside = [], 0.0
    for label, _, _, key in PARTS:
        calls = stopwatch.seconds[label]
        if not calls:
            continue
        seconds = statistics.median(calls)
        inside += seconds
        size = model_bytes[key] if model_bytes and key else None
        rate = f"{size / seconds / 1e9:.1f}" if size else ""
        lines.append({"part": label, "ms": seconds * 1e3, "share": seconds / whole, "GB/s": rate})
    lines.append({"part": "glue and waiting", "ms": (whole - inside) * 1e3, "share": 1 - inside / whole, "GB/s": ""})
    lines.append({"part": TURN, "ms": whole * 1e3, "share": 1.0, "GB/s": ""})
    prefill = statistics.median(stopwatch.seconds["prefill"])
    return [*lines, {"part": "prefill (once)", "ms": prefill * 1e3, "share": prefill / whole, "GB/s": ""}]


def operators(model: VoxCPM, rows: int, patches: int) -> str:
    """torch's table of operators by own time. The profiler sees one thread, so the model thread starts and stops it."""
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    model._engine.call(profiler.start)
    run(model, rows, patches)
    model._engine.call(profiler.stop)
    return profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=20, max_name_column_width=40)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=CONFIGS, default="0.5b", help="size to build with random weights")
    parser.add_argument("--checkpoint", type=Path, help="a checkpoint folder instead")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, default=1, help="takes made side by side")
    parser.add_argument("--patches", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    parser.add_argument("--ops", action="store_true", help="print torch's table of operators as well")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    folder = arguments.checkpoint or checkpoint(arguments.model, arguments.dtype, arguments.cache.expanduser())
    model = VoxCPM.from_pretrained(folder, device=arguments.device, dtype=DTYPES[arguments.dtype])
    run(model, arguments.rows, 4)  # warm-up
    stopwatch = watch(model)
    run(model, arguments.rows, arguments.patches)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    lines = table(stopwatch, bytes_per_patch(config, arguments.dtype))
    print(f"{folder.name}, {arguments.dtype}, {arguments.rows} rows, {torch.get_num_threads()} threads, {model.device}")
    print(f"{'part':<18}{'ms':>9}{'share':>8}{'GB/s':>8}   (GB/s: weights read once, over the time)")
    for line in lines:
        print(f"{line['part']:<18}{line['ms']:>9.1f}{line['share']:>8.0%}{line['GB/s']:>8}")
    if arguments.ops:
        print(operators(model, arguments.rows, arguments.patches))
    if arguments.json:
        arguments.json.write_text(json.dumps(lines, indent=2), encoding="utf-8")
    model.close()


if __name__ == "__main__":
    main()

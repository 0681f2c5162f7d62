"""One measured process: loads a checkpoint with ours or with the reference package and times what users wait for.

Started by ``compare.py`` under either program's Python, so it imports nothing of this project but the side it
measures. Prints one line of JSON. Both sides do the same in the same order: load, a short warm-up, a stream, one whole
take, three takes.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

Stream = Callable[[str, int], Iterator]


def peak_memory() -> int:
    """Peak resident bytes of this process (VmHWM)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def machine_seconds() -> float:
    """CPU seconds that all processes of the machine have used since it started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq, *_ = map(int, fields)
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


class Ours:
    def __init__(self, checkpoint: str, dtype: str):
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        from voxcpm_core import VoxCPM

        self.import_done = time.perf_counter()
        self.model = VoxCPM.from_pretrained(checkpoint, device="cpu", dtype=dtype)
        self.sample_rate = self.model.sample_rate

    def stream(self, text: str, patches: int) -> Iterator:
        return self.model.generate_streaming(text=text, min_len=patches, max_len=patches, seed=1)

    def take(self, text: str, patches: int):
        return self.model.generate(text=text, min_len=patches, max_len=patches, seed=1, retry_badcase=False)

    def takes(self, text: str, patches: int, n: int) -> list:
        made = self.model.generate_takes(text=text, n=n, min_len=patches, max_len=patches, seed=1)
        return [take.samples for take in made]


class Reference:
    def __init__(self, checkpoint: str, dtype: str):  # the dtype stands in the checkpoint's config.json
        from voxcpm import VoxCPM

        self.import_done = time.perf_counter()
        self.model = VoxCPM(voxcpm_model_path=checkpoint, enable_denoiser=False, optimize=False, device="cpu")
        self.sample_rate = self.model.tts_model.sample_rate

    def stream(self, text: str, patches: int) -> Iterator:
        return self.model.generate_streaming(text=text, min_len=patches, max_len=patches, retry_badcase=False)

    def take(self, text: str, patches: int):
        return self.model.generate(text=text, min_len=patches, max_len=patches, retry_badcase=False)

    def takes(self, text: str, patches: int, n: int) -> list:
        return [self.take(text, patches) for _ in range(n)]


def time_stream(side: Ours | Reference, text: str, patches: int) -> dict:
    """First audio, and the median distance of the chunks after the first."""
    start, moments, samples, finite = time.perf_counter(), [], 0, True
    for chunk in side.stream(text, patches):
        moments.append(time.perf_counter())
        samples += len(chunk)
        finite = finite and bool(abs(chunk).max() <= 1.0)  # False for NaN as well
    gaps = [later - earlier for earlier, later in zip(moments[:-1], moments[1:], strict=True)]
    return {
        "first_audio_s": moments[0] - start,
        "seconds_per_patch": statistics.median(gaps),
        "seconds_per_patch_best": min(gaps),
        "stream_s": moments[-1] - start,
        "stream_samples": samples,
        "finite": finite,
    }


def measure(arguments: argparse.Namespace) -> dict:
    start, cpu, machine = time.perf_counter(), time.process_time(), machine_seconds()
    import torch

    torch.set_num_threads(arguments.threads)
    kind = Ours if arguments.side == "ours" else Reference
    side = kind(arguments.checkpoint, arguments.dtype)
    loaded = time.perf_counter()
    result = {"import_s": side.import_done - start, "load_s": loaded - side.import_done, "load_peak": peak_memory()}
    for _ in side.stream(arguments.text, arguments.warmup):
        pass
    result["ready_s"] = time.perf_counter() - start
    result |= time_stream(side, arguments.text, arguments.patches)
    gc.collect()
    begin = time.perf_counter()
    result["take_samples"] = len(side.take(arguments.text, arguments.patches))
    result["take_s"] = time.perf_counter() - begin
    result["take_peak"] = peak_memory()
    if arguments.takes:
        begin = time.perf_counter()
        result["takes_samples"] = [len(t) for t in side.takes(arguments.text, arguments.patches, arguments.takes)]
        result["takes_s"] = time.perf_counter() - begin
    result["peak"] = peak_memory()
    wall, own = time.perf_counter() - start, time.process_time() - cpu
    result |= {"wall_s": wall, "cpu_s": own, "others_cpu": max(0.0, (machine_seconds() - machine - own) / wall)}
    return result | {"sample_rate": side.sample_rate, "torch": torch.__version__, "threads": torch.get_num_threads()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=("ours", "reference"), required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--dtype", required=True, help="bfloat16 or float32")
    parser.add_argument("--text", required=True)
    parser.add_argument("--patches", type=int, required=True)
    parser.add_argument("--warmup", type=int, default=4, help="patches of the warm-up run")
    parser.add_argument("--takes", type=int, default=3, help="0 leaves the takes out")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    print("RESULT " + json.dumps(measure(arguments)))


if __name__ == "__main__":
    main()

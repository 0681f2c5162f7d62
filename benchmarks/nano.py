"""How fast the embedded model speaks here: real-time factor, first audio, three takes against one.

python benchmarks/nano.py [--threads 2] [--device cpu] [--control "a woman with a low voice, speaking slowly"]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

TEXT = "The quick brown fox jumps over the lazy dog, and then it walks slowly home through the quiet evening wood."


def time_stream(model, text: str, control: str, patches: int) -> tuple[float, float, float]:
    """Seconds to the first chunk, seconds in all, seconds of audio."""
    start, first, samples = time.perf_counter(), None, 0
    for chunk in model.generate_streaming(text=text, control=control, seed=1, min_len=patches, max_len=patches):
        first = first or time.perf_counter() - start
        samples += len(chunk)
    return first, time.perf_counter() - start, samples / model.sample_rate


def time_takes(model, text: str, control: str, patches: int, n: int) -> float:
    start = time.perf_counter()
    takes = model.generate_takes(text=text, control=control, n=n, seed=1, min_len=patches, max_len=patches)
    seconds = time.perf_counter() - start
    made = [take.patches for take in takes]
    if made != [patches] * n:
        raise SystemExit(f"{made} patches were made instead of {patches} each; take a longer --text.")
    return seconds


def measure(arguments: argparse.Namespace) -> dict:
    begin = time.perf_counter()
    import torch

    from voxcpm_core import VoxCPM

    torch.set_num_threads(arguments.threads)
    imported = time.perf_counter()
    model = VoxCPM.from_pretrained(arguments.checkpoint, device=arguments.device)
    loaded = time.perf_counter()
    said = arguments.text, arguments.control
    cold = time_stream(model, *said, 4)[0]
    time_takes(model, *said, 4, 3)  # warm-up of the batch
    streams = [time_stream(model, *said, arguments.patches) for _ in range(arguments.rounds)]
    # In turn, so that what else the machine does meets both; the best of each.
    pairs = [[time_takes(model, *said, arguments.patches, n) for n in (1, 3)] for _ in range(arguments.rounds)]
    one, three = (min(times) for times in zip(*pairs, strict=True))
    audio = streams[0][2]
    result = {
        "model": model.model_id,
        "device": model.device,
        "dtype": model.dtype,
        "threads": arguments.threads,
        "control": arguments.control,
        "patches": arguments.patches,
        "audio_s": audio,
        "import_s": imported - begin,
        "load_s": loaded - imported,
        "first_audio_cold_s": cold,
        "first_audio_s": statistics.median(first for first, _, _ in streams),
        "rtf": statistics.median(whole for _, whole, _ in streams) / audio,
        "rtf_best": min(whole for _, whole, _ in streams) / audio,
        "one_take_s": one,
        "three_takes_s": three,
        "three_takes_over_one": three / one,
    }
    model.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", default="nano", help="nano, or a checkpoint folder")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--patches", type=int, default=40, help="length of every take")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--text", default=TEXT)
    parser.add_argument("--control", default="", help="description of the voice: the takes are takes of a design then")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    arguments = parser.parse_args()
    result = measure(arguments)
    for key, value in result.items():
        print(f"{key:<22}{value:.3f}" if isinstance(value, float) else f"{key:<22}{value}")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()

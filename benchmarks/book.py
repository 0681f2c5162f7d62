"""How fast a book is rendered: one segment after the other against several rows at once, and the memory it takes.

python benchmarks/book.py [--segments 24] [--rows 8] [--threads 1] [--checkpoint nano] [--device cpu]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

SENTENCES = [
    "The miller walked slowly down to the harbour before the rain came.",
    "Nobody had ever trusted the long road past the burned orchard.",
    "Her brother carried the salt home, and the grey dog looked back once.",
    "It was late, and the ferryman sang quietly about the old mill.",
]


def book_text(segments: int) -> str:
    return "\n\n".join(
        f"{SENTENCES[n % len(SENTENCES)]} {SENTENCES[(n + 1) % len(SENTENCES)]}" for n in range(segments)
    )


def resident_mib() -> float:
    """Memory of this process in MiB, 0.0 where the system does not tell it in /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def render(model: object, segments: int, rows: int) -> dict:
    """Render a fresh book and say how it went; the anchor, which is made alone, included."""
    from studio.book.importing import read_text
    from studio.book.jobs import RenderQueue
    from studio.book.library import Library
    from studio.book.plan import Order
    from studio.book.project import Settings
    from studio.store import Store
    from studio.synthesizer import Synthesizer

    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        library = Library(store)
        synthesizer = Synthesizer(store, lambda progress: model)
        synthesizer.load()
        synthesizer.wait()
        project = library.create(read_text(book_text(segments)), "Benchmark", Settings(seed=1)).id
        queue = RenderQueue(library, synthesizer)
        began = time.process_time()
        queue.start()
        status = queue.wait(queue.submit(project, Order(retries=0, rows=rows)))
        cpu_seconds = time.process_time() - began
        queue.close()
        store.close()
    if status.state != "done":
        raise SystemExit(f"The render ended as {status.state}: {status.message}")
    tally = status.tally
    return {
        "rows": rows,
        "segments": tally.total,
        "audio_s": round(tally.seconds_made, 1),
        "seconds": round(tally.working_seconds, 1),
        "cpu_s": round(cpu_seconds, 1),
        "speed": round(tally.speed, 3),
        "resident_mib": round(resident_mib()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", default="nano", help="nano, or a checkpoint folder")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--segments", type=int, default=24)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2, help="how often each is measured, in turn")
    arguments = parser.parse_args()
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    import torch

    from voxcpm_core import VoxCPM

    torch.set_num_threads(arguments.threads)
    model = VoxCPM.from_pretrained(arguments.checkpoint, device=arguments.device, max_rows=arguments.rows)
    model.generate_takes(text=SENTENCES[0], n=2, seed=1)  # warm-up
    rounds = [render(model, arguments.segments, rows) for _ in range(arguments.rounds) for rows in (1, arguments.rows)]
    one, many = (max(r["speed"] for r in rounds if r["rows"] == rows) for rows in (1, arguments.rows))
    cpu_one, cpu_many = (
        max(r["audio_s"] / r["cpu_s"] for r in rounds if r["rows"] == rows) for rows in (1, arguments.rows)
    )
    result = {
        "model": model.model_id,
        "device": model.device,
        "dtype": model.dtype,
        "threads": arguments.threads,
        "rounds": rounds,
        "times_as_fast": round(many / one, 2),
        "times_as_fast_by_processor_time": round(cpu_many / cpu_one, 2),  # says more on a busy machine
    }
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""A long render that is killed: every segment once, nothing that was kept made twice, memory flat.

python benchmarks/book_survival.py [--segments 300] [--kills 3] [--rows 8] [--model nano] [--data-dir FOLDER]

Runs the real program, `python -m studio render`, on a book of very short segments, kills it with SIGKILL at even shares
of the work, and lets the last run finish. Linux only: memory is read from /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

TITLE = "Houses"
LOOK_SECONDS = 0.5


def noted(folder: Path) -> dict[str, int]:
    """Takes that the book keeps: take -> segment."""
    db = sqlite3.connect(folder / "studio.sqlite3", timeout=30)
    try:
        return dict(db.execute("SELECT take, segment FROM book_takes"))
    finally:
        db.close()


def resident_mib(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def render(folder: Path, options: argparse.Namespace, until: int | None) -> dict:
    """Run the program until so many takes are noted, then kill it; or to its end. What happened meanwhile."""
    command = [sys.executable, "-m", "studio", "render", "--data-dir", str(folder), "--project", TITLE]
    command += ["--model", options.model, "--rows", str(options.rows), "--retries", "0", "--local-files-only"]
    began, before = time.monotonic(), len(noted(folder))
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    memory: list[tuple[int, float]] = []  # takes noted, MiB
    while process.poll() is None:
        time.sleep(LOOK_SECONDS)
        count = len(noted(folder))
        try:
            now = round(resident_mib(process.pid))
        except OSError:
            break  # it has ended
        memory += [(count, now)] if now else []
        if until is not None and count >= until:
            os.kill(process.pid, signal.SIGKILL)
            break
    said = process.communicate()[0]
    warm = [mib for count, mib in memory if count >= before + 2 * options.rows] or [mib for _, mib in memory]
    return {
        "ended": process.returncode,
        "seconds": round(time.monotonic() - began, 1),
        "takes_before": before,
        "takes_after": len(noted(folder)),
        "mib_when_warm": warm[0],
        "mib_at_most": max(warm),
        "mib_at_the_end": warm[-1],
        "said": json.loads(said) if said.strip() else None,
    }


def run(folder: Path, options: argparse.Namespace) -> dict:
    from studio.book.importing import read_text
    from studio.book.library import Library
    from studio.book.project import Settings
    from studio.store import Store

    store = Store(folder)
    library = Library(store)
    text = "Chapter 1\n\n" + "\n\n".join(f"House {number} is dark." for number in range(options.segments - 1))
    project = library.create(read_text(text), TITLE, Settings(seed=1)).id
    wanted = [segment.id for segment in library.book(project).spoken]
    store.close()
    runs, kept = [], {}
    for kill in range(options.kills + 1):
        until = round(len(wanted) * (kill + 1) / (options.kills + 1)) if kill < options.kills else None
        runs.append(render(folder, options, until))
        now = noted(folder)
        assert kept.items() <= now.items(), "a take that was kept is gone"
        kept = now
    store = Store(folder)
    per_segment = [len(takes) for takes in Library(store).book(project).takes.values()]
    complete = sum(record.ended_by in ("stop", "limit") for record in store.takes(limit=10_000))
    store.close()
    return {
        "segments": len(wanted),
        "every_segment_once": per_segment == [1] * len(wanted),
        "complete_takes_in_the_history": complete,  # more than segments: something was made twice
        "takes_made_by_the_last_run": runs[-1]["said"]["takes_made"],
        "runs": [{name: value for name, value in one.items() if name != "said"} for one in runs],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segments", type=int, default=300)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--model", default="nano")
    parser.add_argument("--data-dir", type=Path, help="an empty folder to keep (default: a temporary one)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as spare:
        result = run(options.data_dir or Path(spare), options)
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

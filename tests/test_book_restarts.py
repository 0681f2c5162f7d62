"""A render that is killed: whenever that happens, the next start makes what is missing and nothing twice."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from studio.book.importing import read_text
from studio.book.jobs import RenderQueue
from studio.book.library import Library
from studio.book.plan import Order
from studio.book.project import Settings
from studio.store import Store
from studio.synthesizer import Synthesizer
from tests.fakes import SineModel
from tests.records import ready
from tests.test_book_jobs import wait_until

WORKER = Path(__file__).with_name("book_worker.py")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_regression_20_killed_three_times_and_still_every_segment_once(data_dir: Path) -> None:
    paragraphs = "\n\n".join(f"House {n} is dark." for n in range(29))
    store = Store(data_dir)
    library = Library(store)
    project = library.create(read_text("Chapter 1\n\n" + paragraphs), "Fox", Settings(seed=3)).id
    queue = RenderQueue(library, Synthesizer(store, lambda progress: SineModel()))
    job = queue.submit(project, Order(retries=0))
    wanted = [segment.id for segment in library.book(project).spoken]
    store.close()
    rng = random.Random(4)
    for part in (0.2, 0.45, 0.7):
        worker = start_worker(data_dir, 0.02)
        wait_until(lambda: linked(data_dir) >= part * len(wanted), 200)  # noqa: B023
        time.sleep(rng.uniform(0, 0.1))
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
    before = linked(data_dir)
    store = Store(data_dir)
    library, model = Library(store), SineModel(sample_rate=16_000, patch_seconds=0.08)
    synthesizer = ready(store, model)
    queue = RenderQueue(library, synthesizer)
    queue.start()
    assert queue.wait(job, 200).state == "done" and len(model.requests) <= len(wanted) - before
    queue.close()
    synthesizer.close()
    takes = library.book(project).takes
    assert {segment: len(found) for segment, found in takes.items()} == dict.fromkeys(wanted, 1)
    complete = [record for record in store.takes(limit=1000) if record.ended_by == "stop"]
    assert len(complete) == len(wanted) == 30
    assert all(store.audio_path(found[0].take).is_file() for found in takes.values())
    assert not list(store.takes_dir.glob("*.part"))
    store.close()


def start_worker(data_dir: Path, delay: float) -> subprocess.Popen:
    command = [sys.executable, str(WORKER), str(data_dir), str(delay)]
    return subprocess.Popen(command)


def linked(data_dir: Path) -> int:
    db = sqlite3.connect(data_dir / "studio.sqlite3", timeout=10)
    try:
        return db.execute("SELECT count(*) FROM book_takes").fetchone()[0]
    finally:
        db.close()

"""Renders all queued jobs of a data folder with a :class:`SineModel`, as a program of its own that can be killed.

python tests/book_worker.py DATA_DIR PATCH_DELAY
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from studio.book.jobs import RenderQueue
from studio.book.library import Library
from studio.store import Store
from studio.synthesizer import Synthesizer
from tests.fakes import SineModel


def main() -> None:
    store = Store(sys.argv[1])
    library = Library(store)
    model = SineModel(sample_rate=16_000, patch_seconds=0.08, patch_delay=float(sys.argv[2]))
    synthesizer = Synthesizer(store, lambda progress: model)
    synthesizer.load()
    synthesizer.wait()
    queue = RenderQueue(library, synthesizer)
    queue.start()
    for project in library.projects():
        for status in queue.jobs(project.id):
            queue.wait(status.id)
    queue.close()


if __name__ == "__main__":
    main()

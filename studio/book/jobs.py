"""Render jobs: a queue in the data folder, worked off by threads of the program.

A job is an order and a state. What it still has to make is read off the book itself, so a program that was killed at
any moment goes on with what is missing, and nothing that was kept is made twice. Re-rolls do not wait for the book:
they have a thread of their own, and what they ask of the model is spoken beside it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Literal

from studio.book.errors import BookError
from studio.book.library import Library
from studio.book.lock import RenderLock
from studio.book.plan import Order, in_scope, needs
from studio.book.project import Book
from studio.book.rendering import Claims, Rendering, Tally
from studio.book.speaking import adopt_finished
from studio.database import StoreError
from studio.synthesizer import Synthesizer
from studio.takes import utc_text

logger = logging.getLogger(__name__)

State = Literal["queued", "running", "paused", "done", "incomplete", "cancelled"]
ENDED: tuple[State, ...] = ("done", "incomplete", "cancelled")
IDLE_SECONDS = 1.0  # how often a queue that waits for another program or for the model looks again


@dataclass(frozen=True)
class JobStatus:
    """What a page shows of a job. ``failures``: segment -> why it could not be made."""

    id: int
    project: int
    order: Order
    state: State
    message: str  # why it waits, or is paused
    created: str
    tally: Tally

    @property
    def failures(self) -> dict[int, str]:
        return self.tally.failures

    @property
    def done(self) -> int:
        return self.tally.total - self.tally.left - len(self.failures)


class RenderQueue:
    """All render jobs of a data folder. Any thread may call; the work is done on the queue's own threads."""

    def __init__(self, library: Library, synthesizer: Synthesizer, only: int | None = None) -> None:
        """``only``: work off the jobs of this project and leave the others queued."""
        self._library, self._synthesizer, self._only = library, synthesizer, only
        self._database = library.database
        self._lock = RenderLock(library.store.data_dir / "render.lock")
        self._wake = threading.Condition()
        self._closing = False
        self._running: dict[int, Rendering] = {}
        self._claims = Claims()
        self._tallies: dict[int, Tally] = {}  # of the jobs that this program has worked on
        self._waits_for = ""
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Work off what is queued, beginning with what a run of before left unfinished."""
        with self._wake:
            if not self._threads and not self._closing:
                for name, urgent in (("render-queue", False), ("render-rerolls", True)):
                    thread = threading.Thread(target=self._work, args=(urgent,), name=name, daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def submit(self, project: int, order: Order) -> int:
        """Queue a job; returns its number. Raises BookError for an order with nothing to do."""
        order.check()
        book = self._library.book(project)
        if not in_scope(book, order):
            raise BookError("There is nothing to render: every segment in it is off, silent or locked.")
        with self._database.changing("The render job") as db:
            job = db.execute(
                "INSERT INTO book_jobs (project, created, wanted, state, message) VALUES (?, ?, ?, 'queued', '')",
                (project, utc_text(), order.as_json()),
            ).lastrowid
        self._woken()
        return int(job or 0)

    def pause(self, job: int) -> None:
        """Begin nothing new of this job; the segments that are being spoken are finished."""
        if self._set_state(job, "paused", of=("queued", "running")):
            self._tell_running(job, lambda rendering: rendering.pause())

    def resume(self, job: int) -> None:
        """Go on with a paused job, or try again what a finished one could not make."""
        with self._database.changing("The render job") as db:
            db.execute("DELETE FROM book_failures WHERE job = ?", (job,))
            again = "state IN ('paused', 'incomplete', 'cancelled')"
            db.execute(f"UPDATE book_jobs SET state = 'queued', message = '' WHERE id = ? AND {again}", (job,))
        self._woken()

    def cancel(self, job: int) -> None:
        """End a job now. The takes that are finished stay; a later job makes only what is missing."""
        if self._set_state(job, "cancelled", of=("queued", "running", "paused")):
            self._tell_running(job, lambda rendering: rendering.stop())

    def status(self, job: int) -> JobStatus:
        """Raises BookError when there is no such job."""
        found = self._jobs("id = ?", [job])
        if not found:
            raise BookError("There is no such render job any more.")
        return found[0]

    def jobs(self, project: int, states: Collection[State] = (), most: int = -1) -> list[JobStatus]:
        """The jobs of a book, the newest first; ``states`` and ``most`` narrow them."""
        wanted = f" AND state IN ({', '.join('?' * len(states))})" if states else ""
        return self._jobs(f"project = ?{wanted}", [project, *states], most)

    def wait(self, job: int, timeout: float | None = None) -> JobStatus:
        """Until the job has ended or is paused, at most ``timeout`` seconds."""
        with self._wake:
            self._wake.wait_for(lambda: self._state(job) not in ("queued", "running"), timeout)
        return self.status(job)

    @property
    def waits_for(self) -> str:
        """What keeps the queue from working, as a sentence; "" when nothing does."""
        return self._waits_for

    def close(self) -> None:
        """Break off what is being spoken. Jobs stay queued: the next start goes on with them."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
            running = list(self._running.values())
        for rendering in running:
            rendering.stop()
        for thread in self._threads:
            thread.join()
        self._lock.give_back()

    # ---- inside

    def _woken(self) -> None:
        with self._wake:
            self._wake.notify_all()

    def _tell_running(self, job: int, tell: Callable[[Rendering], None]) -> None:
        with self._wake:
            rendering = self._running.get(job)
            self._wake.notify_all()
        if rendering is not None:
            tell(rendering)

    def _state(self, job: int) -> str:
        found = self._database.read("SELECT state FROM book_jobs WHERE id = ?", [job])
        return found[0][0] if found else "cancelled"

    def _set_state(self, job: int, state: State, of: tuple[State, ...], message: str = "") -> bool:
        """Change a job's state if it is one ``of`` these; whether it was."""
        marks = ", ".join("?" * len(of))
        with self._database.changing("The render job") as db:
            changed = db.execute(
                f"UPDATE book_jobs SET state = ?, message = ? WHERE id = ? AND state IN ({marks})",
                (state, message, job, *of),
            ).rowcount
        self._woken()
        return bool(changed)

    def _jobs(self, condition: str, values: list, most: int = -1) -> list[JobStatus]:
        columns = "id, project, wanted, state, message, created"
        sql = f"SELECT {columns} FROM book_jobs WHERE {condition} ORDER BY id DESC LIMIT ?"
        books: dict[int, Book] = {}
        return [self._status(books, *row) for row in self._database.read(sql, [*values, most])]

    def _status(
        self, books: dict[int, Book], job: int, project: int, wanted: str, state: State, message: str, created: str
    ) -> JobStatus:
        order = Order.from_json(wanted)
        with self._wake:
            rendering = self._running.get(job)
        if rendering is not None:
            tally = rendering.tally
        else:
            tally = replace(self._tallies.get(job, Tally()), failures=self._failures(job))
            book = books[project] = books.get(project) or self._library.book(project)
            missing = needs(book, order, tally.failures)
            tally.total, tally.left = len(in_scope(book, order)), len(missing)
            tally.seconds_left = sum(need.estimate * need.count for need in missing)
        if state in ("queued", "running"):
            message = message or self._waits_for
        return JobStatus(job, project, order, state, message, created, tally)

    def _failures(self, job: int) -> dict[int, str]:
        return dict(self._database.read("SELECT segment, message FROM book_failures WHERE job = ?", [job]))

    # ---- the queue's threads

    def _work(self, urgent: bool) -> None:
        while not self._closing:
            try:
                job = self._next(urgent)
                if job is not None and self._may_begin():
                    self._run(*job)
                    continue
            except Exception:
                logger.exception("the render queue stumbled")
            with self._wake:
                if not self._closing:
                    self._wake.wait(IDLE_SECONDS)

    def _next(self, urgent: bool) -> tuple[int, int, Order] | None:
        """The oldest job that is to be worked on, of re-rolls (``urgent``) or of the others."""
        sql = "SELECT id, project, wanted FROM book_jobs WHERE state IN ('queued', 'running')"
        if self._only is not None:
            sql += f" AND project = {int(self._only)}"
        for job, project, wanted in self._database.read(f"{sql} ORDER BY id"):
            order = Order.from_json(wanted)
            if bool(order.goals) == urgent:
                return job, project, order
        return None

    def _may_begin(self) -> bool:
        """Whether this program is the one that renders, and has a model. What a crash left is taken in first."""
        with self._wake:
            if not self._lock.take():
                self._waits_for = (
                    "Another program renders in this data folder. This job begins when that one has ended."
                )
                return False
            status = self._synthesizer.status
            if status.state != "ready":
                self._waits_for = status.message or "The model is still loading."
                return False
            self._waits_for = ""
            if not self._running:
                adopt_finished(self._library)
        return True

    def _run(self, job: int, project: int, order: Order) -> None:
        if not self._set_state(job, "running", of=("queued", "running")):
            return
        rendering = Rendering(
            self._library,
            self._synthesizer,
            project,
            order,
            self._failures(job),
            lambda segment, message: self._note_failure(job, segment, message),
            self._claims,
        )
        with self._wake:
            if self._closing:
                return
            self._running[job] = rendering
            self._tallies[job] = rendering.tally
        if self._state(job) != "running":  # paused or cancelled in this very moment
            rendering.pause()
        try:
            rendering.run()
            self._ended(job, rendering)
        except BookError:
            logger.info("job %d ended: its book was deleted", job)
        except Exception as error:
            logger.exception("job %d failed", job)
            self._set_state(job, "paused", of=("running",), message=_said(error))
        finally:
            with self._wake:
                del self._running[job]
                self._wake.notify_all()

    def _ended(self, job: int, rendering: Rendering) -> None:
        if rendering.trouble:
            self._set_state(job, "paused", of=("running",), message=rendering.trouble)
        elif not self._closing:
            failures = rendering.tally.failures
            message = f"{len(failures)} segments could not be made." if failures else ""
            self._set_state(job, "incomplete" if failures else "done", of=("running",), message=message)

    def _note_failure(self, job: int, segment: int, message: str) -> None:
        try:
            with self._database.changing("The render job") as db:
                db.execute("INSERT OR REPLACE INTO book_failures VALUES (?, ?, ?)", (job, segment, message))
        except StoreError as error:
            logger.warning("a failure of job %d was not noted: %s", job, error)


def _said(error: Exception) -> str:
    if isinstance(error, StoreError):
        return str(error)
    return f"The render stopped unexpectedly ({type(error).__name__}: {error}). The log of the program has the details."

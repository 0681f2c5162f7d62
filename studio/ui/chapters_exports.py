"""Exports that outlive the browser tab, and the addresses under which their files are fetched."""

from __future__ import annotations

import json
import logging
import secrets
import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from studio.book.export import export_project
from studio.book.headless import hearing
from studio.book.library import Library
from studio.delivery import ExportCancelled, Order
from voxcpm_core.errors import VoxCPMError

logger = logging.getLogger(__name__)

PREFIX = "studio/export"
KEPT = 3  # exports of one book that stay on the disk; the oldest goes first
PRIVATE = {"Cache-Control": "private, no-store"}


@dataclass
class Export:
    """One export and how far it is. ``state``: running, done, failed or cancelled."""

    project: int
    token: str  # its folder, and its secret address
    order: Order
    state: str = "running"
    share: float = 0.0
    stage: str = ""
    title: str = ""  # the chapter that is worked on
    message: str = ""
    files: list[str] = field(default_factory=list)
    report: dict[str, Any] = field(default_factory=dict)
    incomplete: int = 0
    began: float = field(default_factory=time.monotonic)
    cancel: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


class Exports:
    """All exports of a data folder: one at a time per book, on a thread of its own."""

    def __init__(self, library: Library, folder: Path) -> None:
        self._library, self._folder = library, folder
        self._newest: dict[int, Export] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()

    def newest(self, project: int) -> Export | None:
        """The export of a book that runs, or else the last one, also one of an earlier run of the program."""
        with self._lock:
            found = self._newest.get(project)
        return found or self._found(project)

    def start(self, project: int, order: Order, recogniser: str = "", language: str = "", **options: Any) -> Export:
        """Begin; ``options`` are those of export_project. One that runs already is returned as it is.

        ``recogniser``: what hears the words for subtitles by word, "" for none; ``language``: that of the book.
        Raises ExportError for an order that is not possible.
        """
        order.check()
        with self._lock:
            running = self._newest.get(project)
            if running is not None and running.state == "running":
                return running
            export = self._newest[project] = Export(project, secrets.token_urlsafe(24), order)
            wanted = (export, options, recogniser, language)
            thread = threading.Thread(target=self._run, args=wanted, name="book-export", daemon=True)
            self._threads[export.token] = thread
        thread.start()
        return export

    def cancel(self, project: int) -> None:
        with self._lock:
            export = self._newest.get(project)
        if export is not None:
            export.cancel.set()

    def close(self) -> None:
        """Give up what runs; nothing half-made stays."""
        with self._lock:
            running, threads = list(self._newest.values()), list(self._threads.values())
        for export in running:
            export.cancel.set()
        for thread in threads:
            thread.join()

    def wait(self, project: int, timeout: float) -> Export | None:
        """Until the export of a book has ended, at most ``timeout`` seconds."""
        export = self.newest(project)
        thread = self._threads.get(export.token) if export else None
        if thread is not None:
            thread.join(timeout)
        return export

    def address(self, export: Export, name: str) -> str:
        """Where a file is fetched, relative to the page. The token is the secret."""
        return f"{PREFIX}/{export.project}/{export.token}/{quote(name)}"

    def folder(self, export: Export) -> Path:
        return self._folder / str(export.project) / export.token

    def routes(self) -> list[Route]:
        """For ``launch(app_kwargs={"routes": ...})``."""
        return [Route(f"/{PREFIX}/{{project:int}}/{{token}}/{{name}}", self._answer, methods=["GET", "HEAD"])]

    # ---- inside

    def _run(self, export: Export, options: dict[str, Any], recogniser: str, language: str) -> None:
        def progress(share: float, stage: str, title: str) -> None:
            export.share, export.stage, export.title = share, stage, title

        try:
            result = export_project(
                self._library,
                export.project,
                export.order,
                self.folder(export),
                progress=progress,
                cancelled=export.cancel.is_set,
                hear=hearing(recogniser, language) if recogniser else None,
                **options,
            )
            export.files = [Path(file).name for file in result["files"]]
            export.report, export.incomplete = result["report"], len(result["incomplete"])
            export.share, export.state = 1.0, "done"
            self._tidy(export)
        except ExportCancelled as error:
            export.state, export.message = "cancelled", str(error)
        except VoxCPMError as error:
            export.state, export.message = "failed", str(error)
        except Exception as error:
            logger.exception("an export failed")
            export.state = "failed"
            export.message = (
                f"The export stopped unexpectedly ({type(error).__name__}: {error}). The log has the details."
            )
        finally:
            with self._lock:
                self._threads.pop(export.token, None)

    def _tidy(self, export: Export) -> None:
        """Older exports of the book go."""
        folders = sorted(self._folders(export.project), key=_made)
        for old in folders[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)

    def _folders(self, project: int) -> list[Path]:
        place = self._folder / str(int(project))
        return [path for path in place.iterdir() if path.is_dir()] if place.is_dir() else []

    def _found(self, project: int) -> Export | None:
        """The newest export that an earlier run of the program has finished."""
        for folder in sorted(self._folders(project), key=_made, reverse=True):
            report = next(folder.glob("*.report.json"), None)
            if report is not None:
                names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
                try:
                    facts = json.loads(report.read_text(encoding="utf-8"))
                except (OSError, ValueError):
                    continue
                return Export(project, folder.name, Order(), "done", 1.0, files=names, report=facts)
        return None

    def _answer(self, request: Request) -> Response:
        place = request.path_params
        folder = self._folder / str(place["project"]) / place["token"]
        path = folder / place["name"]
        known = folder in self._folders(place["project"]) and path.parent == folder
        if not known or path.name.startswith(".") or not path.is_file():
            return PlainTextResponse("This file is no longer there. Export the book again.", 404)
        inline = "inline" if path.suffix == ".html" else "attachment"
        return FileResponse(path, filename=path.name, content_disposition_type=inline, headers=PRIVATE)


def _made(folder: Path) -> float:
    return folder.stat().st_mtime

"""What the Chapters tab stands on in this process: the books, the render queue, the exports, imports under preview."""

from __future__ import annotations

import secrets
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from starlette.routing import Route

from studio.book.errors import BookError
from studio.book.jobs import RenderQueue
from studio.book.library import Library
from studio.book.manuscript import Manuscript, Section
from studio.store import UNDO_DAYS, Store
from studio.synthesizer import Synthesizer
from studio.ui.chapters_exports import Exports
from studio.ui.chapters_sounds import Sounds

DRAFTS_KEPT = 16  # imports that wait for their visitor's decision; the oldest goes first


@dataclass(frozen=True)
class Draft:
    """An import that is being looked at: not in the library yet."""

    token: str
    session: str
    source: str  # the file's name
    manuscript: Manuscript

    def with_sections(self, sections: list[Section]) -> Draft:
        return replace(self, manuscript=replace(self.manuscript, sections=tuple(sections)))


class Drafts:
    """Imports under preview. Any thread may call."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Draft] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, manuscript: Manuscript, source: str, session: str) -> Draft:
        draft = Draft(secrets.token_urlsafe(12), session, source, manuscript)
        self.put(draft)
        return draft

    def put(self, draft: Draft) -> None:
        with self._lock:
            self._kept[draft.token] = draft
            self._kept.move_to_end(draft.token)
            while len(self._kept) > DRAFTS_KEPT:
                self._kept.popitem(last=False)

    def get(self, token: str, session: str) -> Draft:
        """Raises BookError when it is gone, or another visitor's."""
        with self._lock:
            found = self._kept.get(token)
        if found is None or found.session != session:
            raise BookError("This import is no longer there. Choose the file again.")
        return found

    def change(self, token: str, session: str, edit: Callable[[list[Section]], list[Section]]) -> Draft:
        """One edit of its sections."""
        draft = self.get(token, session)
        draft = draft.with_sections(edit(list(draft.manuscript.sections)))
        self.put(draft)
        return draft

    def drop(self, token: str) -> None:
        with self._lock:
            self._kept.pop(token, None)


class Covers:
    """One picture per book, in the data folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, project: int) -> bytes | None:
        try:
            return (self._folder / str(int(project))).read_bytes()
        except OSError:
            return None

    def put(self, project: int, picture: bytes) -> None:
        """Raises OSError when it cannot be written."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / str(int(project))
        fresh = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
        fresh.write_bytes(picture)
        fresh.replace(path)

    def drop(self, project: int) -> None:
        """No picture any more; it need not have one."""
        (self._folder / str(int(project))).unlink(missing_ok=True)


class Books:
    """One per process. :meth:`start` begins to render what is queued; :meth:`close` comes before the synthesizer's."""

    def __init__(self, store: Store, synthesizer: Synthesizer) -> None:
        self.library = Library(store)
        self.queue = RenderQueue(self.library, synthesizer)
        self.drafts = Drafts()
        self.covers = Covers(store.data_dir / "book-covers")
        self.exports = Exports(self.library, store.data_dir / "exports")
        self.sounds = Sounds(self.library)
        self._sweep(store.data_dir / "exports", store.data_dir / "book-covers")

    def start(self) -> None:
        self.queue.start()

    def close(self) -> None:
        self.exports.close()
        self.queue.close()

    def _sweep(self, *folders: Path) -> None:
        """Files of books that were deleted, and that nobody can bring back any more."""
        alive = {str(project.id) for project in self.library.projects()}
        oldest = time.time() - (UNDO_DAYS + 1) * 86400
        for path in (path for folder in folders for path in folder.glob("*")):
            if path.name not in alive and path.stat().st_mtime < oldest:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def routes(self) -> list[Route]:
        """For ``launch(app_kwargs={"routes": ...})``."""
        return [*self.exports.routes(), *self.sounds.routes()]

"""Clips that takes were made with, kept by content so that a take can be made again after the upload is gone.

<data folder>/clips/<content hash>.wav     written once, read back sample for sample
"""

from __future__ import annotations

import logging
import re
import threading
import time
from pathlib import Path

from studio.database import StoreError
from studio.files import exact_wav, remove, write_once
from voxcpm_core import Audio, AudioError
from voxcpm_core.audio import content_hash, load_audio

logger = logging.getLogger(__name__)

CLIP_HASH = re.compile(r"[0-9a-f]{64}")
GRACE_SECONDS = 24 * 3600.0  # a clip this young may belong to a take that is still being made


class KeptClips:
    """Every method may be called from any thread and by several processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writing = threading.Lock()

    def keep(self, audio: Audio) -> str:
        """Write a clip unless it is there; returns its content hash. Raises StoreError when the disk refuses."""
        digest = content_hash(audio)
        path = self.path(digest)
        try:
            with self._writing:
                if path.is_file():
                    path.touch()  # it is in use: no clean-up takes it for old
                else:
                    self.folder.mkdir(parents=True, exist_ok=True)
                    write_once(path, exact_wav(audio))
        except OSError as error:
            raise StoreError(
                f"The clip could not be kept in {self.folder} ({error}). Free some space and try again."
            ) from error
        return digest

    def path(self, digest: str) -> Path:
        """Where the clip with this content lies (or would lie). Raises StoreError for what is no hash."""
        if not isinstance(digest, str) or not CLIP_HASH.fullmatch(digest):
            raise StoreError(f"{digest!r} does not name a clip.")
        return self.folder / f"{digest}.wav"

    def audio(self, digest: str) -> Audio:
        """The clip, sample for sample. Raises StoreError when its file is gone or no longer what it was."""
        path = self.path(digest)
        if not path.is_file():
            raise StoreError(f"The clip {path.name} is no longer in {self.folder}.")
        try:
            audio = load_audio(path)
        except AudioError as error:
            raise StoreError(f"The clip {path.name} is damaged: {error}") from error
        if content_hash(audio) != digest:
            raise StoreError(f"The clip {path.name} in {self.folder} was changed: it no longer holds the same sound.")
        return audio

    def purge(self, used: set[str]) -> None:
        """Remove the clips that nothing refers to any more, young ones excepted. Only names of our own are touched."""
        if not self.folder.is_dir():
            return
        for path in self.folder.iterdir():
            digest = path.name.removesuffix(".part").removesuffix(".wav")
            try:
                is_old = time.time() - path.stat().st_mtime > GRACE_SECONDS
            except OSError:
                continue
            if CLIP_HASH.fullmatch(digest) and digest not in used and is_old:
                logger.info("removing clip %s: no take and no voice uses it", path.name)
                remove(path)

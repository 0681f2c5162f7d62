"""Adapters (LoRA) that people may choose by name. Whoever runs the studio puts them there; visitors name no paths.

    <data folder>/adapters/<name>/lora_weights.safetensors     beside lora_config.json

More come from a folder given at the start (``--adapters``), and the one that is on the model from the start
(``--lora``).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from studio.database import StoreError
from voxcpm_core import LoRAError, SpeechRequest, VoxCPM

WEIGHTS = ("lora_weights.safetensors", "lora_weights.ckpt")


class AdapterShelf:
    """Looks at the folders each time it is asked: what is put there is there without a restart. For any thread."""

    def __init__(self, *folders: Path, started: str | Path | None = None) -> None:
        """``folders`` hold adapters by name, the first one wins; ``started`` is one that is on the model already."""
        self.folders = folders
        self._started = Path(started).expanduser() if started else None
        self._hashes: dict[tuple[Path, int, int], str] = {}
        self._lock = threading.Lock()

    @property
    def started(self) -> str:
        """The name of the adapter that is on the model from the start, "" for none."""
        return _name(self._started) if self._started else ""

    def names(self) -> list[str]:
        """All adapters, by name."""
        return sorted(self._found(), key=str.casefold)

    def path(self, name: str) -> Path:
        """Where an adapter lies. Raises StoreError for a name that is not on the shelf."""
        path = self._found().get(name)
        if path is None:
            raise StoreError(f"There is no adapter “{str(name)[:80]}” in this studio. It may have been removed.")
        return path

    def request_fields(self, name: str, strength: float = 1.0) -> dict[str, Any]:
        """The fields of a SpeechRequest that is spoken with an adapter; name "" is the model without any."""
        return {"lora": str(self.path(name)), "lora_strength": float(strength)} if name else {"lora": ""}

    def refuse_unfit(self, model: VoxCPM, name: str) -> None:
        """Raises LoRAError, with the adapter's name and the model it was made for, when it does not fit ``model``."""
        try:
            model.lora_of(SpeechRequest("", **self.request_fields(name)))
        except LoRAError as error:
            raise LoRAError(unfit(name, error, str(model.generation)), error.made_for) from error

    def find(self, name: str, digest: str) -> Path | None:
        """The adapter whose weights have this hash (as recipes tell it); one of that name is looked at first."""
        found = self._found()
        candidates = [*([found[name]] if name in found else []), *found.values()]
        return next((path for path in candidates if self._hash(path) == digest), None)

    def _found(self) -> dict[str, Path]:
        found = {_name(path): path for folder in reversed(self.folders) for path in _adapters_in(folder)}
        return {**found, **({self.started: self._started} if self._started else {})}

    def _hash(self, path: Path) -> str:
        """16 hex digits of the weights file's sha256, "" when it cannot be read."""
        file = next((path / name for name in WEIGHTS if (path / name).is_file()), path)
        try:
            stat = file.stat()
            key = (file, stat.st_mtime_ns, stat.st_size)
            with self._lock:
                if key not in self._hashes:
                    self._hashes[key] = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
                return self._hashes[key]
        except OSError:
            return ""


def unfit(name: str, error: LoRAError, generation: str) -> str:
    """Why an adapter cannot be used, in one sentence; the list of keys is for the log."""
    if error.made_for:
        return f"The adapter “{name}” was made for {error.made_for} and does not fit {generation}. Choose another one."
    return f"The adapter “{name}” cannot be used with {generation}: {str(error)[:300]}"


def _name(path: Path) -> str:
    return path.parent.name if path.is_file() else path.name


def _adapters_in(folder: Path) -> Iterator[Path]:
    try:
        inside = sorted(folder.iterdir())
    except OSError:  # no such folder
        return
    yield from (path for path in inside if any((path / name).is_file() for name in WEIGHTS))

"""Writing safetensors files that others may read: the package makes them readable by their owner only."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors.torch import save_file

if TYPE_CHECKING:
    import torch


def save_weights(tensors: dict[str, torch.Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Like safetensors' ``save_file``, with the permissions that any new file gets here (the umask decides)."""
    save_file(tensors, str(path), metadata=metadata)
    path.chmod(_usual_mode(path.parent))


def _usual_mode(folder: Path) -> int:
    """The permissions of a new file. Asking for the umask would change it for a moment, for all threads."""
    probe = folder / f".{uuid.uuid4().hex}.mode"
    file = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        return os.fstat(file).st_mode & 0o777
    finally:
        os.close(file)
        probe.unlink()

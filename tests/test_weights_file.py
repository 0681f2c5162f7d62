"""Weights that others on this machine may read, as any other new file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_a_weights_file_follows_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    import torch

    from voxcpm_core.weights_file import save_weights

    before = os.umask(umask)
    try:
        save_weights({"a": torch.zeros(2)}, tmp_path / "model.safetensors", {"format": "pt"})
    finally:
        os.umask(before)
    assert (tmp_path / "model.safetensors").stat().st_mode & 0o777 == mode
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]

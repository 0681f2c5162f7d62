"""Which device and which number format: what is asked, what the machine has, what the checkpoint wants."""

from __future__ import annotations

import logging

import torch

from .checkpoint import parse_dtype
from .errors import RequestError

log = logging.getLogger(__name__)

FULL_MODEL, _FULL_MODEL_BYTES = "openbmb/VoxCPM2", 8e9
_SMALL_MODEL = 512  # hidden size of the language model


def choose_device(name: str | None = "auto") -> torch.device:
    """ "auto" takes CUDA, then Apple's GPU, then the CPU. Raises RequestError for what this machine does not have."""
    if name in (None, "", "auto"):
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        known = device.type in ("cpu", "cuda", "mps")
    except RuntimeError:
        known = False
    if not known:
        raise RequestError(f"device '{name}' is unknown; use auto, cpu, cuda, cuda:N or mps.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise RequestError(f"device '{name}' is not there: this machine has {torch.cuda.device_count()} CUDA devices.")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise RequestError("device 'mps' is not there: it exists on Apple computers only. Use auto or cpu.")
    return device


def choose_dtype(wanted: str, published: str, device_type: str, *, cuda_bf16: bool, cpu_bf16: bool) -> torch.dtype:
    """The format to compute in.

    A ``wanted`` other than "auto" is obeyed, except on mps, which computes in float32 only. "auto" takes the published
    format where the device is fast at it, else float32 (float16 overflows in these models).
    """
    if device_type == "mps":
        return torch.float32
    if wanted != "auto":
        return parse_dtype(wanted)
    if parse_dtype(published) != torch.bfloat16:
        return torch.float32
    fast = {"cuda": cuda_bf16, "cpu": cpu_bf16}.get(device_type, False)
    return torch.bfloat16 if fast else torch.float32


def choose_dtype_here(wanted: str, published: str, device: torch.device) -> torch.dtype:
    cuda_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return choose_dtype(wanted, published, device.type, cuda_bf16=cuda_bf16, cpu_bf16=cpu_has_bf16())


def default_model(device: str | None = "auto") -> str:
    """What the model name "auto" means: VoxCPM2 on a CUDA device with 8 GB or more, else the embedded nano."""
    wanted = device or "auto"
    if wanted != "auto" and not wanted.startswith("cuda"):
        return "nano"
    index = int(wanted.partition(":")[2] or 0) if wanted.partition(":")[2].isdigit() else 0
    if not torch.cuda.is_available() or index >= torch.cuda.device_count():
        return "nano"
    big = torch.cuda.get_device_properties(index).total_memory >= _FULL_MODEL_BYTES
    return FULL_MODEL if big else "nano"


def limit_threads(hidden_size: int, device_type: str) -> None:
    """For programs: one CPU thread for a small model, where a second costs more in waiting than it brings.

    Changes the whole process, so the library itself never calls it.
    """
    if device_type == "cpu" and hidden_size <= _SMALL_MODEL:
        torch.set_num_threads(1)


def cpu_has_bf16() -> bool:
    """Whether the CPU multiplies bfloat16 itself; emulated, it is slower than float32."""
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(getattr(torch.cpu, check, lambda: False)()) for check in checks)

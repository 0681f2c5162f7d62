"""Checkpoint folders in the official layout -> modules ready to run.

The modules are built without memory (meta device), every tensor goes from the mapped file straight into its place, and
what does not fit is named: missing and misshaped tensors are errors, unknown ones a warning.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from .audio_vae import AudioVAE
from .config import ModelConfig, read_config, vae_config_from_shapes
from .errors import CheckpointError
from .linear import Linear, Preparation
from .model import Model

log = logging.getLogger(__name__)

Progress = Callable[[str, float | None], None]
NANO = Path(__file__).resolve().parent.parent / "assets" / "nano"
HUB_FILES = ["*.json", "*.safetensors", "*.bin", "*.pth", "lexicon.txt.gz"]
_MAPPED_AT_ONCE = 256 * 2**20  # bytes of a file kept mapped: bounds the peak memory of loading


def no_progress(stage: str, fraction: float | None) -> None:
    """The default for ``on_progress``."""


def find_checkpoint(
    name: str | Path,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
    on_progress: Progress = no_progress,
) -> Path:
    """The folder for ``name``: "nano" (embedded), a folder, or a hub id such as "openbmb/VoxCPM2" (downloaded)."""
    if str(name) == "nano":
        return NANO
    if Path(name).expanduser().is_dir():
        return Path(name).expanduser()
    if str(name).count("/") != 1 or str(name).startswith((".", "/", "~")):
        raise CheckpointError(
            f"There is no folder '{name}'. Give a checkpoint folder, a hub id such as openbmb/VoxCPM2, or nano."
        )
    return _download(str(name), revision, cache_dir, local_files_only, on_progress)


def load(
    folder: Path, device: torch.device, dtype: torch.dtype | None = None, on_progress: Progress = no_progress
) -> tuple[Model, AudioVAE]:
    """Builds and fills both networks on ``device``; ``dtype`` None = what config.json says (the AudioVAE is float32).

    Raises CheckpointError naming files or tensors that are missing or do not fit.
    """
    model_files, vae_file = checkpoint_files(folder)
    config = read_config(folder)
    dtype = dtype or parse_dtype(config.dtype)
    with torch.device("meta"):
        model = Model(config)
    _fill(model, read_tensors(model_files), model_files[0].name, device, dtype, on_progress)
    vae = load_vae(vae_file, config, device)
    vae.prepare()
    return model.eval(), vae.eval()


def checkpoint_files(folder: Path) -> tuple[list[Path], Path]:
    """Model files and AudioVAE file of ``folder``; safetensors are preferred. Lists everything that is missing."""
    vae = next((folder / n for n in ("audiovae.safetensors", "audiovae.pth") if (folder / n).is_file()), None)
    model = [folder / "model.safetensors"] if (folder / "model.safetensors").is_file() else []
    model = model or sorted(path for path in folder.glob("*.safetensors") if path.name != "audiovae.safetensors")
    model = model or [path for path in [folder / "pytorch_model.bin"] if path.is_file()]
    missing = [name for name in ("config.json", "tokenizer.json") if not (folder / name).is_file()]
    missing += [] if model else ["model.safetensors (or pytorch_model.bin)"]
    missing += [] if vae else ["audiovae.safetensors (or audiovae.pth)"]
    if missing or vae is None:
        raise CheckpointError(f"The checkpoint folder {folder} lacks {', '.join(missing)}. Copy or download it again.")
    return model, vae


def parse_dtype(name: str) -> torch.dtype:
    known = {"bfloat16": torch.bfloat16, "bf16": torch.bfloat16, "float16": torch.float16, "fp16": torch.float16}
    known |= {"float32": torch.float32, "fp32": torch.float32}
    if name not in known:
        raise CheckpointError(f"dtype '{name}' is unknown; use one of {', '.join(known)} or auto.")
    return known[name]


def fingerprint(folder: Path) -> str:
    """16 hex digits for these weights: config.json, and size, head, tail and 62 blocks between of every weight file.

    Tells trainings apart, not single bytes between the blocks: hashing all of 5 GB would double the loading time, this
    reads 4 MB a file.
    """
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    model_files, vae_file = checkpoint_files(folder)
    for path in (*model_files, vae_file):
        size, block = path.stat().st_size, 65536
        digest.update(f"{path.name}:{size}".encode())
        with path.open("rb") as file:
            for index in range(64):
                file.seek(max(0, (size - block) * index // 63))
                digest.update(file.read(block))
    return digest.hexdigest()[:16]


def load_vae(file: Path, config: ModelConfig, device: torch.device) -> AudioVAE:
    tensors = fold_weight_norm(dict(read_tensors([file])))  # new tensors: the file is let go of here
    vae_config = config.vae
    if vae_config is None:
        vae_config = vae_config_from_shapes({name: tuple(t.shape) for name, t in tensors.items()}, config.version)
    with torch.device("meta"):
        vae = AudioVAE(vae_config)
    _fill(vae, iter(tensors.items()), file.name, device, torch.float32, no_progress, mapped=False)
    return vae


def fold_weight_norm(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Replaces each pair (g, v) of a weight-normalised layer by ``g v / |v|`` (norm over all axes but the first)."""
    folded = {}
    for name, tensor in tensors.items():
        for g_suffix, v_suffix in (
            ("weight_g", "weight_v"),
            ("parametrizations.weight.original0", "parametrizations.weight.original1"),
        ):
            if name.endswith("." + v_suffix):
                stem = name.removesuffix(v_suffix)
                if stem + g_suffix not in tensors:
                    raise CheckpointError(f"The AudioVAE has {name} but lacks {stem + g_suffix}.")
                v, g = tensor.float(), tensors[stem + g_suffix].float()
                folded[stem + "weight"] = v * (g / v.flatten(1).norm(dim=1).view_as(g))
                break
            if name.endswith("." + g_suffix):
                break
        else:
            folded[name] = tensor
    return folded


def _fill(
    module: nn.Module,
    tensors: Iterator[tuple[str, Tensor]],
    source: str,
    device: torch.device,
    dtype: torch.dtype,
    on_progress: Progress,
    mapped: bool = True,
) -> None:
    places = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    preparation, seen = Preparation(module), set()
    unknown, misshaped = [], []
    for name, tensor in tensors:
        place = places.get(name)
        if place is None:
            unknown.append(name)
        elif place.shape != tensor.shape:
            misshaped.append(f"{name} {tuple(tensor.shape)} instead of {tuple(place.shape)}")
        else:
            _assign(
                module,
                name,
                tensor.to(device, dtype if tensor.is_floating_point() else tensor.dtype),
                mapped,
                preparation,
            )
        seen.add(name)
        on_progress("loading weights", len(seen) / max(1, len(places)))
    missing = [name for name in places if name not in seen]
    if missing or misshaped:
        raise CheckpointError(_mismatch(source, missing, misshaped, unknown))
    if unknown:
        log.warning("%s has %d tensors this model does not use: %s", source, len(unknown), _shorten(unknown))


def _assign(module: nn.Module, name: str, tensor: Tensor, mapped: bool, preparation: Preparation) -> None:
    owner, _, leaf = name.rpartition(".")
    holder = module.get_submodule(owner)
    packed_next = isinstance(holder, Linear) and leaf == "weight"
    if mapped and tensor.device.type == "cpu" and not packed_next:
        tensor = tensor.clone()  # a view would keep its part of the file in memory
    if leaf in holder._parameters:
        holder._parameters[leaf] = nn.Parameter(tensor, requires_grad=False)
    else:
        holder._buffers[leaf] = tensor
    if isinstance(holder, Linear):
        preparation.loaded(holder)


def _mismatch(source: str, missing: list[str], misshaped: list[str], unknown: list[str]) -> str:
    parts = [f"{source} does not fit config.json."]
    for title, names in (("Missing", missing), ("Wrong shape", misshaped), ("Unknown", unknown)):
        if names:
            parts.append(f"{title} ({len(names)}): {_shorten(names)}.")
    return " ".join(parts)


def _shorten(names: list[str], most: int = 40) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def read_tensors(files: list[Path]) -> Iterator[tuple[str, Tensor]]:
    """Name and tensor of everything in these files, one at a time. Raises CheckpointError for what is not weights."""
    for file in files:
        yield from _safetensors(file) if file.suffix == ".safetensors" else _pickled(file)


def _safetensors(file: Path) -> Iterator[tuple[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "pt") as mapped:
            names = list(mapped.keys())
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{file} is not a readable safetensors file ({error}). Download it again.") from None
    while names:
        read = 0
        # Mapped anew now and then: pages once read would otherwise count as memory until the end.
        with safe_open(file, "pt") as mapped:
            while names and read < _MAPPED_AT_ONCE:
                name = names.pop(0)
                tensor = mapped.get_tensor(name)
                read += tensor.nbytes
                yield name, tensor
                del tensor


def _pickled(file: Path) -> Iterator[tuple[str, Tensor]]:
    try:
        content = torch.load(file, map_location="cpu", weights_only=True, mmap=_is_zip(file))
    except Exception as error:
        raise CheckpointError(
            f"{file} cannot be read as plain weights ({type(error).__name__}); files that would run code are refused."
        ) from None
    if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
        content = content["state_dict"]
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise CheckpointError(f"{file} is not a dictionary of tensors.")
    yield from content.items()


def _is_zip(file: Path) -> bool:
    with file.open("rb") as handle:
        return handle.read(2) == b"PK"  # files of very old torch versions cannot be mapped


def _download(
    repo: str, revision: str | None, cache_dir: str | Path | None, local_files_only: bool, on_progress: Progress
) -> Path:
    from huggingface_hub import snapshot_download
    from tqdm.auto import tqdm

    class Report(tqdm):
        def update(self, n: float | None = 1) -> bool | None:
            shown = super().update(n)
            if self.unit == "B" and self.total:
                on_progress(f"downloading {repo}", min(1.0, self.n / self.total))
            return shown

    on_progress(f"looking for {repo}", None)
    try:
        folder = snapshot_download(
            repo,
            revision=revision,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
            allow_patterns=HUB_FILES,
            tqdm_class=Report,
        )
    except Exception as error:  # the hub client has many kinds; all of them mean the same to the user
        raise CheckpointError(
            f"The model {repo} could not be taken from the hub ({type(error).__name__}: {_first_line(error)}). Check "
            "the name and the connection, or download the folder elsewhere and give its path."
        ) from error
    return Path(folder)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:200]

"""Recordings -> latents, each encoded once; and how much each latent counts."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from ..audio import load_audio, resample
from ..audio_vae import AudioVAE
from ..checkpoint import checkpoint_files, load_vae
from ..config import LATENTS_PER_SECOND, read_config
from ..errors import AudioError
from .dataset import Dataset, Item
from .errors import DataError
from .manifest import Entry, read_manifest

log = logging.getLogger(__name__)

_SHOWN = 20  # clips that a message lists


def read_latent_weights(file: Path) -> tuple[float, ...]:
    """Weight of each latent in the diffusion loss, mean 1.

    A .json list as it is; or nano's latent_recipe.npz, whose principal components count with the square root of their
    eigenvalue (within limits) and whose other latents (pitch, voicing) count 1.5 before all are scaled to mean 1.
    """
    try:
        if file.suffix == ".json":
            weights = np.asarray(json.loads(file.read_text(encoding="utf-8")), np.float64)
        else:
            with np.load(file) as recipe:
                eigenvalues = recipe["pca_eigenvalues"].astype(np.float64)
                others = len(recipe["shift"]) - len(eigenvalues) if "shift" in recipe else 4
            known = np.clip((eigenvalues / np.median(eigenvalues)) ** 0.5, 0.4, 3.0)
            weights = np.concatenate((known, np.full(others, 1.5)))
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{file} does not hold latent weights: {error}.") from None
    return tuple((weights / weights.mean()).tolist())


def encode_manifest(
    file: Path,
    base: Path,
    cache: Path,
    *,
    other_rate: str = "resample",
    held_out_every: int = 20,
    device: str = "cpu",
) -> Dataset:
    """The recordings of a manifest as latents of ``base``'s AudioVAE, each encoded once and kept in ``cache``.

    Clips of another sample rate than the encoder's are resampled, or refused (``other_rate`` "refuse"). Raises
    DataError that names every clip that cannot be used.
    """
    entries = read_manifest(file, references=read_config(base).version == 2)
    heard = [entry.audio for entry in entries]
    extra = [entry.reference for entry in entries if entry.reference is not None and entry.reference not in heard]
    files = [*heard, *dict.fromkeys(extra)]
    kept = LatentCache(base, cache, other_rate, torch.device(device)).encode(files)
    seconds = [len(np.load(path, mmap_mode="r")) / LATENTS_PER_SECOND for path in kept]
    items = [_item(entry, files, length) for entry, length in zip(entries, seconds, strict=False)]
    items += [Item(text="", weight=0.0, seconds=length) for length in seconds[len(entries) :]]
    held_out = range(0, len(entries), held_out_every) if held_out_every and len(entries) > 1 else ()
    return Dataset(items, lambda index: np.load(kept[index], mmap_mode="r"), held_out)


class LatentCache:
    """Latents in ``folder / <hash of the AudioVAE's file> / <hash of the clip's file>.npy``, float32 [frames, D]."""

    def __init__(self, base: Path, folder: Path, other_rate: str, device: torch.device):
        self._base, self._refuse, self._device = base, other_rate == "refuse", device
        self._patch = read_config(base).patch_size
        self._folder = folder / _hash(checkpoint_files(base)[1])[:16]
        self._vae: AudioVAE | None = None

    def encode(self, files: Sequence[Path]) -> list[Path]:
        """Where the latents of each clip lie. The AudioVAE is loaded only when one is missing."""
        places, problems = [], []
        self._folder.mkdir(parents=True, exist_ok=True)
        for number, file in enumerate(files, 1):
            place = self._folder / f"{_hash(file)}.npy"
            if not place.is_file():
                try:
                    self._encode(file, place)
                except AudioError as error:
                    problems.append(f"{file}: {error}")
                if number % 50 == 0:
                    log.info("Encoded %d of %d recordings.", number, len(files))
            places.append(place)
        if problems:
            more = f" ... and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
            raise DataError(f"{len(problems)} recordings cannot be used. {' '.join(problems[:_SHOWN])}{more}")
        return places

    @torch.inference_mode()
    def _encode(self, file: Path, place: Path) -> None:
        if self._vae is None:
            self._vae = load_vae(checkpoint_files(self._base)[1], read_config(self._base), self._device).eval()
            self._vae.prepare()
        rate, audio = self._vae.config.sample_rate, load_audio(file)
        if audio.sample_rate != rate and self._refuse:
            raise AudioError(
                f"It has {audio.sample_rate} Hz, the model's encoder {rate} Hz; resample it or allow that."
            )
        samples = resample(audio, rate).samples
        if not len(samples) or not np.isfinite(samples).all():
            raise AudioError("It has no samples, or values that are no numbers.")
        samples = np.pad(samples, (0, -len(samples) % (self._patch * self._vae.config.encoder_hop)))
        latents = self._vae.encode(torch.from_numpy(samples)[None].to(self._device))[0]
        fresh = place.with_suffix(".new.npy")
        np.save(fresh, latents.cpu().numpy())
        fresh.replace(place)


def _item(entry: Entry, files: Sequence[Path], seconds: float) -> Item:
    return Item(
        text=entry.text,
        key=(entry.speaker,) if entry.speaker else (),
        controls=(entry.control,) if entry.control else (),
        reference=None if entry.reference is None else files.index(entry.reference),
        seconds=seconds,
        dataset=entry.dataset,
    )


def _hash(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while block := content.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()

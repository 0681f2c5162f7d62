"""Data sets: texts and ready-made latents, in memory or mapped from disk.

A data set folder holds

    latents.npy + offsets.npy   [frames, D] float16 or float32 of all items one after the other, and the n + 1 borders;
                                or both as "z" and "off" in lat.npz (which is read into memory)
    items.jsonl or .jsonl.gz    one JSON object per item, see :class:`Item`
    voices.json                 optional: {"default": [voice, pitch, tempo], "voices": {name: {"sex", "accent"}}}
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import alignment
from .errors import DataError

ALIGNED_RATE = 16000  # hertz: what "n" (samples) counts in a data set folder


@dataclass(frozen=True)
class Item:
    """One recording. ``key`` groups items that sound alike: they may serve each other as references."""

    text: str
    key: tuple = ()
    controls: tuple[str, ...] = ()  # descriptions of this recording, without brackets
    voice: dict[str, Any] = field(default_factory=dict)  # sex, accent, pitch, tempo, as far as known
    is_default: bool = True  # may be spoken from bare text: no description or reference needed
    reference: int | None = None  # this clip is its reference, whatever the key says
    words: tuple[str, ...] = ()
    segments: str = ""  # alignment as written in the file; read when needed
    seconds: float = 0.0
    weight: float = 1.0
    dataset: str = ""


class Dataset:
    """Items and their latents. ``frames(index)`` -> float32 ``[frames, D]``."""

    def __init__(self, items: list[Item], latents: Callable[[int], np.ndarray], held_out: Iterable[int] = ()):
        self.items = items
        self._latents = latents
        self.held_out = sorted(held_out)
        self.groups: dict[tuple, list[int]] = {}
        kept_back = set(self.held_out)
        # weight 0: only ever a reference
        self.training = [index for index in range(len(items)) if index not in kept_back and items[index].weight > 0]
        for index in self.training:
            for size in range(1, len(items[index].key) + 1):
                self.groups.setdefault(items[index].key[:size], []).append(index)

    def frames(self, index: int) -> np.ndarray:
        return np.array(self._latents(index), dtype=np.float32)


def join(datasets: list[Dataset]) -> Dataset:
    """One data set of several; groups and references stay within each."""
    if len(datasets) == 1:
        return datasets[0]
    items: list[Item] = []
    homes: list[tuple[Dataset, int]] = []
    held_out: list[int] = []
    for number, dataset in enumerate(datasets):
        start = len(items)
        held_out += [start + index for index in dataset.held_out]
        for index, item in enumerate(dataset.items):
            reference = None if item.reference is None else start + item.reference
            items.append(Item(**{**vars(item), "key": (number, *item.key), "reference": reference}))
            homes.append((dataset, index))
    return Dataset(items, lambda index: homes[index][0].frames(homes[index][1]), held_out)


def read_folder(folder: Path, held_out_every: int = 250, default_weight: float = 1.0) -> Dataset:
    """The data set in ``folder``. Every ``held_out_every``-th item is kept back for validation (0: none).

    Items of the default voice are drawn ``default_weight`` times as often as their share. Raises DataError.
    """
    latents, offsets = _latents(folder)
    voices = _read_voices(folder)
    name = folder.name
    items = [_item(raw, where, voices, default_weight, name) for where, raw in _lines(_items_file(folder))]
    if len(offsets) != len(items) + 1 or int(offsets[-1]) > len(latents) or (np.diff(offsets) <= 0).any():
        raise DataError(
            f"{folder}: {len(items)} items, but offsets for {len(offsets) - 1} and {len(latents)} frames of latents. "
            "The files do not belong together."
        )
    held_out = range(0, len(items), held_out_every) if held_out_every else ()
    return Dataset(items, lambda index: latents[offsets[index] : offsets[index + 1]], held_out)


def write_folder(folder: Path, items: list[dict[str, Any]], latents: list[np.ndarray], voices: dict | None) -> None:
    """A data set folder that :func:`read_folder` reads. ``items`` as in items.jsonl, latents ``[frames, D]`` each."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "latents.npy", np.concatenate(latents))
    np.save(folder / "offsets.npy", np.concatenate(([0], np.cumsum([len(part) for part in latents]))))
    lines = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    (folder / "items.jsonl").write_text(lines, encoding="utf-8")
    if voices is not None:
        (folder / "voices.json").write_text(json.dumps(voices, indent=1), encoding="utf-8")


def _latents(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        if (folder / "latents.npy").is_file():
            latents = np.load(folder / "latents.npy", mmap_mode="r")
            return latents, np.load(folder / "offsets.npy").astype(np.int64)
        with np.load(folder / "lat.npz") as archive:
            return archive["z"], archive["off"].astype(np.int64)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{folder} has no readable latents (latents.npy and offsets.npy, or lat.npz with z and off): {error}."
        ) from None


def _items_file(folder: Path) -> Path:
    for name in ("items.jsonl", "items.jsonl.gz"):
        if (folder / name).is_file():
            return folder / name
    raise DataError(f"{folder} has neither items.jsonl nor items.jsonl.gz: it is not a data set folder.")


def _lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                where = f"{file}, line {number}"
                try:
                    raw = json.loads(line)
                except ValueError as error:
                    raise DataError(f"{where} is not JSON: {error}.") from None
                if not isinstance(raw, dict):
                    raise DataError(f"{where} is not a JSON object.")
                yield where, raw
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read: {error}.") from None


def _read_voices(folder: Path) -> dict[str, Any]:
    path = folder / "voices.json"
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not readable JSON: {error}.") from None


def _item(raw: dict[str, Any], where: str, voices: dict[str, Any], default_weight: float, dataset: str) -> Item:
    try:
        key = (str(raw["voice"]), float(raw.get("pitch", 1.0)), float(raw.get("tempo", 1.0))) if "voice" in raw else ()
        default = tuple(voices.get("default", ()))
        known = voices.get("voices", {}).get(raw.get("voice"), {})
        control = raw.get("control") or ()
        text, words, segments = str(raw["text"]), tuple(raw.get("words", "").split()), str(raw.get("segs", ""))
        seconds = float(raw.get("n", 0)) / ALIGNED_RATE
        parsed = alignment.read_segments(segments)
        problem = alignment.mismatch(text, words, parsed) if parsed else ""
        if not text.strip() or problem:
            raise ValueError(problem or "'text' is empty")
        is_default = key == default if default else True
        return Item(
            text=text,
            key=key,
            controls=(control,) if isinstance(control, str) else tuple(map(str, control)),
            voice={**known, "pitch": key[1], "tempo": key[2]} if key else {},
            is_default=is_default,
            words=words,
            segments=segments,
            seconds=seconds,
            weight=float(raw.get("weight", default_weight if is_default and default else 1.0)),
            dataset=dataset,
        )
    except KeyError as missing:
        raise DataError(f"{where} lacks {missing}.") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{where}: {error}.") from None

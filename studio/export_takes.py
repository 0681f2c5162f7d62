"""Chosen takes to carry away: a zip with their sound, a table of their recipes, and the recipes in full."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import uuid
import zipfile
from dataclasses import replace
from pathlib import Path

from studio.database import StoreError
from studio.provenance import facts_now, tagged_wav
from studio.store import Store
from studio.takes import TakeRecord

MOST_TAKES = 500
COLUMNS = (
    *("file", "id", "created", "tab", "spoken_text", "control", "mode", "voice", "reference_name", "seed", "attempt"),
    *("cfg_value", "inference_timesteps", "temperature", "model_id", "weights_hash", "lora_name", "lora_strength"),
    *("device", "dtype", "seconds", "patches", "ended_by", "verdict", "loudness", "peak", "generation_seconds"),
    *("rating", "starred", "picked", "note", "typed_text", "typed_control", "normalize", "group", "file_hash"),
)


def export_takes(store: Store, take_ids: list[str], folder: Path, session: str | None = None) -> Path:
    """Write a zip into ``folder`` and return its path; its removal is up to the caller.

    Holds ``takes/<name>.wav``, ``recipes.csv`` (UTF-8 with a mark, as spreadsheets like it) and ``recipes.json``. A
    take whose file is gone is in the tables with an empty ``file``. Raises StoreError for no takes, an unknown one, or
    when the disk refuses.
    """
    records = [store.take(take_id, session) for take_id in dict.fromkeys(take_ids)]
    if not records:
        raise StoreError("Choose at least one take to export.")
    if len(records) > MOST_TAKES:
        raise StoreError(f"{MOST_TAKES} takes can be exported at once, not {len(records)}. Export them in parts.")
    path = folder / f"voxcpm-takes-{uuid.uuid4().hex[:8]}.zip"
    part = path.with_suffix(".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(part, "w", strict_timestamps=False) as archive:
            files = {record.id: _add_audio(archive, store, record) for record in records}
            archive.writestr("recipes.csv", recipes_csv(records, files).encode("utf-8-sig"))
            recipes = [{**record.recipe(), "file": files[record.id]} for record in records]
            archive.writestr("recipes.json", json.dumps(recipes, ensure_ascii=False, indent=2))
        os.replace(part, path)
    except OSError as error:
        raise StoreError(f"The zip could not be written to {folder} ({error}). Free some space.") from error
    finally:
        part.unlink(missing_ok=True)
    return path


def _add_audio(archive: zipfile.ZipFile, store: Store, record: TakeRecord) -> str:
    try:
        data = marked_wav(store, record)
    except StoreError:
        return ""
    name = f"takes/{file_stem(record)}.wav"
    archive.writestr(name, data)
    return name


def marked_wav(store: Store, record: TakeRecord) -> bytes:
    """A take's file as it leaves the studio: the same sound, and tags that say that it is AI-made, by what and when.

    Raises StoreError when the file is gone.
    """
    path, facts = store.audio_path(record.id), replace(facts_now([record.model_id]), created=record.created)
    try:
        return tagged_wav(path.read_bytes(), facts, title=record.spoken_text[:80])
    except (OSError, ValueError) as error:
        raise StoreError(f"The audio of take {record.id} is damaged ({error}).") from error


def file_stem(record: TakeRecord) -> str:
    """The first words, the seed and the id: readable, unlike any other, and safe on every system."""
    words = "-".join(re.findall(r"\w+", record.spoken_text)[:6])[:40] or "take"
    return f"{words}_seed{record.seed}_{record.id}"


def recipes_csv(records: list[TakeRecord], files: dict[str, str]) -> str:
    """One line per take. Texts that a spreadsheet would take for a formula get an apostrophe in front."""
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(COLUMNS)
    for record in records:
        table.writerow(_cell(files[record.id] if name == "file" else getattr(record, name)) for name in COLUMNS)
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, str) and value.lstrip()[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return "" if value is None else value

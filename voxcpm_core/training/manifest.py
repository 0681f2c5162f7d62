"""Manifests: one JSON object per line, for each recording what is said in it.

audio         file; relative paths are looked up beside the manifest, then from the working directory
text          what is said
ref_audio     optional: another recording of the same speaker (second generation only)
control       optional, also "description": how the voice sounds, without brackets
speaker       optional: recordings of one speaker may serve each other as references and continuations
duration      optional, seconds
dataset_id    optional: named in reports
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import DataError

_SHOWN = 20  # problems that a message lists


@dataclass(frozen=True)
class Entry:
    audio: Path
    text: str
    reference: Path | None = None
    control: str = ""
    speaker: str = ""
    seconds: float = 0.0  # 0: not known
    dataset: str = ""


def read_manifest(file: Path, references: bool = True) -> list[Entry]:
    """All entries of ``file``. Raises DataError that lists every bad line with its number and what is wrong with it.

    ``references`` False: the model's generation knows none, a ``ref_audio`` is an error.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The manifest {file} cannot be read: {error}.") from None
    entries, problems = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entries.append(_entry(json.loads(line), file.parent, references))
        except ValueError as error:
            problems.append(f"line {number}: {error}")
    if problems:
        more = f" ... and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise DataError(f"{file} has {len(problems)} bad lines. {'; '.join(problems[:_SHOWN])}{more}.")
    if not entries:
        raise DataError(f"The manifest {file} has no lines.")
    return entries


def _entry(raw: Any, folder: Path, references: bool) -> Entry:
    if not isinstance(raw, dict):
        raise ValueError("it is not a JSON object")
    text = _string(raw, "text")
    if not text.strip():
        raise ValueError("'text' is missing or empty")
    audio = _file(_string(raw, "audio"), "audio", folder)
    reference = _string(raw, "ref_audio")
    if reference and not references:
        raise ValueError("'ref_audio' is given, but this model's generation knows no reference")
    found = _file(reference, "ref_audio", folder) if reference else None
    if found == audio:
        raise ValueError("'ref_audio' is the recording itself; give another one of the same speaker")
    seconds = raw.get("duration") or 0.0
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds < 0:
        raise ValueError(f"'duration' is {seconds!r}, not a number of seconds")
    return Entry(
        audio=audio,
        text=" ".join(text.split()),
        reference=found,
        control=(_string(raw, "control") or _string(raw, "description")).strip().strip("()"),
        speaker=_string(raw, "speaker"),
        seconds=float(seconds),
        dataset=str(raw.get("dataset_id") or ""),
    )


def _string(raw: dict[str, Any], key: str) -> str:
    value = raw.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"'{key}' is {value!r}, not a text")
    return value


def _file(name: str, key: str, folder: Path) -> Path:
    if not name:
        raise ValueError(f"'{key}' is missing")
    for path in (folder / name, Path(name)):
        if path.is_file():
            return path.resolve()
    raise ValueError(f"'{key}' names {name}, which is not there")

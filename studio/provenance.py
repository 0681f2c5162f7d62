"""What a file says about how it was made, and the question "Was this made here?".

Every file that leaves the studio says that it is made by a machine, by which model, when and with what tool: as tags,
and where the optional packages are installed also as Content Credentials (C2PA) and as a watermark in the sound.
Tags are one line in the comment, which every format has, so that it reads well and can be parsed; formats with free
names get them one by one, too.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import soundfile as sf

import voxcpm_core
from studio import content_credentials, watermark
from studio.containers import Format, decoded, probe
from studio.files import pcm_hash
from studio.takes import utc_text
from voxcpm_core.audio import wav_bytes

if TYPE_CHECKING:
    from studio.store import Store

TOOL_NAME = "VoxCPM Studio"
OPENING = "AI-generated speech"  # how our comment begins
LONGEST_CHECKED = 20 * 60.0  # seconds: no take is longer, so longer files are not compared with the stored ones


@dataclass(frozen=True)
class Facts:
    """How a recording was made. ``models`` are names, never folders of this machine."""

    models: tuple[str, ...]
    created: str  # UTC, ISO 8601
    tool: str = f"{TOOL_NAME} {voxcpm_core.__version__}"

    @property
    def model(self) -> str:
        return ", ".join(self.models)


def facts_now(models: Iterable[str] = ()) -> Facts:
    """Facts of a recording made now. A model given as a folder is told by its last name only."""
    names = dict.fromkeys(re.split(r"[\\/]", name.rstrip("\\/"))[-1] if _is_folder(name) else name for name in models)
    return Facts(tuple(name for name in names if name), utc_text())


def comment(facts: Facts) -> str:
    """The mark as one line. ``AIGC`` is the label that China's GB 45438-2025 asks for."""
    label = json.dumps({"Label": "1", "ContentProducer": facts.tool}, ensure_ascii=False)
    parts = {"tool": facts.tool, "model": facts.model, "made": facts.created}
    parts |= {"source": content_credentials.SOURCE_TYPE, "AIGC": label}
    return " | ".join([OPENING, *(f"{key}={value.replace('|', '/')}" for key, value in parts.items() if value)])


def tags(facts: Facts, kind: Format) -> dict[str, str]:
    """The tags that mark a file of this kind. WAV, M4A and M4B know a fixed set of names and keep the comment only."""
    marks = {"comment": comment(facts)}
    if kind.name in ("mp3", "flac"):
        marks |= {
            "AI_GENERATED": "true",
            "AI_MODEL": facts.model,
            "AI_TOOL": facts.tool,
            "AI_DATE": facts.created,
            "DIGITAL_SOURCE_TYPE": content_credentials.SOURCE_TYPE,
        }
    return marks


def read_comment(text: str) -> Facts | None:
    """The facts that a comment tells; None when it is not one of ours."""
    opening, *parts = text.split(" | ")
    if opening.strip() != OPENING:
        return None
    values = dict(part.split("=", 1) for part in parts if "=" in part)
    models = tuple(name for name in values.get("model", "").split(", ") if name)
    return Facts(models, values.get("made", ""), values.get("tool", ""))


def tagged_wav(data: bytes, facts: Facts, title: str = "") -> bytes:
    """A WAV file's bytes with the mark behind its sound (RIFF INFO). Nothing that was there changes, sizes excepted.

    Raises ValueError for what is not a RIFF WAV file, or would become larger than one can be.
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise ValueError("These bytes are not a WAV file.")
    entries = {b"ICMT": comment(facts), b"ISFT": facts.tool, b"ICRD": facts.created[:10], b"INAM": title}
    info = b"INFO" + b"".join(_chunk(name, value.encode() + b"\0") for name, value in entries.items() if value)
    whole = data[8:] + b"\0" * (len(data) % 2) + _chunk(b"LIST", info)
    if len(whole) > 0xFFFFFFFF:
        raise ValueError("A WAV file cannot be larger than 4 GB: use FLAC.")
    return b"RIFF" + struct.pack("<I", len(whole)) + whole


def was_made_here(path: Path, store: Store | None = None, session: str | None = None) -> dict[str, Any]:
    """Look for everything that tells where a sound file comes from.

    Returns ``verdict`` ("yes": signed here or a take of this studio; "likely": it says so, or carries the mark that
    machines put in; "unknown": nothing found, which proves nothing) and ``checks``, each with ``name`` ("tags" |
    "credentials" | "watermark" | "take"), ``status`` ("found" | "not found" | "broken" | "not available") and
    ``detail``. Raises ExportError for what is not a sound file.
    """
    checks = [
        _tags_check(path),
        _credentials_check(path, credentials_folder(store.data_dir) if store else None),
        _watermark_check(path),
        _take_check(path, store, session),
    ]
    found = {check["name"] for check in checks if check["status"] == "found"}
    signed_here = any(check.get("signed_here") for check in checks)
    verdict = "yes" if signed_here or "take" in found else "likely" if found & {"tags", "watermark"} else "unknown"
    return {"verdict": verdict, "checks": checks}


def credentials_folder(data_dir: Path) -> Path:
    """Where the signing key of a data folder lies."""
    return data_dir / "credentials"


def _tags_check(path: Path) -> dict[str, Any]:
    facts = read_comment(probe(path).tags.get("comment", ""))
    if facts is None:
        return _check("tags", "not found", "The file's tags do not say that it is AI-made.")
    return _check("tags", "found", f"{facts.tool}, model {facts.model or 'not named'}, {facts.created}")


def _credentials_check(path: Path, folder: Path | None) -> dict[str, Any]:
    if not content_credentials.available():
        return _check("credentials", "not available", content_credentials.PIP_LINE)
    credential = content_credentials.read(path, folder)
    if credential.state == "none":
        return _check("credentials", "not found", "The file carries no Content Credentials.")
    if credential.state == "broken":
        faults = ", ".join(credential.problems) or "unknown fault"
        return _check("credentials", "broken", f"The file was changed after it was signed ({faults}).")
    signer = "signed here" if credential.made_here else "signed with a key that this studio does not know"
    return _check("credentials", "found", f"{credential.tool}, {signer}") | {"signed_here": credential.made_here}


def _watermark_check(path: Path) -> dict[str, Any]:
    if not watermark.available():
        return _check("watermark", "not available", watermark.PIP_LINE)
    rate = probe(path).sample_rate
    surety = watermark.score(_heard(path, rate), rate)
    status = "found" if surety > watermark.FOUND else "not found"
    return _check("watermark", status, f"score {surety:.2f} of 1")


def _take_check(path: Path, store: Store | None, session: str | None) -> dict[str, Any]:
    if store is None:
        return _check("take", "not available", "No data folder was given.")
    digest = sound_hash(path)
    same = "json_extract(recipe, '$.audio_hash') = ?"
    takes = store.select(same, [digest], session, limit=1) if digest else []
    if not takes:
        return _check("take", "not found", "No stored take has exactly this sound.")
    return _check("take", "found", f"take {takes[0].id}, seed {takes[0].seed}")


def sound_hash(path: Path) -> str:
    """The hash that the store keeps of a take, from a 16-bit mono WAV or FLAC file; "" for other files."""
    try:
        with sf.SoundFile(path) as file:
            short = file.frames <= LONGEST_CHECKED * file.samplerate
            if file.subtype != "PCM_16" or file.channels != 1 or not short:
                return ""
            return pcm_hash(wav_bytes(file.read(dtype="float32"), file.samplerate))
    except sf.SoundFileError:
        return ""


def _heard(path: Path, sample_rate: int, seconds: float = 600.0) -> np.ndarray:
    """The first ten minutes of a file: enough to find a mark that lies everywhere."""
    blocks, left = [np.zeros(0, np.float32)], round(seconds * sample_rate)
    for block in decoded(path, sample_rate):
        blocks.append(block[:left])
        left -= len(blocks[-1])
        if left <= 0:
            break
    return np.concatenate(blocks)


def _check(name: str, status: str, detail: str) -> dict[str, Any]:
    return {"name": name, "status": status, "detail": detail}


def _chunk(name: bytes, body: bytes) -> bytes:
    """A RIFF chunk: its size does not count the byte that makes it even."""
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def _is_folder(name: str) -> bool:
    """Whether a model's name is a path rather than "owner/name"."""
    return "\\" in name or name.startswith(("/", ".", "~")) or name.count("/") > 1

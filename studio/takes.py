"""A take's record: everything that is needed to find it, understand it and make it again.

A record is written once, together with its audio, and never edited. What people think of a take (stars, a note,
whether it was picked) lives beside it in the store and is only shown through the record's last fields.
"""

from __future__ import annotations

import hashlib
import platform
import re
import secrets
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timezone
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import voxcpm_core
from voxcpm_core import SpeechRequest, Take, VoxCPM

EVERYONE = "local"  # whose takes they are when the page is only for the person at this machine
BESIDE_THE_RECIPE = frozenset({"session", "rating", "starred", "picked", "note"})
TAKE_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{16}")
VERSIONED_PACKAGES = ("torch", "torchaudio", "numpy", "tokenizers", "safetensors", "wetext")


@dataclass(frozen=True)
class TakeRecord:
    """One take, described completely.

    Every field is JSON-able; hashes are hex digits, "" when there is nothing to hash.
    """

    id: str
    created: str  # UTC, ISO 8601 with milliseconds
    session: str  # whose take it is: "local", or a hash (see hidden_owner)
    tab: str

    # What was asked, as it was typed ...
    typed_text: str
    typed_control: str
    normalize: bool
    # ... and what the model was given
    spoken_text: str
    control: str
    notes: tuple[str, ...]
    mode: str  # "plain" | "design" | "reference" | "continuation" | "reference+continuation"
    voice: str = ""  # id of a saved voice, whose clip is then the reference or the prompt
    consent: bool | None = None  # whether it was said that the cloned voice may be used; None: not asked
    reference_hash: str = ""
    reference_name: str = ""
    prompt_hash: str = ""
    prompt_name: str = ""
    prompt_text: str = ""

    seed: int = 0
    attempt: int = 0
    cfg_value: float = 0.0
    inference_timesteps: int = 0
    temperature: float = 1.0
    min_len: int = 2
    max_len: int = 4096
    patches_per_token: float | None = None  # None: the model's own

    # What it was made with: takes of one request share a group, and `batch` are the seeds of all rows of its job
    group: str = ""
    batch: tuple[int, ...] = ()
    replay_of: str = ""  # id of the take that this one makes again

    model_id: str = ""
    generation: str = ""
    weights_hash: str = ""
    lora_hash: str = ""
    lora_name: str = ""
    lora_strength: float = 1.0
    device: str = ""
    dtype: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    sample_rate: int = 0
    seconds: float = 0.0
    patches: int = 0
    ended_by: str = "stop"  # "stop" | "limit" | "cancelled" | "error"
    message: str = ""
    generation_seconds: float = 0.0
    first_audio_seconds: float | None = None

    # What was found in its sound: None for silence, "" and () for takes of before there were checks
    loudness: float | None = None  # LUFS, integrated
    peak: float | None = None  # dBFS
    checks: tuple[dict[str, Any], ...] = ()  # see studio.checks.Check
    verdict: str = ""  # the worst of the checks: "ok" | "warn" | "fail"

    # Filled in by the store when the audio is on disk: "" means that there is no audio to play.
    file_name: str = ""
    file_hash: str = ""
    audio_hash: str = ""  # of the samples in the file, whatever else the file says

    # What people think of it. Kept beside the recipe, not in it.
    rating: int = 0  # stars, 0 = not rated
    starred: bool = False
    picked: bool = False  # the chosen one of its group
    note: str = ""

    @property
    def rtf(self) -> float:
        """Seconds of work per second of audio: below 1 is faster than listening. 0.0 without audio."""
        return self.generation_seconds / self.seconds if self.seconds else 0.0

    @property
    def is_partial(self) -> bool:
        """Whether the take ended before the model said that it was done."""
        return self.ended_by != "stop"

    def recipe(self) -> dict[str, Any]:
        """Everything but whose take it is and what people think of it, ready for JSON."""
        recipe = {name: value for name, value in asdict(self).items() if name not in BESIDE_THE_RECIPE}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in recipe.items()}

    @classmethod
    def from_recipe(cls, recipe: dict[str, Any], session: str = "local", **opinions: Any) -> TakeRecord:
        """The record of a stored recipe. Fields that this version does not know are left out."""
        known = {f.name for f in fields(cls)} - BESIDE_THE_RECIPE
        values = {name: value for name, value in recipe.items() if name in known}
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**{"notes": (), **values, **lists, **opinions, "session": session})


@dataclass(frozen=True)
class Origin:
    """What is known before a take exists: who asked, for what, of which model. Serves all rows of a job."""

    session: str
    tab: str
    request: SpeechRequest
    reference_hash: str = ""
    reference_name: str = ""
    prompt_hash: str = ""
    prompt_name: str = ""
    voice: str = ""
    consent: bool | None = None
    group: str = ""
    batch: tuple[int, ...] = ()
    attempt: int = 0
    replay_of: str = ""
    notes: tuple[str, ...] = ()  # sentences that every take of the job carries
    model_facts: dict[str, Any] = field(default_factory=dict)


def utc_text(moment: datetime | None = None) -> str:
    """A moment (now if none is given) as takes write it: UTC, ISO 8601, milliseconds, "Z"."""
    moment = moment or datetime.now(timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_take_id(now: datetime | None = None) -> str:
    """An id that sorts by time, reads well as a file name and cannot be guessed (64 random bits)."""
    now = now or datetime.now(timezone.utc)
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(8)}"


def is_take_id(value: object) -> bool:
    """Whether ``value`` looks like a take id; nothing with a separator, a dot or a drive letter does."""
    return isinstance(value, str) and TAKE_ID.fullmatch(value) is not None


def hidden_owner(owner: str) -> str:
    """The name under which a visitor's takes are kept. It opens nothing: only who knows ``owner`` gets to it."""
    return hashlib.sha256(readable(owner).encode()).hexdigest()


def seen_by(session: str) -> str | None:
    """What to narrow the store's answers to for a session: the person at this machine sees everything (None)."""
    return None if session == EVERYONE else session


def readable(text: str) -> str:
    """``text`` without lone surrogates, which no file and no database takes."""
    return text.encode("utf-8", "ignore").decode("utf-8")


def mode_of(request: SpeechRequest, control: str) -> str:
    """The mode that a request runs in; ``control`` is what is left of it after cleaning."""
    has_reference = request.reference_wav_path is not None
    has_prompt = request.prompt_wav_path is not None
    if has_reference and has_prompt:
        return "reference+continuation"
    if has_prompt:
        return "continuation"
    if has_reference:
        return "reference"
    return "design" if control else "plain"


def model_facts(model: VoxCPM, request: SpeechRequest | None = None) -> dict[str, Any]:
    """What identifies the model and the adapter that a request is spoken with (without one: that is attached).

    Raises LoRAError when the request's adapter is gone, or does not fit.
    """
    lora = model.lora_of(request or SpeechRequest("")) or {}
    return {
        "model_id": str(model.model_id),
        "generation": str(model.generation),
        "weights_hash": str(model.weights_hash),
        "device": str(model.device),
        "dtype": str(model.dtype),
        "lora_hash": str(lora.get("hash", "")),
        "lora_name": _adapter_name(Path(lora["path"])) if lora else "",
        "lora_strength": float(lora.get("strength", 1.0)),
    }


def _adapter_name(path: Path) -> str:
    """An adapter is called what its folder is called."""
    return path.parent.name if path.suffix in (".safetensors", ".ckpt") else path.name


def record_of(take: Take, origin: Origin) -> TakeRecord:
    """The record of a finished (or broken off) take, not yet stored: no file name, no file hash."""
    now = datetime.now(timezone.utc)
    request, spoken = origin.request, take.spoken
    return TakeRecord(
        id=new_take_id(now),
        created=utc_text(now),
        session=origin.session,
        tab=origin.tab,
        typed_text=request.text,
        typed_control=request.control,
        normalize=bool(request.normalize),
        spoken_text=spoken.text,
        control=spoken.control,
        notes=(*spoken.notes, *origin.notes),
        mode=mode_of(request, spoken.control),
        voice=origin.voice,
        consent=origin.consent,
        reference_hash=origin.reference_hash,
        reference_name=origin.reference_name,
        prompt_hash=origin.prompt_hash,
        prompt_name=origin.prompt_name,
        prompt_text=request.prompt_text or "",
        seed=int(take.seed),
        attempt=int(take.attempt) + origin.attempt,
        cfg_value=float(take.cfg_value),
        inference_timesteps=int(take.inference_timesteps),
        temperature=float(take.temperature),
        min_len=int(request.min_len),
        max_len=int(request.max_len),
        patches_per_token=request.patches_per_token,
        group=origin.group,
        batch=origin.batch,
        replay_of=origin.replay_of,
        versions=dict(library_versions()),
        sample_rate=int(take.sample_rate),
        seconds=len(take.samples) / take.sample_rate,
        patches=int(take.patches),
        ended_by=take.ended_by,
        message=take.message,
        generation_seconds=float(take.generation_seconds),
        first_audio_seconds=take.first_audio_seconds,
        **origin.model_facts,
    )


@lru_cache(maxsize=1)
def library_versions() -> dict[str, str]:
    """Versions of our core, of Python and of the installed packages that can change the sound."""
    versions = {"voxcpm_core": voxcpm_core.__version__, "python": platform.python_version()}
    for package in VERSIONED_PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions

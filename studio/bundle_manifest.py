"""The manifest of a bundle of voices, read as what a stranger wrote: every field has a kind and a size."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from studio.database import StoreError
from studio.takes import readable
from studio.voice import TEXT_CHARACTERS, clean_tags, voice_name
from voxcpm_core.request import MAX_SEED

RECIPE_CHARACTERS = 200_000  # a recipe holds the text that was typed
SHA256 = re.compile(r"[0-9a-f]{64}")


class BundleError(StoreError):
    """A bundle that is not taken in; the sentence says why."""


@dataclass(frozen=True)
class BundledVoice:
    """One voice of a manifest, every field checked."""

    name: str
    file: str
    sha256: str
    description: str
    transcript: str
    seed: int | None
    recipe: dict[str, Any]
    tags: tuple[str, ...]
    consent: bool | None
    clip_choices: dict[str, Any]

    def facts(self) -> dict[str, Any]:
        """What a library saves beside name and sound."""
        names = ("description", "transcript", "seed", "recipe", "tags", "consent", "clip_choices")
        return {name: getattr(self, name) for name in names} | {"source": "bundle"}


def parse_manifest(data: bytes, form: str, version: int, most: int) -> list[BundledVoice]:
    """The voices of a manifest. Raises BundleError."""
    try:
        manifest = json.loads(data.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"The manifest of the bundle is not readable JSON ({str(error)[:120]}).") from error
    if not isinstance(manifest, dict) or manifest.get("format") != form:
        raise BundleError("The manifest is not that of a bundle of voices.")
    if manifest.get("version") != version:
        raise BundleError(
            f"The bundle has version {str(manifest.get('version'))[:20]}; this studio reads {version}. Update it."
        )
    voices = manifest.get("voices")
    if not isinstance(voices, list) or not 1 <= len(voices) <= most:
        raise BundleError(f"The manifest must list 1 to {most} voices.")
    return [_voice(entry, number) for number, entry in enumerate(voices, 1)]


def _voice(entry: Any, number: int) -> BundledVoice:
    if not isinstance(entry, dict):
        raise BundleError(f"Voice {number} of the manifest is not an object.")
    read = _Fields(entry, number)
    sha256, seed = read.text("sha256", 64), read.optional("seed", int)
    if not SHA256.fullmatch(sha256):
        raise BundleError(f"Voice {number} of the manifest has no sha256 of its file.")
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise BundleError(
            f"Voice {number} of the manifest has the seed {str(seed)[:20]}; 0 to {MAX_SEED} are possible."
        )
    try:
        name, tags = voice_name(read.text("name", 1000)), clean_tags(read.texts("tags"))
    except StoreError as error:
        raise BundleError(f"Voice {number} of the manifest: {error}") from error
    return BundledVoice(
        name=name,
        file=read.text("file", 200),
        sha256=sha256,
        description=read.text("description", TEXT_CHARACTERS, ""),
        transcript=read.text("transcript", TEXT_CHARACTERS, ""),
        seed=seed,
        recipe=read.table("recipe"),
        tags=tags,
        consent=read.optional("consent", bool),
        clip_choices=read.table("clip_choices"),
    )


class _Fields:
    """Reads the fields of one voice; a wrong kind or size is a sentence that names it."""

    def __init__(self, entry: dict[str, Any], number: int) -> None:
        self._entry, self._number = entry, number

    def text(self, name: str, most: int, default: str | None = None) -> str:
        value = self._entry.get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        if len(value) > most:
            raise self._wrong(name, f"at most {most} characters long, not {len(value)}")
        return readable(value)

    def texts(self, name: str) -> list[str]:
        value = self._entry.get(name, [])
        if not isinstance(value, list) or len(value) > 1000 or not all(isinstance(text, str) for text in value):
            raise self._wrong(name, "a list of texts")
        return value

    def optional(self, name: str, kind: type) -> Any:
        value = self._entry.get(name)
        if value is not None and type(value) is not kind:
            raise self._wrong(name, f"{'true or false' if kind is bool else 'a whole number'}, or null")
        return value

    def table(self, name: str) -> dict[str, Any]:
        value = self._entry.get(name) or {}
        text = json.dumps(value, ensure_ascii=False)
        if not isinstance(value, dict) or len(text) > RECIPE_CHARACTERS:
            raise self._wrong(name, f"an object of at most {RECIPE_CHARACTERS} characters")
        return json.loads(readable(text))

    def _wrong(self, name: str, wanted: str) -> BundleError:
        return BundleError(f"Voice {self._number} of the manifest: {name} must be {wanted}.")


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")

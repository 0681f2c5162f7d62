"""Voices on the move: a zip with a manifest and one WAV file per voice, and its careful reader.

    manifest.json     {"format": "voxcpm-studio-voices", "version": 1, "voices": [{"name": ..., "file": ..., ...}]}
    voices/<id>.wav   the clips

A bundle may come from a stranger. Nothing in it names a place on this machine: entries are read into memory, checked
and saved under new ids. Either all of its voices are taken in or none.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import uuid
import zipfile
from pathlib import Path
from typing import Any

from studio.bundle_manifest import BundledVoice, BundleError, parse_manifest
from studio.database import StoreError
from studio.voice import MOST_CLIP_BYTES, MOST_CLIP_SECONDS
from studio.voices import Voice, VoiceLibrary
from voxcpm_core import Audio, AudioError
from voxcpm_core.audio import check_audio, load_audio

__all__ = ["BundleError", "export_voices", "import_voices"]

FORMAT, VERSION = "voxcpm-studio-voices", 1
MANIFEST = "manifest.json"
EXPORTED = (
    *("name", "created", "description", "transcript", "seed", "recipe", "tags", "source", "consent", "clip_choices"),
    *("sample_rate", "seconds"),
)
MOST_VOICES = 100
MOST_MANIFEST_BYTES = 4_000_000
MOST_BYTES = 512_000_000  # of all clips together, unpacked
MOST_RATIO = 200  # unpacked over packed; sound stays below 10, and digital silence is refused anyway
MOST_LIST_BYTES = 100_000  # of the zip's own list of entries

_END_BYTES, _LONGEST_END = 22, 22 + 65535  # the mark that ends a zip, without and with its comment


def export_voices(library: VoiceLibrary, voice_ids: list[str], folder: Path, session: str | None = None) -> Path:
    """Write a bundle of these voices into ``folder`` and return its path; its removal is up to the caller.

    Raises StoreError for no voices, an unknown one, a damaged one, or when the disk refuses.
    """
    voices = [library.voice(voice_id, session) for voice_id in dict.fromkeys(voice_ids)]
    if not voices:
        raise StoreError("Choose at least one voice to export.")
    if len(voices) > MOST_VOICES:
        raise StoreError(f"A bundle holds {MOST_VOICES} voices at most, not {len(voices)}. Export them in parts.")
    path = folder / f"voxcpm-voices-{uuid.uuid4().hex[:8]}.zip"
    part = path.with_suffix(".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(part, "w", strict_timestamps=False) as bundle:  # not packed: sound hardly shrinks
            entries = [_entry(voice) for voice in voices]
            manifest = {"format": FORMAT, "version": VERSION, "voices": entries}
            bundle.writestr(MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=2))
            for voice in voices:
                library.audio(voice.id)  # still what was saved
                bundle.write(library.audio_path(voice.id), f"voices/{voice.file_name}")
        os.replace(part, path)
    except OSError as error:
        raise StoreError(f"The bundle could not be written to {folder} ({error}). Free some space.") from error
    finally:
        part.unlink(missing_ok=True)
    return path


def _entry(voice: Voice) -> dict[str, Any]:
    facts = {name: getattr(voice, name) for name in EXPORTED}
    return {**facts, "file": f"voices/{voice.file_name}", "sha256": voice.file_hash}


def import_voices(library: VoiceLibrary, path: Path, session: str) -> list[Voice]:
    """Save every voice of a bundle for a session; names that are taken get a number.

    Raises BundleError (a StoreError) with a sentence for anything that is not a whole, honest bundle; then nothing is
    saved.
    """
    try:
        _refuse_crowd(path)
        with zipfile.ZipFile(path) as bundle:
            entries = _checked_entries(bundle)
            voices = parse_manifest(_read(bundle, entries[MANIFEST], MOST_MANIFEST_BYTES), FORMAT, VERSION, MOST_VOICES)
            _refuse_strays(entries, voices)
            for voice in voices:
                _clip(bundle, entries, voice)  # all are looked at before one is saved
            return _save_all(library, bundle, entries, voices, session)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, RuntimeError, OSError) as error:
        if isinstance(error, StoreError):
            raise
        raise BundleError(f"This is not a readable zip file ({error}). Export the bundle again.") from error


def _refuse_crowd(path: Path) -> None:
    """Refuse a list of entries that would fill the memory before a single one is looked at.

    Reads the end of the file as zipfile does: the last end mark counts, and one of ZIP64 before it would replace it.
    """
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _LONGEST_END))
        tail = file.read()
    at = len(tail) - _END_BYTES if tail[-_END_BYTES:].startswith(b"PK\5\6") else tail.rfind(b"PK\5\6")
    if at < 0 or at + _END_BYTES > len(tail):
        raise BundleError("This is not a zip file, or it is cut off. Export the bundle again.")
    entries, listed = struct.unpack_from("<HI", tail, at + 10)
    if entries > MOST_VOICES + 2 or listed > MOST_LIST_BYTES or tail[max(0, at - 20) : at].startswith(b"PK\6\7"):
        raise BundleError(f"The bundle has too many entries; {MOST_VOICES} voices and a manifest are the most.")


def _checked_entries(bundle: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The entries by name, judged by what the zip says of them. What is really in them is counted while reading."""
    infos = bundle.infolist()
    if len(infos) > MOST_VOICES + 2:
        raise BundleError(f"The bundle has {len(infos)} entries; {MOST_VOICES} voices and a manifest are the most.")
    entries: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        if info.is_dir() and info.filename == "voices/":
            continue
        _refuse_odd(info)
        if info.filename in entries:
            raise BundleError(f"The bundle has two entries called {info.filename[:80]!r}.")
        entries[info.filename] = info
    if MANIFEST not in entries:
        raise BundleError(f"There is no {MANIFEST} in this zip, so it is no bundle of voices.")
    total = sum(info.file_size for info in entries.values())
    if total > MOST_BYTES:
        raise BundleError(f"The bundle would unpack to {total // 10**6} MB; {MOST_BYTES // 10**6} MB is the most.")
    return entries


def _refuse_odd(info: zipfile.ZipInfo) -> None:
    name = info.filename
    parts = name.split("/")
    if name != info.orig_filename or len(name) > 200 or not name.isprintable() or "\\" in name or ":" in name:
        raise BundleError(f"The bundle has an entry with an unusable name: {name[:80]!r}.")
    if name.startswith("/") or ".." in parts or "" in parts:
        raise BundleError(f"The bundle has an entry that points outside of it: {name[:80]!r}.")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise BundleError(f"The entry {name!r} of the bundle is a link or no file.")
    if info.flag_bits & 1:
        raise BundleError(f"The entry {name!r} of the bundle is encrypted. Export it without a password.")
    if info.file_size > MOST_RATIO * max(info.compress_size, 1) + 4096:
        raise BundleError(
            f"The entry {name!r} of the bundle is packed more tightly than sound can be. It is not opened."
        )


def _refuse_strays(entries: dict[str, zipfile.ZipInfo], voices: list[BundledVoice]) -> None:
    files = [voice.file for voice in voices]
    missing = next((name for name in files if name not in entries or name == MANIFEST), None)
    if missing is not None:
        raise BundleError(f"The manifest names {missing[:80]!r}, which is not in the bundle.")
    stray = next((name for name in entries if name not in files and name != MANIFEST), None)
    if stray is not None:
        raise BundleError(f"The bundle holds {stray[:80]!r}, which its manifest does not name.")
    if len(set(files)) < len(files):
        raise BundleError("Two voices of the manifest share one file.")


def _read(bundle: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    """An entry's bytes, never more than ``most`` whatever its header says."""
    if info.file_size > most:
        raise BundleError(f"The entry {info.filename!r} has {info.file_size} bytes; {most} is the most.")
    with bundle.open(info) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise BundleError(f"The entry {info.filename!r} is larger than it says. It is not opened.")
    return data


def _clip(bundle: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo], voice: BundledVoice) -> Audio:
    data = _read(bundle, entries[voice.file], MOST_CLIP_BYTES)
    if hashlib.sha256(data).hexdigest() != voice.sha256:
        raise BundleError(
            f"The sound of the voice {voice.name} is not what the manifest says. Export the bundle again."
        )
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise BundleError(f"The file of the voice {voice.name} is not a WAV file.")
    try:
        audio = load_audio(data, max_seconds=MOST_CLIP_SECONDS)
        check_audio(audio, "clip")
    except AudioError as error:
        raise BundleError(f"The voice {voice.name} cannot be used. {error}") from error
    return audio


def _save_all(
    library: VoiceLibrary,
    bundle: zipfile.ZipFile,
    entries: dict[str, zipfile.ZipInfo],
    voices: list[BundledVoice],
    session: str,
) -> list[Voice]:
    saved: list[Voice] = []
    try:
        for voice in voices:
            audio = _clip(bundle, entries, voice)
            saved.append(library.save_clip(audio, voice.name, session, number_taken_names=True, **voice.facts()))
    except BaseException:
        for voice in saved:
            library.forget(voice.id)
        raise
    return saved

"""Named voices: a clip with what is known about it, kept so that every later line can be spoken with it.

    <data folder>/voices/<id>.wav        the clip, written once
    <data folder>/voices/cache/          what a model made of it (studio.voice_cache); may be deleted at any time

A voice's sound and facts are written once; its name and tags may change.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import sqlite3
from dataclasses import asdict, fields, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from studio.database import StoreError
from studio.files import exact_wav, read_pcm, remove, write_once
from studio.search import words_of
from studio.store import KEPT, UNDO_DAYS, Store
from studio.takes import TakeRecord, seen_by, utc_text
from studio.trimming import trim_to_pause
from studio.voice import (
    BESIDE_THE_FACTS,
    COLOURS,
    MOST_CLIP_BYTES,
    MOST_CLIP_SECONDS,
    NAME_CHARACTERS,
    Voice,
    clean_tags,
    clean_text,
    is_voice_id,
    voice_name,
)
from voxcpm_core import Audio, AudioError
from voxcpm_core.audio import MAX_REFERENCE_SECONDS, check_audio, content_hash, load_audio

__all__ = ["Voice", "VoiceLibrary"]

logger = logging.getLogger(__name__)

LONGEST_SECONDS = 30.0  # of a voice made from a take


class VoiceLibrary:
    """Every method may be called from any thread.

    ``session=None`` means the one user of this machine, who sees everything; a session's name narrows every
    question to its own voices. Raises StoreError with a sentence.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.folder = store.data_dir / "voices"
        self.cache_folder = self.folder / "cache"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"Voices cannot be kept in {self.folder} ({error}).") from error
        self._clean_up()

    # ---- new voices

    def save_from_take(self, take_id: str, name: str, session: str) -> Voice:
        """A take's sound, at most LONGEST_SECONDS cut at a pause, as a voice with description, transcript and seed."""
        take = self.store.take(take_id, seen_by(session))
        samples, rate = read_pcm(self.store.audio_path(take.id))
        kept = trim_to_pause(samples, rate, LONGEST_SECONDS)
        return self.save_clip(
            Audio(kept, rate),
            name,
            session,
            transcript=take.spoken_text if len(kept) == len(samples) and not take.is_partial else "",
            description=take.control,
            seed=take.seed,
            recipe=take.recipe(),
            # an adapter may be somebody's voice
            source="design" if take.mode in ("plain", "design") and not take.lora_name else "take",
            consent=self._consent_of(take),
        )

    def _consent_of(self, take: TakeRecord) -> bool | None:
        """What was said when the take was cloned; else what the voice that speaks in it carries, deleted or not."""
        if take.consent is not None:
            return take.consent
        found = self._select("id = ?", [take.voice], None)
        return found[0].consent if found else None

    def save_clip(
        self,
        audio: Audio,
        name: str,
        session: str,
        *,
        transcript: str = "",
        description: str = "",
        seed: int | None = None,
        recipe: dict[str, Any] | None = None,
        tags: tuple[str, ...] = (),
        source: str = "clip",
        consent: bool | None = None,
        clip_choices: dict[str, Any] | None = None,
        number_taken_names: bool = False,
    ) -> Voice:
        """A clip as a voice, sample for sample.

        Raises AudioError for a clip without any sound in it, StoreError for a bad name or one that is taken (with
        ``number_taken_names`` it becomes "Anna 2").
        """
        check_audio(audio, "voice")
        data = exact_wav(audio)
        if audio.seconds > MOST_CLIP_SECONDS or len(data) > MOST_CLIP_BYTES:
            raise StoreError(
                f"The clip is {audio.seconds:.0f} s long, too long for a voice: cut out the best 5 to 30 s."
            )
        voice_id = f"voice-{secrets.token_hex(8)}"
        voice = Voice(
            id=voice_id,
            name=voice_name(name),
            created=utc_text(),
            session=session,
            description=clean_text(description, "description"),
            transcript=clean_text(transcript, "transcript"),
            seed=seed,
            recipe=recipe or {},
            tags=clean_tags(tags),
            file_name=f"{voice_id}.wav",
            file_hash=hashlib.sha256(data).hexdigest(),
            audio_hash=content_hash(audio),
            sample_rate=audio.sample_rate,
            seconds=audio.seconds,
            source=source,
            consent=consent,
            clip_choices=clip_choices or {},
        )
        return self._save(voice, data, number_taken_names)

    def _save(self, voice: Voice, data: bytes, number_taken_names: bool) -> Voice:
        try:
            with self.store.database.writing() as db:
                if number_taken_names:
                    voice = replace(voice, name=free_name(db, voice.name, voice.session))
                _refuse_taken_name(db, voice.name, voice.session)
                count = db.execute("SELECT count(*) FROM voices WHERE session = ?", (voice.session,)).fetchone()[0]
                voice = replace(voice, colour=COLOURS[count % len(COLOURS)])
                _insert(db, voice)
                write_once(self.folder / voice.file_name, data)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"The voice {voice.name} could not be saved ({error}). Free some space, or close what else uses "
                f"{self.store.data_dir}, and try again."
            ) from error
        return voice

    # ---- questions

    def voice(self, voice_id: str, session: str | None = None) -> Voice:
        """One voice. Raises StoreError when there is none (or it is another session's, or deleted)."""
        if is_voice_id(voice_id):
            found = self._select("id = ? AND deleted = ''", [voice_id], session)
            if found:
                return found[0]
        raise StoreError(f"There is no voice {voice_id!r} in this studio. It may have been deleted.")

    def voices(self, query: str = "", tag: str = "", session: str | None = None) -> list[Voice]:
        """Voices by name; every word of ``query`` occurs in name, description, transcript or tags."""
        found = self._select("deleted = ''", [], session)
        wanted = [word.casefold() for word in words_of(query)]
        kept = [
            voice
            for voice in found
            if (not tag or tag in voice.tags) and all(word in _searched(voice) for word in wanted)
        ]
        return sorted(kept, key=lambda voice: (voice.name.casefold(), voice.id))

    def tags(self, session: str | None = None) -> list[str]:
        """All tags in use, in order."""
        return sorted({tag for voice in self.voices(session=session) for tag in voice.tags}, key=str.casefold)

    def audio_path(self, voice_id: str, session: str | None = None) -> Path:
        """The voice's WAV file. Raises StoreError when the voice or its file is gone."""
        voice = self.voice(voice_id, session)
        path = self.folder / f"{voice.id}.wav"
        if not path.is_file():
            raise StoreError(f"The sound of the voice {voice.name} is missing: {path} is no longer there.")
        return path

    def audio(self, voice_id: str, session: str | None = None) -> Audio:
        """The voice's clip. Raises StoreError when its file is gone, damaged or changed."""
        voice, path = self.voice(voice_id, session), self.audio_path(voice_id, session)
        return read_voice(path, voice.audio_hash, voice.name)

    # ---- changes

    def rename(self, voice_id: str, name: str, session: str | None = None) -> Voice:
        """Raises StoreError for an empty, long or taken name."""
        voice, name = self.voice(voice_id, session), voice_name(name)
        with self.store.database.changing("The new name") as db:
            _refuse_taken_name(db, name, voice.session, but=voice.id)
            db.execute("UPDATE voices SET name = ? WHERE id = ?", (name, voice.id))
        return self.voice(voice.id)

    def tag(self, voice_id: str, tags: tuple[str, ...] | list[str], session: str | None = None) -> Voice:
        """Give a voice these tags in place of the ones that it has."""
        voice, tags = self.voice(voice_id, session), clean_tags(tags)
        with self.store.database.changing("The new tags") as db:
            db.execute("UPDATE voices SET tags = ? WHERE id = ?", (json.dumps(tags, ensure_ascii=False), voice.id))
        return self.voice(voice.id)

    def delete(self, voice_id: str, session: str | None = None) -> None:
        """Take a voice out of every list.

        For UNDO_DAYS :meth:`undo_delete` brings it back; its sound goes with the first start after that.
        """
        voice = self.voice(voice_id, session)
        with self.store.database.changing("The deletion") as db:
            db.execute("UPDATE voices SET deleted = ? WHERE id = ?", (utc_text(), voice.id))

    def forget(self, voice_id: str) -> None:
        """Remove a voice and its sound for good, at once."""
        voice = self.voice(voice_id)
        with self.store.database.changing("The deletion") as db:
            db.execute("DELETE FROM voices WHERE id = ?", (voice.id,))
        for path in [self.folder / voice.file_name, *self.cache_folder.glob(f"{voice.id}-*")]:
            remove(path)

    def undo_delete(self, voice_id: str, session: str | None = None) -> Voice:
        """Bring a deleted voice back; when its name was taken meanwhile it gets a number."""
        found = self._select("id = ?", [voice_id], session) if is_voice_id(voice_id) else []
        if not found:
            raise StoreError(f"There is no voice {voice_id!r} in this studio. It is deleted for good.")
        with self.store.database.changing("The undoing") as db:
            name = free_name(db, found[0].name, found[0].session, but=voice_id)
            db.execute("UPDATE voices SET deleted = '', name = ? WHERE id = ?", (name, voice_id))
        return self.voice(voice_id, session)

    # ---- inside

    def _select(self, condition: str, values: list, session: str | None) -> list[Voice]:
        owner, owned = ("", []) if session is None else (" AND session = ?", [session])
        sql = f"SELECT facts, session, name, tags FROM voices WHERE {condition}{owner} ORDER BY number"
        return [_voice(*row) for row in self.store.database.read(sql, [*values, *owned])]

    def _clean_up(self) -> None:
        """Delete for good what was deleted long ago, and the files that no voice owns."""
        before = utc_text(datetime.now(timezone.utc) - timedelta(days=UNDO_DAYS))
        with self.store.database.changing("The clean-up") as db:
            if self.store.is_new:  # the old database was lost or moved away, and its voices must not go, too
                self._keep_strays(_known_ids(db))
            db.execute("DELETE FROM voices WHERE deleted != '' AND deleted < ?", (before,))
            known = _known_ids(db)
            for path in [*self.folder.glob("voice-*"), *self.cache_folder.glob("voice-*")]:
                voice_id = path.name[: len("voice-") + 16]
                if is_voice_id(voice_id) and (path.suffix == ".part" or voice_id not in known):
                    logger.info("removing %s, left over from a voice that is gone", path.name)
                    remove(path)

    def _keep_strays(self, known: set[str]) -> None:
        for path in [path for path in self.folder.glob("voice-*.wav") if path.stem not in known]:
            path.rename(path.with_name(KEPT + path.name))
            logger.warning("%s has no row in the new database; it is kept as %s%s", path.name, KEPT, path.name)


def read_voice(path: Path, audio_hash: str, name: str) -> Audio:
    """A voice's file, which must still hold the sound that it was saved with."""
    try:
        audio = load_audio(path, max_seconds=MAX_REFERENCE_SECONDS)
    except AudioError as error:
        raise StoreError(f"The sound of the voice {name} is damaged: {error}") from error
    if content_hash(audio) != audio_hash:
        raise StoreError(f"The sound of the voice {name} was changed: {path} no longer holds what was saved.")
    return audio


def _known_ids(db: sqlite3.Connection) -> set[str]:
    return {voice_id for (voice_id,) in db.execute("SELECT id FROM voices")}


def free_name(db: sqlite3.Connection, name: str, session: str, but: str = "") -> str:
    """``name``, or with a number behind it ("Anna 2") when a voice of this session has it."""
    number, free = 1, name
    while _is_taken(db, free, session, but):
        number += 1
        free = f"{name[: NAME_CHARACTERS - 8]} {number}"
    return free


def _refuse_taken_name(db: sqlite3.Connection, name: str, session: str, but: str = "") -> None:
    if _is_taken(db, name, session, but):
        raise StoreError(f"There is already a voice called “{name}”. Choose another name.")


def _is_taken(db: sqlite3.Connection, name: str, session: str, but: str) -> bool:
    sql = "SELECT name FROM voices WHERE session = ? AND deleted = '' AND id != ?"
    return any(found.casefold() == name.casefold() for (found,) in db.execute(sql, (session, but)))


def _insert(db: sqlite3.Connection, voice: Voice) -> None:
    facts = {name: value for name, value in asdict(voice).items() if name not in BESIDE_THE_FACTS}
    db.execute(
        "INSERT INTO voices (id, created, session, name, tags, facts) VALUES (?, ?, ?, ?, ?, ?)",
        (
            voice.id,
            voice.created,
            voice.session,
            voice.name,
            json.dumps(voice.tags, ensure_ascii=False),
            json.dumps(facts, ensure_ascii=False),
        ),
    )


def _voice(facts: str, session: str, name: str, tags: str) -> Voice:
    known = {f.name for f in fields(Voice)} - BESIDE_THE_FACTS
    values = {key: value for key, value in json.loads(facts).items() if key in known}
    return Voice(**values, session=session, name=name, tags=tuple(json.loads(tags)))


def _searched(voice: Voice) -> str:
    return "\n".join([voice.name, voice.description, voice.transcript, *voice.tags]).casefold()

"""A whole project as one zip: to keep, to work on elsewhere, to carry off a machine that forgets.

The zip may come from a stranger: see studio/strict_zip.py and parcel_manifest.py. Its takes come in under new ids, as
takes of whoever imports it; either all of the project is taken in or nothing.
"""

from __future__ import annotations

import hashlib
import io
import os
import uuid
import wave
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from studio.book import parcel_manifest, rows
from studio.book.errors import ImportingError
from studio.book.journal import Change
from studio.book.library import LONGEST_TITLE, Library
from studio.book.parcel_manifest import Parcel, StoredAnchor, StoredChapter, StoredSegment, StoredTake
from studio.book.project import Book, BookTake, CastMember, Chapter, Project, Segment
from studio.checks import Check
from studio.database import StoreError
from studio.file_names import safe_name
from studio.files import remove
from studio.kept_clips import KeptClips
from studio.strict_zip import StrictZip, ZipLimits
from studio.takes import TakeRecord, new_take_id, readable, utc_text
from voxcpm_core import AudioError
from voxcpm_core.audio import content_hash, load_audio

LIMITS = ZipLimits("The project", entries=60_000, bytes=40 * 10**9)
TAKE_BYTES = 96 * 2**20
CLIP_BYTES = 96 * 2**20
RATES = (8_000, 192_000)

Progress = Callable[[float], None]  # share done


def is_parcel(path: Path) -> bool:
    """Whether a file is the zip of a project, told by its first bytes."""
    try:
        with open(path, "rb") as file:
            return parcel_manifest.MIMETYPE in file.read(200)
    except OSError:
        return False


# ------------------------------------------------------------------------------------------------- packing


def pack(
    library: Library, project: int, folder: Path, session: str | None = None, progress: Progress = lambda share: None
) -> Path:
    """Write a project's zip into ``folder`` and return its path.

    Takes whose file is gone are left out. Raises BookError for another session's book, StoreError for a full disk.
    """
    parcel = _parcel(library, project, session)
    path = folder / f"{safe_name(parcel.title)}.voxcpm-book.zip"
    part = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(part, "w", strict_timestamps=False) as archive:  # sound hardly shrinks: it is not packed
            archive.writestr("mimetype", parcel_manifest.MIMETYPE)
            archive.writestr("manifest.json", parcel_manifest.written(parcel), zipfile.ZIP_DEFLATED)
            for digest in sorted(parcel.clips | parcel.recipe_clips):
                archive.write(_clip_path(library, digest), f"clips/{digest}.wav")
            for number, take in enumerate(parcel.takes, 1):
                archive.write(library.store.audio_path(take.recipe.id), f"takes/{take.recipe.id}.wav")
                progress(number / len(parcel.takes))
        os.replace(part, path)
    except OSError as error:
        raise StoreError(f"The project could not be written to {folder} ({error}). Free some space.") from error
    finally:
        part.unlink(missing_ok=True)
    return path


def _parcel(library: Library, project: int, session: str | None) -> Parcel:
    book = library.book(project, session)
    records = _records(library, [take.take for takes in book.takes.values() for take in takes])
    chapters = tuple(_stored_chapter(book, chapter, records) for chapter in book.chapters)
    there = {take.recipe.id for chapter in chapters for segment in chapter.segments for take in segment.takes}
    sql = "SELECT speaker, round, take, clip, words FROM book_anchors WHERE project = ?"
    anchors = [StoredAnchor(*row) for row in library.database.read(sql, [project])]
    return Parcel(
        title=book.project.title,
        author=book.project.author,
        language=book.project.language,
        source=book.project.source,
        words_in=book.project.words_in,
        settings=book.project.settings,
        chapters=chapters,
        cast=tuple(replace(member, voice="") for member in book.cast.values()),
        words=book.dictionary.entries,
        anchors=tuple(anchor for anchor in anchors if anchor.take in there),
    )


def _records(library: Library, takes: list[str]) -> dict[str, TakeRecord]:
    """The records of takes whose sound is there. Clips that are gone are no longer named."""
    found = {}
    for start in range(0, len(takes), 500):
        some = takes[start : start + 500]
        for record in library.store.select(f"takes.id IN ({', '.join('?' * len(some))})", some, None):
            if (library.store.takes_dir / f"{record.id}.wav").is_file():
                clips = {name: getattr(record, name) for name in ("reference_hash", "prompt_hash")}
                gone = {name: "" for name, digest in clips.items() if digest and not _has_clip(library, digest)}
                found[record.id] = replace(record, voice="", replay_of="", **gone)
    return found


def _stored_chapter(book: Book, chapter: Chapter, records: dict[str, TakeRecord]) -> StoredChapter:
    segments = tuple(_stored_segment(book, segment, records) for segment in chapter.segments)
    return StoredChapter(chapter.title, chapter.kind, chapter.on, segments)


def _stored_segment(book: Book, segment: Segment, records: dict[str, TakeRecord]) -> StoredSegment:
    takes = []
    for take in book.takes.get(segment.id, ()):
        if take.take in records:
            record = records[take.take]
            facts = {name: value for name, value in vars(take).items() if name not in ("take", "segment", "faults")}
            faults = tuple(Check.from_dict(fault) for fault in take.faults)
            takes.append(StoredTake(recipe=record, sha256=record.file_hash, faults=faults, **facts))
    own = {name: value for name, value in vars(segment).items() if name in StoredSegment.__dataclass_fields__}
    chosen = segment.chosen if any(take.recipe.id == segment.chosen for take in takes) else ""
    return StoredSegment(**own | {"chosen": chosen, "takes": tuple(takes)})


def _clip_path(library: Library, digest: str) -> Path:
    """A clip of a cast, or one that takes were made with."""
    return next((path for clips in _shelves(library) if (path := clips.path(digest)).is_file()), Path(digest))


def _has_clip(library: Library, digest: str) -> bool:
    return _clip_path(library, digest).is_file()


def _shelves(library: Library) -> tuple[KeptClips, KeptClips]:
    return library.clips, library.store.clips


# ------------------------------------------------------------------------------------------------- unpacking


def unpack(
    library: Library, path: Path, session: str, title: str = "", progress: Progress = lambda share: None
) -> Project:
    """Take a project in for a session; a title that is taken gets a number.

    Raises ImportingError with a sentence for anything that is not a whole, honest project, and StoreError when the disk
    refuses; then nothing is left of it.
    """
    with StrictZip(path, LIMITS, ImportingError) as archive:
        if archive.read("mimetype", 200) != parcel_manifest.MIMETYPE:
            raise ImportingError("This zip is not a project of the studio.")
        parcel = parcel_manifest.read(archive.read("manifest.json", parcel_manifest.MOST_BYTES))
        _refuse_strays(archive, parcel)
        saved: dict[str, str] = {}  # id in the zip -> id here
        try:
            takes = parcel.takes
            for number, take in enumerate(takes, 1):
                saved[take.recipe.id] = _save_take(library, archive, take, session)
                progress(number / len(takes))
            for digest in parcel.clips | parcel.recipe_clips:
                _keep_clip(library, archive, parcel, digest)
            project = _insert(library, parcel, saved, session, title or parcel.title)
        except BaseException:
            _forget(library, saved.values())
            raise
    return library.project(project)


def _refuse_strays(archive: StrictZip, parcel: Parcel) -> None:
    wanted = {f"takes/{take.recipe.id}.wav" for take in parcel.takes}
    wanted |= {f"clips/{digest}.wav" for digest in parcel.clips | parcel.recipe_clips} | {"mimetype", "manifest.json"}
    missing = next((name for name in sorted(wanted) if name not in archive.entries), None)
    if missing is not None:
        raise ImportingError(f"The manifest names {missing!r}, which is not in the project.")
    stray = next((name for name in archive.entries if name not in wanted), None)
    if stray is not None:
        raise ImportingError(f"The project holds {stray[:80]!r}, which its manifest does not name.")


def _keep_clip(library: Library, archive: StrictZip, parcel: Parcel, digest: str) -> None:
    try:
        audio = load_audio(archive.read(f"clips/{digest}.wav", CLIP_BYTES), max_seconds=600)
    except AudioError as error:
        raise ImportingError(f"A clip of the project cannot be read. {error}") from error
    if content_hash(audio) != digest:
        raise ImportingError("A clip of the project is not what its name says. Export the project again.")
    if digest in parcel.clips:
        library.clips.keep(audio)
    if digest in parcel.recipe_clips:
        library.store.clips.keep(audio)


def _save_take(library: Library, archive: StrictZip, take: StoredTake, session: str) -> str:
    recipe = take.recipe
    data = archive.read(f"takes/{recipe.id}.wav", TAKE_BYTES)
    if hashlib.sha256(data).hexdigest() != take.sha256:
        raise ImportingError(f"The sound of the take {recipe.id} is not what the manifest says. Export it again.")
    samples, rate = _pcm(data, recipe.id)
    own = {"sample_rate": rate, "seconds": len(samples) / rate, "file_name": "", "file_hash": "", "audio_hash": ""}
    record = replace(recipe, id=new_take_id(), session=session, voice="", replay_of="", **own)
    return library.store.save_take(record, samples).id


def _pcm(data: bytes, name: str) -> tuple[np.ndarray, int]:
    """A take's file as the store writes it: 16-bit mono PCM -> float32 [n] and its rate."""
    try:
        with wave.open(io.BytesIO(data)) as file:
            rate, shape = file.getframerate(), (file.getnchannels(), file.getsampwidth())
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    except (wave.Error, EOFError, ValueError) as error:
        raise ImportingError(f"The sound of the take {name} cannot be read ({error}).") from error
    if shape != (1, 2) or not RATES[0] <= rate <= RATES[1] or not len(samples):
        raise ImportingError(f"The sound of the take {name} is not 16-bit mono sound of {RATES[0]} to {RATES[1]} Hz.")
    return samples.astype(np.float32) / 32768, rate


def _insert(library: Library, parcel: Parcel, saved: dict[str, str], session: str, title: str) -> int:
    texts = (library.numbered_title(title, session), parcel.author, parcel.language, parcel.source, session, utc_text())
    values = (*map(readable, texts), parcel.words_in, parcel.settings.as_json())
    columns = rows.PROJECT.removeprefix("id, ")
    with library.database.changing("The book") as db:
        project = int(
            db.execute(f"INSERT INTO book_projects ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values).lastrowid or 0
        )
        change = Change(db)  # never noted: there is nothing before it to go back to
        for place, chapter in enumerate(parcel.chapters, 1):
            _insert_chapter(change, project, float(place), chapter, saved)
        for member in parcel.cast:
            change.add("book_cast", rows.member_row(project, _clean(member)))
        for entry in parcel.words:
            row = {"project": project, "word": " ".join(entry.word.split()), "say": entry.say.strip()}
            change.put("book_words", {**row, "match_case": int(entry.match_case)})
        for anchor in parcel.anchors:
            values = (project, anchor.speaker, anchor.round, saved[anchor.take], anchor.clip, anchor.words)
            db.execute("INSERT OR IGNORE INTO book_anchors VALUES (?, ?, ?, ?, ?, ?)", values)
    return project


def _clean(member: CastMember) -> CastMember:
    return replace(member, speaker=" ".join(member.speaker.split()), voice="", control=member.control.strip())


def _insert_chapter(change: Change, project: int, place: float, chapter: StoredChapter, saved: dict[str, str]) -> None:
    title = chapter.title[:LONGEST_TITLE]
    number = change.add("book_chapters", rows.chapter_row(project, place, title, chapter.kind, chapter.on))
    for order, segment in enumerate(chapter.segments, 1):
        row = rows.segment_row(
            number, float(order), segment.text, segment.kind, segment.on, segment.paragraph, segment.speaker
        )
        own = {name: getattr(segment, name) for name in ("control", "pause_ms", "note", "review")}
        own |= {"locked": int(segment.locked), "chosen": saved.get(segment.chosen, "")}
        segment_id = change.add("book_segments", {**row, **own})
        for take in segment.takes:
            _insert_take(change, segment_id, saved[take.recipe.id], take)


def _insert_take(change: Change, segment: int, take_id: str, take: StoredTake) -> None:
    names = ("key", "number", "verdict", "seconds", "reason", "loudness", "likeness")
    faults = tuple(fault.as_dict() for fault in take.faults)
    noted = BookTake(take=take_id, segment=segment, faults=faults, **{name: getattr(take, name) for name in names})
    marks = ", ".join("?" * len(rows.TAKE.split(", ")))
    change.db.execute(f"INSERT INTO book_takes ({rows.TAKE}) VALUES ({marks})", rows.take_row(noted))


def _forget(library: Library, takes: Iterable[str]) -> None:
    """Takes of a project that was not taken in go at once, with their sound."""
    for take in takes:
        with library.database.changing("The deletion") as db:
            db.execute("DELETE FROM takes WHERE id = ?", (take,))
        remove(library.store.takes_dir / f"{take}.wav")

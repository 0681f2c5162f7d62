"""What `python -m studio` does: import, render and export without a page. The same code that the page uses.

Each command returns the object that is printed and the exit code; ``say`` takes sentences for the person who waits.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from studio.book.casting import cast_clip, cast_voice
from studio.book.errors import BookError
from studio.book.importing import read_book
from studio.book.jobs import JobStatus, RenderQueue
from studio.book.library import Library
from studio.book.parcel import is_parcel, pack, unpack
from studio.book.plan import Order
from studio.book.project import Book, Chapter, Settings
from studio.book.script import Limits
from studio.layout import Word
from studio.store import Store
from studio.synthesizer import Synthesizer
from studio.take_checks import Recogniser
from studio.takes import EVERYONE
from studio.voices import VoiceLibrary
from voxcpm_core.audio import Audio
from voxcpm_core.errors import AudioError, EngineError

Say = Callable[[str], None]
Result = tuple[dict[str, Any], int]
SAY_SECONDS = 2.0  # how often progress is told


def import_book(options: argparse.Namespace, store: Store, say: Say) -> Result:
    """Make a project from a file, or take in a project's zip. Refused when the project is there already."""
    if is_parcel(Path(options.book)):
        return _take_in(options, store)
    settings = Settings(Limits(options.max_characters, options.max_seconds), seed=options.seed)
    settings.check()
    manuscript = read_book(options.book)
    library = Library(store)
    project = library.create(manuscript, options.project, settings, source=Path(options.book).name)
    for note in manuscript.notes:
        say(note)
    book = library.book(project.id)
    left_out = [{"title": title, "kind": kind, "words": words} for title, kind, words in manuscript.left_out()]
    return {
        "project": project.title,
        "title": manuscript.title,
        "author": manuscript.author,
        "language": manuscript.language,
        "chapters": [_chapter_facts(chapter) for chapter in book.chapters],
        "segments": len(book.spoken),
        "words": sum(chapter.words for chapter in book.chapters),
        "left_out": left_out,
    }, 0


def _take_in(options: argparse.Namespace, store: Store) -> Result:
    library = Library(store)
    if any(known.title == " ".join(options.project.split()) for known in library.projects()):
        raise BookError(f"There is a book called “{options.project}” already. Choose another title with --project.")
    book = library.book(unpack(library, Path(options.book), EVERYONE, options.project).id)
    return {
        "project": book.project.title,
        "title": book.project.title,
        "author": book.project.author,
        "language": book.project.language,
        "chapters": [_chapter_facts(chapter) for chapter in book.chapters],
        "segments": len(book.spoken),
        "words": sum(chapter.words for chapter in book.chapters),
        "takes": sum(map(len, book.takes.values())),
        "left_out": [],
    }, 0


def _chapter_facts(chapter: Chapter) -> dict[str, Any]:
    return {
        "title": chapter.title,
        "kind": chapter.kind,
        "on": chapter.on,
        "segments": len(chapter.spoken),
        "words": chapter.words,
    }


def render_book(options: argparse.Namespace, store: Store, say: Say) -> Result:
    """Make what is missing or stale. What an interrupted run has made is kept."""
    library, voices = Library(store), VoiceLibrary(store)
    project = library.project_named(options.project)
    if options.voice:
        _cast_narrator(library, voices, project.id, options.voice)
    chapters = _chosen_chapters(library.book(project.id), options.chapter or [])
    order = Order(options.takes, options.retries, options.rows, chapters)
    order.check()
    recognise = recogniser(options.recogniser, library.project(project.id).language) if options.recogniser else None
    synthesizer = Synthesizer(store, lambda progress: load_model(options, progress), voices, recognise)
    queue = RenderQueue(library, synthesizer, only=project.id)
    try:
        synthesizer.load()
        status = synthesizer.wait()
        if status.state == "failed":
            raise EngineError(status.message)
        if status.notice:
            say(status.notice)
        job = _job_for(queue, project.id, order)
        queue.start()
        _follow(queue, job, say)
        return _report(library, queue, project.id, job, say)
    finally:
        queue.close()
        synthesizer.close()


def load_model(options: argparse.Namespace, progress: Any) -> Any:
    from voxcpm_core import VoxCPM
    from voxcpm_core.device import default_model, limit_threads

    name = default_model(options.device) if options.model == "auto" else options.model
    model = VoxCPM.from_pretrained(
        name,
        device=options.device,
        local_files_only=options.local_files_only,
        on_progress=progress,
        max_rows=options.rows,
    )
    limit_threads(model.model.config.lm.hidden_size, model.model.device.type)
    return model


def _cast_narrator(library: Library, voices: VoiceLibrary, project: int, wanted: str) -> None:
    """The voice with this id or name, or an audio file."""
    found = [voice for voice in voices.voices() if wanted in (voice.id, voice.name)]
    if found:
        cast_voice(library, voices, project, "", found[0].id)
    elif Path(wanted).is_file():
        cast_clip(library, project, "", wanted)
    else:
        known = ", ".join(voice.name for voice in voices.voices()[:10]) or "none yet"
        raise BookError(f"There is no voice and no audio file called “{wanted}”. Voices: {known}.")


def _chosen_chapters(book: Book, numbers: list[int]) -> tuple[int, ...]:
    for number in numbers:
        if number not in range(1, len(book.chapters) + 1):
            raise BookError(f"There is no chapter {number}; the book has {len(book.chapters)}.")
    return tuple(book.chapters[number - 1].id for number in numbers)


def _job_for(queue: RenderQueue, project: int, order: Order) -> int:
    """The job of an earlier run with the same order that was not finished, or a new one."""
    for status in queue.jobs(project):
        if status.order == order and status.state in ("queued", "running", "paused"):
            queue.resume(status.id)
            return status.id
    return queue.submit(project, order)


def _follow(queue: RenderQueue, job: int, say: Say) -> None:
    """Tell how far a job is until it has ended."""
    said = ""
    while True:
        status = queue.wait(job, SAY_SECONDS)
        line = progress_line(status)
        if line != said:
            say(line)
            said = line
        if status.state not in ("queued", "running"):
            return
        if queue.waits_for:
            raise BookError(queue.waits_for)


def progress_line(status: JobStatus) -> str:
    tally = status.tally
    line = f"{status.done} of {tally.total} segments"
    if tally.takes_made:
        line += f", {tally.seconds_made:.0f} s of audio, {tally.speed:.2f} x real time"
    if tally.eta_seconds is not None and status.state == "running":
        minutes, seconds = divmod(round(tally.eta_seconds), 60)
        line += f", {minutes}:{seconds:02d} min left"
    return line


def _report(library: Library, queue: RenderQueue, project: int, job: int, say: Say) -> Result:
    status, book = queue.status(job), library.book(project)
    ready = [segment for segment in book.spoken if book.state(segment) == "ready"]
    kept = [take for takes in book.takes.values() for take in takes]
    texts = {segment.id: segment.text for segment in book.spoken}
    for segment, message in status.failures.items():
        say(f"Not made: “{texts.get(segment, '')[:60]}”: {message}")
    if status.message:
        say(status.message)
    return {
        "project": book.project.title,
        "state": status.state,
        "segments": len(book.spoken),
        "ready": len(ready),
        "takes_made": status.tally.takes_made,
        "takes_kept": len(kept),
        "red": sum(1 for segment in ready if (take := book.current(segment)) and take.verdict == "fail"),
        "seconds": round(sum(take.seconds for take in kept), 2),
        "speed": round(status.tally.speed, 3),
        "failed": [
            {"segment": segment, "text": texts.get(segment, ""), "message": message}
            for segment, message in status.failures.items()
        ],
    }, 0 if status.state == "done" else 1


def export_book(options: argparse.Namespace, store: Store, say: Say) -> Result:
    """Finished files and their report. A report that fails is told; the files are there all the same."""
    from studio.book.export import export_project
    from studio.delivery import Order as Delivery

    library = Library(store)
    project = library.project_named(options.project)
    if options.format == "project":
        path = pack(library, project.id, Path(options.out))
        return {"project": project.title, "files": [str(path)]}, 0
    order = Delivery(
        options.format, options.preset, options.whole, options.sample_rate, options.subtitles, options.sample
    )
    stages: set[str] = set()

    def progress(share: float, stage: str, title: str) -> None:
        line = f"{stage}: {title}" if title else stage
        if line not in stages:
            stages.add(line)
            say(f"{share:4.0%} {line}")

    cover = _cover(options.cover) if options.cover else None
    result = export_project(
        library,
        project.id,
        order,
        Path(options.out),
        author=options.author or "",
        narrator=options.narrator or "",
        cover=cover,
        allow_incomplete=options.allow_incomplete,
        progress=progress,
        hear=hearing(options.recogniser, project.language) if options.recogniser else None,
    )
    for name in result["report"]["failed"]:
        say(f"{name} does not pass its report. The report says which line, and what helps.")
    result["files"] = [str(path) for path in result["files"]]
    return result, 0


def hearing(model: str, language: str = "") -> Callable[[Audio], list[Word]]:
    """What listens to a take for its words and their times; ``model``: a Whisper size or a folder.

    Raises UnsupportedError when that is not there.
    """
    from studio.transcription import prepare, transcribe

    prepare(model)

    def hear(audio: Audio) -> list[Word]:
        return [(word.start, word.end, word.text) for word in transcribe(audio, model, language[:2]).words]

    return hear


def recogniser(model: str, language: str = "") -> Recogniser:
    """What hears the words of a take for its checks; nothing where there is no speech. Raises as :func:`hearing`."""
    from studio.transcription import prepare, transcribe

    prepare(model)

    def recognise(samples: np.ndarray, sample_rate: int) -> str:
        try:
            return transcribe(Audio(samples, sample_rate), model, language[:2]).text
        except AudioError:
            return ""

    return recognise


def _cover(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BookError(f"The cover {path} cannot be read ({error.strerror or error}).") from error

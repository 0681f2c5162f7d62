"""A book of the studio, delivered: its chosen takes, in order, handed to :mod:`studio.delivery`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from studio.book.credits import KINDS
from studio.book.errors import BookError
from studio.book.library import Library
from studio.book.project import Book, Chapter, Segment, pauses_after
from studio.book.script import words_to_say
from studio.book.word_times import Hear, find_times, times_of
from studio.delivery import BookInfo, ExportCancelled, Order, Progress, deliver
from studio.files import read_pcm
from studio.layout import ChapterAudio, Piece
from studio.provenance import facts_now
from studio.store import Store
from voxcpm_core import Audio

_ASKED_AT_ONCE = 500  # ids in one question to the database


def export_project(
    library: Library,
    project: int,
    order: Order,
    out_dir: Path,
    *,
    author: str = "",
    narrator: str = "",
    cover: bytes | None = None,
    allow_incomplete: bool = False,
    session: str | None = None,
    progress: Progress = lambda share, stage, title: None,
    cancelled: Callable[[], bool] = lambda: False,
    hear: Hear | None = None,
) -> dict[str, Any]:
    """Export a book; returns what :func:`studio.delivery.deliver` returns and ``incomplete`` and ``red`` besides.

    ``incomplete`` lists segments without a take for their present words; they are refused with a BookError unless
    ``allow_incomplete``: then the older take speaks, or nobody. ``red``: spoken segments whose take failed its checks.
    ``hear`` listens to takes whose words have no times yet, for subtitles by word; those that have are used anyway.
    """
    book = library.book(project, session)
    open_segments = [one for one in book.spoken if book.state(one) in ("missing", "stale")]
    if open_segments and not allow_incomplete:
        raise BookError(_not_ready(book, open_segments))
    store = library.store
    if hear is not None and order.subtitles:
        find_times(library, book, hear, lambda share: progress(share, "words", ""), _cancelling(cancelled))
    chapters = [made for chapter in book.chapters if (made := chapter_audio(book, chapter, library)).pieces]
    current = [take for one in book.spoken if (take := book.current(one))]
    info = BookInfo(book.project.title, author or book.project.author, narrator, book.project.language, cover)
    facts = facts_now(models_of(store, (take.take for take in current)))
    result = deliver(info, chapters, order, out_dir, facts, store.data_dir, progress, cancelled)
    return result | {
        "project": book.project.title,
        "incomplete": [{"segment": one.id, "text": one.text} for one in open_segments],
        "red": [take.segment for take in current if take.verdict == "fail"],
    }


def _cancelling(cancelled: Callable[[], bool]) -> Callable[[], None]:
    def check() -> None:
        if cancelled():
            raise ExportCancelled("The export was cancelled. Nothing was written.")

    return check


def chapter_audio(book: Book, chapter: Chapter, library: Library) -> ChapterAudio:
    """A chapter's takes with their pauses. Segments without a take are left out."""
    pauses = pauses_after(chapter.segments, book.project.settings.pauses)
    pieces = []
    for one in chapter.spoken:
        take = book.current(one)
        if take is not None:
            text, times = words_to_say(one.text), times_of(library, take.take, one.text)
            load = _loader(library.store, take.take)
            pieces.append(Piece(text, load, pauses.get(one.id, 0), book.voice(one), one.speaker, times))
    return ChapterAudio(chapter.title or words_of_title(chapter), tuple(pieces), KINDS.get(chapter.kind, "chapter"))


def words_of_title(chapter: Chapter) -> str:
    """How a chapter without a title is called: by its first words."""
    first = next((words_to_say(one.text) for one in chapter.spoken), "")
    return " ".join(first.split()[:6])[:60] or "Chapter"


def models_of(store: Store, takes: Iterable[str]) -> list[str]:
    """The models that made these takes, each once."""
    ids, models = list(dict.fromkeys(takes)), {}
    for start in range(0, len(ids), _ASKED_AT_ONCE):
        some = ids[start : start + _ASKED_AT_ONCE]
        records = store.select(f"takes.id IN ({', '.join('?' * len(some))})", some, None)
        models |= dict.fromkeys(record.model_id for record in records if record.model_id)
    return list(models)


def _loader(store: Store, take: str) -> Callable[[], Audio]:
    return lambda: Audio(*read_pcm(store.audio_path(take)))


def _not_ready(book: Book, segments: list[Segment]) -> str:
    first = segments[0]
    titles = {chapter.id: chapter.title for chapter in book.chapters}
    count = "One segment has" if len(segments) == 1 else f"{len(segments)} segments have"
    where = f"the first is “{first.text[:60]}” in “{titles[first.chapter]}”"
    return (
        f"{count} no take for the present words and voice; {where}. "
        "Render them first, or export what there is (--allow-incomplete)."
    )

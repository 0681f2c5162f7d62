"""Edits of chapters and segments. Each is one step of undo; a locked segment is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from studio.book import rows
from studio.book.errors import BookError
from studio.book.journal import Change
from studio.book.library import LONGEST_TITLE, Library
from studio.book.manuscript import first_words, joined, tidy
from studio.book.project import LONGEST_NOTE, REVIEWS, Chapter, Review, Segment
from studio.book.script import Limits, speaker_of_tags
from studio.book.script import segment as cut
from studio.takes import readable


class Keep:
    """Stands for "as it is" where None means something."""


# ------------------------------------------------------------------------------------------------- segments


def edit_text(library: Library, number: int, text: str) -> list[int]:
    """New words for one segment. Returns its number, and those of new ones when the text is too long for one.

    A tag at the start names the speaker, as in an imported text.
    """
    return edit_segment(library, number, text=text)


def edit_segment(
    library: Library,
    number: int,
    *,
    text: str | None = None,
    speaker: str | None = None,
    control: str | None = None,
    pause_ms: int | None | Keep = Keep(),  # noqa: B008
) -> list[int]:
    """Several changes of one segment in one step of undo; what is None stays, and so does a pause that is not given.

    Returns its number, and those of new ones when the text is too long for one.
    """
    old = _unlocked(library, number)
    values: dict[str, Any] = {}
    if speaker is not None:
        values["speaker"] = _speaker_name(speaker)
    if control is not None:
        values["control"] = _control_text(control)
    if not isinstance(pause_ms, Keep):
        values["pause_ms"] = _possible_pause(pause_ms)
    project = library.project(library.project_of_segment(number))
    with library.change(project.id, "Edit text" if text is not None else "Edit a segment") as change:
        if text is None or tidy(readable(text)) == old.text:
            change.update("book_segments", {"id": number}, _reviewed_anew(old, values))
            return [number]
        return _new_text(library, change, old, text, values, project.settings.limits)


def _new_text(
    library: Library, change: Change, old: Segment, text: str, values: dict[str, Any], limits: Limits
) -> list[int]:
    text = tidy(readable(text))
    if not text:
        raise BookError("A segment cannot be empty. Switch it off to leave it out.")
    speaker = values.get("speaker", old.speaker if speaker_of_tags(text) is None else "")
    pieces = cut(text, limits, speaker)
    last = values.pop("pause_ms", old.pause_ms) if len(pieces) > 1 else None
    first = {"text": pieces[0].text, "speaker": pieces[0].speaker, "review": "unreviewed"}
    change.update("book_segments", {"id": old.id}, values | first | ({"pause_ms": None} if len(pieces) > 1 else {}))
    numbers = [old.id]
    for piece, place in zip(pieces[1:], _places_after(library, old, len(pieces) - 1), strict=True):
        row = rows.segment_row(old.chapter, place, piece.text, old.kind, old.on, old.paragraph, piece.speaker)
        own = {"control": values.get("control", old.control), "pause_ms": last if piece is pieces[-1] else None}
        numbers.append(change.add("book_segments", {**row, **own}))
    return numbers


def _reviewed_anew(old: Segment, values: dict[str, Any]) -> dict[str, Any]:
    """Who was approved in another voice or manner is unreviewed."""
    other = any(values.get(name, getattr(old, name)) != getattr(old, name) for name in ("speaker", "control"))
    return {**values, "review": "unreviewed"} if other else values


def split_segment(
    library: Library, number: int, offsets: Sequence[int], speaker_at: Callable[[int], str] | None = None
) -> list[int]:
    """Cut one segment at these places of its text; no character is lost. Returns the numbers of all parts.

    ``speaker_at(offset)`` names who speaks the part that begins there.
    """
    with library.change(library.project_of_segment(number), "Split a segment") as change:
        return split_within(library, change, number, offsets, speaker_at)


def split_within(
    library: Library,
    change: Change,
    number: int,
    offsets: Sequence[int],
    speaker_at: Callable[[int], str] | None = None,
) -> list[int]:
    """Like :func:`split_segment`, as part of a larger edit."""
    old = _unlocked(library, number)
    ends = sorted({offset for offset in offsets if 0 < offset < len(old.text)})
    spans = zip([0, *ends], [*ends, len(old.text)], strict=True)
    parts = [(start, part) for start, end in spans if (part := old.text[start:end].strip())]
    if len(parts) < 2 and speaker_at is None:
        raise BookError("There is nothing to split off: put the cursor between two words.")
    places = [old.place, *_places_after(library, old, len(parts) - 1)]
    numbers: list[int] = []
    for (start, part), place in zip(parts, places, strict=True):
        values = {
            "text": part,
            "speaker": speaker_at(start) if speaker_at else old.speaker,
            "control": old.control,
            "pause_ms": old.pause_ms if part is parts[-1][1] else None,
        }
        if not numbers:
            change.update("book_segments", {"id": number}, {**values, "review": "unreviewed"})
            numbers.append(number)
        else:
            row = rows.segment_row(old.chapter, place, part, old.kind, old.on, old.paragraph)
            numbers.append(change.add("book_segments", {**row, **values}))
    return numbers


def merge_segments(library: Library, number: int) -> int:
    """Join a segment with the one after it, when both fit into one."""
    first = _unlocked(library, number)
    chapter = library.chapter(first.chapter)
    after = _following(chapter, first)
    if after is None:
        raise BookError("This is the last segment of its chapter; there is nothing after it to merge with.")
    second = _unlocked(library, after.id)
    project = library.project(chapter.project)
    text = joined(first.text, second.text)
    if len(cut(text, project.settings.limits)) > 1:
        raise BookError("Both together are longer than one segment may be. Raise the limit in the book's settings.")
    with library.change(project.id, "Merge segments") as change:
        values = {"text": text, "review": "unreviewed", "pause_ms": second.pause_ms}
        change.update("book_segments", {"id": number}, values)
        change.remove("book_segments", {"id": second.id})
    return number


def set_on(library: Library, numbers: Iterable[int], on: bool) -> None:
    """Switch segments on or off: what is off is never spoken."""
    _set(library, numbers, "Switch segments on" if on else "Switch segments off", {"is_on": int(on)})


def set_speaker(library: Library, numbers: Iterable[int], speaker: str) -> None:
    """Who speaks; "" for the narrator. A tag in the text that names another is what its text says, and stays."""
    _set(library, numbers, "Cast segments", {"speaker": _speaker_name(speaker), "review": "unreviewed"})


def set_control(library: Library, numbers: Iterable[int], control: str) -> None:
    """How it is spoken, in place of the speaker's own description; "" for that one."""
    _set(library, numbers, "Describe segments", {"control": _control_text(control)})


def set_pause(library: Library, number: int, milliseconds: int | None) -> None:
    """Silence after a segment; None for the usual one."""
    _set(library, [number], "Change a pause", {"pause_ms": _possible_pause(milliseconds)})


def set_note(library: Library, number: int, note: str) -> None:
    _set(library, [number], "Write a note", {"note": readable(note).strip()[:LONGEST_NOTE]}, even_locked=True)


def set_review(library: Library, numbers: Iterable[int], review: Review) -> None:
    if review not in REVIEWS:
        raise BookError(f"{review!r} is not a state of review; there are {', '.join(REVIEWS)}.")
    _set(library, numbers, "Review", {"review": review}, even_locked=True)


def set_locked(library: Library, numbers: Iterable[int], locked: bool) -> None:
    """A locked segment keeps its text, its voice and its take: no edit and no render touches it."""
    _set(library, numbers, "Lock" if locked else "Unlock", {"locked": int(locked)}, even_locked=True)


def choose(library: Library, number: int, take: str) -> None:
    """Which of its takes stands for a segment."""
    if not library.database.read("SELECT 1 FROM book_takes WHERE take = ? AND segment = ?", [take, number]):
        raise BookError("This take was not made for this segment.")
    _set(library, [number], "Choose a take", {"chosen": take})


def _speaker_name(speaker: str) -> str:
    return " ".join(readable(speaker).split())[:60]


def _control_text(control: str) -> str:
    return " ".join(readable(control).split())[:500]


def _possible_pause(milliseconds: int | None) -> int | None:
    if milliseconds is not None and not 0 <= milliseconds <= 60_000:
        raise BookError(f"A pause of {milliseconds} ms is not possible; choose 0 to 60000.")
    return milliseconds


def approve(library: Library, number: int, take: str = "") -> None:
    """This take (or the one that is heard now) is the one, and the segment is done: one step of undo.

    A locked segment keeps its take. Raises BookError when there is no such take for the present words and voice.
    """
    segment = library.segment(number)
    if segment.locked:
        return set_review(library, [number], "approved")
    book = library.book(library.project_of_segment(number))
    current = book.current(segment)
    take = take or (current.take if current else "")
    if take not in {one.take for one in book.fitting(segment)}:
        raise BookError(f"“{first_words(segment.text)}” has no such take for its present words and voice. Render it.")
    _set(library, [number], "Approve", {"chosen": take, "review": "approved"})


def _set(
    library: Library, numbers: Iterable[int], label: str, values: dict[str, Any], even_locked: bool = False
) -> None:
    numbers = list(numbers)
    if not numbers:
        return
    for number in numbers:
        _ = library.segment(number) if even_locked else _unlocked(library, number)
    with library.change(library.project_of_segment(numbers[0]), label) as change:
        for number in numbers:
            change.update("book_segments", {"id": number}, values)


def _unlocked(library: Library, number: int) -> Segment:
    found = library.segment(number)
    if found.locked:
        raise BookError(f"“{first_words(found.text)}” is locked. Unlock it before you change it.")
    return found


def _following(chapter: Chapter, one: Segment) -> Segment | None:
    return next((other for other in chapter.segments if other.place > one.place), None)


def _places_after(library: Library, one: Segment, count: int) -> list[float]:
    """Places between a segment and the next one."""
    after = library.place_after(one)
    room = (one.place + 1 if after is None else after) - one.place
    return [one.place + room * step / (count + 1) for step in range(1, count + 1)]


# ------------------------------------------------------------------------------------------------- chapters


def rename_chapter(library: Library, number: int, title: str) -> None:
    chapter = library.chapter(number)
    title = " ".join(readable(title).split())
    if not title or len(title) > LONGEST_TITLE:
        raise BookError(f"The title of a chapter has 1 to {LONGEST_TITLE} characters.")
    with library.change(chapter.project, "Rename a chapter") as change:
        change.update("book_chapters", {"id": number}, {"title": title})


def switch_chapter(library: Library, number: int, on: bool) -> None:
    chapter = library.chapter(number)
    with library.change(chapter.project, "Switch a chapter on" if on else "Switch a chapter off") as change:
        change.update("book_chapters", {"id": number}, {"is_on": int(on)})


def move_chapter(library: Library, number: int, to: int) -> None:
    """``to`` counts from 0, in the list without this chapter."""
    chapter = library.chapter(number)
    others = [other for other in library.book(chapter.project).chapters if other.id != number]
    to = max(0, min(to, len(others)))
    before = others[to - 1].place if to else others[0].place - 2 if others else 0.0
    after = others[to].place if to < len(others) else before + 2
    with library.change(chapter.project, "Move a chapter") as change:
        change.update("book_chapters", {"id": number}, {"place": (before + after) / 2})


def split_chapter(library: Library, segment: int, title: str = "") -> int:
    """The segment becomes the first of a new chapter; returns that chapter's number."""
    first = library.segment(segment)
    chapter = library.chapter(first.chapter)
    if chapter.segments[0].id == segment:
        raise BookError(f"“{chapter.title}” begins with this segment already.")
    others = library.book(chapter.project).chapters
    after = next((other.place for other in others if other.place > chapter.place), chapter.place + 2)
    title = " ".join(readable(title).split())[:LONGEST_TITLE] or first_words(first.text)
    row = rows.chapter_row(chapter.project, (chapter.place + after) / 2, title, "chapter", chapter.on)
    with library.change(chapter.project, "Split a chapter") as change:
        number = change.add("book_chapters", row)
        for one in chapter.segments:
            if one.place >= first.place:
                change.update("book_segments", {"id": one.id}, {"chapter": number})
    return number


def merge_chapter(library: Library, number: int) -> None:
    """Join a chapter with the one after it, under the first title. What was off stays off."""
    chapter = library.chapter(number)
    after = next((other for other in library.book(chapter.project).chapters if other.place > chapter.place), None)
    if after is None:
        raise BookError(f"“{chapter.title}” is the last chapter; there is nothing after it to merge with.")
    last = chapter.segments[-1] if chapter.segments else None
    place, paragraph = (last.place, last.paragraph + 1) if last else (0.0, 0)
    with library.change(chapter.project, "Merge chapters") as change:
        if chapter.on != after.on:
            silent = (chapter if after.on else after).segments
            for one in silent:
                change.update("book_segments", {"id": one.id}, {"is_on": 0})
            change.update("book_chapters", {"id": number}, {"is_on": 1})
        for step, one in enumerate(after.segments, 1):
            moved = {"chapter": number, "place": place + step, "paragraph": paragraph + one.paragraph}
            change.update("book_segments", {"id": one.id}, moved)
        change.remove("book_chapters", {"id": after.id})

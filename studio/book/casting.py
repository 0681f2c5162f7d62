"""Who speaks with which voice, how words are said, and quoted speech that can be given to a speaker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from studio.book import rows
from studio.book.dialogue import Speech, find_speech
from studio.book.dictionary import Dictionary, Pronunciation
from studio.book.editing import split_within
from studio.book.errors import BookError
from studio.book.journal import Change
from studio.book.library import Library
from studio.book.project import NARRATOR, Book, CastMember
from studio.takes import readable
from studio.voices import VoiceLibrary
from voxcpm_core.audio import load_audio


def set_member(library: Library, project: int, member: CastMember) -> None:
    """Cast a speaker; "" is the narrator. Exactly the segments of this speaker become stale."""
    library.project(project)
    with library.change(project, "Cast a speaker") as change:
        change.put("book_cast", rows.member_row(project, member))


def cast_voice(
    library: Library,
    voices: VoiceLibrary,
    project: int,
    speaker: str,
    voice: str,
    control: str = "",
    goes_on: bool = False,
    session: str | None = None,
) -> CastMember:
    """Cast a saved voice. Its clip is kept with the book's clips, so that the book can be spoken without the voice.

    ``goes_on``: the clip is continued, which needs its transcript and takes no control.
    """
    found = voices.voice(voice, session)
    if goes_on and not found.transcript:
        raise BookError(
            f"The voice “{found.name}” has no transcript, so it cannot be continued. Use it as a reference."
        )
    clip = library.clips.keep(voices.audio(voice))
    member = CastMember(
        " ".join(readable(speaker).split()), voice, clip, found.transcript if goes_on else "", readable(control).strip()
    )
    set_member(library, project, _same_round(library, project, member))
    return member


def cast_clip(
    library: Library, project: int, speaker: str, path: str, transcript: str = "", control: str = ""
) -> CastMember:
    """Cast a recording. It is copied into the data folder now: the upload may vanish."""
    clip = library.clips.keep(load_audio(path))
    member = CastMember(
        " ".join(readable(speaker).split()), "", clip, readable(transcript).strip(), readable(control).strip()
    )
    set_member(library, project, _same_round(library, project, member))
    return member


def new_anchor(library: Library, project: int, speaker: str) -> None:
    """Forget the take that a described voice goes by. All its segments are stale; the next render finds a new one."""
    member = library.cast(project).get(speaker, CastMember(speaker))
    set_member(library, project, replace(member, round=member.round + 1))


def _same_round(library: Library, project: int, member: CastMember) -> CastMember:
    known = library.cast(project).get(member.speaker)
    return replace(member, round=known.round) if known else member


def remove_member(library: Library, project: int, speaker: str) -> None:
    """The speaker's segments are spoken by the narrator again."""
    with library.change(project, "Remove a speaker") as change:
        change.remove("book_cast", {"project": project, "speaker": speaker})


def speakers_of(book: Book) -> dict[str, int]:
    """Speakers of a book, the narrator first, with the number of their segments; those of the cast without any, too."""
    counted = {NARRATOR: 0, **dict.fromkeys(book.cast, 0)}
    for segment in book.spoken:
        counted[segment.speaker] = counted.get(segment.speaker, 0) + 1
    return counted


# ------------------------------------------------------------------------------------------------- dictionary


@dataclass(frozen=True)
class WordsPreview:
    """What a new dictionary would do: (segment, said now, said then) of every one affected; the locked ones apart."""

    affected: tuple[tuple[int, str, str], ...]
    locked: tuple[int, ...]


def preview_words(book: Book, entries: Iterable[Pronunciation]) -> WordsPreview:
    """Raises BookError for an entry that is not possible."""
    then = replace(book, dictionary=Dictionary(entries), _keys={})
    changed = [(s, book.say(s), then.say(s)) for s in book.spoken]
    changed = [(s, now, new) for s, now, new in changed if now != new]
    return WordsPreview(
        tuple((s.id, now, new) for s, now, new in changed), tuple(s.id for s, _, _ in changed if s.locked)
    )


def set_words(library: Library, project: int, entries: Iterable[Pronunciation]) -> list[int]:
    """The whole dictionary of a project. Returns the segments that are now said differently; these are stale."""
    book = library.book(project)
    dictionary = Dictionary(entries)
    preview = preview_words(book, dictionary.entries)
    kept = {" ".join(entry.word.split()) for entry in dictionary.entries}
    with library.change(project, "Dictionary") as change:
        for entry in book.dictionary.entries:
            if entry.word not in kept:
                change.remove("book_words", {"project": project, "word": entry.word})
        for entry in dictionary.entries:
            row = {"project": project, "word": " ".join(entry.word.split()), "say": entry.say.strip()}
            change.put("book_words", {**row, "match_case": int(entry.match_case)})
    return [number for number, _, _ in preview.affected]


# ------------------------------------------------------------------------------------------------- dialogue


@dataclass(frozen=True)
class Suggestion:
    """Quoted speech in a segment; ``speaker`` is the name that stands beside it, "" when none does."""

    segment: int
    speech: Speech
    words: str


def suggestions(book: Book) -> list[Suggestion]:
    """Quoted speech that the narrator speaks now. Nothing is changed."""
    return [
        Suggestion(segment.id, speech, segment.text[speech.start : speech.end])
        for segment in book.spoken
        if segment.speaker == NARRATOR and not segment.locked
        for speech in find_speech(segment.text)
    ]


def accept(library: Library, segment: int, speeches: Iterable[Speech], speaker: str = "") -> list[int]:
    """Give quotes of one segment to their speakers (or all to ``speaker``): it is split, no character changes.

    Returns the numbers of the parts. One step of undo.
    """
    return accept_many(library, [(segment, speeches)], speaker)[0]


def accept_many(library: Library, chosen: Iterable[tuple[int, Iterable[Speech]]], speaker: str = "") -> list[list[int]]:
    """:func:`accept` for many segments of one book, each named once: one step of undo for all."""
    chosen = [(number, list(speeches)) for number, speeches in chosen]
    if not chosen:
        return []
    with library.change(library.project_of_segment(chosen[0][0]), "Cast dialogue") as change:
        return [_give_quotes(library, change, number, speeches, speaker) for number, speeches in chosen]


def _give_quotes(library: Library, change: Change, number: int, speeches: list[Speech], speaker: str) -> list[int]:
    found = library.segment(number)

    def speaker_at(offset: int) -> str:
        quoted = next((speech for speech in speeches if speech.start <= offset < speech.end), None)
        return found.speaker if quoted is None else speaker or quoted.speaker or found.speaker

    places = [place for speech in speeches for place in (speech.start, speech.end)]
    return split_within(library, change, number, places, speaker_at)


def delete_voice(library: Library, voices: VoiceLibrary, voice: str, session: str | None = None) -> None:
    """Delete a saved voice, unless a book speaks with it: then BookError names the books."""
    books = library.projects_using_voice(voice)
    if books:
        named = ", ".join(f"“{title}”" for title in books[:5])
        raise BookError(
            f"The voice “{voices.voice(voice, session).name}” is cast in {named}. Cast another voice there first."
        )
    voices.delete(voice, session)

"""A take in its place: the end of what comes before, the pause, the take, the pause, the beginning of what follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from studio.book.errors import BookError
from studio.book.library import Library
from studio.book.project import Book, Segment, pauses_after
from studio.files import read_pcm
from studio.mastering import gain_of, voice_gains
from voxcpm_core import Audio
from voxcpm_core.audio import resample

LONGEST_PAUSE = 5.0  # seconds: nobody wants to wait for a longer one
FADE_SECONDS = 0.02  # where a neighbour is cut into


@dataclass(frozen=True)
class InContext:
    """Sound, and where the take lies in it, in seconds."""

    audio: Audio
    start: float
    end: float


def in_context(
    library: Library, segment: int, take: str = "", before: float = 3.0, after: float = 3.0, session: str | None = None
) -> InContext:
    """``segment``'s take (the one that is heard now, or another of its takes) between its neighbours in its chapter.

    ``before`` and ``after``: seconds of the neighbours. Every voice has the gain that an export gives it. Raises
    BookError when there is nothing to hear, StoreError when the take's file is gone.
    """
    one = library.segment(segment)
    book = library.book(library.project_of_segment(segment), session)
    current = book.current(one)
    take = take or (current.take if current else "")
    if take not in {known.take for known in book.takes.get(segment, ())}:
        raise BookError("This segment has no such take. Render it first.")
    previous, following = _neighbours(book, one)
    gains = gains_of(book)
    rate, middle = _sound(library, take, gain_of(gains, book.voice(one)), None)
    head, tail = np.zeros(0, np.float32), np.zeros(0, np.float32)
    pauses = pauses_after(library.chapter(one.chapter).segments, book.project.settings.pauses)

    def neighbour(other: Segment, cut: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        beside = book.current(other)
        if beside is None:
            return np.zeros(0, np.float32)
        return cut(_sound(library, beside.take, gain_of(gains, book.voice(other)), rate)[1])

    if previous is not None:
        head = neighbour(
            previous, lambda sound: _faded_in(sound[-_count(before, rate) :] if before else sound[:0], rate)
        )
        head = np.concatenate([head, _silence(pauses.get(previous.id, 0), rate)])
    if following is not None:
        tail = neighbour(following, lambda sound: _faded_in(sound[: _count(after, rate)][::-1], rate)[::-1])
        tail = np.concatenate([_silence(pauses.get(one.id, 0), rate), tail])
    sound = np.concatenate([head, middle, tail])
    top = float(np.abs(sound).max()) if len(sound) else 0.0
    if top > 1.0:  # the limiter of an export would catch it; here all of it is turned down
        sound = sound / np.float32(top)
    return InContext(Audio(sound, rate), len(head) / rate, (len(head) + len(middle)) / rate)


def gains_of(book: Book) -> dict[str, float]:
    """One gain in dB for every voice of a book, as an export gives them; nothing for a book of one voice."""
    heard = [(book.voice(segment), take) for segment in book.spoken if (take := book.current(segment))]
    if len({voice for voice, _ in heard}) < 2:
        return {}
    return voice_gains((voice, take.loudness, take.seconds) for voice, take in heard)


def _neighbours(book: Book, one: Segment) -> tuple[Segment | None, Segment | None]:
    """The spoken segments beside one in its chapter."""
    chapter = next(chapter for chapter in book.chapters if chapter.id == one.chapter)
    beside = list(chapter.spoken)
    place = next((number for number, segment in enumerate(beside) if segment.id == one.id), None)
    if place is None:
        return None, None
    return beside[place - 1] if place else None, beside[place + 1] if place + 1 < len(beside) else None


def _sound(library: Library, take: str, gain: float, rate: int | None) -> tuple[int, np.ndarray]:
    """A take at ``rate`` (its own for None), with its gain; float32 [n]."""
    audio = Audio(*read_pcm(library.store.audio_path(take)))
    if rate is not None:
        audio = resample(audio, rate)
    return audio.sample_rate, audio.samples * np.float32(gain)


def _count(seconds: float, rate: int) -> int:
    return max(1, round(seconds * rate))


def _silence(milliseconds: int, rate: int) -> np.ndarray:
    return np.zeros(round(min(LONGEST_PAUSE, milliseconds / 1000) * rate), np.float32)


def _faded_in(sound: np.ndarray, rate: int) -> np.ndarray:
    """The sound is cut out of a longer one: its first 20 ms rise from silence."""
    ramp = np.linspace(0, 1, min(len(sound), _count(FADE_SECONDS, rate)), dtype=np.float32)
    return np.concatenate([sound[: len(ramp)] * ramp, sound[len(ramp) :]])

"""When each word of a take is said: what a recogniser heard, laid over the words as they are written.

What was heard is kept with the take, so a take is listened to once; the written words may change their signs since.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher

import numpy as np

from studio.book.library import Library
from studio.book.project import Book
from studio.book.script import words_to_say
from studio.files import read_pcm
from studio.layout import Word
from voxcpm_core import Audio
from voxcpm_core.errors import AudioError

LEAST_ALIKE = 0.6  # share of the written letters that must have been heard, or the times are those of other words

Hear = Callable[[Audio], Iterable[Word]]  # start and end in seconds, the word as it was heard

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WRITTEN = re.compile(rf"[{_UNSPACED}][^\w\s]*|[^\s{_UNSPACED}]+")


def times_of(library: Library, take: str, text: str) -> tuple[Word, ...]:
    """The words of ``text`` (a segment's, tags and all) with their times in the take; () when they are not known."""
    found = library.database.read("SELECT heard FROM book_heard WHERE take = ?", [take])
    return lay_over(words_to_say(text), [tuple(word) for word in json.loads(found[0][0])]) if found else ()


def find_times(
    library: Library,
    book: Book,
    hear: Hear,
    progress: Callable[[float], None] = lambda share: None,
    check: Callable[[], None] = lambda: None,
) -> int:
    """Listen to the takes that speak the book now and were not listened to yet; returns how many there were.

    ``check`` may raise between two takes: what was heard until then is kept.
    """
    current = [take.take for segment in book.spoken if (take := book.current(segment))]
    known = {take for (take,) in library.database.read("SELECT take FROM book_heard")}
    missing = [take for take in current if take not in known]
    for number, take in enumerate(missing, 1):
        check()
        try:
            heard = [(float(start), float(end), word) for start, end, word in hear(_sound(library, take))]
        except AudioError:  # nothing that could be understood
            heard = []
        with library.database.changing("The times of words") as db:
            db.execute("INSERT OR REPLACE INTO book_heard VALUES (?, ?)", (take, json.dumps(heard)))
        progress(number / len(missing))
    return len(missing)


def lay_over(text: str, heard: Iterable[Word]) -> tuple[Word, ...]:
    """The written words with times; () when too little of them was heard.

    Letters that were heard as written have the time of the word they were heard in; the others lie between.
    """
    words = [(match[0], _letters(match[0])) for match in _WRITTEN.finditer(text) if _letters(match[0])]
    written = "".join(letters for _, letters in words)
    spelled, edges = "", []
    for start, end, word in heard:
        letters = _letters(word)
        spelled += letters
        at = np.linspace(start, end, len(letters) + 1).tolist()
        edges += zip(at[:-1], at[1:], strict=True)
    blocks = SequenceMatcher(None, written, spelled, autojunk=False).get_matching_blocks()
    known = {block.a + step: edges[block.b + step] for block in blocks for step in range(block.size)}
    if not written or len(known) < LEAST_ALIKE * len(written):
        return ()
    places = sorted(known)
    starts = np.interp(np.arange(len(written)), places, [known[place][0] for place in places])
    ends = np.interp(np.arange(len(written)), places, [known[place][1] for place in places])
    times, at = [], 0
    for word, letters in words:
        last = at + len(letters) - 1
        begin = max(float(starts[at]), times[-1][1] if times else 0.0)
        times.append((begin, max(float(ends[last]), begin), word))
        at = last + 1
    return tuple(times)


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _sound(library: Library, take: str) -> Audio:
    return Audio(*read_pcm(library.store.audio_path(take)))

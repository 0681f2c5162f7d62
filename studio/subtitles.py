"""SRT and WebVTT from where the pieces of a recording lie.

A piece becomes one or more cues of at most two lines. Its time is shared out by the length of the text, or by the
words' own times where an alignment gave them. Cues never overlap, never go back and never leave the sound.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from studio.layout import Span, Word

LINES = 2  # of a cue
LINE_WIDTH = 42  # columns; a Han character takes two, so that a line holds 21 of them
_STOPS = ".!?…。！？"
_COMMAS = ",;:—–、，；："
_CLOSING = "\"'”’»)]}）】」』》"
_NEVER_FIRST = _STOPS + _COMMAS + _CLOSING  # a line does not begin with these


@dataclass(frozen=True)
class Cue:
    """Text from ``start`` to ``end`` seconds. Lines are parted by a line break."""

    start: float
    end: float
    text: str
    speaker: str = ""


def cues_of(spans: Iterable[Span], sample_rate: int, seconds: float) -> list[Cue]:
    """The cues of all pieces. ``seconds`` is the length of the sound, which no cue exceeds."""
    cues: list[Cue] = []
    for span in spans:
        start, end = span.start / sample_rate, min(span.stop / sample_rate, seconds)
        for cue in _cues(span, start, end):
            begin = max(cue.start, cues[-1].end) if cues else max(0.0, cue.start)
            if cue.end > begin:
                cues.append(Cue(begin, cue.end, cue.text, cue.speaker))
    return cues


def words_of(spans: Iterable[Span], sample_rate: int, seconds: float) -> list[Cue]:
    """One cue per word, of the pieces whose words are known."""
    cues: list[Cue] = []
    for span in spans:
        base = span.start / sample_rate
        for start, end, word in span.piece.words:
            begin = max(base + start, cues[-1].end if cues else 0.0)
            until = min(base + end, span.stop / sample_rate, seconds)
            if until > begin and word.strip():
                cues.append(Cue(begin, until, word.strip(), span.piece.speaker))
    return cues


def srt(cues: Sequence[Cue]) -> str:
    """A SubRip file's text."""
    blocks = (
        f"{number}\n{_clock(cue.start, ',')} --> {_clock(cue.end, ',')}\n{cue.text}\n"
        for number, cue in enumerate(cues, 1)
    )
    return "\n".join(blocks)


def vtt(cues: Sequence[Cue], note: str = "") -> str:
    """A WebVTT file's text, with the speakers' names and a note for whoever opens it."""
    head = "WEBVTT\n" + (f"\nNOTE {' '.join(note.split())}\n".replace("-->", "->") if note else "")
    blocks = (f"\n{_clock(cue.start, '.')} --> {_clock(cue.end, '.')}\n{_spoken_by(cue)}\n" for cue in cues)
    return head + "".join(blocks)


def split_text(text: str) -> list[str]:
    """A text as cues of at most LINES lines of LINE_WIDTH columns; a cue ends where a sentence does if it can.

    Every character that is no blank stays, in order.
    """
    cues: list[str] = []
    held = ""
    for sentence in _sentences(text):
        if held and columns(held + sentence.rstrip()) > LINE_WIDTH:
            cues += _cue_texts(held)
            held = ""
        held += sentence
    return cues + _cue_texts(held)


def columns(text: str) -> int:
    """How wide a text is: Han characters and kana take two columns."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _cues(span: Span, start: float, end: float) -> list[Cue]:
    """The cues of one piece between its start and its end, in seconds."""
    parts = split_text(span.piece.text)
    if not parts or end <= start:
        return []
    edges = _edges_by_words(parts, span.piece.words, start) or _edges_by_length(parts, start, end)
    return [
        Cue(begin, min(until, end), part, span.piece.speaker) for part, (begin, until) in zip(parts, edges, strict=True)
    ]


def _edges_by_length(parts: Sequence[str], start: float, end: float) -> list[tuple[float, float]]:
    """Start and end of each part when time goes by columns; a stop counts for the breath that follows it."""
    weights = [max(1, columns(part) + 6 * (part.rstrip(_CLOSING)[-1:] in _STOPS)) for part in parts]
    total, edges, at = sum(weights), [], start
    for weight in weights:
        edges.append((at, at + (end - start) * weight / total))
        at = edges[-1][1]
    return edges


def _edges_by_words(parts: Sequence[str], words: Sequence[Word], start: float) -> list[tuple[float, float]] | None:
    """Start of the first and end of the last word of each part; None unless the words are those of the text."""
    left = list(words)
    edges = []
    for part in parts:
        wanted, spelled, taken = _letters(part), "", []
        while left and len(spelled) < len(wanted):
            taken.append(left.pop(0))
            spelled += _letters(taken[-1][2])
        if not taken or spelled != wanted:
            return None
        edges.append((start + taken[0][0], start + taken[-1][1]))
    return None if left else edges


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _sentences(text: str) -> Iterator[str]:
    """The text cut behind full stops that a blank or a Han character follows."""
    sentence = ""
    for part in _unbroken(text):
        sentence += part
        if part.rstrip().rstrip(_CLOSING)[-1:] in _STOPS:
            yield sentence
            sentence = ""
    if sentence:
        yield sentence


def _cue_texts(text: str) -> list[str]:
    """A sentence as cues, its lines about equally wide."""
    width = columns(text.strip())
    lines = _balanced(text, width, -(-width // LINE_WIDTH)) if width else []
    lines = _balanced(text, width, len(lines)) if lines else []  # words may need a line more than their width tells
    return ["\n".join(lines[at : at + LINES]) for at in range(0, len(lines), LINES)]


def _balanced(text: str, width: int, wanted: int) -> list[str]:
    return list(_lines(text, min(LINE_WIDTH, width // wanted + 8)))


def _lines(text: str, width: int) -> Iterator[str]:
    """The text in lines no wider than ``width`` columns; a longer word is cut."""
    line = ""
    for part in _unbroken(text):
        if columns((line + part).rstrip()) > width and line:
            yield line.strip()
            line = ""
        for char in part if columns(part.rstrip()) > width else [part]:
            if columns((line + char).rstrip()) > width:
                yield line.strip()
                line = ""
            line += char
    if line.strip():
        yield line.strip()


def _unbroken(text: str) -> Iterator[str]:
    """What stays together in a line: a word with the blank behind it, a Han character with the marks behind it."""
    part = ""
    for char in " ".join(text.split()):
        wide = unicodedata.east_asian_width(char) in "WF"
        ends = part[-1:] == " " or (part and (wide or unicodedata.east_asian_width(part[-1]) in "WF"))
        if ends and (char not in _NEVER_FIRST or part[-1:] == " "):
            yield part
            part = ""
        part += char
    if part:
        yield part


def _spoken_by(cue: Cue) -> str:
    text = html.escape(cue.text, quote=False)
    speaker = " ".join(html.escape(cue.speaker, quote=False).split())
    return f"<v {speaker}>{text}" if speaker else text


def _clock(seconds: float, point: str) -> str:
    """90.5 -> "00:01:30,500". Down to whole milliseconds, so that an end stays inside the sound."""
    milliseconds = int(seconds * 1000 + 1e-6)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{rest // 1000:02d}{point}{rest % 1000:03d}"

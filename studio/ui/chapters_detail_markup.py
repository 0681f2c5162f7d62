"""One segment of the review as HTML: its words, what is wrong, what can be done. Its takes are in the picker below."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from studio.book.project import Book, Segment, pauses_after
from studio.book.review import Line
from studio.book.script import words_to_say
from studio.layout import Word
from studio.ui.chapters_ask import Ask, press
from studio.ui.chapters_jobs_markup import clock
from studio.ui.chapters_review_markup import VERDICTS, marks_of
from studio.ui.chapters_sounds import Sounds
from studio.ui.chapters_text_markup import segment_form
from studio.ui.markup import icon, tag
from studio.ui.picker_takes import check_sentence
from studio.ui.take_markup import play_button

WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+")


def nothing_open(ask: Ask, has_lines: bool) -> str:
    return tag("p", ask.say("chapters_none_open" if has_lines else "chapters_nothing_spoken"), class_="vx-none")


def detail(ask: Ask, book: Book, line: Line, count: int, groups: int, making: bool, sounds: Sounds) -> str:
    """Text, what is wrong with it, what can be done. Its takes are in the picker below."""
    chapter = next(one for one in book.chapters if one.id == line.chapter)
    segment = next(one for one in chapter.segments if one.id == line.segment)
    pause = pauses_after(chapter.segments, book.project.settings.pauses).get(segment.id)
    chips = [_chip(ask, *mark) for mark in marks_of(line)]
    if line.locked:
        chips.append(_chip(ask, "lock", "locked", ""))
    if making:
        chips.append(tag("span", icon("dots"), ask.say("chapters_making"), class_="vx-state is-waiting"))
    where = [
        tag("b", f"{line.number} / {count}", class_="vx-num"),
        tag("span", escape(chapter.title or ask.say("chapters_untitled"))),
        tag("span", clock(line.start), class_="vx-num", title=ask.say("chapters_timecode")),
        tag("span", escape(segment.speaker or ask.say("chapters_narrator")), class_="vx-ch-chip"),
    ]
    return tag(
        "article",
        tag("header", *where, *chips),
        spoken(book, segment, sounds.words(line), line.seconds),
        _reasons(ask, line),
        tag("p", icon("note"), escape(line.note), class_="vx-ch-note") if line.note else "",
        _tools(ask, line, segment),
        _context(ask, book, line, sounds),
        tag("div", _note_form(ask, segment), _edit_form(ask, book, segment, pause), class_="vx-ch-folds"),
        _groups(ask, groups),
        class_="vx-ch-card",
        data_segment=line.segment,
    )


def spoken(book: Book, segment: Segment, times: Sequence[Word] = (), seconds: float = 0.0) -> str:
    """The words with the place in the sound where each begins: for reading along.

    ``times``: those that a recogniser has heard in a take of ``seconds``; else the place is the share of the letters.
    """
    text = words_to_say(segment.text)
    parts, at = [], 0
    for start, word, share in _heard(text, times, seconds) if times and seconds else _by_letters(text):
        gap = escape(text[at:start])
        parts.append(f'{gap}<span data-at="{share:.4f}">{escape(word)}</span>')
        at = start + len(word)
    said = book.say(segment)
    differs = tag("p", icon("words"), escape(said), class_="vx-ch-said") if said != text else ""
    return tag("p", *parts, escape(text[at:]), class_="vx-ch-spoken") + differs


def _by_letters(text: str) -> Iterator[tuple[int, str, float]]:
    letters, before = max(1, sum(not char.isspace() for char in text)), 0
    for word in WORD.finditer(text):
        yield word.start(), word[0], before / letters
        before += len(word[0])


def _heard(text: str, times: Sequence[Word], seconds: float) -> Iterator[tuple[int, str, float]]:
    at = 0
    for begin, _, word in times:
        start = text.find(word, at)
        if start >= 0:
            yield start, word, begin / seconds
            at = start + len(word)


def _reasons(ask: Ask, line: Line) -> str:
    found = [(check.verdict, check_sentence(check, ask.language)) for check in line.checks]
    if line.state == "stale":
        found.insert(0, ("warn", ask.say("chapters_stale_info")))
    if line.state == "missing":
        found.insert(0, ("warn", ask.say("chapters_missing_info")))
    items = [tag("li", icon(VERDICTS[verdict]), escape(words), class_=f"is-{verdict}") for verdict, words in found]
    return tag("ul", *items, class_="vx-reasons") if items else ""


def _tools(ask: Ask, line: Line, segment: Segment) -> str:
    def tool(do: str, key: str, shape: str, name: str, kind: str = "vx-link", **data: object) -> str:
        words = ask.say(f"chapters_do_{name}")
        return press(do, f"{words} ({key})", icon(shape), words, tag("kbd", key), class_=kind, **data)

    locked = True if segment.locked else None
    not_ready = None if line.state == "ready" else True
    redo = "unredo" if segment.review == "redo" else "redo"
    return tag(
        "div",
        tool("review.approve", "Enter", "check", "approve", "vx-link is-primary", disabled=not_ready),
        tool("review.reroll", "R", "dice", "reroll", disabled=locked),
        tool("review.redo", "X", "undo", redo),
        tool("review.lock", "L", "lock", "unlock" if segment.locked else "lock"),
        class_="vx-ch-tools",
    )


def _context(ask: Ask, book: Book, line: Line, sounds: Sounds) -> str:
    """The take between its neighbours, as one sound."""
    if not line.take:
        return ""
    place = sounds.place(book, line)
    play = play_button(ask.language, ask.say("chapters_key_context"))
    words = [ask.say("chapters_do_context"), " ", tag("kbd", "C")]
    return tag(
        "div",
        play,
        tag("span", *words),
        tag(
            "span",
            tag("span", tag("span", class_="vx-playhead"), class_="vx-span"),
            class_="vx-ch-track vx-seek",
            role="slider",
            tabindex=0,
            aria_label=ask.say("position"),
            aria_valuemin=0,
            aria_valuemax=f"{place.seconds:.1f}",
            aria_valuenow=0,
        ),
        class_="vx-ch-context",
        data_take=f"context-{line.take}-{place.seconds:.2f}",
        data_src=place.address,
        data_seconds=f"{place.seconds:.3f}",
        data_from=f"{place.start:.3f}",
        data_to=f"{place.end:.3f}",
    )


def _note_form(ask: Ask, segment: Segment) -> str:
    field = tag(
        "textarea",
        escape(segment.note),
        name_="note",
        rows=2,
        maxlength=2000,
        placeholder=ask.say("note_hint"),
        aria_label=ask.say("note"),
    )
    save = press(
        "review.note", ask.say("note_save"), ask.say("note_save"), class_="vx-link is-main", data_segment=segment.id
    )
    return _fold(
        ask, "note", "note", "N", tag("div", field, save, _close(ask), class_="vx-ch-line"), f"note-{segment.id}"
    )


def _edit_form(ask: Ask, book: Book, segment: Segment, pause: int | None) -> str:
    save = press(
        "review.save",
        ask.say("chapters_save"),
        icon("check"),
        ask.say("chapters_save"),
        class_="vx-link is-main is-primary",
        data_segment=segment.id,
        disabled=True if segment.locked else None,
    )
    tools = tag(
        "div", save, _close(ask), tag("span", ask.say("chapters_edit_info"), class_="vx-ch-hint"), class_="vx-ch-tools"
    )
    return _fold(ask, "edit", "text", "E", segment_form(ask, book, segment, pause) + tools, f"edit-{segment.id}")


def _close(ask: Ask) -> str:
    words = ask.say("chapters_close")
    return tag("button", words, type="button", class_="vx-link", data_close_fold="1", data_escape="1")


def _fold(ask: Ask, name: str, shape: str, key: str, body: str, one: str) -> str:
    """Folded again when another segment is opened: ``one`` names the fold of this segment."""
    words = ask.say(f"chapters_do_{name}")
    summary = tag("summary", icon(shape), words, tag("kbd", key), class_="vx-link")
    return tag(
        "details",
        summary,
        tag("div", body, data_form=True, data_edits="1"),
        class_="vx-fold",
        data_fold=one,
        data_name=name,
    )


def _groups(ask: Ask, groups: int) -> str:
    if groups < 2:
        return ""
    now = (int(ask.view.get("lanes") or 0)) % groups
    words = ask.say("chapters_more_takes", number=now + 1, count=groups)
    return press("review.older", words, icon("list"), words, data_lanes=now + 1)


def _chip(ask: Ask, shape: str, word: str, colour: str) -> str:
    return tag("span", icon(shape), ask.say(f"chapters_mark_{word}"), class_=f"vx-check is-{colour}")

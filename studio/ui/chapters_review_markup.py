"""The review as HTML: the table of segments, of which only a window is written, and one segment in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from studio.book.casting import speakers_of
from studio.book.project import Book
from studio.book.review import SHOWS, Left, Line, left
from studio.ui.chapters_ask import Ask, press
from studio.ui.chapters_jobs_markup import clock
from studio.ui.markup import icon, tag

TEXT_IN_ROW = 160
KEYS = (
    ("Enter", "approve"),
    ("1 2 3", "pick"),
    ("Space", "play"),
    ("C", "context"),
    ("R", "reroll"),
    ("X", "redo"),
    ("N", "note"),
    ("E", "edit"),
    ("L", "lock"),
    ("↑ ↓", "move"),
    ("Z", "undo"),
)
VERDICTS = {"fail": "cross", "warn": "triangle", "ok": "check"}


def table(ask: Ask, book: Book, lines: Sequence[Line], chosen: Mapping[str, Any], rows_html: str) -> str:
    """Filters, counters, and the window on the rows."""
    keys = [
        tag("span", *(tag("kbd", key) for key in keys.split()), " ", ask.say(f"chapters_key_{name}"))
        for keys, name in KEYS
    ]
    return tag(
        "section",
        tag(
            "div",
            shows(ask, lines, chosen["show"]),
            class_="vx-ch-shows",
            role="group",
            aria_label=ask.say("chapters_filter"),
            data_part="shows",
        ),
        _filters(ask, book, chosen),
        tag("div", counters(ask, left(lines)), class_="vx-ch-left vx-num", data_part="left", role="status"),
        tag(
            "div",
            tag("div", rows_html, class_="vx-ch-space", data_part="rows"),
            class_="vx-ch-scroll",
            role="listbox",
            tabindex=0,
            aria_label=ask.say("chapters_segments_list"),
            data_keep="rows",
        ),
        tag("p", *keys, class_="vx-keys"),
        class_="vx-ch-list",
    )


def shows(ask: Ask, lines: Sequence[Line], show: str) -> str:
    """One switch for each kind of line, with how many there are."""
    found = left(lines)
    counts = {
        "all": found.total,
        "open": found.open,
        "unreviewed": found.unreviewed,
        "red": found.red,
        "stale": found.stale,
        "missing": found.missing,
        "noted": found.noted,
        "locked": sum(line.locked for line in lines),
    }
    return "".join(
        press(
            "review.show",
            ask.say(f"chapters_show_{name}_title"),
            ask.say(f"chapters_show_{name}"),
            tag("b", str(counts[name]), class_="vx-num"),
            class_="vx-ch-show",
            data_show=name,
            aria_pressed="true" if name == show else "false",
        )
        for name in SHOWS
    )


def _filters(ask: Ask, book: Book, chosen: Mapping[str, Any]) -> str:
    data = {"data_ch": "review.filter"}
    speakers = [("", ask.say("chapters_everybody"))]
    speakers += [(f"={name}", name or ask.say("chapters_narrator")) for name in speakers_of(book)]
    now = "" if chosen["speaker"] is None else f"={chosen['speaker']}"
    chapters = [("", ask.say("chapters_whole_book"))]
    chapters += [(str(one.id), one.title or ask.say("chapters_untitled")) for one in book.chapters if one.spoken]
    search = tag(
        "input",
        type="search",
        name_="words",
        value=chosen["words"],
        maxlength=100,
        placeholder=ask.say("chapters_search"),
        aria_label=ask.say("chapters_search"),
        **data,
    )
    pickups = press("review.pickups", ask.say("chapters_pickups_title"), icon("download"), ask.say("chapters_pickups"))
    return tag(
        "div",
        _select(ask, "voice", "voice", speakers, now, data),
        _select(ask, "within", "chapters_chapter", chapters, str(chosen["chapter"] or ""), data),
        search,
        pickups,
        class_="vx-ch-line",
        data_form=True,
    )


def _select(
    ask: Ask, name: str, label: str, options: Sequence[tuple[str, str]], now: str, data: Mapping[str, str]
) -> str:
    marks = [
        tag("option", escape(words[:60]), value=value, selected=True if value == now else None)
        for value, words in options
    ]
    return tag("select", *marks, name_=name, aria_label=ask.say(label), **data)


def counters(ask: Ask, found: Left) -> str:
    """What is left to do, in one line."""
    if not found.open:
        return tag("span", icon("check"), ask.say("chapters_all_done", count=found.total), class_="vx-check is-ok")
    facts = [ask.say("chapters_left", count=found.open, total=found.total, time=clock(found.seconds))]
    facts += [
        ask.say(f"chapters_left_{name}", count=count)
        for name, count in (
            ("missing", found.missing),
            ("stale", found.stale),
            ("red", found.red),
            ("redo", found.redo),
        )
        if count
    ]
    return "".join(tag("span", escape(fact)) for fact in facts)


# ------------------------------------------------------------------------------------------------- rows


def rows(ask: Ask, book: Book, shown: Sequence[Line], start: int, count: int) -> str:
    """The lines from ``start`` on, and how many there are in all: the script makes the list as high as all of them."""
    start = max(0, min(start, len(shown) - 1))
    window = shown[start : start + count]
    if not window:
        return tag("p", ask.say("chapters_none_fit"), class_="vx-none")
    titles = {chapter.id: chapter.title for chapter in book.chapters}
    opened = str(ask.view.get("segment"))
    items = [_row(ask, line, titles.get(line.chapter, ""), str(line.segment) == opened) for line in window]
    return tag(
        "ul",
        *items,
        class_="vx-ch-rows",
        role="presentation",
        data_from=start,
        data_total=len(shown),
    )


def _row(ask: Ask, line: Line, title: str, is_open: bool) -> str:
    marks = [_mark(ask, *mark) for mark in marks_of(line)]
    flags = [_mark(ask, "lock", "locked", "")] if line.locked else []
    flags += [_mark(ask, "note", "noted", "")] if line.note else []
    voice = tag("span", escape(line.speaker), class_="vx-ch-chip") if line.speaker else ""
    return tag(
        "li",
        tag("span", str(line.number), class_="vx-num vx-ch-no"),
        marks[0],
        tag("span", escape(line.text[:TEXT_IN_ROW]), class_="vx-ch-words"),
        voice,
        *flags,
        tag("span", f"{line.seconds:.1f} s", class_="vx-num vx-ch-time"),
        id=f"vx-ch-row-{line.segment}",
        role="option",
        aria_selected="true" if is_open else "false",
        class_=f"is-{line.state} is-{line.review}",
        data_ch="review.open",
        data_segment=line.segment,
        title=title,
    )


def marks_of(line: Line) -> list[tuple[str, str, str]]:
    """(shape, word, colour) of everything that is to be known of a line, the most urgent first."""
    found = []
    if line.state == "missing":
        found.append(("ring", "missing", ""))
    if line.state == "stale":
        found.append(("reuse", "stale", "warn"))
    if line.review == "redo":
        found.append(("undo", "redo", "fail"))
    if line.review == "approved" and line.state == "ready":
        found.append(("check", "approved", "ok"))
    if line.verdict in ("fail", "warn"):
        found.append((VERDICTS[line.verdict], "red" if line.verdict == "fail" else "amber", line.verdict))
    return found or [("bars", "unreviewed", "")]


def _mark(ask: Ask, shape: str, word: str, colour: str) -> str:
    name = ask.say(f"chapters_mark_{word}")
    return tag("span", icon(shape), tag("span", name, class_="vx-unseen"), class_=f"vx-check is-{colour}", title=name)

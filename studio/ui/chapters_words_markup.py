"""The pronunciation dictionary of a book as HTML."""

from __future__ import annotations

from html import escape

from studio.book.casting import WordsPreview
from studio.book.project import Book
from studio.ui.chapters_ask import Ask, press
from studio.ui.markup import icon, tag

EXAMPLES = 12  # of a preview


def fold(ask: Ask, book: Book, preview: str = "") -> str:
    """All words, a form for one more, and what it would do."""
    entries = book.dictionary.entries
    title = ask.say("chapters_dictionary", count=len(entries))
    rows = [_entry(ask, entry.word, entry.say, entry.match_case) for entry in entries]
    return tag(
        "details",
        tag("summary", icon("words"), title, class_="vx-link"),
        tag(
            "div",
            tag("p", ask.say("chapters_dictionary_info"), class_="vx-ch-hint"),
            tag("ul", *rows, class_="vx-ch-entries") if rows else "",
            _form(ask, bool(preview)),
            preview,
            class_="vx-ch-panel",
        ),
        class_="vx-fold",
        data_fold="dictionary",
        open=True if preview else None,
    )


def _entry(ask: Ask, word: str, saying: str, match: bool) -> str:
    remove = press(
        "words.preview",
        ask.say("chapters_remove_word", word=word),
        icon("bin"),
        class_="vx-quiet vx-round",
        data_word=word,
        data_remove="1",
    )
    case = tag("span", ask.say("chapters_match_case"), class_="vx-fact") if match else ""
    return tag("li", tag("b", escape(word)), tag("span", "→"), tag("span", escape(saying)), case, remove)


def _form(ask: Ask, asked: bool) -> str:
    """``asked``: what was typed stays while its preview is looked at."""
    word, saying = (ask.text("word"), ask.text("saying")) if asked and not ask.ticked("remove") else ("", "")
    match = True if asked and ask.ticked("match") else None
    fields = [_typed(ask, "word", "chapters_word", word, 80), _typed(ask, "saying", "chapters_saying", saying, 200)]
    tick = tag("input", type="checkbox", name_="match", checked=match)
    look = ask.say("chapters_preview_words")
    return tag(
        "div",
        *fields,
        tag("label", tick, ask.say("chapters_match_case"), class_="vx-toggle"),
        press("words.preview", look, look, class_="vx-link is-main"),
        class_="vx-ch-line",
        data_form=True,
        data_edits="1",
    )


def _typed(ask: Ask, name: str, key: str, value: str, longest: int) -> str:
    words = ask.say(key)
    return tag("input", type="text", name_=name, value=value, maxlength=longest, placeholder=words, aria_label=words)


def preview(ask: Ask, book: Book, found: WordsPreview) -> str:
    """How many segments would be said differently, some of them word by word, and the button that does it."""
    count = len(found.affected)
    said = ask.say("chapters_affected", count=count) if count else ask.say("chapters_affected_none")
    if found.locked:
        said += " " + ask.say("chapters_affected_locked", count=len(found.locked))
    examples = [
        tag("li", tag("del", escape(now[:160])), tag("ins", escape(then[:160])))
        for _, now, then in found.affected[:EXAMPLES]
    ]
    apply = press(
        "words.apply",
        ask.say("chapters_apply"),
        icon("check"),
        ask.say("chapters_apply"),
        class_="vx-link is-main is-primary",
        data_word=ask.text("word"),
        data_saying=ask.text("saying"),
        data_match="1" if ask.ticked("match") else "",
        data_remove="1" if ask.ticked("remove") else "",
    )
    return tag(
        "div",
        tag("p", escape(said), class_="vx-ch-affected"),
        tag("ul", *examples),
        apply,
        class_="vx-ch-preview-words",
    )

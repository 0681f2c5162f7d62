"""The text of a book in the Chapters tab: its chapters, the script of one of them, limits, pauses, pronunciation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from studio.book import editing
from studio.book.casting import preview_words, set_words
from studio.book.dictionary import Pronunciation
from studio.book.errors import BookError
from studio.book.project import Book, Pauses, Segment
from studio.book.script import Limits
from studio.ui import chapters_text_markup as markup
from studio.ui import chapters_words_markup as words_markup
from studio.ui.chapters_ask import Answer, Ask, told, whole
from studio.ui.chapters_desk import Desk, undoable


class TextDesk:
    def __init__(self, desk: Desk) -> None:
        self._desk, self._library = desk, desk.library
        self.actions: dict[str, Callable[[Ask], Answer]] = {
            "text.chapter": self.choose,
            "text.switch": self.switch,
            "text.title": self.rename,
            "text.move": self.move,
            "text.merge": self.merge,
            "text.look": self.look,
            "text.save": self.save,
            "text.on": self.switch_segment,
            "text.split": self.split,
            "text.join": self.join,
            "text.cut": self.cut,
            "words.preview": self.preview_words,
            "words.apply": self.apply_words,
            "text.settings": self.settings,
        }

    def draw(self, ask: Ask, book: Book) -> Answer:
        """Chapters on the left, the script of the chosen one beside them."""
        chapter = self._chosen(ask, book)
        opened = ask.number("segment", 0)
        return Answer({"body": markup.body(ask, book, chapter, opened)}, {"chapter": chapter})

    def _chosen(self, ask: Ask, book: Book) -> int:
        known = [chapter.id for chapter in book.chapters]
        wanted = whole(ask.view.get("chapter"), 0)
        first = next((chapter.id for chapter in book.chapters if chapter.on), known[0] if known else 0)
        return wanted if wanted in known else first

    def _again(self, ask: Ask, **looking_at: object) -> Answer:
        """The whole step as it is now."""
        asked = replace(ask, data={}, view={**ask.view, **looking_at})
        book = self._desk.book(asked)
        return self._desk.frame(asked, book, "text") | self.draw(asked, book) | Answer(view=dict(looking_at))

    # ---- chapters

    def choose(self, ask: Ask) -> Answer:
        return self._again(ask, chapter=self._desk.chapter(ask), segment=0)

    def switch(self, ask: Ask) -> Answer:
        editing.switch_chapter(self._library, self._desk.chapter(ask), ask.ticked("on"))
        return self._again(ask)

    def rename(self, ask: Ask) -> Answer:
        editing.rename_chapter(self._library, self._desk.chapter(ask), ask.text("title"))
        return self._again(ask)

    def move(self, ask: Ask) -> Answer:
        editing.move_chapter(self._library, self._desk.chapter(ask), ask.number("to"))
        return self._again(ask)

    def merge(self, ask: Ask) -> Answer:
        chapter = self._desk.chapter(ask)
        editing.merge_chapter(self._library, chapter)
        return self._again(ask, chapter=chapter) | undoable(ask, ask.say("chapters_merged"))

    # ---- segments

    def look(self, ask: Ask) -> Answer:
        """Open one segment to edit it, or close it again."""
        segment = self._desk.segment(ask)
        opened = 0 if whole(ask.view.get("segment"), 0) == segment.id else segment.id
        return self._again(ask, segment=opened, chapter=segment.chapter)

    def save(self, ask: Ask) -> Answer:
        """The fields of the open segment; only what has changed is an edit."""
        segment = self._desk.segment(ask)
        numbers = save_segment(self._desk, ask, segment)
        answer = self._again(ask, segment=0)
        return answer | undoable(ask, ask.say("chapters_cut_in", count=len(numbers))) if len(numbers) > 1 else answer

    def switch_segment(self, ask: Ask) -> Answer:
        editing.set_on(self._library, [self._desk.segment(ask).id], ask.ticked("on"))
        return self._again(ask)

    def split(self, ask: Ask) -> Answer:
        """Cut the open segment where the cursor stands."""
        segment = self._desk.segment(ask)
        if ask.text("text").strip() != segment.text.strip():
            raise BookError(ask.say("chapters_save_first"))
        editing.split_segment(self._library, segment.id, [ask.number("cursor", 0)])
        return self._again(ask)

    def join(self, ask: Ask) -> Answer:
        editing.merge_segments(self._library, self._desk.segment(ask).id)
        return self._again(ask)

    def cut(self, ask: Ask) -> Answer:
        """A new chapter begins with this segment."""
        chapter = editing.split_chapter(self._library, self._desk.segment(ask).id)
        return self._again(ask, chapter=chapter, segment=0) | undoable(ask, ask.say("chapters_new_chapter"))

    # ---- pronunciation

    def preview_words(self, ask: Ask) -> Answer:
        """What a change of the dictionary would do; nothing is changed."""
        book = self._desk.book(ask)
        entries = self._entries(ask, book)
        preview = preview_words(book, entries)
        body = markup.body(ask, book, self._chosen(ask, book), 0, words_markup.preview(ask, book, preview))
        return Answer({"body": body})

    def apply_words(self, ask: Ask) -> Answer:
        book = self._desk.book(ask)
        changed = set_words(self._library, book.project.id, self._entries(ask, book))
        return self._again(ask) | undoable(ask, ask.say("chapters_words_applied", count=len(changed)))

    def _entries(self, ask: Ask, book: Book) -> list[Pronunciation]:
        """The dictionary with the word that was typed, or without the one that is to go."""
        word = " ".join(ask.text("word").split())
        kept = [entry for entry in book.dictionary.entries if entry.word != word]
        if ask.ticked("remove"):
            return kept
        return [*kept, Pronunciation(word, ask.text("saying").strip(), ask.ticked("match"))]

    # ---- settings

    def settings(self, ask: Ask) -> Answer:
        project = self._desk.project(ask)
        old = project.settings
        pauses = Pauses(
            **{name: ask.number(f"pause_{name}", usual) for name, usual in markup.pauses_of(old.pauses).items()}
        )
        limits = Limits(
            ask.number("characters", old.limits.characters), float(ask.number("seconds", int(old.limits.seconds)))
        )
        seed = ask.number("seed", old.seed)
        new = replace(
            old,
            pauses=pauses,
            limits=limits,
            seed=seed,
            normalize=ask.ticked("normalize"),
            cfg_value=_amount(ask.text("cfg_value")),
            inference_timesteps=whole(ask.text("timesteps")) if ask.text("timesteps").strip() else None,
        )
        self._library.set_settings(project.id, new)
        return self._again(ask) | told("info", ask.say("chapters_settings_saved"))


def _amount(typed: str) -> float | None:
    """A number, None for an empty field. Raises BookError for anything else."""
    try:
        return float(typed) if typed.strip() else None
    except ValueError:
        raise BookError(f"“{typed}” is no number. Write one such as 1.8, or leave the field empty.") from None


def save_segment(desk: Desk, ask: Ask, segment: Segment) -> list[int]:
    """Keep the fields of a segment's form that differ, as one edit; returns the numbers of what it is now."""
    changes: dict[str, Any] = {}
    if "text" in ask.data and " ".join(ask.text("text").split()) != " ".join(segment.text.split()):
        changes["text"] = ask.text("text")
    for name, now in (("speaker", segment.speaker), ("control", segment.control)):
        typed = " ".join(ask.text(name).split())
        if name in ask.data and typed != now:
            changes[name] = typed
    if "pause" in ask.data:
        typed = ask.text("pause").strip()
        pause = whole(typed) if typed else None
        if pause != segment.pause_ms:
            changes["pause_ms"] = pause
    return editing.edit_segment(desk.library, segment.id, **changes) if changes else [segment.id]

"""Who speaks with which voice: the cast of a book, and quoted speech that can be given to a speaker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

from studio.book.casting import (
    Suggestion,
    accept_many,
    cast_voice,
    new_anchor,
    remove_member,
    set_member,
    suggestions,
)
from studio.book.dialogue import Speech
from studio.book.errors import BookError
from studio.book.project import Book, CastMember
from studio.ui import chapters_cast_markup as markup
from studio.ui.chapters_ask import Answer, Ask
from studio.ui.chapters_desk import Desk, need, undoable


class CastDesk:
    def __init__(self, desk: Desk) -> None:
        self._desk, self._library = desk, desk.library
        self.actions: dict[str, Callable[[Ask], Answer]] = {
            "cast.set": self.cast,
            "cast.add": self.add,
            "cast.remove": self.remove,
            "cast.anchor": self.anchor,
            "cast.accept": self.accept,
        }

    def draw(self, ask: Ask, book: Book) -> Answer:
        voices = self._desk.context.voices.voices(session=ask.seen)
        found = self._grouped(suggestions(book))
        return Answer({"body": markup.body(ask, book, voices, found, self._desk.context)})

    def _again(self, ask: Ask) -> Answer:
        book = self._desk.book(ask)
        return self._desk.frame(ask, book, "cast") | self.draw(ask, book)

    def cast(self, ask: Ask) -> Answer:
        """A saved voice, or the model's own as it is described; in either case how it is to sound."""
        book, speaker, voice = self._desk.book(ask), ask.text("speaker"), ask.text("voice")
        old = book.cast.get(speaker, CastMember(speaker))
        control, goes_on = ask.text("control"), ask.ticked("goes_on")
        known = {one.id for one in self._desk.context.voices.voices(session=ask.seen)}
        if voice in known:
            cast_voice(
                self._library, self._desk.context.voices, book.project.id, speaker, voice, control, goes_on, ask.seen
            )
        elif voice == markup.KEPT_CLIP and old.reference:
            set_member(self._library, book.project.id, replace(old, control=control.strip()))
        else:
            member = CastMember(speaker, control=control.strip(), round=old.round)
            set_member(self._library, book.project.id, member)
        return self._again(ask)

    def add(self, ask: Ask) -> Answer:
        name = need(" ".join(ask.text("name").split())[:60], ask.say("chapters_name_first"))
        book = self._desk.book(ask)
        if name in book.cast:
            raise BookError(ask.say("chapters_name_taken", name=name))
        narrator = book.member("")
        set_member(self._library, book.project.id, replace(narrator, speaker=name))
        return self._again(ask)

    def remove(self, ask: Ask) -> Answer:
        remove_member(self._library, self._desk.project(ask).id, ask.text("speaker"))
        return self._again(ask) | undoable(ask, ask.say("chapters_speaker_removed", name=ask.text("speaker")))

    def anchor(self, ask: Ask) -> Answer:
        new_anchor(self._library, self._desk.project(ask).id, ask.text("speaker"))
        return self._again(ask) | undoable(ask, ask.say("chapters_anchor_done"))

    def accept(self, ask: Ask) -> Answer:
        """Give quotes to a speaker: all that one name stands beside, or those of one segment. No word changes."""
        book = self._desk.book(ask)
        found, target = ask.text("found"), " ".join(ask.text("target").split())[:60]
        target = target or need(found, ask.say("chapters_name_first"))
        one = ask.number("segment") if "segment" in ask.data else 0
        by_segment: dict[int, list[Speech]] = defaultdict(list)
        for suggestion in suggestions(book):
            if suggestion.speech.speaker == found and one in (0, suggestion.segment):
                by_segment[suggestion.segment].append(suggestion.speech)
        accept_many(self._library, list(by_segment.items()), target)
        count = sum(map(len, by_segment.values()))
        return self._again(ask) | undoable(ask, ask.say("chapters_accepted", count=count, name=target))

    @staticmethod
    def _grouped(found: list[Suggestion]) -> dict[str, list[Suggestion]]:
        """By the name that stands beside them: the most frequent first, those without a name last."""
        groups: dict[str, list[Suggestion]] = defaultdict(list)
        for suggestion in found:
            groups[suggestion.speech.speaker].append(suggestion)
        return dict(sorted(groups.items(), key=lambda group: (not group[0], -len(group[1]))))

"""Edits that touch many things at once, each one step of undo."""

from __future__ import annotations

import pytest

from studio.book import casting, editing
from studio.book.errors import BookError
from studio.book.library import Library
from tests.test_book_project import library, project, render_all, store

__all__ = ["library", "project", "store"]  # fixtures


def test_the_form_of_a_segment_is_one_step_of_undo(library: Library, project: int) -> None:
    render_all(library, project)
    segment = library.book(project).spoken[1]
    editing.approve(library, segment.id)
    before = library.segment(segment.id)
    values = {"text": "New words here.", "speaker": " Anna ", "control": "slow", "pause_ms": 900}
    assert editing.edit_segment(library, segment.id, **values) == [segment.id]
    found = library.segment(segment.id)
    assert (found.text, found.speaker, found.control, found.pause_ms) == ("New words here.", "Anna", "slow", 900)
    assert found.review == "unreviewed"
    assert library.undo(project) == "Edit text" and library.segment(segment.id) == before
    editing.edit_segment(library, segment.id, text=before.text, pause_ms=None)
    assert library.segment(segment.id) == before  # nothing changed, nothing to undo
    editing.edit_segment(library, segment.id, pause_ms=500)
    assert library.segment(segment.id).review == "approved"  # a pause is no other take
    with pytest.raises(BookError, match="60001 ms"):
        editing.edit_segment(library, segment.id, speaker="Anna", pause_ms=60_001)
    assert library.segment(segment.id).speaker == ""


def test_all_dialogue_is_cast_in_one_step_of_undo(library: Library, project: int) -> None:
    before = library.book(project).chapters
    found = casting.suggestions(library.book(project))
    by_segment = {one.segment: [other.speech for other in found if other.segment == one.segment] for one in found}
    parts = casting.accept_many(library, by_segment.items(), "Anna")
    assert [len(numbers) > 1 for numbers in parts] == [True] * len(by_segment) and parts
    quotes = [s.text for s in library.book(project).spoken if s.speaker == "Anna"]
    assert quotes == [one.words for one in found]
    assert library.undo(project) == "Cast dialogue" and library.book(project).chapters == before
    assert casting.accept_many(library, []) == []

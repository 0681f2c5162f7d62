"""Rows of the database <-> the plain values of :mod:`studio.book.project`. One place that knows the columns."""

from __future__ import annotations

import json
from typing import Any

from studio.book.project import BookTake, CastMember, Chapter, Project, Segment, Settings

PROJECT = "id, title, author, language, source, session, created, words_in, settings"
CHAPTER = "id, project, place, title, kind, is_on"
SEGMENT = "id, chapter, place, text, kind, is_on, paragraph, speaker, control, pause_ms, locked, note, review, chosen"
MEMBER = "speaker, voice, reference, transcript, control, round"
TAKE = "take, segment, key, number, verdict, seconds, reason, loudness, likeness, faults"


def project_of(row: tuple) -> Project:
    return Project(*row[:-1], settings=Settings.from_json(row[-1]))


def chapter_of(row: tuple, segments: tuple[Segment, ...] = ()) -> Chapter:
    return Chapter(*row[:-1], on=bool(row[-1]), segments=segments)


def segment_of(row: tuple) -> Segment:
    values = dict(zip(SEGMENT.split(", "), row, strict=True))
    values["on"], values["locked"] = bool(values.pop("is_on")), bool(values["locked"])
    return Segment(**values)


def member_of(row: tuple) -> CastMember:
    return CastMember(*row)


def take_of(row: tuple) -> BookTake:
    return BookTake(*row[:-1], faults=tuple(json.loads(row[-1])))


def take_row(take: BookTake) -> tuple:
    """In the order of :data:`TAKE`."""
    values = {**vars(take), "faults": json.dumps(take.faults, ensure_ascii=False)}
    return tuple(values[name] for name in TAKE.split(", "))


def segment_row(
    chapter: int, place: float, text: str, kind: str = "text", on: bool = True, paragraph: int = 0, speaker: str = ""
) -> dict[str, Any]:
    """A new segment, ready to be added."""
    return {
        "chapter": chapter,
        "place": place,
        "text": text,
        "kind": kind,
        "is_on": int(on),
        "paragraph": paragraph,
        "speaker": speaker,
        "control": "",
        "pause_ms": None,
        "locked": 0,
        "note": "",
        "review": "unreviewed",
        "chosen": "",
    }


def chapter_row(project: int, place: float, title: str, kind: str, on: bool) -> dict[str, Any]:
    return {"project": project, "place": place, "title": title, "kind": kind, "is_on": int(on)}


def member_row(project: int, member: CastMember) -> dict[str, Any]:
    return {
        "project": project,
        "speaker": member.speaker,
        "voice": member.voice,
        "reference": member.reference,
        "transcript": member.transcript,
        "control": member.control,
        "round": member.round,
    }

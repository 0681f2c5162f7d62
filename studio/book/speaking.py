"""One segment becomes takes: the request, the rows, and a note before and after so that no crash makes one twice."""

from __future__ import annotations

import json
import logging
import secrets
from dataclasses import dataclass, field, replace

from studio.book import likeness
from studio.book.library import Library
from studio.book.likeness import VoiceLikeness
from studio.book.plan import Need
from studio.book.project import Book, BookTake, CastMember
from studio.checks import Check, worst
from studio.database import StoreError
from studio.events import Finished, Started
from studio.synthesizer import Synthesizer
from studio.takes import TakeRecord, seen_by, utc_text
from voxcpm_core import SpeechRequest
from voxcpm_core.errors import VoxCPMError

logger = logging.getLogger(__name__)

TAB = "chapters"
COMPLETE = ("stop", "limit")  # how a take ends that counts as made


@dataclass(frozen=True)
class Anchor:
    """The take that a voice without a clip goes by, as a kept clip, and the words that are heard in it."""

    clip: str
    words: str


@dataclass
class Outcome:
    """What became of one need. ``failure`` names why takes are missing; ``disk`` that nothing can be saved."""

    need: Need
    takes: list[BookTake] = field(default_factory=list)
    failure: str = ""
    disk: bool = False
    cancelled: bool = False


class SegmentSpeaker:
    """Makes the takes of one need, on the caller's thread. Several threads may do so at once."""

    def __init__(self, library: Library, synthesizer: Synthesizer) -> None:
        self._library, self._synthesizer = library, synthesizer
        self._likeness = VoiceLikeness(library.store)
        self._jobs: dict[int, str] = {}  # segment -> job of the synthesizer
        self._stopped = False

    def speak(self, book: Book, need: Need, anchor: Anchor | None) -> Outcome:
        outcome = Outcome(need)
        group = f"book-{need.segment.id}-{secrets.token_hex(8)}"
        member = book.member(need.segment.speaker)
        same = not member.reference and anchor is None
        seeds = [book.seed(need.segment, need.first + n, same_for_all=same) for n in range(need.count)]
        try:
            note_running(self._library, group, need, seeds)
            request, known = self._request(book, need, member, anchor)
            for event in self._synthesizer.speak(
                request, seeds=seeds, tab=TAB, session=book.project.session, group=group, **known
            ):
                if isinstance(event, Started):
                    self._jobs[need.segment.id] = event.job_id
                    if self._stopped:
                        self._synthesizer.stop(event.job_id)
                elif isinstance(event, Finished):
                    self._finished(outcome, event)
            note_ended(self._library, group)
        except VoxCPMError as error:
            outcome.failure = outcome.failure or str(error)
            outcome.disk = outcome.disk or isinstance(error, StoreError)
        finally:
            self._jobs.pop(need.segment.id, None)
        return outcome

    def stop(self) -> None:
        """Stop what is being spoken; nothing new begins."""
        self._stopped = True
        for job in list(self._jobs.values()):
            self._synthesizer.stop(job)

    def _finished(self, outcome: Outcome, event: Finished) -> None:
        record = event.record
        if record.ended_by not in COMPLETE:
            outcome.cancelled = outcome.cancelled or record.ended_by == "cancelled"
            outcome.failure = outcome.failure or (record.message if record.ended_by == "error" else "")
        elif not record.file_name:
            outcome.failure, outcome.disk = record.message, True
        else:
            number = outcome.need.first + event.row
            take = book_take(record, outcome.need.segment.id, outcome.need.key, number, self._likeness.of(record))
            self._library.add_take(take)
            outcome.takes.append(take)

    def _request(self, book: Book, need: Need, member: CastMember, anchor: Anchor | None) -> tuple[SpeechRequest, dict]:
        """The request, and what the synthesizer is told about the voice."""
        settings = book.project.settings
        request = SpeechRequest(
            text=book.say(need.segment),
            control=book.control(need.segment),
            cfg_value=settings.cfg_value,
            inference_timesteps=settings.inference_timesteps,
            normalize=settings.normalize,
        )
        if member.voice and self._has_voice(member.voice, book.project.session):
            return request, {"voice_id": member.voice, "voice_as": "prompt" if member.transcript else "reference"}
        clip, words = member.reference, member.transcript
        if not clip and anchor is not None:
            clip = anchor.clip
            words = "" if self._synthesizer.status.supports_reference else anchor.words
        if not clip:
            return request, {}
        audio = self._library.clips.audio(clip)
        if words:  # the model goes on in the manner of the clip; it takes no control then
            return replace(request, control="", prompt_wav_path=audio, prompt_text=words), {}
        return replace(request, reference_wav_path=audio), {}

    def _has_voice(self, voice: str, session: str) -> bool:
        try:
            self._synthesizer.voices.voice(voice, seen_by(session))
        except StoreError:
            return False  # deleted since; its clip was kept when it was cast
        return True


def book_take(record: TakeRecord, segment: int, key: str, number: int, alike: float | None = None) -> BookTake:
    """A stored take as the book knows it, with what is wrong with it; ``alike``: its likeness to its voice."""
    checks = [Check.from_dict(check) for check in record.checks]
    if alike is not None:
        checks.append(likeness.check(alike))
    verdict = worst(checks)
    if not record.checks and record.ended_by != "stop":
        verdict = "fail"
    reason = " ".join(check.advice for check in checks if check.verdict == verdict) if verdict != "ok" else ""
    faults = tuple(check.as_dict() for check in checks if check.verdict != "ok")
    return BookTake(
        record.id,
        segment,
        key,
        number,
        verdict,
        record.seconds,
        reason or record.message,
        record.loudness,
        alike,
        faults,
    )


# --------------------------------------------------------------------------- what a crash must not lose


def note_running(library: Library, group: str, need: Need, seeds: list[int]) -> None:
    """Before the first sound: should the program end now, the takes that were finished are found by their group."""
    values = (group, need.segment.id, need.key, json.dumps({"first": need.first, "seeds": seeds, "at": utc_text()}))
    with library.database.changing("The render") as db:
        db.execute("INSERT INTO book_running VALUES (?, ?, ?, ?)", values)


def note_ended(library: Library, group: str) -> None:
    with library.database.changing("The render") as db:
        db.execute("DELETE FROM book_running WHERE grouping = ?", (group,))


def adopt_finished(library: Library) -> int:
    """After a crash: takes that were stored but not yet noted in their book. Returns how many there were."""
    adopted = 0
    alike = VoiceLikeness(library.store)
    for group, segment, key, noted in library.database.read("SELECT grouping, segment, key, seeds FROM book_running"):
        facts = json.loads(noted)
        for record in library.store.select("grouping = ?", [group], None):
            if record.ended_by in COMPLETE and record.seed in facts["seeds"]:
                number = facts["first"] + facts["seeds"].index(record.seed)
                library.add_take(book_take(record, segment, key, number, alike.of(record)))
                adopted += 1
        note_ended(library, group)
    if adopted:
        logger.info("%d takes of a render that was interrupted were found and kept", adopted)
    return adopted

"""A book in the studio, as plain values: project, chapters, segments, cast, pauses. No database, no files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from studio.book.dictionary import Dictionary
from studio.book.errors import BookError
from studio.book.manuscript import count_words
from studio.book.script import Limits, estimated_seconds, is_spoken, pause_of_tags, words_to_say

NARRATOR = ""
MAX_SEED = 2**32 - 1
Review = Literal["unreviewed", "approved", "redo"]
REVIEWS: tuple[Review, ...] = ("unreviewed", "approved", "redo")
LONGEST_NOTE = 2000


@dataclass(frozen=True)
class Pauses:
    """Milliseconds of silence after a segment, by what comes next."""

    sentence: int = 350
    paragraph: int = 700
    heading: int = 1200
    scene: int = 1800
    chapter: int = 2500

    def check(self) -> None:
        for name, value in asdict(self).items():
            if not 0 <= value <= 60_000:
                raise BookError(f"A pause of {value} ms ({name}) is not possible; choose 0 to 60000.")


@dataclass(frozen=True)
class Settings:
    """What holds for the whole book."""

    limits: Limits = Limits()
    pauses: Pauses = Pauses()
    seed: int = 0
    normalize: bool = False  # numbers and symbols are written out before they are spoken
    cfg_value: float | None = None  # None: the model's own
    inference_timesteps: int | None = None

    def check(self) -> None:
        """Raises BookError naming the value and its range."""
        self.limits.check()
        self.pauses.check()
        if not 0 <= self.seed <= MAX_SEED:
            raise BookError(f"The seed {self.seed} is not possible; choose 0 to {MAX_SEED}.")
        if self.cfg_value is not None and not 1.0 <= self.cfg_value <= 5.0:
            raise BookError(f"cfg_value is {self.cfg_value:g}; choose 1 to 5.")
        if self.inference_timesteps is not None and not 2 <= self.inference_timesteps <= 100:
            raise BookError(f"inference_timesteps is {self.inference_timesteps}; choose 2 to 100.")

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Fields that this version does not know are left out."""
        found = json.loads(text)
        limits, pauses = _known(Limits, found.get("limits", {})), _known(Pauses, found.get("pauses", {}))
        return _known(cls, {**found, "limits": limits, "pauses": pauses})


def _known(kind: type, values: dict[str, Any]) -> Any:
    return kind(**{f.name: values[f.name] for f in fields(kind) if f.name in values})


@dataclass(frozen=True)
class Project:
    id: int
    title: str
    author: str = ""
    language: str = ""
    source: str = ""  # name of the file it was made from
    session: str = "local"  # whose it is
    created: str = ""
    words_in: int = 0  # of the file it was made from, also those that are not spoken; 0: not known
    settings: Settings = Settings()


@dataclass(frozen=True)
class Segment:
    """What is spoken in one go. ``text`` is as written, tags included; ``on`` False: never spoken."""

    id: int
    chapter: int
    place: float
    text: str
    kind: str = "text"
    on: bool = True
    paragraph: int = 0  # segments of one paragraph share the number
    speaker: str = NARRATOR
    control: str = ""  # "" = that of the speaker
    pause_ms: int | None = None  # None = what a tag asks for, or else the usual pause
    locked: bool = False
    note: str = ""
    review: Review = "unreviewed"
    chosen: str = ""  # id of a take

    @property
    def is_spoken(self) -> bool:
        return self.on and self.kind != "scene" and is_spoken(self.text)

    @property
    def words(self) -> int:
        return count_words(words_to_say(self.text)) if self.is_spoken else 0

    @property
    def own_pause_ms(self) -> int | None:
        return self.pause_ms if self.pause_ms is not None else pause_of_tags(self.text)


@dataclass(frozen=True)
class Chapter:
    id: int
    project: int
    place: float
    title: str
    kind: str = "chapter"
    on: bool = True
    segments: tuple[Segment, ...] = ()

    @property
    def spoken(self) -> tuple[Segment, ...]:
        return tuple(segment for segment in self.segments if segment.is_spoken) if self.on else ()

    @property
    def words(self) -> int:
        return sum(segment.words for segment in self.spoken)


@dataclass(frozen=True)
class CastMember:
    """The voice of a speaker. With a transcript the clip is continued, without one it lends its timbre.

    ``reference`` is the content hash of a clip that the studio keeps, "" for a voice that is described (or the model's
    own): then the first good take becomes the anchor of all others. ``round`` counts how often a new anchor was wanted.
    """

    speaker: str
    voice: str = ""  # id of a saved voice
    reference: str = ""
    transcript: str = ""
    control: str = ""
    round: int = 0

    def identity(self) -> list[Any]:
        """What of a voice makes a take stale when it changes."""
        if self.reference:
            return ["clip", self.reference, self.transcript]
        return ["own", self.round]


@dataclass(frozen=True)
class BookTake:
    """A take that was made for a segment; ``key`` says for which words in which voice (:meth:`Book.key`)."""

    take: str
    segment: int
    key: str
    number: int  # 0, 1, 2 ... for one key: its seed is that of the segment plus this
    verdict: str = "ok"  # "ok" | "warn" | "fail"
    seconds: float = 0.0
    reason: str = ""
    loudness: float | None = None  # LUFS; None for silence, and for takes of before this was kept
    likeness: float | None = None  # to the voice it is to have, 0..1; None: not compared
    faults: tuple[dict[str, Any], ...] = ()  # its checks that are not "ok" (studio.checks.Check.from_dict)


@dataclass(frozen=True)
class Book:
    """Everything about one project at one moment."""

    project: Project
    chapters: tuple[Chapter, ...]
    cast: dict[str, CastMember] = field(default_factory=dict)
    dictionary: Dictionary = Dictionary(())
    takes: dict[int, tuple[BookTake, ...]] = field(default_factory=dict)  # by segment, the oldest first
    _keys: dict[tuple, str] = field(default_factory=dict, repr=False, compare=False)  # known already

    @property
    def spoken(self) -> list[Segment]:
        return [segment for chapter in self.chapters for segment in chapter.spoken]

    def member(self, speaker: str) -> CastMember:
        """A speaker nobody was cast for speaks with the narrator's voice."""
        return self.cast.get(speaker) or self.cast.get(NARRATOR) or CastMember(NARRATOR)

    def voice(self, segment: Segment) -> str:
        """What names the voice that speaks a segment: all its takes have one level."""
        member = self.member(segment.speaker)
        return member.voice or member.reference or member.speaker

    def say(self, segment: Segment) -> str:
        """The words that are sent to the model."""
        return self.dictionary.say(words_to_say(segment.text))

    def control(self, segment: Segment) -> str:
        return segment.control or self.member(segment.speaker).control

    def key(self, segment: Segment) -> str:
        """Changes exactly when a take of this segment would have to be made anew."""
        place = (segment.text, segment.speaker, segment.control)
        if place not in self._keys:
            member, normalize = self.member(segment.speaker), self.project.settings.normalize
            wanted = [self.say(segment), member.identity(), self.control(segment), normalize]
            self._keys[place] = hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:32]
        return self._keys[place]

    def fitting(self, segment: Segment) -> list[BookTake]:
        """The takes of a segment for its present words and voice."""
        key = self.key(segment)
        return [take for take in self.takes.get(segment.id, ()) if take.key == key]

    def current(self, segment: Segment) -> BookTake | None:
        """The take that stands for a segment: the chosen one; the best fitting one when that is not, or no longer, it.

        For a stale segment it is the chosen take of before; None when there is no take at all.
        """
        takes = self.takes.get(segment.id, ())
        chosen = next((take for take in takes if take.take == segment.chosen), None)
        fitting = self.fitting(segment)
        if chosen in fitting or not fitting:
            return chosen or (takes[-1] if takes else None)
        return min(fitting, key=lambda take: (take.verdict == "fail", take.verdict == "warn", take.number))

    def state(self, segment: Segment) -> Literal["missing", "stale", "ready", "silent"]:
        if not segment.is_spoken:
            return "silent"
        current = self.current(segment)
        if current is None:
            return "missing"
        return "ready" if current.key == self.key(segment) else "stale"

    def seed(self, segment: Segment, number: int, same_for_all: bool = False) -> int:
        """Fixed for a segment. ``same_for_all``: for models that keep a voice by nothing but the seed."""
        wanted = [self.project.settings.seed, "" if same_for_all else segment.id]
        base = int.from_bytes(hashlib.sha256(json.dumps(wanted).encode()).digest()[:4], "big")
        return (base + number) % (MAX_SEED + 1)

    def estimate(self, segment: Segment) -> float:
        return estimated_seconds(self.say(segment))


def pauses_after(segments: Sequence[Segment], pauses: Pauses) -> dict[int, int]:
    """Spoken segment's id -> milliseconds of silence after it, within one chapter.

    What is asked for (on the segment, by a tag in it, or by a tag that stands alone after it) replaces the usual pause.
    """
    found: dict[int, int] = {}
    last: Segment | None = None
    asked: int | None = None
    scene = False
    for segment in segments:
        if segment.on and segment.kind == "scene":
            scene = True
        if not segment.on or not segment.is_spoken:
            own = segment.own_pause_ms if segment.on else None
            asked = asked if own is None else (asked or 0) + own
            continue
        if last is not None:
            found[last.id] = _usual(last, segment, scene, pauses) if asked is None else asked
        last, asked, scene = segment, segment.own_pause_ms, False
    if last is not None:
        found[last.id] = pauses.chapter if asked is None else asked
    return found


def _usual(segment: Segment, following: Segment, scene: bool, pauses: Pauses) -> int:
    if scene:
        return pauses.scene
    if segment.paragraph == following.paragraph:
        return pauses.sentence
    return pauses.heading if segment.kind == "heading" else pauses.paragraph

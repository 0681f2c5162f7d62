"""What a zip of a project holds beside its sound: the manifest's values, and how it is written and read.

mimetype          application/x-voxcpm-studio-book, stored first and unpacked: what the file is known by
manifest.json     everything of the book: texts, cast, dictionary, reviews, recipes of the takes
takes/<id>.wav    the sound of each take
clips/<hash>.wav  the clips that its voices speak with
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any, Literal

from studio.book.dictionary import Dictionary, Pronunciation
from studio.book.errors import BookError, ImportingError
from studio.book.manuscript import BlockKind, SectionKind
from studio.book.project import LONGEST_NOTE, MAX_SEED, CastMember, Review, Settings
from studio.book.strict_values import WrongValue, read_value
from studio.checks import Check
from studio.kept_clips import CLIP_HASH
from studio.takes import TakeRecord, is_take_id

FORMAT, VERSION = "voxcpm-studio-book", 1
MIMETYPE = b"application/x-voxcpm-studio-book"
MOST_BYTES = 96 * 2**20  # of the manifest
MOST_TAKES = 40_000

ChapterKind = Literal[SectionKind, "opening credits", "closing credits"]

_CHECK_NAME = re.compile(r"[a-z_]{1,40}")
_ENDINGS, _VERDICTS = ("stop", "limit", "cancelled", "error"), ("", "ok", "warn", "fail")
_MODES = ("plain", "design", "reference", "continuation", "reference+continuation")


@dataclass(frozen=True)
class StoredTake:
    """A take of a segment: its recipe, the hash of its file, and what the book knows of it."""

    recipe: TakeRecord
    sha256: str
    key: str
    number: int
    verdict: Literal["ok", "warn", "fail"]
    seconds: float
    reason: str = ""
    loudness: float | None = None
    likeness: float | None = None
    faults: tuple[Check, ...] = ()


@dataclass(frozen=True)
class StoredSegment:
    text: str
    kind: BlockKind = "text"
    on: bool = True
    paragraph: int = 0
    speaker: str = ""
    control: str = ""
    pause_ms: int | None = None
    locked: bool = False
    note: str = ""
    review: Review = "unreviewed"
    chosen: str = ""
    takes: tuple[StoredTake, ...] = ()


@dataclass(frozen=True)
class StoredChapter:
    title: str
    kind: ChapterKind = "chapter"
    on: bool = True
    segments: tuple[StoredSegment, ...] = ()


@dataclass(frozen=True)
class StoredAnchor:
    """The take that a described voice goes by."""

    speaker: str
    round: int
    take: str
    clip: str
    words: str


@dataclass(frozen=True)
class Parcel:
    """A whole project."""

    title: str
    author: str = ""
    language: str = ""
    source: str = ""
    words_in: int = 0
    settings: Settings = Settings()
    chapters: tuple[StoredChapter, ...] = ()
    cast: tuple[CastMember, ...] = ()
    words: tuple[Pronunciation, ...] = ()
    anchors: tuple[StoredAnchor, ...] = ()

    @property
    def takes(self) -> list[StoredTake]:
        return [take for chapter in self.chapters for segment in chapter.segments for take in segment.takes]

    @property
    def clips(self) -> set[str]:
        """Hashes of the clips that it cannot do without."""
        return {m.reference for m in self.cast if m.reference} | {anchor.clip for anchor in self.anchors}

    @property
    def recipe_clips(self) -> set[str]:
        """Those that takes were made with, for replays."""
        recipes = [take.recipe for take in self.takes]
        return {digest for r in recipes for digest in (r.reference_hash, r.prompt_hash) if digest}


def written(parcel: Parcel) -> bytes:
    """The manifest."""

    def plain(value: Any) -> Any:
        if isinstance(value, TakeRecord):
            return value.recipe() | {"session": ""}  # whose it is does not travel
        raise TypeError(f"{type(value)} is no part of a manifest")

    values = {name: getattr(parcel, name) for name in parcel.__dataclass_fields__}
    values["chapters"] = [_plain_chapter(chapter) for chapter in parcel.chapters]
    values |= {name: [asdict(one) for one in values[name]] for name in ("cast", "words", "anchors")}
    values["settings"] = asdict(parcel.settings)
    head = {"format": FORMAT, "version": VERSION}
    return json.dumps(head | values, ensure_ascii=False, default=plain).encode()


def _plain_chapter(chapter: StoredChapter) -> dict[str, Any]:
    segments = []
    for segment in chapter.segments:
        takes = [vars(take) | {"faults": [fault.as_dict() for fault in take.faults]} for take in segment.takes]
        segments.append(vars(segment) | {"takes": takes})
    return vars(chapter) | {"segments": segments}


def read(data: bytes) -> Parcel:
    """The manifest of a zip from a stranger. Raises ImportingError."""
    try:
        found = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ImportingError(f"The project's manifest is not readable JSON ({str(error)[:120]}).") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ImportingError("The manifest is not that of a project.")
    if found.get("version") != VERSION:
        raise ImportingError(
            f"The project has version {str(found.get('version'))[:20]}; this studio reads {VERSION}. Update it."
        )
    try:
        parcel = read_value(Parcel, found, "the project")
        _check(parcel)
    except (WrongValue, BookError, RecursionError) as error:
        raise ImportingError(f"The project's manifest is damaged: {str(error).rstrip('.')}.") from error
    return parcel


def _check(parcel: Parcel) -> None:
    """Values that have the right kind and must be right besides. Raises WrongValue and BookError."""
    parcel.settings.check()
    Dictionary(parcel.words)
    if len(parcel.takes) > MOST_TAKES:
        raise WrongValue(f"{len(parcel.takes)} takes are too many; {MOST_TAKES} are the most")
    ids = [take.recipe.id for take in parcel.takes]
    if len(set(ids)) < len(ids) or not all(map(is_take_id, ids)):
        raise WrongValue("the ids of its takes are not ids, or not unlike each other")
    for digest in parcel.clips | parcel.recipe_clips:
        if not CLIP_HASH.fullmatch(digest):
            raise WrongValue(f"{digest[:80]!r} does not name a clip")
    for anchor in parcel.anchors:
        if anchor.take not in ids:
            raise WrongValue("an anchor names a take that is not there")
    for take in parcel.takes:
        _check_take(take)
    for chapter in parcel.chapters:
        _check_chapter(chapter)


def _check_chapter(chapter: StoredChapter) -> None:
    for segment in chapter.segments:
        if not segment.text.strip() or not 0 <= segment.paragraph < 10**9:
            raise WrongValue(f"a segment of {chapter.title[:40]!r} has no text or an impossible paragraph")
        if segment.pause_ms is not None and not 0 <= segment.pause_ms <= 60_000:
            raise WrongValue(f"a pause of {segment.pause_ms} ms is not possible")
        if segment.chosen and segment.chosen not in {take.recipe.id for take in segment.takes}:
            raise WrongValue("a segment has chosen a take that is not its own")
        if len(segment.note) > LONGEST_NOTE or len(segment.speaker) > 60 or len(segment.control) > 500:
            raise WrongValue("a note, speaker or description is too long")


def _check_take(take: StoredTake) -> None:
    recipe = take.recipe
    if recipe.ended_by not in _ENDINGS or recipe.verdict not in _VERDICTS or recipe.mode not in _MODES:
        raise WrongValue(f"the take {recipe.id} has an ending, a verdict or a mode that does not exist")
    if not 0 <= recipe.seed <= MAX_SEED or not 0 <= take.number < 10**6:
        raise WrongValue(f"the take {recipe.id} has a seed or a number that is not possible")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", recipe.created):
        raise WrongValue(f"the take {recipe.id} says no time at which it was made")
    try:
        checks = [read_value(Check, check, "a check") for check in recipe.checks]
    except TypeError as error:
        raise WrongValue(f"the take {recipe.id} has checks that cannot be read") from error
    if not all(_CHECK_NAME.fullmatch(check.name) for check in (*checks, *take.faults)):
        raise WrongValue(f"the take {recipe.id} has a check without a name")

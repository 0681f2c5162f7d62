"""One saved voice, and the rules for its name, its tags and its texts."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any

from studio.database import StoreError
from studio.takes import readable

VOICE_ID = re.compile(r"voice-[0-9a-f]{16}")
NAME_CHARACTERS = 80
TAG_CHARACTERS, MOST_TAGS = 40, 20
MOST_CLIP_BYTES, MOST_CLIP_SECONDS = 64_000_000, 300.0
TEXT_CHARACTERS = 5000  # of a description or a transcript
# Avatars: the next one in turn. Dark enough for white letters.
COLOURS = ("#b4432f", "#9a5b13", "#6d6a12", "#3d7a2c", "#1d7a63", "#1f7391", "#3a63b8", "#6a52b3", "#96479b", "#b03a68")
BESIDE_THE_FACTS = frozenset({"session", "name", "tags"})  # what a voice's facts, which are written once, leave out


@dataclass(frozen=True)
class Voice:
    """One saved voice. Hashes are hex digits; ``audio_hash`` is the content hash that takes call reference_hash."""

    id: str
    name: str
    created: str  # UTC, ISO 8601 with milliseconds
    session: str  # whose voice it is: "local", or a hash
    description: str = ""  # what it was designed by, or words of its owner
    transcript: str = ""  # exactly what is heard in it; "" when that is not known
    seed: int | None = None
    recipe: dict[str, Any] = field(default_factory=dict)  # of the take it comes from
    colour: str = COLOURS[0]
    tags: tuple[str, ...] = ()
    file_name: str = ""
    file_hash: str = ""
    audio_hash: str = ""
    sample_rate: int = 0
    seconds: float = 0.0
    source: str = "clip"  # "design" | "take" | "clip" | "bundle"
    consent: bool | None = None  # whether its speaker agreed; None: nobody was asked, as for a designed voice
    clip_choices: dict[str, Any] = field(default_factory=dict)  # how a clip was trimmed or cleaned


def is_voice_id(value: object) -> bool:
    """Whether ``value`` looks like a voice's id; nothing with a separator, a dot or a drive letter does."""
    return isinstance(value, str) and VOICE_ID.fullmatch(value) is not None


def voice_name(name: str) -> str:
    """A name as it is kept: one line, single blanks. Raises StoreError for an empty or a long one."""
    kept = "".join(c if c.isprintable() else " " for c in unicodedata.normalize("NFC", readable(name or "")))
    kept = " ".join(kept.split())
    if not any(c.isalnum() for c in kept):
        raise StoreError("A voice needs a name with at least one letter or digit.")
    if len(kept) > NAME_CHARACTERS:
        raise StoreError(f"The name has {len(kept)} characters; {NAME_CHARACTERS} is the most. Choose a shorter one.")
    return kept


def clean_tags(tags: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Tags as they are kept: one line each, none twice. Raises StoreError for too many or too long ones."""
    lines = (" ".join("".join(c if c.isprintable() else " " for c in readable(tag)).split()) for tag in tags)
    kept = tuple(dict.fromkeys(tag for tag in lines if tag))
    if len(kept) > MOST_TAGS:
        raise StoreError(f"A voice has {MOST_TAGS} tags at most, not {len(kept)}.")
    long = next((tag for tag in kept if len(tag) > TAG_CHARACTERS), None)
    if long:
        raise StoreError(f"The tag “{long[:20]}…” has {len(long)} characters; {TAG_CHARACTERS} is the most.")
    return kept


def clean_text(text: str, what: str) -> str:
    """A description or a transcript as it is kept. Raises StoreError for a long one."""
    text = readable(text or "").replace("\0", "").strip()
    if len(text) > TEXT_CHARACTERS:
        raise StoreError(f"The {what} has {len(text)} characters; {TEXT_CHARACTERS} is the most. Shorten it.")
    return text

"""What every part of the page is handed: the objects of this process, and whose takes a visitor may see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import gradio as gr

from studio.store import Store
from studio.synthesizer import Synthesizer
from studio.takes import EVERYONE, TakeRecord, hidden_owner
from studio.transcription import DEFAULT_MODEL
from studio.ui.blind import BlindTakes
from studio.ui.chapters_books import Books
from studio.ui.cloning_media import ClipMedia
from studio.ui.media import Media
from studio.voices import VoiceLibrary


@dataclass(frozen=True)
class Context:
    """``shared`` is True when strangers may open the page: then every browser sees its own takes only.

    A browser is known by a random id that it keeps for itself (``owner``); nobody can list or guess another's. Takes
    are kept under a hash of it, so that nothing that is stored or shown can be used as an ``owner``.
    """

    synthesizer: Synthesizer
    store: Store
    media: Media
    shared: bool = False
    recogniser: str = DEFAULT_MODEL  # for transcripts: a Whisper size or a folder

    def session(self, owner: str | None, request: gr.Request | None = None) -> str:
        """The name under which a visitor's takes are stored."""
        if not self.shared:
            return EVERYONE
        known = owner if isinstance(owner, str) else None
        return hidden_owner(known or (request.session_hash if request else None) or "unknown")

    def visible(self, owner: str | None, request: gr.Request | None = None) -> str | None:
        """What to narrow the store's answers to; None shows everything."""
        return self.session(owner, request) if self.shared else None

    def take(self, take_id: str, owner: str | None, request: gr.Request | None = None) -> TakeRecord:
        """A take that this visitor may see. Raises StoreError for any other."""
        return self.store.take(take_id, session=self.visible(owner, request))

    @cached_property
    def blind(self) -> BlindTakes:
        return BlindTakes()

    @cached_property
    def clip_media(self) -> ClipMedia:
        return ClipMedia(self.store.clips)

    @cached_property
    def books(self) -> Books:
        return Books(self.store, self.synthesizer)

    @property
    def voices(self) -> VoiceLibrary:
        return self.synthesizer.voices

    def voice_names(self, owner: str | None, request: gr.Request | None = None) -> dict[str, str]:
        """The visitor's saved voices: id to name, in the order of the names."""
        return {voice.id: voice.name for voice in self.voices.voices(session=self.visible(owner, request))}

"""Takes in their place, made when the browser asks for one: the tail of what comes before, the take, what follows."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from studio.book.context import LONGEST_PAUSE, in_context
from studio.book.library import Library
from studio.book.project import Book, Segment, pauses_after
from studio.book.review import Line
from studio.book.word_times import times_of
from studio.layout import Word
from voxcpm_core.audio import wav_bytes
from voxcpm_core.errors import VoxCPMError

PREFIX = "studio/context"
REACH = 3.0  # seconds of the neighbours
PRIVATE = {"Cache-Control": "private, max-age=60"}


@dataclass(frozen=True)
class Place:
    """Where a take in its place is fetched, how long it is, and from when to when the take itself is heard."""

    address: str
    seconds: float
    start: float
    end: float


class Sounds:
    """Writes signed addresses and answers them. One per process."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._key = secrets.token_bytes(32)

    def place(self, book: Book, line: Line) -> Place:
        """Worked out from the lengths that are known; the sound itself is made when it is fetched."""
        chapter = next(one for one in book.chapters if one.id == line.chapter)
        pauses, spoken = pauses_after(chapter.segments, book.project.settings.pauses), chapter.spoken
        here = next(number for number, one in enumerate(spoken) if one.id == line.segment)
        before = self._beside(book, spoken[here - 1], pauses) if here else 0.0
        after = self._beside(book, spoken[here + 1], pauses, line.segment) if here + 1 < len(spoken) else 0.0
        signature = self._signature(line.segment, line.take)
        address = f"{PREFIX}/{line.segment}/{line.take}/{signature}.wav?{before:.2f}-{after:.2f}"
        return Place(address, before + line.seconds + after, before, before + line.seconds)

    def words(self, line: Line) -> tuple[Word, ...]:
        """When each word of the take that is heard is said, where a recogniser has listened to it."""
        return times_of(self._library, line.take, line.text) if line.take else ()

    def _beside(self, book: Book, other: Segment, pauses: dict[int, int], first: int = 0) -> float:
        """Seconds that a neighbour and the pause towards it take."""
        take = book.current(other)
        pause = min(LONGEST_PAUSE, pauses.get(first or other.id, 0) / 1000)
        return pause + (min(REACH, take.seconds) if take else 0.0)

    def routes(self) -> list[Route]:
        """For ``launch(app_kwargs={"routes": ...})``."""
        return [Route(f"/{PREFIX}/{{segment:int}}/{{take}}/{{signature}}.wav", self._answer, methods=["GET", "HEAD"])]

    def _signature(self, segment: int, take: str) -> str:
        return hmac.new(self._key, f"{segment}/{take}".encode(), hashlib.sha256).hexdigest()[:32]

    async def _answer(self, request: Request) -> Response:
        place = request.path_params
        wanted = self._signature(place["segment"], place["take"])
        if not hmac.compare_digest(wanted.encode(), place["signature"].encode()):
            return PlainTextResponse("This address is not valid (any more). Reload the page.", 403)
        try:
            found = await run_in_threadpool(in_context, self._library, place["segment"], place["take"], REACH, REACH)
        except VoxCPMError as error:
            return PlainTextResponse(str(error), 404)
        sound = wav_bytes(found.audio.samples, found.audio.sample_rate)
        return Response(sound, media_type="audio/wav", headers=PRIVATE)

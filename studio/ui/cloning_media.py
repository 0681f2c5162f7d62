"""Sound of clips for the browser, under signed addresses that only the visitor's own page is told."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from studio.kept_clips import KeptClips
from studio.store import StoreError
from studio.ui.media import NOT_VALID, PRIVATE

PREFIX = "studio/clip"


class ClipMedia:
    """Writes addresses of kept clips and answers them. The key lives as long as the process."""

    def __init__(self, clips: KeptClips) -> None:
        self._clips = clips
        self._key = secrets.token_bytes(32)

    def address(self, digest: str) -> str:
        """Address of a clip's sound, relative to the page."""
        return f"{PREFIX}/{digest}/{self._signature(digest)}/sound"

    def routes(self) -> list[Route]:
        return [Route(f"/{PREFIX}/{{digest}}/{{signature}}/sound", self._answer, methods=["GET", "HEAD"])]

    def _signature(self, digest: str) -> str:
        return hmac.new(self._key, digest.encode(), hashlib.sha256).hexdigest()[:32]

    def _answer(self, request: Request) -> Response:
        digest, signature = request.path_params["digest"], request.path_params["signature"]
        if not hmac.compare_digest(self._signature(digest).encode(), signature.encode()):
            return PlainTextResponse(NOT_VALID, 403)
        try:
            path = self._clips.path(digest)
        except StoreError as error:
            return PlainTextResponse(str(error), 404)
        if not path.is_file():
            return PlainTextResponse("This clip is no longer there.", 404)
        return FileResponse(path, media_type="audio/wav", headers=PRIVATE)

"""Who may reach the studio: addresses of this machine, and the check that a browser meant this machine."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

HOST_HEADER = re.compile(r"(?P<name>\[[0-9A-Fa-f:]+\]|[\w.-]+)(:[0-9]{1,5})?")


def is_local(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """The name in a Host header: "localhost:7860" -> "localhost", "[::1]:7860" -> "::1", "" for anything odd."""
    found = HOST_HEADER.fullmatch(header)
    return found["name"].strip("[]") if found else ""


class OnlyThisMachine:
    """Answers only requests that name this machine (ASGI middleware).

    A page of a stranger can make its own name point to 127.0.0.1 and would then be let in by the browser as if it were
    the studio's own page. The name stays in the Host header.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            header = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
            if not is_local(host_of(header)):
                said = "This studio answers to localhost and 127.0.0.1 only. For others, start it with another --host."
                return await PlainTextResponse(said, 403)(scope, receive, send)
        await self._app(scope, receive, send)

"""How the page's events run: the options that all rooms share."""

from __future__ import annotations

from typing import Any

SPEAKERS = 8  # visitors who may speak at once: the engine makes their takes in one batch
PROGRAMS = 4  # programs that may, beside them: they cannot take the visitors' places
POLL_SECONDS = 0.5  # how often a page asks for the model while it loads
QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
SETTLE: dict[str, Any] = {"fn": None, "js": "() => {}", **QUIET}
# What speaks on behalf of a visitor.
RUNNING: dict[str, Any] = {
    "concurrency_limit": SPEAKERS,
    "concurrency_id": "speak",
    "trigger_mode": "multiple",  # one that was withdrawn may still stand in the queue
    "show_progress": "hidden",
    "api_visibility": "private",
}

"""Tickets: what stands for a run while its turn has not come, so that Stop can withdraw it."""

from __future__ import annotations

import uuid

PREFIX = "waiting-"


class Tickets:
    """Made by the click, given to the run. One that was withdrawn in between is told so, once."""

    def __init__(self) -> None:
        self._withdrawn: set[str] = set()

    def new(self) -> str:
        return f"{PREFIX}{uuid.uuid4().hex}"

    def withdraw(self, job: str | None) -> bool:
        """Whether ``job`` is a ticket, and so can be withdrawn: the run is not to begin."""
        found = isinstance(job, str) and job.startswith(PREFIX)
        if found:
            self._withdrawn.add(job)
        return found

    def is_withdrawn(self, ticket: str | None) -> bool:
        """Whether this run was stopped before it began. A ticket is good for one answer."""
        found = ticket in self._withdrawn
        self._withdrawn.discard(ticket or "")
        return found

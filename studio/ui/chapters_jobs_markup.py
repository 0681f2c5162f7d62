"""Render jobs as HTML: how far, how fast, how long still, and how to stop."""

from __future__ import annotations

from html import escape

from studio.book.jobs import JobStatus
from studio.book.project import Book
from studio.ui.chapters_ask import Ask, press, progress_bar
from studio.ui.markup import icon, number, state_mark, tag

MARKS = {
    "queued": "waiting",
    "running": "speaking",
    "paused": "cancelled",
    "done": "stop",
    "incomplete": "limit",
    "cancelled": "cancelled",
}
FAILURES_SHOWN = 20


def job_strip(status: JobStatus, book: Book, ask: Ask, whole: bool = False) -> str:
    """One job. ``whole``: with what could not be made, by name; else a line for the top of the page."""
    is_alive = status.state in ("queued", "running")
    failures = _failures(status, book, ask) if whole else ""
    return tag(
        "section",
        state_mark(MARKS[status.state], ask.say(f"chapters_job_{status.state}")),
        _bar(status, ask),
        tag("span", *_facts(status, ask), class_="vx-ch-facts vx-num"),
        tag("span", *_buttons(status, ask), class_="vx-ch-tools"),
        tag("p", escape(status.message), class_="vx-ch-message") if status.message else "",
        failures,
        class_=f"vx-ch-job is-{status.state}",
        data_poll="1" if is_alive else None,
        aria_label=ask.say("chapters_job"),
    )


def _bar(status: JobStatus, ask: Ask) -> str:
    total = max(status.tally.total, 1)
    share = min(100, round(100 * status.done / total))
    return progress_bar(share, ask.say("chapters_job"))


def _facts(status: JobStatus, ask: Ask) -> list[str]:
    tally = status.tally
    facts = [tag("span", number(str(status.done)), " / ", str(tally.total), " ", ask.say("chapters_segments"))]
    if tally.takes_made and tally.speed:
        facts.append(tag("span", number(f"{tally.speed:.2f}"), ask.say("chapters_job_speed")))
    if status.state == "running" and tally.eta_seconds is not None:
        facts.append(tag("span", ask.say("chapters_job_left", time=clock(tally.eta_seconds))))
    if status.failures:
        facts.append(tag("span", icon("triangle"), ask.say("chapters_job_failed", count=len(status.failures))))
    return facts


def _buttons(status: JobStatus, ask: Ask) -> list[str]:
    found = []
    if status.state in ("queued", "running"):
        found.append(("pause", "pause"))
    if status.state in ("paused", "incomplete", "cancelled"):
        found.append(("resume", "play"))
    if status.state in ("queued", "running", "paused"):
        found.append(("cancel", "square"))
    return [
        press(
            f"job.{name}",
            ask.say(f"chapters_job_{name}"),
            icon(shape),
            ask.say(f"chapters_job_{name}"),
            data_job=status.id,
        )
        for name, shape in found
    ]


def _failures(status: JobStatus, book: Book, ask: Ask) -> str:
    if not status.failures:
        return ""
    texts = {segment.id: segment.text for segment in book.spoken}
    lines = [
        tag("li", tag("b", escape(texts.get(segment, "")[:80])), ": ", escape(message))
        for segment, message in list(status.failures.items())[:FAILURES_SHOWN]
    ]
    more = len(status.failures) - FAILURES_SHOWN
    if more > 0:
        lines.append(tag("li", ask.say("chapters_more", count=more)))
    return tag("ul", *lines, class_="vx-ch-failures")


def clock(seconds: float) -> str:
    """0:34, 12:05 or 3:10:00."""
    whole = max(0, round(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"

"""Rendering in the Chapters tab: what is to be made, and the jobs that make it. A job lives in the app."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from studio.book.errors import BookError
from studio.book.plan import MOST_TAKES, Order, flagged, in_scope, needs
from studio.book.project import Book
from studio.ui.chapters_ask import Answer, Ask, press, told, whole
from studio.ui.chapters_desk import ACTIVE, Desk
from studio.ui.chapters_jobs_markup import clock, job_strip
from studio.ui.markup import icon, number, tag

SCOPES = ("book", "chapter", "flagged")
RETRIES = (0, 1, 2, 3, 5)
SHOWN = 6  # jobs


class RenderDesk:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.actions: dict[str, Callable[[Ask], Answer]] = {
            "render.choose": self.choose,
            "render.start": self.start,
            "job.pause": self.pause,
            "job.resume": self.resume,
            "job.cancel": self.cancel,
        }

    def draw(self, ask: Ask, book: Book) -> Answer:
        form = _form(ask, book, self._wish(ask))
        jobs = tag("div", self._jobs(ask, book), data_part="jobs")
        return Answer({"body": tag("div", form, jobs, class_="vx-ch-render")})

    def follow(self, ask: Ask, book: Book) -> Answer:
        head = self._desk.head(ask, book, "render")
        return Answer({"jobs": self._jobs(ask, book), "head": head, "lacking": _lacking(ask, book, self._wish(ask))})

    def choose(self, ask: Ask) -> Answer:
        """The choices are kept in the browser; what they come to is counted anew."""
        wish = _chosen(ask)
        return Answer({"lacking": _lacking(ask, self._desk.book(ask), wish)}, {"render": wish})

    def start(self, ask: Ask) -> Answer:
        book, wish = self._desk.book(ask), _chosen(ask)
        order = _order(book, wish, self._rows())
        if not needs(book, order):
            raise BookError(ask.say("chapters_render_nothing"))
        self._desk.queue.submit(book.project.id, order)
        return self._again(ask) | Answer(view={"render": wish})

    def pause(self, ask: Ask) -> Answer:
        self._desk.queue.pause(self._job(ask))
        return self._again(ask)

    def resume(self, ask: Ask) -> Answer:
        self._desk.queue.resume(self._job(ask))
        return self._again(ask)

    def cancel(self, ask: Ask) -> Answer:
        self._desk.queue.cancel(self._job(ask))
        return self._again(ask) | told("info", ask.say("chapters_job_cancelled_info"))

    def _rows(self) -> int:
        """How many segments at once: one less than the model takes, so that others find a place too."""
        return 15 if self._desk.context.synthesizer.status.device.startswith("cuda") else 7

    def _job(self, ask: Ask) -> int:
        """The job that is meant. Raises BookError for one of another visitor's book."""
        job = ask.number("job")
        self._desk.project(ask, self._desk.queue.status(job).project)
        return job

    def _again(self, ask: Ask) -> Answer:
        """Jobs can be stopped from every step: only what tells of them is written anew."""
        book, step = self._desk.book(ask), ask.looking_at("step")
        answer = Answer({"head": self._desk.head(ask, book, step), "job": self._desk.job(ask, book)})
        return answer | Answer({"jobs": self._jobs(ask, book)})

    def _wish(self, ask: Ask) -> dict[str, Any]:
        kept = ask.view.get("render")
        return kept if isinstance(kept, dict) else {}

    def _jobs(self, ask: Ask, book: Book) -> str:
        """The job that runs, and a line on each of those before it."""
        jobs = self._desk.queue.jobs(book.project.id, most=SHOWN)
        if not jobs:
            return tag("p", ask.say("chapters_no_jobs"), class_="vx-none")
        alive = [job for job in jobs if job.state in ACTIVE]
        shown = alive or jobs[:1]
        earlier = [job for job in jobs if job not in shown]
        now = [job_strip(job, book, ask, whole=True) for job in reversed(shown)]
        before = [job_strip(job, book, ask, whole=True) for job in earlier]
        title = tag("h3", ask.say("chapters_earlier_jobs")) if before else ""
        return "".join([*now, title, *before])


def _chosen(ask: Ask) -> dict[str, Any]:
    scope = ask.text("scope")
    return {
        "scope": scope if scope in SCOPES else SCOPES[0],
        "chapter": ask.number("within", 0),
        "takes": min(max(ask.number("takes", 1), 1), MOST_TAKES),
        "retries": min(max(ask.number("retries", 2), 0), max(RETRIES)),
    }


def _order(book: Book, wish: dict[str, Any], rows: int = 7) -> Order:
    """Raises BookError when nothing is flagged."""
    takes, retries = whole(wish.get("takes"), 1), whole(wish.get("retries"), 2)
    if wish.get("scope") == "flagged":
        return flagged(book)
    chapters = (whole(wish.get("chapter"), 0),) if wish.get("scope") == "chapter" else ()
    return Order(takes, retries, rows, chapters)


def _lacking(ask: Ask, book: Book, wish: dict[str, Any]) -> str:
    """How much there is to be made."""
    try:
        order = _order(book, wish)
    except BookError as error:
        return tag("p", icon("info"), escape(str(error)), class_="vx-ch-lacking")
    missing = needs(book, order)
    seconds = sum(need.estimate * need.count for need in missing)
    takes = sum(need.count for need in missing)
    said = ask.say("chapters_render_takes", takes=takes, segments=len(missing), time=clock(seconds))
    if not missing:
        said = ask.say("chapters_render_complete", count=len(in_scope(book, order)))
    return tag("p", icon("info" if missing else "check"), tag("span", escape(said)), class_="vx-ch-lacking vx-num")


def _form(ask: Ask, book: Book, wish: dict[str, Any]) -> str:
    scope, chapter = wish.get("scope", SCOPES[0]), wish.get("chapter") or ask.view.get("chapter")
    data = {"data_ch": "render.choose"}
    scopes = [_radio(ask, "scope", name, ask.say(f"chapters_scope_{name}"), scope == name, data) for name in SCOPES]
    options = [
        tag(
            "option",
            escape(one.title or ask.say("chapters_untitled")),
            value=one.id,
            selected=True if one.id == chapter else None,
        )
        for one in book.chapters
        if one.on
    ]
    within = tag("select", *options, name_="within", aria_label=ask.say("chapters_scope_chapter"), **data)
    takes = [
        _radio(ask, "takes", str(count), number(str(count)), whole(wish.get("takes"), 1) == count, data)
        for count in range(1, MOST_TAKES + 1)
    ]
    retries = [
        tag("option", str(count), value=count, selected=True if whole(wish.get("retries"), 2) == count else None)
        for count in RETRIES
    ]
    start = press(
        "render.start",
        ask.say("chapters_render_start"),
        icon("play"),
        ask.say("chapters_render_start"),
        class_="vx-link is-main is-primary vx-go",
    )
    return tag(
        "section",
        tag("h3", ask.say("chapters_step_render")),
        tag("p", ask.say("chapters_render_info"), class_="vx-ch-hint"),
        _group(ask.say("chapters_scope"), *scopes, within),
        _group(ask.say("chapters_takes"), *takes, tag("span", ask.say("chapters_takes_info"), class_="vx-ch-hint")),
        _group(
            ask.say("chapters_retries"),
            tag("select", *retries, name_="retries", aria_label=ask.say("chapters_retries"), **data),
        ),
        tag("div", _lacking(ask, book, wish), data_part="lacking"),
        tag("div", start, class_="vx-ch-tools"),
        class_="vx-ch-form",
        data_form=True,
    )


def _group(title: str, *fields: str) -> str:
    return tag("fieldset", tag("legend", title), *fields)


def _radio(ask: Ask, name: str, value: str, words: str, on: bool, data: dict[str, str]) -> str:
    field = tag("input", type="radio", name_=name, value=value, checked=True if on else None, **data)
    return tag("label", field, words, class_="vx-ch-radio")

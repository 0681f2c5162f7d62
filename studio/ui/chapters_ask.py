"""One click in the Chapters tab and its answer.

The tab is a frame whose regions ("parts") are written anew one by one: a press sends what was pressed, the fields
around it and what the browser looks at (an :class:`Ask`); the :class:`Answer` brings the parts that have changed, and
what the browser looks at from now on. assets/studio-chapters.js is the other end.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from studio.book.errors import BookError
from studio.ui.i18n import say
from studio.ui.markup import icon, tag

PARTS = ("notice", "head", "job", "body", "table", "detail")
STEPS = ("text", "cast", "render", "review", "export")
LONGEST_FIELD = 30_000_000  # characters: a pasted book


@dataclass(frozen=True)
class Ask:
    """What was pressed (``do``), with which fields (``data``), while the browser looked at ``view``.

    ``session`` is under whom things are stored; ``seen`` narrows what may be read (None: everything).
    """

    do: str
    data: Mapping[str, Any] = field(default_factory=dict)
    view: Mapping[str, Any] = field(default_factory=dict)
    language: str = "en"
    session: str = "local"
    seen: str | None = None

    def text(self, name: str, otherwise: str = "") -> str:
        value = self.data.get(name)
        return str(value)[:LONGEST_FIELD] if isinstance(value, (str, int, float)) else otherwise

    def number(self, name: str, otherwise: int | None = None) -> int:
        """A whole number of the fields, else of the view. Raises BookError when there is none."""
        return whole(self.data.get(name, self.view.get(name)), otherwise)

    def numbers(self, name: str) -> list[int]:
        """The ticked boxes of one name."""
        value = self.data.get(name)
        values = value if isinstance(value, list) else [value] if value not in (None, "", False) else []
        return [whole(one) for one in values]

    def ticked(self, name: str) -> bool:
        return self.data.get(name) in (True, "true", "on", "1")

    def looking_at(self, name: str, otherwise: str = "") -> str:
        value = self.view.get(name)
        return str(value) if isinstance(value, (str, int, float)) else otherwise

    def say(self, key: str, **values: object) -> str:
        return say(self.language, key, **values)


def whole(value: object, otherwise: int | None = None) -> int:
    try:
        return int(float(str(value)))
    except (ValueError, OverflowError):
        if otherwise is None:
            raise BookError("The page has sent something that is no number. Reload it.") from None
        return otherwise


@dataclass
class Answer:
    """Parts by name, as HTML; what is not named stays. ``view`` is merged into what the browser keeps.

    ``takes``: (ids for the lanes of the take-picker, lane of the chosen one or None); None leaves the picker alone.
    ``more`` is data for the script.
    """

    parts: dict[str, str] = field(default_factory=dict)
    view: dict[str, Any] = field(default_factory=dict)
    takes: tuple[Sequence[str], int | None] | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def __or__(self, other: Answer) -> Answer:
        """Both; the other one's word counts."""
        takes = self.takes if other.takes is None else other.takes
        return Answer(self.parts | other.parts, self.view | other.view, takes, self.more | other.more)

    def html(self, serial: str) -> str:
        """What travels: an element that shows nothing, with all of it in one attribute.

        ``serial`` is the number of the question; an answer that nobody asked for gets a new one of its own.
        """
        said = {"serial": serial or f"unasked-{secrets.token_hex(6)}", "parts": self.parts, "view": self.view}
        return tag("i", hidden=True, class_="vx-ch-answer", data_said=json.dumps(said | self.more, ensure_ascii=False))


def told(kind: str, sentence: str, *more: str) -> Answer:
    """A sentence above everything; ``more`` is HTML behind it. "" takes it away."""
    return Answer({"notice": notice(kind, sentence, *more)})


def notice(kind: str, sentence: str, *more: str) -> str:
    """``sentence`` is plain text; kind: "info", "warning" or "error"."""
    if not sentence:
        return ""
    shape = {"info": "info", "warning": "triangle", "error": "cross"}[kind]
    role = "alert" if kind == "error" else "status"
    return tag("div", icon(shape), words(sentence), *more, class_=f"vx-notice is-{kind}", role=role)


def words(text: str, **attributes: object) -> str:
    return tag("span", escaped(text), **attributes)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def press(do: str, title: str, *children: str, class_: str = "vx-link", **data: object) -> str:
    """A button that asks: ``data_...`` are sent along, beside the fields of the nearest ``data-form``."""
    shows_words = any(">" not in child for child in children)
    return tag(
        "button",
        *children,
        type="button",
        class_=class_,
        title=title,
        aria_label=None if shows_words else title,
        data_ch=do,
        **data,
    )


def tick_box(do: str, title: str, is_on: bool, **data: object) -> str:
    """A box that is pressed to switch something on or off; what is pressed is told in the field ``on``."""
    state = True if is_on else None
    box = tag("input", type="checkbox", name_="on", checked=state, data_ch=do, aria_label=title, **data)
    return tag("label", box, class_="vx-tickbox")


def progress_bar(percent: int, title: str) -> str:
    """How far something is, 0 to 100; ``title`` is what a screen reader calls it."""
    scale = {"aria_valuemin": 0, "aria_valuemax": 100, "aria_valuenow": percent}
    filled = tag("span", style=f"width:{percent}%")
    return tag("div", filled, class_="vx-bar", role="progressbar", aria_label=title, **scale)

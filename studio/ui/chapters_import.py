"""From a file or a pasted text to a book: the import is looked at first, section by section."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path

from studio.book import manuscript as edits
from studio.book.errors import BookError
from studio.book.importing import read_book, read_text
from studio.book.manuscript import Section
from studio.book.parcel import is_parcel, unpack
from studio.book.project import Settings
from studio.book.script import Limits
from studio.ui.chapters_ask import Answer, Ask, press, tick_box, told
from studio.ui.chapters_books import Draft
from studio.ui.chapters_desk import Desk, need
from studio.ui.markup import icon, number, tag

ACCEPTED = ".txt,.text,.md,.markdown,.epub,.docx,.zip"
BLOCKS_SHOWN = 300


class ImportDesk:
    def __init__(self, desk: Desk) -> None:
        self._desk, self._drafts = desk, desk.books.drafts
        self.actions: dict[str, Callable[[Ask], Answer]] = {
            "import.sample": self.sample,
            "import.text": self.paste,
            "import.file": self.file,
            "upload.failed": self.failed,
            "import.tick": self.tick,
            "import.block": self.block,
            "import.rename": self.rename,
            "import.merge": self.merge,
            "import.move": self.move,
            "import.split": self.split,
            "import.look": self.look,
            "import.create": self.create,
        }

    # ---- in

    def sample(self, ask: Ask) -> Answer:
        return Answer({"body": new_book(ask, ask.say("chapters_sample_text"), ask.say("chapters_sample_title"))})

    def paste(self, ask: Ask) -> Answer:
        text = need(ask.text("text"), ask.say("chapters_paste_first"))
        found = read_text(text, " ".join(ask.text("title").split())[:200], is_markdown=text.lstrip().startswith("#"))
        return self._preview(ask, self._drafts.add(found, "", ask.session))

    def file(self, ask: Ask) -> Answer:
        """A file that the browser has sent: a book to be looked at, or one of ours that was packed into a zip."""
        path, name = uploaded(ask), ask.text("file")
        try:
            if is_parcel(path):
                return self._opened(unpack(self._desk.library, path, ask.session).id)
            found = read_book(path)
        finally:
            path.unlink(missing_ok=True)
        title = " ".join(ask.text("title").split())[:200]
        return self._preview(ask, self._drafts.add(replace(found, title=title) if title else found, name, ask.session))

    def failed(self, ask: Ask) -> Answer:
        return told("error", ask.say("chapters_upload_failed", name=ask.text("file")[:80], why=ask.text("why")[:200]))

    # ---- looked at

    def tick(self, ask: Ask) -> Answer:
        return self._changed(ask, lambda all_: edits.switch(all_, ask.number("index"), ask.ticked("on")))

    def block(self, ask: Ask) -> Answer:
        return self._changed(
            ask, lambda all_: edits.switch_block(all_, ask.number("index"), ask.number("block"), ask.ticked("on"))
        )

    def rename(self, ask: Ask) -> Answer:
        return self._changed(ask, lambda all_: edits.rename(all_, ask.number("index"), ask.text("title")))

    def merge(self, ask: Ask) -> Answer:
        return self._changed(ask, lambda all_: edits.merge(all_, ask.number("index")))

    def move(self, ask: Ask) -> Answer:
        return self._changed(ask, lambda all_: edits.move(all_, ask.number("index"), ask.number("to")))

    def split(self, ask: Ask) -> Answer:
        return self._changed(ask, lambda all_: edits.split(all_, ask.number("index"), ask.number("block")))

    def look(self, ask: Ask) -> Answer:
        """Unfold one section, or fold it again."""
        index = ask.number("index")
        folded = ask.number("section", -1) == index if "section" in ask.view else False
        return self._preview(ask, self._draft(ask), -1 if folded else index)

    def _changed(self, ask: Ask, edit: Callable[[list[Section]], list[Section]]) -> Answer:
        draft = self._drafts.change(ask.looking_at("draft"), ask.session, edit)
        return self._preview(ask, draft, ask.number("section", -1) if "section" in ask.view else -1)

    def _draft(self, ask: Ask) -> Draft:
        return self._drafts.get(ask.looking_at("draft"), ask.session)

    # ---- kept

    def create(self, ask: Ask) -> Answer:
        """The book, cut into segments; every word of the file is in it, on or off."""
        draft = self._draft(ask)
        settings = Settings(
            Limits(ask.number("characters", 400), ask.number("seconds", 22)), seed=secrets.randbelow(2**32)
        )
        made = replace(draft.manuscript, author=ask.text("author")[:200])
        title = need(ask.text("title"), ask.say("chapters_title_first"))
        project = self._desk.library.create(made, title, settings, ask.session, draft.source)
        self._drafts.drop(draft.token)
        return self._opened(project.id)

    @staticmethod
    def _opened(project: int) -> Answer:
        """The browser asks for the text of the new book next."""
        view = {"book": project, "step": "text", "draft": "", "segment": 0, "chapter": 0, "section": -1}
        return Answer(view=view, more={"next": "open"})

    # ---- markup

    def _preview(self, ask: Ask, draft: Draft, unfolded: int = -1) -> Answer:
        found = draft.manuscript
        rows = [
            _section(ask, index, section, len(found.sections), index == unfolded)
            for index, section in enumerate(found.sections)
        ]
        notes = (
            tag("ul", *(tag("li", escape(note)) for note in found.notes), class_="vx-ch-notes") if found.notes else ""
        )
        body = tag(
            "div",
            _preview_head(ask, draft),
            notes,
            _words_counted(ask, found.words, found.all_words),
            tag("ol", *rows, class_="vx-ch-sections", data_keep="sections"),
            class_="vx-ch-preview",
        )
        parts = {"head": "", "job": "", "body": body, "table": "", "detail": ""}
        return Answer(parts, {"step": "preview", "draft": draft.token, "section": unfolded, "book": 0})


def uploaded(ask: Ask) -> Path:
    """Where gradio has put a file that this browser sent. Raises BookError for any other place."""
    folder = Path(os.environ.get("GRADIO_TEMP_DIR") or Path(tempfile.gettempdir(), "gradio")).resolve()
    path = Path(ask.text("path")).resolve()
    if folder not in path.parents or not path.is_file():
        raise BookError(ask.say("chapters_upload_gone"))
    return path


def new_book(ask: Ask, text: str = "", title: str = "") -> str:
    """The form for a new book."""
    choose = tag("input", type="file", id="vx-ch-file", accept=ACCEPTED, data_upload="import.file", hidden=True)
    return tag(
        "section",
        tag("h2", ask.say("chapters_new")),
        tag("p", ask.say("chapters_new_info"), class_="vx-ch-hint"),
        _field(ask, "title", "chapters_title", title, "chapters_title_hint"),
        tag(
            "textarea",
            escape(text),
            name_="text",
            rows=9,
            placeholder=ask.say("chapters_paste_hint"),
            aria_label=ask.say("chapters_paste"),
        ),
        tag(
            "div",
            press(
                "import.text",
                ask.say("chapters_import_text"),
                ask.say("chapters_import_text"),
                class_="vx-link is-main is-primary",
            ),
            tag(
                "button",
                icon("upload"),
                ask.say("chapters_choose_file"),
                type="button",
                class_="vx-link",
                data_pick_file="#vx-ch-file",
            ),
            press("import.sample", ask.say("chapters_sample"), ask.say("chapters_sample")),
            choose,
            class_="vx-ch-tools",
        ),
        class_="vx-ch-new",
        data_form=True,
        data_drop="#vx-ch-file",
    )


def _preview_head(ask: Ask, draft: Draft) -> str:
    found = draft.manuscript
    create = press(
        "import.create",
        ask.say("chapters_create"),
        icon("check"),
        ask.say("chapters_create"),
        class_="vx-link is-main is-primary",
    )
    limits = Limits()
    fields = [
        _field(ask, "title", "chapters_title", found.title),
        _field(ask, "author", "chapters_author", found.author),
        _number(ask, "characters", "chapters_limit_characters", limits.characters, 20, 2000),
        _number(ask, "seconds", "chapters_limit_seconds", round(limits.seconds), 4, 60),
    ]
    back = press("shelf", ask.say("chapters_shelf"), icon("page-newer"), ask.say("chapters_shelf"), class_="vx-quiet")
    head = tag(
        "header", back, tag("h2", ask.say("chapters_preview")), tag("span", escape(draft.source), class_="vx-ch-hint")
    )
    return tag(
        "section",
        head,
        tag("div", *fields, tag("span", create), class_="vx-ch-fields"),
        class_="vx-ch-create",
        data_form=True,
    )


def _field(ask: Ask, name: str, label: str, value: str, hint: str = "") -> str:
    placeholder = ask.say(hint) if hint else None
    return tag(
        "label",
        tag("span", ask.say(label)),
        tag("input", type="text", name_=name, value=value, maxlength=200, placeholder=placeholder),
        class_="vx-ch-field",
    )


def _number(ask: Ask, name: str, label: str, value: int, least: int, most: int) -> str:
    field = tag("input", type="number", name_=name, value=value, min=least, max=most, step=1)
    return tag("label", tag("span", ask.say(label)), field, class_="vx-ch-field is-short")


def _words_counted(ask: Ask, spoken: int, everything: int) -> str:
    return tag("p", *words_equation(ask, everything, spoken, everything - spoken), class_="vx-ch-words vx-num")


def words_equation(ask: Ask, everything: int, spoken: int, silent: int) -> list[str]:
    """Words in = words spoken + words left out, with a mark that says whether that is so."""
    good = everything == spoken + silent
    mark = tag("span", icon("check" if good else "cross"), class_=f"vx-check is-{'ok' if good else 'fail'}")
    said = ask.say("chapters_equation", all=f"{everything:,}", spoken=f"{spoken:,}", silent=f"{silent:,}")
    return [mark, tag("span", escape(said))]


def _section(ask: Ask, index: int, section: Section, count: int, unfolded: bool) -> str:
    title = section.title or ask.say("chapters_untitled")
    data = {"data_index": index}
    tick = tick_box("import.tick", title, section.on, **data)
    name = tag(
        "input",
        type="text",
        name_="title",
        value=section.title,
        maxlength=200,
        data_ch="import.rename",
        aria_label=ask.say("chapters_title"),
        **data,
    )
    kind = tag("span", ask.say(f"chapters_kind_{section.kind.replace(' ', '_')}"), class_="vx-fact")
    words = tag(
        "span", number(f"{section.words:,}"), f" / {section.all_words:,} ", ask.say("chapters_words"), class_="vx-num"
    )
    tools = [
        _tool(ask, "import.look", "fold" if not unfolded else "unfold", "chapters_look", **data),
        _tool(ask, "import.move", "up", "chapters_up", disabled=None if index else True, data_to=index - 1, **data),
        _tool(
            ask,
            "import.move",
            "down",
            "chapters_down",
            disabled=None if index + 1 < count else True,
            data_to=index + 1,
            **data,
        ),
        _tool(ask, "import.merge", "merge", "chapters_merge", disabled=None if index + 1 < count else True, **data),
    ]
    blocks = _blocks(ask, index, section) if unfolded else ""
    return tag(
        "li",
        tag(
            "div",
            tick,
            name,
            kind,
            words,
            tag("span", *tools, class_="vx-ch-icons"),
            class_="vx-ch-section",
            data_form=True,
        ),
        blocks,
        class_="" if section.on else "is-off",
    )


def _tool(ask: Ask, do: str, shape: str, key: str, **data: object) -> str:
    return press(do, ask.say(key), icon(shape), class_="vx-quiet vx-round", **data)


def _blocks(ask: Ask, index: int, section: Section) -> str:
    """The paragraphs of one section: each can be left out, or begin a new chapter."""
    rows = []
    for place, block in enumerate(section.blocks[:BLOCKS_SHOWN]):
        data = {"data_index": index, "data_block": place}
        tick = tag(
            "input",
            type="checkbox",
            name_="on",
            checked=True if block.on else None,
            data_ch="import.block",
            aria_label=ask.say("chapters_speak_this"),
            **data,
        )
        split = press(
            "import.split", ask.say("chapters_split_here"), ask.say("chapters_split_here"), class_="vx-quiet", **data
        )
        kind = tag("span", escape(block.kind), class_="vx-fact") if block.kind != "text" else ""
        words = tag("span", escape(edits.first_words(block.text, 160)))
        rows.append(
            tag("li", tag("label", tick, class_="vx-tickbox"), words, kind, split if place else "", data_form=True)
        )
    more = len(section.blocks) - BLOCKS_SHOWN
    if more > 0:
        rows.append(tag("li", ask.say("chapters_more", count=more)))
    return tag("ol", *rows, class_="vx-ch-blocks")

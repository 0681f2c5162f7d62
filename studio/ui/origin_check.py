"""“Was this made here?”: a sound file is looked at for tags, Content Credentials, the watermark, and among the takes.

For people as a folded panel at the foot of the page, for programs as `/was_made_here`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from studio.provenance import was_made_here
from studio.ui import markup
from studio.ui.context import Context
from studio.ui.i18n import label, language_of, say
from studio.ui.look import html
from studio.ui.markup import icon, tag
from studio.ui.settings import SettingError
from studio.ui.wiring import QUIET
from voxcpm_core.errors import VoxCPMError

logger = logging.getLogger(__name__)

SHAPES = {"found": "check", "not found": "ring", "broken": "cross", "not available": "info"}
CLASSES = {"found": "is-ok", "broken": "is-fail"}
KINDS = {"yes": "info", "likely": "info", "unknown": "warning"}
# The watermark takes seconds of the processor: one file at a time, whoever asks.
LOOKING: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "origin"}


@dataclass(frozen=True)
class OriginPanel:
    """Components of the panel."""

    part: gr.Accordion
    hint: gr.HTML
    upload: gr.File
    answer: gr.HTML


def layout() -> OriginPanel:
    with gr.Accordion(label("origin"), open=False, elem_id="vx-origin", elem_classes="vx-folded") as part:
        hint = html(_hint("en"))
        upload = gr.File(
            label=label("origin_file"),
            file_types=["audio", ".m4b"],
            type="filepath",
            height=120,
            elem_id="vx-origin-file",
        )
        answer = html("", elem_id="vx-origin-answer")
    return OriginPanel(part, hint, upload, answer)


def wire(context: Context, panel: OriginPanel, owner: gr.BrowserState) -> None:
    """The hint is said in the visitor's language when the panel is opened."""
    handlers = OriginHandlers(context)
    panel.part.expand(handlers.hint, None, panel.hint, **QUIET)
    options = {**LOOKING, "show_progress": "hidden", "api_visibility": "private"}
    panel.upload.change(handlers.look, [panel.upload, owner], panel.answer, **options)


class OriginHandlers:
    def __init__(self, context: Context) -> None:
        self._context = context

    def hint(self, request: gr.Request) -> str:
        return _hint(language_of(request))

    def look(self, path: str | None, owner: str | None, request: gr.Request) -> Iterator[str]:
        """What is found, after a word that it is being looked for. A visitor's own takes are asked only."""
        language = language_of(request)
        if not path:
            yield ""
            return
        yield tag("p", icon("dots"), tag("span", say(language, "origin_looking")), class_="vx-clip-busy", role="status")
        try:
            found = was_made_here(Path(path), self._context.store, self._context.visible(owner, request))
            yield answer(found, language)
        except VoxCPMError as error:
            yield markup.notice("error", str(error))
        except Exception:
            logger.exception("looking at the origin of a file failed")
            yield markup.notice("error", say(language, "trouble"))


def answer(found: dict[str, Any], language: str) -> str:
    """The verdict, and each check with what it found."""
    verdict = markup.notice(KINDS[found["verdict"]], say(language, f"origin_{found['verdict']}"))
    lines = tag("ul", *(_line(check, language) for check in found["checks"]), class_="vx-origin-checks")
    return tag("section", verdict, lines, class_="vx-origin", data_verdict=found["verdict"])


def _line(check: dict[str, Any], language: str) -> str:
    name, status = check["name"], check["status"]
    word = say(language, f"origin_status_{status.replace(' ', '_')}")
    mark = tag("span", icon(SHAPES[status]), tag("span", word), class_=f"vx-verdict {CLASSES.get(status, '')}".strip())
    detail = escape(_detail(check, language))
    cells = [mark, tag("b", say(language, f"origin_{name}")), tag("span", detail)]
    return tag("li", *cells, data_check=name, data_status=status)


def _detail(check: dict[str, Any], language: str) -> str:
    name, status = check["name"], check["status"]
    if status == "not available":
        return say(language, "origin_install", pip=check["detail"])
    if status == "broken":
        return say(language, "origin_credentials_broken")
    if status == "not found":
        return say(language, f"origin_{name}_none")
    if name == "credentials":
        return say(language, "origin_signed_here" if check.get("signed_here") else "origin_signed_elsewhere")
    return check["detail"]


def _hint(language: str) -> str:
    return tag("p", escape(say(language, "origin_hint")), class_="vx-clip-hint")


def add_origin_endpoint(context: Context) -> None:
    """Register `/was_made_here` on the Blocks that is being built."""
    file, output = gr.File(label="audio", type="filepath", visible=False), gr.JSON(label="result", visible=False)
    gr.Button(visible=False).click(origin_function(context), file, output, api_name="was_made_here", **LOOKING)


def origin_function(context: Context) -> Callable[..., dict[str, Any]]:
    def look(audio: Any, request: gr.Request = None) -> dict[str, Any]:
        """Look for everything that tells whether a sound file was made by this studio.

        Parameters:
            audio: an uploaded sound file
        Returns:
            result: verdict ("yes", "likely", "unknown") and checks (JSON): name, status and detail of each
        """
        try:
            if not isinstance(audio, str) or not audio:
                raise SettingError("origin_ask")
            return was_made_here(Path(audio), context.store, context.visible(None, request))
        except (SettingError, VoxCPMError) as error:
            raise gr.Error(str(error), print_exception=False) from error

    return look

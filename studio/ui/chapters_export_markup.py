"""The export of a book as HTML: the form, the progress, the files, the measured report."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from studio.book.credits import Credits
from studio.book.project import Book
from studio.containers import SAMPLE_RATES
from studio.mastering import PRESETS
from studio.transcription import available
from studio.ui.chapters_ask import Ask, notice, press, progress_bar
from studio.ui.chapters_exports import Export, Exports
from studio.ui.chapters_jobs_markup import clock
from studio.ui.markup import icon, state_mark, tag

OFFERED = ("mp3", "m4b", "wav", "flac")
SHAPES = {"pass": "check", "fail": "cross", "info": "info"}
COLOURS = {"pass": "ok", "fail": "fail", "info": "info"}
STATES = {"running": "speaking", "done": "stop", "failed": "error", "cancelled": "cancelled"}


def body(
    ask: Ask, book: Book, wish: Mapping[str, Any], has_cover: bool, open_ones: int, credits: Credits, result_html: str
) -> str:
    """The whole step."""
    return tag(
        "div",
        tag("div", _form(ask, book, wish, has_cover, open_ones), _credits(ask, credits), class_="vx-ch-form"),
        tag("div", tag("div", result_html, data_part="result"), tag("div", data_part="fetch", hidden=True)),
        class_="vx-ch-export",
    )


def _form(ask: Ask, book: Book, wish: Mapping[str, Any], has_cover: bool, open_ones: int) -> str:
    presets = [(name, ask.say(f"chapters_preset_{name}")) for name in PRESETS]
    formats = [(name, ask.say(f"chapters_format_{name}")) for name in OFFERED]
    rates = [(str(rate), f"{rate / 1000:g} kHz") for rate in SAMPLE_RATES]
    parts = [("chapter", ask.say("chapters_per_chapter")), ("book", ask.say("chapters_one_file"))]
    fields = [
        _select(ask, "preset", "chapters_preset", presets, wish["preset"]),
        _select(ask, "format", "chapters_format", formats, wish["format"]),
        _select(ask, "whole", "chapters_files", parts, "book" if wish["whole"] else "chapter"),
        _select(ask, "sample_rate", "chapters_rate", rates, str(wish["sample_rate"])),
        _text(ask, "author", "chapters_author", wish["author"] or book.project.author),
        _text(ask, "narrator", "chapters_narrated", wish["narrator"]),
    ]
    ticks = [
        _tick(ask, "subtitles", "chapters_subtitles", wish["subtitles"]),
        *([_tick(ask, "words", "chapters_by_word", wish["words"])] if available()[0] else []),
        _tick(ask, "sample", "chapters_retail", wish["sample"]),
        _tick(ask, "allow_incomplete", "chapters_allow_incomplete", wish["allow_incomplete"] and bool(open_ones)),
    ]
    incomplete = notice("warning", ask.say("chapters_export_open", count=open_ones)) if open_ones else ""
    start = press(
        "export.start",
        ask.say("chapters_export_start"),
        icon("download"),
        ask.say("chapters_export_start"),
        class_="vx-link is-main is-primary vx-go",
    )
    project = press("export.project", ask.say("chapters_pack_title"), icon("detail"), ask.say("chapters_pack"))
    return tag(
        "section",
        tag("h3", ask.say("chapters_step_export")),
        tag("div", *fields, class_="vx-ch-fields"),
        tag("p", ask.say("chapters_acx_note"), class_="vx-ch-hint"),
        tag("div", *ticks, class_="vx-ch-tools"),
        _cover(ask, has_cover),
        incomplete,
        tag("div", start, project, class_="vx-ch-tools"),
        data_form=True,
    )


def _select(ask: Ask, name: str, label: str, options: list[tuple[str, str]], now: str) -> str:
    marks = [
        tag("option", escape(words), value=value, selected=True if value == now else None) for value, words in options
    ]
    return tag("label", tag("span", ask.say(label)), tag("select", *marks, name_=name), class_="vx-ch-field")


def _text(ask: Ask, name: str, label: str, value: str) -> str:
    field = tag("input", type="text", name_=name, value=value, maxlength=200)
    return tag("label", tag("span", ask.say(label)), field, class_="vx-ch-field")


def _tick(ask: Ask, name: str, label: str, on: bool) -> str:
    box = tag("input", type="checkbox", name_=name, checked=True if on else None)
    return tag("label", box, ask.say(label), class_="vx-toggle")


def _cover(ask: Ask, has_cover: bool) -> str:
    choose = tag("input", type="file", id="vx-ch-cover", accept="image/*", data_upload="export.cover", hidden=True)
    words = ask.say("chapters_cover_change" if has_cover else "chapters_cover")
    button = tag("button", icon("upload"), words, type="button", class_="vx-link", data_pick_file="#vx-ch-cover")
    there = tag("span", icon("check"), ask.say("chapters_cover_there"), class_="vx-check is-ok") if has_cover else ""
    remove = press("export.no_cover", ask.say("chapters_cover_remove"), icon("bin"), class_="vx-quiet vx-round")
    return tag("div", button, choose, there, remove if has_cover else "", class_="vx-ch-tools")


def _credits(ask: Ask, credits: Credits) -> str:
    texts = (
        ("opening", "chapters_opening", credits.opening),
        ("closing", "chapters_closing", credits.closing),
    )
    fields = [
        tag(
            "label",
            tag("span", ask.say(key)),
            tag("textarea", escape(text), name_=name, rows=2),
            class_="vx-ch-field is-wide",
        )
        for name, key, text in texts
    ]
    tools = [
        press("export.suggest", ask.say("chapters_suggest"), ask.say("chapters_suggest")),
        press(
            "export.credits", ask.say("chapters_credits_put"), ask.say("chapters_credits_put"), class_="vx-link is-main"
        ),
    ]
    return tag(
        "section",
        tag("h3", ask.say("chapters_credits")),
        tag("p", ask.say("chapters_credits_info"), class_="vx-ch-hint"),
        *fields,
        tag("div", *tools, class_="vx-ch-tools"),
        data_form=True,
    )


# ------------------------------------------------------------------------------------------------- what came of it


def result(ask: Ask, export: Export | None, exports: Exports) -> str:
    """The export that runs, or the files of the last one with their report."""
    if export is None:
        return tag("p", ask.say("chapters_export_none"), class_="vx-none")
    if export.state == "running":
        return _running(ask, export)
    if export.state == "failed":
        return notice("error", export.message)
    if export.state == "cancelled":
        return notice("info", ask.say("chapters_export_cancelled"))
    return _done(ask, export, exports)


def _running(ask: Ask, export: Export) -> str:
    share = round(100 * export.share)
    bar = progress_bar(share, ask.say("chapters_exporting"))
    doing = ask.say(f"chapters_stage_{export.stage}") if export.stage else ask.say("chapters_exporting")
    facts = [tag("span", f"{share} %"), tag("span", escape(f"{doing} {export.title}".strip()))]
    if export.share > 0.03:
        facts.append(
            tag("span", ask.say("chapters_job_left", time=clock(export.seconds / export.share * (1 - export.share))))
        )
    cancel = press(
        "export.cancel",
        ask.say("chapters_job_cancel"),
        icon("square"),
        ask.say("chapters_job_cancel"),
        class_="vx-link vx-halt",
    )
    mark = state_mark("speaking", ask.say("chapters_exporting"))
    return tag(
        "section",
        mark,
        bar,
        tag("span", *facts, class_="vx-ch-facts vx-num"),
        tag("span", cancel, class_="vx-ch-tools"),
        class_="vx-ch-job is-running",
        data_poll="1",
    )


def _done(ask: Ask, export: Export, exports: Exports) -> str:
    report = export.report
    passed = report.get("status") == "pass"
    key = "chapters_report_pass" if passed else "chapters_report_fail"
    failed = ", ".join(report.get("failed", []))
    head = notice(
        "info" if passed else "warning",
        ask.say(key, preset=ask.say(f"chapters_preset_{report.get('preset', 'none')}"), files=failed),
    )
    everything = press(
        "export.zip", ask.say("chapters_zip"), icon("download"), ask.say("chapters_zip"), class_="vx-link is-primary"
    )
    links = [_link(exports.address(export, name), name) for name in export.files]
    tables = [_table(ask, file, fold=place > 0) for place, file in enumerate(report.get("files", []))]
    return tag(
        "section",
        head,
        tag("div", tag("h3", ask.say("chapters_export_files", count=len(links))), everything, class_="vx-ch-line"),
        tag("ul", *(tag("li", link) for link in links), class_="vx-ch-files"),
        tag("h3", ask.say("chapters_report")),
        *tables,
        class_="vx-ch-result",
    )


def _link(address: str, name: str) -> str:
    return tag(
        "a",
        icon("download"),
        escape(name),
        href=address,
        download=None if name.endswith(".html") else name,
        target="_blank",
        class_="vx-link",
    )


def _table(ask: Ask, file: Mapping[str, Any], fold: bool) -> str:
    """One file's rows: what was measured on the finished file, what is wanted, whether it passes."""
    rows = [_row(ask, row) for row in file.get("rows", [])]
    heads = [
        tag("th", ask.say(f"chapters_report_{name}"), scope="col") for name in ("what", "measured", "wanted", "verdict")
    ]
    verdict = _verdict(ask, file.get("status", "info"))
    length = tag("span", clock(float(file.get("seconds", 0))), class_="vx-num vx-fact")
    body = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_="vx-ch-report vx-num")
    summary = tag("summary", verdict, tag("b", escape(str(file.get("name", "")))), length)
    return tag("details", summary, body, open=None if fold else True, data_fold=f"report-{file.get('name', '')}")


def _row(ask: Ask, row: Mapping[str, Any]) -> str:
    advice = tag("p", escape(row["advice"]), class_="vx-ch-hint") if row.get("advice") else ""
    cells = [
        tag("td", escape(row.get("label") or row["name"]), advice),
        tag("td", escape(row["shown"])),
        tag("td", escape(row["wanted"])),
        tag("td", _verdict(ask, row["status"])),
    ]
    return tag("tr", *cells, class_=f"is-{COLOURS[row['status']]}")


def _verdict(ask: Ask, status: str) -> str:
    return tag(
        "span", icon(SHAPES[status]), ask.say(f"chapters_verdict_{status}"), class_=f"vx-check is-{COLOURS[status]}"
    )


def fetch(address: str, name: str) -> str:
    """A link that the page's script follows at once."""
    return tag("a", href=address, download=name, data_fetch="1")

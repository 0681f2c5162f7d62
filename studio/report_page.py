"""A delivery report as one HTML file that needs nothing else: to look at, to print, to send along."""

from __future__ import annotations

from html import escape
from typing import Any

from studio.report_words import PHRASES, spoken

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6472; --line: #d9dee5; --good: #17663a; --bad: #a3161f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --soft: #9aa4b2; --line: #323a46; --good: #6fce97; --bad: #ff8a8f; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; overflow-wrap: anywhere; }
p, caption { color: var(--soft); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; }
.pass { color: var(--good); font-weight: 600; white-space: nowrap; }
.fail { color: var(--bad); font-weight: 600; white-space: nowrap; }
.info { color: var(--soft); white-space: nowrap; }
@media print { body { margin: 0; max-width: none; } section { break-inside: avoid; } }
"""
_SIGNS = {"pass": "✓", "fail": "✗", "info": "·"}  # a verdict is told by shape and word, not by colour alone


def report_html(report: dict[str, Any], title: str, language: str = "en") -> str:
    """The page of a report that studio.delivery_report.whole_report made in the same language."""

    def say(key: str, **values: object) -> str:
        return escape(spoken(PHRASES, key, language, **values))

    files, failed = report["files"], report["failed"]
    outcome = say("some_fail", count=len(failed), total=len(files)) if failed else say("all_pass")
    note = f"<p>{say('acx_note')}</p>" if report["preset"] == "audiobook" else ""
    heads = "".join(f'<th scope="col">{say(key)}</th>' for key in ("row", "value", "wanted", "status", "advice"))
    sections = "".join(_section(file, heads, language) for file in files)
    return (
        f'<!doctype html>\n<html lang="{escape(language)}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{say('title')}: {escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{say('title')}: {escape(title)}</h1>\n"
        f'<p class="{report["status"]}">{_SIGNS[report["status"]]} {outcome}</p>\n'
        f"<p>{say('preset')}: {escape(report['preset'])}. {say('measured_on')} "
        f"{escape(report['tool'])}, {escape(report['created'])}</p>{note}\n{sections}</body></html>\n"
    )


def _section(file: dict[str, Any], heads: str, language: str) -> str:
    rows = "".join(_row(row, language) for row in file["rows"])
    return (
        f'<section><h2><span class="{file["status"]}">{_SIGNS[file["status"]]}</span> {escape(file["name"])}</h2>\n'
        f"<table><thead><tr>{heads}</tr></thead><tbody>\n{rows}</tbody></table></section>\n"
    )


def _row(row: dict[str, Any], language: str) -> str:
    status = f"{_SIGNS[row['status']]} {escape(spoken(PHRASES, row['status'], language))}"
    cells = "".join(f"<td>{escape(row[key])}</td>" for key in ("shown", "wanted"))
    return (
        f'<tr><th scope="row">{escape(row["label"])}</th>{cells}<td class="{row["status"]}">{status}</td>'
        f"<td>{escape(row['advice'])}</td></tr>\n"
    )

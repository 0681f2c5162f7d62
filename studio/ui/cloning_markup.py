"""The clip of the Cloning tab as HTML: its picture, its lanes to compare, and the check card."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

from studio.checks import Check, worst
from studio.clip_picture import clip_png
from studio.reference_checks import ReferenceReport
from studio.speech_activity import Region
from studio.ui.cloning_clip import ClipState, Version
from studio.ui.cloning_media import ClipMedia
from studio.ui.i18n import WORDS, say
from studio.ui.markup import icon, tag
from studio.ui.picker_markup import VERDICT_ICONS
from studio.ui.take_markup import clock, play_button, seek_surface

# Values that are words: of :mod:`studio.reference_checks`, in Chinese.
VALUES = {
    "none": "无",
    "no tones": "无",
    "tones": "有乐音",
    "at a pause": "停顿处",
    "inside a word": "字词中间",
    "not measured": "未检测",
    "silent background": "背景无声",
    "2 or more": "2 人或以上",
}
NOT_SHOWN = frozenset({"transcript"})  # it has a line of its own below its field


def empty(language: str) -> str:
    return tag("p", say(language, "cloning_clip_empty"), class_="vx-clip-hint")


def busy(language: str, key: str) -> str:
    return tag("p", icon("dots"), tag("span", say(language, key)), class_="vx-clip-busy", role="status")


def clip_card(state: ClipState, report: ReferenceReport, media: ClipMedia, language: str) -> str:
    """Picture, lanes and checks of the clip that is in use."""
    return tag("article", _lanes(state, report, media, language), checks(report.checks, language), class_="vx-clip")


def _lanes(state: ClipState, report: ReferenceReport, media: ClipMedia, language: str) -> str:
    used = say(language, "cloning_improved" if state.is_changed else "cloning_in_use")
    cut = state.current.cut if state.current.worth_cutting else None
    pictures = _pictures(report, cut, language)
    picture = seek_surface(state.current.seconds, language, *pictures, class_="vx-clip-picture")
    lanes = [_lane(state.current, used, media, language, picture, _below(state, language))]
    if state.is_changed:
        lanes.append(_lane(state.original, say(language, "cloning_original"), media, language, "", ""))
    return tag("div", *lanes, class_="vx-clip-lanes")


def _lane(version: Version, name: str, media: ClipMedia, language: str, picture: str, below: str) -> str:
    head = tag(
        "header",
        play_button(language, say(language, "cloning_play_clip", name=name)),
        tag("b", name),
        tag("span", f"0:00.0 / {clock(version.seconds)}", class_="vx-num vx-clock"),
        below,
    )
    return tag(
        "div",
        head,
        picture,
        class_="vx-clip-lane",
        data_take=f"clip-{version.hash[:20]}",
        data_src=media.address(version.hash),
        data_seconds=f"{version.seconds:.4f}",
        data_clip=version.hash,
    )


def _below(state: ClipState, language: str) -> str:
    """What was done to it, and what Trim would do."""
    current = state.current
    if current.choices:
        names = {"trim": "cloning_trim", "level": "cloning_level", "denoise": "cloning_denoise"}
        steps = [say(language, names[choice["step"]]) for choice in current.choices if choice["step"] in names]
        return tag("span", say(language, "cloning_steps", steps=" · ".join(steps)), class_="vx-clip-done")
    if current.worth_cutting:
        start, end = (f"{moment:.1f}" for moment in current.cut)
        return tag("span", say(language, "cloning_cut_to", start=start, end=end), class_="vx-clip-done vx-num")
    return ""


def _pictures(report: ReferenceReport, cut: Region | None, language: str) -> list[str]:
    """For light and for dark; inside the page, as a clip's picture is seen once."""
    found, name = [], escape(say(language, "cloning_picture"))
    for theme in ("light", "dark"):
        data = base64.b64encode(clip_png(report.analysis, cut, dark=theme == "dark")).decode()
        found.append(f'<img class="only-{theme}" src="data:image/png;base64,{data}" alt="{name}" draggable="false">')
    return found


def checks(found: Sequence[Check], language: str) -> str:
    """What to look at first, each with what to do; what is good in short."""
    found = [check for check in found if check.name not in NOT_SHOWN]
    wrong = sorted((check for check in found if check.verdict != "ok"), key=lambda check: check.verdict != "fail")
    good = [check for check in found if check.verdict == "ok"]
    verdict = worst(found)
    title = tag(
        "h3",
        icon(VERDICT_ICONS[verdict]),
        tag("span", escape(say(language, f"cloning_card_{verdict}", count=len(wrong)))),
        class_=f"vx-verdict is-{verdict}",
    )
    return tag(
        "section",
        title,
        tag("ul", *(_line(check, language) for check in wrong), class_="vx-refs-wrong") if wrong else "",
        tag("ul", *(_line(check, language) for check in good), class_="vx-refs-good") if good else "",
        class_="vx-refs",
        data_verdict=verdict,
    )


def line(check: Check, language: str) -> str:
    """One line of the card by itself."""
    return tag("section", tag("ul", _line(check, language), class_="vx-refs-wrong"), class_="vx-refs vx-refs-one")


def _line(check: Check, language: str) -> str:
    mark = tag(
        "span",
        icon(VERDICT_ICONS[check.verdict]),
        tag("span", say(language, f"ref_mark_{check.verdict}")),
        class_=f"vx-verdict is-{check.verdict}",
    )
    advice = advice_of(check, language)
    return tag(
        "li",
        mark,
        tag("b", say(language, f"ref_{check.name}")),
        tag("span", escape(value_of(check, language)), class_="vx-num"),
        tag("p", escape(advice)) if advice else "",
        data_check=check.name,
        data_verdict=check.verdict,
    )


def advice_of(check: Check, language: str) -> str:
    """What to do about it: the table's sentence with the check's facts, else the check's own."""
    key = f"ref_{check.name}_{check.verdict}"
    return say(language, key, **check.facts) if key in WORDS else check.advice


def value_of(check: Check, language: str) -> str:
    if language == "en":
        return check.value
    if check.value in VALUES:
        return VALUES[check.value]
    if check.name == "noise":
        return f"信噪比 {check.facts['snr']:.0f} dB"
    if check.name == "bandwidth":
        return f"至 {check.facts['khz']:g} kHz"
    if check.name == "words":
        return f"与识别结果 {check.facts['likeness']:.0%} 一致"
    return f"{check.facts['share']:.0%}" if check.name == "voicing" else check.value

"""Lanes of the take-picker as HTML.

A lane has two parts. Its bar (play, picture, clock, pick) is written once and drawn by assets/studio-picker.js, so that
nothing is rewritten under a listener's hand. Its facts follow the work; what the script needs to know is in their
``data-`` attributes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from studio.checks import Verdict
from studio.events import Progress
from studio.second_tries import needs_second_try
from studio.takes import TakeRecord
from studio.ui.i18n import say
from studio.ui.markup import button, end_notice, icon, number, state_mark, tag
from studio.ui.media import Media, file_name, recipe_json

VERDICT_ICONS = {"ok": "check", "warn": "triangle", "fail": "cross"}
EMPTY_STEPS = ("picker_empty_1", "picker_empty_2", "picker_empty_3")
TITLES = {  # of gradio's buttons and switches, by their class
    "others": "others_title",
    "same": "same_title",
    "around": "around_title",
    "blind": "blind_title",
    "original": "original_title",
}
Reason = tuple[Verdict, str]  # what is not in order, as a sentence in the visitor's language


def status(state: str, language: str) -> str:
    """What the whole picker is doing."""
    return tag("div", state_mark(state, say(language, f"state_{state}")), class_="vx-picker-state", data_state=state)


def bar(slot: int, language: str) -> str:
    """The part of lane ``slot`` (0, 1, 2) that stays: what is drawn and pressed."""
    named = slot + 1
    surface = tag(
        "div",
        tag("canvas"),
        tag("span", tag("span", class_="vx-playhead"), class_="vx-span"),
        class_="vx-lane-live vx-seek",
        role="slider",
        tabindex=0,
        aria_label=say(language, "slot_wave", number=named),
        aria_valuemin=0,
        aria_valuemax=0,
        aria_valuenow=0,
    )
    play = button("slot-play", say(language, "slot_play", number=named), icon("play"), class_="vx-play")
    pick = button(
        "pick",
        say(language, "pick_title", number=named),
        tag("kbd", str(named)),
        tag("span", say(language, "pick"), data_picked=say(language, "picked"), data_open=say(language, "pick")),
        class_="vx-link vx-pick",
        aria_pressed="false",
        disabled=True,
    )
    clock = tag("span", "0:00.0 / 0:00.0", class_="vx-num vx-clock")
    name = tag("span", say(language, "slot_name", number=named), class_="vx-unseen")
    return tag("div", name, play, surface, clock, pick, class_="vx-slot-bar", data_slot=slot)


def unused() -> str:
    """Facts of a lane that no take is asked for: the lane is not shown."""
    return tag("div", class_="vx-slot-facts", data_state="unused")


def facts_running(
    state: str,
    language: str,
    progress: Progress | None = None,
    *,
    seed: int | None,
    expected: float = 0.0,
    levels: Sequence[int] = (),
) -> str:
    """A take that waits or is being made. seed: None keeps it secret; expected: seconds that the text may take."""
    said = []
    if progress is not None:
        said += [
            tag("span", number(str(progress.patches)), " ", say(language, "patches")),
            tag("span", number(f"{progress.seconds:.1f}"), " ", say(language, "seconds_made")),
            tag("span", "RTF ", number(f"{progress.rtf:.2f}"), title=say(language, "rtf_title")),
        ]
    line = tag("p", _mark(state, language), *said, _seed(seed, state, language), class_="vx-meta vx-num")
    return tag(
        "div",
        line,
        class_=f"vx-slot-facts is-{state}",
        data_state=state,
        data_seconds=f"{progress.seconds if progress else 0.0:.3f}",
        data_expected=f"{expected:.1f}",
        data_levels=",".join(map(str, levels)),
    )


def facts_finished(
    record: TakeRecord,
    media: Media,
    language: str,
    *,
    hidden: bool = False,
    levels: Sequence[int] = (),
    reasons: Sequence[Reason] = (),
    gain: float = 0.0,
) -> str:
    """A take that has ended. hidden: its seed and all that tells it are secret; gain: dB to level it with others."""
    kept, state = bool(record.file_name), end_of(record)
    speed = tag("span", "RTF ", number(f"{record.rtf:.2f}"), title=say(language, "rtf_title"))
    seed = _seed(None if hidden else record.seed, state, language)
    line = [_mark(state, language), tag("span", number(f"{record.seconds:.1f}"), " s"), seed, speed]
    data = {}
    if kept:
        line += [_loudness(record, gain, language), _verdict(record.verdict, language)]
        source = media.address(record.id, "sound")
        data = {"data_take": record.id, "data_src": source, "data_gain": f"{gain:.2f}"}
    return tag(
        "div",
        tag("p", *line, class_="vx-meta vx-num"),
        end_notice(record, language),
        _reasons(reasons),
        _offer(language) if needs_second_try(record) else "",
        _tools(record, media, language, hidden) if kept else "",
        class_=f"vx-slot-facts is-{state}",
        data_state=state,
        data_seconds=f"{record.seconds:.4f}",
        data_levels=",".join(map(str, levels)),
        **data,
    )


def end_of(record: TakeRecord) -> str:
    """How a take ended, as a state of the page: "unsaved" when there was sound that could not be stored."""
    lost = not record.file_name and (record.seconds > 0 or record.ended_by == "stop")
    return "unsaved" if lost else record.ended_by


def _offer(language: str) -> str:
    """What may help a take that does not fit its text. It has been heard, so nothing is replaced unasked."""
    again = button("again", say(language, "again"), icon("dice"), tag("span", say(language, "again")), class_="vx-link")
    return tag("p", tag("span", say(language, "again_hint")), " ", again, class_="vx-offer")


def _mark(state: str, language: str) -> str:
    return state_mark(state, say(language, f"state_{state}"))


def _seed(seed: int | None, state: str, language: str) -> str:
    if state == "waiting":
        return ""
    if seed is None:
        return tag("span", say(language, "seed_hidden"))
    return tag("span", say(language, "seed"), " ", number(str(seed)))


def _loudness(record: TakeRecord, gain: float, language: str) -> str:
    if record.loudness is None:
        return ""
    title = say(language, "loudness_title", gain=f"{gain:+.1f}")
    return tag("span", number(f"{record.loudness:.1f}"), " LUFS", title=title)


def _verdict(verdict: str, language: str) -> str:
    """The worst of the checks by shape, word and colour; nothing for a take that was never checked."""
    if verdict not in VERDICT_ICONS:
        return ""
    return tag(
        "span", icon(VERDICT_ICONS[verdict]), say(language, f"verdict_{verdict}"), class_=f"vx-check is-{verdict}"
    )


def _reasons(reasons: Sequence[Reason]) -> str:
    lines = [tag("li", icon(VERDICT_ICONS[kind]), escape(reason), class_=f"is-{kind}") for kind, reason in reasons]
    return tag("ul", *lines, class_="vx-reasons") if lines else ""


def _tools(record: TakeRecord, media: Media, language: str, hidden: bool) -> str:
    star = button(
        "star",
        say(language, "star_title"),
        icon("star"),
        tag("span", say(language, "star")),
        class_="vx-link vx-star",
        aria_pressed="true" if record.starred else "false",
    )
    tools = [star, _note(language, record.note), _spectrogram(record, media, language)]
    if not hidden:  # the file's name and the recipe tell the seed
        words = say(language, "pin")
        tools.append(button("pin", words, icon("pin"), tag("span", words), class_="vx-link vx-pin"))
        tools += [_download(record, media, language), _recipe(record, language)]
    return tag("div", *tools, class_="vx-slot-tools")


def _fold(shape: str, word: str, *children: str, kind: str) -> str:
    return tag("details", tag("summary", icon(shape), word, class_="vx-link"), *children, class_=f"vx-fold {kind}")


def _note(language: str, note: str) -> str:
    field = tag("textarea", escape(note), rows=2, maxlength=500, placeholder=say(language, "note_hint"))
    keep = button("note", say(language, "note_save"), say(language, "note_save"), class_="vx-link")
    return _fold("note", say(language, "note"), tag("div", field, keep), kind="vx-note" + (" has-note" if note else ""))


def _spectrogram(record: TakeRecord, media: Media, language: str) -> str:
    address, name = media.address(record.id, "spectrogram"), say(language, "spectrogram")
    pictures = [
        f'<img class="only-{theme}" src="{address}?dark={dark}" alt="{name}" loading="lazy" draggable="false">'
        for theme, dark in (("light", 0), ("dark", 1))
    ]
    return _fold("spectrum", name, tag("div", *pictures, class_="vx-track"), kind="vx-spectrum")


def _download(record: TakeRecord, media: Media, language: str) -> str:
    title = say(language, "download")
    return tag(
        "a",
        icon("download"),
        say(language, "download_short"),
        class_="vx-link vx-download",
        href=media.address(record.id, "download"),
        download=file_name(record),
        title=title,
        aria_label=title,
    )


def _recipe(record: TakeRecord, language: str) -> str:
    words, done = say(language, "copy"), say(language, "copied")
    copy = button("copy", words, icon("copy"), tag("span", words), class_="vx-link", data_done=done)
    text = tag("div", copy, tag("pre", escape(recipe_json(record))))
    return _fold("list", say(language, "recipe"), text, kind="vx-recipe")


def empty(language: str) -> str:
    """What stands where the first takes will be."""
    steps = (tag("li", say(language, step)) for step in EMPTY_STEPS)
    keys = [
        f"<kbd>1</kbd> <kbd>2</kbd> <kbd>3</kbd> {say(language, 'key_pick')}",
        f"<kbd>Space</kbd> {say(language, 'key_play')}",
        f"<kbd>R</kbd> {say(language, 'key_others')}",
        f'<kbd data-key="mod">Ctrl</kbd> <kbd>Enter</kbd> {say(language, "key_generate")}',
        f"<kbd>Esc</kbd> {say(language, 'key_stop')}",
    ]
    return tag(
        "div",
        tag("span", class_="vx-empty-wave", aria_hidden="true"),
        tag("h2", say(language, "picker_empty_title")),
        tag("ol", *steps),
        tag("p", *(tag("span", key, class_="vx-key") for key in keys), class_="vx-keys"),
        class_="vx-empty",
    )


def pick_line(language: str, picked: int | None, record: TakeRecord | None = None) -> str:
    """Which take is picked. ``data-picked`` is what the script marks the lane by, ``data-titles`` what it explains
    gradio's buttons and switches with, which have no title of their own."""
    titles = {name: say(language, key) for name, key in TITLES.items()}
    data = {"data_titles": json.dumps(titles, ensure_ascii=False)}
    if picked is None or record is None:
        return tag("p", say(language, "picked_none"), class_="vx-pickline", data_picked="", **data)
    mark = state_mark("stop", say(language, "picked"))
    name = tag("b", say(language, "slot_name", number=picked + 1), class_="vx-num")
    seed = tag("span", say(language, "seed"), " ", number(str(record.seed)), class_="vx-num")
    return tag("p", mark, name, seed, class_="vx-pickline is-picked", data_picked=picked, **data)

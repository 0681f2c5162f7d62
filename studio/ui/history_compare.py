"""Two takes side by side, and what the attempt to make one again came to, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from studio.events import Replayed
from studio.loudness import common_target, match_gain
from studio.takes import TakeRecord
from studio.ui import take_markup
from studio.ui.i18n import say
from studio.ui.markup import button, icon, tag
from studio.ui.media import Media
from studio.ui.take_markup import do, player_data, seek_surface, wave

LETTERS = "AB"


def comparison(pair: Sequence[TakeRecord], voices: dict[str, str], media: Media, language: str) -> str:
    """Two takes that play at the same place and the same loudness, and in what they differ."""
    gains = matched_gains(pair)
    rows = [_row(letter, *each, media, language) for letter, *each in zip(LETTERS, pair, gains, strict=True)]
    name = tag("h2", say(language, "compare_heading"))
    levelled = tag(
        "label",
        tag("input", type="checkbox", class_="vx-levelled", checked=True),
        say(language, "compare_level"),
        class_="vx-toggle",
        title=say(language, "compare_level_title"),
    )
    play = button("ab-play", say(language, "play"), icon("play"), class_="vx-play")
    swap = button("ab-swap", say(language, "compare_switch"), "A / B", class_="vx-link vx-swap")
    time = tag("span", "0:00.0 / 0:00.0", class_="vx-num vx-clock vx-compare-clock")
    keys = tag("span", f"<kbd>Space</kbd> {say(language, 'compare_keys')}", class_="vx-keys")
    close = do("close", say(language, "compare_close"), icon("cross"), class_="vx-quiet vx-round")
    head = tag("header", name, play, swap, time, levelled, keys, tag("span", class_="vx-grow"), close)
    return tag(
        "section",
        head,
        *rows,
        _differences(pair, voices, language),
        class_="vx-compare",
        aria_label=say(language, "compare_heading"),
    )


def matched_gains(pair: Sequence[TakeRecord]) -> list[float]:
    """The gain in dB for each that makes all equally loud, without any of them clipping."""
    levels = [(record.loudness, record.peak) for record in pair]
    target = common_target(levels)
    return [match_gain(lufs, peak, target) for lufs, peak in levels]


def _row(letter: str, record: TakeRecord, gain: float, media: Media, language: str) -> str:
    on = letter == LETTERS[0]
    pick = button(
        "ab",
        f"{letter}: {record.spoken_text[:80]}",
        tag("b", letter),
        class_="vx-letter",
        aria_pressed="true" if on else "false",
    )
    level = tag(
        "span",
        say(language, "compare_gain", gain=f"{gain:+.1f}"),
        class_="vx-num vx-fact",
        title=say(language, "compare_level_title"),
    )
    words = take_markup.lane_words(record, language, [level])
    return tag(
        "div",
        pick,
        seek_surface(record.seconds, language, wave(media.lane(record.id)), class_="vx-wave"),
        words,
        class_="vx-lane vx-ab" + (" is-on" if on else ""),
        data_gain=f"{gain:.2f}",
        data_matched=f"{gain:.2f}",
        **player_data(record, media),
    )


def _differences(pair: Sequence[TakeRecord], voices: dict[str, str], language: str) -> str:
    """A table of the settings that are not the same for both."""
    compared = [(name, [value(record) for record in pair]) for name, value in _settings(voices, language)]
    rows = [(name, values) for name, values in compared if len(set(values)) > 1]
    if not rows:
        return tag("div", tag("p", say(language, "compare_all_same"), class_="vx-same"), class_="vx-differences")
    same = tag("p", say(language, "compare_same"), class_="vx-same") if len(rows) < len(compared) else ""
    head = tag("tr", tag("td"), *(tag("th", letter, scope="col") for letter in LETTERS))
    lines = [
        tag("tr", tag("th", name, scope="row"), *(tag("td", escape(value) or "–") for value in values))
        for name, values in rows
    ]
    return tag("div", tag("table", head, *lines, class_="vx-table vx-num"), same, class_="vx-differences")


def _settings(voices: dict[str, str], language: str) -> list:
    return [
        (say(language, "text"), lambda r: r.spoken_text if len(r.spoken_text) < 80 else r.spoken_text[:79] + "…"),
        (say(language, "control"), lambda r: r.control),
        (say(language, "voice"), lambda r: voices.get(r.voice, r.voice)),
        (say(language, "seed"), lambda r: str(r.seed)),
        (say(language, "cfg_short"), lambda r: f"{r.cfg_value:g}"),
        (say(language, "steps_short"), lambda r: str(r.inference_timesteps)),
        (say(language, "temperature"), lambda r: f"{r.temperature:g}"),
        (say(language, "model"), lambda r: f"{r.model_id} · {r.device} {r.dtype}"),
        (say(language, "length"), lambda r: f"{r.seconds:.2f} s"),
        (say(language, "loudness"), lambda r: "–" if r.loudness is None else f"{r.loudness:.1f} LUFS"),
    ]


def replay_stopped(reasons: Sequence[str], possible: bool, take_id: str, language: str) -> str:
    """Why nothing was made yet: what is missing, or what has changed and may sound different."""
    title = tag("p", say(language, "replay_changed" if possible else "replay_missing"))
    lines = tag("ul", *(tag("li", escape(reason)) for reason in reasons))
    words = say(language, "replay_anyway")
    anyway = do("replay", words, words, class_="vx-link", data_take_id=take_id, data_anyway="1") if possible else ""
    kind, shape = ("warning", "triangle") if possible else ("error", "cross")
    body = tag("div", title, lines, anyway)
    return tag("div", icon(shape), body, class_=f"vx-notice is-{kind} vx-replay", role="alert")


def replay_running(seconds: float, language: str) -> str:
    made = f"{seconds:.1f} {say(language, 'seconds_made')}"
    words = tag("div", say(language, "replay_running"), " · ", tag("span", made, class_="vx-num"))
    return tag("div", icon("dots"), words, class_="vx-notice is-info vx-replay is-loading", role="status")


def replay_result(replayed: Replayed, reasons: Sequence[str], language: str) -> str:
    """Whether the sound is the same, with the hash that says so; if it is not, how far off it is, and both to hear."""
    identical, record = replayed.identical, replayed.record
    said = say(language, "replay_identical" if identical else "replay_different")
    shown = tag("code", record.audio_hash[:16], title="SHA-256")
    lines = [tag("p", said, " ", shown)]
    if not identical:
        words = say(language, "compare")
        pair = {"data_a": replayed.original.id, "data_b": record.id}
        lines += [
            tag("p", escape(replayed.sentence)) if language == "en" else "",
            tag("ul", *(tag("li", escape(reason)) for reason in reasons)) if reasons else "",
            do("compare_two", words, icon("compare"), words, class_="vx-link", **pair) if record.file_name else "",
        ]
    kind, shape = ("is-good", "check") if identical else ("is-warning", "triangle")
    data = {"data_identical": "1" if identical else "0", "data_made": record.id}
    return tag("div", icon(shape), tag("div", *lines), class_=f"vx-notice {kind} vx-replay", role="status", **data)

"""Takes as HTML: the card of a finished take, lanes in a list, and what stands there before the first one.

assets/studio.js plays, seeks and draws by the ``data-`` attributes; the sound never belongs to these
elements, so they can be written anew while it plays.
"""

from __future__ import annotations

from datetime import datetime
from html import escape

from studio.takes import TakeRecord
from studio.ui.i18n import say
from studio.ui.markup import button, icon, state_mark, tag
from studio.ui.media import LANE_COLUMNS, Media, file_name, recipe_json

WORDS_IN_LANE = 240  # characters of the text that a lane shows


def empty_take(language: str) -> str:
    """Teaches by example where the first take will be."""
    steps = (tag("li", say(language, f"take_empty_{step}")) for step in (1, 2, 3))
    generate, stop = say(language, "take_empty_keys"), say(language, "take_empty_stop")
    keys = f'<kbd data-key="mod">Ctrl</kbd> <kbd>Enter</kbd> {generate} <span></span> <kbd>Esc</kbd> {stop}'
    return tag(
        "div",
        tag("span", class_="vx-empty-wave", aria_hidden="true"),
        tag("h2", say(language, "take_empty_title")),
        tag("ol", *steps),
        tag("p", keys, class_="vx-keys"),
        class_="vx-empty",
    )


def take_card(record: TakeRecord, media: Media, language: str) -> str:
    """A finished take: player on its pictures, what it is, download and recipe."""
    time = tag("span", f"0:00.0 / {clock(record.seconds)}", class_="vx-num vx-clock")
    gap = tag("span", class_="vx-grow")
    return tag(
        "article",
        tag("header", _play_button(language), time, gap, _download(record, media, language)),
        _tracks(record, media, language),
        _facts(record, language),
        _recipe(record, language),
        class_="vx-take",
        **_player_data(record, media),
    )


def _tracks(record: TakeRecord, media: Media, language: str) -> str:
    pictures = [
        tag("div", *_pictures(what, record, media, language), class_="vx-track") for what in ("waveform", "spectrogram")
    ]
    return _seek_surface(record, language, *pictures, class_="vx-tracks")


def _pictures(what: str, record: TakeRecord, media: Media, language: str) -> list[str]:
    """The picture for light and for dark; the browser loads the one that is shown."""
    address, name = media.address(record.id, what), say(language, what)
    return [
        f'<img class="only-{theme}" src="{address}?dark={dark}" alt="{name}" loading="lazy" draggable="false">'
        for theme, dark in (("light", 0), ("dark", 1))
    ]


def _facts(record: TakeRecord, language: str) -> str:
    first = record.first_audio_seconds
    facts = [
        ("seed", str(record.seed)),
        ("length", f"{record.seconds:.2f} s · {record.patches} {say(language, 'patches')}"),
        ("speed", f"RTF {record.rtf:.2f}"),
        ("first_audio", "–" if first is None else f"{first:.2f} s"),
        ("cfg_short", f"{record.cfg_value:g}"),
        ("steps_short", str(record.inference_timesteps)),
        ("temperature", f"{record.temperature:g}"),
        ("model", f"{record.model_id} · {record.device} {record.dtype}"),
        ("rate", f"{record.sample_rate / 1000:g} kHz"),
    ]
    cells = [_fact(say(language, key), escape(value)) for key, value in facts]
    return tag("dl", *cells, _fact(say(language, "ended"), _ended(record, language)), class_="vx-facts")


def _fact(name: str, value: str) -> str:
    return tag("div", tag("dt", name), tag("dd", value))


def lanes(records: list[TakeRecord], media: Media, language: str, empty: str) -> str:
    """Takes as lanes, the newest first; ``empty`` is said when there are none."""
    if not records:
        return tag("p", escape(empty), class_="vx-none")
    return tag("ul", *(_lane(record, media, language) for record in records), class_="vx-lanes")


def _lane(record: TakeRecord, media: Media, language: str) -> str:
    path = f'<path d="{media.lane(record.id)}"/>'
    box = {"viewBox": f"0 0 {LANE_COLUMNS} 2", "preserveAspectRatio": "none", "aria_hidden": "true"}
    reuse = button(
        "reuse",
        say(language, "reuse_title"),
        icon("reuse"),
        say(language, "reuse"),
        class_="vx-link",
        data_id=record.id,
    )
    return tag(
        "li",
        _play_button(language),
        _seek_surface(record, language, tag("svg", path, **box), class_="vx-wave"),
        _words(record, language),
        tag("div", _download(record, media, language), reuse, class_="vx-buttons"),
        _recipe(record, language),
        class_="vx-lane",
        **_player_data(record, media),
    )


def _words(record: TakeRecord, language: str) -> str:
    text, control = record.spoken_text, ""
    if record.control:
        control = tag("span", escape(record.control), class_="vx-control") + " "
    shown = text if len(text) <= WORDS_IN_LANE else f"{text[: WORDS_IN_LANE - 1].rstrip()}…"
    facts = [clock(record.seconds), f"{say(language, 'seed')} {record.seed}", escape(record.model_id)]
    meta = [_ended(record, language), *(tag("span", fact) for fact in facts), _when(record)]
    return tag(
        "div",
        tag("p", control, escape(shown), title=text),
        tag("p", *meta, class_="vx-meta vx-num"),
        class_="vx-words",
    )


def clock(seconds: float) -> str:
    """0:06.4"""
    tenths = round(seconds * 10)
    return f"{tenths // 600}:{tenths // 10 % 60:02d}.{tenths % 10}"


def _when(record: TakeRecord) -> str:
    """The browser turns the time into the visitor's own zone; without a script it is UTC."""
    made = datetime.fromisoformat(record.created.replace("Z", "+00:00"))
    return tag("time", f"{made:%Y-%m-%d %H:%M} UTC", datetime=record.created)


def _ended(record: TakeRecord, language: str) -> str:
    return state_mark(record.ended_by, say(language, f"state_{record.ended_by}"))


def _seek_surface(record: TakeRecord, language: str, *children: str, class_: str) -> str:
    """What one clicks to jump; the playhead runs in ``vx-span``, the part of it that is the time axis."""
    return tag(
        "div",
        *children,
        tag("span", tag("span", class_="vx-playhead"), class_="vx-span"),
        class_=f"{class_} vx-seek",
        role="slider",
        tabindex=0,
        aria_label=say(language, "position"),
        aria_valuemin=0,
        aria_valuemax=f"{record.seconds:.1f}",
        aria_valuenow=0,
    )


def _play_button(language: str) -> str:
    return button("play", say(language, "play"), icon("play"), class_="vx-play")


def _player_data(record: TakeRecord, media: Media) -> dict[str, str]:
    return {
        "data_take": record.id,
        "data_src": media.address(record.id, "sound"),
        "data_seconds": f"{record.seconds:.4f}",
    }


def _download(record: TakeRecord, media: Media, language: str) -> str:
    title = say(language, "download")
    return tag(
        "a",
        icon("download"),
        say(language, "download_short"),
        class_="vx-link vx-download",
        href=media.address(record.id, "sound"),
        download=file_name(record),
        title=title,
        aria_label=title,
    )


def _recipe(record: TakeRecord, language: str) -> str:
    summary = tag("summary", icon("list"), say(language, "recipe"), title=say(language, "recipe_info"))
    words, done = say(language, "copy"), say(language, "copied")
    copy = button("copy", words, icon("copy"), tag("span", words), class_="vx-link", data_done=done)
    return tag("details", summary, tag("div", copy, tag("pre", escape(recipe_json(record)))), class_="vx-recipe")

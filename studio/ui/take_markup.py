"""Takes as HTML: lanes in a list, and the parts that a take is shown with.

assets/studio.js plays, seeks and draws by the ``data-`` attributes; the sound never belongs to these
elements, so they can be written anew while it plays.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape

from studio.takes import TakeRecord
from studio.ui.i18n import say
from studio.ui.markup import button, icon, state_mark, tag
from studio.ui.media import LANE_COLUMNS, Media, file_name, recipe_json

WORDS_IN_LANE = 240  # characters of the text that a lane shows


def tracks(record: TakeRecord, media: Media, language: str) -> str:
    pictures = [
        tag("div", *_pictures(what, record, media, language), class_="vx-track") for what in ("waveform", "spectrogram")
    ]
    return seek_surface(record.seconds, language, *pictures, class_="vx-tracks")


def _pictures(what: str, record: TakeRecord, media: Media, language: str) -> list[str]:
    """The picture for light and for dark; the browser loads the one that is shown."""
    address, name = media.address(record.id, what), say(language, what)
    return [
        f'<img class="only-{theme}" src="{address}?dark={dark}" alt="{name}" loading="lazy" draggable="false">'
        for theme, dark in (("light", 0), ("dark", 1))
    ]


def facts_list(record: TakeRecord, language: str, *more: str) -> str:
    """Seed, length, settings, model ... and ``more`` facts, in two or more columns."""
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
    if record.lora_name:
        facts.append(("adapter_name", f"{record.lora_name} · {record.lora_strength:.0%}"))
    cells = [fact(say(language, key), escape(value)) for key, value in facts]
    end = fact(say(language, "ended"), ended(record, language))
    return tag("dl", *cells, end, *more, class_="vx-facts")


def fact(name: str, value: str) -> str:
    return tag("div", tag("dt", name), tag("dd", value))


def lanes(records: list[TakeRecord], media: Media, language: str, empty: str) -> str:
    """Takes as lanes, the newest first; ``empty`` is said when there are none."""
    if not records:
        return tag("p", escape(empty), class_="vx-none")
    return tag("ul", *(_lane(record, media, language) for record in records), class_="vx-lanes")


def _lane(record: TakeRecord, media: Media, language: str) -> str:
    return tag(
        "li",
        play_button(language),
        seek_surface(record.seconds, language, wave(media.lane(record.id)), class_="vx-wave"),
        lane_words(record, language),
        tag("div", download_link(record, media, language), reuse_button(record, language), class_="vx-buttons"),
        recipe_fold(record, language),
        class_="vx-lane",
        **player_data(record, media),
    )


def wave(path: str) -> str:
    """An outline that :class:`Media` has drawn, as a picture that fills its place."""
    box = {"viewBox": f"0 0 {LANE_COLUMNS} 2", "preserveAspectRatio": "none", "aria_hidden": "true"}
    return tag("svg", f'<path d="{path}"/>', **box)


def reuse_button(record: TakeRecord, language: str) -> str:
    words = say(language, "reuse")
    return do("reuse", say(language, "reuse_title"), icon("reuse"), words, class_="vx-link", data_take_id=record.id)


def do(name: str, title: str, *children: str, class_: str, **attributes: object) -> str:
    """A button whose click is the event ``name`` of the component that it stands in (see takes_list.clicks)."""
    shows_words = any(">" not in child for child in children)
    named = {"title": title, "aria_label": None if shows_words else title, "data_do": name, **attributes}
    return tag("button", *children, type="button", class_=class_, **named)


def undo_line(sentence: str, gone: Sequence[str], language: str) -> str:
    """What was done, and the way back; what is ``gone`` is ticked no longer (assets/studio-history.js)."""
    back = do("undo", say(language, "undo"), icon("undo"), say(language, "undo"), class_="vx-link")
    return tag(
        "div",
        icon("info"),
        tag("span", escape(sentence)),
        back,
        class_="vx-notice is-info vx-undo",
        role="status",
        data_untick=",".join(gone),
    )


def lane_words(record: TakeRecord, language: str, facts_more: Sequence[str] = (), lines: Sequence[str] = ()) -> str:
    """Text, and below it what is known of the take; ``facts_more`` and ``lines`` are added at the end of each."""
    text, control = record.spoken_text, ""
    if record.control:
        control = tag("span", escape(record.control), class_="vx-control") + " "
    shown = text if len(text) <= WORDS_IN_LANE else f"{text[: WORDS_IN_LANE - 1].rstrip()}…"
    facts = [clock(record.seconds), f"{say(language, 'seed')} {record.seed}", escape(record.model_id)]
    meta = [ended(record, language), *(tag("span", fact) for fact in facts), *facts_more, moment(record.created)]
    return tag(
        "div",
        tag("p", control, escape(shown), title=text),
        tag("p", *meta, class_="vx-meta vx-num"),
        *lines,
        class_="vx-words",
    )


def clock(seconds: float) -> str:
    """0:06.4"""
    tenths = round(seconds * 10)
    return f"{tenths // 600}:{tenths // 10 % 60:02d}.{tenths % 10}"


def moment(created: str) -> str:
    """The browser turns the time into the visitor's own zone; without a script it is UTC."""
    made = datetime.fromisoformat(created.replace("Z", "+00:00"))
    return tag("time", f"{made:%Y-%m-%d %H:%M} UTC", datetime=created)


def ended(record: TakeRecord, language: str) -> str:
    return state_mark(record.ended_by, say(language, f"state_{record.ended_by}"))


def seek_surface(seconds: float, language: str, *children: str, class_: str) -> str:
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
        aria_valuemax=f"{seconds:.1f}",
        aria_valuenow=0,
    )


def play_button(language: str, title: str = "") -> str:
    return button("play", title or say(language, "play"), icon("play"), class_="vx-play")


def player_data(record: TakeRecord, media: Media) -> dict[str, str]:
    return {
        "data_take": record.id,
        "data_src": media.address(record.id, "sound"),
        "data_seconds": f"{record.seconds:.4f}",
    }


def download_link(record: TakeRecord, media: Media, language: str) -> str:
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


def recipe_fold(record: TakeRecord, language: str) -> str:
    summary = tag("summary", icon("list"), say(language, "recipe"), title=say(language, "recipe_info"))
    words, done = say(language, "copy"), say(language, "copied")
    copy = button("copy", words, icon("copy"), tag("span", words), class_="vx-link", data_done=done)
    return tag("details", summary, tag("div", copy, tag("pre", escape(recipe_json(record)))), class_="vx-recipe")

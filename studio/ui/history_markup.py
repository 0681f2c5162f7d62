"""The History tab as HTML: filters, lanes that can be ticked, pages, and one take in full.

A click on an element with ``data-do`` reaches Python as the component's event of that name (:func:`takes_list.clicks`);
what has ``data-act`` is answered by the scripts in assets/.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from studio.checks import Check
from studio.takes import TakeRecord
from studio.ui import take_markup
from studio.ui.i18n import say
from studio.ui.markup import button, icon, tag
from studio.ui.media import Media
from studio.ui.picker_takes import check_sentence
from studio.ui.take_markup import clock, do, play_button, player_data, reuse_button, seek_surface, wave

VERDICT_ICONS = {"ok": "check", "warn": "triangle", "fail": "cross"}
STARS = 5
MADE_IN = {"tts", "design", "cloning", "chapters", "voices", "history", "api"}  # tabs that have a word


# ---- finding


def filters(offered: Mapping[str, Sequence[tuple[str, str]]], wish: Mapping[str, object], language: str) -> str:
    """One list per facet: ``offered`` has (value, words) pairs; ``wish`` what is chosen now."""
    fields = [
        _choice(name, offered.get(name, ()), str(wish.get(name) or ""), language)
        for name in ("tab", "voice", "model", "ended_by", "verdict")
    ]
    starred = tag(
        "label",
        tag("input", type="checkbox", name_="starred", checked=bool(wish.get("starred")) or None),
        icon("star"),
        say(language, "filter_starred"),
        class_="vx-toggle",
    )
    clear = do("clear", say(language, "filter_clear"), say(language, "filter_clear"), class_="vx-link vx-clear")
    return tag("div", *fields, starred, clear, class_="vx-filters", role="group", aria_label=say(language, "filters"))


def _choice(name: str, offered: Sequence[tuple[str, str]], chosen: str, language: str) -> str:
    any_ = tag("option", say(language, "filter_any"), value="")
    known = [value for value, _ in offered]
    pairs = list(offered) + ([(chosen, chosen)] if chosen and chosen not in known else [])
    options = [tag("option", escape(words), value=value, selected=value == chosen or None) for value, words in pairs]
    words = tag("span", say(language, "filter_ended" if name == "ended_by" else f"filter_{name}"))
    field = tag("select", any_, *options, name_=name)
    return tag("label", words, field, class_="vx-choice")


def made_in(tab: str, language: str) -> str:
    return say(language, f"made_in_{tab}") if tab in MADE_IN else tab


def bar(shown: int, count: int, page: int, size: int, language: str) -> str:
    """How many there are, where one is, and what can be done with ticked takes."""
    first = (page - 1) * size + 1
    words = (
        say(language, "range", first=f"{first:,}", last=f"{first + shown - 1:,}", count=f"{count:,}") if shown else ""
    )
    all_ = tag(
        "label", tag("input", type="checkbox", class_="vx-pick-page"), say(language, "select_page"), class_="vx-pickall"
    )
    picked = [
        tag("b", "0", class_="vx-num vx-picked-count"),
        tag("span", say(language, "selected")),
        do("compare", say(language, "compare_title"), icon("compare"), say(language, "compare"), class_="vx-link"),
        do(
            "bundle",
            say(language, "download_zip_title"),
            icon("download"),
            say(language, "download_zip"),
            class_="vx-link",
        ),
        do("remove", say(language, "delete"), icon("bin"), say(language, "delete"), class_="vx-link"),
        button("unpick", say(language, "selection_clear"), say(language, "selection_clear"), class_="vx-link vx-bare"),
    ]
    selection = tag("div", *picked, class_="vx-selection", hidden=True)
    pages = pager(page, count, size, language)
    found = tag("p", words, class_="vx-found vx-num", role="status")
    return tag(
        "div", all_ if shown else "", selection, tag("span", class_="vx-grow"), found, pages, class_="vx-listbar"
    )


def pager(page: int, count: int, size: int, language: str) -> str:
    """Newest, newer, older, oldest; "" when everything fits on one page."""
    last = max(-(-count // size), 1)
    if last == 1:
        return ""
    steps = [("first", 1), ("newer", page - 1), ("older", page + 1), ("last", last)]
    buttons = []
    for name, target in steps:
        blocked = target == page or not 1 <= target <= last
        word = say(language, f"page_{name}")
        buttons.append(
            do("turn", word, icon(f"page-{name}"), class_="vx-link", data_page=target, disabled=blocked or None)
        )
    return tag("nav", *buttons, class_="vx-pager", aria_label=say(language, "page_of", page=page, last=last))


def lanes(
    records: Sequence[TakeRecord],
    media: Media,
    language: str,
    empty: str,
    voices: Mapping[str, str],
) -> str:
    """Takes that can be ticked, starred and opened; ``voices`` names voices by id."""
    if not records:
        return tag("p", escape(empty), class_="vx-none")
    rows = [_lane(record, media, language, voices) for record in records]
    return tag("ul", *rows, class_="vx-lanes vx-history")


def _lane(record: TakeRecord, media: Media, language: str, voices: Mapping[str, str]) -> str:
    tick = tag("input", type="checkbox", class_="vx-tick", value=record.id, aria_label=say(language, "select_take"))
    return tag(
        "li",
        tag("label", tick, class_="vx-tickbox"),
        play_button(language),
        seek_surface(record.seconds, language, wave(media.lane(record.id)), class_="vx-wave"),
        _words(record, language, voices),
        tag(
            "div", star(record, language), reuse_button(record, language), _open(record, language), class_="vx-buttons"
        ),
        class_="vx-lane",
        **player_data(record, media),
    )


def _words(record: TakeRecord, language: str, voices: Mapping[str, str]) -> str:
    """What take_markup.lane_words says, with the voice, the checks and the note that belong to a history."""
    extra = [verdict_mark(record, language)] if record.verdict in ("warn", "fail") else []
    if record.replay_of:
        extra.append(tag("span", icon("replay"), say(language, "replay"), class_="vx-voicename"))
    if record.voice:
        extra.append(tag("span", icon("voice"), escape(voices.get(record.voice, record.voice)), class_="vx-voicename"))
    note = record.note
    lines = [tag("p", icon("note"), escape(note), class_="vx-noteline", title=note)] if note else []
    return take_markup.lane_words(record, language, extra, lines)


def star(record: TakeRecord, language: str) -> str:
    on, off = say(language, "star_take"), say(language, "unstar")
    shape = icon("star" if record.starred else "star-empty")
    pressed = "true" if record.starred else "false"
    title = off if record.starred else on
    data = {"data_take_id": record.id, "data_on": on, "data_off": off, "aria_pressed": pressed}
    return do("star", title, shape, class_="vx-link vx-star", **data)


def _open(record: TakeRecord, language: str) -> str:
    words = say(language, "open_take")
    return do("show", words, icon("detail"), words, class_="vx-link", data_take_id=record.id)


def verdict_mark(record: TakeRecord, language: str) -> str:
    """The worst of the checks by shape, word and colour."""
    verdict = record.verdict or "none"
    shape = icon(VERDICT_ICONS.get(verdict, "ring"))
    return tag("span", shape, say(language, f"verdict_{verdict}"), class_=f"vx-verdict is-{verdict}")


# ---- one take


def nothing_open(language: str) -> str:
    title = tag("h2", say(language, "detail_empty_title"))
    return tag("div", title, tag("p", say(language, "detail_empty")), class_="vx-empty vx-detail-empty")


def detail(record: TakeRecord, media: Media, language: str, voice: str) -> str:
    """A take in full; ``voice`` is the name of the voice that spoke it, "" for none."""
    time = tag("span", f"0:00.0 / {clock(record.seconds)}", class_="vx-num vx-clock")
    control = tag("span", escape(record.control), class_="vx-control") + " " if record.control else ""
    facts = [(say(language, "made_by"), escape(made_in(record.tab, language)))]
    if voice:
        facts.append((say(language, "voice"), escape(voice)))
    more = [take_markup.fact(name, value) for name, value in facts]
    more.append(take_markup.fact(say(language, "made_at"), take_markup.moment(record.created)))
    return tag(
        "article",
        tag("header", play_button(language), time, tag("span", class_="vx-grow"), rating(record, language)),
        tag("p", control, escape(record.spoken_text), class_="vx-fulltext"),
        _tools(record, media, language),
        take_markup.tracks(record, media, language),
        checks(record, language),
        take_markup.facts_list(record, language, *more),
        take_markup.recipe_fold(record, language),
        class_="vx-detail",
        **player_data(record, media),
    )


def rating(record: TakeRecord, language: str) -> str:
    """One to five stars; pressing the last lit one again takes them all away (assets/studio-history.js)."""
    buttons = []
    for count in range(1, STARS + 1):
        lit = count <= record.rating
        shape, pressed = icon("star" if lit else "star-empty"), "true" if lit else "false"
        data = {"data_take_id": record.id, "data_rating": count, "aria_pressed": pressed}
        buttons.append(do("rate", say(language, "stars_of", count=count), shape, class_=_rate_class(lit), **data))
    return tag(
        "div",
        *buttons,
        class_="vx-rating",
        role="group",
        aria_label=say(language, "rating"),
        data_rating=record.rating,
    )


def _rate_class(lit: bool) -> str:
    return "vx-rate is-lit" if lit else "vx-rate"


def checks(record: TakeRecord, language: str) -> str:
    """What the checks found: everything that is not fine as a sentence."""
    if not record.checks:
        return tag("p", icon("ring"), say(language, "verdict_none"), class_="vx-verdict is-none")
    found = [check for check in map(Check.from_dict, record.checks) if check.verdict != "ok"]
    if not found:
        return tag("p", icon("check"), say(language, "checks_ok"), class_="vx-verdict is-ok")
    lines = [
        tag(
            "li",
            icon(VERDICT_ICONS[check.verdict]),
            tag("span", escape(check_sentence(check, language))),
            class_=f"vx-verdict is-{check.verdict}",
        )
        for check in found
    ]
    return tag("ul", *lines, class_="vx-checks")


def _tools(record: TakeRecord, media: Media, language: str) -> str:
    replay, delete = say(language, "replay"), say(language, "delete")
    return tag(
        "div",
        do("replay", say(language, "replay_title"), icon("replay"), replay, class_="vx-link", data_take_id=record.id),
        reuse_button(record, language),
        take_markup.download_link(record, media, language),
        do("remove_one", delete, icon("bin"), delete, class_="vx-link", data_take_id=record.id),
        class_="vx-buttons vx-tools",
    )

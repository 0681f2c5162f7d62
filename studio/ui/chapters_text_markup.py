"""The text of a book as HTML: chapters, script, the form of one segment, settings."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from html import escape

from studio.book.casting import speakers_of
from studio.book.manuscript import count_words, is_unspaced
from studio.book.project import Book, Chapter, Pauses, Segment, pauses_after
from studio.book.script import words_to_say
from studio.ui import chapters_words_markup as words_markup
from studio.ui.chapters_ask import Ask, press, tick_box
from studio.ui.markup import icon, number, tag

SEGMENTS_SHOWN = 600  # of one chapter


def body(ask: Ask, book: Book, chosen: int, opened: int, preview: str = "") -> str:
    """The whole step. ``preview``: what a change of the dictionary would do, when that is asked."""
    chapter = next((chapter for chapter in book.chapters if chapter.id == chosen), None)
    script = _script(ask, book, chapter, opened) if chapter else ""
    side = tag("aside", _words(ask, book), _chapters(ask, book, chosen), class_="vx-ch-side")
    folds = tag("div", words_markup.fold(ask, book, preview), _settings(ask, book), class_="vx-ch-folds")
    return tag("div", side, tag("div", folds, script, class_="vx-ch-main"), class_="vx-ch-text")


@lru_cache(maxsize=65536)
def spoken_words(text: str) -> int:
    return count_words(words_to_say(text))


@lru_cache(maxsize=65536)
def _all_words(text: str) -> int:
    return count_words(text)


def words_of(chapter: Chapter) -> int:
    return sum(spoken_words(segment.text) for segment in chapter.spoken)


def _words_inside(chapter: Chapter) -> int:
    """All words of a chapter, on and off. One that is longer than a segment lies in several, and is one word still."""
    count = sum(_all_words(segment.text) for segment in chapter.segments)
    return count - sum(map(_goes_on, chapter.segments, chapter.segments[1:]))


def _goes_on(first: Segment, second: Segment) -> bool:
    whole = first.paragraph == second.paragraph and not any(char.isspace() for char in first.text)
    return whole and all(char.isalnum() and not is_unspaced(char) for char in first.text[-1:] + second.text[:1])


def _words(ask: Ask, book: Book) -> str:
    """Words of the file beside those of the book: nothing is lost on the way."""
    spoken = sum(words_of(chapter) for chapter in book.chapters)
    inside = sum(_words_inside(chapter) for chapter in book.chapters)
    said = ask.say("chapters_equation_book", all=f"{inside:,}", spoken=f"{spoken:,}", silent=f"{inside - spoken:,}")
    before = book.project.words_in
    if not before:
        return tag("p", escape(said), class_="vx-ch-words vx-num")
    same = before == inside
    mark = tag("span", icon("check" if same else "note"), class_=f"vx-check is-{'ok' if same else 'warn'}")
    file = ask.say("chapters_equation_file" if same else "chapters_equation_edited", count=f"{before:,}")
    return tag("p", mark, tag("span", escape(f"{file} {said}")), class_="vx-ch-words vx-num")


def _chapters(ask: Ask, book: Book, chosen: int) -> str:
    count = len(book.chapters)
    rows = [_chapter(ask, chapter, place, count, chapter.id == chosen) for place, chapter in enumerate(book.chapters)]
    return tag("ol", *rows, class_="vx-ch-chapters", data_keep="chapters")


def _chapter(ask: Ask, chapter: Chapter, place: int, count: int, is_chosen: bool) -> str:
    title = chapter.title or ask.say("chapters_untitled")
    data = {"data_chapter": chapter.id}
    tick = tick_box("text.switch", title, chapter.on, **data)
    open_it = press(
        "text.chapter",
        title,
        escape(title),
        class_="vx-ch-title",
        aria_current="true" if is_chosen else None,
        **data,
    )
    words = tag("span", f"{words_of(chapter):,}", class_="vx-num vx-ch-count")
    tools = _chapter_tools(ask, chapter, place, count) if is_chosen else ""
    off = "" if chapter.on else " is-off"
    row = tag("div", tick, open_it, words, class_="vx-ch-section", data_form=True)
    return tag("li", row, tools, class_=f"{'is-chosen' if is_chosen else ''}{off}")


def _chapter_tools(ask: Ask, chapter: Chapter, place: int, count: int) -> str:
    data = {"data_chapter": chapter.id}
    name = tag(
        "input",
        type="text",
        name_="title",
        value=chapter.title,
        maxlength=200,
        data_ch="text.title",
        aria_label=ask.say("chapters_title"),
        **data,
    )
    last = place + 1 >= count
    tools = [
        _tool(ask, "text.move", "up", "chapters_up", disabled=None if place else True, data_to=place - 1, **data),
        _tool(ask, "text.move", "down", "chapters_down", disabled=True if last else None, data_to=place + 1, **data),
        _tool(ask, "text.merge", "merge", "chapters_merge", disabled=True if last else None, **data),
    ]
    return tag("div", name, tag("span", *tools, class_="vx-ch-icons"), class_="vx-ch-line", data_form=True)


def _tool(ask: Ask, do: str, shape: str, key: str, **data: object) -> str:
    return press(do, ask.say(key), icon(shape), class_="vx-quiet vx-round", **data)


# ------------------------------------------------------------------------------------------------- the script


def _script(ask: Ask, book: Book, chapter: Chapter, opened: int) -> str:
    pauses = pauses_after(chapter.segments, book.project.settings.pauses)
    rows = [
        _open_segment(ask, book, segment, pauses.get(segment.id))
        if segment.id == opened
        else _segment(ask, book, segment, pauses.get(segment.id))
        for segment in chapter.segments[:SEGMENTS_SHOWN]
    ]
    more = len(chapter.segments) - SEGMENTS_SHOWN
    if more > 0:
        rows.append(tag("li", ask.say("chapters_more", count=more), class_="vx-ch-hint"))
    seconds = sum(book.estimate(segment) for segment in chapter.spoken)
    limits = book.project.settings.limits
    facts = [
        tag("span", number(str(len(chapter.spoken))), " ", ask.say("chapters_segments")),
        tag("span", ask.say("chapters_about", time=f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.0f} min")),
        tag("span", ask.say("chapters_limits", characters=limits.characters, seconds=f"{limits.seconds:g}")),
    ]
    head = tag(
        "header",
        tag("h3", escape(chapter.title or ask.say("chapters_untitled"))),
        tag("p", *facts, class_="vx-meta vx-num"),
    )
    return tag("section", head, tag("ol", *rows, class_="vx-ch-script"))


def _segment(ask: Ask, book: Book, segment: Segment, pause: int | None) -> str:
    kinds = [segment.kind.replace(" ", "-")] + ["off"] * (not segment.on) + ["locked"] * segment.locked
    text = press(
        "text.look", ask.say("chapters_edit"), escape(segment.text), class_="vx-ch-read", data_segment=segment.id
    )
    chip = tag("span", escape(segment.speaker), class_="vx-ch-chip") if segment.speaker else ""
    return tag(
        "li",
        chip,
        text,
        _facts(ask, book, segment, pause),
        class_=" ".join(f"is-{kind}" for kind in kinds),
        data_segment=segment.id,
    )


def _facts(ask: Ask, book: Book, segment: Segment, pause: int | None) -> str:
    """How long it is beside the limits, and the silence behind it."""
    if not segment.is_spoken:
        return tag(
            "span", ask.say("chapters_scene" if segment.kind == "scene" else "chapters_silent"), class_="vx-ch-hint"
        )
    seconds, limits = book.estimate(segment), book.project.settings.limits
    over = len(segment.text) > limits.characters or seconds > limits.seconds
    facts = [
        tag("span", ask.say("chapters_characters", count=len(segment.text))),
        tag("span", f"≈ {seconds:.0f} s"),
    ]
    if pause is not None:
        facts.append(tag("span", icon("pause"), f"{pause / 1000:.1f} s", title=ask.say("chapters_pause_after")))
    if over:
        facts.append(tag("span", icon("triangle"), ask.say("chapters_too_long"), class_="vx-check is-warn"))
    if segment.locked:
        facts.append(tag("span", icon("lock"), ask.say("chapters_locked")))
    return tag("span", *facts, class_="vx-meta vx-num")


def _open_segment(ask: Ask, book: Book, segment: Segment, pause: int | None) -> str:
    data = {"data_segment": segment.id}
    tools = [
        press(
            "text.save",
            ask.say("chapters_save"),
            icon("check"),
            ask.say("chapters_save"),
            class_="vx-link is-main is-primary",
            **data,
        ),
        press("text.split", ask.say("chapters_split_title"), ask.say("chapters_split"), **data),
        press("text.join", ask.say("chapters_join_title"), ask.say("chapters_join"), **data),
        press("text.cut", ask.say("chapters_cut_title"), ask.say("chapters_cut"), **data),
        press(
            "text.look", ask.say("chapters_close"), ask.say("chapters_close"), class_="vx-link", data_escape="1", **data
        ),
    ]
    on = tag(
        "label",
        tag("input", type="checkbox", name_="on", checked=True if segment.on else None, data_ch="text.on", **data),
        ask.say("chapters_speak_this"),
        class_="vx-toggle",
    )
    return tag(
        "li",
        segment_form(ask, book, segment, pause),
        tag("div", *tools, on, class_="vx-ch-tools"),
        class_="is-open",
        data_form=True,
        data_segment=segment.id,
        data_edits="1",
    )


def segment_form(ask: Ask, book: Book, segment: Segment, pause: int | None) -> str:
    """The fields of one segment; a locked one cannot be typed into."""
    locked = True if segment.locked else None
    area = tag(
        "textarea",
        escape(segment.text),
        name_="text",
        rows=min(12, 2 + len(segment.text) // 80),
        data_cursor=True,
        readonly=locked,
        aria_label=ask.say("chapters_text"),
    )
    names = [tag("option", value=name) for name in speakers_of(book) if name]
    usual = "" if pause is None else str(pause)
    own = "" if segment.pause_ms is None else segment.pause_ms
    fields = [
        (
            "chapters_speaker",
            tag(
                "input",
                type="text",
                name_="speaker",
                value=segment.speaker,
                list="vx-ch-speakers",
                maxlength=60,
                readonly=locked,
                placeholder=ask.say("chapters_narrator"),
            ),
        ),
        (
            "chapters_control",
            tag(
                "input",
                type="text",
                name_="control",
                value=segment.control,
                maxlength=500,
                readonly=locked,
                placeholder=book.member(segment.speaker).control,
            ),
        ),
        (
            "chapters_pause",
            tag(
                "input",
                type="number",
                name_="pause",
                value=own,
                min=0,
                max=60000,
                step=50,
                readonly=locked,
                placeholder=usual,
            ),
        ),
    ]
    labels = [tag("label", tag("span", ask.say(key)), field, class_="vx-ch-field") for key, field in fields]
    return tag("div", area, tag("datalist", *names, id="vx-ch-speakers"), tag("div", *labels, class_="vx-ch-fields"))


# ------------------------------------------------------------------------------------------------- settings


def pauses_of(pauses: Pauses) -> dict[str, int]:
    return asdict(pauses)


def _settings(ask: Ask, book: Book) -> str:
    settings = book.project.settings
    numbers = [
        (f"pause_{name}", f"chapters_pause_{name}", value, 0, 60000, 50)
        for name, value in pauses_of(settings.pauses).items()
    ]
    numbers += [
        ("characters", "chapters_limit_characters", settings.limits.characters, 20, 2000, 10),
        ("seconds", "chapters_limit_seconds", round(settings.limits.seconds), 4, 60, 1),
        ("seed", "seed", settings.seed, 0, 2**32 - 1, 1),
    ]
    numbers += [
        ("cfg_value", "cfg_value", "" if settings.cfg_value is None else settings.cfg_value, 1, 5, 0.1),
        ("timesteps", "inference_timesteps", settings.inference_timesteps or "", 2, 100, 1),
    ]
    usual = ask.say("chapters_models_own")
    fields = [
        tag(
            "label",
            tag("span", ask.say(key)),
            tag("input", type="number", name_=name, value=value, min=least, max=most, step=step, placeholder=usual),
            class_="vx-ch-field is-short",
        )
        for name, key, value, least, most, step in numbers
    ]
    normalize = tag(
        "label",
        tag("input", type="checkbox", name_="normalize", checked=True if settings.normalize else None),
        ask.say("normalize"),
        class_="vx-toggle",
    )
    save = press("text.settings", ask.say("chapters_save"), ask.say("chapters_save"), class_="vx-link is-main")
    return tag(
        "details",
        tag("summary", icon("list"), ask.say("chapters_settings"), class_="vx-link"),
        tag(
            "div",
            tag("div", *fields, class_="vx-ch-fields"),
            tag("div", normalize, save, class_="vx-ch-tools"),
            class_="vx-ch-panel",
            data_form=True,
            data_edits="1",
        ),
        class_="vx-fold",
        data_fold="settings",
    )

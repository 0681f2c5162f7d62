"""The cast of a book as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from studio.book.casting import Suggestion, speakers_of
from studio.book.project import Book, CastMember
from studio.ui.chapters_ask import Ask, press
from studio.ui.context import Context
from studio.ui.markup import icon, notice, number, tag
from studio.ui.take_markup import play_button
from studio.voices import Voice

EXAMPLES = 8  # quotes shown of one name
NAMES_SHOWN = 30
KEPT_CLIP = "clip"  # the choice of a clip whose voice is not in the library


def body(ask: Ask, book: Book, voices: Sequence[Voice], found: Mapping[str, list[Suggestion]], context: Context) -> str:
    """The whole step."""
    counted = speakers_of(book)
    rows = [_speaker(ask, book, speaker, count, voices, context) for speaker, count in counted.items()]
    cast = tag(
        "section",
        tag("h3", ask.say("chapters_cast")),
        tag("p", ask.say("chapters_cast_info"), class_="vx-ch-hint"),
        _hints(ask, voices, context),
        tag("ul", *rows, class_="vx-ch-cast"),
        _add(ask),
    )
    return tag("div", cast, _suggested(ask, found, [name for name in counted if name]), class_="vx-ch-casting")


def _hints(ask: Ask, voices: Sequence[Voice], context: Context) -> str:
    status = context.synthesizer.status
    if not voices:
        return notice("info", ask.say("chapters_no_voices"))
    if status.state == "ready" and not status.supports_reference:
        return notice("info", ask.say("voice_unsupported", generation=status.generation))
    return ""


def _speaker(ask: Ask, book: Book, speaker: str, count: int, voices: Sequence[Voice], context: Context) -> str:
    member = book.cast.get(speaker)
    cast = member or CastMember(speaker)
    voice = next((one for one in voices if one.id == cast.voice), None)
    data = {"data_speaker": speaker, "data_ch": "cast.set"}
    name = escape(speaker) if speaker else ask.say("chapters_narrator")
    title = tag(
        "div",
        tag("b", name),
        tag("span", number(str(count)), " ", ask.say("chapters_segments"), class_="vx-meta vx-num"),
        class_="vx-ch-who",
    )
    fields = [
        tag(
            "label",
            tag("span", ask.say("voice")),
            _voices(ask, cast, member is None and speaker, voices, data),
            class_="vx-ch-field",
        ),
        tag(
            "label",
            tag("span", ask.say("chapters_control")),
            tag(
                "input",
                type="text",
                name_="control",
                value=cast.control,
                maxlength=500,
                placeholder=ask.say("control_hint"),
                disabled=True if cast.transcript else None,
                **data,
            ),
            class_="vx-ch-field",
        ),
    ]
    tools = [_sample(ask, voice, context)] if voice else []
    if voice and voice.transcript:
        tick = tag("input", type="checkbox", name_="goes_on", checked=True if cast.transcript else None, **data)
        tools.append(
            tag("label", tick, ask.say("chapters_goes_on"), class_="vx-toggle", title=ask.say("chapters_goes_on_title"))
        )
    if member is None or not cast.reference:
        title_words = ask.say("chapters_anchor_title")
        tools.append(press("cast.anchor", title_words, icon("dice"), ask.say("chapters_anchor"), data_speaker=speaker))
    if speaker and member:
        words = ask.say("chapters_remove_speaker", name=speaker)
        tools.append(press("cast.remove", words, icon("bin"), class_="vx-quiet vx-round", data_speaker=speaker))
    return tag(
        "li",
        title,
        tag("div", *fields, class_="vx-ch-fields"),
        tag("div", *tools, class_="vx-ch-tools"),
        data_form=True,
        data_speaker=speaker,
    )


def _voices(ask: Ask, cast: CastMember, as_narrator: object, voices: Sequence[Voice], data: Mapping[str, str]) -> str:
    """The choice of a voice. What was deleted since stands there by its kept clip."""
    none = ask.say("chapters_as_narrator" if as_narrator else "chapters_own_voice")
    options = [("", none)] + [(voice.id, voice.name) for voice in voices]
    chosen = cast.voice if cast.voice in dict(options) else ""
    if cast.reference and not chosen:
        chosen = KEPT_CLIP
        options.append((KEPT_CLIP, ask.say("chapters_deleted_voice" if cast.voice else "chapters_clip")))
    marks = [
        tag("option", escape(words), value=value, selected=True if value == chosen else None)
        for value, words in options
    ]
    return tag("select", *marks, name_="voice", **data)


def _sample(ask: Ask, voice: Voice, context: Context) -> str:
    return tag(
        "span",
        play_button(ask.language, ask.say("voice_play")),
        class_="vx-ch-sample",
        data_take=voice.id,
        data_src=context.media.voice_address(voice.id),
        data_seconds=f"{voice.seconds:.3f}",
    )


def _add(ask: Ask) -> str:
    field = tag(
        "input",
        type="text",
        name_="name",
        maxlength=60,
        placeholder=ask.say("chapters_speaker_name"),
        aria_label=ask.say("chapters_speaker_name"),
    )
    add = press("cast.add", ask.say("chapters_add_speaker"), ask.say("chapters_add_speaker"), class_="vx-link is-main")
    return tag("div", field, add, class_="vx-ch-line", data_form=True)


def _suggested(ask: Ask, found: Mapping[str, list[Suggestion]], known: Sequence[str]) -> str:
    total = sum(map(len, found.values()))
    head = tag("h3", ask.say("chapters_dialogue", count=total))
    if not total:
        return tag("section", head, tag("p", ask.say("chapters_dialogue_none"), class_="vx-ch-hint"))
    groups = [_group(ask, name, quotes) for name, quotes in list(found.items())[:NAMES_SHOWN]]
    names = [tag("option", value=name) for name in dict.fromkeys([*known, *(name for name in found if name)])]
    return tag(
        "section",
        head,
        tag("p", ask.say("chapters_dialogue_info"), class_="vx-ch-hint"),
        tag("datalist", *names, id="vx-ch-names"),
        tag("ul", *groups, class_="vx-ch-dialogue"),
    )


def _group(ask: Ask, name: str, quotes: list[Suggestion]) -> str:
    title = escape(name) if name else ask.say("chapters_unnamed")
    target = tag(
        "input",
        type="text",
        name_="target",
        value=name,
        list="vx-ch-names",
        maxlength=60,
        placeholder=ask.say("chapters_speaker_name"),
        aria_label=ask.say("chapters_speaker_name"),
    )
    give = press(
        "cast.accept",
        ask.say("chapters_give_title"),
        ask.say("chapters_give", count=len(quotes)),
        class_="vx-link is-main",
        data_found=name,
    )
    rows = [
        tag(
            "li",
            tag("q", escape(quote.words[:140].strip('“”"「」『』«»‘’'))),
            press(
                "cast.accept",
                ask.say("chapters_give_title"),
                ask.say("chapters_give_one"),
                class_="vx-quiet",
                data_found=name,
                data_segment=quote.segment,
            ),
        )
        for quote in quotes[:EXAMPLES]
    ]
    if len(quotes) > EXAMPLES:
        rows.append(tag("li", ask.say("chapters_more", count=len(quotes) - EXAMPLES), class_="vx-ch-hint"))
    fold = tag(
        "details",
        tag("summary", tag("b", title), tag("span", str(len(quotes)), class_="vx-num vx-ch-badge")),
        tag("ul", *rows),
        data_fold=f"quotes-{name}",
    )
    return tag("li", fold, tag("div", target, give, class_="vx-ch-line"), data_form=True)

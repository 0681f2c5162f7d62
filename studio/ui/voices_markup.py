"""Saved voices as HTML: cards in a grid, one voice in full, and what stands there before the first one."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from studio.ui.i18n import say
from studio.ui.markup import icon, number, state_mark, tag
from studio.ui.media import Media
from studio.ui.take_markup import clock, do, fact, moment, play_button, seek_surface, wave
from studio.voices import Voice

SOURCES = {"design", "take", "clip", "bundle"}  # that have a word


def avatar(voice: Voice) -> str:
    """The voice's colour with its initials; the name stands beside it."""
    return tag(
        "span", escape(initials(voice.name)), class_="vx-avatar", style=f"background:{voice.colour}", aria_hidden="true"
    )


def initials(name: str) -> str:
    """ "Anna Bell" -> "AB", "anna" -> "A", "安娜" -> "安"."""
    words = [word for word in name.split() if word[0].isalnum()] or [name]
    return (words[0][0] + (words[-1][0] if len(words) > 1 else "")).upper()


def tag_filter(tags: Sequence[str], chosen: str, language: str) -> str:
    """The tags in use as switches, one of them on; "" when there are none."""
    if not tags:
        return ""
    names = [("", say(language, "tags_all")), *((name, name) for name in tags)]
    buttons = []
    for value, words in names:
        pressed = "true" if value == chosen else "false"
        buttons.append(do("tag", words, escape(words), class_="vx-tag", data_tag=value, aria_pressed=pressed))
    return tag("div", *buttons, class_="vx-tags", role="group", aria_label=say(language, "voice_tags"))


def found(shown: int, count: int, language: str) -> str:
    if shown != count:
        words = say(language, "voices_some", shown=shown, count=count)
    else:
        words = say(language, "voices_one") if count == 1 else say(language, "voices_count", count=count)
    return tag("p", words if count else "", class_="vx-found vx-num", role="status")


def cards(voices: Sequence[Voice], media: Media, language: str) -> str:
    """The grid. ``media`` is asked for every voice's outline; a voice without one has lost its sound."""
    return tag("ul", *(_card(voice, media, language) for voice in voices), class_="vx-voices")


def _card(voice: Voice, media: Media, language: str) -> str:
    tick = tag(
        "input",
        type="checkbox",
        class_="vx-voicetick",
        value=voice.id,
        aria_label=say(language, "voice_select", name=voice.name),
    )
    opener = do(
        "show",
        say(language, "voice_open", name=voice.name),
        tag("b", escape(voice.name)),
        class_="vx-voiceopen",
        data_voice=voice.id,
    )
    about = voice.description or voice.transcript
    meta = [
        tag("span", source(voice, language)),
        tag("span", clock(voice.seconds)),
        *(tag("span", escape(name), class_="vx-tagmark") for name in voice.tags),
    ]
    lost = not media.voice_lane(voice.id)
    play = (
        tag("span", icon("triangle"), class_="vx-lost", title=say(language, "voice_no_audio"))
        if lost
        else play_button(language, say(language, "voice_play"))
    )
    return tag(
        "li",
        avatar(voice),
        tag(
            "div",
            opener,
            tag("p", escape(about), class_="vx-about", title=about),
            tag("p", *meta, class_="vx-meta vx-num"),
            class_="vx-voicewords",
        ),
        tag("div", play, tag("label", tick, class_="vx-tickbox"), class_="vx-voicetools"),
        class_="vx-voice",
        data_voice=voice.id,
        **({} if lost else voice_data(voice, media)),
    )


def source(voice: Voice, language: str) -> str:
    return say(language, f"voice_source_{voice.source}") if voice.source in SOURCES else escape(voice.source)


def voice_data(voice: Voice, media: Media) -> dict[str, str]:
    """What the page's transport needs to play the reference."""
    return {
        "data_take": voice.id,
        "data_src": media.voice_address(voice.id),
        "data_seconds": f"{voice.seconds:.4f}",
    }


def detail(voice: Voice, media: Media, language: str) -> str:
    """One voice in full: its sound, its words, where it comes from."""
    path = media.voice_lane(voice.id)
    title = tag(
        "div",
        tag("h2", escape(voice.name)),
        tag("p", source(voice, language), " · ", f"{voice.seconds:.1f} s", class_="vx-meta vx-num"),
    )
    head = tag("header", avatar(voice), title)
    facts = [
        (say(language, "voice_made"), moment(voice.created)),
        (say(language, "rate"), f"{voice.sample_rate / 1000:g} kHz"),
    ]
    if voice.seed is not None:
        facts.append((say(language, "voice_seed"), str(voice.seed)))
    lines = [
        tag("p", escape(voice.description), class_="vx-voicetext") if voice.description else "",
        tag("blockquote", escape(voice.transcript), class_="vx-voicetext") if voice.transcript else "",
        tag("dl", *(fact(name, value) for name, value in facts), class_="vx-facts"),
        _tools(voice, language),
    ]
    if not path:
        lost = tag(
            "div", icon("cross"), tag("div", say(language, "voice_no_audio")), class_="vx-notice is-error", role="alert"
        )
        return tag("article", head, lost, *lines, class_="vx-voicecard")
    time = tag("span", f"0:00.0 / {clock(voice.seconds)}", class_="vx-num vx-clock")
    surface = seek_surface(voice.seconds, language, wave(path), class_="vx-wave")
    player = tag("header", play_button(language, say(language, "voice_play")), surface, time, class_="vx-voiceplayer")
    return tag("article", head, player, *lines, class_="vx-voicecard", **voice_data(voice, media))


def _tools(voice: Voice, language: str) -> str:
    use, export, delete = say(language, "voice_use"), say(language, "voice_export"), say(language, "delete")
    return tag(
        "div",
        do("use", use, icon("reuse"), use, class_="vx-link", data_voice=voice.id),
        do(
            "export_one",
            say(language, "voice_export_one"),
            icon("download"),
            export,
            class_="vx-link",
            data_voice=voice.id,
        ),
        do("remove", say(language, "voice_delete"), icon("bin"), delete, class_="vx-link", data_voice=voice.id),
        class_="vx-buttons vx-tools",
    )


def none_open(language: str) -> str:
    title = tag("h2", say(language, "voice_choose_title"))
    return tag("div", title, tag("p", say(language, "voice_choose")), class_="vx-empty vx-detail-empty")


def empty(language: str) -> str:
    """Teaches where the first voice will be."""
    steps = (tag("li", say(language, f"voices_empty_{step}")) for step in (1, 2, 3))
    return tag(
        "div",
        tag("span", class_="vx-empty-wave", aria_hidden="true"),
        tag("h2", say(language, "voices_empty_title")),
        tag("ol", *steps),
        class_="vx-empty vx-voices-empty",
    )


def bundle_bar(language: str) -> str:
    words = say(language, "voice_export")
    return do("export", say(language, "voice_export_title"), icon("download"), tag("span", words), class_="vx-link")


def trial(seconds: float, rtf: float, language: str) -> str:
    """How far a trial is."""
    state = "speaking" if seconds else "starting"
    facts = [
        tag("span", number(f"{seconds:.1f}"), " ", say(language, "seconds_made")),
        tag("span", "RTF ", number(f"{rtf:.2f}"), title=say(language, "rtf_title")),
    ]
    line = facts if seconds else []
    return tag(
        "div", state_mark(state, say(language, f"state_{state}")), *line, class_=f"vx-trial is-{state}", role="status"
    )


def fetch(address: str, name: str) -> str:
    """A download that assets/studio-history.js starts when it appears."""
    return tag(
        "a", "", href=address, download=name, data_fetch=True, class_="vx-unseen", tabindex=-1, aria_hidden="true"
    )

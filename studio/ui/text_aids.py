"""What helps while a text is typed: what exactly will be spoken, its length, its language, brackets and braces.

One function for every form (:meth:`studio.ui.form.FormHandlers.preview` calls it), so all tabs say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from studio.events import ModelStatus
from studio.languages import Language, detect_language, estimate_seconds, languages_of
from studio.ui.i18n import WORDS, say
from studio.ui.markup import tag
from voxcpm_core.text import SpokenText

BRACES = re.compile(r"\{[^{}]*\}")
SHORT_CHARACTERS = 4  # with these or fewer, takes are unsteady
LONG_SECONDS = 45.0  # voices drift after about this
METER_SECONDS = 60.0  # the end of the meter's scale
SHOWN_BRACES = 6

# The core's sentences about a text, by their beginnings, and the words of this page for them.
NOTES = {
    "Brackets at the start are read as words": "aid_brackets",
    "Formatting marks": "aid_marks",
    "Emoji and ornaments": "aid_emoji",
    "Brackets inside the control": "aid_control_brackets",
    "The control is not sent: this generation": "aid_control_unsupported",
    "The control is not sent: with a transcript": "aid_control_transcript",
    "Numbers and symbols are written out": "aid_numbers",
    "Numbers in other languages": "aid_numbers_kept",
}


def preview(spoken: SpokenText, language: str, status: ModelStatus | None = None) -> str:
    """What will be spoken, with what was changed, and what to think of. ``status`` tells the model's languages."""
    count, seconds = len(spoken.text), estimate_seconds(spoken.text)
    found = detect_language(spoken.text)
    header = tag("header", tag("h3", say(language, "preview")), tag("span", _facts(count, seconds, found, language)))
    control = ""
    if spoken.control:
        named = tag("b", say(language, "preview_control"))
        control = tag("span", named, " ", escape(spoken.control), class_="vx-control") + " "
    said = [note_of(note, language) for note in spoken.notes]
    said += _hints(spoken.text, count, seconds, found, status, language)
    lines = tag("ul", *(tag("li", escape(line)) for line in said)) if said else ""
    words = tag("p", control, _with_braces(spoken.text), class_="vx-spoken")
    return tag("section", header, meter(seconds, language), words, lines, class_="vx-preview")


def _facts(count: int, seconds: float, found: Language | None, language: str) -> str:
    characters = say(language, "preview_one_character" if count == 1 else "preview_characters", count=count)
    facts = [characters, say(language, "preview_seconds", seconds=_rounded(seconds))]
    shown = [tag("span", escape(fact), class_="vx-num") for fact in facts]
    if found is not None:
        shown.append(tag("span", escape(name_of(found, language)), class_="vx-language", data_language=found.code))
    return " · ".join(shown)


def _rounded(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < 3 else f"{seconds:.0f}"


def meter(seconds: float, language: str) -> str:
    """A bar of a minute: how much of it the text may take, and where voices begin to drift."""
    state = "is-long" if seconds > LONG_SECONDS else "is-ok"
    share = min(seconds / METER_SECONDS, 1.0)
    return tag(
        "div",
        tag("span", style=f"width:{share:.1%}"),
        tag("i", style=f"left:{LONG_SECONDS / METER_SECONDS:.1%}", aria_hidden="true"),
        class_=f"vx-length {state}",
        role="meter",
        aria_label=say(language, "aid_length"),
        aria_valuemin=0,
        aria_valuemax=f"{METER_SECONDS:.0f}",
        aria_valuenow=f"{min(seconds, METER_SECONDS):.1f}",
        aria_valuetext=say(language, "preview_seconds", seconds=_rounded(seconds)),
        title=say(language, "aid_length_title"),
    )


def note_of(note: str, language: str) -> str:
    """A sentence of the core in the visitor's language; one that is not known stays as it is."""
    key = next((key for beginning, key in NOTES.items() if note.startswith(beginning)), None)
    return note if key is None or language == "en" else say(language, key)


def name_of(found: Language, language: str) -> str:
    key = f"language_{found.code}"
    return say(language, key) if key in WORDS else found.name


def _hints(
    text: str, count: int, seconds: float, found: Language | None, status: ModelStatus | None, language: str
) -> Iterator[str]:
    if seconds > LONG_SECONDS:
        yield say(language, "preview_long")
    elif count <= SHORT_CHARACTERS:
        yield say(language, "preview_short")
    braces = BRACES.findall(text)
    if braces:
        shown = " ".join(braces[:SHOWN_BRACES]) + (" …" if len(braces) > SHOWN_BRACES else "")
        yield say(language, "aid_braces", braces=shown)
    if "{" in BRACES.sub("", text) or "}" in BRACES.sub("", text):
        yield say(language, "aid_brace_open")
    if found is not None and status is not None and status.state == "ready":
        spoken = languages_of(status.name, status.generation)
        if found.code not in spoken:
            key = "aid_language_one" if len(spoken) == 1 else "aid_language"
            yield say(language, key, found=name_of(found, language), model=status.name, count=len(spoken))


def _with_braces(text: str) -> str:
    """The words, with what is in braces marked."""
    pieces, at = [], 0
    for match in BRACES.finditer(text):
        pieces += [escape(text[at : match.start()]), tag("mark", escape(match.group()), class_="vx-braces")]
        at = match.end()
    return "".join([*pieces, escape(text[at:])])

"""From what a user typed to the exact string the tokenizer gets, with a sentence for every change on the way.

The order is fixed: clean, bracket rule, normalise; then the control, which the steps before never see, is put
in front as ``(control)text``. Nothing is ever left empty silently: a text without words is a
:class:`TextError`.
"""

import html
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from .errors import TextError
from .normalizer import BRACES, LINKS, normalize_with_notes


@dataclass(frozen=True)
class SpokenText:
    """What will be spoken, and what was done to get there (the preview)."""

    text: str
    """The words to speak, after cleaning and normalising."""
    control: str
    """The cleaned control text; "" when none is sent."""
    prompt: str
    """The exact string for the tokenizer: ``(control)text``, or ``text`` when no control is sent."""
    notes: tuple[str, ...]
    """Sentences for the user: what was changed or not sent, and why."""


# ---------------------------------------------------------------- characters

_NEWLINES = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8});", re.IGNORECASE)
_VARIATION_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_ARABIC_SIGNS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f")  # number signs, end of verse
_JOINERS = "\u200c\u200d"  # spelling in Persian and Indic scripts, glue inside emoji
_STRAY_JOINER = re.compile(f"(?<![^\x00-\x7f])[{_JOINERS}]|[{_JOINERS}](?![^\x00-\x7f])")
# pictures, flags, dingbats (but not the numbers in circles), boxes, geometric shapes (but not the circle that
# Chinese uses for zero), bullets, keycaps
_EMOJI = (
    "[\U0001f000-\U0001f0ff\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff\u2600-\u2775\u2794-\u27bf\u2b00-\u2bff"
    "\u231a\u231b\u23e9-\u23fa\u2500-\u25ca\u25cc-\u25ff\u2022\u2023\u20e3\ufffc\ufffd]"
)
_EMOJI_RUN = re.compile(rf"\s*{_EMOJI}[\s{_EMOJI[1:-1]}{_JOINERS}]*")


def _readable(char: str) -> bool:
    if unicodedata.category(char) in ("Cc", "Cs", "Co", "Cf"):
        return char in "\n\t" or char in _JOINERS or char in _ARABIC_SIGNS
    return True


def _drop_unreadable(text: str) -> str:
    """Control, private and half characters, direction marks, zero-width blanks go; letters stay."""
    return _STRAY_JOINER.sub("", "".join(c for c in text if _readable(c)))


def _unify(text: str) -> str:
    """What nobody sees: one kind of line end, accents joined with their letters, no picture selectors."""
    text = "".join(c for c in _NEWLINES.sub("\n", text) if c not in _VARIATION_SELECTORS)
    return unicodedata.normalize("NFC", text)


def _decode(text: str) -> str:
    return _ENTITY.sub(lambda m: html.unescape(m[0]), text)


def _drop_emoji(text: str) -> str:
    def blank(match: re.Match[str]) -> str:
        following = text[match.end() : match.end() + 1]
        return "" if match.start() == 0 or not following or following in "。，、！？；：.,!?;:)）”’」』" else " "

    return _EMOJI_RUN.sub(blank, text)


# ---------------------------------------------------------------- Markdown: lines

_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*$")
_BULLET = re.compile(r"[-*+•‣◦▪●■□◆◇▶►✓✔✅☑]\s+(?:\[[ xX]\]\s+)?(?=\S)")
_NUMBERED = re.compile(r"(\d{1,3})(?:[.)]\s+|、\s*)(?=\S)")
_RULE = re.compile(r"(?:([-*_=~`])\s*)(?:\1\s*){2,}$|={2,}$")
_FENCE = re.compile(r"(?:```+|~~~+)\s*[\w+#.-]*$")
_TABLE_ROW = re.compile(r"\|(.+)\|$")
_TABLE_LINE = re.compile(r"\|?[\s:|-]*-[\s:|-]*\|[\s:|-]*$")
_SEPARATORS = (_RULE, _FENCE, _TABLE_LINE)
_HAN_OR_KANA = re.compile("[\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
_CLOSERS = "*_~`\"'”’)]）】」』》"


def _end_sentence(line: str) -> str:
    """Add the missing full stop; a line that ends in any punctuation is left alone."""
    words = line.rstrip(_CLOSERS)
    if not words or not words[-1].isalnum():
        return line
    return line + ("。" if _HAN_OR_KANA.match(words[-1]) else ".")


def _as_block(line: str, numbered: bool) -> str | None:
    """The words of a heading, list item or table row; None for a line of ordinary text."""
    if match := _HEADING.match(line):
        return match[1]
    if match := _BULLET.match(line):
        return line[match.end() :]
    if match := _TABLE_ROW.match(line):
        cells = [cell.strip() for cell in match[1].split("|") if cell.strip()]
        return ("，" if _HAN_OR_KANA.search(line) else ", ").join(cells)
    if numbered and (match := _NUMBERED.match(line)):
        words = line[match.end() :]
        return f"{match[1]}、{words}" if _HAN_OR_KANA.match(words) else f"{match[1]}. {words}"
    return None


def _sentences_from_lines(text: str) -> str:
    """One line: headings, list items, table rows, paragraphs end as sentences, other line ends are blanks."""
    lines = [re.sub(r"^(?:>\s?)+", "", line) if line.startswith(">") else line for line in text.split("\n")]
    numbered = sum(bool(_NUMBERED.match(line.strip())) for line in lines) > 1
    blocks: list[str] = []
    last = ""  # kind of the line before: "" (a gap), "plain" or "block"
    open_block = False  # the newest entry is a heading, item or row
    for line in lines:
        words = line.strip()
        if not words or any(pattern.match(words) for pattern in _SEPARATORS):
            last = ""
            continue
        block = _as_block(words, numbered)
        if block is None and (last == "plain" or (last == "block" and line[:1].isspace())):
            blocks[-1] += f" {words}"  # the paragraph goes on, or an indented line goes on with its list item
            continue
        if blocks:
            blocks[-1] = _end_sentence(blocks[-1])
        open_block = block is not None
        last = "block" if open_block else "plain"
        blocks.append(block or words)
    if open_block:
        blocks[-1] = _end_sentence(blocks[-1])
    return " ".join(blocks)


# ---------------------------------------------------------------- Markdown: inside a line

_INLINE = tuple(
    (re.compile(pattern, flags), replacement)
    for pattern, replacement, flags in (
        (
            r"</?(?:br|p|b|i|em|strong|u|s|span|div|h[1-6]|li|ul|ol|a|sub|sup|code|pre)\b[^<>]{0,400}>",
            " ",
            re.I,
        ),
        (
            r"!?\[([^\[\]]{0,400})\]\([^()\s]{0,400}(?:\s+\"[^\"]{0,200}\")?\)",
            r"\1",
            0,
        ),  # links and pictures: their words
        (r"\[\^[^\[\]\s]{1,40}\]:?", "", 0),  # footnote marks
        (r"<([\ue010-\uf8ff])>", r"\1", 0),  # a link
        (r"(?<!`)(`{1,3})(?=[^\s`])([^`]{1,400})(?<=\S)\1", r"\2", 0),
        (r"(?<=[A-Za-z])`(?=[A-Za-z])", "'", 0),
        (r"`+", "", 0),
        (r"(?<![\\*])(\*{1,3})(?=[^\s*])([^*]{1,400})(?<=[^\s*\\])\1(?!\*)", r"\2", 0),
        (r"(?<![\\\w])(_{1,3})(?=[^\s_])(.{1,400}?)(?<=[^\s_\\])\1(?!\w)", r"\2", re.ASCII),
        (r"~~(?=[^\s~])([^~]{1,400})(?<=\S)~~", r"\1", 0),
        (r"(?<![\\*A-Za-z])\*{2,}|(?<![\\*])\*{2,}(?![*A-Za-z])", "", 0),  # a mark without its partner
        (r"\\([\\`*_{}\[\]()#+.!|~>-])", r"\1", 0),
    )
)
_ARITHMETIC = re.compile(r"(?<=\d) ?\*{1,2} ?(?=\d)")


# Private characters are dropped before, so they are free to stand for what must not be touched.
_TIMES, _SHELF, _SHELF_SIZE = "\ue000", 0xE010, 0xF8FF - 0xE010


def _drop_marks(text: str) -> str:
    """Formatting marks go, their words stay. ``2*3*4``, addresses and phone braces keep theirs."""
    shelf: list[str] = []

    def put_away(match: re.Match[str]) -> str:
        if len(shelf) >= _SHELF_SIZE:
            return match[0]
        shelf.append(match[0])
        return chr(_SHELF + len(shelf) - 1)

    for kept in (BRACES, LINKS):
        text = kept.sub(put_away, text)
    text = _ARITHMETIC.sub(lambda m: m[0].replace("*", _TIMES), text)
    for pattern, replacement in _INLINE:
        text = pattern.sub(replacement, text)
    text = text.replace(_TIMES, "*")
    return re.sub("[\ue010-\uf8ff]", lambda m: shelf[ord(m[0]) - _SHELF], text)


# ---------------------------------------------------------------- brackets

_OPEN, _CLOSE = "(（﹙", ")）﹚"  # the full-width ones are what a Chinese keyboard types
_BRACKET = "[()（）﹙﹚]"
_PUNCTUATION = ".,!?;:…—-。，、！？；："


def _closing_bracket(text: str) -> int | None:
    """Where the bracket that starts ``text`` is closed."""
    depth = 0
    for index, char in enumerate(text):
        depth += (char in _OPEN) - (char in _CLOSE)
        if depth == 0:
            return index
    return None


def _open_up(text: str) -> str:
    """Words in brackets at the start become words and a comma: ``(1996) was warm.`` -> ``1996, was warm.``"""
    while text[:1] in tuple(_OPEN):
        end = _closing_bracket(text)
        if end is None:
            return text.lstrip(_OPEN + " ")
        inner, rest = _strip_brackets(text[1:end]).strip(), text[end + 1 :].lstrip()
        text = _with_pause(inner, rest) if inner and rest else inner + rest
    return text


def _with_pause(before: str, after: str) -> str:
    han = bool(_HAN_OR_KANA.match(before[-1]) or _HAN_OR_KANA.match(after[0]))
    if after[0] in _PUNCTUATION:
        return before + after
    if before[-1] in _PUNCTUATION:
        return before + ("" if han or before[-1] in "。，、！？；：" else " ") + after
    return before + ("，" if han else ", ") + after


def _strip_brackets(words: str) -> str:
    between_words = rf"(?<=[A-Za-z0-9]){_BRACKET}+(?=[A-Za-z0-9])"
    return re.sub(f"{_BRACKET}+", "", re.sub(between_words, " ", words))


def split_control(text: str) -> tuple[str, str]:
    """Take off a control typed before the text, upstream's way: ``(calm)Hello`` -> ``("calm", "Hello")``.

    Returns ``("", text)`` when there is none. Only a generation that takes a control reads the text so: for
    the others the brackets are words, and splitting would lose them.
    """
    typed = _as_text(text).lstrip()
    end = _closing_bracket(typed) if typed[:1] in tuple(_OPEN) else None
    if end is None:
        return "", text
    return typed[1:end].strip(), typed[end + 1 :].lstrip()


# ---------------------------------------------------------------- the public steps

_CLEANING: tuple[tuple[Callable[[str], str], str], ...] = (
    (_decode, "Character codes (such as &amp;) are read as the characters they stand for."),
    (_drop_unreadable, "Invisible and control characters are left out."),
    (_sentences_from_lines, "Headings, list items and paragraphs are read as sentences of their own."),
    (_drop_marks, "Formatting marks (such as ** or `) are left out."),
    (_drop_emoji, "Emoji and ornaments are left out."),
)


def _as_text(text: object) -> str:
    if isinstance(text, str):
        return text
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return str(text)
    given = "no text was given" if text is None else f"the text must be a string, not {type(text).__name__}"
    raise TextError(f"Nothing to speak: {given}. Type at least one word.")


def _require_words(text: str, typed: str) -> str:
    """Pass ``text`` on if it holds a letter or a digit of any script; ``typed`` is named in the error."""
    if any(c.isalnum() for c in text):
        return text
    shown = " ".join("".join(c if c.isprintable() else " " for c in typed).split())
    if not shown:
        raise TextError("Nothing to speak: the text is empty. Type at least one word.")
    shown = shown if len(shown) <= 40 else f"{shown[:40]}…"
    raise TextError(f"Nothing to speak in “{shown}”: no letters or digits are left. Type at least one word.")


def _blanks(text: str) -> str:
    return " ".join(text.split())


def _clean(text: str) -> tuple[str, list[str]]:
    notes = []
    text = _unify(text)
    for step, note in _CLEANING:
        before, text = text, step(text)
        if _blanks(before) != _blanks(text):
            notes.append(note)
    return _blanks(text), notes


def clean_text(text: str) -> str:
    """One line of words: no control characters, formatting marks, emoji; single blanks. For transcripts, too.

    Raises:
        TextError: nothing speakable is left.
    """
    typed = _as_text(text)
    return _require_words(_clean(typed)[0], typed)


def normalize_text(text: str) -> str:
    """Numbers, dates, amounts and symbols as words (English and Chinese; other languages are left alone).

    Raises:
        TextError: nothing speakable is left, or the package ``wetext`` is missing.
    """
    typed = _as_text(text)
    return _require_words(normalize_with_notes(typed)[0], typed)


def _clean_control(control: str | None) -> tuple[str, list[str]]:
    typed = _blanks(_drop_unreadable(_decode(_unify(control or ""))))
    words = _blanks(_strip_brackets(_drop_emoji(_drop_marks(typed))))
    if not any(c.isalnum() for c in words):
        return "", [f"The control “{typed[:40]}” has no words and is not sent."] if typed else []
    changed = any(c in typed for c in _OPEN + _CLOSE)
    return words, ["Brackets inside the control are left out."] if changed else []


def _control_to_send(control: str | None, supported: bool, has_transcript: bool) -> tuple[str, list[str]]:
    words, notes = _clean_control(control)
    if words and not supported:
        return "", ["The control is not sent: this generation of the model does not take one."]
    if words and has_transcript:
        return "", ["The control is not sent: with a transcript the model goes on in the manner of the prompt clip."]
    return words, notes


def prepare_text(
    text: str,
    control: str = "",
    *,
    normalize: bool = False,
    control_supported: bool = True,
    has_transcript: bool = False,
    protect_brackets: bool = True,
) -> SpokenText:
    """The whole pipeline; its result is what the preview shows and what the model gets.

    Args:
        text: what the user typed; brackets at its start are words, not a control.
        control: style description, without brackets around it.
        normalize: write out numbers and symbols (needs ``wetext``).
        control_supported: the loaded generation of the model takes a control. If not, none is sent and
            brackets need no protection.
        has_transcript: a prompt clip with its transcript is continued; no control is sent then.
        protect_brackets: rewrite brackets at the start of the text, which the model would take for a control.

    Raises:
        TextError: nothing speakable is left, or ``normalize`` is asked for and ``wetext`` is missing.
    """
    typed = _as_text(text)
    spoken, notes = _clean(typed)
    if protect_brackets and control_supported and spoken[:1] in tuple(_OPEN):
        spoken = _open_up(spoken)
        notes.append("Brackets at the start are read as words; a voice description goes into the control.")
    _require_words(spoken, typed)
    if normalize:
        spoken, more = normalize_with_notes(spoken)
        notes += more
        _require_words(spoken, typed)
    sent, more = _control_to_send(control, control_supported, has_transcript)
    prompt = f"({sent}){spoken}" if sent else spoken
    return SpokenText(spoken, sent, prompt, tuple(notes + more))

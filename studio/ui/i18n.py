"""The page's words, English and Chinese: the table of :mod:`studio.ui.words`, said in a visitor's language.

Fixed words (labels, buttons) go to the browser as :func:`label` keys and are translated there. Words that
change with the work (states, notices) are written by the server with :func:`say`, in the language that
:func:`language_of` reads off the request.
"""

from __future__ import annotations

from functools import lru_cache

import gradio as gr
from gradio.i18n import I18nData

from studio.ui.words import gathered
from studio.ui.words.page import STAGES

LANGUAGE_COOKIE = "vx_language"  # set by the page's language button; without it the browser's own preference counts

WORDS: dict[str, tuple[str, str]] = gathered()

CHINESE_LOCALES = ("zh", "zh-CN", "zh-Hans", "zh-TW", "zh-Hant")


def _table(column: int) -> dict[str, str]:
    return {key: words[column] for key, words in WORDS.items()}


@lru_cache(maxsize=1)
def translations() -> gr.I18n:
    """The table as gradio wants it, for ``launch(i18n=...)``."""
    return gr.I18n(en=_table(0), **{locale: _table(1) for locale in CHINESE_LOCALES})


def label(key: str) -> I18nData:
    """A fixed word that the browser translates."""
    if key not in WORDS:
        raise KeyError(key)
    return I18nData(key)


def say(language: str, key: str, **values: object) -> str:
    """A word or sentence in ``language`` ("en" or "zh"), with its values filled in: plain text, not HTML."""
    text = WORDS[key][1 if language == "zh" else 0]
    return text.format(**values) if values else text


def stage(language: str, said: str) -> str:
    """A stage of loading, as the core names it, in ``language``."""
    known = next((words for words in STAGES if said.startswith(words)), None)
    return STAGES[known] + said[len(known) :] if known and language == "zh" else said


def language_of(request: gr.Request | None) -> str:
    """ "en" or "zh": what the visitor chose in the page, else what the browser asks for first."""
    if request is None:
        return "en"
    chosen = (getattr(request, "cookies", None) or {}).get(LANGUAGE_COOKIE)
    wanted = chosen or (getattr(request, "headers", None) or {}).get("accept-language", "")
    return "zh" if wanted.strip().lower().startswith("zh") else "en"

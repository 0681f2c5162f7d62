"""What a visitor sets, checked and remembered.

Settings live in the browser (``gr.BrowserState``): numbers and switches only, never texts, kept per model because each
checkpoint has its own good values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from studio.events import ModelStatus
from studio.ui.i18n import say

SEED_LIMIT = 2**32
SEED_DIGITS = 10
TEXT_LIMIT = 20_000  # characters of text and description: far beyond what one take can hold
CFG_RANGE = (1.0, 5.0)
STEPS_RANGE = (2, 50)  # a single step returns the untouched starting noise
TEMPERATURE_RANGE = (0.1, 1.5)


class SettingError(ValueError):
    """A value that cannot be used; ``key`` and ``values`` make the sentence in the visitor's language."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(say("en", key, **values))
        self.key, self.values = key, values

    def sentence(self, language: str) -> str:
        return say(language, self.key, **self.values)


@dataclass(frozen=True)
class Settings:
    """The form below the text. ``seed`` is "" (a new one each time) or a pinned number as text."""

    cfg_value: float = 2.0
    inference_timesteps: int = 10
    temperature: float = 1.0
    normalize: bool = False
    seed: str = ""


def parse_seed(value: object) -> int | None:
    """A seed from a text field or an API call: None for empty. Raises SettingError outside 0 .. 2^32-1."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < SEED_LIMIT:
        value = int(value) if value == int(value) else value
    text = "" if value is None else shown(value).strip()
    if not text:
        return None
    # Python turns no more than some thousand digits into a number, so the length is looked at first.
    plain = text.isascii() and text.isdecimal() and len(text) <= SEED_DIGITS
    if not plain or int(text) >= SEED_LIMIT:
        raise SettingError("bad_seed", value=text if len(text) <= 40 else f"{text[:40]}…")
    return int(text)


def shown(value: object) -> str:
    """Any value as text for a sentence."""
    try:
        return str(value)
    except ValueError:  # a whole number with more digits than Python writes
        return "a very large number"


def check_length(text: str | None, control: str | None = "") -> None:
    """Raises SettingError for more than one take can hold, before any work is spent on it."""
    count = len(text or "") + len(control or "")
    if count > TEXT_LIMIT:
        raise SettingError("text_too_long", count=f"{count:,}", limit=f"{TEXT_LIMIT:,}")


def default_settings(status: ModelStatus) -> Settings:
    """The loaded model's own values."""
    if status.defaults is None:
        return Settings()
    return Settings(
        cfg_value=float(status.defaults.cfg_value),
        inference_timesteps=int(status.defaults.inference_timesteps),
        temperature=float(status.defaults.temperature),
    )


def remembered(kept: object, status: ModelStatus) -> Settings:
    """The settings this browser used last with this model. Whatever does not fit is left at the model's value."""
    settings = default_settings(status)
    known = kept.get(status.name) if isinstance(kept, Mapping) else None
    if not isinstance(known, Mapping):
        return settings
    limits = {"cfg_value": CFG_RANGE, "inference_timesteps": STEPS_RANGE, "temperature": TEMPERATURE_RANGE}
    for field in fields(Settings):
        value = known.get(field.name)
        if field.name in limits and _is_number(value):
            low, high = limits[field.name]
            kind = type(getattr(settings, field.name))
            settings = replace(settings, **{field.name: kind(min(max(value, low), high))})
        elif field.name == "normalize" and isinstance(value, bool):
            settings = replace(settings, normalize=value)
        elif field.name == "seed" and isinstance(value, str) and is_seed(value):
            settings = replace(settings, seed=value)
    return settings


def remember(kept: object, status: ModelStatus, settings: Settings) -> dict[str, Any]:
    """``kept`` with this model's settings put in; the browser stores the result. What is no seed is not kept."""
    others = dict(kept) if isinstance(kept, Mapping) else {}
    if not is_seed(settings.seed):  # as while it is being typed
        settings = replace(settings, seed="")
    return {**others, status.name: asdict(settings)} if status.name else others


def summary(settings: Settings, language: str) -> str:
    """The settings in one line, for the folded panel's title."""
    parts = [
        say(language, "summary_cfg", value=f"{settings.cfg_value:g}"),
        say(language, "summary_steps", value=settings.inference_timesteps),
        say(language, "summary_seed", value=settings.seed[: SEED_DIGITS + 1])
        if settings.seed.strip()
        else say(language, "summary_new_seed"),
    ]
    if settings.normalize:
        parts.append(say(language, "summary_normalize"))
    return f"{say(language, 'settings')} · {' · '.join(parts)}"


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def is_seed(value: str) -> bool:
    """Whether a text is a seed, or empty."""
    try:
        parse_seed(value)
    except SettingError:
        return False
    return True

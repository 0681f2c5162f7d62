"""The part that every form has: a request of the fields, the settings, how many takes, what will be spoken.

Layout and wiring are in :mod:`studio.ui.form_layout`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import gradio as gr

from studio.takes import TakeRecord
from studio.ui import markup, text_aids
from studio.ui.context import Context
from studio.ui.i18n import language_of, say
from studio.ui.picker_run import SLOTS
from studio.ui.settings import (
    SettingError,
    Settings,
    check_length,
    default_settings,
    remember,
    remembered,
    summary,
)
from voxcpm_core import SpeechRequest
from voxcpm_core.errors import VoxCPMError

KEEP: Any = gr.skip()  # leave a component as it is


class Form(NamedTuple):
    """The settings as values of the form's fields, in the order that they have there."""

    cfg_value: Any = KEEP
    inference_timesteps: Any = KEEP
    temperature: Any = KEEP
    normalize: Any = KEEP
    seed: Any = KEEP

    @classmethod
    def of(cls, settings: Settings) -> Form:
        return cls(
            settings.cfg_value,
            settings.inference_timesteps,
            settings.temperature,
            settings.normalize,
            settings.seed,
        )

    @classmethod
    def of_take(cls, record: TakeRecord) -> Form:
        """What a stored take was made with, its seed included."""
        return cls(record.cfg_value, record.inference_timesteps, record.temperature, record.normalize, str(record.seed))


class Restored(NamedTuple):
    """What a browser has kept of the form: the settings, the folded panel's title, whether a seed is pinned, takes."""

    cfg_value: Any = KEEP
    inference_timesteps: Any = KEEP
    temperature: Any = KEEP
    normalize: Any = KEEP
    seed: Any = KEEP
    settings: Any = KEEP
    unpin: Any = KEEP
    takes: Any = KEEP


def speech_request(
    text: str, control: str, cfg_value: float, inference_timesteps: float, temperature: float, normalize: bool
) -> SpeechRequest:
    """Raises SettingError for a text that cannot be spoken."""
    if not (text or "").strip():
        raise SettingError("ask_text")
    check_length(text, control)
    return SpeechRequest(
        text=text,
        control=(control or "").strip(),
        cfg_value=float(cfg_value),
        inference_timesteps=int(inference_timesteps),
        temperature=float(temperature),
        normalize=bool(normalize),
    )


def takes_of(value: object) -> int:
    """How many takes: 1, 2 or 3. Raises SettingError for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value in range(1, SLOTS + 1):
        return int(value)
    raise SettingError("wrong_takes", value=str(value)[:40])


class FormHandlers:
    """The events of the shared part. ``takes`` is how many are made where a browser has never chosen."""

    def __init__(self, context: Context, takes: int = SLOTS) -> None:
        self._synthesizer = context.synthesizer
        self._takes = takes

    def preview(self, text: str, control: str, normalize: bool, request: gr.Request) -> str:
        """Exactly what will be spoken, with the description."""
        language = language_of(request)
        if not (text or "").strip():
            return markup.preview_message(say(language, "preview_empty"), language)
        try:
            check_length(text, control)
            spoken = self._synthesizer.preview(text, (control or "").strip(), bool(normalize))
        except SettingError as error:
            return markup.preview_message(error.sentence(language), language)
        except VoxCPMError as error:
            return markup.preview_message(str(error), language)
        return text_aids.preview(spoken, language, self._synthesizer.status)

    def restored(self, kept: object, request: gr.Request) -> Restored:
        """The settings that this browser used last with the loaded model (else the model's own)."""
        settings = remembered(kept, self._synthesizer.status)
        takes = kept.get("takes") if isinstance(kept, Mapping) else None
        takes = takes if isinstance(takes, int) and 1 <= takes <= SLOTS else self._takes
        return Restored(*Form.of(settings), *_panel(settings, language_of(request)), takes)

    def defaults(self) -> Form:
        return Form.of(default_settings(self._synthesizer.status))

    def changed(
        self,
        kept: object,
        takes: int,
        cfg_value: float,
        inference_timesteps: float,
        temperature: float,
        normalize: bool,
        seed: str,
        request: gr.Request,
    ) -> tuple[Any, Any, Any]:
        """What the browser is to remember, the folded panel's title, and whether there is a seed to unpin."""
        try:
            settings = Settings(
                float(cfg_value), int(inference_timesteps), float(temperature), bool(normalize), (seed or "").strip()
            )
        except (TypeError, ValueError):  # a number field that is being emptied
            return KEEP, KEEP, KEEP
        kept = remember(kept, self._synthesizer.status, settings)
        return {**kept, "takes": takes}, *_panel(settings, language_of(request))


def _panel(settings: Settings, language: str) -> tuple[Any, Any]:
    """The folded panel's title, and the button that unpins a seed."""
    return gr.update(label=summary(settings, language)), gr.update(visible=bool(settings.seed))

"""Which adapter (LoRA) a form speaks with: a folded panel with its name, strength and switch.

One call lays it out, one wires it; the form reads it with :func:`adapter_fields`. What is chosen belongs to the
request, so two visitors may speak with two adapters at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from studio.ui import markup
from studio.ui.context import Context
from studio.ui.i18n import label, language_of, say
from studio.ui.look import html
from studio.ui.markup import tag
from studio.ui.settings import SettingError
from studio.ui.wiring import QUIET
from voxcpm_core.errors import VoxCPMError
from voxcpm_core.request import MAX_LORA_STRENGTH


@dataclass(frozen=True)
class AdapterPanel:
    """Components of the panel."""

    part: gr.Accordion
    name: gr.Dropdown
    strength: gr.Slider
    enabled: gr.Checkbox
    note: gr.HTML
    again: gr.Button

    @property
    def form(self) -> list[Any]:
        """Inputs in the order of the arguments of :func:`adapter_fields`."""
        return [self.name, self.strength, self.enabled]


def layout(prefix: str) -> AdapterPanel:
    """``prefix`` begins the ids. Empty until :func:`wire` lists the adapters that there are."""
    with gr.Accordion(label("adapter"), open=False, elem_id=f"{prefix}-adapters", elem_classes="vx-folded") as part:
        name = gr.Dropdown([""], value="", label=label("adapter_name"), elem_id=f"{prefix}-adapter")
        name.preprocess = lambda payload: payload  # one may be gone since it was listed: we say so ourselves
        strength = gr.Slider(
            0.0,
            MAX_LORA_STRENGTH,
            value=1.0,
            step=0.05,
            label=label("adapter_strength"),
            info=label("adapter_strength_info"),
            elem_id=f"{prefix}-adapter-strength",
        )
        with gr.Row(elem_classes="vx-again"):
            enabled = gr.Checkbox(
                True,
                label=label("adapter_on"),
                container=False,
                min_width=0,
                elem_id=f"{prefix}-adapter-on",
                elem_classes="vx-switch",
            )
            again = gr.Button(
                label("adapter_again"),
                size="sm",
                min_width=0,
                elem_id=f"{prefix}-adapter-again",
                elem_classes="ib ib-reuse",
            )
        note = html("", elem_id=f"{prefix}-adapter-note")
    return AdapterPanel(part, name, strength, enabled, note, again)


def adapter_fields(context: Context, name: str | None, strength: float, enabled: bool) -> dict[str, Any]:
    """Fields of a SpeechRequest. Raises StoreError for an adapter that is gone, LoRAError for one that does not fit."""
    if not name or not enabled or not strength:
        return {"lora": ""}
    context.synthesizer.refuse_unfit(name)
    return context.synthesizer.adapters.request_fields(name, check_strength(strength))


def check_strength(strength: Any) -> float:
    """Raises SettingError for what is no strength."""
    if isinstance(strength, int | float) and not isinstance(strength, bool) and 0 <= strength <= MAX_LORA_STRENGTH:
        return float(strength)
    raise SettingError("adapter_strength_range", value=str(strength)[:20], most=f"{MAX_LORA_STRENGTH:g}")


class AdapterHandlers:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._shelf = context.synthesizer.adapters

    def first(self, request: gr.Request) -> tuple[Any, Any, str]:
        """The panel when the page opens: the adapter that the model was started with is chosen."""
        return self.listed(self._shelf.started, 1.0, True, request)

    def listed(self, chosen: str | None, strength: float, enabled: bool, request: gr.Request) -> tuple[Any, Any, str]:
        """The adapters as they are now (chooser, the panel's title, note); what is chosen stays while it is there."""
        language, names = language_of(request), self._shelf.names()
        chosen = chosen if chosen in names else ""
        choices = [(say(language, "adapter_none"), ""), *((name, name) for name in names)]
        return gr.update(choices=choices, value=chosen), *self.changed(chosen, strength, enabled, request)

    def changed(self, chosen: str | None, strength: float, enabled: bool, request: gr.Request) -> tuple[Any, str]:
        """The folded panel says what is chosen; below the fields stands whether the model can use it."""
        language = language_of(request)
        title = say(language, "adapter")
        if chosen and enabled and strength:
            title += f" · {chosen} · {round(100 * strength)} %"
        return gr.update(label=title), self._note(chosen, language)

    def _note(self, chosen: str | None, language: str) -> str:
        if not chosen:
            where = "adapter_where_shared" if self._context.shared else "adapter_where"
            said = say(language, where, folder=self._shelf.folders[0])
            return tag("p", escape(said), class_="vx-clip-hint")
        if self._context.synthesizer.status.state != "ready":
            return ""
        try:
            self._context.synthesizer.refuse_unfit(chosen)
        except VoxCPMError as error:
            return markup.notice("error", str(error))
        return tag("p", escape(say(language, "adapter_fits")), class_="vx-clip-hint")


def wire(
    handlers: AdapterHandlers, panel: AdapterPanel, load: Callable[..., Any], model_card: gr.HTML | gr.Textbox
) -> None:
    """``load`` tells that the form is seen for the first time, ``model_card`` changes when a model has come."""
    listed = [panel.name, panel.part, panel.note]
    load(handlers.first, None, listed, **QUIET)
    gr.on([panel.again.click, model_card.change], handlers.listed, panel.form, listed, **QUIET)
    changes = [panel.name.input, panel.strength.release, panel.enabled.input]
    gr.on(changes, handlers.changed, panel.form, [panel.part, panel.note], **QUIET)

"""The components that every form has, and how they are wired: takes, settings, Generate and Stop, samples, preview."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from studio.ui import markup
from studio.ui.form import FormHandlers
from studio.ui.i18n import label
from studio.ui.look import html
from studio.ui.picker_run import SLOTS
from studio.ui.settings import CFG_RANGE, STEPS_RANGE, TEMPERATURE_RANGE
from studio.ui.wiring import QUIET, SETTLE


@dataclass(frozen=True)
class FormPart:
    """Components below the texts. ``fields`` are in the order of :class:`studio.ui.form.Form`."""

    takes: gr.Radio
    settings: gr.Accordion
    fields: list[Any]
    unpin: gr.Button
    reset: gr.Button
    generate: gr.Button
    stop: gr.Button

    @property
    def seed(self) -> gr.Textbox:
        return self.fields[-1]

    @property
    def restored(self) -> list[Any]:
        """Outputs in the order of :class:`studio.ui.form.Restored`."""
        return [*self.fields, self.settings, self.unpin, self.takes]


def form_part(prefix: str = "vx", takes: int = SLOTS) -> FormPart:
    """``prefix`` begins the ids."""
    count = takes_part(prefix, takes)
    settings, fields, unpin, reset = settings_part(prefix)
    return FormPart(count, settings, fields, unpin, reset, *run_buttons(prefix))


def takes_part(prefix: str, takes: int = SLOTS) -> gr.Radio:
    return gr.Radio(
        list(range(1, SLOTS + 1)),
        value=takes,
        label=label("design_takes"),
        elem_id=f"{prefix}-takes",
        elem_classes="vx-takes-count",
    )


def settings_part(
    prefix: str = "vx", seed_info: str = "design_seed_info"
) -> tuple[gr.Accordion, list[Any], gr.Button, gr.Button]:
    """The folded panel: itself, its fields in the order of :class:`studio.ui.form.Form`, "Unpin" and "Reset"."""
    with gr.Accordion(
        label("settings"), open=False, elem_id=f"{prefix}-settings", elem_classes="vx-folded"
    ) as settings:
        cfg_value = _slider("cfg_value", CFG_RANGE, 2.0, 0.1, prefix)
        timesteps = _slider("inference_timesteps", STEPS_RANGE, 10, 1, prefix)
        with gr.Row(equal_height=True, elem_classes="vx-seed"):
            seed = gr.Textbox(
                "",
                label=label("seed"),
                info=label(seed_info),
                placeholder=label("seed_hint"),
                max_lines=1,
                elem_id=f"{prefix}-seed",
                scale=3,
            )
            unpin = gr.Button(
                label("seed_clear"),
                size="sm",
                elem_id=f"{prefix}-unpin",
                elem_classes="ib ib-cross vx-unpin",
                scale=1,
                min_width=96,
                visible=False,
            )
        normalize = gr.Checkbox(
            False, label=label("normalize"), info=label("normalize_info"), elem_id=f"{prefix}-normalize"
        )
        with gr.Accordion(label("advanced"), open=False, elem_classes="vx-advanced"):
            temperature = _slider("temperature", TEMPERATURE_RANGE, 1.0, 0.05, prefix)
        reset = gr.Button(label("reset"), size="sm", elem_id=f"{prefix}-reset")
    return settings, [cfg_value, timesteps, temperature, normalize, seed], unpin, reset


def _slider(key: str, limits: tuple[float, float], value: float, step: float, prefix: str) -> gr.Slider:
    return gr.Slider(
        *limits,
        value=value,
        step=step,
        label=label(key),
        info=label(f"{key}_info"),
        elem_id=f"{prefix}-{key.replace('_', '-')}",
    )


def run_buttons(prefix: str) -> tuple[gr.Button, gr.Button]:
    """Generate and Stop."""
    with gr.Row(elem_classes="vx-actions"):
        generate = gr.Button(
            label("generate"),
            variant="primary",
            interactive=False,
            elem_id=f"{prefix}-generate",
            elem_classes="ib ib-play vx-go vx-run",
            scale=3,
        )
        stop = gr.Button(
            label("stop"),
            variant="stop",
            interactive=False,
            elem_id=f"{prefix}-stop",
            elem_classes="ib ib-square vx-halt",
            scale=1,
        )
    return generate, stop


def samples_part(names: Iterable[str], prefix: str) -> list[gr.Button]:
    """A button for each sample text, by the key of its name."""
    with gr.Row(elem_classes="vx-samples"):
        return [gr.Button(label(name), size="sm", elem_id=f"{prefix}-{name.replace('_', '-')}") for name in names]


def preview_part(prefix: str) -> gr.HTML:
    empty = markup.preview_message(markup.say("en", "preview_empty"), "en")
    return html(empty, elem_id=f"{prefix}-preview")


def wire_settings(handlers: FormHandlers, part: FormPart, kept: gr.BrowserState) -> dict[str, Any]:
    """What is set is remembered in ``kept``; returns the event's options, for those who set fields themselves.

    A text field tells of a paste only by `change`; the others tell by `input` what the visitor does, and not what the
    page does itself. The step without work in between makes the next one read all fields when they have settled.
    """
    remember = {
        "fn": handlers.changed,
        "inputs": [kept, part.takes, *part.fields],
        "outputs": [kept, part.settings, part.unpin],
        **QUIET,
    }
    cfg_value, timesteps, temperature, normalize, seed = part.fields
    changes = [cfg_value.input, timesteps.input, temperature.input, normalize.input, seed.change, part.takes.input]
    gr.on(changes, **SETTLE).then(**remember, trigger_mode="always_last")
    part.unpin.click(lambda: "", None, seed, **QUIET)
    part.reset.click(handlers.defaults, None, part.fields, **QUIET).then(**remember)
    return remember


def wire_preview(
    handlers: FormHandlers, text: gr.Textbox, control: gr.Textbox, normalize: gr.Checkbox, shown: gr.HTML
) -> dict[str, Any]:
    """The preview follows the fields; returns the event's options, for other reasons to look again."""
    preview = {"fn": handlers.preview, "inputs": [text, control, normalize], "outputs": shown, **QUIET}
    changes = [text.change, control.change, normalize.change]
    gr.on(changes, **SETTLE).then(**preview, trigger_mode="always_last")
    return preview


def wire_samples(buttons: list[gr.Button], texts: Mapping[str, str], field: gr.Textbox) -> None:
    for button, text in zip(buttons, texts.values(), strict=True):
        button.click(lambda text=text: text, None, field, **QUIET)

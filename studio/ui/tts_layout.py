"""The text-to-speech tab's layout and wiring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from studio.ui import markup, take_markup, voices_chooser
from studio.ui.i18n import label
from studio.ui.look import html
from studio.ui.settings import CFG_RANGE, STEPS_RANGE, TEMPERATURE_RANGE
from studio.ui.takes_list import TELLING, lanes_component
from studio.ui.tts import TTSHandlers

SPEAKERS = 8  # visitors who may speak at once: the engine makes their takes in one batch
PROGRAMS = 4  # programs that may, beside them: they cannot take the visitors' places
POLL_SECONDS = 0.5  # how often a page asks for the model while it loads
QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
SETTLE: dict[str, Any] = {"fn": None, "js": "() => {}", **QUIET}

SAMPLES: dict[str, str] = {
    "sample_story": "The lighthouse keeper climbed the last stair, set down his lantern, and listened. "
    "Far below, the sea was telling the old story again.",
    "sample_notice": "Good morning. The library opens at nine, and today every visitor may take one book home to keep.",
    "sample_numbers": "The train leaves at 7:45 from platform 12. A ticket costs $18.50, and seat 23 is by the window.",
    "sample_chinese": "海风轻轻吹过灯塔，守塔人放下手里的灯，静静地听着远处的浪声。",
}


@dataclass(frozen=True)
class TTSTab:
    """Components of the tab."""

    text: gr.Textbox
    samples: list[gr.Button]
    preview: gr.HTML
    voice: gr.Dropdown
    control: gr.Textbox
    control_note: gr.HTML
    settings: gr.Accordion
    form: list[Any]  # cfg_value, inference_timesteps, temperature, normalize, seed
    unpin: gr.Button
    reset: gr.Button
    generate: gr.Button
    stop: gr.Button
    live: gr.Audio
    live_bar: gr.HTML
    status: gr.HTML
    notice: gr.HTML
    take: gr.HTML
    again: gr.Row
    pin: gr.Button
    reroll: gr.Button
    recent_title: gr.HTML
    recent: gr.HTML
    ticket: gr.Textbox
    job: gr.State
    take_id: gr.State


def layout() -> TTSTab:
    job, take_id = gr.State(None), gr.State(None)
    # Not a State: runs that wait in the queue would all find the newest ticket there.
    ticket = gr.Textbox("", visible="hidden", show_label=False, container=False)
    with gr.Row(elem_classes="vx-desk", equal_height=False):
        with gr.Column(scale=5, min_width=320, elem_classes="vx-editor"):
            text, samples, preview = _text_part()
            voice = voices_chooser.chooser("vx-voice")
            control = gr.Textbox(
                "",
                label=label("control"),
                info=label("control_optional"),
                placeholder=label("control_hint"),
                lines=1,
                max_lines=3,
                elem_id="vx-control",
            )
            control_note = html("", visible=False, elem_id="vx-control-note")
            settings, form, unpin, reset = settings_part()
            with gr.Row(elem_classes="vx-actions"):
                generate = gr.Button(
                    label("generate"),
                    variant="primary",
                    interactive=False,
                    elem_id="vx-generate",
                    elem_classes="ib ib-play vx-go",
                    scale=3,
                )
                stop = gr.Button(
                    label("stop"),
                    variant="stop",
                    interactive=False,
                    elem_id="vx-stop",
                    elem_classes="ib ib-square vx-halt",
                    scale=1,
                )
        with gr.Column(scale=6, min_width=320, elem_classes="vx-stage"):
            status = html(markup.status_line("idle", "en"), elem_id="vx-status")
            live_bar = html(markup.live_bar("en"), elem_id="vx-live-bar")
            live = gr.Audio(
                label=label("live_player"),
                streaming=True,
                autoplay=True,
                interactive=False,
                elem_id="vx-live",
                buttons=[],
            )
            notice = html("", elem_id="vx-notice")
            take = html(take_markup.empty_take("en"), elem_id="vx-take")
            with gr.Row(visible=False, elem_classes="vx-again") as again:
                pin = gr.Button(label("pin"), size="sm", elem_id="vx-pin", elem_classes="ib ib-pin")
                reroll = gr.Button(label("reroll"), size="sm", elem_id="vx-reroll", elem_classes="ib ib-dice")
    recent_title = html(recent_heading("en"), elem_id="vx-recent-title")
    recent = lanes_component("vx-recent")
    return TTSTab(
        text, samples, preview, voice, control, control_note, settings, form, unpin, reset, generate, stop, live,
        live_bar, status, notice, take, again, pin, reroll, recent_title, recent, ticket, job, take_id,
    )  # fmt: skip


def _text_part() -> tuple[gr.Textbox, list[gr.Button], gr.HTML]:
    text = gr.Textbox(
        "",
        label=label("text"),
        placeholder=label("text_hint"),
        lines=6,
        max_lines=16,
        elem_id="vx-text",
        autofocus=True,
    )
    with gr.Row(elem_classes="vx-samples"):
        samples = [gr.Button(label(key), size="sm", elem_id=f"vx-{key.replace('_', '-')}") for key in SAMPLES]
    preview = html(markup.preview_message(markup.say("en", "preview_empty"), "en"), elem_id="vx-preview")
    return text, samples, preview


def settings_part(
    prefix: str = "vx", seed_info: str = "seed_info"
) -> tuple[gr.Accordion, list[Any], gr.Button, gr.Button]:
    """The folded panel with its fields in the order of :class:`studio.ui.tts.Form`. ``prefix`` begins their ids."""
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


def recent_heading(language: str) -> str:
    return f'<h2 class="vx-heading">{markup.say(language, "recent")}</h2>'


def wire(
    handlers: TTSHandlers,
    tab: TTSTab,
    owner: gr.BrowserState,
    kept: gr.BrowserState,
    recent: Callable[..., str],
    lists: Sequence[gr.HTML],
    tabs: gr.Tabs,
) -> None:
    """``recent`` makes the list of recent takes; ``lists`` are all lists whose takes can be put back into the form."""
    _wire_work(handlers, tab, owner, recent)
    cfg_value, timesteps, temperature, normalize, seed = tab.form
    remember, preview = _remembering(handlers, tab, kept), _previewing(handlers, tab)
    # A text field tells of a paste only by `change`; the others tell by `input` what the visitor does, and not what the
    # page does itself. The step without work in between makes the next one read all fields when they have settled.
    settings = [cfg_value.input, timesteps.input, temperature.input, normalize.input, seed.change]
    gr.on(settings, **SETTLE).then(**remember, trigger_mode="always_last")
    gr.on([tab.text.change, tab.control.change, normalize.change], **SETTLE).then(**preview, trigger_mode="always_last")
    for button, text in zip(tab.samples, SAMPLES.values(), strict=True):
        button.click(lambda text=text: text, None, tab.text, **QUIET)
    tab.pin.click(handlers.pin, [tab.take_id, owner], seed, **TELLING)
    tab.unpin.click(lambda: "", None, seed, **QUIET)
    rerolled = tab.reroll.click(handlers.wait, None, _clicked(tab), **QUIET).then(lambda: "", None, seed, **QUIET)
    rerolled.then(**_running(handlers, tab, owner)).then(recent, owner, tab.recent, **QUIET)
    tab.reset.click(handlers.defaults, None, tab.form, **QUIET).then(**remember)
    for lanes in lists:
        fields = [tab.text, tab.control, *tab.form, tab.voice, tabs]
        lanes.reuse(handlers.reuse, owner, fields, **TELLING).then(**remember)


def wire_arrival(handlers: TTSHandlers, tab: TTSTab, kept: gr.BrowserState, model: list[Any], *events: Any) -> None:
    """On each of ``events`` (the page opens, a timer ticks) show the model and, when it is there, its settings."""
    for event in events:
        event(handlers.arrive, kept, [*model, *tab.form, tab.settings, tab.unpin], **QUIET)
    card = model[0]  # another model may speak a text that is already there differently
    card.change(**SETTLE).then(**_previewing(handlers, tab), trigger_mode="always_last")


def _wire_work(handlers: TTSHandlers, tab: TTSTab, owner: gr.BrowserState, recent: Callable[..., str]) -> None:
    clicked = tab.generate.click(handlers.wait, None, _clicked(tab), **QUIET)
    clicked.then(**_running(handlers, tab, owner)).then(recent, owner, tab.recent, **QUIET)
    tab.stop.click(handlers.stop, tab.job, _clicked(tab), **QUIET)


def _clicked(tab: TTSTab) -> list[Any]:
    return [tab.status, tab.notice, tab.job, tab.generate, tab.stop, tab.ticket]


def _running(handlers: TTSHandlers, tab: TTSTab, owner: gr.BrowserState) -> dict[str, Any]:
    shown = [tab.live, tab.status, tab.notice, tab.take, tab.job, tab.take_id, tab.generate, tab.stop, tab.again]
    return {
        "fn": handlers.speak,
        "inputs": [tab.text, tab.control, *tab.form, owner, tab.ticket, tab.voice],
        "outputs": shown,
        "concurrency_limit": SPEAKERS,
        "concurrency_id": "speak",
        "trigger_mode": "multiple",  # one that was withdrawn may still stand in the queue
        "show_progress": "hidden",
        "api_visibility": "private",
    }


def _remembering(handlers: TTSHandlers, tab: TTSTab, kept: gr.BrowserState) -> dict[str, Any]:
    inputs, outputs = [kept, *tab.form], [kept, tab.settings, tab.unpin]
    return {"fn": handlers.settings_changed, "inputs": inputs, "outputs": outputs, **QUIET}


def _previewing(handlers: TTSHandlers, tab: TTSTab) -> dict[str, Any]:
    return {"fn": handlers.preview, "inputs": [tab.text, tab.control, tab.form[-2]], "outputs": tab.preview, **QUIET}

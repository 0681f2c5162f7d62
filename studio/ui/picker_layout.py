"""The take-picker's layout and wiring: three lanes with a streaming player each, made once and never made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from studio.ui import picker_markup
from studio.ui.i18n import label, language_of
from studio.ui.look import html
from studio.ui.picker import SLOTS, PickerHandlers, Wish
from studio.ui.takes_list import TELLING
from studio.ui.wiring import QUIET, RUNNING

# What is pressed inside a lane reaches Python as one click of its HTML; playing stays in the browser.
PICK_EVENTS = """
element.addEventListener('click', (event) => {
  if (event.target.closest('[data-act="pick"]')) trigger('click', {});
});
"""
FACT_EVENTS = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-act]');
  if (button?.dataset.act === 'star') trigger('click', { star: button.getAttribute('aria-pressed') !== 'true' });
  if (button?.dataset.act === 'pin') trigger('pin', {});
  if (button?.dataset.act === 'again') trigger('again', {});
  if (button?.dataset.act === 'note') trigger('click', { note: button.parentElement.querySelector('textarea').value });
});
"""


@dataclass(frozen=True)
class Ends:
    """Events for those who follow: new takes are stored at the end of each of ``takes``, a voice at ``voice``.

    At the end of ``restored`` the takes of the last visit are back, when the browser kept any.
    """

    takes: list[Any]
    voice: Any
    restored: Any


@dataclass(frozen=True)
class Picker:
    """Components of one picker. ``takes`` are ids by lane, ``picked`` is a lane or None."""

    root: gr.Column
    bars: list[gr.HTML]
    players: list[gr.Audio]
    facts: list[gr.HTML]
    status: gr.HTML
    notice: gr.HTML
    empty: gr.HTML
    line: gr.HTML
    others: gr.Button
    same: gr.Button
    around: gr.Button
    voice_name: gr.Textbox
    voice_save: gr.Button
    blind: gr.Checkbox
    original: gr.Checkbox
    takes: gr.State
    picked: gr.State
    hidden: gr.State
    job: gr.State
    ticket: gr.Textbox

    def shown(self, generate: gr.Button, stop: gr.Button) -> list[Any]:
        """Outputs of every message, in the order of :meth:`studio.ui.picker.Message.values`."""
        return [
            *self.players, *self.facts, self.status, self.notice, self.line, self.takes, self.picked, self.hidden,
            self.job, self.ticket, stop, generate, self.others, self.same, self.around,
        ]  # fmt: skip

    def said(self) -> list[gr.HTML]:
        """What is written in English when the page is built; :func:`words` says it in another language."""
        return [*self.bars, self.status, self.empty, self.line]


def layout(name: str) -> Picker:
    """A picker; ``name`` ("design", ...) makes its ids. To be called inside the column that shall hold it."""
    takes, picked, hidden, job = gr.State([""] * SLOTS), gr.State(None), gr.State(False), gr.State(None)
    ticket = gr.Textbox("", visible="hidden", show_label=False, container=False)
    with gr.Column(elem_id=f"vx-{name}-picker", elem_classes="vx-picker") as root:
        with gr.Row(elem_classes="vx-picker-top"):
            status = html(picker_markup.status("idle", "en"), elem_classes="vx-picker-status")
            blind = gr.Checkbox(
                False, label=label("blind"), elem_classes="vx-switch vx-blind", container=False, min_width=0
            )
            original = gr.Checkbox(
                False, label=label("original_level"), elem_classes="vx-switch vx-original", container=False, min_width=0
            )
        notice = html("", elem_classes="vx-picker-notice")
        empty = html(picker_markup.empty("en"), elem_classes="vx-picker-empty")
        lanes = [_lane(name, slot) for slot in range(SLOTS)]
        line = html(picker_markup.pick_line("en", None), elem_classes="vx-picker-line")
        with gr.Row(elem_classes="vx-again vx-picker-tools"):
            others = _button("others", "dice", f"vx-{name}-others", "vx-others")
            same = _button("same_seeds", "reuse", f"vx-{name}-same", "vx-same")
            around = _button("around", "around", f"vx-{name}-around", "vx-around")
        with gr.Row(elem_classes="vx-save-voice"):
            voice_name = gr.Textbox(
                "",
                label=label("save_voice_name"),
                placeholder=label("save_voice_name"),
                show_label=False,
                container=False,
                max_lines=1,
                max_length=80,
                elem_id=f"vx-{name}-voice-name",
                scale=3,
            )
            voice_save = gr.Button(
                label("save_voice"), elem_id=f"vx-{name}-voice-save", elem_classes="ib ib-voice", scale=1, min_width=140
            )
    bars, players, facts = (list(column) for column in zip(*lanes, strict=True))
    return Picker(
        root, bars, players, facts, status, notice, empty, line, others, same, around, voice_name,
        voice_save, blind, original, takes, picked,
        hidden, job, ticket,
    )  # fmt: skip


def words(language: str) -> tuple[Any, ...]:
    """The picker's own words for :meth:`Picker.said`."""
    return (
        *(picker_markup.bar(slot, language) for slot in range(SLOTS)),
        picker_markup.status("idle", language),
        picker_markup.empty(language),
        picker_markup.pick_line(language, None),
    )


def _lane(name: str, slot: int) -> tuple[gr.HTML, gr.Audio, gr.HTML]:
    with gr.Column(elem_id=f"vx-{name}-slot-{slot + 1}", elem_classes="vx-slot"):
        bar = html(picker_markup.bar(slot, "en"), js_on_load=PICK_EVENTS)
        facts = html(picker_markup.unused(), js_on_load=FACT_EVENTS)
        player = gr.Audio(
            label=label("live_player"),
            streaming=True,
            autoplay=False,  # the script decides which of the three is heard
            interactive=False,
            elem_id=f"vx-{name}-live-{slot + 1}",
            elem_classes="vx-slot-live",
            buttons=[],
        )
    return bar, player, facts


def _button(key: str, shape: str, elem_id: str, role: str) -> gr.Button:
    return gr.Button(label(key), size="sm", elem_id=elem_id, elem_classes=f"ib ib-{shape} {role}")


def wire(
    handlers: PickerHandlers,
    picker: Picker,
    *,
    wish: Callable[..., Wish] | None,
    fields: Sequence[Any],
    generate: gr.Button,
    stop: gr.Button,
    owner: gr.BrowserState,
    load: Callable[..., Any],
    lanes: gr.BrowserState | None = None,
    seed: gr.Textbox | None = None,
) -> Ends:
    """``wish(*values of fields)`` makes a request, or raises SettingError; ``load`` is the event of the
    page or the tab that opens.

    Without a ``wish`` nothing is made from here: the tab shows stored takes (:meth:`PickerHandlers.show`). ``lanes``
    keeps the ids of the takes in the browser, so that they are there again when the page is. ``seed`` is the field
    that a take's seed can be pinned in.
    """
    shown = picker.shown(generate, stop)
    ends = _wire_runs(handlers, picker, wish, fields, generate, stop, owner) if wish else []
    for slot in range(SLOTS):
        _wire_lane(handlers, picker, slot, shown, owner, seed)
    if wish:
        picker.root.elem_classes.append("vx-makes")
    if seed is not None:
        picker.root.elem_classes.append("vx-pins")
    blind = [picker.blind, picker.takes, picker.hidden, picker.job, owner]
    shuffled = picker.blind.input(handlers.compare_blindly, blind, shown, **QUIET)
    if lanes is None:
        said = load(_said, None, picker.said(), **QUIET)
    else:
        for event in (*ends, shuffled):
            event.then(lambda takes: takes, picker.takes, lanes, **QUIET)

        def opened(lanes, owner, request: gr.Request):
            return (*_said(request), *handlers.restore(lanes, owner, request))

        said = load(opened, [lanes, owner], [*picker.said(), *shown, picker.blind], **QUIET)
    saving = [picker.voice_name, picker.takes, picker.picked, owner], [picker.notice, picker.voice_name]
    saved = gr.on([picker.voice_save.click, picker.voice_name.submit], handlers.save_voice, *saving, **QUIET)
    return Ends(ends, saved, said)


def _wire_runs(
    handlers: PickerHandlers,
    picker: Picker,
    wish: Callable[..., Wish],
    fields: Sequence[Any],
    generate: gr.Button,
    stop: gr.Button,
    owner: gr.BrowserState,
) -> list[Any]:
    shown = picker.shown(generate, stop)
    buttons = {"new": generate, "others": picker.others, "text": picker.same, "around": picker.around}
    inputs = [picker.takes, picker.picked, picker.blind, picker.ticket, owner, *fields]
    stop.click(handlers.stop, picker.job, shown, **QUIET)
    ends = []
    for kind, button in buttons.items():
        clicked = button.click(handlers.wait, None, shown, **QUIET)
        ends.append(clicked.then(_running(handlers, kind, wish), inputs, shown, **RUNNING))
    for slot, facts in enumerate(picker.facts):
        clicked = facts.again(handlers.wait, None, shown, **QUIET)
        ends.append(clicked.then(_running(handlers, "lane", wish, slot), inputs, shown, **RUNNING))
    return ends


def _wire_lane(
    handlers: PickerHandlers,
    picker: Picker,
    slot: int,
    shown: list[Any],
    owner: gr.BrowserState,
    seed: gr.Textbox | None,
) -> None:
    def pick(takes, picked, hidden, ticket, owner, request: gr.Request):
        return handlers.pick(slot, takes, picked, hidden, ticket, owner, request)

    def review(takes, hidden, owner, event: gr.EventData, request: gr.Request):
        return handlers.review(slot, takes, hidden, owner, event, request)

    def pin(takes, owner, request: gr.Request):
        return handlers.pin(slot, takes, owner, request)

    picked = [picker.takes, picker.picked, picker.hidden, picker.ticket, owner]
    picker.bars[slot].click(pick, picked, shown, **QUIET)
    picker.facts[slot].click(review, [picker.takes, picker.hidden, owner], picker.facts[slot], **TELLING)
    if seed is not None:
        picker.facts[slot].pin(pin, [picker.takes, owner], seed, **TELLING)


def _running(
    handlers: PickerHandlers, kind: str, wish: Callable[..., Wish], lane: int | None = None
) -> Callable[..., Iterator[tuple]]:
    def run(takes, picked, blind, ticket, owner, request: gr.Request, *values):
        yield from handlers.run(kind, lambda: wish(*values), takes, picked, blind, ticket, owner, request, lane)

    return run


def _said(request: gr.Request) -> tuple[Any, ...]:
    language = language_of(request)
    return words(language) if language != "en" else tuple(gr.skip() for _ in words("en"))

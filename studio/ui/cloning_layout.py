"""The Cloning tab's layout; :mod:`studio.ui.cloning_wiring` connects it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from studio.ui import adapter_panel, cloning_markup, picker_layout, voices_chooser
from studio.ui.cloning_request import MODES, SOURCES
from studio.ui.form_layout import FormPart, form_part, preview_part
from studio.ui.i18n import label, say
from studio.ui.look import html


@dataclass(frozen=True)
class CloningTab:
    """Components of the tab."""

    mode: gr.Radio
    about: gr.HTML
    source: gr.Radio
    clip_part: gr.Column
    upload: gr.Audio
    card: gr.HTML
    notice: gr.HTML
    tools: gr.Row
    trim: gr.Button
    level: gr.Button
    denoise: gr.Button
    undo: gr.Button
    remove: gr.Button
    voice_part: gr.Column
    voice: gr.Dropdown
    voice_note: gr.HTML
    words_part: gr.Column
    transcript: gr.Textbox
    transcribe: gr.Button
    compare: gr.Button
    words_note: gr.HTML
    helpers: gr.HTML
    both: gr.Checkbox
    consent: gr.Checkbox
    save_name: gr.Textbox
    save: gr.Button
    save_notice: gr.HTML
    control: gr.Textbox
    text: gr.Textbox
    preview: gr.HTML
    adapter: adapter_panel.AdapterPanel
    form: FormPart
    picker: picker_layout.Picker
    state: gr.State
    clip_hash: gr.Textbox
    heard: gr.State

    def fields(self, owner: gr.BrowserState) -> list[Any]:
        """Inputs in the order of :class:`studio.ui.cloning.CloneForm`."""
        return [
            self.mode, self.source, self.voice, self.clip_hash, self.transcript, self.both, self.consent,
            self.control, self.text, self.form.takes, *self.form.fields, *self.adapter.form, self.state, owner,
        ]  # fmt: skip

    def desk(self) -> list[Any]:
        """Outputs in the order of :class:`studio.ui.cloning_desk.Desk`."""
        return [
            self.upload, self.state, self.clip_hash, self.card, self.notice, self.tools, self.trim, self.level,
            self.denoise, self.undo, self.transcript, self.words_note, self.consent,
        ]  # fmt: skip

    def arranged(self) -> list[Any]:
        """Outputs in the order of :class:`studio.ui.cloning.Arranged`."""
        return [
            self.mode, self.about, self.clip_part, self.voice_part, self.words_part, self.both, self.control,
        ]  # fmt: skip


def layout() -> CloningTab:
    parts: dict[str, Any] = {"state": gr.State(None), "heard": gr.State(None)}
    # Not a State: a click that waits in the queue would find the newest clip there.
    parts["clip_hash"] = gr.Textbox("", visible="hidden", show_label=False, container=False)
    with gr.Row(elem_classes="vx-desk", equal_height=False):
        with gr.Column(scale=5, min_width=320, elem_classes="vx-editor"):
            parts |= _mode_part() | _clip_part() | _voice_part() | _words_part() | _consent_part() | _text_part()
            parts["adapter"] = adapter_panel.layout("vx-cloning")
            parts["form"] = form_part("vx-cloning")
        with gr.Column(scale=6, min_width=320, elem_classes="vx-stage"):
            parts["picker"] = picker_layout.layout("cloning")
    return CloningTab(**parts)


def _mode_part() -> dict[str, Any]:
    mode = gr.Radio(
        [(say("en", f"cloning_{name}"), name) for name in MODES],
        value=MODES[0],
        label=label("cloning_mode"),
        elem_id="vx-cloning-mode",
        elem_classes="vx-takes-count vx-cloning-mode",
    )
    about = html("", elem_id="vx-cloning-about")
    source = gr.Radio(
        [(say("en", f"cloning_source_{name}"), name) for name in SOURCES if name != "adapter"],
        value=SOURCES[0],
        label=label("cloning_source"),
        elem_id="vx-cloning-source",
        elem_classes="vx-takes-count",
    )
    return {"mode": mode, "about": about, "source": source}


def _clip_part() -> dict[str, Any]:
    with gr.Column(elem_id="vx-cloning-clip", elem_classes="vx-cloning-part") as clip_part:
        upload = gr.Audio(
            sources=["upload", "microphone"],
            type="filepath",
            label=label("cloning_clip"),
            editable=False,
            buttons=[],
            elem_id="vx-cloning-upload",
        )
        card = html(cloning_markup.empty("en"), elem_id="vx-cloning-card")
        notice = html("", elem_id="vx-cloning-notice", elem_classes="vx-cloning-notice")
        with gr.Row(visible=False, elem_classes="vx-again vx-clip-tools", elem_id="vx-cloning-tools") as tools:
            trim = _tool("trim", "trim")
            level = _tool("level", "level")
            denoise = _tool("denoise", "denoise")
            undo = _tool("undo", "reuse")
            remove = _tool("remove", "cross")
            remove.interactive = True
    return {
        "clip_part": clip_part, "upload": upload, "card": card, "notice": notice, "tools": tools, "trim": trim,
        "level": level, "denoise": denoise, "undo": undo, "remove": remove,
    }  # fmt: skip


def _tool(name: str, shape: str) -> gr.Button:
    return gr.Button(
        label(f"cloning_{name}"),
        size="sm",
        interactive=False,
        elem_id=f"vx-cloning-{name}",
        elem_classes=f"ib ib-{shape}",
        min_width=0,
    )


def _voice_part() -> dict[str, Any]:
    with gr.Column(visible=False, elem_id="vx-cloning-saved", elem_classes="vx-cloning-part") as voice_part:
        voice = voices_chooser.chooser("vx-cloning-voice")
        voice_note = html("", elem_id="vx-cloning-voice-note")
    return {"voice_part": voice_part, "voice": voice, "voice_note": voice_note}


def _words_part() -> dict[str, Any]:
    with gr.Column(visible=False, elem_id="vx-cloning-words", elem_classes="vx-cloning-part") as words_part:
        transcript = gr.Textbox(
            "",
            label=label("cloning_transcript"),
            placeholder=label("cloning_transcript_hint"),
            lines=2,
            max_lines=6,
            elem_id="vx-cloning-transcript",
        )
        words_note = html("", elem_id="vx-cloning-words-note", elem_classes="vx-cloning-notice")
        with gr.Row(elem_classes="vx-again vx-clip-tools"):
            transcribe = _tool("transcribe", "words")
            compare = _tool("compare", "check")
        helpers = html("", elem_id="vx-cloning-helpers")
    both = gr.Checkbox(
        True,
        label=label("cloning_both"),
        visible=False,
        container=False,
        elem_id="vx-cloning-both",
        elem_classes="vx-switch",
    )
    return {
        "words_part": words_part, "transcript": transcript, "words_note": words_note, "transcribe": transcribe,
        "compare": compare, "helpers": helpers, "both": both,
    }  # fmt: skip


def _consent_part() -> dict[str, Any]:
    consent = gr.Checkbox(
        False,
        label=label("cloning_consent"),
        info=label("cloning_consent_info"),
        elem_id="vx-cloning-consent",
    )
    with gr.Row(elem_classes="vx-save-voice", elem_id="vx-cloning-save-row"):
        save_name = gr.Textbox(
            "",
            label=label("cloning_save_name"),
            placeholder=label("cloning_save_name"),
            show_label=False,
            container=False,
            max_lines=1,
            max_length=80,
            elem_id="vx-cloning-save-name",
            scale=3,
        )
        save = gr.Button(
            label("cloning_save"), elem_id="vx-cloning-save", elem_classes="ib ib-voice", scale=1, min_width=180
        )
    save_notice = html("", elem_id="vx-cloning-save-notice", elem_classes="vx-cloning-notice")
    return {"consent": consent, "save_name": save_name, "save": save, "save_notice": save_notice}


def _text_part() -> dict[str, Any]:
    control = gr.Textbox(
        "",
        label=label("cloning_control"),
        info=label("control_optional"),
        placeholder=label("cloning_control_hint"),
        lines=1,
        max_lines=3,
        elem_id="vx-cloning-control",
    )
    text = gr.Textbox(
        "",
        label=label("cloning_text"),
        placeholder=label("cloning_text_hint"),
        lines=3,
        max_lines=10,
        elem_id="vx-cloning-text",
    )
    return {"control": control, "text": text, "preview": preview_part("vx-cloning")}

"""The page as a whole: header, tabs, and what happens when it opens; :func:`launch` serves it."""

from __future__ import annotations

import logging
import threading
from typing import Any

import gradio as gr
from gradio import audio_stream_encoder
from starlette.middleware import Middleware

from studio.hosts import OnlyThisMachine, is_local
from studio.store import Store
from studio.synthesizer import Synthesizer
from studio.transcription import DEFAULT_MODEL
from studio.ui import (
    chapters_layout,
    cloning_layout,
    cloning_wiring,
    design_layout,
    history_layout,
    history_markup,
    look,
    markup,
    origin_check,
    tts_layout,
    voices_chooser,
    voices_layout,
    voices_markup,
)
from studio.ui.adapter_panel import AdapterHandlers
from studio.ui.chapters import ChaptersHandlers
from studio.ui.cloning import CloningHandlers
from studio.ui.cloning_desk import DeskHandlers
from studio.ui.context import Context
from studio.ui.design import DesignHandlers
from studio.ui.endpoint import add_endpoint
from studio.ui.endpoint_cloning import add_cloning_endpoints
from studio.ui.endpoint_design import add_design_endpoint
from studio.ui.endpoint_takes import add_take_endpoints
from studio.ui.history import HistoryHandlers
from studio.ui.i18n import label, translations
from studio.ui.media import Media
from studio.ui.opening import Said, first_visit, tell_model, wire_opening
from studio.ui.picker import PickerHandlers
from studio.ui.replay import ReplayHandlers
from studio.ui.tts import TTSHandlers
from studio.ui.voices import VoicesHandlers
from studio.ui.voices_chooser import VoiceChooser
from studio.ui.wiring import POLL_SECONDS, QUIET, SPEAKERS

# Fixed, so that what a browser keeps outlives the server. It hides nothing: only ids and settings are kept.
BROWSER_KEY = "voxcpm-studio-1"
ENCODER_START_SECONDS = 0.6
LAST_WORDS_SECONDS = 0.5  # connections that are open then are cut
UPLOAD_LIMIT = "200mb"  # of one file: a bundle of voices
CACHE_SWEEP = (3600, 86400)  # seconds: gradio's own copies are looked at hourly and dropped after a day


def build_page(
    synthesizer: Synthesizer, store: Store, shared: bool = False, recogniser: str = ""
) -> tuple[gr.Blocks, Context]:
    """The page on these objects. ``shared``: strangers may open it, so every browser sees its own takes only.

    ``recogniser``: what transcribes clips, a Whisper size or a folder; "" is the default.
    """
    recogniser = recogniser or DEFAULT_MODEL
    context = Context(synthesizer, store, Media(store, synthesizer.voices), shared, recogniser)
    tts, voices = TTSHandlers(context), VoicesHandlers(context)
    histories, replays = HistoryHandlers(context), ReplayHandlers(context)
    with gr.Blocks(title="VoxCPM Studio", analytics_enabled=False, fill_width=True, delete_cache=CACHE_SWEEP) as page:
        owner = gr.BrowserState(None, storage_key=f"{BROWSER_KEY}-owner", secret=BROWSER_KEY)
        kept = gr.BrowserState({}, storage_key=f"{BROWSER_KEY}-settings", secret=BROWSER_KEY)
        kept_spoken = gr.BrowserState([], storage_key=f"{BROWSER_KEY}-tts-lanes", secret=BROWSER_KEY)
        kept_design = gr.BrowserState({}, storage_key=f"{BROWSER_KEY}-design", secret=BROWSER_KEY)
        kept_lanes = gr.BrowserState([], storage_key=f"{BROWSER_KEY}-design-lanes", secret=BROWSER_KEY)
        kept_cloning = gr.BrowserState({}, storage_key=f"{BROWSER_KEY}-cloning", secret=BROWSER_KEY)
        kept_clones = gr.BrowserState([], storage_key=f"{BROWSER_KEY}-cloning-lanes", secret=BROWSER_KEY)
        timer = gr.Timer(POLL_SECONDS, active=False)  # arrive() starts it while a model loads
        with gr.Row(elem_classes="vx-header"):
            header = look.html(markup.header("en"), elem_id="vx-header")
            card = look.html(elem_id="vx-model")
            retry = gr.Button(
                label("model_retry"), size="sm", visible=False, elem_id="vx-retry", elem_classes="ib ib-reuse"
            )
            switches = look.html(markup.switches("en"), elem_id="vx-switches")
        with gr.Tabs(selected="tts", elem_id="vx-tabs") as tabs:
            with gr.Tab(label("tab_tts"), id="tts") as tts_room:
                tab = tts_layout.layout()
            with gr.Tab(label("tab_design"), id="design") as design_room:
                design = design_layout.layout()
            with gr.Tab(label("tab_cloning"), id="cloning") as cloning_room:
                cloning = cloning_layout.layout()
            with gr.Tab(label("tab_chapters"), id="chapters") as chapters_room:
                chapters = chapters_layout.layout()
            with gr.Tab(label("tab_voices"), id="voices") as voices_room:
                library = voices_layout.layout()
            with gr.Tab(label("tab_history"), id="history") as history_room:
                history = history_layout.layout()
        origin = origin_check.layout()
        foot = look.html(footer("en"), elem_id="vx-foot")
        add_endpoint(context)
        add_design_endpoint(context)
        add_cloning_endpoints(context)
        add_take_endpoints(context)
        origin_check.add_origin_endpoint(context)
        origin_check.wire(context, origin, owner)

        lists = [tab.recent, library.trial, history.lanes, history.detail]
        speaker = PickerHandlers(context, "tts")
        tts_layout.wire(tts, speaker, tab, owner, kept, kept_spoken, lists, tabs, tts_room, page.load)
        visits = [first_visit(room) for room in (design_room, cloning_room, chapters_room)]
        (designing, design_model), (cloning_opens, cloning_model), (reading, _) = visits
        tell_model(card, visits)
        history_layout.wire(histories, replays, history, owner, history_room)
        voices_layout.wire(voices, library, owner, voices_room, SPEAKERS)
        designs = DesignHandlers(context)
        picker = PickerHandlers(context, "design")
        design_layout.wire(designs, picker, design, owner, kept_design, kept_lanes, designing.change, design_model)
        reused = [tab.recent.reuse, history.lanes.reuse, history.detail.reuse]
        design_layout.wire_reuse(designs, design, owner, reused, tabs)
        clones = CloningHandlers(context)
        cloning_wiring.wire(
            clones,
            DeskHandlers(context),
            PickerHandlers(context, "cloning"),
            AdapterHandlers(context),
            cloning,
            owner,
            kept_cloning,
            kept_clones,
            cloning_opens.change,
            cloning_model,
            cloning_room.select,
        )
        cloning_wiring.wire_reuse(clones, cloning, owner, reused, tabs)
        narrator = PickerHandlers(context, "chapters")
        chapters_layout.wire(ChaptersHandlers(context, narrator), narrator, chapters, owner, reading.change)
        model = [card, retry, timer, tab.form.generate, tab.control, tab.control_note]
        retry.click(tts.retry, None, model, **QUIET)
        timer.tick(tts.arrive, *tts_layout.arrival(tab, kept, owner, model), **QUIET)
        voices_chooser.wire(
            VoiceChooser(context),
            tab.voice,
            tab.form.seed,
            owner,
            tabs,
            library.detail.use,
            history.seeds.use_seed,
        )
        said = _said(header, switches, foot, tab.recent_title) + [
            (history.detail, history_markup.nothing_open),
            (library.detail, voices_markup.none_open),
            (library.export, voices_markup.bundle_bar),
        ]
        wire_opening(page.load, tts, tab, kept, owner, model, said)
    page.queue(default_concurrency_limit=SPEAKERS)
    return page, context


def _said(header: gr.HTML, switches: gr.HTML, foot: gr.HTML, recent_title: gr.HTML) -> list[Said]:
    return [
        (header, markup.header),
        (switches, markup.switches),
        (foot, footer),
        (recent_title, tts_layout.recent_heading),
    ]


def footer(language: str) -> str:
    return f'<p class="vx-foot">{markup.say(language, "ai_note")}</p>'


def _let_the_encoder_start() -> None:
    """Let gradio wait for the first frame of its encoder instead of announcing a stream with nothing in it.

    A player that finds an empty playlist asks again after a second, so sound would start a second late.
    """
    if hasattr(audio_stream_encoder, "STARTUP_WAIT"):
        audio_stream_encoder.STARTUP_WAIT = max(audio_stream_encoder.STARTUP_WAIT, ENCODER_START_SECONDS)


def close(page: gr.Blocks) -> None:
    """Take the page down. Open browsers hear the last of their takes; they do not hold it up for long."""
    server = getattr(page, "server", None)
    if server is not None:
        timer = threading.Timer(LAST_WORDS_SECONDS, _cut_off, [server])
        timer.daemon = True
        timer.start()
    page.close(verbose=False)


def _cut_off(server: Any) -> None:
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # it would print a traceback per connection
    server.force_exit = True


def launch(
    page: gr.Blocks, context: Context, *, host: str = "127.0.0.1", port: int = 7860, open_browser: bool = False
) -> str:
    """Serve the page from a thread of its own and return its address. Raises OSError when the port is taken.

    gradio's run history is off: it would keep texts in the browser, and the studio has a history of its own.
    """
    _let_the_encoder_start()
    guards = [Middleware(OnlyThisMachine)] if is_local(host) else []
    _, address, _ = page.launch(
        server_name=host,
        server_port=port,
        inbrowser=open_browser,
        prevent_thread_lock=True,
        quiet=True,
        share=False,
        ssr_mode=False,
        run_history=False,
        footer_links=["api"],
        theme=look.theme(),
        i18n=translations(),
        max_file_size=UPLOAD_LIMIT,
        app_kwargs={
            "routes": [*context.media.routes(), *context.clip_media.routes(), *context.books.routes()],
            "middleware": guards + [Middleware(look.EarlyHead)],
        },
    )
    return address

"""`/check_reference`, `/clone` and `/adapters`: the Cloning tab for programs.

from gradio_client import Client, handle_file
client = Client("http://127.0.0.1:7860")
card = client.predict(audio=handle_file("anna.m4a"), transcript="Good morning.", api_name="/check_reference")
takes = client.predict(
    mode="controllable", text="And good night.", audio=handle_file("anna.m4a"), consent=True, api_name="/clone"
)

Files are uploaded: a path on this machine is refused.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import gradio as gr

from studio.events import Finished
from studio.reference_checks import check_reference
from studio.transcripts import spoken_seconds
from studio.ui.adapter_panel import adapter_fields, check_strength
from studio.ui.cloning_request import Speaker, clone_request, refuse_unable, saved_speaker
from studio.ui.context import Context
from studio.ui.endpoint import in_range, of_kind
from studio.ui.endpoint_design import shown_take
from studio.ui.form import takes_of
from studio.ui.settings import CFG_RANGE, SEED_LIMIT, STEPS_RANGE, SettingError, check_length, parse_seed
from studio.ui.wiring import PROGRAMS
from voxcpm_core.audio import MAX_REFERENCE_SECONDS, Audio, load_audio
from voxcpm_core.errors import AudioError, VoxCPMError

SHOWN_OF_A_CHECK = ("name", "value", "verdict", "advice")


def add_cloning_endpoints(context: Context) -> None:
    """Register the endpoints on the Blocks that is being built."""
    output = gr.JSON(label="checks", visible=False)
    _add(check_function(), "check_reference", [_clip(), _plain("transcript", "")], output)
    takes = gr.JSON(label="takes", visible=False)
    fields = [
        _plain("mode", None),
        _plain("text", None),
        _clip(),
        *(_plain(name, "") for name in ("voice", "transcript", "control")),
        gr.Number(3, label="takes", visible=False),
        *(gr.Number(None, label=name, visible=False) for name in ("seed", "cfg_value", "inference_timesteps")),
        gr.Checkbox(False, label="consent", visible=False),
        gr.Checkbox(False, label="both", visible=False),
        _plain("adapter", ""),
        gr.Number(1.0, label="adapter_strength", visible=False),
    ]
    _add(clone_function(context, cache=takes.GRADIO_CACHE), "clone", fields, takes)
    _add(adapters_function(context), "adapters", [], gr.JSON(label="adapters", visible=False))


def _clip() -> gr.File:
    """gradio lets only files through that were uploaded to it."""
    return gr.File(label="audio", type="filepath", visible=False)


def _plain(name: str, default: str | None) -> gr.Textbox:
    return gr.Textbox(default, label=name, visible=False)


def _add(function: Callable[..., Any], name: str, inputs: list[Any], output: gr.JSON) -> None:
    for field in inputs:
        if not isinstance(field, gr.File):  # as it was sent: gradio would round, or refuse without a word
            field.preprocess = lambda payload: payload
    gr.Button(visible=False).click(
        function, inputs, output, api_name=name, concurrency_limit=PROGRAMS, concurrency_id=f"{name}-programs"
    )


def check_function() -> Callable[..., list[dict[str, Any]]]:
    def check(audio: Any, transcript: str = "") -> list[dict[str, Any]]:
        """Look at a clip before cloning from it: the lines of the check card.

        Parameters:
            audio: the clip, an uploaded file of any audio format
            transcript: the words that are said in it, to see whether they can belong to it; "" to leave that out
        Returns:
            checks: a list (JSON) of name, value, verdict ("ok", "warn", "fail") and advice
        """
        with _sentences():
            words = of_kind("transcript", transcript or "", str, "a text")
            check_length(words)
            try:
                found = check_reference(_loaded(audio), words).as_list()
            except AudioError as error:  # no recording at all: that is a verdict, too
                found = [{"name": "usable", "value": "no", "verdict": "fail", "advice": str(error)}]
            return [{key: line[key] for key in SHOWN_OF_A_CHECK} for line in found]

    return check


def clone_function(context: Context, cache: str) -> Callable[..., list[dict[str, Any]]]:
    def clone(
        mode: str,
        text: str,
        audio: Any = None,
        voice: str = "",
        transcript: str = "",
        control: str = "",
        takes: int = 3,
        seed: int | None = None,
        cfg_value: float | None = None,
        inference_timesteps: int | None = None,
        consent: bool = False,
        both: bool = False,
        adapter: str = "",
        adapter_strength: float = 1.0,
        request: gr.Request = None,
    ) -> list[dict[str, Any]]:
        """Speak a text with the voice of a clip, of a saved voice or of an adapter: several takes, made in one batch.

        Parameters:
            mode: "controllable" (the clip gives the voice, a control text the style) or "ultimate" (the model goes on
                from the clip, whose exact words must be given)
            text: what to speak
            audio: the clip, an uploaded file of any audio format; None with a saved voice
            voice: id of a saved voice (see `/voices`); "" with a clip
            transcript: exactly what is said in the clip, for "ultimate"
            control: how to speak, for "controllable"; "" for none
            takes: how many, 1 to 3
            seed: seed of the first take, 0 to 4294967295; the next ones count up from it; None for new ones
            cfg_value: guidance, 1 to 5; None for the model's own value
            inference_timesteps: solver steps, 2 to 50; None for the model's own value
            consent: True says that you may use this voice; without it nothing is cloned. It is noted in every take
            both: for "ultimate": the clip is the reference, too, for the highest likeness
            adapter: name of an adapter (LoRA, see `/adapters`), with a clip or a voice, or alone as a voice of its own;
                "" for what the model was started with
            adapter_strength: 0 (none of it) to 2
        Returns:
            takes: a list (JSON), for each take: take_id, seed, file (a 16-bit WAV), seconds, ended_by ("stop", "limit",
                "cancelled", "error"), checks (a list of name, value, verdict, advice), message (why there is no file)
        """
        with _sentences():
            count, base = takes_of(takes), parse_seed(seed)
            session = context.session(None, request)
            mode = of_kind("mode", mode, str, '"controllable" or "ultimate"')
            if audio or voice or not adapter:
                refuse_unable(mode, context.synthesizer.status)
            agreed = of_kind("consent", consent or False, bool, "true or false")
            steps = in_range("inference_timesteps", inference_timesteps, STEPS_RANGE, whole=True)
            settings = {
                "cfg_value": in_range("cfg_value", cfg_value, CFG_RANGE),
                "inference_timesteps": None if steps is None else int(steps),
            }
            words = [of_kind(*field, str, "a text") for field in (("text", text or ""), ("control", control or ""))]
            _refuse_control(mode, words[1], context)
            if not agreed and not voice:
                raise SettingError("ask_consent")
            lora = _adapter(context, adapter, adapter_strength)
            alone = bool(lora.get("lora")) and not audio and not voice
            speaker = Speaker(None, agreed=agreed)
            if not alone:
                speaker = _speaker(context, audio, voice, transcript, agreed, context.visible(None, request))
            extra = of_kind("both", both or False, bool, "true or false")
            if extra and mode == "ultimate":
                refuse_unable("controllable", context.synthesizer.status)
            wish, options = clone_request(speaker, mode, *words, both=extra, **settings, **lora)
            base = secrets.randbelow(SEED_LIMIT) if base is None else base
            seeds = [(base + k) % SEED_LIMIT for k in range(count)]
            speaking = context.synthesizer.speak(wish, seeds=seeds, tab="api", session=session, **options)
            with closing(speaking) as events:
                made = {event.row: event.record for event in events if isinstance(event, Finished)}
            return [shown_take(made[row], context, cache) for row in sorted(made)]

    return clone


def adapters_function(context: Context) -> Callable[..., list[str]]:
    def adapters() -> list[str]:
        """The adapters (LoRA) that `/clone` can speak with.

        Returns:
            adapters: a list (JSON) of names
        """
        return context.synthesizer.adapters.names()

    return adapters


def _adapter(context: Context, name: Any, strength: Any) -> dict[str, Any]:
    """Fields of the request; none for what the model was started with."""
    name = of_kind("adapter", name or "", str, "the name of an adapter")
    strength = check_strength(1.0 if strength is None else strength)
    return adapter_fields(context, name, strength, True) if name else {}


def _refuse_control(mode: str, control: str, context: Context) -> None:
    if not control.strip():
        return
    if mode == "ultimate":
        raise SettingError("cloning_control_off")
    status = context.synthesizer.status
    if status.state == "ready" and not status.supports_control:
        raise SettingError("cloning_no_control", generation=status.generation)


def _speaker(context: Context, audio: Any, voice: Any, transcript: Any, consent: bool, session: str | None) -> Speaker:
    """Whose voice a program asks for. Exactly one of clip and saved voice."""
    voice = of_kind("voice", voice or "", str, "the id of a voice")
    words = of_kind("transcript", transcript or "", str, "a text").strip()
    if bool(voice) == bool(audio):
        raise SettingError("cloning_one_source")
    if voice:
        return saved_speaker(context.voices, voice, session, consent)
    clip = _loaded(audio)
    report = check_reference(clip)
    if report.analysis is None:
        raise AudioError(report.checks[0].advice)
    return Speaker(clip, words, consent, spoken_seconds(report.analysis.activity.regions))


def _loaded(audio: Any) -> Audio:
    if not audio:
        raise SettingError("ask_clip")
    return load_audio(of_kind("audio", audio, str, "an uploaded file"), max_seconds=MAX_REFERENCE_SECONDS)


@contextmanager
def _sentences() -> Iterator[None]:
    """What a program is told when something cannot be done."""
    try:
        yield
    except (SettingError, VoxCPMError) as error:
        raise gr.Error(str(error), print_exception=False) from error

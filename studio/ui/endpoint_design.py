"""`/design`: the Voice Design tab for programs.

from gradio_client import Client
client = Client("http://127.0.0.1:7860")
takes = client.predict(control="an old man, speaking slowly", text="Good morning.", takes=3, api_name="/design")
print(takes[0]["seed"], takes[0]["file"])
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import gradio as gr

from studio.second_tries import ATTEMPTS, best_of, made_with_second_tries
from studio.takes import TakeRecord
from studio.ui.context import Context
from studio.ui.design import takes_of
from studio.ui.endpoint import attempts_of, delivered, in_range, of_kind, shown_try
from studio.ui.settings import CFG_RANGE, SEED_LIMIT, STEPS_RANGE, SettingError, check_length, parse_seed
from studio.ui.wiring import PROGRAMS
from voxcpm_core import SpeechRequest
from voxcpm_core.errors import VoxCPMError

FILE = {"_type": "gradio.FileData"}  # what clients know a file by: they download it and put its path in its place


def add_design_endpoint(context: Context) -> None:
    """Register `/design` on the Blocks that is being built."""
    inputs = [
        gr.Textbox(label="control", visible=False),
        gr.Textbox(label="text", visible=False),
        gr.Number(3, label="takes", visible=False),
        gr.Number(None, label="seed", visible=False),
        gr.Number(None, label="cfg_value", visible=False),
        gr.Number(None, label="inference_timesteps", visible=False),
        gr.Number(ATTEMPTS, label="attempts", visible=False),
    ]
    for field in inputs:  # as it was sent: gradio would round, or refuse without a word
        field.preprocess = lambda payload: payload
    output = gr.JSON(label="takes", visible=False)
    gr.Button(visible=False).click(
        design_function(context, cache=output.GRADIO_CACHE),
        inputs,
        output,
        api_name="design",
        concurrency_limit=PROGRAMS,
        concurrency_id="design-programs",
    )


def design_function(context: Context, cache: str) -> Callable[..., list[dict[str, Any]]]:
    def design(
        control: str,
        text: str,
        takes: int = 3,
        seed: int | None = None,
        cfg_value: float | None = None,
        inference_timesteps: int | None = None,
        attempts: int = ATTEMPTS,
        request: gr.Request = None,
    ) -> list[dict[str, Any]]:
        """Design a voice from a description: several takes of one text, made in one batch and stored.

        A take that does not fit its text (too long, too short, no sound) is tried again with a seed that no take has
        had. Every try is kept as a take of its own; the first good one is returned, else the first.

        Parameters:
            control: description of the voice, for example "an elderly man with a deep voice, speaking slowly"
            text: what the voice says
            takes: how many, 1 to 3
            seed: seed of the first take, 0 to 4294967295; the next ones count up from it; None for new ones
            cfg_value: guidance, 1 to 5; None for the model's own value
            inference_timesteps: solver steps, 2 to 50; None for the model's own value
            attempts: tries for each take in all, 1 to 5; 1 for the asked seeds and no others
        Returns:
            takes: a list (JSON), for each take: take_id, seed, file (a 16-bit WAV), seconds, ended_by ("stop", "limit",
                "cancelled", "error"), checks (a list of name, value, verdict, advice), message (why there is no file),
                attempts (all tries: take_id, seed, ended_by, checks)
        """
        try:
            status = context.synthesizer.status
            if status.state == "ready" and not status.supports_control:
                raise SettingError("design_unsupported", generation=status.generation)
            wish, seeds = _request(control, text, takes, seed, cfg_value, inference_timesteps)
            session = context.session(None, request)
            options = {"seeds": seeds, "tab": "api", "session": session, "attempts": attempts_of(attempts)}
            made = made_with_second_tries(context.synthesizer, wish, **options)
            return [
                {**shown_take(best_of(tries), context, cache), "attempts": [shown_try(one) for one in tries]}
                for tries in made
            ]
        except (SettingError, VoxCPMError) as error:
            raise gr.Error(str(error), print_exception=False) from error

    return design


def _request(
    control: Any, text: Any, takes: Any, seed: Any, cfg_value: Any, timesteps: Any
) -> tuple[SpeechRequest, list[int]]:
    """What a program sent, each value looked at: a wrong one is a SettingError that names it."""
    control = of_kind("control", control or "", str, "a text").strip()
    text = of_kind("text", text or "", str, "a text")
    if not control:
        raise SettingError("ask_control")
    if not text.strip():
        raise SettingError("ask_text")
    check_length(text, control)
    base = parse_seed(seed)
    if base is None:
        base = secrets.randbelow(SEED_LIMIT)
    timesteps = in_range("inference_timesteps", timesteps, STEPS_RANGE, whole=True)
    request = SpeechRequest(
        text=text,
        control=control,
        cfg_value=in_range("cfg_value", cfg_value, CFG_RANGE),
        inference_timesteps=None if timesteps is None else int(timesteps),
    )
    return request, [(base + k) % SEED_LIMIT for k in range(takes_of(takes))]


def shown_take(record: TakeRecord, context: Context, cache: str) -> dict[str, Any]:
    file = None
    if record.file_name:
        path = delivered(record, context, cache)
        file = {"path": path, "orig_name": record.file_name, "meta": FILE}
    return {**shown_try(record), "file": file, "seconds": record.seconds, "message": record.message}

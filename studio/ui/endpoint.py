"""`/tts`: the text-to-speech tab for programs.

from gradio_client import Client
audio, recipe = Client("http://127.0.0.1:7860").predict(text="Good morning.", seed=7, api_name="/tts")
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import gradio as gr
from gradio.processing_utils import save_bytes_to_cache

from studio.export_takes import marked_wav
from studio.second_tries import ATTEMPTS, best_of, made_with_second_tries
from studio.takes import TakeRecord
from studio.ui.context import Context
from studio.ui.settings import CFG_RANGE, STEPS_RANGE, SettingError, check_length, parse_seed, shown
from studio.ui.wiring import PROGRAMS
from voxcpm_core import SpeechRequest
from voxcpm_core.errors import VoxCPMError

logger = logging.getLogger(__name__)

MOST_ATTEMPTS = 5


def add_endpoint(context: Context) -> None:
    """Register `/tts` on the Blocks that is being built."""
    inputs = [
        gr.Textbox(label="text", visible=False),
        gr.Textbox("", label="control", visible=False),
        gr.Number(None, label="seed", visible=False),
        gr.Number(None, label="cfg_value", visible=False),
        gr.Number(None, label="inference_timesteps", visible=False),
        gr.Checkbox(False, label="normalize", visible=False),
        gr.Textbox("", label="voice", visible=False),
        gr.Number(ATTEMPTS, label="attempts", visible=False),
    ]
    for field in inputs:  # as it was sent: gradio would round, or refuse without a word
        field.preprocess = lambda payload: payload
    file = gr.File(label="audio", visible=False)
    outputs = [file, gr.JSON(label="recipe", visible=False)]
    gr.Button(visible=False).click(
        tts_function(context, cache=file.GRADIO_CACHE),
        inputs,
        outputs,
        api_name="tts",
        concurrency_limit=PROGRAMS,
        concurrency_id="tts",
    )


def tts_function(context: Context, cache: str) -> Callable[..., tuple[str, dict[str, Any]]]:
    def tts(
        text: str,
        control: str = "",
        seed: int | None = None,
        cfg_value: float | None = None,
        inference_timesteps: int | None = None,
        normalize: bool = False,
        voice: str = "",
        attempts: int = ATTEMPTS,
        request: gr.Request = None,
    ) -> tuple[str, dict[str, Any]]:
        """Speak a text and return the saved take.

        A take that does not fit its text (too long, too short, no sound) is tried again with the next seed. Every try
        is kept as a take of its own; the first good one is returned, else the first.

        Parameters:
            text: what to speak
            control: description of the voice, for models that have voice design; "" for none
            seed: 0 to 4294967295; None for a new one, which the recipe tells
            cfg_value: guidance, 1 to 5; None for the model's own value
            inference_timesteps: solver steps, 2 to 50; None for the model's own value
            normalize: write out numbers and signs before speaking
            voice: id of a saved voice that speaks (see `/voices`); "" for none
            attempts: tries in all, 1 to 5; 1 for the asked seed and no other
        Returns:
            audio: the take, a 16-bit WAV file
            recipe: everything that made it (JSON): spoken text, seed, settings, model, device, length, ended_by, ...;
                and attempts, a list of all tries: take_id, seed, ended_by, checks
        """
        try:
            wish = _request(text, control, seed, cfg_value, inference_timesteps, normalize)
            session = context.session(None, request)
            voice_id = of_kind("voice", voice or "", str, "the id of a voice")
            options = {"tab": "api", "session": session, "voice_id": voice_id, "attempts": attempts_of(attempts)}
            [tries] = made_with_second_tries(context.synthesizer, wish, **options)
            record = best_of(tries)
            if not record.file_name:
                raise gr.Error(record.message or "No sound was made.", print_exception=False)
            recipe = {**record.recipe(), "attempts": [shown_try(one) for one in tries]}
            return delivered(record, context, cache), recipe
        except (SettingError, VoxCPMError) as error:
            raise gr.Error(str(error), print_exception=False) from error

    return tts


def delivered(record: TakeRecord, context: Context, cache: str) -> str:
    """A copy of a take's file, marked as AI-made, in gradio's own folder: its file route can serve nothing else."""
    return save_bytes_to_cache(marked_wav(context.store, record), record.file_name, cache)


def _request(text: Any, control: Any, seed: Any, cfg_value: Any, timesteps: Any, normalize: Any) -> SpeechRequest:
    """What a program sent, each value looked at: a wrong one is a SettingError that names it."""
    text, control = of_kind("text", text or "", str, "a text"), of_kind("control", control or "", str, "a text")
    if not text.strip():
        raise SettingError("ask_text")
    check_length(text, control)
    cfg_value = in_range("cfg_value", cfg_value, CFG_RANGE)
    timesteps = in_range("inference_timesteps", timesteps, STEPS_RANGE, whole=True)
    return SpeechRequest(
        text=text,
        control=control,
        seed=parse_seed(seed),
        cfg_value=cfg_value,
        inference_timesteps=None if timesteps is None else int(timesteps),
        normalize=of_kind("normalize", normalize or False, bool, "true or false"),
    )


def attempts_of(value: Any) -> int:
    """How often a take may be tried. Raises SettingError."""
    return int(in_range("attempts", value, (1, MOST_ATTEMPTS), whole=True) or ATTEMPTS)


def shown_try(record: TakeRecord) -> dict[str, Any]:
    """One attempt at a take, for a program."""
    return {
        "take_id": record.id if record.file_name else None,
        "seed": record.seed,
        "ended_by": record.ended_by,
        "checks": [dict(check) for check in record.checks],
    }


def of_kind(name: str, value: Any, kind: type, wanted: str) -> Any:
    if not isinstance(value, kind):
        raise SettingError("wrong_kind", name=name, wanted=wanted, value=shown(value)[:40])
    return value


def in_range(name: str, value: Any, limits: tuple[float, float], whole: bool = False) -> float | None:
    if value is None:
        return None
    low, high = limits
    fits = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    if not fits or (whole and value != int(value)):
        key = "whole_number" if whole else "out_of_range"
        raise SettingError(key, name=name, value=shown(value)[:40], low=f"{low:g}", high=f"{high:g}")
    return value

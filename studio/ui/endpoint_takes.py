"""Endpoints for programs about takes and voices: `/save_voice`, `/voices`, `/history` and `/replay`.

from gradio_client import Client
client = Client("http://127.0.0.1:7860")
audio, recipe = client.predict(text="Good morning.", api_name="/tts")
voice = client.predict(take_id=recipe["id"], name="Anna", api_name="/save_voice")
audio, recipe = client.predict(text="And good night.", voice=voice["id"], api_name="/tts")
result, audio = client.predict(take_id=recipe["id"], api_name="/replay")

Where everybody has takes of their own (`--multi-user`, or a Space), a program sees what it made itself, through one and
the same Client.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import Any

import gradio as gr

from studio.events import Reason, Replayed
from studio.history import Filter, History
from studio.takes import TakeRecord
from studio.ui.context import Context
from studio.ui.endpoint import delivered, in_range, of_kind
from studio.ui.settings import SettingError
from studio.ui.wiring import PROGRAMS
from studio.voices import Voice
from voxcpm_core.errors import VoxCPMError

logger = logging.getLogger(__name__)

MOST_LISTED = 1000
SHOWN_OF_A_VOICE = (
    *("id", "name", "created", "description", "transcript", "tags", "seed", "seconds", "sample_rate", "source"),
    *("consent", "audio_hash"),
)


def add_take_endpoints(context: Context) -> None:
    """Register the endpoints on the Blocks that is being built."""
    take_id, result = ("take_id", ""), gr.JSON(label="result", visible=False)
    file = gr.File(label="audio", visible=False)
    _add(save_voice_function(context), "save_voice", [take_id, ("name", "")], [result])
    _add(voices_function(context), "voices", [], [result])
    _add(history_function(context), "history", [("query", ""), ("limit", 20), ("offset", 0)], [result])
    replay = replay_function(context, cache=file.GRADIO_CACHE)
    _add(replay, "replay", [take_id, ("anyway", False)], [result, file])


def _add(function: Callable[..., Any], name: str, fields: list[tuple[str, Any]], outputs: list[Any]) -> None:
    makers = {str: gr.Textbox, int: gr.Number, bool: gr.Checkbox}
    inputs = [makers[type(default)](default, label=label, visible=False) for label, default in fields]
    for field in inputs:  # as it was sent: gradio would round, or refuse without a word
        field.preprocess = lambda payload: payload
    gr.Button(visible=False).click(
        function, inputs, outputs, api_name=name, concurrency_limit=PROGRAMS, concurrency_id=f"{name}-programs"
    )


def save_voice_function(context: Context) -> Callable[..., dict[str, Any]]:
    def save_voice(take_id: str, name: str, request: gr.Request = None) -> dict[str, Any]:
        """Make a take a saved voice, which `/tts` can speak with.

        Parameters:
            take_id: id of the take, as recipes tell it
            name: what the voice is called; no two voices have the same name
        Returns:
            result: the voice (JSON): id, name, description, transcript, seed, seconds, ...
        """
        with _sentences():
            wanted = of_kind("take_id", take_id, str, "the id of a take"), of_kind("name", name, str, "a text")
            return shown_voice(context.voices.save_from_take(*wanted, context.session(None, request)))

    return save_voice


def voices_function(context: Context) -> Callable[..., list[dict[str, Any]]]:
    def voices(request: gr.Request = None) -> list[dict[str, Any]]:
        """All saved voices, by name.

        Returns:
            result: a list of voices (JSON): id, name, description, transcript, tags, seed, seconds, ...
        """
        with _sentences():
            return [shown_voice(voice) for voice in context.voices.voices(session=context.visible(None, request))]

    return voices


def history_function(context: Context) -> Callable[..., dict[str, Any]]:
    def history(query: str = "", limit: int = 20, offset: int = 0, request: gr.Request = None) -> dict[str, Any]:
        """Takes, the newest first.

        Parameters:
            query: words that must all occur in the spoken text or the description; "" for all takes
            limit: how many to list, 1 to 1000
            offset: how many of the newest to leave out
        Returns:
            result: count (of all that fit) and takes (JSON): recipe, rating, starred, picked and note of each
        """
        with _sentences():
            wanted = Filter(query=of_kind("query", query or "", str, "a text"))
            page = (
                int(in_range("limit", limit, (1, MOST_LISTED), whole=True) or 20),
                int(in_range("offset", offset, (0, 10**9), whole=True) or 0),
            )
            found = History(context.store).page(wanted, *page, context.visible(None, request))
            return {"count": found.count, "takes": [shown_take(record) for record in found.takes]}

    return history


def replay_function(context: Context, cache: str) -> Callable[..., tuple[dict[str, Any], str | None]]:
    def replay(take_id: str, anyway: bool = False, request: gr.Request = None) -> tuple[dict[str, Any], str | None]:
        """Make a take again from its recipe and compare the sound.

        Nothing is made when something is missing; when something has only changed, it is made with anyway=True.

        Parameters:
            take_id: id of the take, as recipes tell it
            anyway: try it although something has changed since then
        Returns:
            result: identical (true, false; null when nothing was made), reasons (missing or changed), take_id (JSON)
            audio: the new take, a 16-bit WAV file; null when nothing was made
        """
        with _sentences():
            wanted = of_kind("take_id", take_id, str, "the id of a take")
            session = context.session(None, request)
            reasons = context.synthesizer.replay_reasons(wanted, session)
            blocked = any(reason.blocks for reason in reasons)
            if blocked or (reasons and not of_kind("anyway", anyway or False, bool, "true or false")):
                return {"identical": None, "reasons": _shown(reasons), "take_id": None}, None
            with closing(context.synthesizer.replay(wanted, session)) as events:
                done = next(event for event in events if isinstance(event, Replayed))
            made = done.record if done.record.file_name and done.record.id != wanted else None
            told = {"identical": done.identical, "reasons": _shown(done.reasons), "take_id": made and made.id}
            return {**told, "sentence": done.sentence}, delivered(made, context, cache) if made else None

    return replay


@contextmanager
def _sentences() -> Iterator[None]:
    """What goes wrong reaches the program as a sentence."""
    try:
        yield
    except (SettingError, VoxCPMError) as error:
        raise gr.Error(str(error), print_exception=False) from error


def shown_voice(voice: Voice) -> dict[str, Any]:
    facts = {name: getattr(voice, name) for name in SHOWN_OF_A_VOICE}
    return {**facts, "tags": list(voice.tags)}


def shown_take(record: TakeRecord) -> dict[str, Any]:
    """The recipe, and what was thought of the take; never whose it is."""
    beside = {name: getattr(record, name) for name in ("rating", "starred", "picked", "note")}
    return {**record.recipe(), **beside}


def _shown(reasons: tuple[Reason, ...]) -> list[dict[str, Any]]:
    return [asdict(reason) for reason in reasons]

"""Loading in the background, failing and trying again, and closing, on a sine model."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.store import Store
from studio.synthesizer import Synthesizer
from tests.fakes import SineModel, SpeechRequest
from tests.records import ready
from voxcpm_core.errors import CheckpointError, EngineError


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "data")
    yield opened
    opened.close()


def test_loading_shows_progress_and_a_notice_and_refuses_meanwhile(store) -> None:
    gate, stage = threading.Event(), threading.Event()

    def load(on_progress):
        on_progress("weights", 0.4)
        on_progress.notice("The hub cannot be reached: nano stands in.")
        stage.set()
        gate.wait(10)
        return SineModel()

    synthesizer = Synthesizer(store, load)
    assert synthesizer.status.state == "loading"
    synthesizer.load()
    synthesizer.load()  # a second call while it loads changes nothing
    assert stage.wait(10)
    status = synthesizer.status
    assert (status.state, status.stage, status.fraction) == ("loading", "weights", 0.4)
    assert synthesizer.wait(0.01).state == "loading"
    with pytest.raises(EngineError, match=r"still loading \(weights\)"):
        next(synthesizer.speak(SpeechRequest("Hello")))
    gate.set()
    status = synthesizer.wait(10)
    assert (status.state, status.name, status.sample_rate) == ("ready", "sine", 48_000)
    assert status.notice.startswith("The hub") and status.supports_control
    assert status.defaults.cfg_value == 2.0
    synthesizer.close()


@pytest.mark.parametrize(
    "error, message",
    [
        (CheckpointError("The folder x lacks config.json."), "The folder x lacks config.json."),
        (
            RuntimeError("CUDA out of memory\n  at line 3"),
            "The model could not be loaded (RuntimeError: CUDA out of memory). The log of the program has the details.",
        ),
        (
            MemoryError(),
            "The model could not be loaded (MemoryError). The log of the program has the details.",
        ),
    ],
)
def test_a_failed_load_is_readable_and_can_be_tried_again(store, error, message) -> None:
    answers = [error, SineModel()]

    def load(on_progress):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    synthesizer = Synthesizer(store, load)
    synthesizer.load()
    status = synthesizer.wait(10)
    assert (status.state, status.message) == ("failed", message)
    with pytest.raises(EngineError, match="no model to speak with"):
        next(synthesizer.speak(SpeechRequest("Hello")))
    synthesizer.load()
    assert synthesizer.wait(10).state == "ready"
    assert list(synthesizer.speak(SpeechRequest("Hello")))[-1].record.ended_by == "stop"
    synthesizer.close()


def test_closing_stops_the_jobs_stores_their_takes_and_frees_the_model(store) -> None:
    model = SineModel(patch_delay=0.02)
    synthesizer = ready(store, model)
    events = synthesizer.speak(SpeechRequest("forever"))
    next(events), next(events)
    listener = threading.Thread(target=lambda: list(events))
    listener.start()
    synthesizer.close()
    assert model.closed
    assert [take.ended_by for take in store.takes()] == ["cancelled"]
    listener.join(5)
    with pytest.raises(EngineError):
        next(synthesizer.speak(SpeechRequest("Hello")))


def test_a_model_that_arrives_after_closing_is_given_back(store) -> None:
    gate, model = threading.Event(), SineModel()

    def load(on_progress):
        gate.wait(10)
        return model

    synthesizer = Synthesizer(store, load)
    synthesizer.load()
    synthesizer.close()
    gate.set()
    while not model.closed:  # the test's own time limit ends this
        time.sleep(0.01)
    assert synthesizer.status.state == "loading"

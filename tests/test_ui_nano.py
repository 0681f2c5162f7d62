"""The page on the embedded model: what is heard, stored and returned is what the engine makes alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gradio_client import Client

from tests.browser import (
    StreamRecorder,
    Studio,
    chromium,
    next_take,
    opened,
    running_studio,
    speak,
    wait_for_state,
    wav_samples,
    write,
)
from voxcpm_core import SpeechRequest, VoxCPM

# A busy machine can come between a browser and its page: such a test may have a second try, which the summary shows.
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.flaky(reruns=1)]


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory, torch_threads: int) -> Iterator[Studio]:
    def load(progress) -> VoxCPM:
        return VoxCPM.from_pretrained("nano", device="cpu", on_progress=progress)

    with running_studio(tmp_path_factory.mktemp("nano"), load=load) as studio:
        assert studio.synthesizer.wait(120).state == "ready"
        yield studio


def alone(nano: VoxCPM, text: str, seed: int) -> np.ndarray:
    """The same request on a model that does nothing else: float32 [n]."""
    return nano.generate_batch([SpeechRequest(text=text, seed=seed)])[0].samples


def assert_same_sound(path: Path, expected: np.ndarray) -> None:
    heard = wav_samples(path) / 32768
    assert len(heard) == len(expected)
    np.testing.assert_allclose(heard, np.clip(expected, -1, 1), atol=2e-4)  # 1e-4 and the rounding to 16 bits


def test_what_is_streamed_is_what_is_stored(studio: Studio, nano: VoxCPM) -> None:
    text = "Good morning. The library opens at nine."
    with chromium() as browser, opened(browser, studio.url) as page:
        stream = StreamRecorder(page)
        assert "small demonstration voice" in page.inner_text("#vx-model") and "16 kHz" in page.inner_text("#vx-model")
        take = studio.store.take(speak(page, text, seed=21))
        for _ in range(600):
            if stream.complete():
                break
            page.wait_for_timeout(100)
        streamed = stream.sound(take.sample_rate)
    assert take.ended_by == "stop" and take.sample_rate == nano.sample_rate == 16_000
    path = studio.store.audio_path(take.id)
    assert take.seed == 21, "the typed seed did not reach the take"
    assert_same_sound(path, alone(nano, text, 21))
    stored = wav_samples(path) / 32768
    assert 0 <= len(streamed) - len(stored) <= 0.2 * take.sample_rate
    late = int(np.argmax(np.correlate(streamed[: len(stored)], stored[: 8 * 1024], "valid")))
    assert late <= 2 * 1024, "the encoder's own delay is one frame, or two"
    both = np.corrcoef(streamed[late : late + len(stored) - late], stored[: len(stored) - late])[0, 1]
    assert both > 0.95


def test_stop_leaves_the_engine_free_for_the_next(studio: Studio, nano: VoxCPM) -> None:
    with chromium() as browser, opened(browser, studio.url) as page:
        write(page, "This is a long sentence that goes on and on, and then some more, until somebody stops it.")
        page.click("#vx-generate")
        wait_for_state(page, "speaking")
        page.click("#vx-stop")
        wait_for_state(page, "cancelled", "stop")
        stopped = studio.store.take(next_take(page, ""))
        assert stopped.ended_by == "cancelled" and stopped.seconds > 0
        take = speak(page, "After the stop.", seed=5)
    assert_same_sound(studio.store.audio_path(take), alone(nano, "After the stop.", 5))


def test_two_programs_at_once_hear_what_each_would_hear_alone(studio: Studio, nano: VoxCPM) -> None:
    wishes = {3: "The first one asks for this.", 4: "And the second one wants something longer, at the same time."}
    answers: dict[int, str] = {}

    def ask(seed: int, text: str) -> None:
        answers[seed] = Client(studio.url, verbose=False).predict(text=text, seed=seed, api_name="/tts")[0]

    threads = [threading.Thread(target=ask, args=wish) for wish in wishes.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    for seed, text in wishes.items():
        assert_same_sound(Path(answers[seed]), alone(nano, text, seed))

"""Voice Design on the embedded model: three takes made together are what each would be alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gradio_client import Client

from studio.loudness import match_gain
from studio.ui.picker_takes import target_of
from tests.browser import Studio, chromium, opened, running_studio, wav_samples
from tests.picker import design, facts, lane, takes, to_tab
from voxcpm_core import SpeechRequest, VoxCPM

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.flaky(reruns=1)]

CONTROL = "a woman with a low voice, speaking slowly"
TEXT = "The boat leaves at nine."


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory, torch_threads: int) -> Iterator[Studio]:
    def load(progress) -> VoxCPM:
        return VoxCPM.from_pretrained("nano", device="cpu", on_progress=progress)

    with running_studio(tmp_path_factory.mktemp("design-nano"), load=load) as studio:
        assert studio.synthesizer.wait(120).state == "ready"
        yield studio


def assert_same_sound(path: Path, expected: np.ndarray) -> None:
    heard = wav_samples(path) / 32768
    assert len(heard) == len(expected)
    np.testing.assert_allclose(heard, np.clip(expected, -1, 1), atol=2e-4)  # 1e-4 and the rounding to 16 bits


def alone(nano: VoxCPM, seed: int) -> np.ndarray:
    """The same request on a model that does nothing else: float32 [n]."""
    return nano.generate_batch([SpeechRequest(text=TEXT, control=CONTROL, seed=seed)])[0].samples


def test_three_takes_in_the_page_are_those_made_alone(studio: Studio, nano: VoxCPM) -> None:
    with chromium() as browser, opened(browser, studio.url) as page:
        to_tab(page)
        assert "only in part" in page.inner_text("#vx-design-note")
        design(page, TEXT, control=CONTROL, seed=40)
        made = takes(studio, page)
        gains = [float(gain) for gain in facts(page, "gain")]
        page.click(lane(2, ".vx-pick"))
        page.wait_for_selector("#vx-design-slot-2.is-picked")
    assert [record.seed for record in made] == [40, 41, 42] and {record.mode for record in made} == {"design"}
    assert len({record.audio_hash for record in made}) == 3, "two takes are the same"
    for record in made:
        assert_same_sound(studio.store.audio_path(record.id), alone(nano, record.seed))
    expected = [match_gain(record.loudness, record.peak, target_of(made)) for record in made]
    assert gains == pytest.approx(expected, abs=0.01)


def test_a_program_gets_the_same_takes(studio: Studio, nano: VoxCPM) -> None:
    made = Client(studio.url, verbose=False).predict(control=CONTROL, text=TEXT, takes=2, seed=40, api_name="/design")
    for take in made:
        assert_same_sound(Path(take["file"]), alone(nano, take["seed"]))
        assert take["ended_by"] in ("stop", "limit") and take["checks"]

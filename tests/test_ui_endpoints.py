"""The endpoints for programs; docs/endpoints.md tells the truth about them, and its examples run as they stand."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gradio_client import Client

from studio.export_takes import marked_wav
from tests.browser import SpiedModel, Studio, running_studio, wav_samples

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "endpoints.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (/\w+)\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M))


@pytest.fixture(scope="module")
def module_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running_studio(tmp_path_factory.mktemp("endpoints")) as studio:
        assert studio.synthesizer.wait(60).state == "ready"
        yield studio


@pytest.fixture
def studio(module_studio: Studio) -> Studio:
    """The module's studio with its model as it was made."""
    fresh = SpiedModel()
    for name in ("patch_delay", "lengths"):
        setattr(module_studio.model, name, getattr(fresh, name))
    return module_studio


@pytest.fixture(scope="module")
def client(module_studio: Studio) -> Client:
    return Client(module_studio.url, verbose=False)


def test_every_endpoint_is_described_with_all_its_parameters(client: Client) -> None:
    api = client.view_api(return_format="dict")["named_endpoints"]
    assert set(api) == set(SECTIONS), "an endpoint that the page does not know, or one that is gone"
    for name, endpoint in api.items():
        for parameter in endpoint["parameters"]:
            assert f"`{parameter['parameter_name']}`" in SECTIONS[name], (name, parameter["parameter_name"])
    assert "(docs/endpoints.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_examples_run(client: Client, studio: Studio, tmp_path: Path, monkeypatch, capsys) -> None:
    shutil.copy(ROOT / "tests" / "goldens" / "v2_48k" / "reference.wav", tmp_path / "voice.wav")
    monkeypatch.chdir(tmp_path)
    known: dict[str, object] = {"studio": client}
    for name, text in SECTIONS.items():
        (example,) = re.findall(r"```python\n(.*?)```", text, re.S)
        exec(compile(example, f"docs/endpoints.md {name}", "exec"), known)
    said = capsys.readouterr().out
    assert "Anna" in said and "True" in said and known["found"]["count"] > 0


def test_a_take_that_does_not_fit_is_tried_again_and_all_tries_are_told(client: Client, studio: Studio) -> None:
    studio.model.lengths = {70: 90, 71: 90, 80: 90, 81: 10}  # patches: far too many for these words, but for seed 81
    _, recipe = client.predict(text="Short text.", seed=70, api_name="/tts")
    assert recipe["seed"] == 72 and recipe["attempt"] == 2
    assert [tried["seed"] for tried in recipe["attempts"]] == [70, 71, 72]
    for tried in recipe["attempts"]:
        assert studio.store.take(tried["take_id"]).file_name, "a try was replaced"
    assert {check["verdict"] for check in recipe["attempts"][0]["checks"]} & {"fail"}
    _, recipe = client.predict(text="Short text.", seed=70, attempts=1, api_name="/tts")
    assert recipe["seed"] == 70 and len(recipe["attempts"]) == 1
    first, second = client.predict(control="calm", text="Short text.", takes=2, seed=80, api_name="/design")
    assert second["seed"] == 81 and len(second["attempts"]) == 1
    assert first["seed"] == 82 and [tried["seed"] for tried in first["attempts"]] == [80, 82]
    with pytest.raises(Exception, match="attempts is a whole number from 1 to 5, not 9"):
        client.predict(text="x", attempts=9, api_name="/tts")


def test_the_endpoint_returns_the_file_and_its_recipe(studio: Studio) -> None:
    client = Client(studio.url, verbose=False)
    audio, recipe = client.predict(
        text="From a program.", control="calm", seed=2**32 - 1, cfg_value=1.5, inference_timesteps=7, api_name="/tts"
    )
    assert recipe["seed"] == 2**32 - 1 and recipe["cfg_value"] == 1.5 and recipe["inference_timesteps"] == 7
    assert recipe["spoken_text"] == "From a program." and recipe["control"] == "calm" and recipe["ended_by"] == "stop"
    assert Path(audio).read_bytes() == marked_wav(studio.store, studio.store.take(recipe["id"]))
    _, second = client.predict("Only a text.", api_name="/tts")
    assert second["cfg_value"] == studio.model.defaults.cfg_value and 0 <= second["seed"] < 2**32
    api = client.view_api(return_format="dict")["named_endpoints"]
    assert [p["parameter_name"] for p in api["/tts"]["parameters"]] == [
        "text",
        "control",
        "seed",
        "cfg_value",
        "inference_timesteps",
        "normalize",
        "voice",
        "attempts",
    ]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"text": "x", "seed": 2**32}, "4294967295"),
        ({"text": "x", "seed": -1}, "not a seed"),
        ({"text": "  "}, "nothing to speak"),
        ({"text": "x", "inference_timesteps": 1}, "inference_timesteps"),
        ({"text": "x", "cfg_value": 99}, "cfg_value"),
    ],
)
def test_the_endpoint_refuses_with_a_sentence(studio: Studio, asked: dict, said: str) -> None:
    with pytest.raises(Exception, match=said):
        Client(studio.url, verbose=False).predict(**asked, api_name="/tts")


def test_two_programs_at_once_get_their_own_audio(studio: Studio) -> None:
    studio.model.patch_delay = 0.02
    answers: dict[int, tuple] = {}

    def ask(seed: int) -> None:
        client = Client(studio.url, verbose=False)
        answers[seed] = client.predict(text=f"Program number {seed} speaks.", seed=seed, api_name="/tts")

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in (11, 22)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for seed, (audio, recipe) in answers.items():
        assert recipe["seed"] == seed and f"number {seed}" in recipe["spoken_text"]
        expected = studio.model.tone(seed, recipe["patches"])
        np.testing.assert_allclose(wav_samples(Path(audio)) / 32768, expected, atol=1e-4)
    assert len(answers) == 2

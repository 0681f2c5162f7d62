"""`/check_reference` and `/clone`: what programs send, over a real server; the model speaks in sine waves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from gradio_client import Client, handle_file

from studio.export_takes import marked_wav
from tests import clips
from tests.browser import SpiedModel, Studio, running_studio
from voxcpm_core.audio import content_hash, load_audio, write_wav

WORDS = clips.TEXT


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    folder = tmp_path_factory.mktemp("cloning")
    for name, weights in (("anna", b"weights"), ("old", b"for VoxCPM1.5")):
        (folder / "adapters" / name).mkdir(parents=True)
        (folder / "adapters" / name / "lora_weights.safetensors").write_bytes(weights)
    with running_studio(folder, SpiedModel()) as studio:
        yield studio


@pytest.fixture(scope="module")
def client(studio: Studio) -> Client:
    return Client(studio.url, verbose=False)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clips") / "声音 样本 (1).wav"
    audio = clips.clip("clean")
    write_wav(path, audio.samples, audio.sample_rate)
    return path


def clone(client: Client, **changes: Any) -> list[dict[str, Any]]:
    fields = {"mode": "controllable", "text": "Words.", "takes": 1, "seed": 5, "consent": True, **changes}
    return client.predict(**fields, api_name="/clone")


def test_a_clip_is_judged_line_by_line(client: Client, clip: Path, tmp_path: Path) -> None:
    found = client.predict(audio=handle_file(clip), transcript=WORDS, api_name="/check_reference")
    assert all(set(line) == {"name", "value", "verdict", "advice"} for line in found)
    verdicts = {line["name"]: line["verdict"] for line in found}
    assert verdicts["length"] == verdicts["noise"] == verdicts["transcript"] == "ok"
    found = client.predict(audio=handle_file(clip), transcript="123", api_name="/check_reference")
    assert {line["name"]: line["verdict"] for line in found}["transcript"] == "fail"
    fake = tmp_path / "fake.wav"
    fake.write_text("no sound")
    (line,) = client.predict(audio=handle_file(fake), api_name="/check_reference")
    assert (line["name"], line["verdict"]) == ("usable", "fail") and line["advice"]


def test_both_modes_clone_from_an_upload(studio: Studio, client: Client, clip: Path) -> None:
    expected = content_hash(load_audio(clip))
    (take,) = clone(client, audio=handle_file(clip), control="slowly", transcript=WORDS)
    record = studio.store.take(take["take_id"])
    assert (record.reference_hash, record.prompt_hash, record.control) == (expected, "", "slowly")
    assert studio.model.requests[-1].prompt_text is None, "controllable cloning sends no words"
    assert Path(take["file"]).read_bytes() == marked_wav(studio.store, record)
    assert any("Consent" in note for note in record.notes)
    takes = clone(client, mode="ultimate", audio=handle_file(clip), transcript=WORDS, takes=2, both=True)
    assert [take["seed"] for take in takes] == [5, 6]
    request = studio.model.requests[-1]
    assert request.prompt_text == WORDS and content_hash(request.reference_wav_path) == expected


def test_a_saved_voice_speaks_with_its_own_words(studio: Studio, client: Client) -> None:
    voice = studio.synthesizer.voices.save_clip(
        clips.clip("clean"), "Anna", "local", transcript="Her words.", consent=True
    )
    (take,) = clone(client, mode="ultimate", voice=voice.id, transcript="Other words.", consent=False)
    assert studio.model.requests[-1].prompt_text == "Her words."
    assert studio.store.take(take["take_id"]).voice == voice.id
    unasked = studio.synthesizer.voices.save_clip(clips.clip("clean"), "Unasked", "local")
    with pytest.raises(Exception, match="without consent"):
        clone(client, voice=unasked.id, consent=False)


def test_an_adapter_speaks_alone_or_with_a_clip(studio: Studio, client: Client, clip: Path) -> None:
    assert client.predict(api_name="/adapters") == ["anna", "old"]
    (take,) = clone(client, adapter="anna", control="slowly")
    record = studio.store.take(take["take_id"])
    assert (record.lora_name, record.lora_strength, record.mode) == ("anna", 1.0, "design")
    (take,) = clone(client, adapter="anna", adapter_strength=0.5, audio=handle_file(clip))
    record = studio.store.take(take["take_id"])
    assert (record.lora_name, record.lora_strength, record.mode) == ("anna", 0.5, "reference")
    (take,) = clone(client, audio=handle_file(clip))
    assert studio.store.take(take["take_id"]).lora_name == "" and studio.model.requests[-1].lora is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"mode": "other"}, "mode is controllable or ultimate, not other"),
        ({"mode": 5}, "mode is"),
        ({"text": " "}, "nothing to speak"),
        ({"audio": None}, "either a clip"),
        ({"voice": "voice-0123456789abcdef"}, "either a clip"),
        ({"audio": None, "voice": "../../etc/passwd"}, "no voice"),
        ({"consent": False}, "without consent"),
        ({"consent": "yes"}, "consent is true or false"),
        ({"mode": "ultimate"}, "exact words"),
        ({"mode": "ultimate", "transcript": "123"}, "belong to another clip"),
        ({"mode": "ultimate", "transcript": WORDS, "control": "slowly"}, "takes no control text"),
        ({"takes": 4}, "takes is 1, 2 or 3, not 4"),
        ({"seed": 2**32}, "4294967295"),
        ({"cfg_value": 9}, "cfg_value is 1 to 5, not 9"),
        ({"inference_timesteps": 1}, "inference_timesteps"),
        ({"both": "no"}, "both is true or false"),
        ({"adapter": "../anna"}, "no adapter"),
        ({"adapter": "old"}, "“old” was made for VoxCPM1.5 and does not fit VoxCPM2"),
        ({"adapter": 5}, "the name of an adapter"),
        ({"adapter": "anna", "adapter_strength": 9}, "strength of an adapter"),
        ({"audio": None, "adapter": "anna", "adapter_strength": 0}, "either a clip"),
    ],
)
def test_wrong_values_are_refused_with_a_sentence(
    studio: Studio, client: Client, clip: Path, wrong: dict[str, Any], said: str
) -> None:
    count = studio.store.count()
    with pytest.raises(Exception, match=said):
        clone(client, **{"audio": handle_file(clip), **wrong})
    assert studio.store.count() == count


def test_what_is_no_recording_is_refused(studio: Studio, client: Client, tmp_path: Path) -> None:
    silent, fake = tmp_path / "silent.wav", tmp_path / "fake.mp3"
    write_wav(silent, np.zeros(48_000, np.float32), 16_000)
    fake.write_bytes(b"\0" * 4000)
    count = studio.store.count()
    for path in (silent, fake):
        with pytest.raises(Exception) as refused:
            clone(client, audio=handle_file(path))
        assert "Traceback" not in str(refused.value)
    assert studio.store.count() == count


def answered(studio: Studio, endpoint: str, audio: Any) -> str:
    """What the server sends for a call that no client has prepared: "" when it takes none."""
    values = [audio, ""]
    if endpoint == "clone":
        values = ["controllable", "Words.", audio, "", "", "", 1, 5, None, None, True, False, "", 1.0]
    base = f"{studio.url.rstrip('/')}/gradio_api/call/{endpoint}"
    answer = httpx.post(base, json={"data": values}, timeout=60)
    if answer.status_code != 200:
        return ""
    with httpx.stream("GET", f"{base}/{answer.json()['event_id']}", timeout=60) as events:
        return events.read().decode()


@pytest.mark.parametrize("endpoint", ["check_reference", "clone"])
def test_a_path_of_the_server_is_not_read(studio: Studio, tmp_path: Path, clip: Path, endpoint: str) -> None:
    secret = tmp_path / "secret.wav"
    secret.write_bytes(clip.read_bytes())
    sent = {"path": str(secret), "orig_name": "a.wav"}
    file_data = {**sent, "meta": {"_type": "gradio.FileData"}}
    count = studio.store.count()
    for audio in (file_data, sent, str(secret), {**file_data, "url": f"file://{secret}"}):
        assert "event: complete" not in answered(studio, endpoint, audio)
    assert studio.store.count() == count
    with secret.open("rb") as file:
        (uploaded,) = httpx.post(f"{studio.url.rstrip('/')}/gradio_api/upload", files={"files": file}).json()
    assert "event: complete" in answered(studio, endpoint, {**file_data, "path": uploaded}), "the call itself is right"


def test_visitors_use_their_own_voices_only(tmp_path: Path) -> None:
    with running_studio(tmp_path, SpiedModel(), shared=True) as studio:
        voice = studio.synthesizer.voices.save_clip(clips.clip("clean"), "Private", "a" * 64, consent=True)
        with pytest.raises(Exception, match="no voice"):
            clone(Client(studio.url, verbose=False), voice=voice.id)


def test_the_endpoints_are_documented(client: Client) -> None:
    endpoints = client.view_api(return_format="dict")["named_endpoints"]
    names = [parameter["parameter_name"] for parameter in endpoints["/clone"]["parameters"]]
    assert names == [
        *("mode", "text", "audio", "voice", "transcript", "control", "takes", "seed", "cfg_value"),
        *("inference_timesteps", "consent", "both", "adapter", "adapter_strength"),
    ]
    names = [parameter["parameter_name"] for parameter in endpoints["/check_reference"]["parameters"]]
    assert names == ["audio", "transcript"]

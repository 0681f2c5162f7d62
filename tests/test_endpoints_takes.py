"""Programs: `/save_voice`, `/voices`, `/history` and `/replay` through gradio_client, and what strangers get to see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from gradio_client import Client

from app import is_shared, parse_arguments
from studio.export_takes import marked_wav
from tests.browser import Studio, running_studio

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running_studio(tmp_path_factory.mktemp("studio")) as studio:
        assert studio.synthesizer.wait(20).state == "ready"
        yield studio


@pytest.fixture(scope="module")
def client(studio: Studio) -> Client:
    return Client(studio.url, verbose=False)


def test_a_take_becomes_a_voice_that_speaks_and_is_replayed(studio: Studio, client: Client) -> None:
    _, source = client.predict(text="This is my voice.", seed=4, api_name="/tts")
    voice = client.predict(take_id=source["id"], name="Anna", api_name="/save_voice")
    assert voice["name"] == "Anna" and voice["transcript"] == "This is my voice." and voice["seed"] == 4
    assert "session" not in voice and "file_name" not in voice
    assert [known["id"] for known in client.predict(api_name="/voices")] == [voice["id"]]
    _, recipe = client.predict(text="And it says this.", voice=voice["id"], seed=5, api_name="/tts")
    assert (recipe["voice"], recipe["mode"]) == (voice["id"], "reference")
    result, audio = client.predict(take_id=recipe["id"], api_name="/replay")
    assert result["identical"] is True and result["reasons"] == []
    assert Path(audio).read_bytes() == marked_wav(studio.store, studio.store.take(result["take_id"]))
    assert studio.store.take(result["take_id"]).replay_of == recipe["id"]
    studio.store.clips.path(recipe["reference_hash"]).unlink()
    before = studio.store.count()
    result, audio = client.predict(take_id=recipe["id"], api_name="/replay")
    assert result["identical"] is None and audio is None and studio.store.count() == before
    assert [(reason["what"], reason["state"]) for reason in result["reasons"]] == [("reference", "missing")]


def test_what_has_changed_is_told_and_made_when_asked(studio: Studio, client: Client) -> None:
    _, recipe = client.predict(text="On this device.", seed=8, api_name="/tts")
    studio.model.device = "elsewhere"
    try:
        result, audio = client.predict(take_id=recipe["id"], api_name="/replay")
        assert (result["identical"], audio) == (None, None) and "now it is elsewhere" in result["reasons"][0][
            "sentence"
        ]
        result, audio = client.predict(take_id=recipe["id"], anyway=True, api_name="/replay")
        assert result["identical"] is True and len(result["reasons"]) == 1 and audio
    finally:
        studio.model.device = "cpu"


def test_history_lists_counts_and_pages(client: Client) -> None:
    for number in range(3):
        client.predict(text=f"Zebra number {number}.", api_name="/tts")
    found = client.predict(query="zebra", limit=2, api_name="/history")
    assert found["count"] == 3 and [take["spoken_text"][-2] for take in found["takes"]] == ["2", "1"]
    last = client.predict(query="zebra", limit=2, offset=2, api_name="/history")
    assert [take["spoken_text"] for take in last["takes"]] == ["Zebra number 0."]
    assert {"rating", "starred", "note", "seed"} <= set(last["takes"][0]) and "session" not in last["takes"][0]


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("/save_voice", {"take_id": "20200101-000000-0123456789abcdef", "name": "Bert"}, "There is no take"),
        ("/save_voice", {"take_id": 5, "name": "Bert"}, "take_id is the id of a take, not 5"),
        ("/save_voice", {"take_id": "x", "name": ["Bert"]}, "name is a text"),
        ("/history", {"limit": 0}, "limit is a whole number from 1 to 1000, not 0"),
        ("/history", {"limit": 1.5}, "limit is a whole number"),
        ("/history", {"query": 7}, "query is a text, not 7"),
        ("/history", {"offset": -1}, "offset is a whole number"),
        ("/replay", {"take_id": "../../etc/passwd"}, "There is no take"),
        ("/tts", {"text": "x", "voice": "voice-0123456789abcdef"}, "There is no voice"),
        ("/tts", {"text": "x", "voice": ["x"]}, "voice is the id of a voice"),
    ],
)
def test_a_wrong_value_is_a_sentence(client: Client, name: str, asked: dict, said: str) -> None:
    with pytest.raises(Exception, match=said):
        client.predict(**asked, api_name=name)


def test_the_endpoints_are_documented(client: Client) -> None:
    api = client.view_api(return_format="dict")["named_endpoints"]
    names = {name: [p["parameter_name"] for p in api[name]["parameters"]] for name in api}
    assert names["/save_voice"] == ["take_id", "name"] and names["/voices"] == []
    assert names["/history"] == ["query", "limit", "offset"] and names["/replay"] == ["take_id", "anyway"]


@pytest.mark.parametrize(
    ("arguments", "space", "apart"),
    [
        ([], "", False),
        (["--multi-user"], "", True),
        (["--host", "0.0.0.0"], "", True),
        ([], "somebody/studio", True),
    ],
)
def test_who_is_kept_apart(arguments: list[str], space: str, apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACE_ID", space)
    monkeypatch.delenv("GRADIO_SERVER_NAME", raising=False)
    assert is_shared(parse_arguments(arguments)) is apart


def test_in_company_a_program_sees_its_own_only(tmp_path: Path) -> None:
    with running_studio(tmp_path, shared=True) as studio:
        studio.synthesizer.wait(20)
        one, two = Client(studio.url, verbose=False), Client(studio.url, verbose=False)
        audio, recipe = one.predict(text="A secret.", api_name="/tts")
        voice = one.predict(take_id=recipe["id"], name="Mine", api_name="/save_voice")
        assert one.predict(api_name="/history")["count"] == 1 and len(one.predict(api_name="/voices")) == 1
        assert two.predict(api_name="/history") == {"count": 0, "takes": []} and two.predict(api_name="/voices") == []
        for name, asked in (
            ("/replay", {"take_id": recipe["id"]}),
            ("/save_voice", {"take_id": recipe["id"], "name": "Stolen"}),
            ("/tts", {"text": "x", "voice": voice["id"]}),
        ):
            with pytest.raises(Exception, match="There is no"):
                two.predict(**asked, api_name=name)
        folder = studio.store.data_dir
        guesses = [
            f"studio/take/{recipe['id']}/{'0' * 32}/sound",
            f"studio/take/{recipe['id']}/{'0' * 32}/recipe",
            f"studio/voice/{voice['id']}/{'0' * 32}/sound",
            f"studio/parcel/{recipe['id']}",
            *(f"gradio_api/file={quote(str(path))}" for path in folder.rglob("*") if path.is_file()),
            f"gradio_api/file={quote(str(folder / 'takes' / '..' / 'studio.sqlite3'))}",
            f"file={quote(str(studio.store.audio_path(recipe['id'])))}",
        ]
        for guess in guesses:
            assert httpx.get(studio.url + guess).status_code in (403, 404), guess
        assert Path(audio).is_file()
        stranger = httpx.get(studio.url, headers={"Host": "attacker.example"})
        assert stranger.status_code == 403, "the page on 127.0.0.1 answers to its own names only, for one or for many"

"""Adapters in the studio: found by name, chosen in a form, told in every recipe, found again for a replay."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import main, parse_arguments
from studio.adapters import AdapterShelf
from studio.events import Replayed
from studio.store import Store, StoreError
from studio.synthesizer import Synthesizer
from studio.ui.adapter_panel import AdapterHandlers, adapter_fields
from studio.ui.context import Context
from studio.ui.media import Media
from studio.ui.settings import SettingError
from tests.fakes import SineModel, SpeechRequest
from tests.picker import asking
from tests.records import ready, takes_of
from voxcpm_core import LoRAError, VoxCPM


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture
def synthesizer(store: Store) -> Iterator[Synthesizer]:
    started = ready(store, SineModel())
    yield started
    started.close()


@pytest.fixture
def context(synthesizer: Synthesizer) -> Context:
    return Context(synthesizer, synthesizer.store, Media(synthesizer.store, synthesizer.voices))


def put(folder: Path, name: str, weights: bytes = b"anna's weights") -> Path:
    """An adapter as the double understands it."""
    (folder / name).mkdir(parents=True)
    (folder / name / "lora_weights.safetensors").write_bytes(weights)
    return folder / name


def replayed(synthesizer: Synthesizer, take_id: str) -> Replayed:
    *_, last = synthesizer.replay(take_id)
    return last


# ---- the shelf


def test_adapters_are_listed_by_the_names_of_their_folders(tmp_path: Path) -> None:
    mine, given = tmp_path / "data", tmp_path / "given"
    anna = put(mine, "anna")
    put(given, "anna", b"another anna")
    ben, started = put(given, "Ben"), put(tmp_path, "started")
    (mine / "empty").mkdir()
    (mine / "notes.txt").write_text("x")
    shelf = AdapterShelf(mine, given, tmp_path / "nowhere", started=started / "lora_weights.safetensors")
    assert shelf.names() == ["anna", "Ben", "started"] and shelf.started == "started"
    assert (shelf.path("anna"), shelf.path("Ben")) == (anna, ben)
    shutil.rmtree(ben)
    assert shelf.names() == ["anna", "started"]
    for name in ("Ben", "../given/Ben", str(anna), "", "anna/..", "x" * 300):
        with pytest.raises(StoreError, match="There is no adapter"):
            shelf.path(name)


def test_an_adapter_is_found_by_its_content(tmp_path: Path) -> None:
    anna, shelf = put(tmp_path, "anna"), AdapterShelf(tmp_path)
    digest = SineModel().lora_of(SpeechRequest("", lora=str(anna)))["hash"]
    assert shelf.find("anna", digest) == anna
    anna.rename(tmp_path / "renamed")
    assert shelf.find("anna", digest) == tmp_path / "renamed"
    (tmp_path / "renamed" / "lora_weights.safetensors").write_bytes(b"trained on")
    assert shelf.find("renamed", digest) is None and shelf.find("", "") is None


def test_the_program_takes_a_folder_of_adapters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("app.why_not_listening", lambda host, port: "")
    monkeypatch.setattr("studio.synthesizer.Synthesizer", lambda *a, adapters, **_: asked.append(adapters) or exit_())

    def exit_() -> None:
        raise SystemExit

    put(tmp_path / "given", "anna")
    with pytest.raises(SystemExit):
        main(["--data-dir", str(tmp_path / "data"), "--adapters", str(tmp_path / "given"), "--lora", "ben"])
    assert asked[0].started == "ben" and {"anna", "ben"} == set(asked[0].names())
    assert parse_arguments([]).adapters is None


# ---- recipes and replay


def test_recipes_tell_the_adapter_and_a_replay_speaks_with_it(synthesizer: Synthesizer, store: Store) -> None:
    model = synthesizer._ready_model()
    put(store.data_dir / "adapters", "anna")
    shelf = synthesizer.adapters
    wish = SpeechRequest("Hello", seed=7, **shelf.request_fields("anna", 0.8))
    [plain] = takes_of(synthesizer.speak(SpeechRequest("Hello", seed=7)))
    [take] = takes_of(synthesizer.speak(wish))
    assert (plain.lora_name, plain.lora_hash) == ("", "")
    assert (take.lora_name, take.lora_strength) == ("anna", 0.8) and len(take.lora_hash) == 16
    assert store.take(take.id) == take
    model.lora = {"path": "/adapters/ben", "hash": "b" * 16, "enabled": True}  # put on meanwhile, with --lora
    for original, lora in ((take, wish.lora), (plain, "")):
        assert synthesizer.replay_reasons(original.id) == ()
        result = replayed(synthesizer, original.id)
        assert result.identical and model.requests[-1].lora == lora
        kept = ("lora_name", "lora_hash", "lora_strength")
        assert [getattr(result.record, name) for name in kept] == [getattr(original, name) for name in kept]


def test_a_replay_names_an_adapter_that_is_gone_or_was_trained_on(synthesizer: Synthesizer, store: Store) -> None:
    anna = put(store.data_dir / "adapters", "anna")
    [take] = takes_of(synthesizer.speak(SpeechRequest("Hello", **synthesizer.adapters.request_fields("anna"))))
    (anna / "lora_weights.safetensors").write_bytes(b"trained on")
    [reason] = synthesizer.replay_reasons(take.id)
    assert reason.what == "lora" and f"was anna ({take.lora_hash[:8]}), now it is none" in reason.sentence
    shutil.rmtree(anna)
    assert [reason.what for reason in synthesizer.replay_reasons(take.id)] == ["lora"]


def test_with_the_model_itself(store: Store, v2_48k, v15_44k, torch_threads: int) -> None:
    """Recipe and audio: what is chosen is heard, the base model is as before, another generation's is refused."""
    shutil.copytree(v2_48k.lora, store.data_dir / "adapters" / "anna")
    shutil.copytree(v15_44k.lora, store.data_dir / "adapters" / "old")
    synthesizer = ready(store, VoxCPM.from_pretrained(v2_48k.path, device="cpu"))
    try:
        wish = {"text": "hello world", "seed": 7, "max_len": 3, "min_len": 50}
        shelf = synthesizer.adapters
        chosen = ({}, shelf.request_fields("anna"), shelf.request_fields("anna", 0.5), {"lora": ""})
        takes = [takes_of(synthesizer.speak(SpeechRequest(**wish, **fields)))[0] for fields in chosen]
        base, full, half, none = (take.audio_hash for take in takes)
        assert base == none and len({base, full, half}) == 3
        assert [take.lora_strength for take in takes] == [1.0, 1.0, 0.5, 1.0]
        assert replayed(synthesizer, takes[2].id).identical
        with pytest.raises(LoRAError, match="“old” was made for v15_44k and does not fit VoxCPM2"):
            synthesizer.refuse_unfit("old")
    finally:
        synthesizer.close()


# ---- the panel


def test_a_form_asks_for_the_chosen_adapter(context: Context) -> None:
    shelf = context.synthesizer.adapters
    anna = put(shelf.folders[0], "anna")
    put(shelf.folders[0], "old", b"for VoxCPM1.5")
    assert adapter_fields(context, "anna", 0.5, True) == {"lora": str(anna), "lora_strength": 0.5}
    for off in (("", 1.0, True), (None, 1.0, True), ("anna", 0.0, True), ("anna", 1.0, False)):
        assert adapter_fields(context, *off) == {"lora": ""}, off
    with pytest.raises(LoRAError, match="“old” was made for VoxCPM1.5 and does not fit VoxCPM2"):
        adapter_fields(context, "old", 1.0, True)
    with pytest.raises(StoreError, match="There is no adapter"):
        adapter_fields(context, "../anna", 1.0, True)
    for wrong in ("much", 3.0, float("nan")):
        with pytest.raises(SettingError, match="strength of an adapter"):
            adapter_fields(context, "anna", wrong, True)


def test_the_panel_lists_what_is_there_and_says_what_does_not_fit(context: Context) -> None:
    shelf, handlers = context.synthesizer.adapters, AdapterHandlers(context)
    chooser, title, note = handlers.first(asking())
    assert chooser["choices"] == [("None: the model as it is", "")] and str(shelf.folders[0]) in note
    put(shelf.folders[0], "anna")
    put(shelf.folders[0], "old", b"for VoxCPM1.5")
    chooser, title, note = handlers.listed("anna", 0.8, True, asking())
    assert [value for _, value in chooser["choices"]] == ["", "anna", "old"] and chooser["value"] == "anna"
    assert title["label"] == "Adapter (LoRA) · anna · 80 %" and "It fits" in note
    assert handlers.changed("anna", 0.8, False, asking())[0]["label"] == "Adapter (LoRA)"
    assert "is-error" in handlers.changed("old", 1.0, True, asking())[1]
    assert handlers.listed("gone", 1.0, True, asking())[0]["value"] == ""


def test_strangers_are_not_told_where_the_adapters_lie(synthesizer: Synthesizer) -> None:
    media = Media(synthesizer.store, synthesizer.voices)
    note = AdapterHandlers(Context(synthesizer, synthesizer.store, media, shared=True)).first(asking())[2]
    assert str(synthesizer.store.data_dir) not in note and "can add some" in note

"""What is kept of a voice beside it spares work and changes no sample; a cache that is gone or wrong does no harm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from studio.store import Store
from studio.voice_cache import VoiceCache
from studio.voices import Voice, VoiceLibrary
from tests.conftest import Golden
from tests.records import ready, takes_of
from voxcpm_core import Audio, SpeechRequest, VoxCPM
from voxcpm_core.audio import load_audio

WISH = SpeechRequest("hello", seed=3, max_len=3, inference_timesteps=2)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture
def voice(store: Store, v2_48k: Golden) -> Voice:
    return VoiceLibrary(store).save_clip(load_audio(v2_48k.reference), "Anna", "local")


def loaded(golden: Golden) -> VoxCPM:
    return VoxCPM.from_pretrained(golden.path, device="cpu")


def speak(store: Store, golden: Golden, voice: Voice, adapter: Path | None = None) -> tuple[str, int]:
    """A take in a program that has just started: the hash of its audio, and how often the clip was encoded."""
    model, encoded = loaded(golden), []
    if adapter:
        model.load_lora(adapter)
    encode = model._engine.audio_vae.encode
    model._engine.audio_vae.encode = lambda samples: encoded.append(1) or encode(samples)
    synthesizer = ready(store, model)
    [take] = takes_of(synthesizer.speak(WISH, voice_id=voice.id))
    assert take.ended_by in ("limit", "stop"), take.message
    synthesizer.close()
    return take.audio_hash, len(encoded)


def cached(store: Store) -> list[Path]:
    return sorted((store.data_dir / "voices" / "cache").glob("*"))


def test_the_cache_spares_the_encoder_and_changes_nothing(store: Store, v2_48k: Golden, voice: Voice) -> None:
    first, encoded = speak(store, v2_48k, voice)
    assert encoded == 1
    [path] = cached(store)
    model = loaded(v2_48k)
    assert path.name == f"{voice.id}-{model.weights_hash}-cpu-float32.safetensors"
    model.close()
    written = path.read_bytes()
    assert speak(store, v2_48k, voice) == (first, 0)
    assert path.read_bytes() == written
    path.unlink()
    assert speak(store, v2_48k, voice) == (first, 1)
    assert cached(store) == [path]


def test_the_voice_part_is_in_it_and_is_used(store: Store, v2_48k: Golden, voice: Voice) -> None:
    speak(store, v2_48k, voice)
    [path] = cached(store)
    state = load_file(path)
    model, reference = loaded(v2_48k), VoiceLibrary(store).audio(voice.id)
    layers = 2 * (model.model.config.lm.num_layers + model.model.config.residual_lm.num_layers)
    assert len(state) == 1 + layers
    assert state["base.0.keys"].shape[2] == state["latents"].shape[0] + 2
    read = []
    prefill = model.model.prefill_voice
    model._engine.model.prefill_voice = lambda sequence: read.append(1) or prefill(sequence)
    assert model.use_voice_state(reference, state)
    take = model.speak(SpeechRequest("hello", reference_wav_path=reference, seed=3, max_len=3, inference_timesteps=2))
    assert read == [] and take.patches == 3
    model.close()


def damaged(path: Path, how: str) -> None:
    state, facts = load_file(path), {}
    with safe_open(path, framework="pt") as file:
        facts = file.metadata()
    if how == "cut off":
        path.write_bytes(path.read_bytes()[:-100])
        return
    if how == "not a tensor file":
        path.write_bytes(b"hello")
        return
    if how == "other version":
        facts["versions"] = "{}"
    elif how == "other sound":
        facts["audio"] = "0" * 64
    elif how == "other length":
        state["latents"] = state["latents"][:-1].clone()
    elif how == "not finite":
        state["latents"][0, 0, 0] = torch.nan
    elif how == "other dtype":
        state["latents"] = state["latents"].double()
    elif how == "no latents":
        del state["latents"]
    save_file(state, path, metadata=facts)


@pytest.mark.parametrize(
    "how",
    ["cut off", "not a tensor file", "other version", "other sound", "other length", "not finite", "other dtype",
     "no latents"],
)  # fmt: skip
def test_a_cache_that_does_not_fit_is_made_anew(store: Store, v2_48k: Golden, voice: Voice, how: str) -> None:
    first, _ = speak(store, v2_48k, voice)
    [path] = cached(store)
    whole = {name: tensor.clone() for name, tensor in load_file(path).items()}  # the file itself is about to change
    damaged(path, how)
    assert speak(store, v2_48k, voice) == (first, 1)
    again = load_file(path)
    assert again.keys() == whole.keys() and all(torch.equal(again[name], whole[name]) for name in whole)


def test_layers_that_do_not_fit_cost_the_voice_part_only(store: Store, v2_48k: Golden, voice: Voice) -> None:
    first, _ = speak(store, v2_48k, voice)
    [path] = cached(store)
    state = load_file(path)
    with safe_open(path, framework="pt") as file:
        facts = file.metadata()
    state["residual.0.values"] = state["residual.0.values"][:, :, 1:].clone()
    save_file(state, path, metadata=facts)
    assert speak(store, v2_48k, voice) == (first, 0)


def test_a_voice_part_of_the_base_model_is_not_used_under_an_adapter(store, v2_48k: Golden, voice: Voice) -> None:
    without, _ = speak(store, v2_48k, voice)
    with_adapter, encoded = speak(store, v2_48k, voice, v2_48k.lora)
    assert encoded == 0 and with_adapter != without  # the clip's latents are the same for both
    cached(store)[0].unlink()
    assert speak(store, v2_48k, voice, v2_48k.lora) == (with_adapter, 1)
    assert set(load_file(cached(store)[0])) == {"latents"}
    assert speak(store, v2_48k, voice) == (without, 0)


def test_a_state_is_not_kept_for_a_voice_that_was_never_heard(store: Store, v2_48k: Golden, voice: Voice) -> None:
    model = loaded(v2_48k)
    reference = VoiceLibrary(store).audio(voice.id)
    assert model.voice_state(reference) == {}
    assert not model.use_voice_state(reference, {})
    cache = VoiceCache(store.data_dir / "voices" / "cache")
    cache.keep(model, voice, reference)
    assert cached(store) == []
    model.close()


def test_another_clip_beside_a_voice_is_not_taken_for_it(store: Store, v2_48k: Golden, voice: Voice) -> None:
    """The voice is continued, the timbre is that of a clip: what the model read of the clip is not the voice's."""
    known = VoiceLibrary(store).save_clip(load_audio(v2_48k.prompt), "Ben", "local", transcript="hello")
    model = loaded(v2_48k)
    synthesizer = ready(store, model)
    wish = SpeechRequest("hello", reference_wav_path=v2_48k.reference, seed=3, max_len=3, inference_timesteps=2)
    takes_of(synthesizer.speak(wish, voice_id=known.id, voice_as="prompt"))
    assert cached(store) == []
    synthesizer.close()


def test_a_folder_that_cannot_be_written_costs_nothing(store, v2_48k: Golden, voice: Voice) -> None:
    (store.data_dir / "voices" / "cache").write_text("a file where the folder should be")
    assert speak(store, v2_48k, voice)[1] == 1


def test_the_state_of_another_clip_is_refused(store: Store, v2_48k: Golden, voice: Voice) -> None:
    speak(store, v2_48k, voice)
    state, model = load_file(cached(store)[0]), loaded(v2_48k)
    longer = Audio(np.resize(VoiceLibrary(store).audio(voice.id).samples, 48_000), 16_000)
    assert not model.use_voice_state(longer, state)
    model.close()

"""A take made again is the same, or what is missing or changed is named before anything is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studio.events import Chunk, Finished, Replayed, Started
from studio.replay import can_replay
from studio.store import Store, StoreError
from studio.synthesizer import Synthesizer
from studio.takes import TakeRecord, library_versions
from tests.fakes import SineModel, SpeechRequest
from tests.records import ready, takes_of
from voxcpm_core import Audio
from voxcpm_core.audio import content_hash, write_wav

CLIP = Audio((0.2 * np.sin(np.arange(32_000) / 9)).astype(np.float32), 16_000)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture
def studio(store: Store) -> Iterator[Callable[..., Synthesizer]]:
    opened = []

    def start(model: SineModel | None = None) -> Synthesizer:
        opened.append(ready(store, model or SineModel()))
        return opened[-1]

    yield start
    for synthesizer in opened:
        synthesizer.close()


def replayed(synthesizer: Synthesizer, take_id: str, session: str = "local") -> Replayed:
    event = list(synthesizer.replay(take_id, session))[-1]
    assert isinstance(event, Replayed)
    return event


def rewrite(store: Store, record: TakeRecord, **changes: object) -> None:
    """The take as if it had been made in another world."""
    import json

    recipe = json.dumps(replace(record, **changes).recipe())
    store.database.execute("UPDATE takes SET recipe = ? WHERE id = ?", (recipe, record.id))


REQUESTS = {
    "plain": SpeechRequest("Hello", seed=7),
    "normalised": SpeechRequest("It was 1996,  in **May**.", seed=8, normalize=True),
    "design": SpeechRequest("(1996) was warm.", control="slow (very), calm", cfg_value=1.5, temperature=0.9),
    "reference": SpeechRequest("Hello", reference_wav_path=CLIP, control="calm", inference_timesteps=4),
    "continuation": SpeechRequest("Hello", prompt_wav_path=CLIP, prompt_text="Words  heard", min_len=3),
    "both": SpeechRequest("Hello", reference_wav_path=CLIP, prompt_wav_path=CLIP, prompt_text="Words heard"),
    "limit": SpeechRequest("forever", max_len=4, patches_per_token=9.5),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_take_is_made_again_from_its_recipe(studio, store: Store, request_: SpeechRequest) -> None:
    model = SineModel()
    synthesizer = studio(model)
    [original] = takes_of(synthesizer.speak(request_, tab="design"))
    assert synthesizer.replay_reasons(original.id) == ()
    result = replayed(synthesizer, original.id)
    assert result.identical and result.difference == 0.0 and result.reasons == ()
    assert result.original == original and result.record == store.take(result.record.id)
    new = ("id", "created", "generation_seconds", "first_audio_seconds", "file_name", "file_hash", "group", "replay_of")
    assert replace(result.record, **{name: getattr(original, name) for name in new}) == original
    assert (result.record.replay_of, result.record.file_hash) == (original.id, original.file_hash)
    first, again = model.requests
    assert replace(again, **{name: getattr(first, name) for name in ("seed", *unset(first))}) == replace(
        first, reference_wav_path=again.reference_wav_path, prompt_wav_path=again.prompt_wav_path
    )
    for name in ("reference_wav_path", "prompt_wav_path"):
        one, other = getattr(first, name), getattr(again, name)
        assert (one is None) == (other is None) and (one is None or content_hash(one) == content_hash(other))


def unset(request: SpeechRequest) -> list[str]:
    """What was left to the model is told outright the second time."""
    return [name for name in ("cfg_value", "inference_timesteps", "temperature") if getattr(request, name) is None]


def test_a_replay_can_be_replayed(studio) -> None:
    synthesizer = studio()
    [original] = takes_of(synthesizer.speak(REQUESTS["reference"]))
    again = replayed(synthesizer, replayed(synthesizer, original.id).record.id)
    assert again.identical and again.record.file_hash == original.file_hash


def test_a_take_that_was_stopped_is_made_to_the_same_length(studio, store: Store) -> None:
    synthesizer = studio(SineModel(patch_delay=0.02))
    events = synthesizer.speak(SpeechRequest("forever", seed=7))
    job = next(events).job_id
    for event in events:
        if isinstance(event, Chunk):
            synthesizer.stop(job)
    original = event.record
    assert original.ended_by == "cancelled" and original.patches
    assert replayed(synthesizer, original.id).identical


def test_a_take_made_beside_others_is_made_beside_them_again(studio, store: Store) -> None:
    model = SineModel(lengths={1: 3, 2: 5, 3: 30})
    synthesizer = studio(model)
    takes = takes_of(synthesizer.speak(SpeechRequest("Hello"), seeds=[1, 2, 3]))
    assert {take.batch for take in takes} == {(1, 2, 3)} and len({take.group for take in takes}) == 1
    before = store.count()
    for take in takes:
        events = list(synthesizer.replay(take.id))
        assert isinstance(events[0], Started) and events[0].seeds == (1, 2, 3)
        assert {event.row for event in events if isinstance(event, Chunk | Finished)} == {take.seed - 1}
        assert events[-1].identical and events[-1].record.batch == (1, 2, 3)
        assert sum(isinstance(event, Finished) for event in events) == 1
    assert store.count() == before + 3  # company is not kept
    assert not synthesizer._jobs


def test_company_stops_when_the_take_is_there(studio) -> None:
    synthesizer = studio(SineModel(patch_delay=0.01, lengths={1: 3, 2: 200}))
    takes = takes_of(synthesizer.speak(SpeechRequest("Hello", max_len=20), seeds=[1, 2]))
    events = synthesizer.replay(takes[0].id)
    next(events)
    [generation] = synthesizer._jobs.values()
    assert list(events)[-1].identical
    assert generation.steps < 15


def test_an_old_take_of_before_there_were_groups(studio, store: Store) -> None:
    synthesizer = studio()
    [original] = takes_of(synthesizer.speak(SpeechRequest("Hello", seed=7)))
    rewrite(store, original, batch=(), group="", audio_hash="")
    assert replayed(synthesizer, original.id).identical  # by the hash of its file


def test_it_is_said_how_far_apart_two_takes_are(studio, store: Store) -> None:
    synthesizer, model = studio(), SineModel()
    [original] = takes_of(synthesizer.speak(SpeechRequest("Hello", seed=7)))
    rewrite(store, original, audio_hash="0" * 64)
    assert replayed(synthesizer, original.id).sentence == "Not identical: samples differ by up to 0 of full scale."
    model.frequency = 440.0
    result = replayed(ready(store, model), original.id)
    assert not result.identical and 0.3 < result.difference < 0.7
    assert result.sentence.startswith("Not identical: samples differ by up to 0.")
    model.lengths[7] = 9
    result = replayed(ready(store, model), original.id)
    assert result.difference is None and result.sentence == "Not identical: 1.44 s long instead of 0.80 s."
    model.lengths.clear()
    store.audio_path(original.id).unlink()
    assert "file of the original is gone" in replayed(ready(store, model), original.id).sentence


# ------------------------------------------------------------------------------------- missing and changed


def test_the_upload_may_go_but_not_the_kept_clip(studio, store: Store, tmp_path: Path) -> None:
    upload = tmp_path / "声音 (1).wav"
    write_wav(upload, CLIP.samples, CLIP.sample_rate)
    synthesizer = studio()
    [original] = takes_of(synthesizer.speak(SpeechRequest("Hello", reference_wav_path=upload, seed=7)))
    upload.unlink()
    result = replayed(synthesizer, original.id)
    assert result.identical and result.record.reference_name == "声音 (1).wav"
    kept = store.clips.path(original.reference_hash)
    kept.unlink()
    [reason] = synthesizer.replay_reasons(original.id)
    assert (reason.what, reason.state, reason.blocks) == ("reference", "missing", True)
    assert "声音 (1).wav is missing" in reason.sentence and kept.name in reason.sentence
    count = store.count()
    with pytest.raises(StoreError, match="声音.*is missing"):
        next(synthesizer.replay(original.id))
    assert store.count() == count


def test_a_kept_clip_that_was_changed_is_named(studio, store: Store) -> None:
    synthesizer = studio()
    [original] = takes_of(synthesizer.speak(REQUESTS["continuation"]))
    write_wav(store.clips.path(original.prompt_hash), CLIP.samples[:-1], CLIP.sample_rate)
    [reason] = synthesizer.replay_reasons(original.id)
    assert (reason.what, reason.state, reason.blocks) == ("prompt", "changed", True)


@pytest.mark.parametrize(
    "then, what, state, said",
    [
        ({"weights_hash": "6" * 64, "model_id": "other"}, "model", "changed", "was other (66666666), now it is sine"),
        ({"lora_hash": "a" * 16, "lora_name": "anna"}, "lora", "missing", "was anna (aaaaaaaa), now it is none"),
        ({"device": "cuda:0"}, "device", "changed", "was cuda:0, now it is cpu"),
        ({"dtype": "bfloat16"}, "dtype", "changed", "was bfloat16, now it is float32"),
        ({"versions": {**library_versions(), "torch": "2.0"}}, "library", "changed", "torch has changed: it was 2.0"),
    ],
)
def test_what_has_changed_is_named_and_can_be_tried(
    studio, store, then: dict, what: str, state: str, said: str
) -> None:
    synthesizer = studio()
    [original] = takes_of(synthesizer.speak(SpeechRequest("Hello", seed=7)))
    rewrite(store, original, **then)
    [reason] = synthesizer.replay_reasons(original.id)
    assert (reason.what, reason.state, reason.blocks) == (what, state, False)
    assert said in reason.sentence and {"was", "now"} <= set(reason.facts)
    assert replayed(synthesizer, original.id).reasons == (reason,)


def test_an_adapter_in_place_of_another_is_named(studio, store: Store) -> None:
    synthesizer = studio(SineModel(lora={"hash": "a" * 16, "path": "/adapters/anna", "enabled": True}))
    [original] = takes_of(synthesizer.speak(SpeechRequest("Hello", seed=7)))
    other = SineModel(lora={"hash": "b" * 16, "path": "/adapters/ben", "enabled": True})
    [reason] = can_replay(original, other, store.clips)
    assert (reason.what, reason.state) == ("lora", "changed") and "anna" in reason.sentence and "ben" in reason.sentence


def test_python_and_the_normaliser_may_change(studio, store: Store) -> None:
    synthesizer = studio()
    [original] = takes_of(synthesizer.speak(SpeechRequest("Hello", seed=7)))
    rewrite(store, original, versions={**library_versions(), "python": "3.0", "wetext": "0.0.1"})
    assert synthesizer.replay_reasons(original.id) == ()


class Rewording(SineModel):
    """A later version, whose text pipeline says things differently; what is spoken already it leaves alone."""

    def prepare(self, request: SpeechRequest):
        spoken = super().prepare(request)
        return replace(spoken, text=spoken.text.replace("nineteen ninety six", "one nine nine six"))


def test_a_changed_normaliser_does_not_change_the_replay(studio, store: Store) -> None:
    """What was typed would be read differently today, so the words that were spoken are spoken as they are."""
    [original] = takes_of(studio().speak(SpeechRequest("It was 1996.", normalize=True, seed=7)))
    assert original.spoken_text == "It was nineteen ninety six."

    class Later(SineModel):
        def prepare(self, request: SpeechRequest):
            spoken = super().prepare(request)
            new = spoken.text.replace("nineteen ninety six", "one nine nine six")
            return replace(spoken, text=new) if request.normalize else spoken

    later = studio(Later())
    assert later.replay_reasons(original.id) == ()
    result = replayed(later, original.id)
    assert result.identical and result.record.spoken_text == original.spoken_text


def test_words_that_cannot_be_made_again_are_named(studio) -> None:
    [original] = takes_of(studio().speak(SpeechRequest("It was 1996.", normalize=True, seed=7)))
    [reason] = studio(Rewording()).replay_reasons(original.id)
    assert (reason.what, reason.state, reason.blocks) == ("text", "changed", True)


def test_a_model_that_cannot_take_a_reference_says_so(studio, store: Store) -> None:
    [original] = takes_of(studio().speak(REQUESTS["reference"]))
    older = studio(SineModel(generation="VoxCPM1.5", supports_reference=False, supports_control=False))
    reasons = {
        reason.facts.get("name"): reason for reason in older.replay_reasons(original.id) if reason.what == "support"
    }
    assert set(reasons) == {"reference", "control"} and all(reason.blocks for reason in reasons.values())
    with pytest.raises(StoreError, match="VoxCPM1.5 cannot use"):
        next(older.replay(original.id))


def test_nobody_replays_the_take_of_another(studio) -> None:
    synthesizer = studio()
    [take] = takes_of(synthesizer.speak(SpeechRequest("Hello"), session="b"))
    for ask in (lambda: synthesizer.replay_reasons(take.id, "a"), lambda: next(synthesizer.replay(take.id, "a"))):
        with pytest.raises(StoreError, match="There is no take"):
            ask()
    assert replayed(synthesizer, take.id, "b").record.session == "b"


def test_the_embedded_model_replays_each_take_of_a_design(nano, store: Store) -> None:
    """Not closed at the end: the model belongs to all tests."""
    synthesizer = ready(store, nano)
    wish = SpeechRequest("Good morning.", control="a calm voice", max_len=6, inference_timesteps=3)
    takes = takes_of(synthesizer.speak(wish, seeds=[1, 2, 3]))
    assert len({take.audio_hash for take in takes}) == 3
    for take in (takes[0], takes[2]):
        assert synthesizer.replay_reasons(take.id) == ()
        assert replayed(synthesizer, take.id).identical


# ------------------------------------------------------------------------------------------------- clips


def test_clips_are_kept_once_and_sample_for_sample(store: Store) -> None:
    odd = Audio(np.float32(1.7) * CLIP.samples, 44_100)  # not on the grid of 16 bits
    for clip in (CLIP, odd, CLIP):
        digest = store.clips.keep(clip)
        assert digest == content_hash(clip) and np.array_equal(store.clips.audio(digest).samples, clip.samples)
    assert len(list(store.clips.folder.iterdir())) == 2


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n", None])
def test_only_hashes_name_clips(store: Store, digest) -> None:
    with pytest.raises(StoreError, match="does not name a clip"):
        store.clips.audio(digest)


def test_clips_that_nobody_refers_to_go_after_a_day(studio, store: Store) -> None:
    import os
    import time

    [take] = takes_of(studio().speak(REQUESTS["reference"]))
    used = store.clips.path(take.reference_hash)
    old, young = (store.clips.keep(Audio(CLIP.samples[:n], 16_000)) for n in (8000, 9000))
    (store.clips.folder / "mine.wav").write_text("keep me")
    for path in (used, store.clips.path(old)):
        os.utime(path, (time.time() - 90_000,) * 2)
    Store(store.data_dir).close()
    left = {path.name for path in store.clips.folder.iterdir()}
    assert left == {used.name, f"{young}.wav", "mine.wav"}


def test_a_clip_that_cannot_be_kept_costs_the_replay_and_not_the_take(studio, store, monkeypatch) -> None:
    def full(_clip: Audio) -> str:
        raise StoreError("The clip could not be kept (disk full).")

    monkeypatch.setattr(store.clips, "keep", full)
    [take] = takes_of(studio().speak(REQUESTS["reference"]))
    assert take.file_name and take.ended_by == "stop"
    assert take.notes[-1] == "This take cannot be replayed later. The clip could not be kept (disk full)."

"""What a take is made with and what is found in it: saved voices, groups, checks, and automatic second tries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from studio.checks import Check
from studio.events import Chunk, Finished, Started
from studio.loudness import loudness, peak
from studio.second_tries import best_of, needs_second_try, speak_with_second_tries
from studio.store import Store, StoreError
from studio.synthesizer import Synthesizer
from tests.fakes import SineModel, SpeechRequest
from tests.records import ready, takes_of
from voxcpm_core import Audio
from voxcpm_core.audio import content_hash
from voxcpm_core.errors import EngineError, RequestError

CLIP = Audio((0.2 * np.sin(np.arange(32_000) / 9)).astype(np.float32), 16_000)
TEXT = "The river ran past the mill."  # 28 letters: 28 patches of the sine model, 4.5 s


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture
def studio(store: Store) -> Iterator[Callable[..., Synthesizer]]:
    opened = []

    def start(model: SineModel, **options) -> Synthesizer:
        opened.append(ready(store, model, **options))
        return opened[-1]

    yield start
    for synthesizer in opened:
        synthesizer.close()


# ------------------------------------------------------------------------------------------------ voices


def test_a_saved_voice_is_the_reference(studio) -> None:
    model = SineModel()
    synthesizer = studio(model)
    voice = synthesizer.voices.save_clip(CLIP, "Anna", "local", transcript="Words")
    [take] = takes_of(synthesizer.speak(SpeechRequest(TEXT, control="calm"), voice_id=voice.id))
    assert (take.voice, take.mode, take.control) == (voice.id, "reference", "calm")
    assert (take.reference_hash, take.reference_name) == (voice.audio_hash, "Anna")
    assert content_hash(model.requests[-1].reference_wav_path) == voice.audio_hash
    synthesizer.voices.rename(voice.id, "Berta")
    assert synthesizer.store.take(take.id).reference_name == "Anna"  # as it was called then


def test_a_voice_with_its_transcript_is_continued(studio) -> None:
    model = SineModel(supports_reference=False)
    synthesizer = studio(model)
    voice = synthesizer.voices.save_clip(CLIP, "Anna", "local", transcript="Words that are heard")
    [take] = takes_of(synthesizer.speak(SpeechRequest(TEXT), voice_id=voice.id, voice_as="prompt"))
    assert (take.voice, take.mode, take.prompt_text) == (voice.id, "continuation", "Words that are heard")
    assert (take.prompt_hash, take.prompt_name, take.reference_hash) == (voice.audio_hash, "Anna", "")


def test_a_designed_take_becomes_the_voice_of_the_next_line(studio) -> None:
    synthesizer = studio(SineModel())
    first, _, _ = takes_of(synthesizer.speak(SpeechRequest(TEXT, control="calm"), seeds=[1, 2, 3], tab="design"))
    voice = synthesizer.voices.save_from_take(first.id, "Anna", "local")
    [take] = takes_of(synthesizer.speak(SpeechRequest("And on."), voice_id=voice.id))
    assert take.reference_hash == voice.audio_hash and voice.seed == first.seed
    assert np.array_equal(
        synthesizer.store.clips.audio(take.reference_hash).samples, synthesizer.voices.audio(voice.id).samples
    )


@pytest.mark.parametrize(
    "request_, use, error",
    [
        (SpeechRequest(TEXT, reference_wav_path=CLIP), "reference", "Both a clip and the voice Anna"),
        (SpeechRequest(TEXT), "prompt", "Anna has no transcript"),
        (SpeechRequest(TEXT), "karaoke", "not as 'karaoke'"),
    ],
)
def test_what_does_not_go_with_a_voice_is_refused(studio, store, request_, use: str, error: str) -> None:
    synthesizer = studio(SineModel())
    voice = synthesizer.voices.save_clip(CLIP, "Anna", "local")
    with pytest.raises(RequestError, match=error):
        next(synthesizer.speak(request_, voice_id=voice.id, voice_as=use))
    assert store.takes() == []


def test_a_model_without_references_says_what_to_do(studio, store) -> None:
    synthesizer = studio(SineModel(generation="VoxCPM1.5", supports_reference=False))
    voice = synthesizer.voices.save_clip(CLIP, "Anna", "local")
    for options in ({"voice_id": voice.id}, {}):
        wish = SpeechRequest(TEXT, reference_wav_path=None if options else CLIP)
        with pytest.raises(EngineError, match="VoxCPM1.5 takes no reference.*ultimate cloning.*or load VoxCPM2"):
            next(synthesizer.speak(wish, **options))
    assert store.takes() == [] and not list(store.data_dir.glob("clips/*"))


def test_the_voice_of_another_session_is_not_there(studio) -> None:
    synthesizer = studio(SineModel())
    voice = synthesizer.voices.save_clip(CLIP, "Anna", "b")
    with pytest.raises(StoreError, match="There is no voice"):
        next(synthesizer.speak(SpeechRequest(TEXT), voice_id=voice.id, session="a"))
    assert takes_of(synthesizer.speak(SpeechRequest(TEXT), voice_id=voice.id, session="b"))[0].voice == voice.id
    assert takes_of(synthesizer.speak(SpeechRequest(TEXT), voice_id=voice.id))[0].session == "local"  # sees all


def test_a_voice_whose_file_is_gone_is_named(studio) -> None:
    synthesizer = studio(SineModel())
    voice = synthesizer.voices.save_clip(CLIP, "Anna", "local")
    synthesizer.voices.audio_path(voice.id).unlink()
    with pytest.raises(StoreError, match="sound of the voice Anna is missing"):
        next(synthesizer.speak(SpeechRequest(TEXT), voice_id=voice.id))


# ------------------------------------------------------------------------------------------------ records


def test_takes_of_one_request_are_a_group_and_others_can_join_it(studio) -> None:
    synthesizer = studio(SineModel())
    events = list(synthesizer.speak(SpeechRequest(TEXT), seeds=[1, 2]))
    group = events[0].group
    more = takes_of(synthesizer.speak(SpeechRequest(TEXT), seeds=[3], group=group, notes=("Re-rolled.",)))
    alone = takes_of(synthesizer.speak(SpeechRequest(TEXT)))
    assert {event.record.group for event in events if isinstance(event, Finished)} == {group, more[0].group}
    assert group and alone[0].group not in ("", group)
    assert more[0].notes == ("Re-rolled.",) and more[0].batch == (3,)


def test_a_take_describes_what_was_found_in_it(studio, store) -> None:
    model = SineModel()
    [take] = takes_of(studio(model).speak(SpeechRequest(TEXT, seed=7)))
    stored, tone = store.take(take.id), model.tone(7, len(TEXT))
    assert stored == take
    checks = [Check.from_dict(check) for check in stored.checks]
    assert [check.name for check in checks] == ["ending", "length", "sound", "silence", "clipping", "edges"]
    assert stored.verdict == "warn"  # a tone begins and ends with sound
    assert stored.loudness == pytest.approx(loudness(tone, 48_000), abs=0.01)
    assert stored.peak == pytest.approx(peak(tone), abs=0.01)


def test_checks_that_break_cost_the_checks_and_not_the_take(studio, store, caplog) -> None:
    def broken(_samples: np.ndarray, _rate: int) -> str:
        raise RuntimeError("no ears")

    [take] = takes_of(studio(SineModel(), recognise=broken).speak(SpeechRequest(TEXT)))
    assert store.take(take.id) == take and (take.checks, take.verdict, take.loudness) == ((), "", None)
    assert "no ears" in caplog.text


def test_the_recogniser_hears_every_take(studio) -> None:
    synthesizer = studio(SineModel(), recognise=lambda samples, rate: TEXT if len(samples) == 28 * 7680 else "")
    [take] = takes_of(synthesizer.speak(SpeechRequest(TEXT)))
    assert take.checks[-1]["name"] == "words" and take.checks[-1]["verdict"] == "ok"


def test_a_stopped_job_may_be_closed_at_its_last_event(studio) -> None:
    synthesizer = studio(SineModel(patch_delay=0.005, lengths={1: 2, 2: 400}))
    takes = takes_of(synthesizer.speak(SpeechRequest(TEXT, max_len=30), seeds=[1, 2]))
    with closing(synthesizer.replay(takes[0].id)) as events:
        for event in events:
            if isinstance(event, Started):
                [generation] = synthesizer._jobs.values()
            if isinstance(event, Finished):
                break
    assert all(cancelled.is_set() for cancelled in generation._cancelled)


# ----------------------------------------------------------------------------------------- second tries


def tried(synthesizer: Synthesizer, request: SpeechRequest, **options) -> list[tuple[int, int, int]]:
    """(row, attempt, seed) of every take, in order."""
    events = list(speak_with_second_tries(synthesizer, request, **options))
    assert not any(isinstance(event, Chunk) for event in events)
    return [(e.row, e.record.attempt, e.record.seed) for e in events if isinstance(e, Finished)]


def test_a_good_take_is_made_once(studio) -> None:
    assert tried(studio(SineModel()), SpeechRequest(TEXT), seeds=[7]) == [(0, 0, 7)]


def test_a_bad_take_is_made_again_with_the_next_seed_and_kept(studio, store) -> None:
    synthesizer = studio(SineModel(lengths={7: 60, 8: 2}))  # 9.6 s, 0.3 s
    assert tried(synthesizer, SpeechRequest(TEXT, seed=7), tab="design") == [(0, 0, 7), (0, 1, 8), (0, 2, 9)]
    takes = store.takes()[::-1]
    assert [(take.seed, take.attempt, take.patches) for take in takes] == [(7, 0, 60), (8, 1, 2), (9, 2, 28)]
    assert len({take.group for take in takes}) == 1 and {take.tab for take in takes} == {"design"}
    assert [needs_second_try(take) for take in takes] == [True, True, False]
    assert best_of(takes) == takes[2]
    assert takes[0].notes == () and takes[2].notes == ("Try 3 of 3: the take before did not fit its text.",)


def test_when_all_are_bad_the_first_is_shown_and_none_is_lost(studio, store) -> None:
    synthesizer = studio(SineModel(lengths=dict.fromkeys(range(7, 20), 60)))
    assert tried(synthesizer, SpeechRequest(TEXT), seeds=[7], attempts=2) == [(0, 0, 7), (0, 1, 8)]
    takes = store.takes()[::-1]
    assert best_of(takes) == takes[0] and len(takes) == 2


def test_rows_keep_their_numbers_and_no_seed_is_used_twice(studio) -> None:
    lengths = {1: 60, 2: 28, 3: 60, 4: 60, 5: 28, 6: 28}
    assert tried(studio(SineModel(lengths=lengths)), SpeechRequest(TEXT), seeds=[1, 2, 3]) == [
        *[(1, 0, 2), (0, 0, 1), (2, 0, 3)],
        *[(2, 1, 5), (0, 1, 4)],  # row 0 took 4, so row 2 took 5
        (0, 2, 6),
    ]


def test_the_last_seed_is_followed_by_the_first(studio) -> None:
    model = SineModel(lengths={2**32 - 1: 60})
    assert tried(studio(model), SpeechRequest(TEXT), seeds=[2**32 - 1]) == [(0, 0, 2**32 - 1), (0, 1, 0)]


@pytest.mark.parametrize(
    "request_, ended_by",
    [
        (SpeechRequest("forever", max_len=60, seed=7), "limit"),  # the length that was asked for
        (SpeechRequest("please fail", seed=7), "error"),
    ],
)
def test_another_seed_cannot_help_everything(studio, request_: SpeechRequest, ended_by: str) -> None:
    synthesizer = studio(SineModel())
    assert len(tried(synthesizer, request_)) == 1
    assert synthesizer.store.takes()[0].ended_by == ended_by


def test_short_texts_within_two_seconds_are_left_alone(studio) -> None:
    """Regression 11: length alone makes no one-word answer a bad case."""
    for text in ("Hi", "好", "No.", "行。"):
        assert len(tried(studio(SineModel(lengths={7: 12})), SpeechRequest(text), seeds=[7])) == 1
        assert len(tried(studio(SineModel(lengths={7: 40})), SpeechRequest(text), seeds=[7])) == 2


def test_stopping_ends_all_tries(studio) -> None:
    synthesizer = studio(SineModel(patch_delay=0.01, lengths={7: 60, 8: 60}))
    events, seen = speak_with_second_tries(synthesizer, SpeechRequest(TEXT), seeds=[7]), []
    for event in events:
        seen.append(event)
        if isinstance(event, Started) and len([e for e in seen if isinstance(e, Started)]) == 2:
            synthesizer.stop(event.job_id)
    assert [e.record.ended_by for e in seen if isinstance(e, Finished)] == ["stop", "cancelled"]


def test_closing_the_tries_stores_what_was_made(studio, store) -> None:
    synthesizer = studio(SineModel(patch_delay=0.01))
    events = speak_with_second_tries(synthesizer, SpeechRequest(TEXT), seeds=[7])
    next(events), next(events)
    events.close()
    assert [take.ended_by for take in store.takes()] == ["cancelled"] and not synthesizer._jobs


def test_what_was_streamed_is_checked_and_offered_for_another_roll(studio) -> None:
    [take] = takes_of(studio(SineModel(lengths={7: 60})).speak(SpeechRequest("Hi", seed=7)))
    assert needs_second_try(take) and take.attempt == 0
    assert next(check for check in take.checks if check["name"] == "too_long")["verdict"] == "fail"

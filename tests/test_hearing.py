"""The words of takes are checked where a recogniser was asked for and is installed."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from studio import transcription
from studio.hearing import word_check
from studio.take_checks import check_take
from tests.recordings import speech
from voxcpm_core.errors import AudioError

SOUND = speech(3.0, 16_000)


def words_of(recognise) -> str:
    checks = check_take(SOUND, 16_000, spoken_text="Good morning.", ended_by="stop", recognise=recognise)
    return next(check.verdict for check in checks if check.name == "words")


@pytest.mark.parametrize(("heard", "verdict"), [("good morning", "ok"), ("something else", "fail"), (None, "fail")])
def test_what_is_heard_is_the_score(monkeypatch, heard: str | None, verdict: str) -> None:
    asked = []

    def transcribe(audio, model):
        asked.append((audio.sample_rate, model))
        if heard is None:
            raise AudioError("No speech was found in the clip: choose another one.")
        return SimpleNamespace(text=heard)

    monkeypatch.setattr(transcription, "available", lambda: (True, ""))
    monkeypatch.setattr(transcription, "transcribe", transcribe)
    recognise = word_check("tiny")
    assert not asked, "it was loaded before it was needed"
    assert words_of(recognise) == verdict and asked == [(16_000, "tiny")]


def test_without_a_recogniser_nothing_is_checked(monkeypatch, caplog) -> None:
    assert word_check("") is None
    monkeypatch.setattr(transcription, "available", lambda: (False, "pip install faster-whisper"))
    with caplog.at_level(logging.WARNING):
        assert word_check("base") is None
    assert "pip install faster-whisper" in caplog.text

"""“Was this made here?” in the page and for programs: a download is known again, a stranger's file is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio import content_credentials, watermark
from studio.export_takes import marked_wav
from studio.store import Store
from studio.synthesizer import Synthesizer
from studio.takes import TakeRecord
from studio.ui.context import Context
from studio.ui.media import Media
from studio.ui.origin_check import OriginHandlers, answer, origin_function
from tests.clips import run_ffmpeg
from tests.fakes import SineModel, SpeechRequest
from tests.picker import asking
from tests.recordings import speech
from tests.records import ready, takes_of
from voxcpm_core.audio import write_wav


@pytest.fixture
def synthesizer(tmp_path: Path) -> Iterator[Synthesizer]:
    store = Store(tmp_path / "data")
    started = ready(store, SineModel())
    yield started
    started.close()
    store.close()


@pytest.fixture
def context(synthesizer: Synthesizer) -> Context:
    return Context(synthesizer, synthesizer.store, Media(synthesizer.store, synthesizer.voices))


@pytest.fixture
def take(synthesizer: Synthesizer) -> TakeRecord:
    (made,) = takes_of(synthesizer.speak(SpeechRequest("Hello there", seed=7)))
    return made


def looked(context: Context, path: Path, language: str = "en") -> str:
    *_, last = OriginHandlers(context).look(str(path), None, asking(language))
    return last


def statuses(html: str) -> dict[str, str]:
    return dict(re.findall(r'data-check="(\w+)" data-status="([^"]+)"', html))


def test_a_download_is_known_again(context: Context, take: TakeRecord, tmp_path: Path) -> None:
    path = tmp_path / "take.wav"
    path.write_bytes(marked_wav(context.store, take))
    html = looked(context, path)
    assert 'data-verdict="yes"' in html and "Yes, this was made here." in html
    found = statuses(html)
    assert (found["tags"], found["take"]) == ("found", "found") and take.id in html and "model sine" in html
    shorter = tmp_path / "cut.mp3"
    run_ffmpeg("-ss", "0.2", "-i", path, "-map_metadata", "0", shorter)
    html = looked(context, shorter)
    assert 'data-verdict="likely"' in html and statuses(html)["take"] == "not found"


def test_a_file_from_elsewhere_is_not(context: Context, tmp_path: Path) -> None:
    write_wav(tmp_path / "other.wav", speech(3.0), 24_000)
    html = looked(context, tmp_path / "other.wav", "zh")
    assert 'data-verdict="unknown"' in html and "没有找到标记" in html
    assert statuses(html)["tags"] == statuses(html)["take"] == "not found"
    for name, extra in (("credentials", content_credentials), ("watermark", watermark)):
        assert statuses(html)[name] == ("not found" if extra.available() else "not available")
    (tmp_path / "notes.wav").write_text("no sound")
    assert "is-error" in looked(context, tmp_path / "notes.wav")
    assert list(OriginHandlers(context).look(None, None, asking())) == [""]


def test_what_a_check_finds_is_said_in_words() -> None:
    checks = [
        {"name": "credentials", "status": "broken", "detail": "x"},
        {"name": "credentials", "status": "found", "detail": "x", "signed_here": True},
        {"name": "credentials", "status": "found", "detail": "x", "signed_here": False},
        {"name": "watermark", "status": "not available", "detail": "pip install <x>"},
    ]
    html = answer({"verdict": "yes", "checks": checks}, "en")
    for words in ("changed after it was signed", "Signed by this studio", "does not know", "pip install &lt;x&gt;"):
        assert words in html
    assert "签名后被改动过" in answer({"verdict": "yes", "checks": checks}, "zh")


def test_programs_get_the_same_and_only_for_their_own_takes(context: Context, take: TakeRecord, tmp_path: Path) -> None:
    path = tmp_path / "take.wav"
    path.write_bytes(marked_wav(context.store, take))
    found = origin_function(context)(str(path), asking())
    assert found["verdict"] == "yes" and [check["name"] for check in found["checks"]] == [
        *("tags", "credentials", "watermark", "take"),
    ]
    shared = Context(context.synthesizer, context.store, context.media, shared=True)
    found = origin_function(shared)(str(path), asking())
    assert found["verdict"] == "likely", "a stranger does not learn whose takes are stored"
    for nothing in (None, "", 5):
        with pytest.raises(Exception, match="Give a sound file"):
            origin_function(context)(nothing, asking())

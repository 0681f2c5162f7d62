"""The Voices tab's parts without a browser."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from studio.store import Store
from studio.takes import TakeRecord
from studio.ui import voices_markup
from studio.ui.context import Context
from studio.ui.media import Media
from studio.ui.voices import VoicesHandlers
from studio.voices import Voice
from tests.fakes import SineModel, SpeechRequest
from tests.records import ready, takes_of

HOSTILE = '"><img src=x onerror=alert(1)>'


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    store = Store(tmp_path)
    synthesizer = ready(store, SineModel())
    yield Context(synthesizer, store, Media(store, synthesizer.voices))
    synthesizer.close()
    store.close()


def take(context: Context, text: str = "A reference.", session: str = "local") -> TakeRecord:
    return takes_of(context.synthesizer.speak(SpeechRequest(text=text, seed=3), session=session))[0]


def saved(context: Context, name: str = "Anna", session: str = "local", **changes: object) -> Voice:
    return context.voices.save_from_take(take(context, session=session, **changes).id, name, session)


def asking(accept: str = "") -> SimpleNamespace:
    return SimpleNamespace(headers={"accept-language": accept}, cookies={}, session_hash="s1")


def pressed(**data: object) -> gr.EventData:
    return gr.EventData(None, data)


def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    heard: list[str] = []
    for name in ("Warning", "Info"):
        monkeypatch.setattr(gr, name, lambda sentence, **_: heard.append(sentence))
    return heard


def test_cards_are_found_by_word_and_tag(context: Context) -> None:
    anna, bert = saved(context, "Anna"), saved(context, "Bert", text="Something quite different.")
    context.voices.tag(bert.id, ["deep", "slow"])
    handlers = VoicesHandlers(context)
    everything = handlers.listed("", "", None, asking())
    assert everything.cards.count("<li") == 2 and "2 voices" in everything.found and "deep" in everything.tags
    tagged = handlers.listed("", "deep", None, asking())
    assert "Bert" in tagged.cards and "Anna" not in tagged.cards and "1 of 2" in tagged.found
    assert 'data-tag="deep"' in tagged.tags and tagged.tags.count('aria-pressed="true"') == 1
    assert "Anna" not in handlers.listed("quite different", "", None, asking()).cards
    assert "No voice fits" in handlers.listed("zebra", "", None, asking()).cards
    assert handlers.listed("", "a tag that is gone", None, asking()).cards == everything.cards
    assert handlers.choose_tag(pressed(tag="deep")) == "deep" and anna.colour in everything.cards


def test_an_empty_library_teaches(context: Context) -> None:
    shown = VoicesHandlers(context).listed("", "", None, asking())
    assert "Save as voice" in shown.cards and shown.tags == shown.found == ""
    assert "保存为声音" in VoicesHandlers(context).listed("", "", None, asking("zh")).cards


@pytest.mark.parametrize(
    ("name", "letters"),
    [("Anna Bell", "AB"), ("anna", "A"), ("安娜", "安"), ("Old (deep) sailor", "OS"), ("(x)", "("), ("ß", "SS")],
)
def test_an_avatar_has_initials(name: str, letters: str) -> None:
    assert voices_markup.initials(name) == letters


def test_hostile_words_stay_words(context: Context) -> None:
    voice = saved(context, HOSTILE, text=HOSTILE)
    context.voices.tag(voice.id, [HOSTILE])
    handlers = VoicesHandlers(context)
    pieces = [*handlers.listed("", "", None, asking()), handlers.show(None, pressed(voice=voice.id), asking()).detail]
    pieces.append(handlers.remove(None, pressed(voice=voice.id), asking())[0])
    assert all("<img src=x" not in piece for piece in pieces) and "&lt;img" in pieces[0]


def test_a_voice_in_full_can_be_played_tried_and_changed(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    voice, heard = saved(context), said(monkeypatch)
    handlers = VoicesHandlers(context)
    shown = handlers.show(None, pressed(voice=voice.id), asking())
    assert (shown.open_id, shown.name, shown.tags) == (voice.id, "Anna", "") and shown.speak["interactive"]
    assert "A reference." in shown.detail and "data-src" in shown.detail and shown.unsupported == ""
    changed = handlers.save(voice.id, " Anna  Bell ", "warm, slow；warm，", None, asking())
    assert changed.name == "Anna Bell" and changed.tags == "warm, slow" and "Anna Bell" in changed.detail
    saved(context, "Bert")
    assert handlers.save(voice.id, "bert", "", None, asking()).name == gr.skip() and "already a voice" in heard[-1]
    assert handlers.save(voice.id, "  ", "", None, asking()).name == gr.skip() and "needs a name" in heard[-1]
    assert context.voices.voice(voice.id).tags == ("warm", "slow"), "a refused name changes no tag"
    gone = handlers.show(None, pressed(voice="voice-0123456789abcdef"), asking())
    assert "Choose a voice" in gone.detail and "no longer in the studio" in heard[-1]


def test_a_voice_whose_sound_is_lost_says_so(context: Context) -> None:
    voice = saved(context)
    (context.voices.folder / f"{voice.id}.wav").unlink()
    handlers = VoicesHandlers(context)
    shown = handlers.show(None, pressed(voice=voice.id), asking()).detail
    assert "The reference of this voice is missing" in shown and "data-src" not in shown
    assert "vx-lost" in handlers.listed("", "", None, asking()).cards
    tried = list(handlers.speak(voice.id, "Try.", None, asking()))
    assert "is missing" in tried[-1].trial and tried[-1].speak["interactive"]


def test_a_trial_streams_and_is_kept(context: Context) -> None:
    voice = saved(context)
    messages = list(VoicesHandlers(context).speak(voice.id, "Try this.", None, asking()))
    record = context.store.takes(limit=1)[0]
    assert (record.tab, record.voice, record.spoken_text) == ("voices", voice.id, "Try this.")
    assert any(isinstance(message.live, bytes) for message in messages)
    assert messages[0].stop["interactive"] and not messages[0].speak["interactive"] and messages[0].job
    assert (
        record.id in messages[-1].trial and messages[-1].speak["interactive"] and not messages[-1].stop["interactive"]
    )
    list(VoicesHandlers(context).speak(voice.id, "  ", None, asking()))
    assert "This is how I sound" in context.store.takes(limit=1)[0].spoken_text
    assert "too long" in list(VoicesHandlers(context).speak(voice.id, "a" * 20_001, None, asking()))[-1].trial


def test_why_a_voice_cannot_be_tried_is_said(tmp_path: Path) -> None:
    store = Store(tmp_path)
    synthesizer = ready(store, SineModel(supports_reference=False, generation="VoxCPM1.5"))
    context = Context(synthesizer, store, Media(store))
    voice = saved(context)
    shown = VoicesHandlers(context).show(None, pressed(voice=voice.id), asking())
    assert "VoxCPM1.5 cannot take a reference" in shown.unsupported and not shown.speak["interactive"]
    assert "VoxCPM1.5" in list(VoicesHandlers(context).speak(voice.id, "Try.", None, asking()))[-1].trial
    synthesizer.close()
    store.close()


def test_a_deleted_voice_comes_back(context: Context) -> None:
    voice, handlers = saved(context), VoicesHandlers(context)
    notice, deleted = handlers.remove(None, pressed(voice=voice.id), asking())
    assert "Anna is deleted" in notice and "Undo" in notice and context.voices.voices() == []
    back, left = handlers.undo(deleted, None, asking())
    assert "Anna is back" in back and left == "" and context.voices.voice(voice.id).name == "Anna"
    assert "is-error" in handlers.undo("voice-0123456789abcdef", None, asking())[0]
    assert "is-error" in handlers.remove(None, pressed(voice="junk"), asking())[0]


def fetched(context: Context, link: str) -> bytes:
    with TestClient(Starlette(routes=context.media.routes())) as client:
        return client.get(link.split('href="')[1].split('"')[0]).content


def test_a_bundle_goes_out_and_comes_in_again(context: Context, tmp_path: Path) -> None:
    anna, bert = saved(context, "Anna"), saved(context, "Bert")
    handlers, path = VoicesHandlers(context), tmp_path / "bundle.zip"
    path.write_bytes(fetched(context, handlers.export(None, pressed(voices=[anna.id]), asking())))
    with zipfile.ZipFile(path) as bundle:
        assert len(bundle.namelist()) == 2
    both = fetched(context, handlers.export(None, pressed(voices=[]), asking()))
    one = handlers.export(None, pressed(voice=bert.id, voices=[anna.id]), asking())
    assert "Bert.voxcpm-voices.zip" in one
    for voice in (anna, bert):
        context.voices.delete(voice.id)
    path.write_bytes(both)
    assert "Imported: Anna, Bert." in handlers.take_in(str(path), None, asking())
    assert [voice.source for voice in context.voices.voices()] == ["bundle", "bundle"] and not path.exists()


def test_nothing_to_export_is_said(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = said(monkeypatch)
    assert VoicesHandlers(context).export(None, pressed(voices=["junk", 5]), asking()) == gr.skip()
    assert heard == ["There is no voice to export yet."]


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all" * 99])
def test_a_bundle_that_is_none_ends_in_a_sentence(context: Context, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(content)
    shown = VoicesHandlers(context).take_in(str(path), None, asking())
    assert "is-error" in shown and "not a zip file" in shown and context.voices.voices() == []
    assert VoicesHandlers(context).take_in(None, None, asking()) == gr.skip()


def test_a_hostile_bundle_ends_in_a_sentence(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as bundle:
        bundle.writestr("manifest.json", "{}")
        bundle.writestr("../../evil.wav", b"x")
    shown = VoicesHandlers(context).take_in(str(path), None, asking())
    assert "points outside" in shown and not (tmp_path.parent / "evil.wav").exists()


# ---- whose voices


def test_in_company_nobody_gets_at_anothers_voices(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    said(monkeypatch)
    shared = Context(context.synthesizer, context.store, context.media, shared=True)
    voice, handlers = saved(shared, session=shared.session("me")), VoicesHandlers(shared)
    assert "Anna" in handlers.listed("", "", "me", asking()).cards
    for guess in ("you", None, voice.session):
        assert "Anna" not in handlers.listed("", "", guess, asking()).cards
        assert "Anna" not in handlers.show(guess, pressed(voice=voice.id), asking()).detail
        assert handlers.save(voice.id, "Mine", "", guess, asking()).name == gr.skip()
        assert "is-error" in handlers.remove(guess, pressed(voice=voice.id), asking())[0]
        assert handlers.export(guess, pressed(voice=voice.id), asking()) == gr.skip()
        assert "There is no voice" in list(handlers.speak(voice.id, "Try.", guess, asking()))[-1].trial
    assert shared.voices.voice(voice.id).name == "Anna"


def test_a_voices_sound_opens_by_its_signed_address_only(context: Context) -> None:
    voice, other, record = saved(context), saved(context, "Bert"), take(context)
    address = context.media.voice_address(voice.id)
    with TestClient(Starlette(routes=context.media.routes())) as client:
        assert client.get(address).content == context.voices.audio_path(voice.id).read_bytes()
        for guess in (
            address.replace(voice.id, other.id),
            f"studio/voice/{voice.id}/{'0' * 32}/sound",
            f"studio/voice/{voice.id}/{context.media.address(record.id, 'sound').split('/')[3]}/sound",
            f"studio/take/{voice.id}/{address.split('/')[3]}/sound",
            "studio/voice/..%2f..%2fetc%2fpasswd/x/sound",
            "studio/parcel/..%2f..%2fstudio.sqlite3",
        ):
            assert client.get(guess).status_code in (403, 404), guess
        context.voices.delete(voice.id)
        assert client.get(address).status_code == 404

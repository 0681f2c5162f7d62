"""The History and Voices tabs' parts without a browser: what they show, what a visitor may do, what a program gets."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from studio.export_takes import marked_wav
from studio.history import PAGE
from studio.loudness import common_target
from studio.reviews import Reviews
from studio.store import Store
from studio.synthesizer import Synthesizer
from studio.takes import TakeRecord, new_take_id
from studio.ui import history_compare, history_markup
from studio.ui.context import Context
from studio.ui.history import HistoryHandlers
from studio.ui.media import PARCELS_KEPT, Media
from studio.ui.replay import ReplayHandlers
from studio.ui.seeds import seeds_view
from studio.ui.takes_list import OTHER_TABS
from studio.ui.tts import TTSHandlers
from studio.ui.voices_chooser import VoiceChooser
from tests.fakes import SineModel, SpeechRequest
from tests.records import TONE, make_record, ready, takes_of

HOSTILE = '"><img src=x onerror=alert(1)>'


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    store = Store(tmp_path)
    synthesizer = ready(store, SineModel())
    yield Context(synthesizer, store, Media(store, synthesizer.voices))
    synthesizer.close()
    store.close()


def spoken(context: Context, text: str = "Words.", **options: object) -> TakeRecord:
    seed = options.pop("seed", 3)
    return takes_of(context.synthesizer.speak(SpeechRequest(text=text, seed=seed), **options))[0]


def kept(context: Context, **changes: object) -> TakeRecord:
    return context.store.save_take(make_record(**changes), TONE)


def asking(accept: str = "") -> SimpleNamespace:
    return SimpleNamespace(headers={"accept-language": accept}, cookies={}, session_hash="s1")


def pressed(**data: object) -> gr.EventData:
    return gr.EventData(None, data)


def listed(context: Context, query: str = "", page: int = 1, accept: str = "", **wish: object):
    return HistoryHandlers(context).listed(query, wish, page, None, asking(accept))


def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What pops up on the page, collected."""
    heard: list[str] = []
    for name in ("Warning", "Info"):
        monkeypatch.setattr(gr, name, lambda sentence, **_: heard.append(sentence))
    return heard


# ---- finding


def test_pages_lead_through_all_takes_and_say_where_one_is(context: Context) -> None:
    texts = [f"Take number {number}." for number in range(2 * PAGE + 3)]
    for text in texts:
        kept(context, spoken_text=text)
    first, last = listed(context), listed(context, page=3)
    assert f"1–{PAGE} of {len(texts)}" in first.bar and texts[-1] in first.lanes and texts[0] not in first.lanes
    assert f"{2 * PAGE + 1}–{len(texts)} of {len(texts)}" in last.bar and texts[0] in last.lanes
    assert 'data-page="2"' in first.bar and first.bar.count("disabled") == 2 and last.bar.count("disabled") == 2
    assert listed(context, page=9).lanes == last.lanes, "a page that is gone shows the last one"
    assert "Take number 7." in listed(context, query="number 7.").lanes
    assert "vx-pager" not in listed(context, query="number 7.").bar


def test_a_page_number_is_a_number() -> None:
    handlers = HistoryHandlers(SimpleNamespace(store=None))
    for wrong in ("", "-1", "0", "x", "9" * 40, None):
        assert handlers.turn(pressed(page=wrong)) == 1
    assert handlers.turn(pressed(page="12")) == 12


def test_every_filter_narrows_the_list(context: Context) -> None:
    voice = context.voices.save_from_take(spoken(context, "A reference.").id, "Anna", "local")
    takes = {
        "tab": kept(context, spoken_text="By tab.", tab="design"),
        "voice": kept(context, spoken_text="By voice.", voice=voice.id),
        "model": kept(context, spoken_text="By model.", model_id="other"),
        "ended_by": kept(context, spoken_text="By end.", ended_by="limit"),
        "verdict": kept(context, spoken_text="By verdict.", verdict="fail"),
    }
    values = {"tab": "design", "voice": voice.id, "model": "other", "ended_by": "limit", "verdict": "fail"}
    for name, record in takes.items():
        shown = listed(context, **{name: values[name]})
        assert shown.lanes.count("<li") == 1 and record.spoken_text in shown.lanes, name
        assert f'value="{values[name]}" selected' in shown.filters, name
    Reviews(context.store).star(takes["tab"].id)
    assert listed(context, starred=True).lanes.count("<li") == 1
    assert "No take fits" in listed(context, tab="design", voice=voice.id).lanes
    assert ">Anna</option>" in listed(context).filters and "Voice Design" in listed(context).filters


def test_what_the_page_sends_as_filters_is_read_with_care(context: Context) -> None:
    handlers = HistoryHandlers(context)
    wish, page = handlers.choose(pressed(tab="tts", verdict=None, starred="yes", bad="x"))
    assert (wish, page) == (
        {"tab": "tts", "voice": "", "model": "", "ended_by": "", "verdict": "", "starred": True}, 1,
    )  # fmt: skip
    assert handlers.choose(gr.EventData(None, None))[0]["starred"] is False
    assert "No take fits" in handlers.listed("", {"tab": HOSTILE}, 1, None, asking()).lanes
    assert "<img" not in handlers.listed("", {"tab": HOSTILE}, 1, None, asking()).filters


def test_an_empty_history_teaches(context: Context) -> None:
    assert "with the seed and settings that made it" in listed(context).lanes
    assert "种子" in listed(context, accept="zh-CN").lanes


def test_hostile_words_stay_words_everywhere(context: Context) -> None:
    record = kept(context, spoken_text=HOSTILE, control=HOSTILE, voice=HOSTILE, model_id=HOSTILE, tab=HOSTILE)
    other = kept(context)
    Reviews(context.store).note(record.id, HOSTILE)
    handlers = HistoryHandlers(context)
    pieces = [
        *(piece for piece in listed(context) if piece),
        handlers.show(None, pressed(take=record.id), asking()).detail,
        handlers.compare(None, pressed(takes=[record.id, other.id]), asking()),
        seeds_view(Reviews(context.store).seeds_for(HOSTILE), HOSTILE, HOSTILE, "en"),
    ]
    assert all("<img src=x" not in piece for piece in pieces) and "&lt;img" in pieces[0]


# ---- one take


def test_a_take_in_full_shows_checks_facts_and_the_way_on(context: Context) -> None:
    record = spoken(context, "Speak for a while.", tab="voices")
    shown = HistoryHandlers(context).show(None, pressed(take=record.id), asking())
    assert shown.open_id == record.id and shown.tools["visible"]
    for words in (record.spoken_text, str(record.seed), "Voices", "Replay", "Reuse", "Delete", "Recipe"):
        assert words in shown.detail
    faults = [check for check in record.checks if check["verdict"] != "ok"]
    assert faults and all(check["advice"].replace("'", "&#x27;") in shown.detail for check in faults)
    gone = HistoryHandlers(context).show(None, pressed(take=new_take_id()), asking())
    assert "Choose a take" in gone.detail and not gone.tools["visible"]


def test_checks_are_told_by_shape_and_word() -> None:
    unchecked, fine = make_record(), make_record(checks=({"name": "length", "value": "", "verdict": "ok"},))
    bad = make_record(
        checks=({"name": "sound", "value": "", "verdict": "fail", "advice": "No sound."},), verdict="fail"
    )
    assert "Not checked" in history_markup.checks(unchecked, "en")
    assert "nothing found" in history_markup.checks(fine, "en") and "ic-check" in history_markup.checks(fine, "en")
    assert "ic-cross" in history_markup.checks(bad, "en") and "No sound." in history_markup.checks(bad, "en")
    assert "有问题" in history_markup.verdict_mark(bad, "zh")


def test_stars_rating_and_notes_are_kept(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    record, handlers, heard = kept(context), HistoryHandlers(context), said(monkeypatch)
    handlers.star(None, pressed(take=record.id, starred="1"), asking())
    handlers.rate(None, pressed(take=record.id, rating="4"), asking())
    handlers.note(record.id, "  Nice.  ", None, asking())
    now = context.store.take(record.id)
    assert (now.starred, now.rating, now.note) == (True, 4, "Nice.") and heard == ["Note saved."]
    handlers.note(record.id, "Nice.", None, asking())
    assert heard == ["Note saved."], "nothing was new"
    handlers.star(None, pressed(take=record.id, starred="0"), asking())
    handlers.rate(None, pressed(take=record.id, rating="junk"), asking())
    assert (context.store.take(record.id).starred, context.store.take(record.id).rating) == (False, 0)
    handlers.note(record.id, "x" * 3000, None, asking())
    assert "3000 characters" in heard[-1]
    handlers.note("no id", "x", None, asking())
    assert "is-lit" in history_markup.rating(make_record(rating=2), "en")


# ---- several takes


def test_two_takes_are_compared_at_one_loudness_and_by_what_differs(context: Context) -> None:
    pair = [
        kept(context, seed=1, loudness=-30.0, peak=-18.0, cfg_value=2.0),
        kept(context, seed=2, loudness=-12.0, peak=-1.5, cfg_value=2.0),
    ]
    gains = history_compare.matched_gains(pair)
    played = [record.loudness + gain for record, gain in zip(pair, gains, strict=True)]
    assert abs(played[0] - played[1]) < 0.5
    assert played[0] == pytest.approx(common_target([(-30.0, -18.0), (-12.0, -1.5)]))
    shown = HistoryHandlers(context).compare(None, pressed(takes=[record.id for record in pair]), asking())
    assert shown.count("data-take=") == 2 and "<td>1</td><td>2</td>" in shown and "-30.0 LUFS" in shown
    assert "cfg_value" not in shown.split("vx-table")[1], "it is the same for both"
    twice = HistoryHandlers(context).compare(None, pressed(takes=[pair[0].id, pair[0].id]), asking())
    assert "Text and settings are the same." in twice and "vx-table" not in twice


@pytest.mark.parametrize("ticked", [[], ["20200101-000000-0123456789abcdef"], ["a", "b"], None, "ab"])
def test_a_comparison_needs_two(context: Context, ticked: object, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = said(monkeypatch)
    HistoryHandlers(context).compare(None, pressed(takes=ticked), asking())
    assert heard == ["Select exactly two takes to compare."]


def test_deleted_takes_come_back(context: Context) -> None:
    takes, handlers = [kept(context) for _ in range(3)], HistoryHandlers(context)
    notice, gone = handlers.remove(None, pressed(takes=[takes[0].id, takes[2].id]), asking())
    assert "2 takes deleted" in notice and "Undo" in notice and context.store.count() == 1
    back, left = handlers.undo(gone, None, asking())
    assert "2 takes are back" in back and left == [] and context.store.count() == 3
    assert "Take deleted" in handlers.remove(None, pressed(take=takes[1].id, takes=[takes[0].id]), asking())[0]
    assert context.store.count() == 2 and context.store.take(takes[0].id)


def test_a_zip_has_the_takes_and_their_recipes(context: Context, tmp_path: Path) -> None:
    takes = [kept(context, spoken_text=f"Number {number}") for number in range(2)]
    link = HistoryHandlers(context).bundle(None, pressed(takes=[record.id for record in takes]), asking())
    address = link.split('href="')[1].split('"')[0]
    with TestClient(Starlette(routes=context.media.routes())) as client:
        answer = client.get(address)
        assert client.get(address[:-4] + "AAAA").status_code == 404
    (tmp_path / "a.zip").write_bytes(answer.content)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        wavs = [name for name in archive.namelist() if name.endswith(".wav")]
        assert len(wavs) == 2 and len(archive.read("recipes.csv").decode("utf-8-sig").splitlines()) == 3
        assert archive.read(wavs[0]) in [marked_wav(context.store, record) for record in takes]


def test_prepared_downloads_do_not_pile_up(context: Context) -> None:
    record, handlers = kept(context), HistoryHandlers(context)
    for _ in range(PARCELS_KEPT + 3):
        handlers.bundle(None, pressed(takes=[record.id]), asking())
    assert len(list((context.store.data_dir / "parcels").iterdir())) == PARCELS_KEPT


# ---- whose takes


def test_in_company_nobody_touches_anothers_takes(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = said(monkeypatch)
    shared = Context(context.synthesizer, context.store, context.media, shared=True)
    handlers, mine = HistoryHandlers(shared), kept(context, session=shared.session("me"), spoken_text="A secret.")
    voice = shared.voices.save_from_take(mine.id, "Mine", shared.session("me"))
    assert "A secret." in handlers.listed("", {}, 1, "me", asking()).lanes
    for guess in ("you", None, mine.session):
        assert "A secret." not in handlers.listed("", {}, 1, guess, asking()).lanes
        assert "A secret." not in handlers.show(guess, pressed(take=mine.id), asking()).detail
        handlers.star(guess, pressed(take=mine.id, starred="1"), asking())
        handlers.note(mine.id, "Seen.", guess, asking())
        handlers.remove(guess, pressed(take=mine.id), asking())
        handlers.bundle(guess, pressed(takes=[mine.id]), asking())
        handlers.compare(guess, pressed(takes=[mine.id, mine.id]), asking())
        handlers.save_voice(mine.id, "Stolen", guess, asking())
        replayed = list(ReplayHandlers(shared).replay(guess, pressed(take=mine.id), asking()))
        assert len(replayed) == 1 and "is-error" in replayed[0]
        assert [name for name, _ in VoiceChooser(shared).listed("", guess, asking())["choices"]] == [
            "No voice (the model’s own)"
        ]
        assert VoiceChooser(shared).listed(voice.id, guess, asking())["value"] == ""
    now = context.store.take(mine.id)
    assert (now.starred, now.note) == (False, "") and len(shared.voices.voices()) == 1 and heard
    assert not (context.store.data_dir / "parcels").exists()


# ---- replay


def replayed(context: Context, record: TakeRecord, accept: str = "", **data: str) -> list[str]:
    return list(ReplayHandlers(context).replay(None, pressed(take=record.id, **data), asking(accept)))


def test_a_replay_says_identical_by_hash(context: Context) -> None:
    record = spoken(context)
    shown = replayed(context, record)
    assert "Making it again" in shown[0] and "Identical" in shown[-1] and record.audio_hash[:16] in shown[-1]
    assert 'data-identical="1"' in shown[-1] and context.store.count() == 2


def test_what_has_changed_is_named_before_anything_is_made(context: Context) -> None:
    record = spoken(context)
    context.synthesizer._model.device = "cuda:0"
    shown = replayed(context, record)
    assert len(shown) == 1 and "it was cpu, now it is cuda:0" in shown[0] and "Make it anyway" in shown[0]
    assert "原为 cpu" in replayed(context, record, "zh-CN")[0] and context.store.count() == 1
    assert "Identical" in replayed(context, record, anyway="1")[-1]
    context.synthesizer._model.frequency = 50.0
    other = replayed(context, record, anyway="1")[-1]
    assert "Not identical" in other and "compare_two" in other and 'data-identical="0"' in other


def test_a_missing_reference_is_named_and_nothing_is_made(context: Context) -> None:
    voice = context.voices.save_from_take(spoken(context, "A reference.").id, "Anna", "local")
    record = spoken(context, voice_id=voice.id)
    context.store.clips.path(record.reference_hash).unlink()
    before = context.store.count()
    shown = replayed(context, record)
    assert len(shown) == 1 and "Anna" in shown[0] and "missing" in shown[0] and "anyway" not in shown[0]
    assert context.store.count() == before
    assert "已丢失" in replayed(context, record, "zh-CN")[0]


def test_a_replay_that_breaks_is_a_sentence(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    record = spoken(context)
    assert "There is no take" in list(ReplayHandlers(context).replay(None, pressed(take="x"), asking()))[0]
    monkeypatch.setattr(context.synthesizer, "replay_reasons", lambda *_: 1 / 0)
    assert "unexpected" in replayed(context, record)[0]


# ---- reuse, seeds, voices in a form


def test_reuse_fills_the_tab_that_made_it_and_names_the_voice(context: Context) -> None:
    voice = context.voices.save_from_take(spoken(context, "A reference.").id, "Anna", "local")
    record, handlers = spoken(context, seed=9, voice_id=voice.id), TTSHandlers(context)
    text, _, *rest = handlers.reuse(None, pressed(take=record.id), asking())
    assert text == "Words." and rest[4] == "9" and rest[5]["value"] == voice.id and rest[6]["selected"] == "tts"
    context.voices.delete(voice.id)
    assert handlers.reuse(None, pressed(take=record.id), asking())[7]["value"] == ""
    unknown = kept(context, tab="something new")
    assert handlers.reuse(None, pressed(take=unknown.id), asking())[0] == unknown.typed_text
    for tab in OTHER_TABS:
        assert handlers.reuse(None, pressed(take=kept(context, tab=tab).id), asking())[0] == gr.skip()


def test_seeds_that_did_well_lead_back_to_the_form(context: Context) -> None:
    voice = context.voices.save_from_take(spoken(context, "A reference.").id, "Anna", "local")
    assert "has been rated yet" in listed(context, voice=voice.id).seeds and listed(context).seeds == ""
    good, _ = spoken(context, seed=11, voice_id=voice.id), spoken(context, seed=12, voice_id=voice.id)
    Reviews(context.store).rate(good.id, 5)
    table = listed(context, voice=voice.id).seeds
    assert 'data-seed="11"' in table and 'data-seed="12"' not in table and "5.0" in table and "Anna" in table
    chooser = VoiceChooser(context)
    seed, chosen, tabs = chooser.use_seed(None, pressed(seed="11", voice=voice.id), asking())
    assert (seed, chosen["value"], tabs["selected"]) == ("11", voice.id, "tts")
    assert chooser.use_seed(None, pressed(seed="-1"), asking())[0] == gr.skip()


def test_the_chooser_is_there_for_models_that_take_references(tmp_path: Path) -> None:
    store = Store(tmp_path)
    synthesizer: Synthesizer = ready(store, SineModel(supports_reference=False))
    context = Context(synthesizer, store, Media(store))
    chooser, tab = VoiceChooser(context), TTSHandlers(context)
    assert not chooser.listed("", None, asking())["visible"]
    assert tab.revisited("", None, asking()) == (gr.skip(), gr.skip())
    assert gr.skip() not in tab.revisited("", "me", asking())
    synthesizer._settle(SineModel(), synthesizer.status.__class__(state="ready", supports_reference=True))
    assert chooser.listed("", None, asking())["visible"]
    synthesizer.close()
    store.close()

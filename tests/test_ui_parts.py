"""The page's parts without a browser: words, settings, markup, media, and what a visitor may see."""

from __future__ import annotations

import io
import re
import string
import wave
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from studio import pictures
from studio.events import Finished, ModelStatus, Progress
from studio.hosts import OnlyThisMachine
from studio.store import Store, StoreError
from studio.synthesizer import Synthesizer
from studio.takes import TakeRecord
from studio.ui import i18n, look, markup, picker_markup, take_markup, text_aids
from studio.ui.context import Context
from studio.ui.endpoint import tts_function
from studio.ui.history import HistoryHandlers
from studio.ui.media import Media, file_name, join_wavs, levels, outline, thinned
from studio.ui.picker import PickerHandlers
from studio.ui.picker_takes import facts_of
from studio.ui.settings import SettingError, Settings, default_settings, parse_seed, remember, remembered, summary
from studio.ui.takes_list import TakesHandlers
from studio.ui.tts import TTSHandlers
from tests.fakes import Defaults, SineModel, SpeechRequest
from tests.picker import FakePage
from voxcpm_core.audio import wav_bytes
from voxcpm_core.text import prepare_text

UI = Path(i18n.__file__).parent
READY = ModelStatus(
    state="ready",
    name="nano",
    generation="VoxCPM2",
    device="cpu",
    dtype="float32",
    sample_rate=16000,
    supports_control=True,
    defaults=Defaults(2.0, 10, 0.5),
)


@pytest.fixture
def context(tmp_path: Path):
    store = Store(tmp_path)
    synthesizer = Synthesizer(store, lambda progress: SineModel())
    synthesizer.load()
    assert synthesizer.wait(10).state == "ready"
    yield Context(synthesizer, store, Media(store))
    synthesizer.close()
    store.close()


def take(context: Context, text: str = "Words.", session: str = "local") -> TakeRecord:
    events = context.synthesizer.speak(SpeechRequest(text=text, seed=3), session=session)
    return next(event.record for event in events if isinstance(event, Finished))


def asking(accept: str = "", cookie: str = "") -> SimpleNamespace:
    cookies = {i18n.LANGUAGE_COOKIE: cookie} if cookie else {}
    return SimpleNamespace(headers={"accept-language": accept}, cookies=cookies, session_hash="s1")


# ---- words


def test_every_word_has_both_languages_and_the_same_places_to_fill() -> None:
    for key, (english, chinese) in i18n.WORDS.items():
        assert english.strip() and chinese.strip(), key
        fields = [{name for _, name, _, _ in string.Formatter().parse(text) if name} for text in (english, chinese)]
        assert fields[0] == fields[1], key


def test_every_word_is_used_and_every_used_word_exists() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in UI.glob("*.py") if path.name != "i18n.py")
    built = tuple(re.findall(r"""f["'](\w+_)\{""", source))  # made of a prefix and a value
    for key in i18n.WORDS:
        assert f'"{key}"' in source or f"'{key}'" in source or key.startswith(built) or key.endswith("_info"), key
    for key in re.findall(r'(?:say\(\w+, |label\()"(\w+)"', source):
        assert key in i18n.WORDS, key


def test_all_chinese_locales_are_registered() -> None:
    table = i18n.translations().translations_dict
    assert set(table) == {"en", "zh", "zh-CN", "zh-Hans", "zh-TW", "zh-Hant"}
    assert table["zh-TW"]["generate"] == "生成" and table["en"]["generate"] == "Generate"


@pytest.mark.parametrize(
    ("request_", "language"),
    [
        (None, "en"),
        (asking(), "en"),
        (asking("zh-CN,zh;q=0.9,en;q=0.8"), "zh"),
        (asking("zh-Hant-TW"), "zh"),
        (asking("de,zh;q=0.5"), "en"),
        (asking("zh-CN", cookie="en"), "en"),
        (asking("en", cookie="zh-CN"), "zh"),
    ],
)
def test_the_language_is_the_chosen_one_else_the_browsers(request_, language: str) -> None:
    assert i18n.language_of(request_) == language


def test_loading_is_told_in_both_languages() -> None:
    assert i18n.stage("en", "downloading openbmb/VoxCPM2") == "downloading openbmb/VoxCPM2"
    assert i18n.stage("zh", "downloading openbmb/VoxCPM2") == "下载 openbmb/VoxCPM2"
    assert i18n.stage("zh", "something new") == "something new"


# ---- settings


@pytest.mark.parametrize(
    ("typed", "seed"), [("", None), (None, None), (" 7 ", 7), ("0", 0), ("4294967295", 2**32 - 1), (5, 5), (5.0, 5)]
)
def test_seeds_are_read(typed, seed) -> None:
    assert parse_seed(typed) == seed


@pytest.mark.parametrize("typed", ["-1", "4294967296", "1e3", "0x10", "²", "７", "1 2", "9" * 400, 1.5, -1, 2**53])
def test_other_seeds_are_refused_with_value_and_remedy(typed) -> None:
    with pytest.raises(SettingError) as refusal:
        parse_seed(typed)
    assert str(typed)[:40] in str(refusal.value) and "4294967295" in str(refusal.value)
    assert "种子" in refusal.value.sentence("zh")


def test_settings_are_remembered_per_model() -> None:
    mine = Settings(1.5, 6, 0.7, True, "12")
    kept = remember({"other": {"cfg_value": 3.0}}, READY, mine)
    assert remembered(kept, READY) == mine
    assert kept["other"] == {"cfg_value": 3.0}
    assert remembered({}, READY) == default_settings(READY) == Settings(2.0, 10, 0.5)


@pytest.mark.parametrize(
    "kept", [None, "x", [], {"nano": 5}, {"nano": {"cfg_value": "2", "seed": 4, "normalize": "yes"}}]
)
def test_nonsense_in_the_browser_falls_back_to_the_model(kept) -> None:
    assert remembered(kept, READY) == default_settings(READY)


def test_remembered_values_are_kept_within_the_form() -> None:
    kept = {"nano": {"cfg_value": 99, "inference_timesteps": -4, "temperature": 0, "seed": "99999999999"}}
    assert remembered(kept, READY) == Settings(5.0, 2, 0.1, False, "")


def test_the_summary_names_what_is_set() -> None:
    assert (
        summary(Settings(1.5, 6, 1.0, True, "8"), "en") == "Settings · cfg 1.5 · 6 steps · seed 8 · numbers written out"
    )
    assert "新种子" in summary(Settings(), "zh")


# ---- markup


def test_attributes_and_texts_are_escaped() -> None:
    assert markup.tag("p", "x", title='a"<&', data_take=None, hidden=True) == '<p title="a&quot;&lt;&amp;" hidden>x</p>'
    hostile = '"><script>alert(1)</script>'
    spoken = SimpleNamespace(text=hostile, control=hostile, notes=(hostile,))
    status = ModelStatus(state="failed", message=hostile)
    ready = ModelStatus(state="ready", name=hostile, generation=hostile, notice=hostile)
    pieces = [
        text_aids.preview(spoken, "en"),
        markup.preview_message(hostile, "en"),
        markup.model_card(status, "en"),
        markup.model_card(ready, "en"),
        markup.model_card(ModelStatus(stage=hostile), "en"),
        markup.control_missing(hostile, "en"),
        markup.notice("error", hostile),
    ]
    assert all("<script" not in piece for piece in pieces)


def test_a_hostile_take_stays_text(context: Context) -> None:
    record = take(context, '"><img src=x onerror=alert(1)>')
    for piece in (
        facts_of(record, context, "en"),
        take_markup.lanes([record], context.media, "en", ""),
    ):
        assert "<img src=x" not in piece and "&lt;img src=x" in piece


STATES = "idle waiting unsaved starting speaking stopping stop limit cancelled error".split()


@pytest.mark.parametrize("state", STATES)
def test_every_state_has_a_shape_and_a_word_in_both_languages(state: str) -> None:
    for language in ("en", "zh"):
        line = picker_markup.facts_running(state, language, Progress(0, 3, 0.48, 0.5), seed=9)
        assert f"ic-{markup.STATE_ICONS[state]}" in line and i18n.say(language, f"state_{state}") in line
    shapes = [markup.STATE_ICONS[name] for name in ("stop", "limit", "cancelled", "error")]
    assert len(set(shapes)) == 4


def test_the_model_card_names_what_runs_where() -> None:
    card = markup.model_card(READY, "en")
    assert all(fact in card for fact in ("nano", "VoxCPM2", "cpu", "float32", "16 kHz", "small demonstration voice"))
    assert 'aria-valuenow="40"' in markup.model_card(ModelStatus(stage="weights", fraction=0.4), "en")
    assert "aria-valuenow" not in markup.model_card(ModelStatus(stage="weights"), "en")


@pytest.mark.parametrize(
    ("ended_by", "file_name", "message", "expected"),
    [
        ("stop", "a.wav", "", ""),
        ("stop", "", "The take could not be saved.", "The take could not be saved."),
        ("limit", "a.wav", "Ended at 4096 patches.", "Ended at 4096 patches."),
        ("cancelled", "a.wav", "Stopped on request.", "partial take"),
        ("cancelled", "", "", "Nothing was saved"),
        ("error", "a.wav", "NaN in latents.", "NaN in latents."),
        ("error", "", "", "before any sound"),
    ],
)
def test_an_end_that_is_not_the_models_own_is_explained(context, ended_by, file_name, message, expected) -> None:
    from dataclasses import replace

    record = replace(take(context), ended_by=ended_by, file_name=file_name, message=message)
    said = markup.end_notice(record, "en")
    assert expected in said and bool(said) == bool(expected)


def test_the_preview_tells_the_literal_brackets() -> None:
    shown = text_aids.preview(prepare_text("(1996) was warm."), "en")
    assert "1996, was warm." in shown and "<li>" in shown
    assert "Very short" in text_aids.preview(prepare_text("Hi"), "en")
    assert "45 seconds" in text_aids.preview(prepare_text("A long sentence goes on. " * 60), "en")


def test_lengths_are_estimated_by_script() -> None:
    assert 8 < markup.estimated_seconds("a" * 140) < 12
    assert 6 < markup.estimated_seconds("海" * 30) < 9
    assert markup.estimated_seconds("") == 1.0


def test_the_clock_reads_as_minutes_seconds_tenths() -> None:
    assert [take_markup.clock(s) for s in (0, 6.44, 59.96, 61.25, 3600)] == [
        "0:00.0",
        "0:06.4",
        "1:00.0",
        "1:01.2",
        "60:00.0",
    ]


# ---- media


def test_pieces_join_without_a_sample_lost() -> None:
    samples = np.sin(np.arange(5000) / 9).astype(np.float32) * 0.5
    joined = join_wavs([wav_bytes(part, 16000) for part in np.split(samples, [1, 1000, 3001])])
    with wave.open(io.BytesIO(joined)) as file, wave.open(io.BytesIO(wav_bytes(samples, 16000))) as whole:
        assert file.getparams() == whole.getparams()
        assert file.readframes(9999) == whole.readframes(9999)


def test_outlines_and_levels() -> None:
    assert outline(np.zeros(0, np.float32)) == "" and levels(np.zeros(0, np.float32)) == []
    assert levels(np.array([0, -1, 0.5, 0, 0, 0.25, 0, 0], np.float32)) == [99, 50, 25, 0]
    assert thinned([1, 5, 2, 0, 9], most=2) == [5, 9] and thinned([3, 4], most=2) == [3, 4] and thinned([]) == []
    path = outline(np.concatenate([np.zeros(500), np.full(500, 0.1)]).astype(np.float32), columns=2)
    assert path == "M0.5 0.98V1.02M1.5 0.00V2.00"
    assert outline(np.ones(3, np.float32)).count("M") == 220


def test_download_names_are_safe_everywhere(context: Context) -> None:
    name = file_name(take(context, 'a/b\\c:*?"<>| \u2028 你好 ../../etc'))
    assert re.fullmatch(r"[\w-]+_seed3_\d{8}-\d{6}\.wav", name) and "你好" in name


def test_addresses_differ_between_takes_and_processes(context: Context) -> None:
    first, second = take(context).id, take(context).id
    address = context.media.address(first, "sound")
    assert address != context.media.address(second, "sound").replace(second, first)
    assert address != Media(context.store).address(first, "sound")


# ---- whose takes


def test_alone_one_sees_everything_in_company_ones_own(context: Context) -> None:
    shared = Context(context.synthesizer, context.store, context.media, shared=True)
    mine, yours = (take(context, session=shared.session(owner)) for owner in ("me", "you"))
    assert context.take(yours.id, "me").id == yours.id
    assert shared.take(mine.id, "me").id == mine.id
    with pytest.raises(StoreError):
        shared.take(yours.id, "me")
    with pytest.raises(StoreError):
        shared.take(mine.id, None, asking())
    assert shared.session(None, asking()) == shared.session("s1") and context.session("me") == "local"


def test_nothing_that_is_shown_or_stored_opens_a_visitors_list(context: Context) -> None:
    shared = Context(context.synthesizer, context.store, context.media, shared=True)
    owner = "0123456789abcdef0123456789abcdef"
    record = take(context, "A secret.", session=shared.session(owner))
    lists, history = TakesHandlers(shared), HistoryHandlers(shared)
    assert "A secret." in lists.recent(owner, asking()) and owner not in lists.recent(owner, asking())
    assert "session" not in record.recipe() and owner not in str(record)
    for guess in (record.session, shared.session(record.session), record.id, None, ["x"]):
        assert "A secret." not in history.listed("", {}, 1, guess, asking()).lanes
    stored = (context.store.data_dir / "studio.sqlite3-wal").read_bytes()
    assert record.session.encode() in stored and owner.encode() not in stored


# ---- what may be wrong with a list


@pytest.mark.parametrize("damaged", [b"", b"RIFF", b"no sound at all" * 9])
def test_a_damaged_take_stays_in_the_list_without_a_picture(context: Context, damaged: bytes) -> None:
    whole, broken = take(context, "Whole."), take(context, "Broken.")
    context.store.audio_path(broken.id).write_bytes(damaged)
    lists, history = TakesHandlers(context), HistoryHandlers(context)
    for shown in (lists.recent(None, asking()), history.listed("", {}, 1, None, asking()).lanes):
        assert "Whole." in shown and "Broken." in shown and shown.count('d=""') == 1
    with TestClient(Starlette(routes=context.media.routes())) as client:
        answer = client.get(context.media.address(broken.id, "waveform"))
        assert answer.status_code == 404 and f"audio of take {broken.id} is damaged" in answer.text
        assert client.get(context.media.address(whole.id, "waveform")).status_code == 200


def test_a_search_of_any_length_is_answered(context: Context) -> None:
    take(context, "One word.")
    history = HistoryHandlers(context)
    for query in ("word " * 1200, "\ud800 word"):
        assert "One word." in history.listed(query, {}, 1, None, asking()).lanes
    assert "No take fits" in history.listed("x" * 100_000, {}, 1, None, asking()).lanes


def test_a_list_that_cannot_be_read_is_a_sentence(context: Context) -> None:
    context.store.database.execute("ALTER TABLE takes RENAME TO gone")
    assert "cannot be read" in TakesHandlers(context).recent(None, asking())
    assert "cannot be read" in HistoryHandlers(context).listed("x", {}, 1, None, asking()).lanes


# ---- the tab's events


def asked(context: Context, text: str = "Words.", seed: str = "3", control: str = "") -> FakePage:
    """The page after a click on Generate in the text-to-speech tab."""
    page = FakePage(PickerHandlers(context, "tts"))
    wish = TTSHandlers(context).wish
    page.take_in(page.handlers.wait(page.request))
    make = partial(wish, text, control, "", 1, 2.0, 10, 1.0, False, seed)
    for message in page.handlers.run("new", make, page.takes, None, False, page.ticket, None, page.request):
        page.take_in(message)
    return page


def test_a_text_beyond_all_takes_is_refused_before_any_work(context: Context, monkeypatch) -> None:
    form = TTSHandlers(context).form
    monkeypatch.setattr(context.synthesizer, "preview", lambda *_: pytest.fail("it was computed"))
    assert "too long for one take: split it" in form.preview("a" * 20_001, "", False, asking())
    assert "20,001" in asked(context, "a" * 20_001).notice
    assert "too long" in asked(context, "a", control="b" * 20_000).notice
    monkeypatch.undo()
    assert "20000 characters" in form.preview("a " * 9_999 + "aa", "", False, asking())


def test_a_seed_of_thousands_of_digits_is_refused_and_not_remembered(context: Context) -> None:
    form = TTSHandlers(context).form
    assert "is not a seed" in asked(context, seed="7" * 5000).notice
    kept, panel, _ = form.changed({}, 1, 2.0, 10, 1.0, False, "7" * 5000, asking())
    assert kept["sine"]["seed"] == "" and len(panel["label"]) < 100 and kept["takes"] == 1
    old = {"sine": {"seed": "7" * 5000, "inference_timesteps": float("nan"), "cfg_value": 10**400}, "takes": 99}
    assert remembered(old, context.synthesizer.status) == Settings(5.0, 10, 1.0, False, "")
    assert form.restored(old, asking())[4] == "" and form.restored(old, asking()).takes == 1
    assert form.restored({**old, "takes": 2}, asking()).takes == 2
    assert form.changed({}, 1, None, 10, 1.0, False, "", asking())[0] == gr.skip()


def test_a_take_that_was_not_saved_is_not_done(context: Context, monkeypatch) -> None:
    def full(record, samples):
        raise StoreError("The take could not be saved (no space).")

    monkeypatch.setattr(context.store, "save_take", full)
    end = asked(context)
    assert "Not saved" in end.status and "Done" not in end.status and "no space" in end.facts[0]


def test_lone_surrogates_never_get_to_a_take(context: Context) -> None:
    record = take(context, "Half \ud83d a pair.")
    assert record.file_name and "Half" in record.spoken_text and record.recipe()["typed_text"] == "Half  a pair."
    assert "Half" in TTSHandlers(context).form.preview("Half \ud83d", "\udc00calm", False, asking())


# ---- the endpoint


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"seed": 1.5}, "1.5.*0 to 4294967295"),
        ({"seed": "seven"}, "seven.*0 to 4294967295"),
        ({"seed": True}, "True.*0 to 4294967295"),
        ({"seed": 10**5000}, "large number.*0 to 4294967295"),
        ({"inference_timesteps": 2.5}, "inference_timesteps is a whole number from 2 to 50, not 2.5"),
        ({"inference_timesteps": "ten"}, "inference_timesteps is a whole number from 2 to 50, not ten"),
        ({"cfg_value": {}}, "cfg_value is 1 to 5, not {}"),
        ({"cfg_value": float("nan")}, "cfg_value is 1 to 5, not nan"),
        ({"text": 5}, "text is a text, not 5"),
        ({"control": ["calm"]}, "control is a text, not"),
        ({"normalize": "yes"}, "normalize is true or false, not yes"),
        ({"text": "a" * 20_001}, "too long for one take"),
    ],
)
def test_a_wrong_value_from_a_program_is_named_with_its_range(context: Context, wrong: dict, said: str) -> None:
    tts = tts_function(context, cache="")
    with pytest.raises(gr.Error, match=said):
        tts(**{"text": "Words.", **wrong}, request=asking())
    assert context.store.count() == 0


# ---- whom the page answers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:7860", 200),
        ("127.0.0.1:7860", 200),
        ("[::1]:7860", 200),
        ("attacker.example", 403),
        ("attacker.example:7860", 403),
        ("127.0.0.1.attacker.example", 403),
        ("localhost.attacker.example", 403),
        ("[::1].attacker.example@x", 403),
        ("", 403),
    ],
)
def test_a_page_for_this_machine_answers_to_its_names_only(host: str, status: int) -> None:
    page = Starlette(routes=[Route("/", lambda request: PlainTextResponse("here"))])
    answer = TestClient(OnlyThisMachine(page)).get("/", headers={"Host": host})
    assert answer.status_code == status


# ---- look


def test_every_token_that_is_used_is_defined_for_light_and_dark() -> None:
    css = look.gathered("css")
    light, dark = css.split(":root {")[1].split("}")[0], css.split(".dark {")[1].split("}")[0]
    sizes = set(re.findall(r"--vx-([\w-]+): \d+px", css))  # the same in both
    used = set(re.findall(r"var\(--vx-([\w-]+)\)", css)) | set(look.TOKENS.values())
    for token in used:
        assert token in sizes or (f"--vx-{token}:" in light and f"--vx-{token}:" in dark), token
    rules = css.split("/* Icons")[1].split("/* The frame */")[1]
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[;, )])", re.sub(r"#000", "", rules)), "a colour that is not a token"


def test_every_icon_that_is_used_is_drawn() -> None:
    css = look.gathered("css")
    source = "\n".join(path.read_text(encoding="utf-8") for path in UI.glob("*.py"))
    names = set(re.findall(r'icon\("(\w+)"\)', source)) | set(markup.STATE_ICONS.values()) | {"info", "pause"}
    for name in names:
        drawn = re.search(rf"\.ic-{name}\b[^{{]*{{ --ic: var\((--ic-[\w-]+)\)", css)
        assert drawn and f"{drawn[1]}:" in css, name
    for name in re.findall(r"ib-(\w+)", source):
        assert f".ib-{name}" in css, name


def test_the_playhead_runs_on_the_pictures_time_axis() -> None:
    css = look.gathered("css")
    left, right = 100 * pictures.LEFT / pictures.WIDTH, 100 * pictures.RIGHT / pictures.WIDTH
    assert f".vx-tracks .vx-span {{ left: {left:g}%; right: {right:g}%; }}" in css
    lane = pictures.WIDTH - pictures.LEFT - pictures.RIGHT
    for height in (pictures.WAVEFORM_HEIGHT, pictures.SPECTROGRAM_HEIGHT):
        assert f"aspect-ratio: {pictures.WIDTH} / {height};" in css
        assert f"aspect-ratio: {lane} / {height - pictures.TOP - pictures.BOTTOM};" in css


def test_the_theme_accepts_every_token() -> None:
    assert isinstance(look.theme(), gr.themes.Base)
    assert "@logo@" not in look.head() and "https://" not in look.head().replace("http://www.w3.org", "")

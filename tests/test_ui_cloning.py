"""The Cloning tab without a browser: what reaches the synthesizer, and what belongs to which clip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.clips import Clip
from studio.reference_checks import check_reference
from studio.store import Store
from studio.synthesizer import Synthesizer
from studio.transcripts import Transcript, Word
from studio.ui import cloning_clip, cloning_markup
from studio.ui.cloning import CloneForm, CloningHandlers
from studio.ui.cloning_clip import ClipState, Version
from studio.ui.cloning_desk import Desk, DeskHandlers, recogniser_state
from studio.ui.context import Context
from studio.ui.media import Media
from studio.ui.picker import PickerHandlers, Wish
from studio.ui.settings import SettingError
from tests import clips
from tests.fakes import SineModel
from tests.picker import FakePage, asking
from voxcpm_core import Audio
from voxcpm_core.audio import content_hash, write_wav

RATE = 24_000
WORDS = "These are the words of the clip."


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    store = Store(tmp_path)
    synthesizer = Synthesizer(store, lambda progress: SineModel())
    synthesizer.load()
    synthesizer.wait(30)
    yield Context(synthesizer, store, Media(store, synthesizer.voices))
    synthesizer.close()
    store.close()


def sound(seed: int = 0, seconds: float = 2.0) -> Audio:
    noise = np.random.default_rng(seed).standard_normal(round(seconds * RATE)).astype(np.float32)
    return Audio(0.1 * noise, RATE)


def state_of(context: Context, audio: Audio, speech: float = 2.0) -> ClipState:
    version = Version(context.store.clips.keep(audio), audio.seconds, speech)
    return ClipState(version, version)


def form(state: ClipState | None, **changes: Any) -> list[Any]:
    """The page's fields in their order; a clip with everything that is needed, unless changed."""
    fields = CloneForm(
        mode="controllable",
        source="clip",
        voice="",
        clip_hash=state.current.hash if state else "",
        transcript=WORDS,
        both=True,
        consent=True,
        control="slowly",
        text="Say this.",
        takes=1,
        cfg_value=2.0,
        inference_timesteps=10,
        temperature=1.0,
        normalize=False,
        seed="7",
        adapter="",
        strength=1.0,
        adapter_on=True,
        clip=state,
        owner=None,
    )
    return list(vars(replace(fields, **changes)).values())


def sent(context: Context, wish: Wish) -> Any:
    """The request as it reaches the model, after a run of the picker."""
    page = FakePage(PickerHandlers(context, "cloning"))
    for message in page.handlers.run("new", lambda: wish, page.takes, None, False, "t", None, asking()):
        page.take_in(message)
    model = context.synthesizer._ready_model()
    return model.requests[-1], context.store.take(page.takes[0])


# ---- modes, and what they leave behind


def test_controllable_sends_the_clip_and_the_control_and_no_words(context: Context) -> None:
    audio = sound()
    request, record = sent(context, CloningHandlers(context).wish(*form(state_of(context, audio))))
    assert content_hash(request.reference_wav_path) == content_hash(audio)
    assert request.prompt_wav_path is None and request.prompt_text is None
    assert request.control == "slowly"
    assert record.tab == "cloning" and record.reference_hash == content_hash(audio) and not record.prompt_hash


@pytest.mark.parametrize("both", [False, True])
def test_ultimate_sends_the_clip_with_its_words_and_no_control(context: Context, both: bool) -> None:
    audio = sound()
    wish = CloningHandlers(context).wish(*form(state_of(context, audio), mode="ultimate", both=both))
    request, record = sent(context, wish)
    assert content_hash(request.prompt_wav_path) == content_hash(audio) and request.prompt_text == WORDS
    assert (request.reference_wav_path is not None) is both
    assert request.control == "" and record.prompt_hash == content_hash(audio)


def test_an_adapter_goes_with_a_clip_or_is_a_voice_of_its_own(context: Context) -> None:
    folder = context.store.data_dir / "adapters" / "anna"
    folder.mkdir(parents=True)
    (folder / "lora_weights.safetensors").write_bytes(b"weights")
    handlers, state = CloningHandlers(context), state_of(context, sound())
    request, record = sent(context, handlers.wish(*form(state, adapter="anna", strength=0.7)))
    assert request.lora == str(folder) and request.reference_wav_path is not None
    assert (record.lora_name, record.lora_strength) == ("anna", 0.7)
    request, record = sent(context, handlers.wish(*form(state, adapter="anna", adapter_on=False)))
    assert request.lora == "" and record.lora_name == ""
    alone = {"source": "adapter", "adapter": "anna", "mode": "ultimate"}
    request, record = sent(context, handlers.wish(*form(state, **alone)))
    assert (request.reference_wav_path, request.prompt_wav_path, request.prompt_text) == (None, None, None)
    assert request.control == "slowly" and record.lora_name == "anna" and any("Consent" in n for n in record.notes)
    for changes, key in (
        ({"adapter": ""}, "ask_adapter"),
        ({"adapter_on": False}, "ask_adapter"),
        ({"consent": False}, "ask_consent"),
    ):
        with pytest.raises(SettingError) as refused:
            handlers.wish(*form(state, **{**alone, **changes}))
        assert refused.value.key == key


def test_the_adapters_own_voice_is_offered_where_there_is_one(context: Context) -> None:
    handlers = CloningHandlers(context)
    assert [value for _, value in handlers.sources("adapter", asking())["choices"]] == ["clip", "voice"]
    assert handlers.sources("adapter", asking())["value"] == "clip"
    (context.store.data_dir / "adapters" / "anna").mkdir(parents=True)
    (context.store.data_dir / "adapters" / "anna" / "lora_weights.safetensors").write_bytes(b"weights")
    assert handlers.sources("adapter", asking())["value"] == "adapter"
    shown = handlers.arranged("ultimate", "adapter", asking())
    assert shown.control["visible"] and not shown.mode["visible"] and "voice of its own" in shown.about
    hidden = (shown.clip_part, shown.voice_part, shown.words_part, shown.both)
    assert not any(part["visible"] for part in hidden)


def test_a_clip_that_is_not_shown_is_not_sent(context: Context) -> None:
    clip, saved = sound(1), sound(2)
    voice = context.voices.save_clip(saved, "Anna", "local", transcript="Anna's own words.", consent=True)
    handlers, state = CloningHandlers(context), state_of(context, clip)
    by_voice = {"source": "voice", "voice": voice.id, "consent": False}
    request, record = sent(context, handlers.wish(*form(state, **by_voice)))
    assert content_hash(request.reference_wav_path) == content_hash(saved) and request.prompt_text is None
    assert record.voice == voice.id
    request, record = sent(context, handlers.wish(*form(state, mode="ultimate", **by_voice)))
    assert content_hash(request.prompt_wav_path) == content_hash(saved)
    assert content_hash(request.reference_wav_path) == content_hash(saved)
    assert request.prompt_text == "Anna's own words.", "the words of the clip in the other field"
    request, record = sent(context, handlers.wish(*form(state, voice=voice.id)))
    assert content_hash(request.reference_wav_path) == content_hash(clip) and not record.voice


def test_what_the_model_cannot_do_is_hidden_with_a_reason(tmp_path: Path) -> None:
    store = Store(tmp_path)
    model = SineModel(generation="VoxCPM1.5", supports_control=False, supports_reference=False)
    synthesizer = Synthesizer(store, lambda progress: model)
    synthesizer.load()
    synthesizer.wait(30)
    context = Context(synthesizer, store, Media(store))
    handlers, state = CloningHandlers(context), state_of(context, sound())
    shown = handlers.arranged("controllable", "clip", asking())
    assert shown.mode["value"] == "ultimate" and [value for _, value in shown.mode["choices"]] == ["ultimate"]
    assert not shown.both["visible"] and not shown.control["visible"] and shown.words_part["visible"]
    assert "VoxCPM1.5 takes no reference clip" in shown.about
    with pytest.raises(SettingError, match=r"VoxCPM1\.5 takes no reference"):
        handlers.wish(*form(state))
    request, _ = sent(context, handlers.wish(*form(state, mode="ultimate", both=True)))
    assert request.reference_wav_path is None and request.prompt_text == WORDS
    synthesizer.close()
    store.close()


def test_ultimate_says_why_there_is_no_control_text(context: Context) -> None:
    shown = CloningHandlers(context).arranged("ultimate", "clip", asking())
    assert not shown.control["visible"] and "control text has no effect" in shown.about
    assert "风格说明" in CloningHandlers(context).arranged("ultimate", "clip", asking("zh-CN")).about


def test_the_words_are_compared_with_what_the_recogniser_heard(context: Context) -> None:
    desk, state = DeskHandlers(context), state_of(context, sound())
    said = tuple(Word(word, at, at + 0.2) for at, word in enumerate(WORDS.split()))
    found = Transcript(WORDS, state.current.hash, "en", said)
    kept, note, notice = desk.compared(found, WORDS, state, asking())
    assert 'data-check="words" data-verdict="ok"' in note and notice == ""
    note = desk.note("Nobody spoke of trees.", kept, asking())
    assert 'data-check="words" data-verdict="fail"' in note and "It heard: These are the words" in note
    assert "识别为：These are the words" in desk.note("Nobody spoke of trees.", kept, asking("zh"))
    assert "data-check" not in desk.note(WORDS, state, asking()), "nobody has listened yet"
    late = desk.compared(found, WORDS, state_of(context, sound(5)), asking())
    assert "used" in late[2] and "words" not in str(late[1])


# ---- files as people have them

FILES = {
    "手机 录音 (1).m4a": ("-c:a", "aac"),
    "voice.mp3": ("-c:a", "libmp3lame", "-b:a", "128k"),
    "message.opus": ("-c:a", "libopus", "-ar", "48000"),
    "телефон.wav": ("-ar", "8000"),
    "cinema.wav": ("-ac", "6", "-ar", "48000", "-c:a", "pcm_s24le"),
    "it's 50%20.ogg": ("-c:a", "libvorbis"),
}


@pytest.mark.parametrize("name", FILES)
def test_any_file_becomes_the_clip_and_is_left_as_it_is(context: Context, tmp_path: Path, name: str) -> None:
    write_wav(tmp_path / "source.wav", sound().samples, RATE)
    path = tmp_path / "uploads" / name
    path.parent.mkdir()
    clips.run_ffmpeg("-i", tmp_path / "source.wav", *FILES[name], path)
    before = path.read_bytes()
    *_, last = DeskHandlers(context).take_in(str(path), asking())
    audio = context.store.clips.audio(last.clip_hash)
    assert abs(audio.seconds - 2.0) < 0.16 and audio.samples.ndim == 1
    assert 0.01 < np.std(audio.samples) < 0.2, "neither doubled nor lost in the mix of its channels"
    assert audio.sample_rate == (8000 if "8000" in FILES[name] else audio.sample_rate)
    assert path.read_bytes() == before and last.upload is None and last.transcript == ""


# ---- consent


def test_nothing_is_cloned_without_consent(context: Context) -> None:
    handlers, state = CloningHandlers(context), state_of(context, sound())
    for mode in ("controllable", "ultimate"):
        with pytest.raises(SettingError, match="Nothing is cloned without consent"):
            handlers.wish(*form(state, mode=mode, consent=False))
    _, record = sent(context, handlers.wish(*form(state)))
    assert any("Consent" in note for note in record.notes)


def test_a_saved_voice_needs_consent_unless_it_was_given_or_is_made_up(context: Context) -> None:
    handlers = CloningHandlers(context)

    def wish(ticked: bool, **facts: Any) -> Wish:
        voice = context.voices.save_clip(sound(), "Voice", "local", number_taken_names=True, **facts)
        return handlers.wish(*form(None, source="voice", voice=voice.id, consent=ticked))

    with pytest.raises(SettingError, match="without consent"):
        wish(False, source="clip")
    with pytest.raises(SettingError, match="without consent"):
        wish(False, source="bundle", consent=False)
    assert wish(True, source="clip").options["voice_as"] == "reference"
    assert wish(False, source="clip", consent=True) and wish(False, source="design")


# ---- words belong to a clip


def test_a_click_that_waited_finds_its_clip_gone(context: Context) -> None:
    before, now = state_of(context, sound(1)), state_of(context, sound(2))
    with pytest.raises(SettingError, match="changed while this waited"):
        CloningHandlers(context).wish(*form(now, mode="ultimate", clip_hash=before.current.hash))
    with pytest.raises(SettingError, match="no clip yet"):
        CloningHandlers(context).wish(*form(None, mode="ultimate"))


@pytest.mark.parametrize(("words", "speech"), [("123", 30.0), ("word " * 120, 3.0)])
def test_words_that_cannot_be_the_clips_are_refused(context: Context, words: str, speech: float) -> None:
    state = state_of(context, sound(), speech)
    with pytest.raises(SettingError, match="belong to another clip"):
        CloningHandlers(context).wish(*form(state, mode="ultimate", transcript=words))
    assert "is-fail" in DeskHandlers(context).note(words, state, asking())
    assert CloningHandlers(context).wish(*form(state, transcript=words)), "controllable cloning sends no words"


@pytest.mark.parametrize("words", ["", "  \n"])
def test_ultimate_asks_for_the_words(context: Context, words: str) -> None:
    with pytest.raises(SettingError, match="exact words"):
        CloningHandlers(context).wish(*form(state_of(context, sound()), mode="ultimate", transcript=words))
    voice = context.voices.save_clip(sound(), "No words", "local", consent=True)
    with pytest.raises(SettingError, match="without the words"):
        CloningHandlers(context).wish(*form(None, mode="ultimate", source="voice", voice=voice.id))


def test_late_words_of_another_clip_are_dropped(context: Context) -> None:
    first, second = state_of(context, sound(1)), state_of(context, sound(2))
    found = Transcript("Heard.", first.current.hash, "en", (Word("Heard.", 0.0, 1.0),))
    desk = DeskHandlers(context)
    state, text, _, said = desk.heard(found, second, asking())
    assert not isinstance(state, ClipState) and text != "Heard." and "changed meanwhile" in said
    state, text, note, _ = desk.heard(found, first, asking())
    assert text == "Heard." and state.current.transcript == found and note


# ---- the clip itself


@pytest.fixture(scope="module")
def speech() -> Audio:
    return clips.clip("clean")


def taken_in(context: Context, path: Path) -> Desk:
    *_, last = DeskHandlers(context).take_in(str(path), asking())
    return last


def test_a_new_clip_clears_what_belonged_to_the_old_one(context: Context, speech: Audio, tmp_path: Path) -> None:
    write_wav(tmp_path / "b.wav", speech.samples, speech.sample_rate)
    first, last = DeskHandlers(context).take_in(str(tmp_path / "b.wav"), asking())
    assert (first.state, first.clip_hash, first.transcript, first.consent) == (None, "", "", False)
    assert last.transcript == "" and last.state.current.hash == last.clip_hash
    assert 'class="vx-refs"' in last.card and 'data-verdict="ok"' in last.card
    gone = DeskHandlers(context).emptied(asking())
    assert (gone.state, gone.transcript, gone.consent) == (None, "", False)


def test_what_is_no_recording_is_a_sentence(context: Context, tmp_path: Path) -> None:
    fake, silent = tmp_path / "voice.wav", tmp_path / "silent.wav"
    fake.write_text("not a sound")
    write_wav(silent, np.zeros(RATE * 3, np.float32), RATE)
    for path in (fake, silent, tmp_path / "missing.wav"):
        shown = taken_in(context, path)
        assert shown.state is None and "is-error" in shown.notice and "Traceback" not in shown.notice


def test_steps_make_new_clips_and_the_original_comes_back(context: Context, speech: Audio) -> None:
    padded = Audio(np.pad(speech.samples, (0, 6 * speech.sample_rate)), speech.sample_rate)
    report = check_reference(padded)
    version = cloning_clip._version(Clip.of(padded), report, context.store.clips)
    state, desk = ClipState(version, version), DeskHandlers(context)
    assert version.worth_cutting
    *_, trimmed = desk.improve("trim", state, version.hash, "Typed by hand without times.", asking())
    assert trimmed.transcript == "" and "transcript was cleared" in trimmed.notice
    assert trimmed.state.current.seconds < version.seconds and trimmed.state.original.hash == version.hash
    assert trimmed.card.count("data-clip=") == 2, "both are to be heard"
    *_, levelled = desk.improve("level", trimmed.state, trimmed.clip_hash, "New words.", asking())
    assert levelled.transcript == "New words.", "a level changes no words"
    choices = levelled.state.stored_choices()
    assert choices["original"] == version.hash
    assert [step["step"] for step in choices["steps"]] == ["trim", "remove_dc", "level"]
    back = desk.undo(levelled.state, asking())
    assert back.clip_hash == version.hash and back.transcript == "Typed by hand without times."
    assert list(desk.improve("level", levelled.state, version.hash, "", asking())) == [Desk()], "of another clip"


def test_recognised_words_are_cut_with_the_clip(context: Context, speech: Audio) -> None:
    state = state_of(context, speech)
    first = replace(state.current, cut=(0.0, 2.0))
    words = (Word("One", 0.5, 1.0), Word("two", 1.2, 1.6), Word("three", 2.5, 3.0))
    first = replace(first, transcript=Transcript("One two three", first.hash, "en", words))
    *_, made = DeskHandlers(context).improve("trim", ClipState(first, first), first.hash, "One, two three", asking())
    assert made.transcript == "One, two" and "cut with the clip" in made.notice


def test_a_clip_is_saved_as_a_voice_with_all_that_is_known(context: Context, speech: Audio) -> None:
    desk, state = DeskHandlers(context), state_of(context, speech, speech=8.0)
    digest = state.current.hash
    refused = [
        (("Anna", None, "", "", True), "no clip yet"),
        (("Anna", state, "another", "", True), "changed while"),
        (("Anna", state, digest, "", False), "without consent"),
        ((" ", state, digest, "", True), "Give the voice a name"),
        (("Anna", state, digest, "word " * 300, True), "belong to another clip"),
    ]
    for values, sentence in refused:
        notice, name = desk.save(*values, None, asking())
        assert sentence in notice and name != ""
    assert context.voices.voices() == []
    notice, name = desk.save("Anna", state, digest, clips.SENTENCES[0], True, None, asking())
    (voice,) = context.voices.voices()
    assert name == "" and "Anna" in notice
    assert (voice.consent, voice.transcript, voice.audio_hash) == (True, clips.SENTENCES[0], digest)
    assert "already" in desk.save("Anna", state, digest, "", True, None, asking())[0]


def test_the_recogniser_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.transcription.available", lambda: (False, "pip install it"))
    able, said = recogniser_state("base")
    assert not able and "pip install it" in said("en")
    monkeypatch.setattr("studio.transcription.available", lambda: (True, ""))
    assert recogniser_state("base")[0] and "base" in recogniser_state("base")[1]("zh")
    able, said = recogniser_state(str(tmp_path))
    assert not able and str(tmp_path) in said("en")
    (tmp_path / "model.bin").touch()
    assert recogniser_state(str(tmp_path))[0]


@pytest.mark.parametrize("name", ["clipped", "hum", "cut in mid-word"])
def test_every_line_of_the_card_has_words_in_both_languages(name: str) -> None:
    report = check_reference(clips.clip(name))
    for language in ("en", "zh"):
        card = cloning_markup.checks(report.checks, language)
        for line in report.checks:
            if line.name not in cloning_markup.NOT_SHOWN:
                assert f'data-check="{line.name}" data-verdict="{line.verdict}"' in card
    assert not any(check.advice and check.advice in card for check in report.checks if check.verdict != "ok")

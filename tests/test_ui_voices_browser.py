"""Saved voices as their users have them: a real server, a real browser; once with the embedded model and a restart."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from studio.takes import TakeRecord
from studio.voices import Voice
from tests.browser import SpiedModel, Studio, chromium, open_tab, opened, running_studio, speak, wait_for_state
from tests.fakes import SpeechRequest
from tests.records import takes_of
from voxcpm_core import VoxCPM

# A busy machine can come between a browser and its page: such a test may have a second try, which the summary shows.
pytestmark = [pytest.mark.browser, pytest.mark.flaky(reruns=1)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with running_studio(tmp_path / "data") as studio:
        assert studio.synthesizer.wait(20).state == "ready"
        yield studio


def spoken(studio: Studio, text: str, session: str = "local") -> TakeRecord:
    return takes_of(studio.synthesizer.speak(SpeechRequest(text=text, seed=3), session=session))[0]


def saved(studio: Studio, name: str, session: str = "local") -> Voice:
    return studio.synthesizer.voices.save_from_take(spoken(studio, f"This is {name}.", session).id, name, session)


def cards(page: Page, *names: str) -> None:
    """Wait until exactly these voices are shown."""
    page.wait_for_function(
        "(names) => [...document.querySelectorAll('#vx-voices .vx-voiceopen')].map((e) => e.innerText).join() == names",
        arg=",".join(names),
    )


def show(page: Page, name: str) -> None:
    page.click(f"#vx-voices .vx-voiceopen:has-text('{name}')")
    page.wait_for_selector(f"#vx-voice-detail h2:text-is('{name}')")


def choose(page: Page, name: str) -> None:
    """Choose a voice in the text-to-speech tab."""
    page.click("#vx-voice input")
    page.click(f"#vx-voice [role=option]:has-text('{name}')")
    page.wait_for_function("(name) => document.querySelector('#vx-voice input').value === name", arg=name)


def lane(record: TakeRecord) -> str:
    return f"#vx-history .vx-lane[data-take='{record.id}']"


def test_voices_are_found_renamed_tagged_deleted_and_brought_back(studio: Studio, browser: Browser) -> None:
    anna = saved(studio, "Anna")
    saved(studio, "Bert")
    with opened(browser, studio.url) as page:
        open_tab(page, "voices")
        cards(page, "Anna", "Bert")
        show(page, "Anna")
        page.click("#vx-voice-edit > button")
        page.fill("#vx-voice-rename input, #vx-voice-rename textarea", "Zoe")
        page.fill("#vx-voice-newtags input, #vx-voice-newtags textarea", "warm, slow")
        page.click("#vx-voice-save")
        cards(page, "Bert", "Zoe")
        now = studio.synthesizer.voices.voice(anna.id)
        assert (now.name, now.tags) == ("Zoe", ("warm", "slow"))
        page.click("#vx-voice-tags [data-tag=slow]")
        cards(page, "Zoe")
        page.click("#vx-voice-tags [data-tag='']")
        page.fill("#vx-voice-search textarea, #vx-voice-search input", "bert")
        cards(page, "Bert")
        page.fill("#vx-voice-search textarea, #vx-voice-search input", "")
        cards(page, "Bert", "Zoe")
        page.click("#vx-voice-detail [data-do=remove]")
        cards(page, "Bert")
        page.click("#vx-voices-notice [data-do=undo]")
        cards(page, "Bert", "Zoe")
        page.click("#vx-voices .vx-voice >> nth=1 >> .vx-play")
        page.wait_for_selector(f"#vx-voices .vx-voice.is-active[data-voice='{anna.id}']")


def test_a_bundle_goes_out_and_comes_in_again(studio: Studio, browser: Browser, tmp_path: Path) -> None:
    anna = saved(studio, "Anna")
    saved(studio, "Bert")
    with opened(browser, studio.url) as page:
        open_tab(page, "voices")
        cards(page, "Anna", "Bert")
        page.check(f"#vx-voices .vx-voicetick[value='{anna.id}']")
        with page.expect_download() as started:
            page.click("#vx-voice-export [data-do=export]")
        path = tmp_path / started.value.suggested_filename
        started.value.save_as(path)
        with zipfile.ZipFile(path) as bundle:
            sounds = [name for name in bundle.namelist() if name.endswith(".wav")]
            assert [bundle.read(name) for name in sounds] == [
                studio.synthesizer.voices.audio_path(anna.id).read_bytes()
            ]
        page.set_input_files("#vx-voice-import input[type=file], input[type=file]", path)
        page.wait_for_selector("#vx-voices-notice >> text=Imported: Anna 2.")
        cards(page, "Anna", "Anna 2", "Bert")
        (tmp_path / "evil.zip").write_bytes(b"PK no zip at all")
        page.set_input_files("#vx-voice-import input[type=file], input[type=file]", tmp_path / "evil.zip")
        page.wait_for_selector("#vx-voices-notice .is-error >> text=zip")
        cards(page, "Anna", "Anna 2", "Bert")


def test_a_voice_is_tried_while_it_streams_and_used_in_the_form(studio: Studio, browser: Browser) -> None:
    anna = saved(studio, "Anna")
    studio.model.patch_delay = 0.05
    with opened(browser, studio.url) as page:
        open_tab(page, "voices")
        cards(page, "Anna")
        show(page, "Anna")
        page.fill("#vx-try-text textarea", "Speak forever in this voice.")
        page.click("#vx-try")
        page.wait_for_function("document.querySelector('#vx-try-live audio')?.currentTime > 0.05")
        page.click("#vx-try-stop")
        page.wait_for_selector("#vx-trial .vx-lane")
        tried = studio.store.takes(limit=1)[0]
        assert (tried.tab, tried.voice, tried.ended_by) == ("voices", anna.id, "cancelled")
        page.wait_for_selector("#vx-try:not([disabled])")
        studio.model.patch_delay = 0.0
        page.click("#vx-voice-detail [data-do=use]")
        page.wait_for_function("document.querySelector('#vx-voice input')?.value === 'Anna'")
        used = studio.store.take(speak(page, "Used in the form."))
    assert used.voice == anna.id and used.mode == "reference" and used.reference_name == "Anna"


def test_a_generation_without_references_says_so(tmp_path: Path, browser: Browser) -> None:
    model = SpiedModel(generation="VoxCPM1.5", supports_reference=False)
    with running_studio(tmp_path, model) as studio:
        studio.synthesizer.wait(20)
        saved(studio, "Anna")
        with opened(browser, studio.url) as page:
            assert not page.is_visible("#vx-voice")
            open_tab(page, "voices")
            cards(page, "Anna")
            show(page, "Anna")
            assert "VoxCPM1.5 cannot take a reference" in page.inner_text("#vx-voice-unsupported")
            assert page.is_disabled("#vx-try")


def test_on_a_phone_nothing_is_cut_off_and_everything_has_a_name(studio: Studio, browser: Browser) -> None:
    saved(studio, "A voice with a rather long name that goes on and on until the end")
    size = {"width": 390, "height": 844}
    with opened(browser, studio.url, viewport=size, locale="zh-CN", has_touch=True) as page:
        open_tab(page, "voices")
        page.wait_for_selector("#vx-voices .vx-voice")
        page.click("#vx-voices .vx-voiceopen")
        page.wait_for_selector("#vx-voice-detail .vx-voicecard")
        assert page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)") <= 390
        assert all(word in page.inner_text("body") for word in ("导入声音包", "用于文本转语音", "用文本试用"))
        nameless = page.evaluate("""
            [...document.querySelectorAll('button, a[href], input:not([type=file]), textarea, [role=slider]')]
              .filter((e) => e.checkVisibility({ visibilityProperty: true }))
              .filter((e) => !(e.innerText?.trim() || e.ariaLabel || e.title || e.placeholder || e.labels?.length))
              .map((e) => e.outerHTML.slice(0, 200))""")
        assert nameless == []


def test_in_company_everybody_has_voices_and_takes_of_their_own(tmp_path: Path, browser: Browser) -> None:
    with running_studio(tmp_path, shared=True) as studio:
        studio.synthesizer.wait(20)
        with opened(browser, studio.url) as one, opened(browser, studio.url) as two:
            mine = studio.store.take(speak(one, "Only mine."))
            assert mine.session != "local"
            studio.synthesizer.voices.save_from_take(mine.id, "Mine", mine.session)
            for page, lanes, names in ((one, 1, ["Mine"]), (two, 0, [])):
                page.reload()
                page.wait_for_selector("#vx-generate:not([disabled])")
                open_tab(page, "history")
                page.wait_for_selector("#vx-history .vx-lane" if lanes else "#vx-history .vx-none")
                assert page.locator("#vx-history .vx-lane").count() == lanes
                open_tab(page, "voices")
                page.wait_for_selector("#vx-voices .vx-voice, #vx-voices .vx-voices-empty")
                assert page.locator("#vx-voices .vx-voiceopen").all_inner_texts() == names
            assert mine.id not in two.content() and "Mine" not in two.content()


@pytest.mark.slow
def test_from_a_take_to_a_voice_that_outlives_the_server(tmp_path: Path, browser: Browser, torch_threads: int) -> None:
    """The embedded model: take, voice, use, restart, replay; then the reference is gone."""

    def load(progress) -> VoxCPM:
        return VoxCPM.from_pretrained("nano", device="cpu", on_progress=progress)

    with running_studio(tmp_path, load=load) as studio:
        assert studio.synthesizer.wait(120).state == "ready"
        with opened(browser, studio.url) as page:
            source = studio.store.take(speak(page, "Good morning. The library opens at nine.", seed=21))
            open_tab(page, "history")
            page.click(f"{lane(source)} [data-do=show]")
            page.wait_for_selector("#vx-detail .vx-detail")
            page.fill("#vx-voice-name input, #vx-voice-name textarea", "Librarian")
            page.click("#vx-save-voice")
            page.wait_for_selector("text=Librarian is in Voices")
            open_tab(page, "tts")
            choose(page, "Librarian")
            used = studio.store.take(speak(page, "And now for something else.", seed=5))
    assert used.voice and used.mode == "reference" and used.reference_name == "Librarian"
    with running_studio(tmp_path, load=load) as studio:
        assert studio.synthesizer.wait(120).state == "ready"
        with opened(browser, studio.url) as page:
            open_tab(page, "voices")
            cards(page, "Librarian")
            open_tab(page, "history")
            page.click(f"{lane(used)} [data-do=show]")
            page.wait_for_selector("#vx-detail .vx-detail")
            page.click("#vx-detail [data-do=replay]")
            page.wait_for_selector("#vx-replay [data-identical='1']")
            again = studio.store.take(page.get_attribute("#vx-replay [data-identical]", "data-made"))
            assert again.audio_hash == used.audio_hash and again.replay_of == used.id
            page.click(f"{lane(used)} [data-do=reuse]")
            page.wait_for_function("document.querySelector('#vx-voice input')?.value === 'Librarian'")
            wait_for_state(page, "idle")
            studio.store.clips.path(used.reference_hash).unlink()
            open_tab(page, "history")
            page.click("#vx-detail [data-do=replay]")
            page.wait_for_selector("#vx-replay .is-error")
            words, count = page.inner_text("#vx-replay"), studio.store.count()
            assert "reference clip Librarian is missing" in words and count == 3, "something was made all the same"

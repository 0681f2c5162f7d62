"""The Voice Design tab and its endpoint: a real server, a real browser, a model that speaks in sine waves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gradio_client import Client
from playwright.sync_api import Browser

from studio.export_takes import marked_wav
from studio.ui.design_examples import DESCRIPTIONS, DIALECTS
from tests.browser import SpiedModel, Studio, chromium, open_tab, opened, running_studio
from tests.picker import design, facts, fill, lane, to_tab

# A busy machine can come between a browser and its page: such a test may have a second try, which the summary shows.
pytestmark = [pytest.mark.browser, pytest.mark.flaky(reruns=1)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def module_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running_studio(tmp_path_factory.mktemp("design"), SpiedModel()) as studio:
        yield studio


@pytest.fixture
def studio(module_studio: Studio) -> Studio:
    """The module's studio with its model as it was made."""
    fresh = SpiedModel()
    for name in ("patch_delay", "frequency", "lengths"):
        setattr(module_studio.model, name, getattr(fresh, name))
    return module_studio


def test_examples_fill_the_form_and_the_preview_tells(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        for chip in ("Storyteller", "温柔"):
            page.click(f"#vx-design-chips button >> text={chip}")
            page.wait_for_function(
                "(control) => document.querySelector('#vx-design-control textarea').value === control",
                arg=DESCRIPTIONS[chip],
            )
        page.wait_for_selector("#vx-design-preview .vx-spoken")
        page.click("#vx-design-guide > button")
        page.click("[data-dialect='四川话']")
        page.wait_for_function(
            "(text) => document.querySelector('#vx-design-text textarea').value === text", arg=DIALECTS[0].text
        )
        assert page.input_value("#vx-design-control textarea") == DIALECTS[0].control
        page.wait_for_function(
            "(control) => document.querySelector('#vx-design-preview').innerText.includes(control)",
            arg=DIALECTS[0].control,
        )


def test_a_designed_take_in_the_history_is_put_back_into_this_form(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        design(page, "Use this design again.", control="A tired captain", seed=255, takes=2)
        fill(page, "Something else.", control="A child")
        open_tab(page, "history")
        page.click("#vx-history .vx-lane:has-text('Use this design again.') >> nth=0 >> [data-do=reuse]")
        page.wait_for_selector("#vx-design-control", state="visible")
        page.wait_for_function("document.querySelector('#vx-design-control textarea').value === 'A tired captain'")
        assert page.input_value("#vx-design-text textarea") == "Use this design again."
        page.wait_for_function("document.querySelector('#vx-design-settings').innerText.includes('seed 25')")
        assert page.input_value("#vx-text textarea") == "", "the other tab took it, too"


def test_settings_are_remembered(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        fill(page, "Remember.", seed=260, takes=2)
        page.fill("#vx-design-inference-timesteps input[type=number]", "6")
        page.keyboard.press("Tab")
        settings = "document.querySelector('#vx-design-settings')?.innerText.includes('6 steps · seed 260')"
        page.wait_for_function(settings)
        page.wait_for_timeout(300)
        page.reload()
        to_tab(page)
        page.wait_for_function(settings)
        assert page.is_checked("#vx-design-takes input[value='2']")


def test_what_is_missing_is_said_and_nothing_is_lost(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        design(page, "Here already.", seed=270, takes=2)
        before = facts(page, "take")
        for control, text, seed, said in (
            ("", "Text.", 1, "no description yet"),
            ("A man", " ", 1, "nothing to speak"),
            ("A man", "Text.", 2**32, "4294967295"),
        ):
            fill(page, text, control=control, seed=seed)
            page.click("#vx-design-generate")
            page.wait_for_selector(f"#vx-design-picker .vx-notice.is-error >> text={said}")
            page.wait_for_selector("#vx-design-generate:not([disabled])")
        assert facts(page, "take") == before


def test_a_model_without_design_explains_itself(tmp_path: Path, browser: Browser) -> None:
    model = SpiedModel(generation="VoxCPM1.5", supports_control=False, supports_reference=False)
    with running_studio(tmp_path, model) as studio, opened(browser, studio.url) as page:
        open_tab(page, "design")
        page.wait_for_selector("#vx-design-note .vx-notice")
        assert "VoxCPM1.5 cannot design voices" in page.inner_text("#vx-design-note")
        assert page.is_disabled("#vx-design-generate") and page.is_disabled("#vx-design-control textarea")
        with pytest.raises(Exception, match="VoxCPM1.5 cannot design voices"):
            Client(studio.url, verbose=False).predict(control="a man", text="Hm.", api_name="/design")


def test_the_tab_speaks_chinese(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url, locale="zh-CN") as page:
        to_tab(page)
        page.wait_for_selector("#vx-design-picker >> text=录音会并排显示在这里")
        words = page.inner_text("#vx-design-picker") + page.inner_text(".vx-editor:visible")
        assert all(word in words for word in ("声音描述", "试听文本", "怎样描述声音", "条数", "盲听", "原始响度"))
        design(page, "你好，今天天气真好。", control="温柔的女声", takes=2)
        page.click(lane(1, ".vx-pick"))
        page.wait_for_selector(lane(1, "") + " >> text=已选用")
        words = page.inner_text("#vx-design-picker")
        assert all(
            word in words for word in ("完成", "种子", "星标", "备注", "频谱图", "其余重来", "更多类似", "保存为声音")
        )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(studio: Studio, browser: Browser, scheme: str) -> None:
    size = {"width": 390, "height": 844}
    with opened(browser, studio.url, viewport=size, color_scheme=scheme, has_touch=True) as page:
        width = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
        to_tab(page)
        page.click("#vx-design-guide > button")
        assert page.evaluate(width) <= 390
        design(page, "A take on the phone.", seed=280)
        page.click(lane(1, ".vx-pick"))
        page.wait_for_selector("#vx-design-slot-1.is-picked")
        for fold in range(page.locator("#vx-design-slot-1 details").count()):
            page.evaluate(f"document.querySelectorAll('#vx-design-slot-1 details')[{fold}].open = true")
        page.wait_for_timeout(300)
        assert page.evaluate(width) <= 390
        small = page.evaluate(
            "[...document.querySelectorAll('#vx-design-picker :is(button, a, summary)')].filter((e) => e.offsetParent"
            " && Math.min(e.offsetWidth, e.offsetHeight) < 30).map((e) => e.outerHTML.slice(0, 120))"
        )
        assert small == [], "too small for a thumb"


def test_every_control_has_a_name_for_screen_readers(studio: Studio, browser: Browser) -> None:
    with opened(browser, studio.url) as page:
        to_tab(page)
        design(page, "Named.", takes=3)
        page.evaluate("document.querySelectorAll('#vx-design-picker details').forEach((d) => { d.open = true; })")
        nameless = page.evaluate("""
            [...document.querySelectorAll('button, a[href], input, textarea, [role=slider], summary')]
              .filter((e) => e.checkVisibility({ visibilityProperty: true }))
              .filter((e) => !(e.innerText.trim() || e.ariaLabel || e.title || e.placeholder || e.labels?.length))
              .map((e) => e.outerHTML.slice(0, 200))""")
        assert nameless == []


def test_the_endpoint_returns_takes_with_files(studio: Studio) -> None:
    client = Client(studio.url, verbose=False)
    made = client.predict(control="calm", text="From a program.", takes=2, seed=2**32 - 1, api_name="/design")
    assert [take["seed"] for take in made] == [2**32 - 1, 0] and {take["ended_by"] for take in made} == {"stop"}
    for take in made:
        record = studio.store.take(take["take_id"])
        assert Path(take["file"]).read_bytes() == marked_wav(studio.store, studio.store.take(take["take_id"]))
        assert take["seconds"] == record.seconds and record.control == "calm"
        assert {"ending", "length"} <= {check["name"] for check in take["checks"]} | {"length"}
    assert len(client.predict(control="calm", text="Three.", api_name="/design")) == 3
    parameters = client.view_api(return_format="dict")["named_endpoints"]["/design"]["parameters"]
    names = [parameter["parameter_name"] for parameter in parameters]
    assert names == ["control", "text", "takes", "seed", "cfg_value", "inference_timesteps", "attempts"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"control": " "}, "no description yet"),
        ({"control": 5}, "control is a text, not 5"),
        ({"text": ""}, "nothing to speak"),
        ({"takes": 4}, "takes is 1, 2 or 3, not 4"),
        ({"takes": 0}, "takes is 1, 2 or 3, not 0"),
        ({"takes": 1.5}, "takes is 1, 2 or 3, not 1.5"),
        ({"seed": 2**32}, "4294967295"),
        ({"cfg_value": 9}, "cfg_value is 1 to 5, not 9"),
        ({"inference_timesteps": 1}, "inference_timesteps"),
    ],
)
def test_the_endpoint_refuses_with_a_sentence(studio: Studio, wrong: dict, said: str) -> None:
    count = studio.store.count()
    with pytest.raises(Exception, match=said):
        Client(studio.url, verbose=False).predict(**{"control": "calm", "text": "Words.", **wrong}, api_name="/design")
    assert studio.store.count() == count

"""What helps while a text is typed: preview, length, language, brackets, braces; the same words in all forms."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from studio.events import ModelStatus
from studio.languages import LANGUAGES, detect_language, languages_of
from studio.ui import text_aids
from studio.ui.i18n import WORDS
from voxcpm_core.text import prepare_text

READY = ModelStatus(state="ready", name="openbmb/VoxCPM2", generation="VoxCPM2")
NANO = replace(READY, name="nano")
GERMAN = "Die Katze liegt auf dem warmen Ofen, und draußen fällt leise der Schnee auf die Dächer."
CZECH = "Kočka leží na teplé peci a venku tiše padá sníh na střechy domů v celém městě."


def shown(text: str, status: ModelStatus | None = READY, language: str = "en", **options: object) -> str:
    return text_aids.preview(prepare_text(text, **options), language, status)


def hints(html: str) -> list[str]:
    return re.findall(r"<li>(.*?)</li>", html)


def test_the_meter_follows_the_text() -> None:
    found = {}
    for count in (1, 10, 60):
        html = shown("A long sentence goes on. " * count)
        found[count] = float(re.search(r'aria-valuenow="([\d.]+)"', html)[1])
    assert found[1] < found[10] < found[60] == 60.0
    assert 1.0 < found[1] < 3.0 and "is-ok" in shown("A long sentence goes on.")
    long = shown("A long sentence goes on. " * 60)
    assert 'class="vx-length is-long"' in long and "width:100.0%" in long
    assert any("45 seconds" in hint for hint in hints(long))
    assert any("Very short" in hint for hint in hints(shown("Hi")))


def test_the_language_is_named_and_one_that_the_model_does_not_speak_is_said() -> None:
    assert 'data-language="en"' in shown("This is the language that you and I have from the start.")
    assert 'data-language="zh"' in shown("你好，世界") and not hints(shown("你好，世界"))
    assert "nano speaks English only" in "".join(hints(shown("你好，世界", NANO)))
    assert "而 nano 只会说英语" in "".join(hints(shown("你好，世界", NANO, "zh")))
    old = replace(READY, name="openbmb/VoxCPM1.5", generation="VoxCPM1.5")
    assert "one of the 2 languages of openbmb/VoxCPM1.5" in "".join(hints(shown("Καλημέρα σε όλους σας", old)))
    assert hints(shown("Καλημέρα σε όλους σας")) == []
    loading = replace(NANO, state="loading")
    assert hints(shown("你好，世界", loading)) == hints(shown("你好，世界", None)) == []


def test_latin_languages_are_told_apart_where_the_detector_is_there() -> None:
    pytest.importorskip("lingua")
    assert detect_language(GERMAN).code == "de" and hints(shown(GERMAN)) == []
    assert "nano speaks English only" in "".join(hints(shown(GERMAN, NANO)))
    assert "looks like Czech, which is not one of the 30 languages" in "".join(hints(shown(CZECH)))


@pytest.mark.parametrize(
    "model, generation, count",
    [("nano", "VoxCPM2", 1), ("x", "VoxCPM2", 30), ("x", "VoxCPM1.5", 2), ("x", "VoxCPM-0.5B", 2)],
)
def test_each_model_has_its_languages(model: str, generation: str, count: int) -> None:
    assert len(languages_of(model, generation)) == count


def test_the_bracket_rule_is_seen() -> None:
    (hint,) = hints(shown("(1996) was warm."))
    assert "Brackets at the start are read as words" in hint and "1996, was warm." in shown("(1996) was warm.")
    assert hints(shown("Warm (1996) it was.")) == []
    (hint,) = hints(shown("（旁白）开始了", language="zh"))
    assert hint == "开头括号里的内容会当作文字读出；声音描述请写在专门的栏目里。"


def test_sounds_in_braces_are_marked_and_go_through() -> None:
    text = "{ni3}{hao3}, said <b>Anna</b> & {HH AH0 L OW1} again."
    html = shown(text)
    assert [m for m in re.findall(r'<mark class="vx-braces">(.*?)</mark>', html)] == [
        "{ni3}",
        "{hao3}",
        "{HH AH0 L OW1}",
    ]
    assert "go to the model as they are: {ni3} {hao3} {HH AH0 L OW1}" in hints(html)[-1]
    assert "&amp;" in html
    assert prepare_text(text, normalize=True).text.count("{") == 3
    assert "…" in hints(shown("{a} " * 9 + "words"))[0]
    for broken in ("{ni3 said Anna", "said ni3} Anna", "{a{b}} words"):
        assert "A brace is not closed" in "".join(hints(shown(broken))), broken


def test_every_sentence_of_the_core_has_its_words() -> None:
    texts = [
        prepare_text("(a) **b** 😀 12 {x}", "calm (slow)", normalize=True),
        prepare_text("words", "calm", control_supported=False),
        prepare_text("words", "calm", has_transcript=True),
        prepare_text("Es kostet 12 Euro und die Katze schläft.", normalize=True),
    ]
    notes = [note for spoken in texts for note in spoken.notes]
    assert len(notes) >= 7
    for note in notes:
        assert text_aids.note_of(note, "en") == note
        assert re.search("[\u4e00-\u9fff]", text_aids.note_of(note, "zh")), note


def test_every_language_of_the_model_has_a_name_in_both() -> None:
    assert {f"language_{code}" for code in LANGUAGES} <= WORDS.keys()
    assert all(WORDS[f"language_{code}"][0] == name for code, name in LANGUAGES.items())

"""Seconds of a text, its language, and the hint when the model does not speak it."""

from __future__ import annotations

import pytest

from studio import languages
from studio.clip_measures import read_frames
from studio.languages import LANGUAGES, available, detect_language, estimate_seconds, scripts
from studio.speech_activity import find_speech
from tests import clips
from voxcpm_core.audio import Audio

needs_lingua = pytest.mark.skipif(not available()[0], reason=f"needs {languages.PIP_LINE}")


def test_there_are_the_thirty_of_the_model_card() -> None:
    assert len(LANGUAGES) == 30 and {"zh", "en", "sw", "tl", "my", "no"} <= set(LANGUAGES)


def test_seconds_follow_the_voice() -> None:
    for number, sentence in enumerate(clips.SENTENCES):
        speech = find_speech(read_frames(Audio(clips.sentence(number), clips.RATE))).regions
        said = speech[-1][1] - speech[0][0]
        assert estimate_seconds(sentence) == pytest.approx(said, rel=0.35)


@pytest.mark.parametrize(
    "text, low, high",
    [
        ("", 0, 0),
        ("  ...  !? ", 0, 0),
        ("你好，今天的天气很不错，我们一起去公园散步吧。", 4, 7),
        ("こんにちは、きょうはとてもいいてんきですね。", 2.2, 4.5),
        ("안녕하세요, 오늘은 날씨가 참 좋네요.", 2, 4),
        ("สวัสดีครับ วันนี้อากาศดีมาก", 1.5, 3.5),
        ("1234567890", 2, 4),
        ("一二三456", 0.9, 1.8),
        ("Wait. Then go. Then stop.", 1.8, 3.2),
    ],
)
def test_seconds_by_script(text: str, low: float, high: float) -> None:
    assert low <= estimate_seconds(text) <= high


def test_pauses_inside_count_and_the_last_stop_does_not() -> None:
    assert estimate_seconds("One. Two") == pytest.approx(estimate_seconds("One Two") + 0.4)
    assert estimate_seconds("One Two.") == estimate_seconds("One Two")


def test_scripts_are_counted() -> None:
    assert scripts("Hi 你好 カナ 42 é!") == {"latin": 3, "han": 2, "kana": 2, "digit": 2}
    assert scripts("ﾃｽﾄ ｔｅｓｔ 々") == {"kana": 3, "latin": 4, "han": 1}


@pytest.mark.parametrize(
    "text, code",
    [
        ("你好世界", "zh"),
        ("東京は大きい", "ja"),
        ("안녕하세요", "ko"),
        ("สวัสดี", "th"),
        ("ສະບາຍດີ", "lo"),
        ("សួស្តី", "km"),
        ("မင်္ဂလာပါ", "my"),
        ("Καλημέρα", "el"),
        ("שלום", "he"),
        ("He trimmed the lamp and wiped the glass.", "en"),
        ("He trimmed the lamp, wiped the glass, and wrote a few lines in his book.", "en"),
    ],
)
def test_scripts_and_small_words_tell_without_a_detector(text: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "available", lambda: (False, languages.PIP_LINE))
    found = detect_language(text)
    assert found is not None and found.code == code and found.spoken


@pytest.mark.parametrize("text", ["", "42", "!?", "Ok", "Szia, hogy vagy ma este?"])
def test_too_little_is_undecided(text: str) -> None:
    assert detect_language(text) is None


@needs_lingua
@pytest.mark.parametrize(
    "text, code, spoken",
    [
        ("Der alte Leuchtturmwärter stieg jeden Abend vor Sonnenuntergang die Treppe hinauf.", "de", True),
        ("Le vieux gardien du phare montait l'escalier chaque soir avant le coucher du soleil.", "fr", True),
        ("Старый смотритель маяка каждый вечер поднимался по лестнице до захода солнца.", "ru", True),
        ("Старий доглядач маяка щовечора піднімався сходами, поки не зайшло сонце.", "uk", False),
        ("Az öreg világítótorony-őr minden este felmászott a lépcsőn naplemente előtt.", "hu", False),
        ("Starý strážce majáku stoupal po schodech každý večer před západem slunce.", "cs", False),
    ],
)
def test_a_sentence_is_told_and_whether_the_model_speaks_it(text: str, code: str, spoken: bool) -> None:
    found = detect_language(text)
    assert found is not None and (found.code, found.spoken) == (code, spoken)
    assert found.name and found.name != code

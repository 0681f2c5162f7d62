"""Text in: cleaning, bracket rule, normaliser, preview. Every row is the exact string that is spoken."""

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from voxcpm_core.errors import TextError
from voxcpm_core.text import SpokenText, clean_text, normalize_text, prepare_text, split_control

NOTHING = None  # in the tables: the typed refusal

# regressions row 10: typed, spoken as it is, spoken with normalising
HARD_TEXTS = [
    ("hello 😀 world", "hello world", "hello world"),
    ("a  b", "a b", "a b"),
    ("— —", NOTHING, NOTHING),
    ("`x`", "x", "x"),
    ("**重点**：买菜", "重点：买菜", "重点：买菜"),
    ("# 第一章\n\n- 苹果\n- 梨", "第一章。 苹果。 梨。", "第一章。 苹果。 梨。"),
    ("{ni3}{hao3}你好", "{ni3}{hao3}你好", "{ni3}{hao3}你好"),
    (
        "https://a.example/x-1?y=2",
        "https://a.example/x-1?y=2",
        "a dot example slash x dash one question mark y equals two",
    ),
    ("me@b.example", "me@b.example", "me at b dot example"),
    ("…", NOTHING, NOTHING),
    ("!!!", NOTHING, NOTHING),
    ('""', NOTHING, NOTHING),
    ("", NOTHING, NOTHING),
    (" \n\t ", NOTHING, NOTHING),
    (None, NOTHING, NOTHING),
    ("42", "42", "forty two"),
    (42, "42", "forty two"),
    ("a" * 10_000, "a" * 10_000, "a" * 10_000),
    ("he\0llo", "hello", "hello"),
    ("\0", NOTHING, NOTHING),
    ("مرحبا بالعالم", "مرحبا بالعالم", "مرحبا بالعالم"),
    ("\u202bשלום עולם\u202c", "שלום עולם", "שלום עולם"),
    ("v2.0.3", "v2.0.3", "v two point zero point three"),
    ("300倍", "300倍", "三百倍"),
    ("1/2", "1/2", "one half"),
]


@pytest.mark.parametrize("normalize", [False, True], ids=["as-typed", "normalised"])
@pytest.mark.parametrize("typed, plain, normalised", HARD_TEXTS, ids=lambda value: repr(value)[:24])
def test_hard_texts_are_spoken_as_listed_or_refused(typed, plain, normalised, normalize):
    expected = normalised if normalize else plain
    if expected is NOTHING:
        with pytest.raises(TextError, match="Nothing to speak"):
            prepare_text(typed, normalize=normalize)
    else:
        spoken = prepare_text(typed, normalize=normalize)
        assert spoken.text == spoken.prompt == expected
        assert spoken.control == ""


# ---------------------------------------------------------------- row 8: control and brackets

PROMPTS = [
    ("(1996) was warm.", "", {}, "1996, was warm."),
    ("（旁白）开始", "", {}, "旁白，开始"),
    ("（旁白）开始", "", {"normalize": True}, "旁白，开始"),
    ("(1996) was warm.", "", {"normalize": True}, "nineteen ninety six, was warm."),
    ("Hello.", "slow (very), calm）", {}, "(slow very, calm)Hello."),
    ("你好", "（温柔）的声音", {}, "(温柔的声音)你好"),
    ("I have 3 cats.", "age 30", {"normalize": True}, "(age 30)I have three cats."),
    ("Hello.", "calm", {"has_transcript": True}, "Hello."),
    ("Hello.", "calm", {"control_supported": False}, "Hello."),
    ("Hello.", "   ", {}, "Hello."),
    ("Hello.", None, {}, "Hello."),
    ("Hello.", "()", {}, "Hello."),
    ("Hello.", "**calm**,\nslow 😀", {}, "(calm, slow)Hello."),
    ("(calm)Hello", "", {}, "calm, Hello"),
    ("(calm)Hello", "deep", {}, "(deep)calm, Hello"),
    ("(calm)Hello", "", {"protect_brackets": False}, "(calm)Hello"),
    ("(1996) was warm.", "", {"control_supported": False}, "(1996) was warm."),
    ("  （开始", "", {}, "开始"),
    ("((a) b) c", "", {}, "a b, c"),
    ("() hello", "", {}, "hello"),
    ("(a). B", "", {}, "a. B"),
    ("(Wait!) he said", "", {}, "Wait! he said"),
    ("（等等！）他说", "", {}, "等等！他说"),
    ("# (One) two", "", {}, "One, two."),
    ("It was warm (1996).", "", {}, "It was warm (1996)."),
]


@pytest.mark.parametrize("text, control, options, prompt", PROMPTS)
def test_prompt_string(text, control, options, prompt):
    spoken = prepare_text(text, control, **options)
    assert spoken.prompt == prompt
    assert spoken.prompt == (f"({spoken.control}){spoken.text}" if spoken.control else spoken.text)


@pytest.mark.parametrize("text", ["(", "()", "（）", "((()", "(…)"])
def test_brackets_without_words_are_refused(text):
    with pytest.raises(TextError, match="Nothing to speak"):
        prepare_text(text, "calm")


@pytest.mark.parametrize(
    "options, reason",
    [({"has_transcript": True}, "transcript"), ({"control_supported": False}, "generation")],
)
def test_a_control_that_is_not_sent_is_explained(options, reason):
    spoken = prepare_text("Hello.", "calm", **options)
    assert spoken == SpokenText("Hello.", "", "Hello.", spoken.notes)
    assert len(spoken.notes) == 1 and "control is not sent" in spoken.notes[0] and reason in spoken.notes[0]
    assert prepare_text("Hello.", "", **options).notes == ()


@pytest.mark.parametrize(
    "typed, parts",
    [
        ("(calm)Hello", ("calm", "Hello")),
        (" （平静） 你好", ("平静", "你好")),
        ("(slow (very), calm) Hi", ("slow (very), calm", "Hi")),
        ("Hello (calm)", ("", "Hello (calm)")),
        ("(calm Hello", ("", "(calm Hello")),
        ("Hello", ("", "Hello")),
        ("()Hello", ("", "Hello")),
        ("(calm)", ("calm", "")),
        ("", ("", "")),
    ],
)
def test_split_control(typed, parts):
    assert split_control(typed) == parts


def test_a_split_control_comes_back_as_upstream_sends_it():
    control, text = split_control("(calm)Hello")
    assert prepare_text(text, control).prompt == "(calm)Hello"


# ---------------------------------------------------------------- cleaning

CLEANED = [
    ("Hello\nworld", "Hello world"),
    ("你好\r\n世界", "你好 世界"),
    ("Chapter One\n\nIt was dark", "Chapter One. It was dark"),
    ("Chapter One\n=====\nIt was dark", "Chapter One. It was dark"),
    ("One,\n\n---\n\ntwo", "One, two"),
    ("## Title ##\ntext", "Title. text"),
    ("- a\n  more\n- b!", "a more. b!"),
    ("Buy:\n* [ ] milk\n+ [x] tea", "Buy: milk. tea."),
    ("✅ Apples\n✅ Pears", "Apples. Pears."),
    ("1. one\n2) two", "1. one. 2. two."),
    ("1、苹果\n2、梨", "1、苹果。 2、梨。"),
    ("1984. It was cold.", "1984. It was cold."),
    ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a, b. 1, 2."),
    ("> said\n> he", "said he"),
    ("```py\nx = 1\n```", "x = 1"),
    ("***both*** and __bold__ and ~~old~~", "both and bold and old"),
    ("这是*重点*内容", "这是重点内容"),
    ("snake_case_name _it_", "snake_case_name it"),
    ("2*3*4 and 5 * 6", "2*3*4 and 5 * 6"),
    (r"\*stars\*", "*stars*"),
    ("lost ** mark", "lost mark"),
    ("don`t", "don't"),
    ("[site](https://a.example/_x_) and ![cat](c.png)", "site and cat"),
    ("<https://a.example/_b_>", "https://a.example/_b_"),
    ("note[^1]", "note"),
    ("a<br>b &amp; c", "a b & c"),
    ("{HH AH0 L OW1} {A_B} _x_", "{HH AH0 L OW1} {A_B} x"),
    ("[pause 0.8] hi", "[pause 0.8] hi"),
    ("好的😀。", "好的。"),
    ("1️⃣ first ❤️", "1 first"),
    ("👨\u200d👩\u200d👧 family", "family"),
    ("می\u200cخواهم", "می\u200cخواهم"),
    ("he\u200bl\u00adlo\ufeff", "hello"),
    ("cafe\u0301", "café"),
    ("x\ud800y\ue000z", "xyz"),
    ("𠮷野家", "𠮷野家"),
    ("二○二四　年", "二○二四 年"),
    ("Temperature 20 ℃ ©", "Temperature 20 ℃ ©"),
]


@pytest.mark.parametrize("typed, cleaned", CLEANED)
def test_clean_text(typed, cleaned):
    assert clean_text(typed) == cleaned


def test_cleaning_is_told_in_the_preview():
    notes = " ".join(prepare_text("# A\n\n**b** 😀\0 &amp; (c)").notes)
    for part in ("Headings", "Formatting marks", "Emoji", "control characters", "&amp;"):
        assert part in notes
    assert prepare_text("A plain line.\nAnother one.").notes == ()
    assert "Brackets at the start" in prepare_text("(a) b").notes[0]


@pytest.mark.parametrize("function", [clean_text, normalize_text, prepare_text])
def test_the_refusal_names_the_text_and_the_remedy(function):
    with pytest.raises(TextError, match="“!!!”.*Type at least one word"):
        function("!!!")
    with pytest.raises(TextError, match="bytes"):
        function(b"hello")
    with pytest.raises(TextError, match="no text was given"):
        function(None)


# ---------------------------------------------------------------- the normaliser

NORMALISED = [
    # R15: what crashed it
    ("hello  world", "hello world"),
    ("hello world", "hello world"),
    ("— — 3", "— — three"),
    ("−3 degrees", "negative three degrees"),
    # R16: what it destroyed
    ("{ni3}{hao3}你好3次", "{ni3}{hao3}你好三次"),
    ("{HH AH0 L OW1} 3 times", "{HH AH0 L OW1} three times"),
    ("说（旁白）3次", "说（旁白）三次"),
    ('He said "hi" 3 times', 'He said "hi" three times'),
    ("[pause 0.8] 3 cats", "[pause 0.8] three cats"),
    # R17 and its kin
    ("Version 2.0.3 is out.", "Version two point zero point three is out."),
    ("v2.0.3版", "v二点零点三版"),
    ("192.168.0.1", "one nine two point one six eight point zero point one"),
    ("1.5.2024", "the fifth of january twenty twenty four"),
    ("① apples ② pears", "one, apples two, pears"),
    ("①苹果②梨", "一、苹果二、梨"),
    ("见图㉑。", "见图二十一。"),
    ("❸", "three"),
    ("Call 555-1234 now.", "Call five five five, one two three four now."),
    ("Call (555) 123-4567.", "Call five five five, one two three, four five six seven."),
    ("+1 (555) 123-4567", "plus one, five five five, one two three, four five six seven"),
    ("500-1000 people", "five hundred to one thousand people"),
    ("拨打010-12345678", "拨打零幺零，幺二三四五六七八"),
    ("电话13800138000", "电话幺三八零零幺三八零零零"),
    ("号码+86 138 0013 8000", "号码加八六，幺三八，零零幺三，八零零零"),
    ("the war of 1914-1918", "the war of nineteen fourteen to nineteen eighteen"),
    ("(1914–18)", "(nineteen fourteen to eighteen)"),
    ("1905-2005", "nineteen oh five to two thousand five"),
    ("1914–1918年", "一九一四到一九一八年"),
    ("1500-1800人", "一千五百到一千八百人"),
    ("the 1990s and mid-2010s", "the nineteen nineties and mid-twenty tens"),
    ("She said No. 3 of them left.", "She said Number three of them left."),
    ("She said No. Then 3 left.", "She said No. Then three left."),
    ("$3.50 and £1,000", "three dollars and fifty cents and one thousand pounds"),
    ("$1.5M for 1.5M users", "one point five million dollars for one point five million users"),
    ("1,000 people", "one thousand people"),
    ("价格￥1,000.50", "价格一千点五零元"),
    ("涨了50%-60%", "涨了百分之五十到百分之六十"),
    ("open 24/7", "open twenty four seven"),
    ("#1 of ~5 km", "number one of about five kilometers"),
    ("２０２４年", "二零二四年"),
    ("看https://a.example/x-1?y=2，3天", "看https://a.example/x-1?y=2，三天"),
    # what it is good at
    ("on 3/4/2024 at 5:30 pm", "on the fourth of march twenty twenty four at five thirty PM"),
    ("20% off for Dr. Smith", "twenty percent off for doctor Smith"),
    ("2024年5月1日下午3:30", "二零二四年五月一日下午三点三十分"),
    ("3.5公斤，-5℃", "三点五公斤，负五摄氏度"),
    # mixed
    ("I have 3 cats. 我有3只猫。 And 2 dogs.", "I have three cats. 我有三只猫。 And two dogs."),
    ("café costs €5", "café costs five euros"),
]  # fmt: skip


@pytest.mark.parametrize("typed, spoken", NORMALISED)
def test_normalize_text(typed, spoken):
    assert normalize_text(typed) == spoken


@pytest.mark.parametrize(
    "text",
    [
        "Das kostet 5 Euro und 3 Cent.",
        "Il est 5 heures à Paris.",
        "Cuesta 5 euros con 10.",
        "У меня 3 кота.",
        "これは3個です。",
        "漢字の本が3冊ある。",
        "난 3개 있어",
        "لدي 3 قطط",
        "मेरे पास 3 हैं",
    ],
)
def test_other_languages_are_left_alone(text):
    spoken = prepare_text(text, normalize=True)
    assert spoken.text == text
    assert any("left as they are" in note for note in spoken.notes)


def test_the_language_is_told_in_the_preview():
    notes = prepare_text("3 cats. 我有3只猫。", normalize=True).notes
    assert notes == ("Numbers and symbols are written out (English and Chinese).",)
    assert prepare_text("A cat.", normalize=True).notes == ()


def test_what_the_grammars_cannot_read_is_spoken_as_typed(monkeypatch):
    from voxcpm_core import normalizer

    def broken(text):
        raise AssertionError

    monkeypatch.setitem(normalizer._grammars, "en", broken)
    spoken = prepare_text("I have 3 cats.", normalize=True)
    assert spoken.text == "I have 3 cats."
    assert spoken.notes == ("“I have 3 cats.” could not be normalised; it is spoken as typed.",)


def test_without_wetext_the_error_names_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "wetext", None)
    assert prepare_text("3 cats").text == "3 cats"
    with pytest.raises(TextError, match="pip install wetext"):
        prepare_text("3 cats", normalize=True)


def test_many_threads_normalise_at_once():
    texts = [f"I have {n} cats. 我有{n}只猫。" for n in range(24)]
    alone = [normalize_text(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(normalize_text, texts)) == alone


# ---------------------------------------------------------------- anything at all

_PIECES = [
    *"abX 019.,!?;:'\"()[]{}*_`~#-+=/\\|<>@$%&€￥。，（）—…你好三日本のア한Жя😀①½²→•\u200d\0\n",
    *(
        "No.",
        "http://a.b",
        "1914-1918",
        "v1.2.3",
        "{ni3}",
        "**",
        "\n- ",
        "\n\n",
        "# ",
        "$1,000",
        "&amp;",
        "<br>",
        "  ",
    ),
]


@pytest.mark.parametrize("seed", range(200))
def test_any_text_is_spoken_whole_or_refused(seed):
    dice = random.Random(seed)
    text, control = ("".join(dice.choices(_PIECES, k=dice.randint(1, 30))) for _ in range(2))
    try:
        spoken = prepare_text(text, control, normalize=seed % 2 == 0)
    except TextError:
        assert not any(c.isalpha() for c in text.replace("<br>", "").replace("&amp;", ""))
        return
    assert any(c.isalnum() for c in spoken.text) and spoken.text == " ".join(spoken.text.split())
    assert spoken.prompt == (f"({spoken.control}){spoken.text}" if spoken.control else spoken.text)
    assert not set("()（）") & set(spoken.control) and spoken.text[0] not in "(（"
    assert text.count("{ni3}") == spoken.text.count("{ni3}")
    spoken.prompt.encode()


def test_text_needs_no_torch():
    """The page previews texts without loading the model."""
    package = Path(__file__).parents[1] / "voxcpm_core"
    code = (
        "import sys, types; package = types.ModuleType('voxcpm_core'); "
        f"package.__path__ = [{str(package)!r}]; sys.modules['voxcpm_core'] = package; "
        "from voxcpm_core.text import prepare_text; prepare_text('3 cats', normalize=True); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0

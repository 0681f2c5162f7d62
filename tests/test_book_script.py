"""The script: segments within their limits, no word lost, cuts at good places, tags, dialogue, the dictionary."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir

from studio.book.dialogue import Speech, find_speech, speakers
from studio.book.dictionary import Dictionary, Pronunciation, affected
from studio.book.errors import BookError
from studio.book.manuscript import tidy
from studio.book.script import (
    Limits,
    estimated_seconds,
    is_spoken,
    pack,
    pause_of_tags,
    segment,
    speaker_of_tags,
    words_to_say,
)
from studio.book.sentences import sentences
from tests import books

ROOT = Path(__file__).resolve().parents[1]
set_hypothesis_home_dir(ROOT / ".pytest_cache" / "hypothesis")
settings.register_profile("script", deadline=None, database=None, derandomize=True)  # the same texts every time
settings.load_profile("script")

BITS = st.sampled_from(
    [
        *("Hello there. ", "Mr. Fox ", "3.14 ", "don’t ", "“Go!” ", "你好，世界。", "……", "{ni3}{hao3}", "—", ";"),
        *("[pause 0.8]", "[voice: Anna]", "[/voice]", "https://a.b/c.d?e=f ", "\n", " ", "[", "]", "{"),
        *("😀", "👩\u200d👩\u200d👧", "e\u0301", "\u200d", "नि", "ที่", "x" * 50, "字" * 60),
    ]
)
TEXTS = st.lists(BITS | st.text(max_size=12), max_size=40).map("".join)
LIMITS = st.builds(Limits, st.sampled_from([40, 120, 300]), st.sampled_from([6.0, 12.0, 25.0]))


def letters_of(texts: list[str] | str) -> str:
    return "".join("".join(texts).split())


@settings(max_examples=150)
@given(TEXTS, LIMITS)
def test_every_letter_is_in_exactly_one_segment(text: str, limits: Limits) -> None:
    assert letters_of([piece.text for piece in segment(text, limits)]) == letters_of(text)


@settings(max_examples=150)
@given(TEXTS, LIMITS)
def test_no_segment_is_over_the_limits(text: str, limits: Limits) -> None:
    for piece in segment(text, limits):
        said = words_to_say(piece.text)
        assert len(said) <= limits.characters
        assert estimated_seconds(piece.text) <= limits.seconds + 1e-6
        assert piece.text == piece.text.strip() and piece.text


@settings(max_examples=100)
@given(TEXTS, LIMITS)
def test_a_segment_cut_again_is_itself(text: str, limits: Limits) -> None:
    for piece in segment(text, limits):
        again = segment(piece.text, limits, piece.speaker)
        assert [part.text for part in again] == [piece.text]
        assert again[0].pause_ms == piece.pause_ms


@settings(max_examples=100)
@given(TEXTS, LIMITS)
def test_no_cut_inside_a_letter_a_brace_or_a_number(text: str, limits: Limits) -> None:
    text = tidy(text)
    place = 0
    for piece in segment(text, limits)[:-1]:
        place = text.index(piece.text, place) + len(piece.text)
        before, after = text[place - 1], text[place : place + 1]
        if after.lstrip().startswith("["):
            continue  # a tag says where to cut
        assert not re.match("[\u0300-\u036f\u200d\ufe0f]", after)
        assert before != "\u200d"
        for whole in re.finditer(r"\{\w{1,20}\}|\d+\.\d+", text[max(0, place - 30) : place + 30]):
            start = max(0, place - 30) + whole.start()
            assert not start < place < start + len(whole[0])


CASES = [
    ("He paid 3.50 and left. Then it rained.", ["He paid 3.50 and left.", "Then it rained."]),
    ("Mr. and Mrs. Fox met Dr. No. They ran.", ["Mr. and Mrs. Fox met Dr. No.", "They ran."]),
    ("J. R. R. Tolkien wrote it. So did I. We won.", ["J. R. R. Tolkien wrote it.", "So did I.", "We won."]),
    ("Wait... what? Yes! No?! Fine.", ["Wait... what?", "Yes!", "No?!", "Fine."]),
    ("“Stop.” She ran. “Why?” he asked.", ["“Stop.”", "She ran.", "“Why?” he asked."]),
    ("He said (quietly.) Then left.", ["He said (quietly.)", "Then left."]),
    ("« Oui. » Il part. « Non ! » dit-il.", ["« Oui. »", "Il part.", "« Non ! » dit-il."]),
    ("你好。“走吗？”他说。走！", ["你好。", "“走吗？”他说。", "走！"]),
    ("他走了……然后呢？好；再见。", ["他走了……", "然后呢？", "好；", "再见。"]),
    (
        "It is 5 p.m. now. The U.S. Army came at 6 a.m. The end.",
        ["It is 5 p.m. now.", "The U.S. Army came at 6 a.m.", "The end."],
    ),
    ("See no. 7, p. 12 and fig. 3. All good.", ["See no. 7, p. 12 and fig. 3.", "All good."]),
    ("I said no. We went on.", ["I said no.", "We went on."]),
    ("Go to example.com. Then wait.", ["Go to example.com.", "Then wait."]),
    ("Version 2.0.3 is out. 2000 was long ago.", ["Version 2.0.3 is out.", "2000 was long ago."]),
    ("1. Apples are red. 2. Pears are not.", ["1. Apples are red.", "2. Pears are not."]),
    ("Smile 🙂. Then go.", ["Smile 🙂.", "Then go."]),
    ("Salt, pepper, etc. were there. Also etc. The end.", ["Salt, pepper, etc. were there.", "Also etc.", "The end."]),
    ("one\ntwo", ["one\ntwo"]),
    ("No end", ["No end"]),
    ("", []),
]


@pytest.mark.parametrize("text, expected", CASES, ids=[text[:20] for text, _ in CASES])
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize("limit", [40, 120, 300])
def test_regression_19_long_and_odd_texts(limit: int) -> None:
    limits = Limits(limit, 60.0)
    assert [len(piece.text) for piece in segment("x" * 1200, limits)] == [limit] * (1200 // limit)
    for line in [*books.ODD, *books.HAN_ODD]:
        pieces = segment(line, limits)
        assert letters_of([piece.text for piece in pieces]) == letters_of(line)
        assert all(len(words_to_say(piece.text)) <= limit for piece in pieces)


def test_words_stay_whole_where_there_are_blanks() -> None:
    text = "and the long road went on and on without an end " * 30
    for piece in segment(text, Limits(120, 60)):
        assert set(piece.text.split()) <= set(text.split())


def test_pieces_of_one_paragraph_are_about_equally_long() -> None:
    text = "The road went on past the mill and the well. " * 12
    lengths = [len(piece.text) for piece in segment(text, Limits(400, 60))]
    assert len(lengths) == 2 and max(lengths) < 1.3 * min(lengths)


def test_clauses_come_before_blanks_and_sentences_before_clauses() -> None:
    text = "The old road went past the mill, and nobody who lived there had ever walked to the end of it"
    assert segment(text, Limits(60, 60))[0].text == "The old road went past the mill,"
    assert segment("One is here. Two is, as it were, not here at all now", Limits(40, 60))[0].text == "One is here."


@pytest.mark.slow
def test_time_is_linear() -> None:
    def seconds(text: str) -> float:
        times = []
        for _ in range(3):
            began = time.process_time()
            segment(text)
            find_speech(text)
            times.append(time.process_time() - began)
        return min(times)

    for text in (
        *("It was 3.5 miles. “Oh,” said Anna. " * 100, "x" * 4000, "字" * 4000, "[" * 4000, " [pause" * 500),
        *("“" * 3000, ". " * 2000, "A.B." * 1000, "[voice: " + " " * 4000, "[voice: a]" * 400, "[pause 1]" * 400),
    ):
        assert seconds(text * 10) < 20 * seconds(text) + 0.05, text[:20]  # 10 times the text; 100 if quadratic


# ------------------------------------------------------------------------------------------------- tags


def test_pause_tags_end_a_segment_and_count_in_milliseconds() -> None:
    pieces = segment("One. [pause 0.8] [pause: 200ms] Two. [停顿 1秒] 三。")
    assert [(words_to_say(p.text), p.pause_ms) for p in pieces] == [("One.", 1000), ("Two.", 1000), ("三。", None)]
    assert pause_of_tags("Hello [pause 99999]") == 60_000
    assert pause_of_tags("Hello [pause]") is None
    assert [p.is_spoken for p in segment("[pause 2]")] == [False]


def test_voice_tags_name_the_speaker_until_the_next_one_or_the_end() -> None:
    pieces = segment("He came. [voice: Anna Lee] I saw him. [voice：李明] 我也是。[/voice] So they said.")
    assert [(words_to_say(p.text), p.speaker) for p in pieces] == [
        ("He came.", ""), ("I saw him.", "Anna Lee"), ("我也是。", "李明"), ("So they said.", "")
    ]  # fmt: skip
    assert segment("Plain.", speaker="Bob")[0].speaker == "Bob"
    assert speaker_of_tags("[voice: Anna] Hi") == "Anna" and speaker_of_tags("Hi") is None


def test_what_only_looks_like_a_tag_is_text() -> None:
    for text in ("[pauses 3]", "[voice]", "[voice:]", "[pause 1 2]", "(pause 1)", "[sic]"):
        assert words_to_say(text) == text


def test_what_has_nothing_to_say() -> None:
    assert not is_spoken("...") and not is_spoken("[pause 1]") and is_spoken("a") and is_spoken("好")


def test_limits_are_checked() -> None:
    for limits in (Limits(10), Limits(5000), Limits(100, 1), Limits(100, 100)):
        with pytest.raises(BookError, match="choose"):
            limits.check()


def test_packing_respects_seconds_of_dense_scripts() -> None:
    pieces = pack("这是一个很长的句子，" * 40, Limits(400, 10))
    assert all(estimated_seconds(piece) <= 10 for piece in pieces)
    assert all(piece.endswith("，") for piece in pieces)


# ------------------------------------------------------------------------------------------------- dialogue


@pytest.mark.parametrize(
    "text, names",
    [
        ("“Hi,” said Anna. “You too.” Bob replied, “fine.”", ["Anna", "Bob", "Bob"]),
        ('"Where?" asked Mrs. Harrow quietly.', ["Mrs. Harrow"]),
        ('Captain Reed whispered, "Hush."', ["Captain Reed"]),
        ("‘I don’t know,’ muttered old Mr. Toad.", ["Mr. Toad"]),
        ("“No,” he said.", [""]),
        ("“One,” said Lucy. “Two.”", ["Lucy", "Lucy"]),
        ("安娜说：“你好。”", ["安娜"]),
        ("“走吗？”李明低声问道。", ["李明"]),
        ("「行くよ」", [""]),
        ("“我不知道。”他说。", [""]),
        ("It's the dog's 'bone', isn't it?", []),
        ("No speech.", []),
    ],
)
def test_speech_and_who_says_it(text: str, names: list[str]) -> None:
    found = find_speech(text)
    assert [speech.speaker for speech in found] == names
    assert all(text[speech.start] in '“"‘「' for speech in found)


def test_a_quote_that_is_not_closed_goes_to_the_end_of_the_paragraph() -> None:
    assert find_speech("He said: “And so on") == [Speech(9, 19)]


def test_speakers_of_the_novel() -> None:
    novel = books.make_novel(chapters=3, words_each=2000)
    found = dict(speakers(novel.spoken()))
    assert set(found) - {""} <= {*books.NAMES, "Finch", *books.HAN_WHO, "他"}
    assert found["Anna"] > 2 and found["Captain Reed"] > 2


# ------------------------------------------------------------------------------------------------- dictionary


def test_words_are_replaced_whole_in_every_script() -> None:
    words = Dictionary(
        [
            Pronunciation("Anna", "Ah-na"),
            Pronunciation("行", "{hang2}"),
            Pronunciation("New York", "Nu York"),
            Pronunciation("York", "Jork"),
            Pronunciation("us", "U S", match_case=True),
            Pronunciation("C++", "see plus plus"),
        ]
    )
    assert words.say("Anna's ANNA Annabel 见Anna说") == "Ah-na's Ah-na Annabel 见Ah-na说"
    assert words.say("银行 {行} new  york, York") == "银{hang2} {行} Nu York, Jork"
    assert words.say("US us bus. C++!") == "US U S bus. see plus plus!"


def test_what_an_entry_puts_in_is_not_replaced_again() -> None:
    assert Dictionary([Pronunciation("a", "b"), Pronunciation("b", "a")]).say("a b") == "b a"


def test_affected_texts_are_exactly_the_changed_ones() -> None:
    texts = ["Anna ran.", "Annabel ran.", "Bob saw anna.", "Nobody."]
    assert affected(texts, Dictionary([]), Dictionary([Pronunciation("Anna", "Ana")])) == [0, 2]


@pytest.mark.parametrize("word, say", [("", "x"), ("x", " "), ("x", "..."), ("x", "{ni3"), ("x" * 99, "y")])
def test_impossible_entries_say_why(word: str, say: str) -> None:
    with pytest.raises(BookError, match="[.]$"):
        Dictionary([Pronunciation(word, say)])


@settings(max_examples=100)
@given(TEXTS, st.lists(st.tuples(st.text(min_size=1, max_size=5), st.just("x")), max_size=5))
def test_a_dictionary_takes_any_text(text: str, entries: list[tuple[str, str]]) -> None:
    kept = [Pronunciation(word, say) for word, say in entries if word.strip()]
    said = Dictionary(kept).say(text)
    assert said == text or kept

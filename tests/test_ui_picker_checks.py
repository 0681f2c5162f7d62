"""What the checks of a take say on the page, in both languages."""

from __future__ import annotations

import re

import pytest

from studio.checks import Check
from studio.ui.i18n import WORDS
from studio.ui.picker_takes import check_sentence
from studio.ui.words import checks

TAKE_CHECKS = [
    ("length", "ok", {"seconds": 3.0, "characters": 9, "expected": 3.1}),
    ("too_long", "warn", {"seconds": 9.0, "characters": 9, "expected": 3.1}),
    ("too_long", "fail", {"seconds": 19.0, "characters": 9, "expected": 3.1}),
    ("too_short", "warn", {"seconds": 1.0, "characters": 90, "expected": 3.1}),
    ("too_short", "fail", {"seconds": 0.5, "characters": 90, "expected": 3.1}),
    ("ending", "ok", {"ended_by": "stop"}),
    ("ending", "warn", {"ended_by": "cancelled"}),
    ("ending", "fail", {"ended_by": "limit"}),
    ("sound", "ok", {"level": -20}),
    ("sound", "fail", {"level": -90}),
    ("silence", "ok", {"seconds": 0.1, "at": 1.0}),
    ("silence", "warn", {"seconds": 2.1, "at": 1.0}),
    ("silence", "fail", {"seconds": 5.1, "at": 1.0}),
    ("clipping", "ok", {"percent": 0.0}),
    ("clipping", "warn", {"percent": 0.02}),
    ("clipping", "fail", {"percent": 2.0}),
    ("edges", "ok", {"where": "", "what": ""}),
    ("edges", "warn", {"where": "end", "what": "click"}),
    ("words", "ok", {"percent": 3, "heard": "words"}),
    ("words", "warn", {"percent": 23, "heard": "words"}),
    ("words", "fail", {"percent": 63, "heard": "words"}),
    ("jump", "warn", {"jump": -7, "other": 3}),
    ("jump", "fail", {"jump": 13, "other": 3}),
    ("likeness", "warn", {"percent": 45}),
    ("likeness", "fail", {"percent": 30}),
]


@pytest.mark.parametrize(("name", "verdict", "facts"), TAKE_CHECKS)
def test_every_check_speaks_chinese(name: str, verdict: str, facts: dict) -> None:
    check = Check(name, "", verdict, "English advice.", facts)
    said = check_sentence(check, "zh")
    assert re.search(r"[\u4e00-\u9fff]", said) and "{" not in said and said != check.advice
    assert check_sentence(check.as_dict(), "en") == "English advice."
    assert check_sentence(Check("unheard_of", "", "warn", "Advice."), "zh") == "Advice."


def test_words_exist_for_checks_that_exist_and_no_others() -> None:
    known = {f"check_{name}_{verdict}" for name, verdict, _ in TAKE_CHECKS}
    assert {key for key in checks.WORDS if key.startswith("check_")} == known and known <= WORDS.keys()

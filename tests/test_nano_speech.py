"""Does the embedded model still speak? The short measurement of scripts.nano.evaluate, with limits.

The limits leave room for chance: eight sentences are few. The real figures are in docs/nano.md.
"""

import pytest

from scripts.nano.evaluate import short
from scripts.nano.measures import MISSING, Recogniser

MOST_WORD_ERRORS = 35.0  # percent


@pytest.mark.slow
def test_nano_is_understood_and_stops(nano):
    recognise = Recogniser()
    if not recognise.available:
        pytest.skip(f"the recogniser is not installed: {MISSING['words']}")
    figures, heard = short(nano, recognise)
    assert figures["takes that did not stop"] == 0, heard
    assert figures["takes without speech"] == 0, heard
    assert figures["word errors, median of seeds, %"] <= MOST_WORD_ERRORS, heard

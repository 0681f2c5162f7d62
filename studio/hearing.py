"""What hears the words of finished takes, for their checks: only where a recogniser was asked for and is installed."""

from __future__ import annotations

import logging

import numpy as np

from studio import transcription
from studio.take_checks import Recogniser
from voxcpm_core.audio import Audio
from voxcpm_core.errors import AudioError

logger = logging.getLogger(__name__)


def word_check(model: str) -> Recogniser | None:
    """``model``: a Whisper size or a folder, loaded when the first take is finished; "" for no check."""
    if not model:
        return None
    installed, pip_line = transcription.available()
    if not installed:
        logger.warning("The words of takes are not checked: the recogniser comes with `%s`.", pip_line)
        return None

    def recognise(samples: np.ndarray, sample_rate: int) -> str:
        try:
            return transcription.transcribe(Audio(samples, sample_rate), model).text
        except AudioError:  # no speech in it: that is what was heard
            return ""

    return recognise

"""The picture of a check card: the clip's waveform with its speech, its clipped places and the proposed cut.

Below the wave lies a bar for each stretch of speech (a second voice in another colour and height); clipped places
are ticks along the top; what the cut leaves out is faded.
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw

from studio.clip_analysis import Analysis
from studio.pictures import BOTTOM, DARK, LEFT, LIGHT, RIGHT, TOP, WAVEFORM_HEIGHT, WIDTH, Palette, waveform_png
from studio.speech_activity import Region

_BAR = 8  # pixels
_FADED = 0.6  # how far what is left out goes towards the ground
_JOINED = 1.0  # seconds between two measurements of one turn
_LEFT_OUT = 0.05  # seconds: less is not worth showing


def clip_png(analysis: Analysis, cut: Region | None = None, dark: bool = False) -> bytes:
    """The marked waveform as PNG bytes, 1280 x 260 pixels; ``cut`` is a part of the clip in seconds."""
    audio, palette = analysis.audio, DARK if dark else LIGHT
    picture = Image.open(io.BytesIO(waveform_png(audio.samples, audio.sample_rate, dark))).convert("RGB")
    if cut:
        picture = _fade_outside(picture, cut, audio.seconds, palette)
    draw = ImageDraw.Draw(picture)
    _speech(draw, analysis, palette)
    _clipped(draw, analysis, palette)
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=1)
    return out.getvalue()


def _x(moment: float, seconds: float) -> int:
    return LEFT + round(min(max(moment / seconds, 0.0), 1.0) * (WIDTH - RIGHT - LEFT))


def _fade_outside(picture: Image.Image, cut: Region, seconds: float, palette: Palette) -> Image.Image:
    pixels = np.asarray(picture).astype(np.float32)
    first, last = _x(cut[0], seconds), _x(cut[1], seconds)
    for left, right in ((LEFT, first), (last, WIDTH - RIGHT)):
        lane = pixels[TOP : WAVEFORM_HEIGHT - BOTTOM, left:right]
        lane += _FADED * (np.array(palette.ground, np.float32) - lane)
    faded = Image.fromarray(pixels.astype(np.uint8))
    draw = ImageDraw.Draw(faded)
    for moment, x in zip(cut, (first, last), strict=True):
        if _LEFT_OUT < moment < seconds - _LEFT_OUT:
            draw.line([(x, TOP), (x, WAVEFORM_HEIGHT - BOTTOM)], fill=palette.ink, width=3)
    return faded


def _speech(draw: ImageDraw.ImageDraw, analysis: Analysis, palette: Palette) -> None:
    seconds, bottom = analysis.audio.seconds, WAVEFORM_HEIGHT - BOTTOM
    for start, end in analysis.activity.regions:
        box = [_x(start, seconds), bottom - _BAR, _x(end, seconds), bottom - 1]
        draw.rectangle(box, fill=palette.body)
    for start, end in _second_voice(analysis):
        box = [_x(start, seconds), bottom - 2 * _BAR, _x(end, seconds), bottom - 1]
        draw.rectangle(box, fill=palette.heat[3])


def _second_voice(analysis: Analysis) -> list[Region]:
    """Where the second of two speakers talks; neighbouring measurements are joined."""
    turns = analysis.speakers.turns if analysis.speakers and analysis.speakers.count > 1 else ()
    spans: list[Region] = []
    for (start, end, who), before in zip(turns, [(0.0, 0.0, 0), *turns], strict=False):
        if who == 1 and before[2] == 1 and spans and start - before[1] < _JOINED:
            spans[-1] = (spans[-1][0], end)
        elif who == 1:
            spans.append((start, end))
    return spans


def _clipped(draw: ImageDraw.ImageDraw, analysis: Analysis, palette: Palette) -> None:
    if not analysis.clipping.found:
        return
    rate, seconds = analysis.audio.sample_rate, analysis.audio.seconds
    for x in {_x(at / rate, seconds) for at in np.flatnonzero(analysis.clipping.marks).tolist()}:
        draw.line([(x, TOP), (x, TOP + _BAR)], fill=palette.clip, width=2)

"""Pictures of a take: its waveform and its spectrogram, as PNG bytes.

Drawn at about twice the size they are shown at, in a light and a dark variant. Time runs along the bottom in
seconds; the spectrogram's frequencies are in kHz on the mel scale, which spaces them as the ear does.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

WIDTH = 1280  # pixels, with margins
WAVEFORM_HEIGHT = 260
SPECTROGRAM_HEIGHT = 420
LEFT, RIGHT, TOP, BOTTOM = 68, 24, 14, 40  # margins, pixels
FONT_SIZE = 21

FLOOR_DB = -72.0  # what the spectrogram shows as empty, relative to the loudest spot
WINDOW_SECONDS = 0.04
FULL_SCALE = 0.999  # a sample at or above this counts as clipped
TICK_HZ = (250, 500, 1000, 2000, 4000, 8000, 16000)
TIME_STEPS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600)
MAX_TIME_TICKS = 12

Box = tuple[int, int, int, int]  # left, top, right, bottom of the lane inside the margins, pixels


@dataclass(frozen=True)
class Palette:
    """Colours of one variant. ``heat`` runs from silence to the loudest spot, evenly in lightness."""

    ground: tuple[int, int, int]
    lane: tuple[int, int, int]
    grid: tuple[int, int, int]
    ink: tuple[int, int, int]
    peak: tuple[int, int, int]
    body: tuple[int, int, int]
    clip: tuple[int, int, int]
    heat: tuple[tuple[int, int, int], ...]


LIGHT = Palette(
    ground=(255, 255, 255),
    lane=(246, 247, 249),
    grid=(222, 226, 231),
    ink=(88, 96, 108),
    peak=(130, 190, 197),
    body=(15, 118, 130),
    clip=(200, 40, 48),
    heat=((246, 247, 249), (190, 223, 217), (104, 181, 184), (35, 130, 154), (26, 78, 120), (24, 30, 74)),
)
DARK = Palette(
    ground=(17, 20, 26),
    lane=(22, 26, 33),
    grid=(44, 50, 60),
    ink=(160, 168, 180),
    peak=(38, 104, 113),
    body=(84, 200, 208),
    clip=(255, 107, 107),
    heat=(
        (17, 20, 30),
        (36, 34, 84),
        (43, 77, 128),
        (34, 133, 152),
        (98, 187, 155),
        (205, 228, 146),
        (255, 250, 215),
    ),
)


def waveform_png(samples: np.ndarray, rate: int, dark: bool = False) -> bytes:
    """Level over time: peaks, RMS inside them, clipped spots marked. samples: float [n] in -1..1, rate in Hz.

    Quiet takes are drawn on a finer scale; the ticks are in dB below full scale and tell.
    """
    samples, palette = _playable(samples), DARK if dark else LIGHT
    canvas, draw, box = _canvas(WAVEFORM_HEIGHT, palette)
    scale_db = _scale_db(samples)
    canvas.paste(Image.fromarray(_waveform_pixels(samples, 10 ** (scale_db / 20), box, palette)), box[:2])
    _time_axis(draw, box, len(samples) / rate, palette)
    for below in (0, 6, 12):
        position = 0.5 - 0.5 * 10 ** (-below / 20)
        _value_tick(draw, box, position, f"{scale_db - below:g}", palette)
    _unit(draw, box, "dB", palette, at=1.0)
    return _png(canvas)


def spectrogram_png(samples: np.ndarray, rate: int, dark: bool = False) -> bytes:
    """Frequencies over time on the mel scale, from 0 to half the rate, 72 dB deep.

    samples: float [n] in -1..1, rate in Hz.
    """
    samples, palette = _playable(samples), DARK if dark else LIGHT
    canvas, draw, box = _canvas(SPECTROGRAM_HEIGHT, palette)
    levels = mel_levels(samples, rate, columns=box[2] - box[0], rows=box[3] - box[1])
    canvas.paste(Image.fromarray(colour_map(palette)[levels]), box[:2])
    _time_axis(draw, box, len(samples) / rate, palette)
    for hertz in TICK_HZ:
        if hertz < 0.9 * rate / 2:
            _value_tick(draw, box, 1 - _mel(hertz) / _mel(rate / 2), f"{hertz / 1000:g}", palette)
    _unit(draw, box, "kHz", palette, at=0.0)
    return _png(canvas)


def mel_levels(samples: np.ndarray, rate: int, columns: int, rows: int) -> np.ndarray:
    """Loudness per picture element, uint8 [rows, columns]: 255 the loudest, 0 is 72 dB below.

    The top row is half the rate, the bottom row 0 Hz.
    """
    window = 2 ** round(np.log2(WINDOW_SECONDS * rate))
    padded = np.pad(samples, window // 2)
    starts = ((np.arange(columns) + 0.5) / columns * len(samples)).astype(int)
    frames = np.lib.stride_tricks.sliding_window_view(padded, window)[starts] * _hann(window)
    power = np.abs(np.fft.rfft(frames)) ** 2  # [columns, bins]
    bands = _mel_bands(power, rate, rows)
    loudest = max(float(bands.max()), 1e-6)  # a silent take stays dark
    decibels = 10 * np.log10(np.maximum(bands / loudest, 1e-12))
    return np.clip(255 * (1 - decibels / FLOOR_DB), 0, 255).astype(np.uint8).T[::-1]


def colour_map(palette: Palette) -> np.ndarray:
    """The palette's heat colours spread over 256 levels, uint8 [256, 3]."""
    anchors = np.array(palette.heat, float)
    at = np.linspace(0, len(anchors) - 1, 256)
    channels = [np.interp(at, range(len(anchors)), channel) for channel in anchors.T]
    return np.stack(channels, axis=1).astype(np.uint8)


def _mel_bands(power: np.ndarray, rate: int, rows: int) -> np.ndarray:
    """Mean power of each row's band, low to high [columns, rows].

    Bands are at least one bin wide, so that the low rows, narrower than that, blend smoothly.
    """
    bins = power.shape[1]
    edges = _mel_inverse(np.linspace(0, _mel(rate / 2), rows + 1)) / (rate / 2) * (bins - 1)
    centres, widths = (edges[1:] + edges[:-1]) / 2, np.maximum(np.diff(edges), 1.0)
    total = np.concatenate([np.zeros((len(power), 1)), np.cumsum(power, axis=1, dtype=float)], axis=1)

    def integral(position: np.ndarray) -> np.ndarray:
        # of the power, from the lowest bin up to a position; bin k covers k - 0.5 .. k + 0.5
        position = np.clip(position + 0.5, 0, bins)
        whole = np.minimum(position.astype(int), bins - 1)
        return total[:, whole] + (position - whole) * power[:, whole]

    return (integral(centres + widths / 2) - integral(centres - widths / 2)) / widths


def _waveform_pixels(samples: np.ndarray, scale: float, box: Box, palette: Palette) -> np.ndarray:
    """The lane as uint8 [height, width, 3]; ``scale`` is the amplitude at the lane's edge."""
    width, height = box[2] - box[0], box[3] - box[1]
    edges = np.minimum(np.arange(width) * len(samples) // width, len(samples) - 1)
    counts = np.maximum(np.diff(np.append(edges, len(samples))), 1)
    low, high = np.minimum.reduceat(samples, edges), np.maximum.reduceat(samples, edges)
    rms = np.sqrt(np.add.reduceat(samples**2, edges) / counts)
    colours = np.where((np.maximum(high, -low) >= FULL_SCALE)[:, None], palette.clip, palette.peak)

    pixels = np.broadcast_to(np.array(palette.lane, float), (height, width, 3))
    pixels = _blend(pixels, _cover(low, high, scale, height), colours)
    pixels = _blend(pixels, _cover(-rms, rms, scale, height, least=0.0), np.array(palette.body))
    return pixels.astype(np.uint8)


def _cover(low: np.ndarray, high: np.ndarray, scale: float, height: int, least: float = 1.5) -> np.ndarray:
    """How much of each pixel lies between ``low`` and ``high`` [height, columns].

    Edges are soft; nothing is thinner than ``least`` pixels.
    """
    top, bottom = (0.5 - 0.5 * high / scale) * height, (0.5 - 0.5 * low / scale) * height
    missing = np.maximum(least - (bottom - top), 0) / 2
    pixel = np.arange(height)[:, None]
    return np.clip(np.minimum(bottom + missing, pixel + 1) - np.maximum(top - missing, pixel), 0, 1)


def _blend(pixels: np.ndarray, cover: np.ndarray, colours: np.ndarray) -> np.ndarray:
    return pixels + cover[:, :, None] * (colours - pixels)


def _scale_db(samples: np.ndarray) -> int:
    """The level at the lane's edge: 0 dB, or less in steps of 6 dB when the take is quiet."""
    peak = float(np.abs(samples).max())
    return next((scale for scale in (-18, -12, -6) if peak < 10 ** (scale / 20)), 0)


def _canvas(height: int, palette: Palette) -> tuple[Image.Image, ImageDraw.ImageDraw, Box]:
    image = Image.new("RGB", (WIDTH, height), palette.ground)
    return image, ImageDraw.Draw(image), (LEFT, TOP, WIDTH - RIGHT, height - BOTTOM)


def _time_axis(draw: ImageDraw.ImageDraw, box: Box, seconds: float, palette: Palette) -> None:
    left, _, right, bottom = box
    step = next((step for step in TIME_STEPS if seconds / step <= MAX_TIME_TICKS), TIME_STEPS[-1])
    for number in range(int(seconds / step + 1e-6) + 1):
        x = left + number * step / seconds * (right - left)
        draw.line([(x, bottom), (x, bottom + 6)], fill=palette.ink, width=2)
        if x < right - 40:  # room for the unit
            _text(draw, (x, bottom + 9), _time_label(number * step, seconds), palette, "ma")
    _text(draw, (right, bottom + 9), "s" if seconds < 120 else "min", palette, "ra")


def _time_label(at: float, total: float) -> str:
    return f"{at:g}" if total < 120 else f"{int(at) // 60}:{int(at) % 60:02d}"


def _value_tick(draw: ImageDraw.ImageDraw, box: Box, position: float, label: str, palette: Palette) -> None:
    """A tick left of the lane; ``position`` 0 is its top, 1 its bottom."""
    left, top, _, bottom = box
    y = top + position * (bottom - top)
    draw.line([(left - 6, y), (left - 1, y)], fill=palette.ink, width=2)
    _text(draw, (left - 11, y), label, palette, "rm")


def _unit(draw: ImageDraw.ImageDraw, box: Box, label: str, palette: Palette, at: float) -> None:
    y = box[1] + at * (box[3] - box[1])
    _text(draw, (box[0] - 11, y), label, palette, "rm")


def _text(draw: ImageDraw.ImageDraw, at: tuple[float, float], label: str, palette: Palette, anchor: str) -> None:
    draw.text(at, label, fill=palette.ink, font=_font(), anchor=anchor)


def _playable(samples: np.ndarray) -> np.ndarray:
    """float32 [n], n >= 1, finite: a picture is made of anything."""
    samples = np.nan_to_num(np.asarray(samples, np.float32).reshape(-1), posinf=1.0, neginf=-1.0)
    return samples if len(samples) else np.zeros(1, np.float32)


def _mel(hertz: float) -> float:
    return 2595 * np.log10(1 + hertz / 700)


def _mel_inverse(mel: np.ndarray) -> np.ndarray:
    return 700 * (10 ** (mel / 2595) - 1)


@lru_cache(maxsize=4)
def _hann(window: int) -> np.ndarray:
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)).astype(np.float32)


@lru_cache(maxsize=1)
def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(FONT_SIZE)


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)  # small enough, and half of the drawing time otherwise
    return buffer.getvalue()

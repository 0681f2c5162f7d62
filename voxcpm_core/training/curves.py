"""The curves of a training as a picture."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from .journal import read_curves

_WIDTH, _LANE, _LEFT, _MARGIN = 1000, 220, 70, 30  # pixels
_GROUND, _GRID, _INK = (255, 255, 255), (225, 228, 232), (80, 88, 98)
_COLOURS = {"train": (130, 190, 197), "val": (200, 90, 40)}


def draw_curves(log: Path, picture: Path) -> None:
    """One lane per loss, steps along the bottom, training and validation in two colours. Nothing without reports."""
    curves = read_curves(log)
    names = list(dict.fromkeys(name for kind in curves.values() for name in kind))
    if not names:
        return
    image = Image.new("RGB", (_WIDTH, _LANE * len(names) + _MARGIN), _GROUND)
    canvas, font = ImageDraw.Draw(image), ImageFont.load_default(16)
    for row, name in enumerate(names):
        lines = {kind: curves[kind][name] for kind in curves if name in curves[kind]}
        _lane(canvas, font, name, lines, top=row * _LANE + _MARGIN)
    fresh = picture.with_name(f".{picture.name}.new")
    image.save(fresh, format="PNG")
    fresh.replace(picture)


def _lane(
    canvas: ImageDraw.ImageDraw,
    font: ImageFont.ImageFont,
    name: str,
    lines: dict[str, list[tuple[int, float]]],
    top: int,
) -> None:
    points = [point for line in lines.values() for point in line]
    steps, values = [p[0] for p in points], [p[1] for p in points]
    first, last, low, high = min(steps), max(steps), min(values), max(values)
    height, width = _LANE - 2 * _MARGIN, _WIDTH - _LEFT - _MARGIN

    def place(step: int, value: float) -> tuple[float, float]:
        x = _LEFT + width * (step - first) / max(1, last - first)
        return x, top + height * (1 - (value - low) / max(1e-12, high - low))

    for value in (low, (low + high) / 2, high):
        y = place(first, value)[1]
        canvas.line((_LEFT, y, _LEFT + width, y), fill=_GRID)
        canvas.text((8, y - 9), f"{value:.3g}", fill=_INK, font=font)
    canvas.text((_LEFT, top - 24), name, fill=_INK, font=font)
    canvas.text((_LEFT, top + height + 4), f"step {first}", fill=_INK, font=font)
    canvas.text((_LEFT + width - 100, top + height + 4), f"step {last}", fill=_INK, font=font)
    for number, (kind, line) in enumerate(lines.items()):
        canvas.text((_LEFT + 160 + 80 * number, top - 24), kind, fill=_COLOURS[kind], font=font)
        places = [place(*point) for point in line]
        if len(places) > 1:
            canvas.line(places, fill=_COLOURS[kind], width=2)
        else:
            x, y = places[0]
            canvas.ellipse((x - 3, y - 3, x + 3, y + 3), fill=_COLOURS[kind])

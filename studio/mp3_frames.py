"""The bit rates of an MP3 file, frame by frame: whether it is really constant, as shops ask."""

from __future__ import annotations

import mmap
from pathlib import Path

_MPEG1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)  # kbit/s, layer III
_MPEG2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}


def bit_rates(path: Path) -> set[int]:
    """Every bit rate (kbit/s) that occurs; empty when the file is not MP3."""
    if not path.stat().st_size:
        return set()
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at, found = _behind_id3(data), set()
        while frame := _frame(data, at):
            rate, size = frame
            found.add(rate)
            at += size
        return found


def _behind_id3(data: mmap.mmap) -> int:
    """Where the first frame may begin: behind the ID3v2 tag, whose size is written in seven bits a byte."""
    if data[:3] != b"ID3":
        return 0
    size = 0
    for byte in data[6:10]:
        size = size << 7 | byte & 0x7F
    return 10 + size


def _frame(data: mmap.mmap, at: int) -> tuple[int, int] | None:
    """Bit rate and size in bytes of the frame at a place; None where there is no frame of layer III."""
    head = int.from_bytes(data[at : at + 4], "big")
    version, layer = head >> 19 & 3, head >> 17 & 3
    number, rate, padding = head >> 12 & 15, head >> 10 & 3, head >> 9 & 1
    if head >> 21 != 0x7FF or version == 1 or layer != 1 or number in (0, 15) or rate == 3:
        return None
    kbps = (_MPEG1 if version == 3 else _MPEG2)[number]
    samples = 1152 if version == 3 else 576
    return kbps, samples // 8 * kbps * 1000 // _RATES[version][rate] + padding

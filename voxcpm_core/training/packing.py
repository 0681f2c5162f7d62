"""Examples -> padded batches under a budget of positions, sorted by length so that little is padding."""

from __future__ import annotations

import random
from collections.abc import Sequence as List
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .alignment import PHONES
from .examples import Example

_GRAIN = 8  # lengths are rounded up to this: kernels like it


@dataclass(frozen=True)
class Batch:
    """B sequences padded on the right to T positions; A audio positions hold patches, N of the patches are learnt.

    A position whose output decides a patch stands one before it: ``query`` is the audio-start token for the first.
    """

    ids: Tensor  # [B, T] int64; 0 at audio and padding
    audio: Tensor  # [A] int64: where patches are read, as index into B * T, rising
    patches: Tensor  # [A, P, D]: what is read there
    query: Tensor  # [N] int64: positions that decide a patch, as index into B * T, rising
    target: Tensor  # [N, P, D]: the patch each of them decides
    condition: Tensor  # [N, P, D]: the patch before it, zeros after text
    stop: Tensor  # [N] int64: 1 where the utterance ends with this patch
    row: Tensor  # [A] int64: the sequence each read patch belongs to
    attention: Tensor | None  # [N, T]: share of the patch per text position; rows of zeros where not known
    phones: Tensor | None  # [N, PHONES]: phones heard in the patch
    phones_known: Tensor | None  # [N] bool
    examples: int

    def to(self, device: torch.device) -> Batch:
        moved = {
            name: value.to(device, non_blocking=True) if isinstance(value, Tensor) else value
            for name, value in vars(self).items()
        }
        return Batch(**moved)


def pack(examples: List[Example], positions: int) -> list[list[Example]]:
    """Groups of similar length, each at most ``positions`` with its padding; an example alone may be longer."""
    groups: list[list[Example]] = []
    current: list[Example] = []
    for example in sorted(examples, key=len):
        if current and (len(current) + 1) * _round_up(len(example)) > positions:
            groups.append(current)
            current = []
        current.append(example)
    return [*groups, current] if current else groups


def shuffled(groups: list[list[Example]], rng: random.Random) -> list[list[Example]]:
    rng.shuffle(groups)
    return groups


def collate(examples: List[Example]) -> Batch:
    """Lays ``examples`` out side by side. The last patch of each is only learnt, not read: nothing follows it."""
    length = _round_up(max(len(example) for example in examples))
    ids = torch.zeros(len(examples), length, dtype=torch.int64)
    audio, patches, query, target, condition, stop, rows = [], [], [], [], [], [], []
    aligned = any(example.attention is not None for example in examples)
    attention = np.zeros((sum(len(e.target) for e in examples), length), np.float32) if aligned else None
    first = 0
    for row, example in enumerate(examples):
        place = 0
        for span in (*example.sequence.voice, *example.sequence.rest, example.target[:-1]):
            if isinstance(span, Tensor):
                audio.append(torch.arange(place, place + len(span)) + row * length)
                patches.append(span)
                rows.append(torch.full((len(span),), row))
            else:
                ids[row, place : place + len(span)] = torch.tensor(span)
            place += len(span)
        start = len(example.sequence) - 1
        count = len(example.target)
        query.append(torch.arange(start, start + count) + row * length)
        target.append(example.target)
        prompt = example.sequence.prompt
        before = torch.zeros_like(example.target[:1]) if prompt is None else prompt[-1:]
        condition.append(torch.cat((before, example.target[:-1])))
        stop.append(torch.arange(count) == count - 1)
        if example.attention is not None:
            width = example.attention.shape[1]
            attention[first : first + count, start + 1 - width : start + 1] = example.attention
        first += count
    known = torch.cat([torch.full((len(e.target),), e.phones is not None) for e in examples])
    blank = np.zeros((1, len(PHONES)), np.float32)
    phones = [e.phones if e.phones is not None else np.repeat(blank, len(e.target), 0) for e in examples]
    return Batch(
        ids=ids,
        audio=torch.cat(audio),
        patches=torch.cat(patches),
        query=torch.cat(query),
        target=torch.cat(target),
        condition=torch.cat(condition),
        stop=torch.cat(stop).long(),
        row=torch.cat(rows),
        attention=torch.from_numpy(attention) if aligned else None,
        phones=torch.from_numpy(np.concatenate(phones)) if aligned else None,
        phones_known=known if aligned else None,
        examples=len(examples),
    )


def _round_up(length: int) -> int:
    return -(-length // _GRAIN) * _GRAIN

"""Item -> training example: which layout, which reference, which description, letters or phones. Chance decides.

Everything random comes from the generator that is handed in, so an example is a function of (item, seed).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..config import LATENTS_PER_SECOND, ModelConfig
from ..sequence import Sequence, build_sequence
from ..tokenizer import AUDIO_START, REFERENCE_END, REFERENCE_START, Tokenizer
from .alignment import attention_target, phones_heard, read_segments, spell
from .dataset import Dataset
from .describe import describe, tempo_word
from .errors import DataError

LAYOUTS = ("plain", "design", "continuation", "reference", "reference_continuation")


@dataclass(frozen=True)
class Recipe:
    """How often what is drawn. Layouts that an item cannot have are left out and the rest shared out anew."""

    layouts: dict[str, float] = field(default_factory=lambda: {"plain": 0.6, "design": 0.2, "reference": 0.2})
    spelling: tuple[float, float, float] = (0.15, 0.6, 0.25)  # aligned items: letters, phones, mixed word by word
    reference_seconds: tuple[float, float] = (1.0, 3.0)
    tempo_from_words: float = 0.6  # of the references of a fast or slow item: timbre from the clip, pace from a word


@dataclass(frozen=True)
class Example:
    """One sequence: what is read (:class:`Sequence`), then ``target`` patches ``[T, P, D]``, which are learnt."""

    sequence: Sequence
    target: Tensor
    layout: str
    attention: np.ndarray | None = None  # [T, text tokens + 1]: share of each patch per text token
    phones: np.ndarray | None = None  # [T, PHONES]

    def __len__(self) -> int:
        """Positions the model reads: nothing reads the last patch."""
        return len(self.sequence) + len(self.target) - 1


class Examples:
    """Makes examples of ``dataset`` for a model of ``config``; ``folder`` is where its tokenizer lies."""

    def __init__(self, dataset: Dataset, config: ModelConfig, folder: Path, recipe: Recipe):
        from tokenizers import Tokenizer as File

        unknown = [name for name in recipe.layouts if name not in LAYOUTS]
        if unknown:
            raise DataError(f"Layout '{unknown[0]}' is unknown; there are {', '.join(LAYOUTS)}.")
        if dataset.items and (size := dataset.frames(0).shape[-1]) != config.feat_dim:
            raise DataError(
                f"The data has {size} values per latent, the model {config.feat_dim}: made for another one."
            )
        self.dataset, self.config, self.recipe = dataset, config, recipe
        self.tokenizer = Tokenizer(folder / "tokenizer.json", config.lm.vocab_size)
        self._id = File.from_file(str(folder / "tokenizer.json")).token_to_id
        # Only a tokenizer of single characters, phones among them, can follow an alignment.
        self._spells = self._id(chr(0xE000)) is not None
        self.patch_seconds = config.patch_size / LATENTS_PER_SECOND

    def build(self, index: int, rng: random.Random, spelling: tuple[float, float, float] | None = None) -> Example:
        """An example of item ``index``; ``spelling`` in place of the recipe's. Raises DataError if it is too long."""
        example = self._build(index, rng, spelling or self.recipe.spelling)
        if len(example) > self.config.max_length:
            raise DataError(
                f"Item {index} ('{self.dataset.items[index].text[:40]}') takes {len(example)} positions, the model has "
                f"{self.config.max_length}. Cut the recording, or leave long ones out with --max-seconds."
            )
        return example

    def _build(self, index: int, rng: random.Random, spelling: tuple[float, float, float]) -> Example:
        item = self.dataset.items[index]
        layout = self._layout(index, rng)
        control, reference, before = "", None, None
        if layout == "design":
            control = rng.choice(item.controls) if item.controls else describe(item.voice, rng)
        if layout.startswith("reference"):
            control, reference = self._reference(index, rng)
        if layout.endswith("continuation"):
            before = self._other(index, item.key, rng)
        if item.segments and self._spells and before is None:
            return self._aligned(index, layout, control, reference, rng, spelling)
        prompt = None if before is None else self.patches(before)
        transcript = "" if before is None else self.dataset.items[before].text.rstrip() + " "
        text = f"({control}){item.text}" if control and not transcript else item.text
        sequence = build_sequence(self.tokenizer, text, transcript, prompt, reference)
        return Example(sequence, self.patches(index), layout)

    def patches(self, index: int) -> Tensor:
        """Whole patches ``[T, P, D]``; missing frames at the end repeat the last one."""
        frames = torch.from_numpy(self.dataset.frames(index))
        short = -len(frames) % self.config.patch_size
        if short:
            frames = torch.cat((frames, frames[-1:].expand(short, -1)))
        return frames.view(-1, self.config.patch_size, frames.shape[-1])

    def _layout(self, index: int, rng: random.Random) -> str:
        item, second = self.dataset.items[index], self.config.version == 2
        possible = {
            "plain": item.is_default,
            "design": second and bool(item.controls or item.voice.get("sex")),
            "continuation": item.is_default and bool(self._alike(index, item.key)),
            "reference": second and (item.reference is not None or bool(self._alike(index, item.key))),
            "reference_continuation": second and bool(self._alike(index, item.key)),
        }
        weights = [self.recipe.layouts.get(layout, 0.0) * possible[layout] for layout in LAYOUTS]
        if not sum(weights):
            return "plain"
        return rng.choices(LAYOUTS, weights=weights)[0]

    def _alike(self, index: int, key: tuple) -> list[int]:
        """Recordings that sound like ``key``, the item among them; none where there is no other."""
        group = self.dataset.groups.get(key, []) if key else []
        return group if group != [index] else []

    def _other(self, index: int, key: tuple, rng: random.Random) -> int:
        group = self._alike(index, key)
        while (other := rng.choice(group)) == index:
            pass
        return other

    def _reference(self, index: int, rng: random.Random) -> tuple[str, Tensor]:
        """What is said about the pace, and the clip: a piece of another recording of the same voice."""
        item = self.dataset.items[index]
        if item.reference is not None:
            return "", self.patches(item.reference)
        control, key = tempo_word(item.voice.get("tempo", 1.0), rng), item.key
        if control and rng.random() < self.recipe.tempo_from_words:
            key = item.key[:-1]
        else:
            control = ""
        patches = self.patches(self._other(index, key if self._alike(index, key) else item.key, rng))
        shortest, longest = (round(seconds / self.patch_seconds) for seconds in self.recipe.reference_seconds)
        length = min(len(patches), rng.randint(shortest, longest))
        start = rng.randint(0, len(patches) - length)
        return control, patches[start : start + length]

    def _aligned(
        self, index: int, layout: str, control: str, reference: Tensor | None, rng: random.Random, spelling: tuple
    ) -> Example:
        item, target = self.dataset.items[index], self.patches(index)
        way = rng.choices(("letters", "phones", "mixed"), weights=spelling)[0]
        in_phones = [way == "phones" or (way == "mixed" and rng.random() < 0.5) for _ in item.words]
        segments = read_segments(item.segments)
        timed = spell(item.text, item.words, segments, in_phones, item.seconds + 0.2)
        said = self.tokenizer.encode(f"({control})") if control else []
        ids = said + [self._id(character) or 0 for character in timed.characters] + [AUDIO_START]
        share = attention_target(timed.spans, len(target), self.patch_seconds)
        attention = np.concatenate((np.zeros((len(target), len(said)), np.float32), share), axis=1)
        voice = () if reference is None else ([REFERENCE_START], reference, [REFERENCE_END])
        return Example(
            Sequence(voice, (ids,), None),
            target,
            layout,
            attention,
            phones_heard(segments, len(target), self.patch_seconds),
        )


def seeded(seed: int, *numbers: int) -> random.Random:
    """A generator of its own for each combination, so that any of them can be made again alone."""
    return random.Random(":".join(map(str, (seed, *numbers))))

"""What the language models read, for all five modes, in one place.

    plain, design                 [text, 101]
    continuation                  [prompt text + text, 101, prompt patches]
    reference                     [103, reference patches, 104] [text, 101]
    reference + continuation      [103, reference patches, 104] [prompt text + text, 101, prompt patches]

The first bracket depends on the voice alone: it is the *voice part*, computed once per voice and reused.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from .tokenizer import AUDIO_START, REFERENCE_END, REFERENCE_START, Tokenizer

Span = list[int] | Tensor  # token ids, or patches [T, P, D]


@dataclass(frozen=True)
class Sequence:
    voice: tuple[Span, ...]  # empty without a reference
    rest: tuple[Span, ...]
    prompt: Tensor | None  # the prompt's patches [T, P, D]: the decoder is primed with the last of them

    def __len__(self) -> int:
        return sum(len(span) for span in (*self.voice, *self.rest))


def build_sequence(
    tokenizer: Tokenizer,
    text: str,
    prompt_text: str = "",
    prompt: Tensor | None = None,
    reference: Tensor | None = None,
) -> Sequence:
    """``text`` is the exact prompt string (control included); the clips are patches ``[T, P, D]``."""
    voice: tuple[Span, ...] = ()
    if reference is not None:
        voice = ([REFERENCE_START], reference, [REFERENCE_END])
    # One string, tokenised once: the seam between transcript and text must look like running text.
    ids = tokenizer.encode(prompt_text + text) + [AUDIO_START]
    rest: tuple[Span, ...] = (ids,) if prompt is None else (ids, prompt)
    return Sequence(voice, rest, prompt)

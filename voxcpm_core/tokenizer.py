"""Text -> token ids, as the published checkpoints expect them.

The tokenizer file is a LlamaTokenizerFast BPE. On top of it, every token that consists of two or more Han characters
(U+4E00-9FFF) is split into single characters, so that the model reads Chinese one character at a time. No BOS, no EOS.

A checkpoint may bring a ``lexicon.txt.gz``: a word and its phones per line (one vocabulary character per phone). Small
models speak clearer from phones; words that are not in it stay letters. No published checkpoint has one.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from .errors import CheckpointError

AUDIO_START, REFERENCE_START, REFERENCE_END = 101, 103, 104


class Tokenizer:
    """Wraps ``tokenizer.json``; thread-safe, nothing is changed after construction."""

    def __init__(self, path: Path, vocab_size: int):
        from tokenizers import Tokenizer as File

        if not path.is_file():
            raise CheckpointError(f"{path} is missing: the checkpoint has no tokenizer.")
        try:
            self._file = File.from_file(str(path))
        except Exception as error:  # the library raises bare Exceptions
            raise CheckpointError(f"{path} cannot be read as a tokenizer: {error}.") from None
        self._vocab = self._file.get_vocab(with_added_tokens=True)
        if max(self._vocab.values()) >= vocab_size:
            raise CheckpointError(f"{path} has ids up to {max(self._vocab.values())}, the model has {vocab_size}.")
        self._han = {token for token in self._vocab if len(token) >= 2 and all("一" <= c <= "\u9fff" for c in token)}
        self._unknown = self._vocab.get("<unk>", 0)
        self._lexicon = _read_lexicon(path.with_name("lexicon.txt.gz"))

    def encode(self, text: str) -> list[int]:
        """Ids of ``text`` (length varies), without special tokens."""
        ids: list[int] = []
        for token in self._file.encode(self._with_phones(text), add_special_tokens=False).tokens:
            plain = token.replace("▁", "")
            if plain in self._han:
                ids += [self._vocab.get(character, self._unknown) for character in plain]
            else:
                ids.append(self._vocab.get(token, self._unknown))
        return ids

    def _with_phones(self, text: str) -> str:
        """Known words as phones; a control in brackets at the start stays in letters, as it was trained."""
        if not self._lexicon:
            return text
        control = re.match(r"\([^()]*\)", text)
        start = control.end() if control else 0
        spoken = re.sub(r"[A-Za-z']+", lambda word: self._lexicon.get(word[0].lower(), word[0]), text[start:])
        return text[:start] + spoken


def _read_lexicon(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return dict(line.rstrip("\n").split("\t") for line in file)
    except (OSError, ValueError, EOFError) as error:
        raise CheckpointError(f"{path} cannot be read as a lexicon: {error}.") from None

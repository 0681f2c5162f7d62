"""How many people speak in a clip: voice embeddings of short pieces of it, in one group or two.

The embeddings are Resemblyzer's (a GE2E speaker encoder; the 17 MB of weights lie in its wheel, Apache-2.0). Only
that file is used, so the package's own requirements are not needed: ``pip install --no-deps Resemblyzer``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from studio.speech_activity import Region
from voxcpm_core.audio import Audio, resample

logger = logging.getLogger(__name__)

PIP_LINE = "pip install --no-deps Resemblyzer==0.1.4"
WEIGHTS_SHA256 = "39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e"

_RATE = 16_000
_PIECE = 1.6  # seconds the encoder was trained on
_SHORTEST = 0.9  # seconds; shorter speech says too little about its voice
_MOST = 40  # pieces of a clip; of a long one, every so many-th
# Two groups' means of one voice are more alike than this. A single piece says little, and must be farther off: of 162
# clips of one voice 1 % are taken for two then, of mixtures of two 82 % (same sex) and 98 % (woman and man) are found.
_ONE_VOICE, _ONE_VOICE_PIECE = 0.74, 0.66


@dataclass(frozen=True)
class Speakers:
    """How many voices, how alike the two groups are (1 = the same), and who speaks where (0 or 1)."""

    count: int
    similarity: float
    turns: tuple[tuple[float, float, int], ...]  # start, end, speaker


def available() -> tuple[bool, str]:
    """Whether the encoder's weights are installed, and otherwise the line that installs them."""
    return (True, "") if _weights_path() else (False, PIP_LINE)


def count_speakers(audio: Audio, regions: list[Region]) -> Speakers | None:
    """The voices of a clip's speech regions; None without the encoder or with too little speech to compare."""
    pieces = pieces_of(regions)
    if _weights_path() is None or len(pieces) < 2:
        return None
    embeddings = embed(audio, pieces)
    groups, similarity = _two_groups(embeddings)
    alone = min(np.count_nonzero(groups == group) for group in (0, 1)) == 1
    if similarity >= (_ONE_VOICE_PIECE if alone else _ONE_VOICE):
        groups = np.zeros(len(pieces), int)
    turns = tuple((start, end, int(group)) for (start, end), group in zip(pieces, groups, strict=True))
    return Speakers(len(set(groups.tolist())), similarity, turns)


def embed(audio: Audio, pieces: list[Region]) -> np.ndarray:
    """One voice embedding of length 1 per piece (seconds), float32 [pieces, 256]."""
    import torch

    sound, (layers, linear) = resample(audio, _RATE).samples, _encoder()
    with torch.inference_mode():
        mels = torch.stack([_mel(sound[round(start * _RATE) : round(end * _RATE)]) for start, end in pieces])
        _, (hidden, _) = layers(mels)
        raw = torch.relu(linear(hidden[-1]))
        return (raw / raw.norm(dim=1, keepdim=True)).numpy()


def pieces_of(regions: list[Region]) -> list[Region]:
    """Each region in equal steps of pieces; what is too short alone is left out."""
    pieces = []
    for start, end in regions:
        count = max(1, int((end - start) / _PIECE))
        if end - start < _SHORTEST:
            continue
        firsts = np.linspace(start, max(start, end - _PIECE), count)
        pieces += [(float(first), float(min(first + _PIECE, end))) for first in firsts]
    return pieces[:: -(-len(pieces) // _MOST)] if pieces else []


def _two_groups(embeddings: np.ndarray) -> tuple[np.ndarray, float]:
    """The best split in two (k-means from the two least similar pieces) and the similarity of the means."""
    likeness = embeddings @ embeddings.T
    first, second = np.unravel_index(likeness.argmin(), likeness.shape)
    groups = (likeness[:, second] > likeness[:, first]).astype(int)
    for _ in range(8):
        means = np.stack([embeddings[groups == group].mean(axis=0) for group in (0, 1)])
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        moved = (embeddings @ means[1] > embeddings @ means[0]).astype(int)
        if len(set(moved.tolist())) < 2 or np.array_equal(moved, groups):
            break
        groups = moved
    return groups, float(means[0] @ means[1])


@lru_cache(maxsize=1)
def _weights_path() -> Path | None:
    """The weights in the installed package, which is not imported: it needs much that we do not."""
    found = importlib.util.find_spec("resemblyzer")
    folders = found.submodule_search_locations if found else None
    path = Path(list(folders)[0], "pretrained.pt") if folders else None
    if path is None or not path.is_file():
        return None
    if hashlib.sha256(path.read_bytes()).hexdigest() != WEIGHTS_SHA256:
        logger.warning("%s is not the known speaker encoder and is not used", path)
        return None
    return path


@lru_cache(maxsize=1)
def _encoder() -> tuple[Any, Any]:
    import torch

    stored = torch.load(_weights_path(), map_location="cpu", weights_only=True)["model_state"]
    layers, linear = torch.nn.LSTM(40, 256, 3, batch_first=True), torch.nn.Linear(256, 256)
    for name, module in (("lstm.", layers), ("linear.", linear)):
        module.load_state_dict({key[len(name) :]: value for key, value in stored.items() if key.startswith(name)})
        module.eval().requires_grad_(False)
    return layers, linear


def _mel(sound: np.ndarray) -> Any:
    """Mel powers of one piece [160 frames, 40 bands] as the encoder expects them: 25 ms windows, level -30 dB."""
    import torch

    level = float(np.sqrt(np.mean(np.square(sound)))) or 1.0
    sound = np.resize(sound, round(_PIECE * _RATE)) * np.float32(10 ** (-30 / 20) / level)  # a short piece repeats
    return _mel_transform()(torch.from_numpy(sound.astype(np.float32)))[:, :160].T


@lru_cache(maxsize=1)
def _mel_transform() -> Any:
    from torchaudio.transforms import MelSpectrogram

    return MelSpectrogram(_RATE, 400, 400, 160, n_mels=40, norm="slaney", mel_scale="slaney", pad_mode="constant")

"""An inaudible mark in the sound itself: Perth, from the optional package resemble-perth.

It survives MP3, resampling and cuts, which tags do not. Perth works at 32 kHz and would drop everything above 16 kHz;
so only the difference that it makes (below 2 kHz) is added to the untouched sound. The same sound always gets the same
mark. Everybody who uses Perth puts in the same one: it says "made by a machine", not by which.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from voxcpm_core.audio import Audio, resample

PIP_LINE = "pip install resemble-perth==1.0.1 scipy pyyaml"
FOUND = 0.5  # a score above this is a mark: marked sound scores about 1, other sound about 0

_NEEDED = ("perth", "scipy", "yaml")
_RATE = 32_000  # what Perth hears
_PIECE, _LAP = 60 * _RATE, _RATE  # samples marked at once, and shared with the next piece
_HEARD = 30 * _RATE  # samples judged at once
_LISTENS = 12  # how often a long recording is listened to
_FRAME = _RATE // 50  # samples of one level reading
_PAUSE = 10 ** (-25 / 10)  # a frame this far below the mean power is a pause
_HOLD = 5  # frames around sound that count as sound
_loading = threading.Lock()


def available() -> bool:
    """Whether the package is installed; nothing is loaded to find out."""
    return all(importlib.util.find_spec(name) is not None for name in _NEEDED)


def mark(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    """Samples [n] with the mark, float32 [n]. What is too quiet to hide anything stays as it is."""
    low = resample(Audio(samples, sample_rate), _RATE).samples
    if not len(low) or not np.any(low):
        return np.asarray(samples, np.float32)
    change = np.zeros(len(low), np.float32)
    for start in range(0, len(low), _PIECE):
        piece = low[start : start + _PIECE + _LAP]
        change[start : start + len(piece)] += _change(piece) * _share(len(piece), first=start == 0)
        if start + len(piece) == len(low):
            break
    added = resample(Audio(change, _RATE), sample_rate).samples[: len(samples)]
    return np.asarray(samples, np.float32) + np.pad(added, (0, len(samples) - len(added)))


def score(samples: np.ndarray, sample_rate: int) -> float:
    """How surely samples [n] carry the mark, 0.0 to 1.0; see FOUND. A long recording is heard in places."""
    low = _sounding(resample(Audio(samples, sample_rate), _RATE).samples)
    heard = [value for piece in _places(low) for value in _heard(piece)]
    return float(np.mean(heard)) if heard else 0.0


def _sounding(low: np.ndarray) -> np.ndarray:
    """Samples without their pauses. Mastering lays a room tone there, which carries no mark and would count as a no."""
    frames = low[: len(low) // _FRAME * _FRAME].reshape(-1, _FRAME)
    powers = np.square(frames).mean(axis=1)
    loud = (powers > powers.mean() * _PAUSE) if len(powers) else np.zeros(0, bool)
    near = np.convolve(loud, np.ones(2 * _HOLD + 1), "same") > 0 if len(loud) > 2 * _HOLD else loud
    return frames[near].reshape(-1)


def _places(low: np.ndarray) -> Iterator[np.ndarray]:
    if len(low) <= _HEARD * _LISTENS:
        yield from (low[start : start + _HEARD] for start in range(0, len(low), _HEARD))
        return
    for start in np.linspace(0, len(low) - _HEARD, _LISTENS).astype(int):
        yield low[start : start + _HEARD]


def _heard(low: np.ndarray) -> list[float]:
    """The score of one stretch; none for one that is too short or silent."""
    import torch

    net = _net()
    if len(low) < net.hp.n_fft or not np.any(low):
        return []
    with torch.inference_mode():
        magnitudes, _ = net.ap.signal_to_magphase(torch.from_numpy(low.copy()))
        return [float(net.decoder(magnitudes[None]).clip(0, 1)[0])]


def _change(low: np.ndarray) -> np.ndarray:
    """What Perth adds to samples [n] at 32 kHz, float32 [n]; zeros where there is too little to analyse."""
    import torch

    net = _net()
    if len(low) < net.hp.n_fft or not np.any(low):
        return np.zeros(len(low), np.float32)
    with torch.inference_mode():
        magnitudes, phases = net.ap.signal_to_magphase(torch.from_numpy(low.copy()))
        # Analysis and synthesis alone are no change; what they lose at the end must not be taken for one.
        marked, plain = (
            net.ap.magphase_to_signal(values, phases).numpy()
            for values in (net.encoder(magnitudes[None])[0][0], magnitudes)
        )
    return np.pad(marked - plain, (0, len(low) - len(marked)))


def _share(length: int, first: bool) -> np.ndarray:
    """A piece's weights: it fades in over what it shares with the piece before, and out over what the next one has."""
    weights = np.ones(length, np.float32)
    ramp = np.linspace(0, 1, _LAP, dtype=np.float32)
    if not first:
        lap = min(_LAP, length)
        weights[:lap] *= ramp[:lap]
    if length == _PIECE + _LAP:
        weights[-_LAP:] *= ramp[::-1]
    return weights


def _net() -> Any:
    with _loading:
        return _loaded_net()


@lru_cache(maxsize=1)
def _loaded_net() -> Any:
    """The package's network with the weights of its wheel.

    The package cannot be imported as a whole: it wants librosa and a part of setuptools that newer releases lack, and
    turns into nothing when they are missing. Its network needs neither, so only that is loaded.
    """
    import torch
    import yaml

    root = Path(importlib.util.find_spec("perth").submodule_search_locations[0])
    with _bare_packages({"perth": root, "perth.perth_net": root / "perth_net"}):
        from perth.perth_net.perth_net_implicit.config import PerthConfig
        from perth.perth_net.perth_net_implicit.model.perth_net import PerthNet

    trained = root / "perth_net" / "pretrained" / "implicit"
    net = PerthNet(PerthConfig(**yaml.safe_load((trained / "hparams.yaml").read_text(encoding="utf-8"))))
    weights = torch.load(trained / "perth_net_250000.pth.tar", map_location="cpu", weights_only=True)
    net.load_state_dict(weights["model"])
    return net.eval().requires_grad_(False)


@contextmanager
def _bare_packages(folders: dict[str, Path]) -> Iterator[None]:
    """Meanwhile, packages of these names are plain folders: their own start-up code does not run."""
    mine = {name: types.ModuleType(name) for name in folders if name not in sys.modules}
    for name, package in mine.items():
        package.__path__ = [str(folders[name])]
    sys.modules.update(mine)
    try:
        yield
    finally:
        for name in mine:
            del sys.modules[name]

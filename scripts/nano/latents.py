"""What nano's latents are: 25 frames a second, 32 numbers each, computed from 16 kHz samples by a fixed rule.

    python -m scripts.nano.latents speech.wav latents.npy

0-27 are principal components of four log-mel frames, 28-29 two values of log2 f0, 30-31 two values of voicing (0 to 1).
All are shifted and scaled by the constants of ``latent_recipe.npz`` and clipped to +-6. Because the latents are defined
and not learnt, the language model, the decoder and the encoder can be trained apart from each other.
"""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

Samples = NDArray[np.float32]

RATE = 16000
HOP = 640  # samples per latent, 40 ms
PATCH = 2 * HOP
WIDTH = 32
COMPONENTS = 28

_MEL_WINDOW, _MEL_HOP, _MEL_BANDS, _MEL_FLOOR = 512, 160, 80, 1e-3
_F0_WINDOW, _F0_HOP, _FFT = 1024, 320, 2048
_SHORTEST, _LONGEST = 38, 247  # lags in samples: 421 to 65 Hz
_HIGH_BIN = 120  # 940 Hz; what lies above counts a quarter, so that formants do not pass for the pitch
_PEAK_SHARE = 0.88  # the first peak at least this high beside the highest one is the period
_SILENT = 2e-5  # mean square of a window without sound
_VOICED = 0.55
_NO_PITCH = 150.0  # Hz, for a clip without any voiced frame


def latents(samples: Samples) -> Samples:
    """float32 [n] at 16 kHz -> float32 [frames, 32]; frames is even, the end is filled up with silence."""
    recipe = constants()
    mel, pitch = features(samples)
    z = np.concatenate([(mel - recipe["pca_mean"]) @ recipe["pca_V"], pitch], axis=1)
    return np.clip((z - recipe["shift"]) / recipe["scale"], -6, 6).astype("float32")


def features(samples: Samples) -> tuple[Samples, Samples]:
    """float32 [n] -> log-mel [frames, 4 * 80] and [frames, 4] = log2 f0 twice, voicing twice."""
    frames = -(-len(samples) // PATCH) * 2
    x = torch.from_numpy(np.pad(samples, (0, frames * HOP - len(samples))))
    f0, voicing = pitch_track(x)
    mel = log_mel(x).reshape(frames, -1)
    return mel.numpy(), np.concatenate([f0.reshape(frames, 2), voicing.reshape(frames, 2)], axis=1).astype("float32")


def log_mel(x: Tensor) -> Tensor:
    """[n], n a multiple of 160 -> natural log of the magnitudes [n / 160, 80]; frame k is centred at (k + 0.5) *
    160.
    """
    around = (_MEL_WINDOW - _MEL_HOP) // 2
    padded = F.pad(x, (around, around + _MEL_HOP))
    spectrum = torch.stft(
        padded[None], _MEL_WINDOW, _MEL_HOP, window=torch.hann_window(_MEL_WINDOW), center=False, return_complex=True
    )
    return torch.log((mel_bands() @ spectrum.abs()[0][:, : len(x) // _MEL_HOP]).clamp(min=_MEL_FLOOR)).T


def pitch_track(x: Tensor) -> tuple[NDArray, NDArray]:
    """[n], n a multiple of 320 -> log2 of f0 in Hz and voicing 0 to 1, one of each per 20 ms.

    Autocorrelation, its highest early peak with a parabola through it; octave errors are moved towards the clip's
    median.
    """
    around = (_F0_WINDOW - _F0_HOP) // 2
    windows = F.pad(x, (around, around + _F0_HOP)).unfold(0, _F0_WINDOW, _F0_HOP)[: len(x) // _F0_HOP]
    windows = windows - windows.mean(1, keepdim=True)
    power = torch.fft.rfft(windows * torch.hann_window(_F0_WINDOW), _FFT).abs() ** 2
    power[:, _HIGH_BIN:] *= 0.25
    curve = torch.fft.irfft(power)[:, :260]
    curve = (curve / (curve[:, :1] + 1e-6) / _window_autocorrelation())[:, _SHORTEST : _LONGEST + 1]
    highest = curve.max(1).values
    lag = _SHORTEST + _first_high_peak(curve, highest)
    sounding = windows.pow(2).mean(1) > _SILENT
    voicing = (highest * sounding).clamp(0, 1).numpy()
    return _smooth(torch.log2(RATE / lag).numpy(), voicing > _VOICED), voicing


def _first_high_peak(curve: Tensor, highest: Tensor) -> Tensor:
    """Place (a fraction) of the first local maximum near the global one, per row of ``curve [n, lags]``."""
    is_peak = torch.zeros_like(curve, dtype=torch.bool)
    middle = curve[:, 1:-1]
    is_peak[:, 1:-1] = (middle >= curve[:, :-2]) & (middle >= curve[:, 2:])
    is_peak &= curve >= (_PEAK_SHARE * highest)[:, None]
    at = torch.where(is_peak.any(1), is_peak.float().argmax(1), curve.argmax(1)).clamp(1, curve.shape[1] - 2)
    rows = torch.arange(len(at))
    left, top, right = curve[rows, at - 1], curve[rows, at], curve[rows, at + 1]
    return at + (0.5 * (left - right) / (left - 2 * top + right - 1e-9)).clamp(-0.5, 0.5)


def _smooth(log_f0: NDArray, voiced: NDArray) -> NDArray:
    """Octave jumps undone, median of five, straight lines through what is not voiced."""
    if voiced.sum() <= 3:
        return np.full(len(log_f0), np.log2(_NO_PITCH))
    at = np.flatnonzero(voiced)
    track = log_f0[at]
    median = np.median(track)
    track = np.where(track > median + 0.75, track - 1, np.where(track < median - 0.75, track + 1, track))
    track = np.median(np.lib.stride_tricks.sliding_window_view(np.pad(track, 2, mode="edge"), 5), axis=1)
    return np.interp(np.arange(len(log_f0)), at, track)


def f0_of(z: Samples) -> tuple[Samples, Samples]:
    """Latents [frames, 32] -> f0 in Hz and voicing, two of each per frame: [2 * frames]."""
    recipe = constants()
    pitch = z[:, COMPONENTS:] * recipe["scale"][COMPONENTS:] + recipe["shift"][COMPONENTS:]
    return 2.0 ** pitch[:, :2].reshape(-1), pitch[:, 2:].reshape(-1)


@cache
def constants() -> dict[str, Samples]:
    """pca_mean [320], pca_V [320, 28], pca_eigenvalues [28], shift [32], scale [32]."""
    with np.load(Path(__file__).with_name("latent_recipe.npz"), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


@cache
def mel_bands() -> Tensor:
    """Triangles of equal area on Slaney's scale (linear to 1 kHz, then logarithmic), 0 to 8 kHz: [80, 257]."""
    step, knee, growth = 200 / 3, 1000.0, np.log(6.4) / 27

    def to_hz(mel: NDArray) -> NDArray:
        linear = mel * step
        return np.where(linear < knee, linear, knee * np.exp(growth * (mel - knee / step)))

    top = knee / step + np.log(RATE / 2 / knee) / growth
    edges = to_hz(np.linspace(0, top, _MEL_BANDS + 2))
    bins = np.linspace(0, RATE / 2, _MEL_WINDOW // 2 + 1)
    rising = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    triangles = np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]
    return torch.from_numpy(triangles).float()


@cache
def _window_autocorrelation() -> Tensor:
    curve = torch.fft.irfft(torch.fft.rfft(torch.hann_window(_F0_WINDOW), _FFT).abs() ** 2)[:260]
    return curve / curve[0]


def main() -> None:
    from voxcpm_core.audio import load_audio, resample

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("audio", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    z = latents(resample(load_audio(given.audio), RATE).samples)
    np.save(given.out, z)
    print(f"{given.out}: {z.shape[0]} frames of {z.shape[1]}, {z.shape[0] / 25:.2f} s")


if __name__ == "__main__":
    main()

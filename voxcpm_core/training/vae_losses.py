"""What a decoded clip is compared by: spectra of several resolutions, and small discriminators that look at spectra.

Sources: multi-resolution STFT loss (arXiv 1910.11480), STFT discriminators with feature matching (arXiv 2210.13438),
hinge losses (arXiv 1705.02894).
"""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SIZES = (128, 256, 512, 1024, 2048)
MEL_BANDS = {128: 10, 256: 20, 512: 40, 1024: 80, 2048: 80}
JUDGED = (256, 512, 1024)
FLOOR = 1e-3

Judgement = list[tuple[Tensor, list[Tensor]]]  # per discriminator: scores, features of its layers


def spectrum(samples: Tensor, size: int) -> Tensor:
    """``[B, n]`` -> complex ``[B, size / 2 + 1, frames]``, hop a quarter of the size."""
    window = torch.hann_window(size, device=samples.device)
    return torch.stft(samples, size, size // 4, window=window, return_complex=True)


def spectral_loss(made: Tensor, real: Tensor, rate: int = 16000) -> Tensor:
    """Mean over five resolutions of L1 of log-mel + 0.3 L1 of log magnitude + 0.5 relative L1 of magnitude."""
    total = made.new_zeros(())
    for size in SIZES:
        one, other = ((spectrum(x, size).abs() + 1e-7) for x in (made, real))
        bands = mel_bands(size, MEL_BANDS[size], rate).to(made.device)
        mel = F.l1_loss(_log(bands @ one), _log(bands @ other))
        relative = (one - other).abs().sum() / other.sum()
        total = total + mel + 0.3 * F.l1_loss(_log(one), _log(other)) + 0.5 * relative
    return total / len(SIZES)


class Discriminators(nn.Module):
    """One small network per resolution over real and imaginary part; each gives a score per place and its features."""

    def __init__(self, channels: int = 16):
        super().__init__()
        self.nets = nn.ModuleList(_discriminator(channels) for _ in JUDGED)

    def forward(self, samples: Tensor) -> Judgement:
        """``[B, n]`` -> scores and features per resolution."""
        out = []
        for size, net in zip(JUDGED, self.nets, strict=True):
            x = torch.view_as_real(spectrum(samples, size) / size**0.5).permute(0, 3, 1, 2)
            features = []
            for layer in net[:-1]:
                x = F.leaky_relu(layer(x), 0.1)
                features.append(x)
            out.append((net[-1](x), features))
        return out


def adversarial_losses(real: Judgement, made: Judgement) -> tuple[Tensor, Tensor]:
    """(loss of the discriminators, loss of what made ``made``): hinge losses, mean over resolutions."""
    judging = [F.relu(1 - r).mean() + F.relu(1 + m).mean() for (r, _), (m, _) in zip(real, made, strict=True)]
    fooling = [F.relu(1 - m).mean() for m, _ in made]
    return torch.stack(judging).mean(), torch.stack(fooling).mean()


def feature_distance(real: Judgement, made: Judgement) -> Tensor:
    """Mean over all layers of the L1 distance, relative to the size of the real features."""
    distances = [
        (r - m).abs().mean() / r.abs().mean().clamp(min=1e-4)
        for (_, seen), (_, heard) in zip(real, made, strict=True)
        for r, m in zip(seen, heard, strict=True)
    ]
    return torch.stack(distances).mean()


@cache
def mel_bands(size: int, bands: int, rate: int) -> Tensor:
    """Triangles on the mel scale (2595 log10(1 + f / 700)), each of height one: ``[bands, size / 2 + 1]``."""
    top = torch.log10(torch.tensor(1 + rate / 2 / 700))
    edges = 700 * (10 ** (torch.linspace(0, 1, bands + 2) * top) - 1)
    frequency = torch.linspace(0, rate / 2, size // 2 + 1)
    rising = (frequency - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - frequency) / (edges[2:] - edges[1:-1])[:, None]
    return torch.minimum(rising, falling).clamp(min=0)


def _log(x: Tensor) -> Tensor:
    return x.clamp(min=FLOOR).log()


def _discriminator(channels: int) -> nn.ModuleList:
    layer = nn.utils.parametrizations.weight_norm
    steps = [
        (2, channels, (1, 1)),
        (channels, channels, (2, 1)),
        (channels, channels, (2, 2)),
        (channels, channels, (2, 1)),
    ]
    convolutions = [layer(nn.Conv2d(a, b, (5, 3), stride=stride, padding=(2, 1))) for a, b, stride in steps]
    return nn.ModuleList([*convolutions, layer(nn.Conv2d(channels, 1, (3, 3), padding=1))])

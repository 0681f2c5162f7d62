"""AudioVAE: samples <-> latents (25 a second), whole or in pieces. Always float32.

A causal convolutional codec after DAC (arXiv 2306.06546). Tensors are channels-last ``[B, T, C]``, so that every dense
convolution is a window gathered into one matrix product and every elementwise step runs over contiguous memory.
Being causal, the decoder needs only the last frames of each convolution's input to go on: that is the *state*, a list
of tensors handed in and out, one entry per convolution with memory, batch first. Decoding in pieces equals decoding at
once.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .audio_vae_gradients import DepthwiseWithGradient, SnakeWithGradient
from .config import AudioVAEConfig
from .linear import Kernel, make_kernel

State = list[Tensor]


class Snake(nn.Module):
    """``x + sin(alpha x)^2 / alpha`` with one alpha per channel (arXiv 2006.08195)."""

    def __init__(self, channels: int):
        super().__init__()
        self.alpha = nn.Parameter(torch.empty(1, channels, 1), requires_grad=False)
        self._constants: tuple[Tensor, Tensor] | None = None  # alpha and 1 / alpha, per channel

    def constants(self) -> tuple[Tensor, Tensor]:
        alpha = self.alpha.flatten()
        return alpha, 1.0 / (alpha + 1e-9)

    def prepare(self) -> None:
        self._constants = self.constants()

    def forward(self, x: Tensor) -> Tensor:
        alpha, inverse = self._constants or self.constants()
        if torch.is_grad_enabled() and (x.requires_grad or alpha.requires_grad):
            return SnakeWithGradient.apply(x, alpha, inverse)
        wave = (x * alpha).sin_()
        return torch.addcmul(x, wave.mul_(wave), inverse)


class Convolution(nn.Module):
    """Holds ``weight`` and ``bias`` as published; subclasses say how they are laid out for one matrix product."""

    def __init__(self, *shape: int, channels_out: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(*shape), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(channels_out), requires_grad=False)
        self.kernel: Kernel | None = None

    def matrix(self) -> tuple[Tensor, Tensor | None]:
        raise NotImplementedError

    def product(self, x: Tensor) -> Tensor:
        return self.kernel(x) if self.kernel is not None else F.linear(x, *self.matrix())

    def prepare(self) -> None:
        self.kernel = make_kernel(*self.matrix())
        self.weight = None


class WindowConv(Convolution):
    """Dense causal convolution over windows of ``size`` frames, ``left`` zeros before the first. Whole clips only."""

    def __init__(self, channels_in: int, channels_out: int, size: int, left: int, stride: int = 1):
        super().__init__(channels_out, channels_in, size, channels_out=channels_out)
        self.size, self.left, self.stride = size, left, stride

    def matrix(self) -> tuple[Tensor, Tensor | None]:
        return self.weight.permute(0, 2, 1).reshape(self.weight.shape[0], -1), self.bias

    def forward(self, x: Tensor) -> Tensor:
        count = x.shape[1] // self.stride
        x = F.pad(x, (0, 0, self.left, 0))
        windows = x.unfold(1, self.size, self.stride)[:, :count].transpose(2, 3)
        return self.product(windows.reshape(x.shape[0], count, -1))


class Pointwise(Convolution):
    def __init__(self, channels_in: int, channels_out: int):
        super().__init__(channels_out, channels_in, 1, channels_out=channels_out)

    def matrix(self) -> tuple[Tensor, Tensor | None]:
        return self.weight[:, :, 0], self.bias

    def forward(self, x: Tensor) -> Tensor:
        return self.product(x)


class DepthwiseConv(nn.Module):
    """Seven taps per channel, ``dilation`` frames apart, the last one on the frame itself."""

    TAPS = 7

    def __init__(self, channels: int, dilation: int = 1):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, 1, self.TAPS), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(channels), requires_grad=False)
        self.dilation = dilation

    def memory(self, batch: int, like: Tensor) -> Tensor:
        return like.new_zeros(batch, (self.TAPS - 1) * self.dilation, self.weight.shape[0])

    def forward(self, x: Tensor, tail: Tensor) -> tuple[Tensor, Tensor]:
        taps = self.weight[:, 0].t().contiguous()
        history, length = torch.cat((tail, x), dim=1), x.shape[1]
        if torch.is_grad_enabled() and (x.requires_grad or taps.requires_grad):
            out = DepthwiseWithGradient.apply(history, taps, self.bias, self.dilation)
            return out, history[:, -tail.shape[1] :]
        out = torch.addcmul(self.bias, history[:, :length], taps[0])
        for tap in range(1, self.TAPS):
            start = tap * self.dilation
            out.addcmul_(history[:, start : start + length], taps[tap])
        return out, history[:, -tail.shape[1] :]


class Upsample(Convolution):
    """Transposed convolution two strides long: a frame and the one before it make ``stride`` frames."""

    def __init__(self, channels_in: int, channels_out: int, stride: int):
        super().__init__(channels_in, channels_out, 2 * stride, channels_out=channels_out)
        self.channels_in, self.channels_out, self.stride = channels_in, channels_out, stride

    def matrix(self) -> tuple[Tensor, Tensor | None]:
        return self.weight.permute(2, 1, 0).reshape(-1, self.weight.shape[0]), None

    def memory(self, batch: int, like: Tensor) -> Tensor:
        return like.new_zeros(batch, 1, self.stride * self.channels_out)

    def forward(self, x: Tensor, tail: Tensor) -> tuple[Tensor, Tensor]:
        now, later = self.product(x).chunk(2, dim=-1)  # what a frame adds to its own and to the next frame's place
        out = now + torch.cat((tail, later[:, :-1]), dim=1)
        return out.reshape(x.shape[0], -1, self.channels_out).add_(self.bias), later[:, -1:]


class OutputConv(Convolution):
    """Seven taps down to one channel: one product gives each tap's share of every frame, shifted sums join them."""

    TAPS = 7

    def __init__(self, channels: int):
        super().__init__(1, channels, self.TAPS, channels_out=1)

    def matrix(self) -> tuple[Tensor, Tensor | None]:
        return self.weight[0].t().contiguous(), None

    def memory(self, batch: int, like: Tensor) -> Tensor:
        return like.new_zeros(batch, self.TAPS - 1, self.TAPS)

    def forward(self, x: Tensor, tail: Tensor) -> tuple[Tensor, Tensor]:
        shares, length = torch.cat((tail, self.product(x)), dim=1), x.shape[1]
        out = shares[:, :length, 0] + self.bias
        for tap in range(1, self.TAPS):
            out += shares[:, tap : tap + length, tap]
        return out, shares[:, -(self.TAPS - 1) :]


class ResidualUnit(nn.Module):
    def __init__(self, channels: int, dilation: int):
        super().__init__()
        self.block = nn.ModuleList(
            (Snake(channels), DepthwiseConv(channels, dilation), Snake(channels), Pointwise(channels, channels))
        )

    def forward(self, x: Tensor, tail: Tensor) -> tuple[Tensor, Tensor]:
        snake, depthwise, second_snake, pointwise = self.block
        y, tail = depthwise(snake(x), tail)
        return pointwise(second_snake(y)).add_(x), tail


class EncoderBlock(nn.Module):
    def __init__(self, channels: int, stride: int, version: int):
        super().__init__()
        # Generation 1 pads odd strides by one sample more: same weights, another function.
        left = stride if version == 2 else 2 * -(-stride // 2)
        units = [ResidualUnit(channels, dilation) for dilation in (1, 3, 9)]
        down = WindowConv(channels, 2 * channels, 2 * stride, left, stride)
        self.block = nn.ModuleList((*units, Snake(channels), down))

    def forward(self, x: Tensor) -> Tensor:
        *units, snake, down = self.block
        for unit in units:
            x, _ = unit(x, unit.block[1].memory(x.shape[0], x))
        return down(snake(x))


class Encoder(nn.Module):
    def __init__(self, config: AudioVAEConfig):
        super().__init__()
        channels = config.encoder_dim
        blocks: list[nn.Module] = [WindowConv(1, channels, 7, left=6)]
        for stride in config.encoder_rates:
            blocks.append(EncoderBlock(channels, stride, config.version))
            channels *= 2
        self.block = nn.ModuleList(blocks)
        self.fc_mu = WindowConv(channels, config.latent_dim, 3, left=2)
        self.fc_logvar = WindowConv(channels, config.latent_dim, 3, left=2)  # training only

    def forward(self, samples: Tensor) -> Tensor:
        """``[B, n]`` -> means ``[B, n / hop, D]``."""
        x = samples[..., None]
        for block in self.block:
            x = block(x)
        return self.fc_mu(x)


class RateCondition(nn.Module):
    """Scale and bias per channel, chosen by the bin of the output rate."""

    def __init__(self, bins: int, channels: int):
        super().__init__()
        self.scale_embed = nn.Embedding(bins, channels, _weight=torch.empty(bins, channels))
        self.bias_embed = nn.Embedding(bins, channels, _weight=torch.empty(bins, channels))

    def forward(self, x: Tensor, rate_bin: int) -> Tensor:
        return torch.addcmul(self.bias_embed.weight[rate_bin], x, self.scale_embed.weight[rate_bin])


class DecoderBlock(nn.Module):
    def __init__(self, channels: int, stride: int):
        super().__init__()
        half = channels // 2
        units = [ResidualUnit(half, dilation) for dilation in (1, 3, 9)]
        self.block = nn.ModuleList((Snake(channels), Upsample(channels, half, stride), *units))

    def memory(self, batch: int, like: Tensor) -> State:
        _, up, *units = self.block
        return [up.memory(batch, like), *(unit.block[1].memory(batch, like) for unit in units)]

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        snake, up, *units = self.block
        x, tail = up(snake(x), state[0])
        new = [tail]
        for unit, tail in zip(units, state[1:], strict=True):
            x, tail = unit(x, tail)
            new.append(tail)
        return x, new


class Decoder(nn.Module):
    BLOCK_STATE = 4  # tensors of memory in a DecoderBlock

    def __init__(self, config: AudioVAEConfig):
        super().__init__()
        channels = config.decoder_dim
        layers: list[nn.Module] = [DepthwiseConv(config.latent_dim), Pointwise(config.latent_dim, channels)]
        conditions: dict[str, nn.Module] = {}
        for stride in config.decoder_rates:
            if config.sr_bin_boundaries:
                conditions[str(len(layers))] = RateCondition(len(config.sr_bin_boundaries) + 1, channels)
            layers.append(DecoderBlock(channels, stride))
            channels //= 2
        self.model = nn.ModuleList((*layers, Snake(channels), OutputConv(channels)))
        self.rate_bin = sum(config.out_sample_rate > bound for bound in config.sr_bin_boundaries)
        if conditions:
            self.sr_cond_model = nn.ModuleDict(conditions)
            self.register_buffer("sr_bin_boundaries", torch.empty(len(config.sr_bin_boundaries), dtype=torch.int32))

    def initial_state(self, batch: int) -> State:
        like = self.model[0].bias
        first, _, *blocks, _, last = self.model
        inner = [tensor for block in blocks for tensor in block.memory(batch, like)]
        return [first.memory(batch, like), *inner, last.memory(batch, like)]

    def forward(self, latents: Tensor, state: State) -> tuple[Tensor, State]:
        """``latents [B, T, D]`` after what ``state`` has seen -> samples ``[B, T * hop]`` and the state after them."""
        first, widen, *blocks, snake, last = self.model
        x, tail = first(latents, state[0])
        x, new = widen(x), [tail]
        for index, block in enumerate(blocks):
            if hasattr(self, "sr_cond_model"):
                x = self.sr_cond_model[str(index + 2)](x, self.rate_bin)
            at = 1 + index * self.BLOCK_STATE
            x, tails = block(x, state[at : at + self.BLOCK_STATE])
            new += tails
        samples, tail = last(snake(x), state[-1])
        return samples.tanh_(), [*new, tail]


class AudioVAE(nn.Module):
    """Encoder and decoder with their rates; ``hop_length`` counts samples of the *input* per latent."""

    def __init__(self, config: AudioVAEConfig):
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)

    @property
    def hop_length(self) -> int:
        return self.config.encoder_hop

    def encode(self, samples: Tensor) -> Tensor:
        """``[B, n]`` at ``config.sample_rate``, n a multiple of ``config.encoder_hop`` -> ``[B, n / hop, D]``."""
        return self.encoder(samples)

    def decode(self, latents: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """``[B, T, D]`` -> samples ``[B, T * decoder_hop]`` at ``out_sample_rate``, and the state to go on with."""
        return self.decoder(latents, state if state is not None else self.decoder.initial_state(latents.shape[0]))

    def prepare(self) -> None:
        """Lays the weights out for inference (once, after loading)."""
        for module in self.modules():
            if isinstance(module, Convolution | Snake):
                module.prepare()

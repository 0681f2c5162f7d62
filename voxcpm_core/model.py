"""The arithmetic: sequences in, patches out. No threads, no files, no text.

    prefill(sequence)  -> Prefilled    what a row starts from
    Batch.add(...)                     rows come
    step(batch, ...)   -> patches      one patch for every row
    advance(batch, patches)            the language models read what was made
    Batch.remove(row)                  rows go

The published parts keep their names: ``base_lm`` plans, ``fsq_layer`` rounds the plan, ``residual_lm`` adds detail,
``feat_decoder`` turns both into a patch, ``feat_encoder`` reads patches back (VoxCPM, arXiv 2509.24650).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .audio_vae import State
from .config import ModelConfig
from .flow_matching import FlowMatching
from .linear import Linear
from .local import LocalEncoder
from .sequence import Sequence, Span
from .transformer import KVCache, Prefix, Transformer


class FSQ(nn.Module):
    """Finite scalar quantisation (arXiv 2309.15505): ``[..., H] -> [..., H]`` through rounded values."""

    def __init__(self, hidden: int, size: int, scale: int):
        super().__init__()
        self.in_proj = Linear(hidden, size, bias=True)
        self.out_proj = Linear(size, hidden, bias=True)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return self.out_proj(torch.round(torch.tanh(self.in_proj(x)) * self.scale) / self.scale)


@dataclass(frozen=True)
class VoicePrefix:
    """What both language models remember of the voice part of a sequence."""

    base: Prefix
    residual: Prefix


@dataclass(frozen=True)
class Prefilled:
    """Where a row starts; shared by all takes of one request, never written to."""

    lm_hidden: Tensor  # [1, H]
    residual_hidden: Tensor  # [1, H]
    condition: Tensor  # [1, P, D]: the patch before the first one
    base: Prefix
    residual: Prefix


class Batch:
    """The running rows. Row ``i`` of every tensor, cache and list belongs to row ``i``."""

    def __init__(self, config: ModelConfig, device: torch.device, dtype: torch.dtype):
        self.base = KVCache(config.lm, device, dtype)
        self.residual = KVCache(config.residual_lm, device, dtype)
        self.lm_hidden: Tensor | None = None
        self.residual_hidden: Tensor | None = None
        self.condition: Tensor | None = None
        self.vae_state: State = []

    def __len__(self) -> int:
        return len(self.base.lengths)

    def add(self, start: Prefilled, vae_state: State) -> None:
        """A new last row; ``vae_state`` is the decoder's memory, [1, ...] each."""
        self.base.add_row(start.base)
        self.residual.add_row(start.residual)
        self.lm_hidden = _append(self.lm_hidden, start.lm_hidden)
        self.residual_hidden = _append(self.residual_hidden, start.residual_hidden)
        self.condition = _append(self.condition, start.condition)
        if self.vae_state:
            self.vae_state = [torch.cat(pair) for pair in zip(self.vae_state, vae_state, strict=True)]
        else:
            self.vae_state = list(vae_state)

    def remove(self, row: int) -> None:
        """Drops ``row``; the last row takes its place."""
        self.base.remove_row(row)
        self.residual.remove_row(row)
        self.lm_hidden = _drop(self.lm_hidden, row)
        self.residual_hidden = _drop(self.residual_hidden, row)
        self.condition = _drop(self.condition, row)
        self.vae_state = [_drop(tensor, row) for tensor in self.vae_state] if len(self) else []


class Model(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        hidden, local = config.lm.hidden_size, config.dit.hidden_size
        self.base_lm = Transformer(config.lm)
        self.residual_lm = Transformer(config.residual_lm)
        self.feat_encoder = LocalEncoder(config)
        self.feat_decoder = FlowMatching(config)
        self.fsq_layer = FSQ(hidden, config.fsq_dim, config.fsq_scale)
        self.enc_to_lm_proj = Linear(config.encoder.hidden_size, hidden, bias=True)
        self.lm_to_dit_proj = Linear(hidden, local, bias=True)
        self.res_to_dit_proj = Linear(hidden, local, bias=True)
        if config.version == 2:
            self.fusion_concat_proj = Linear(2 * hidden, hidden, bias=True)
        self.stop_proj = Linear(hidden, hidden, bias=True)
        self.stop_head = Linear(hidden, 2)

    @property
    def dtype(self) -> torch.dtype:
        return self.base_lm.norm.weight.dtype

    @property
    def device(self) -> torch.device:
        return self.base_lm.norm.weight.device

    def new_batch(self) -> Batch:
        return Batch(self.config, self.device, self.dtype)

    @torch.inference_mode()
    def prefill_voice(self, sequence: Sequence) -> VoicePrefix:
        """Reads the voice part of ``sequence``, for :meth:`prefill` of this and later requests of the same voice."""
        _, _, base, residual = self._read(sequence.voice, None)
        return VoicePrefix(base, residual)

    @torch.inference_mode()
    def prefill(self, sequence: Sequence, voice: VoicePrefix | None = None) -> Prefilled:
        """Reads ``sequence``; with ``voice`` only what comes after the voice part."""
        spans = sequence.rest if voice is not None else (*sequence.voice, *sequence.rest)
        lm_hidden, residual_hidden, base, residual = self._read(spans, voice)
        condition = torch.zeros(1, self.config.patch_size, self.config.feat_dim, device=self.device, dtype=self.dtype)
        if sequence.prompt is not None:
            condition = sequence.prompt[-1:].to(condition)
        return Prefilled(lm_hidden[:, -1], residual_hidden[:, -1], condition, base, residual)

    @torch.inference_mode()
    def step(self, batch: Batch, noise: Tensor, cfg_value: Tensor, steps: list[int]) -> tuple[Tensor, Tensor]:
        """The next patch of every row.

        ``noise [B, P, D]`` scaled by the temperature, ``cfg_value [B]``, ``steps`` = inference_timesteps per row ->
        patches ``[B, P, D]`` and whether each row's stop head fires ``[B]`` (bool, for the patch just made).
        """
        mu = self._mu(batch.lm_hidden, batch.residual_hidden)
        patches = torch.empty_like(batch.condition)
        for count in sorted(set(steps)):
            rows = [row for row, wanted in enumerate(steps) if wanted == count]
            pick = slice(None) if len(rows) == len(steps) else rows
            cfg = cfg_value[pick, None, None].to(self.dtype)
            patches[pick] = self.feat_decoder(noise[pick].to(self.dtype), mu[pick], batch.condition[pick], cfg, count)
        stop = self.stop_head(F.silu(self.stop_proj(batch.lm_hidden))).argmax(-1) == 1
        return patches, stop

    @torch.inference_mode()
    def advance(self, batch: Batch, patches: Tensor) -> None:
        """Lets the language models read ``patches [B, P, D]``: the batch then stands before its next patch."""
        read = self.enc_to_lm_proj(self.feat_encoder(patches))
        batch.lm_hidden = self.fsq_layer(self.base_lm.step(read, batch.base))
        batch.residual_hidden = self.residual_lm.step(self._fuse(batch.lm_hidden, read), batch.residual)
        batch.condition = patches

    def _read(self, spans: tuple[Span, ...], voice: VoicePrefix | None) -> tuple[Tensor, Tensor, Prefix, Prefix]:
        """Both language models over ``spans``: hidden states [1, L, H] each, and what they remember."""
        embedded, heard, is_audio = self._embed(spans)
        hidden, base = self.base_lm.prefill(embedded, voice.base if voice else None)
        # Only audio positions are quantised; text reaches the residual model as it is.
        hidden = torch.where(is_audio, self.fsq_layer(hidden), hidden)
        residual_hidden, residual = self.residual_lm.prefill(
            self._fuse(hidden, heard), voice.residual if voice else None
        )
        return hidden, residual_hidden, base, residual

    def _embed(self, spans: tuple[Span, ...]) -> tuple[Tensor, Tensor, Tensor]:
        """Embedding [1, L, H], its audio part alone (zeros at text) [1, L, H], and where audio is [1, L, 1]."""
        embedded, heard, is_audio = [], [], []
        for span in spans:
            if isinstance(span, Tensor):
                x = self.enc_to_lm_proj(self.feat_encoder(span.to(self.device, self.dtype)))
                heard.append(x)
            else:
                x = self.base_lm.embed(torch.tensor(span, device=self.device))
                heard.append(torch.zeros_like(x))
            embedded.append(x)
            is_audio += [isinstance(span, Tensor)] * len(span)
        mask = torch.tensor(is_audio, device=self.device)[None, :, None]
        return torch.cat(embedded)[None], torch.cat(heard)[None], mask

    def _fuse(self, hidden: Tensor, heard: Tensor) -> Tensor:
        if self.config.version == 1:
            return hidden + heard
        return self.fusion_concat_proj(torch.cat((hidden, heard), dim=-1))

    def _mu(self, lm_hidden: Tensor, residual_hidden: Tensor) -> Tensor:
        """What the diffusion is told: [B, 1, hidden] (generation 1: the sum) or [B, 2, hidden] (generation 2)."""
        plan, detail = self.lm_to_dit_proj(lm_hidden), self.res_to_dit_proj(residual_hidden)
        if self.config.version == 1:
            return (plan + detail)[:, None]
        return torch.stack((plan, detail), dim=1)


def _append(rows: Tensor | None, row: Tensor) -> Tensor:
    return row.clone() if rows is None or rows.shape[0] == 0 else torch.cat((rows, row))


def _drop(rows: Tensor, row: int) -> Tensor:
    keep = list(range(rows.shape[0]))
    keep[row] = keep[-1]
    return rows[keep[:-1]]

"""What a checkpoint says about itself: ``config.json`` and ``generation_config.json`` as plain data.

Unknown keys are ignored (published files carry training-only keys); missing keys that change the arithmetic are errors.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .errors import CheckpointError

LATENTS_PER_SECOND = 25  # every published generation: one latent is 40 ms


@dataclass(frozen=True)
class TransformerConfig:
    """A stack of MiniCPM blocks."""

    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    rope_factors: tuple[float, ...] = ()
    use_rope: bool = True
    use_mup: bool = False
    scale_depth: float = 1.4
    scale_emb: float = 12.0
    vocab_size: int = 0

    @property
    def residual_scale(self) -> float:
        return self.scale_depth / self.num_layers**0.5 if self.use_mup else 1.0

    @property
    def embedding_scale(self) -> float:
        return self.scale_emb if self.use_mup else 1.0


@dataclass(frozen=True)
class AudioVAEConfig:
    """Rates are hertz; ``encoder_rates`` and ``decoder_rates`` are strides whose products are samples per latent."""

    encoder_dim: int
    encoder_rates: tuple[int, ...]
    latent_dim: int
    decoder_dim: int
    decoder_rates: tuple[int, ...]
    sample_rate: int  # what the encoder takes
    out_sample_rate: int  # what the decoder makes
    sr_bin_boundaries: tuple[int, ...] = ()
    version: int = 1

    @property
    def encoder_hop(self) -> int:
        return _product(self.encoder_rates)

    @property
    def decoder_hop(self) -> int:
        return _product(self.decoder_rates)


@dataclass(frozen=True)
class ModelConfig:
    """One config for all generations; ``version`` 1 (0.5B, 1.5) or 2 (VoxCPM2)."""

    version: int
    lm: TransformerConfig
    residual_lm: TransformerConfig
    encoder: TransformerConfig
    dit: TransformerConfig
    patch_size: int
    feat_dim: int
    fsq_dim: int
    fsq_scale: int
    max_length: int
    dtype: str
    vae: AudioVAEConfig | None

    @property
    def generation(self) -> str:
        """The family name users know; custom sizes are named after the family they belong to."""
        if self.version == 2:
            return "VoxCPM2"
        return "VoxCPM1.5" if self.patch_size == 4 else "VoxCPM-0.5B"


@dataclass(frozen=True)
class GenerationDefaults:
    """Settings a checkpoint recommends (``generation_config.json``); used where a request leaves them open."""

    cfg_value: float = 2.0
    inference_timesteps: int = 10
    temperature: float = 1.0
    patches_per_token: float = 6.0  # longest take that is still plausible, as in the reference package


def read_config(folder: Path) -> ModelConfig:
    """Reads ``folder/config.json``. Raises CheckpointError naming the key that is missing or not supported."""
    raw = _read_json(folder / "config.json")
    architecture = str(raw.get("architecture", "voxcpm")).lower()
    if architecture not in ("voxcpm", "voxcpm2"):
        raise CheckpointError(
            f"{folder / 'config.json'} says architecture '{architecture}'; this program knows 'voxcpm' and 'voxcpm2'."
        )
    try:
        return _model_config(raw, version=2 if architecture == "voxcpm2" else 1)
    except KeyError as missing:
        raise CheckpointError(f"{folder / 'config.json'} lacks the key {missing}.") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{folder / 'config.json'} has a value that makes no sense: {error}.") from None


def read_generation_defaults(folder: Path) -> GenerationDefaults:
    path = folder / "generation_config.json"
    if not path.is_file():
        return GenerationDefaults()
    raw = _read_json(path)
    known = {name: raw[name] for name in GenerationDefaults.__dataclass_fields__ if name in raw}
    for name, value in known.items():
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or value < (2 if name == "inference_timesteps" else 0)
        ):
            raise CheckpointError(f"{path}: {name} is {value!r}, which makes no sense.")
    return replace(GenerationDefaults(), **known)


def _model_config(raw: dict[str, Any], version: int) -> ModelConfig:
    lm = _lm_config(raw["lm_config"])
    encoder, dit = raw["encoder_config"], raw["dit_config"]
    if dit.get("dit_mean_mode", False):
        raise CheckpointError("config.json asks for dit_mean_mode, which no published checkpoint uses; not supported.")
    vae = raw.get("audio_vae_config")
    return ModelConfig(
        version=version,
        lm=lm,
        residual_lm=replace(
            lm,
            num_layers=int(raw.get("residual_lm_num_layers", 6)),
            vocab_size=0,
            use_rope=not raw.get("residual_lm_no_rope", False),
        ),
        encoder=_local_config(lm, encoder),
        dit=_local_config(lm, dit),
        patch_size=int(raw["patch_size"]),
        feat_dim=int(raw["feat_dim"]),
        fsq_dim=int(raw["scalar_quantization_latent_dim"]),
        fsq_scale=int(raw["scalar_quantization_scale"]),
        max_length=int(raw.get("max_length", 4096)),
        dtype=str(raw.get("dtype", "bfloat16")),
        vae=_vae_config(vae, version) if vae else None,
    )


def _lm_config(raw: dict[str, Any]) -> TransformerConfig:
    heads = int(raw["num_attention_heads"])
    head_dim = raw.get("kv_channels") or raw["hidden_size"] // heads
    scaling = raw.get("rope_scaling") or {}
    # The long factors only apply beyond original_max_position_embeddings, which no published file exceeds.
    factors = tuple(float(f) for f in scaling.get("short_factor") or [1.0] * (head_dim // 2))
    return TransformerConfig(
        hidden_size=int(raw["hidden_size"]),
        intermediate_size=int(raw["intermediate_size"]),
        num_layers=int(raw["num_hidden_layers"]),
        num_heads=heads,
        num_kv_heads=int(raw["num_key_value_heads"]),
        head_dim=int(head_dim),
        rms_norm_eps=float(raw["rms_norm_eps"]),
        rope_theta=float(raw.get("rope_theta", 10000.0)),
        rope_factors=factors,
        use_mup=bool(raw.get("use_mup", True)),
        scale_depth=float(raw.get("scale_depth", 1.4)),
        scale_emb=float(raw.get("scale_emb", 12)),
        vocab_size=int(raw["vocab_size"]),
    )


def _local_config(lm: TransformerConfig, raw: dict[str, Any]) -> TransformerConfig:
    heads = int(raw["num_heads"])
    return replace(
        lm,
        hidden_size=int(raw["hidden_dim"]),
        intermediate_size=int(raw["ffn_dim"]),
        num_layers=int(raw["num_layers"]),
        num_heads=heads,
        head_dim=int(raw.get("kv_channels") or raw["hidden_dim"] // heads),
        vocab_size=0,
    )


def _vae_config(raw: dict[str, Any], version: int) -> AudioVAEConfig:
    refused = {"depthwise": True, "use_noise_block": False, "cond_type": "scale_bias", "cond_out_layer": False}
    for key, only in refused.items():
        if raw.get(key, only) != only:
            raise CheckpointError(f"audio_vae_config.{key} = {raw[key]!r} is not supported (only {only!r}).")
    sample_rate = int(raw["sample_rate"])
    boundaries = raw.get("sr_bin_boundaries")
    return AudioVAEConfig(
        encoder_dim=int(raw["encoder_dim"]),
        encoder_rates=tuple(raw["encoder_rates"]),
        latent_dim=int(raw["latent_dim"]),
        decoder_dim=int(raw["decoder_dim"]),
        decoder_rates=tuple(raw["decoder_rates"]),
        sample_rate=sample_rate,
        out_sample_rate=int(raw.get("out_sample_rate") or sample_rate),
        sr_bin_boundaries=tuple(boundaries) if boundaries and version == 2 else (),
        version=version,
    )


def vae_config_from_shapes(shapes: dict[str, tuple[int, ...]], version: int) -> AudioVAEConfig:
    """Rates read off the AudioVAE's own weights, for files without ``audio_vae_config``.

    ``shapes`` maps folded tensor names (``….weight``) to shapes. Strided convolutions have kernels of twice their
    stride, and every generation makes 25 latents a second, so strides fix the sample rates.
    """
    try:
        encoder = _strides(shapes, "encoder.block.{}.block.4.weight", first=1)
        decoder = _strides(shapes, "decoder.model.{}.block.1.weight", first=2)
        encoder_dim = shapes["encoder.block.0.weight"][0]
        latent_dim = shapes["encoder.fc_mu.weight"][0]
        decoder_dim = shapes["decoder.model.1.weight"][0]
    except KeyError as missing:
        raise CheckpointError(f"The AudioVAE lacks {missing}, and config.json has no audio_vae_config.") from None
    config = AudioVAEConfig(
        encoder_dim, encoder, latent_dim, decoder_dim, decoder, sample_rate=0, out_sample_rate=0, version=version
    )
    rates = config.encoder_hop * LATENTS_PER_SECOND, config.decoder_hop * LATENTS_PER_SECOND
    if rates[0] not in (16000, 44100) or rates[1] not in (16000, 44100, 48000):
        raise CheckpointError(
            f"config.json has no audio_vae_config and the AudioVAE's strides would mean {rates[0]} Hz in and "
            f"{rates[1]} Hz out, which no published model has. Add audio_vae_config to config.json."
        )
    boundaries = (20000, 30000, 40000) if any(".scale_embed." in name for name in shapes) else ()
    return replace(config, sample_rate=rates[0], out_sample_rate=rates[1], sr_bin_boundaries=boundaries)


def _strides(shapes: dict[str, tuple[int, ...]], pattern: str, first: int) -> tuple[int, ...]:
    strides, index = [], first
    while pattern.format(index) in shapes:
        strides.append(shapes[pattern.format(index)][2] // 2)
        index += 1
    if not strides:
        raise KeyError(pattern.format(first))
    return tuple(strides)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing: {path.parent} is not a VoxCPM checkpoint folder.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} is not readable JSON: {error}.") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} is not a JSON object.")
    return content


def _product(values: tuple[int, ...]) -> int:
    result = 1
    for value in values:
        result *= value
    return result

"""Checkpoints of the published sizes with random weights, in the published layout, for measuring speed.

    python benchmarks/random_checkpoint.py --model 0.5b [--cache FOLDER]

Speed does not depend on what the weights say, so no download is needed. The scale of the weights keeps every activation
finite in bfloat16. The numbers of the sizes come from ``configs/``, the tokenizer from ``tests/goldens``.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
TOKENIZER = HERE.parent / "tests" / "goldens"
DEFAULT_CACHE = Path.home() / ".cache" / "voxcpm-bench"
CONFIGS = {"0.5b": "voxcpm-0.5b.json", "1.5": "voxcpm1.5.json", "2": "voxcpm2.json"}
DTYPES = {"bf16": "bfloat16", "fp32": "float32"}
# 0.5B's published config.json has no audio_vae_config; both programs then mean these numbers.
FIRST_VAE = {
    "encoder_dim": 128,
    "encoder_rates": [2, 5, 8, 8],
    "latent_dim": 64,
    "decoder_dim": 1536,
    "decoder_rates": [8, 8, 5, 2],
    "sample_rate": 16000,
}

Shape = tuple[int, ...]
Shapes = dict[str, Shape]


def read_config(model: str) -> dict:
    return json.loads((HERE / "configs" / CONFIGS[model]).read_text(encoding="utf-8"))


def checkpoint(model: str, dtype: str, cache: Path = DEFAULT_CACHE) -> Path:
    """The folder for ``model`` (0.5b, 1.5, 2) whose config asks for ``dtype`` (bf16, fp32); built when missing.

    Weights are stored once, in bfloat16 as published; the folders of both dtypes share them by hard links.
    """
    config = read_config(model)
    weights = cache / f"voxcpm-{model}-weights"
    if not (weights / "complete").exists():
        weights.mkdir(parents=True, exist_ok=True)
        write_safetensors(weights / "model.safetensors", model_shapes(config))
        torch.save(dict(vae_tensors(config)), weights / "audiovae.pth")
        (weights / "complete").touch()
    folder = cache / f"voxcpm-{model}-{dtype}"
    folder.mkdir(exist_ok=True)
    for name in ("model.safetensors", "audiovae.pth"):
        if not (folder / name).exists():
            (folder / name).hardlink_to(weights / name)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(TOKENIZER / name, folder / name)
    config |= {"dtype": DTYPES[dtype], "device": "cpu"}
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    return folder


# ---- names and shapes


def model_shapes(config: dict) -> Shapes:
    """Every tensor of model.safetensors."""
    lm, hidden = config["lm_config"], config["lm_config"]["hidden_size"]
    encoder, dit = config["encoder_config"], config["dit_config"]
    local, fsq, latent = dit["hidden_dim"], config["scalar_quantization_latent_dim"], config["feat_dim"]
    shapes: Shapes = {"base_lm.embed_tokens.weight": (lm["vocab_size"], hidden)}
    shapes |= stack_shapes("base_lm", lm, lm["num_hidden_layers"])
    shapes |= stack_shapes("residual_lm", lm, config["residual_lm_num_layers"])
    shapes["feat_encoder.special_token"] = (1, 1, 1, encoder["hidden_dim"])
    shapes |= linear_shapes("feat_encoder.in_proj", latent, encoder["hidden_dim"])
    shapes |= stack_shapes("feat_encoder.encoder", local_config(lm, encoder), encoder["num_layers"])
    for name, sizes in {"in_proj": (latent, local), "cond_proj": (latent, local), "out_proj": (local, latent)}.items():
        shapes |= linear_shapes(f"feat_decoder.estimator.{name}", *sizes)
    for name in ("time_mlp", "delta_time_mlp"):
        for index in (1, 2):
            shapes |= linear_shapes(f"feat_decoder.estimator.{name}.linear_{index}", local, local)
    shapes |= stack_shapes("feat_decoder.estimator.decoder", local_config(lm, dit), dit["num_layers"])
    shapes |= linear_shapes("fsq_layer.in_proj", hidden, fsq) | linear_shapes("fsq_layer.out_proj", fsq, hidden)
    shapes |= linear_shapes("enc_to_lm_proj", encoder["hidden_dim"], hidden)
    shapes |= linear_shapes("lm_to_dit_proj", hidden, local) | linear_shapes("res_to_dit_proj", hidden, local)
    if config["architecture"] == "voxcpm2":
        shapes |= linear_shapes("fusion_concat_proj", 2 * hidden, hidden)
    shapes |= linear_shapes("stop_proj", hidden, hidden)
    return shapes | {"stop_head.weight": (2, hidden)}


def local_config(lm: dict, part: dict) -> dict:
    """The local networks' numbers under the language model's keys."""
    return {
        "hidden_size": part["hidden_dim"],
        "intermediate_size": part["ffn_dim"],
        "num_attention_heads": part["num_heads"],
        "num_key_value_heads": lm["num_key_value_heads"],
        "kv_channels": part.get("kv_channels"),
    }


def stack_shapes(prefix: str, config: dict, layers: int) -> Shapes:
    hidden, ffn = config["hidden_size"], config["intermediate_size"]
    size = config.get("kv_channels") or hidden // config["num_attention_heads"]
    queries, keys = config["num_attention_heads"] * size, config["num_key_value_heads"] * size
    layer = {
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
        "self_attn.q_proj": (queries, hidden),
        "self_attn.k_proj": (keys, hidden),
        "self_attn.v_proj": (keys, hidden),
        "self_attn.o_proj": (hidden, queries),
        "mlp.gate_proj": (ffn, hidden),
        "mlp.up_proj": (ffn, hidden),
        "mlp.down_proj": (hidden, ffn),
    }
    shapes = {f"{prefix}.layers.{n}.{name}.weight": shape for n in range(layers) for name, shape in layer.items()}
    return shapes | {f"{prefix}.norm.weight": (hidden,)}


def linear_shapes(name: str, size_in: int, size_out: int) -> Shapes:
    return {f"{name}.weight": (size_out, size_in), f"{name}.bias": (size_out,)}


# ---- values


def model_tensor(name: str, shape: Shape, generator: torch.Generator) -> torch.Tensor:
    """Norms near 1; matrices with a gain of 1, so that activations keep their size through any depth."""
    noise = torch.randn(shape, generator=generator, dtype=torch.bfloat16)
    if "norm" in name:
        return 1 + 0.02 * noise
    if len(shape) != 2 or "embed" in name:
        return 0.02 * noise
    return noise * shape[1] ** -0.5


def vae_tensors(config: dict) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor of audiovae.pth, float32, weight-normalised layers as pairs of weight_g and weight_v."""
    vae = config.get("audio_vae_config") or FIRST_VAE
    generator = torch.Generator().manual_seed(1)

    def conv(name: str, *shape: int, channels_out: int | None = None, gain: float = 1.0):
        yield f"{name}.weight_v", torch.randn(shape, generator=generator)
        yield f"{name}.weight_g", torch.full((shape[0], 1, 1), gain)
        yield f"{name}.bias", 0.01 * torch.randn(channels_out or shape[0], generator=generator)

    def unit(name: str, size: int):
        yield f"{name}.0.alpha", torch.ones(1, size, 1)
        yield from conv(f"{name}.1", size, 1, 7)
        yield f"{name}.2.alpha", torch.ones(1, size, 1)
        yield from conv(f"{name}.3", size, size, 1, gain=0.3)

    size, latent = vae["encoder_dim"], vae["latent_dim"]
    yield from conv("encoder.block.0", size, 1, 7)
    for index, stride in enumerate(vae["encoder_rates"], start=1):
        block = f"encoder.block.{index}.block"
        for part in range(3):
            yield from unit(f"{block}.{part}.block", size)
        yield f"{block}.3.alpha", torch.ones(1, size, 1)
        yield from conv(f"{block}.4", 2 * size, size, 2 * stride, gain=0.5)
        size *= 2
    for name in ("fc_mu", "fc_logvar"):
        yield from conv(f"encoder.{name}", latent, size, 3)

    size = vae["decoder_dim"]
    yield from conv("decoder.model.0", latent, 1, 7)
    yield from conv("decoder.model.1", size, latent, 1)
    index = 1
    for index, stride in enumerate(vae["decoder_rates"], start=2):
        block = f"decoder.model.{index}.block"
        if boundaries := vae.get("sr_bin_boundaries"):
            condition = f"decoder.sr_cond_model.{index}"
            yield f"{condition}.scale_embed.weight", torch.ones(len(boundaries) + 1, size)
            yield f"{condition}.bias_embed.weight", torch.zeros(len(boundaries) + 1, size)
        yield f"{block}.0.alpha", torch.ones(1, size, 1)
        yield from conv(f"{block}.1", size, size // 2, 2 * stride, channels_out=size // 2, gain=0.5 * math.sqrt(stride))
        size //= 2
        for part in range(2, 5):
            yield from unit(f"{block}.{part}.block", size)
    yield f"decoder.model.{index + 1}.alpha", torch.ones(1, size, 1)
    yield from conv(f"decoder.model.{index + 2}", 1, size, 7, gain=0.3)
    if boundaries := vae.get("sr_bin_boundaries"):
        yield "decoder.sr_bin_boundaries", torch.tensor(boundaries, dtype=torch.int32)


def write_safetensors(path: Path, shapes: Shapes) -> None:
    """Writes random bfloat16 tensors one at a time, so that building VoxCPM2 needs no more memory than one matrix."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes.items():
        end = offset + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    generator = torch.Generator().manual_seed(0)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape in shapes.items():
            file.write(model_tensor(name, shape, generator).view(torch.int16).numpy().tobytes())


# ---- what one patch has to read


def bytes_per_patch(config: dict, dtype: str, inference_timesteps: int = 10) -> dict[str, int]:
    """Bytes of weights that one patch of one take cannot avoid reading, by part.

    The estimator runs ``inference_timesteps - 1`` times (below 49 steps one step is skipped). Its time embeddings are
    constants, the table of token embeddings is not read while audio is made, and the audio decoder is float32 always.
    """
    size = 2 if dtype == "bf16" else 4
    parts = {"base_lm": 0, "residual_lm": 0, "feat_encoder": 0, "feat_decoder": 0, "projections": 0}
    for name, shape in model_shapes(config).items():
        if "embed_tokens" in name or "time_mlp" in name:
            continue
        head = name.split(".")[0]
        times = inference_timesteps - 1 if head == "feat_decoder" else 1
        parts[head if head in parts else "projections"] += size * times * math.prod(shape)
    decoder = (t for name, t in vae_tensors(config) if name.startswith("decoder.") and name.endswith("weight_v"))
    return parts | {"vae_decoder": sum(4 * tensor.numel() for tensor in decoder)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Build a checkpoint of a published size with random weights.")
    parser.add_argument("--model", choices=CONFIGS, default="0.5b")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    arguments = parser.parse_args()
    print(checkpoint(arguments.model, arguments.dtype, arguments.cache.expanduser()))


if __name__ == "__main__":
    main()

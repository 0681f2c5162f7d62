"""nano's AudioVAE: train the encoder or the decoder on recordings, and measure both.

    python -m scripts.nano.vae encoder --sound SOURCE [SOURCE ...] --out RUN --minutes 40
    python -m scripts.nano.vae decoder --sound SOURCE [SOURCE ...] --out RUN --minutes 20 [--adversarial]
    python -m scripts.nano.vae check --sound SOURCE --model FOLDER [--vae RUN/audiovae.safetensors]

SOURCE is a corpus folder (manifest.jsonl and audio). A run starts from the AudioVAE of ``--model``; started again
with the same ``--out`` it goes on where it stopped. RUN gets ``audiovae.safetensors``, ``state.pt`` and ``log.txt``.
``check`` uses the held-out voices only: error of the latents, words understood and likeness after encoding and
decoding.
"""

from __future__ import annotations

import argparse
import logging
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from scripts.nano.corpus import GAIN, read_manifest
from scripts.nano.latents import COMPONENTS, HOP, RATE, WIDTH, Samples, constants, features, latents
from voxcpm_core.audio import Audio, load_audio, resample
from voxcpm_core.training.vae import CONTEXT, Length, load_trainable, save_vae, train_decoder, train_encoder

log = logging.getLogger("nano.vae")

FRAMES = 64  # of an encoder's crop: 2.6 s, far more than the 1 s it looks back
UNSCORED = (2, 1)  # first and last frames of a crop: what is around them is cut off
ENCODER_BATCH, DECODER_BATCH, DECODER_FRAMES = 3, 4, 24
PITCH_WEIGHT = 1.5
NEVER_SCORED = 0.1  # weight of the pitch where nothing is voiced: it is a straight line there
NANO = Path(__file__).resolve().parents[2] / "assets" / "nano"


def pool(sources: list[Path], cache: Path, most: int) -> list[Samples]:
    """Up to ``most`` recordings of each source's training voices as int16 at 16 kHz, decoded once into ``cache``."""
    if not cache.is_file():
        clips = []
        for source in sources:
            rows = [row for row in read_manifest(source) if row["split"] == "train" and row["duration_s"] > 1]
            random.Random(1).shuffle(rows)
            clips += [_to_int16(_load(source / row["file"])) for row in rows[:most]]
            log.info("%s: %d recordings decoded", source, min(most, len(rows)))
        lengths = np.array([len(clip) for clip in clips])
        np.savez(cache.with_suffix(".part.npz"), samples=np.concatenate(clips), lengths=lengths)
        cache.with_suffix(".part.npz").rename(cache)
    with np.load(cache) as archive:
        return np.split(archive["samples"], np.cumsum(archive["lengths"])[:-1])


def crops(clips: list[Samples], frames: int, seed: int) -> Iterator[Samples]:
    """Endless crops of ``frames`` latents: other speakers by resampling, levels from -12 to +6 dB, now and then
    noise.
    """
    rng = np.random.default_rng(seed)
    wanted = frames * HOP
    while True:
        clip = clips[rng.integers(len(clips))].astype("float32") / 32768
        factor = rng.choice([1.0, 0.84, 0.9, 0.95, 1.06, 1.12, 1.2])
        need = int(wanted * factor) + 64
        start = rng.integers(0, max(1, len(clip) - need))
        x = clip[start : start + need]
        if factor != 1:
            x = resample(Audio(x, round(RATE * factor)), RATE).samples
        x = np.pad(x[:wanted], (0, max(0, wanted - len(x))))
        if rng.random() < 0.2:
            level = x.std() * 10 ** (-rng.uniform(15, 40) / 20)
            x = x + level * rng.standard_normal(wanted)
        x = x * GAIN * 10 ** (rng.uniform(-12, 6) / 20)
        yield (x * min(1.0, 0.99 / (np.abs(x).max() + 1e-6))).astype("float32")


def encoder_batches(clips: list[Samples], seed: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Samples [B, n], latents [B, T, 32], weights [B, T, 32] (what the ear needs most counts most)."""
    source, importance = crops(clips, FRAMES, seed), latent_weights()
    while True:
        x = np.stack([next(source) for _ in range(ENCODER_BATCH)])
        z = np.stack([latents(one) for one in x])
        voicing = z[..., 30:] * constants()["scale"][30:] + constants()["shift"][30:]
        weight = np.broadcast_to(importance, z.shape).copy()
        weight[..., 28:30] *= NEVER_SCORED + (1 - NEVER_SCORED) * (voicing > 0.5)
        weight[:, : UNSCORED[0]] = weight[:, -UNSCORED[1] :] = 0
        yield torch.from_numpy(x), torch.from_numpy(z), torch.from_numpy(weight)


def decoder_batches(clips: list[Samples], seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Latents [B, CONTEXT + T, 32] and the samples [B, T * HOP] of the last T frames."""
    source = crops(clips, CONTEXT + DECODER_FRAMES, seed)
    while True:
        x = np.stack([next(source) for _ in range(DECODER_BATCH)])
        z = np.stack([latents(one) for one in x])
        yield torch.from_numpy(z), torch.from_numpy(x[:, CONTEXT * HOP :])


def latent_weights() -> Samples:
    """[32], mean 1: the root of a component's share in the log-mel, as in the language model's loss."""
    share = constants()["pca_eigenvalues"]
    weight = np.full(WIDTH, PITCH_WEIGHT, "float32")
    weight[:COMPONENTS] = np.clip(np.sqrt(share / np.median(share)), 0.4, 3.0)
    return weight / weight.mean()


# ---- measuring


def check(sources: list[Path], model: Path, vae_file: Path | None, clips_per_voice: int) -> dict[str, float]:
    """Held-out voices through encoder and decoder; every figure beside what the true latents and the original give."""
    from scripts.nano.measures import Likeness, Recogniser, quality, word_errors

    vae = load_trainable(model)
    if vae_file is not None:
        vae = _with_weights(vae, vae_file)
    rows = [row for source in sources for row in _held_out(source, clips_per_voice)]
    recognise, likeness = Recogniser(), Likeness()
    squares, mel_error, heard = [], [], {"original": [], "true latents": [], "encoded": []}
    voices: dict[str, list[tuple[Samples, Samples]]] = {}
    with torch.inference_mode():
        for row, path in rows:
            x = _load(path) * GAIN
            x = np.pad(x, (0, -len(x) % (2 * HOP))).astype("float32")
            z, made = latents(x), vae.encode(torch.from_numpy(x)[None])[0].numpy()
            squares.append(((z - made)[2:-1] ** 2).mean(0))
            mel_error.append(np.abs(mel_of(made) - features(x)[0])[2:-1].mean())
            sounds = {"original": x, "true latents": _decode(vae, z), "encoded": _decode(vae, made)}
            for name, sound in sounds.items():
                heard[name].append((row["spoken"], recognise(sound, RATE), quality(sound, RATE), sound))
            voices.setdefault(row["voice"], []).append((x, sounds["encoded"]))
    figures = {
        "latents, mean square error": float(np.mean(squares)),
        "weighted": float((np.mean(squares, 0) * latent_weights()).mean()),
        "pitch": float(np.mean(squares, 0)[28:30].mean()),
        "log-mel, mean absolute error": float(np.mean(mel_error)),
    }
    for name, results in heard.items():
        errors = [word_errors(said, found) for said, found, _, _ in results]
        figures[f"word errors %, {name}"] = 100 * sum(e for e, _ in errors) / sum(n for _, n in errors)
        scores = [score for _, _, score, _ in results if score is not None]
        if scores:
            figures[f"DNSMOS, {name}"] = float(np.mean(scores))
    if likeness.available:
        figures |= likeness.matrix({v: ([a for a, _ in p], [b for _, b in p]) for v, p in voices.items()})
    return figures


def mel_of(z: Samples) -> Samples:
    """Latents [frames, 32] -> log-mel [frames, 320] that their components stand for."""
    recipe = constants()
    components = z[:, :COMPONENTS] * recipe["scale"][:COMPONENTS] + recipe["shift"][:COMPONENTS]
    return components @ recipe["pca_V"].T + recipe["pca_mean"]


def _held_out(source: Path, per_voice: int) -> list[tuple[dict, Path]]:
    chosen: dict[str, list] = {}
    for row in read_manifest(source):
        if row["split"] == "heldout_voice" and row["duration_s"] > 2 and row["kind"] not in ("rich", "number"):
            chosen.setdefault(row["voice"], []).append((row, source / row["file"]))
    return [pair for rows in chosen.values() for pair in rows[:per_voice]]


def _with_weights(vae, file: Path):
    from voxcpm_core.checkpoint import fold_weight_norm, read_tensors

    vae.load_state_dict({name: tensor.float() for name, tensor in fold_weight_norm(dict(read_tensors([file]))).items()})
    return vae


def _decode(vae, z: Samples) -> Samples:
    return vae.decode(torch.from_numpy(z)[None])[0][0].numpy()


def _load(path: Path) -> Samples:
    return resample(load_audio(path), RATE).samples


def _to_int16(x: Samples) -> Samples:
    return (np.clip(x, -1, 1) * 32767).astype("int16")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("encoder", "decoder", "check"))
    parser.add_argument("--sound", type=Path, nargs="+", required=True, help="corpus folders")
    parser.add_argument("--model", type=Path, default=NANO, help="checkpoint folder to start from or to check")
    parser.add_argument("--vae", type=Path, help="check: other weights than those of --model")
    parser.add_argument("--out", type=Path, help="folder of the run")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--steps", type=int, default=0, help="steps in all, instead of minutes: for a busy machine")
    parser.add_argument("--rate", type=float, help="highest learning rate (encoder 2e-3, decoder 3e-4)")
    parser.add_argument("--adversarial", action="store_true", help="decoder: discriminators beside the spectral loss")
    parser.add_argument("--clips", type=int, default=2500, help="recordings taken from each source; check: per voice")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if given.step == "check":
        for name, value in check(given.sound, given.model, given.vae, min(given.clips, 10)).items():
            print(f"{name:42s} {value:8.3f}")
        return
    if given.out is None:
        parser.error("--out names the folder of the run")
    given.out.mkdir(parents=True, exist_ok=True)
    logging.getLogger().addHandler(logging.FileHandler(given.out / "log.txt"))
    vae, clips = load_trainable(given.model), pool(given.sound, given.out / "sound.npz", given.clips)
    log.info("%d recordings, %.2f h", len(clips), sum(map(len, clips)) / RATE / 3600)
    state, length = given.out / "state.pt", Length(given.minutes, given.steps)
    if given.step == "encoder":
        train_encoder(vae, encoder_batches(clips, given.seed), length, state, given.rate or 2e-3)
    else:
        batches = decoder_batches(clips, given.seed)
        train_decoder(vae, batches, length, state, given.rate or 3e-4, given.adversarial)
    save_vae(vae, given.out / "audiovae.safetensors")
    log.info("wrote %s", given.out / "audiovae.safetensors")


if __name__ == "__main__":
    main()

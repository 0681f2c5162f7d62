"""What Denoise does to clips whose noise is known: `python benchmarks/denoise.py CLEAN.wav ...`

Each clean recording gets noise at several levels (--snr, dB) and is denoised. Printed are, before and after: PESQ
(wide band, against the clean one), DNSMOS (as heard, no reference needed) and the energy above 10 kHz, compared with
the clean recording.

Needs, besides the denoiser: pip install pesq==0.0.4 speechmos==0.0.1.1 librosa (each is left out when it is not there).
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from studio.denoise import available, denoise
from voxcpm_core.audio import Audio, load_audio, resample

HIGH_HZ = 10_000


def noisy(clean: Audio, snr: float, seed: int = 2) -> Audio:
    """Pink noise and mains hum, ``snr`` dB below the recording."""
    count, rate = len(clean.samples), clean.sample_rate
    spectrum = np.fft.rfft(np.random.default_rng(seed).standard_normal(count))
    noise = np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(len(spectrum)), count // 600)), count)
    noise += 0.3 * noise.std() * np.sin(2 * np.pi * 50 * np.arange(count) / rate)
    noise *= clean.samples.std() * 10 ** (-snr / 20) / noise.std()
    return Audio((clean.samples + noise).astype(np.float32), rate)


def high_db(audio: Audio) -> float | None:
    """Energy above 10 kHz in dB; None for a rate that has no such band."""
    if audio.sample_rate < 2.2 * HIGH_HZ:
        return None
    power = np.abs(np.fft.rfft(audio.samples)) ** 2
    return float(10 * np.log10(power[np.fft.rfftfreq(len(audio.samples), 1 / audio.sample_rate) >= HIGH_HZ].sum()))


def pesq_of(clean: Audio, audio: Audio) -> float | None:
    try:
        measure = importlib.import_module("pesq").pesq
    except ImportError:
        return None
    return float(measure(16_000, resample(clean, 16_000).samples, resample(audio, 16_000).samples, "wb"))


def dnsmos_of(audio: Audio) -> float | None:
    try:
        measure = importlib.import_module("speechmos.dnsmos")
    except ImportError:
        return None
    return float(measure.run(np.clip(resample(audio, 16_000).samples, -1, 1), 16_000)["ovrl_mos"])


def shown(value: float | None) -> str:
    return "    –" if value is None else f"{value:5.2f}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clean", nargs="+", type=Path, help="clean recordings")
    parser.add_argument("--snr", type=float, nargs="+", default=[0.0, 10.0, 20.0], help="default: 0 10 20")
    parser.add_argument("--seconds", type=float, default=12.0, help="how much of each is used (default: 12)")
    options = parser.parse_args(arguments)
    installed, pip_line = available()
    if not installed:
        parser.error(f"The denoiser is not installed: {pip_line}")
    print(f"{'clip':28} {'SNR':>4}  {'PESQ':>11}  {'DNSMOS':>11}  above 10 kHz (dB of the clean one)")
    for path in options.clean:
        audio = load_audio(path)
        clean = Audio(audio.samples[: round(options.seconds * audio.sample_rate)], audio.sample_rate)
        for snr in options.snr:
            before = noisy(clean, snr)
            after = denoise(before)
            pairs = [(pesq_of(clean, one), dnsmos_of(one), high_db(one)) for one in (before, after)]
            (pesq, mos, high), (pesq_after, mos_after, high_after), wanted = *pairs, high_db(clean)
            kept = "–" if wanted is None else f"{high - wanted:+.1f} -> {high_after - wanted:+.1f}"
            scores = f"{shown(pesq)} {shown(pesq_after)}  {shown(mos)} {shown(mos_after)}"
            print(f"{path.name[:28]:28} {snr:4.0f}  {scores}  {kept}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

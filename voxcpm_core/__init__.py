"""Our own implementation of the VoxCPM speech models: loading, the running batch, adapters.

from voxcpm_core import VoxCPM
model = VoxCPM.from_pretrained("nano")
samples = model.generate(text="Hello there.")      # float32 [n] at model.sample_rate
"""

from .audio import Audio
from .errors import (
    AudioError,
    CheckpointError,
    EngineError,
    LoRAError,
    RequestError,
    TextError,
    UnsupportedError,
    VoxCPMError,
)
from .generation import Generation
from .request import SpeechRequest, Take
from .text import SpokenText
from .voxcpm import VoxCPM

__version__ = "0.1.0"
__all__ = [
    "Audio",
    "AudioError",
    "CheckpointError",
    "EngineError",
    "Generation",
    "LoRAError",
    "RequestError",
    "SpeechRequest",
    "SpokenText",
    "Take",
    "TextError",
    "UnsupportedError",
    "VoxCPM",
    "VoxCPMError",
]

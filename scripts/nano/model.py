"""nano's language model: the trainer with nano's recipe.

    python -m scripts.nano.model --data FOLDER [--data FOLDER ...] --out RUN --minutes 60 [flags of the trainer]

Latents count by what they mean to the ear (latent_recipe.npz); everything else is the preset ``nano`` of
``python -m voxcpm_core.training``, whose flags are passed on. A run that is there already goes on. RUN/model is a
checkpoint folder: `python -m scripts.nano.evaluate --model RUN/model`, then `python -m scripts.nano.pack`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from voxcpm_core.training.__main__ import main as train

RECIPE = Path(__file__).with_name("latent_recipe.npz")


def arguments(out: Path, others: list[str]) -> list[str]:
    """What the trainer is called with: ``others`` after nano's own, or going on with ``out``."""
    if (out / "state.pt").is_file():
        return ["--resume", str(out), *others]
    return ["--preset", "nano", "--base", "nano", "--latent-weights", str(RECIPE), "--out", str(out), *others]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    given, others = parser.parse_known_args()
    return train(arguments(given.out, others))


if __name__ == "__main__":
    sys.exit(main())

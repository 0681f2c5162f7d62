"""How often the check card finds fault with recordings that are good: `python benchmarks/reference_card.py FOLDER ...`

Each FOLDER is a voice, or holds a folder for each voice, with sound files. Files of a voice are joined with half a
second of quiet in between until a clip is --seconds long, as somebody would record it; --clips of them are checked per
voice.
Prints the share of clips with an alarm for each check, the verdicts, and each alarm.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from studio.reference_checks import check_reference
from voxcpm_core.audio import Audio, load_audio, resample

SUFFIXES = {".wav", ".flac", ".ogg", ".opus", ".mp3", ".m4a"}
PAUSE = 0.5  # seconds between two files of a clip


def voices_in(folders: list[Path]) -> dict[str, list[Path]]:
    """Sound files by voice, the name of their folder."""
    found: dict[str, list[Path]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in SUFFIXES:
                found.setdefault(path.parent.name, []).append(path)
    return found


def clips_of(paths: list[Path], count: int, seconds: float) -> Iterator[Audio]:
    """Files joined to clips, taken from all over the voice; a single long file is taken as it is."""
    start = 0
    for number in range(count):
        start = max(start, number * len(paths) // count)
        if start >= len(paths):
            return
        pieces, rate, length = [], 0, 0.0
        while start < len(paths) and length < seconds:
            audio = load_audio(paths[start])
            rate = rate or audio.sample_rate
            samples = resample(audio, rate).samples
            quiet = room(samples, rate)
            pieces += [samples, quiet] if pieces else [quiet, samples, quiet]
            length += (len(samples) + len(quiet)) / rate
            start += 1
        yield Audio(np.concatenate(pieces), rate)


def room(samples: np.ndarray, rate: int) -> np.ndarray:
    """Half a second of noise as loud as the quietest 20 ms of a recording: digital silence would be a fault of ours."""
    step = rate // 50
    frames = samples[: len(samples) // step * step].reshape(-1, step)
    floor = float(np.sqrt(np.mean(frames.astype(float) ** 2, axis=1)).min()) if len(frames) else 0.0
    noise = np.random.default_rng(0).standard_normal(round(PAUSE * rate))
    return (max(floor, 1e-5) * noise).astype(np.float32)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--clips", type=int, default=4, help="clips of each voice (default: 4)")
    parser.add_argument("--seconds", type=float, default=10.0, help="least length of a clip (default: 10)")
    parser.add_argument("--json", type=Path, help="write every line of every card to this file, too")
    options = parser.parse_args(arguments)
    alarms, verdicts, cards = Counter(), Counter(), []
    for voice, paths in voices_in(options.folders).items():
        for number, clip in enumerate(clips_of(paths, options.clips, options.seconds)):
            report = check_reference(clip)
            verdicts[report.verdict] += 1
            cards.append({"voice": voice, "clip": number, "seconds": clip.seconds, "checks": report.as_list()})
            for check in report.checks:
                if check.verdict != "ok":
                    alarms[check.name, check.verdict] += 1
                    print(f"{voice} {number}: {check.name} {check.verdict} {check.value} {check.facts}", flush=True)
    if not cards:
        parser.error("There are no sound files in these folders.")
    print(f"\n{len(cards)} clips of {len({card['voice'] for card in cards})} voices: ", end="")
    print(", ".join(f"{verdicts[name]} {name}" for name in ("ok", "warn", "fail")))
    for (name, verdict), count in sorted(alarms.items()):
        print(f"  {name:12} {verdict:5} {count:4}  {count / len(cards):6.1%}")
    if options.json:
        options.json.write_text(json.dumps(cards, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

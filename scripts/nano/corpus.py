"""A folder of recordings -> what the model is trained on: latents, words, phones and their times.

    python -m scripts.nano.corpus SOURCE [SOURCE ...] OUT [--factors 1 0.91 1.1]
    python -m scripts.nano.corpus --voices SOURCE OUT       # only reference clips of the held-out voices, for evaluate

SOURCE holds ``manifest.jsonl`` (file, spoken, phonemes, voice, speed, split ...), ``voices.json`` and the audio. OUT
gets ``train/``, ``valid/`` and ``heldout/``, each with ``lat.npz`` (z float16 [frames, 32], off [items + 1]),
``items.jsonl.gz`` and ``voices.json``. Works one voice at a time; a voice that is finished is not made again.
Recordings whose text cannot be found in the sound are left out and counted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scripts.nano.align import Aligner, Segment
from scripts.nano.latents import HOP, PATCH, RATE, WIDTH, Samples, latents
from scripts.nano.phones import spell
from voxcpm_core.audio import Audio, load_audio, resample, write_wav

SPLITS = {"train": "train", "valid": "valid", "heldout_voice": "heldout"}
GAIN = 1.13  # from -23 LUFS to the level of the recordings nano began with
TEMPO = {"slow": 1.18, "normal": 1.0, "fast": 0.87}  # duration against the teacher's normal pace
PITCH_CLASS = {"low": (0.0, 0.94), "medium": (0.95, 1.05), "high": (1.06, 9.0)}  # descriptions go by this factor
ACCENT = {"us": "american", "uk": "british"}
KIND = {"number": "N", "phrase": "P", "short": "P", "common": "P"}  # the rest are sentences: S
# hibari and its resampled versions are one speaker, and the default voice
DEFAULT, DEFAULT_PREFIX = ("hib", 1.0, 1.0), "hb_"
REFERENCE_CLIPS = 8


@dataclass(frozen=True)
class Clip:
    """One recording as it will be learnt: ``pitch`` and ``tempo`` are factors (duration for the tempo)."""

    voice: str
    pitch: float
    tempo: float
    kind: str
    text: str
    words: list[str]
    segments: list[Segment]
    latents: Samples
    length: int  # samples at 16 kHz

    def item(self) -> dict:
        """The line of items.jsonl."""
        times = " ".join(f"{phone},{word},{int(stressed)},{end}" for phone, word, stressed, end in self.segments)
        return dict(
            voice=self.voice, pitch=self.pitch, tempo=self.tempo, n=self.length, kind=self.kind, text=self.text,
            words=" ".join(self.words), segs=times,
        )  # fmt: skip


def clip(row: dict, sound: Samples, voice: dict, factor: float, aligner: Aligner) -> Clip | None:
    """``sound`` float32 [n] at 16 kHz, played ``factor`` times as fast; None when its words are not found in it."""
    spelt = spell(row["spoken"], row["phonemes"])
    segments = aligner.align(sound, [phones for _, phones in spelt]) if spelt else None
    if not spelt or not segments:
        return None
    if factor != 1:
        sound = resample(Audio(sound, round(RATE * factor)), RATE).samples
        segments = [(phone, word, stressed, round(end / factor)) for phone, word, stressed, end in segments]
    z = latents((sound * GAIN).astype("float32"))
    is_default = row["voice"].startswith(DEFAULT_PREFIX)
    base = float(np.clip(voice.get("resampled_by", 1.0), *PITCH_CLASS[voice["pitch"]]))
    return Clip(
        voice=DEFAULT[0] if is_default else row["voice"],
        pitch=round(base * factor, 3),
        tempo=round(TEMPO[row["speed"]] / factor, 3),
        kind=KIND.get(row["kind"], "S"),
        text=re.sub(r"[^A-Za-z'.,;:?! -]", "", row["spoken"]),
        words=[re.sub("[^a-z]", "", word) for word, _ in spelt],
        segments=segments,
        latents=z,
        length=len(sound),
    )


def voice_part(source: Path, name: str, rows: list[dict], voice: dict, factors: list[float], out: Path) -> None:
    """Writes ``out``/name.npz and .jsonl, the clips of one voice; the second file means that the voice is finished."""
    aligner, items, parts, lost = Aligner(), [], [], 0
    for number, row in enumerate(rows):
        sound = resample(load_audio(source / row["file"]), RATE).samples
        # every recording once as it is, and once more at one of the other factors
        chosen = (
            [1.0, factors[1 + number % (len(factors) - 1)]] if len(factors) > 1 and row["split"] == "train" else [1.0]
        )
        made = [clip(row, sound, voice, factor, aligner) for factor in chosen]
        lost += made[0] is None
        for one in filter(None, made):
            items.append(one.item() | {"split": SPLITS[row["split"]]})
            parts.append(one.latents.astype("float16"))
    frames = np.array([len(part) for part in parts], "int64")
    np.savez(out / f"{name}.npz", z=np.concatenate(parts) if parts else np.zeros((0, WIDTH), "float16"), frames=frames)
    lines = "".join(json.dumps(item) + "\n" for item in items)
    _write(out / f"{name}.jsonl", lines.encode())
    print(
        f"{name}: {len(items)} clips, {frames.sum() * HOP / RATE / 60:.1f} min, {lost} of {len(rows)} not aligned",
        flush=True,
    )


def join(parts: Path, voices: dict, out: Path, split: str) -> None:
    """All voices' clips of one split as one folder in training form."""
    items, blocks = [], []
    for path in sorted(parts.glob("*.jsonl")):
        with np.load(path.with_suffix(".npz")) as archive:
            z, borders = archive["z"], np.concatenate([[0], np.cumsum(archive["frames"])])
        for number, line in enumerate(path.read_text().splitlines()):
            item = json.loads(line)
            if item.pop("split") == split:
                items.append(item)
                blocks.append(z[borders[number] : borders[number + 1]])
    write_folder(out / split, items, blocks, {name: voices[name] for name in sorted({i["voice"] for i in items})})


def write_folder(folder: Path, items: list[dict], blocks: list[Samples], voices: dict) -> None:
    """lat.npz, items.jsonl.gz and voices.json; each file appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    assert all(len(block) >= 2 * -(-item["n"] // PATCH) for item, block in zip(items, blocks, strict=True))
    off = np.concatenate([[0], np.cumsum([len(block) for block in blocks])]).astype("int64")
    z = np.concatenate(blocks) if blocks else np.zeros((0, WIDTH), "float16")
    np.savez_compressed(folder / "lat.tmp.npz", z=z, off=off)
    os.replace(folder / "lat.tmp.npz", folder / "lat.npz")
    _write(folder / "items.jsonl.gz", gzip.compress("".join(json.dumps(item) + "\n" for item in items).encode()))
    counts, samples = Counter(item["voice"] for item in items), Counter()
    for item in items:
        samples[item["voice"]] += item["n"]
    told = {
        name: voice | {"items": counts[name], "hours": round(samples[name] / RATE / 3600, 2)}
        for name, voice in voices.items()
    }
    _write(folder / "voices.json", json.dumps({"default": DEFAULT, "voices": told}, indent=1).encode())
    print(f"{folder}: {len(items)} clips, {len(z) * HOP / RATE / 3600:.2f} h, {len(voices)} voices", flush=True)


def facts(name: str, voice: dict) -> dict:
    """What descriptions may say of a voice: measured or stated by its teacher, nothing else."""
    return {
        "sex": voice["gender"][0].upper(),
        "accent": ACCENT[voice["accent"]],
        "source": voice["teacher"],
        "median_f0_hz": voice["median_f0_hz"],
        "pitch_class": voice["pitch"],
        "brightness": voice["brightness"],
        "descriptions": voice["descriptions"],
    }


def merge(folders: list[Path], out: Path) -> None:
    """Several folders in training form as one, in the order given (the kit holds out every 250th item by its place)."""
    items, blocks, voices = [], [], {}
    for folder in folders:
        with np.load(folder / "lat.npz") as archive:
            z, off = archive["z"], archive["off"]
        with gzip.open(folder / "items.jsonl.gz", "rt", encoding="utf-8") as file:
            new = [json.loads(line) for line in file]
        items += new
        blocks += [z[off[k] : off[k + 1]] for k in range(len(new))]
        voices = json.loads((folder / "voices.json").read_text())["voices"] | voices
        if (folder / "tokenizer").is_dir():
            shutil.copytree(folder / "tokenizer", out / "tokenizer", dirs_exist_ok=True)
    write_folder(out, items, blocks, voices)


def reference_clips(source: Path, out: Path) -> None:
    """A few clips of 2.5 to 6 s per held-out voice as out/<voice>/<n>.wav with the words in <n>.txt."""
    by_voice = defaultdict(list)
    for row in read_manifest(source):
        if row["split"] == "heldout_voice" and row["kind"] not in ("rich", "number") and 2.5 <= row["duration_s"] <= 6:
            by_voice[row["voice"]].append(row)
    for name, rows in by_voice.items():
        (out / name).mkdir(parents=True, exist_ok=True)
        for number, row in enumerate(rows[:REFERENCE_CLIPS]):
            write_wav(out / name / f"{number}.wav", resample(load_audio(source / row["file"]), RATE).samples, RATE)
            (out / name / f"{number}.txt").write_text(row["spoken"] + "\n")
    print(f"{out}: clips of {', '.join(by_voice) or 'no voice: the manifest has no split heldout_voice'}")


def read_manifest(source: Path) -> Iterator[dict]:
    with (source / "manifest.jsonl").open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    os.replace(part, path)


def prepare(sources: list[Path], out: Path, factors: list[float]) -> None:
    parts, voices, known = out / "parts", {}, set()
    parts.mkdir(parents=True, exist_ok=True)
    for source in sources:
        described = json.loads((source / "voices.json").read_text())["voices"]
        rows = defaultdict(list)
        for row in read_manifest(source):
            rows[row["voice"]].append(row)
        known |= set(rows)
        for name in rows:
            key = DEFAULT[0] if name.startswith(DEFAULT_PREFIX) else name
            voices.setdefault(key, facts(name, described[name]))
            if not (parts / f"{name}.jsonl").exists():
                # resampled versions of the default voice are there already
                only = [1.0] if name.startswith(DEFAULT_PREFIX) else factors
                voice_part(source, name, rows[name], described[name], only, parts)
    if strangers := sorted(path.stem for path in parts.glob("*.jsonl") if path.stem not in known):
        raise SystemExit(f"{parts} has voices of other sources ({', '.join(strangers)}): name those sources as well.")
    for split in SPLITS.values():
        join(parts, voices, out, split)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, nargs="+")
    parser.add_argument("out", type=Path)
    parser.add_argument("--factors", type=float, nargs="+", default=[1.0, 0.91, 1.1], help="resampling: other speakers")
    parser.add_argument("--voices", action="store_true", help="only write reference clips of the held-out voices")
    parser.add_argument("--merge", action="store_true", help="the sources are in training form already: join them")
    given = parser.parse_args()
    if given.voices:
        reference_clips(given.source[0], given.out)
    elif given.merge:
        merge(given.source, given.out)
    else:
        prepare(given.source, given.out, given.factors)


if __name__ == "__main__":
    main()

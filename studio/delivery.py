"""Chapters become finished files: laid out, mastered, encoded, tagged, signed, subtitled and measured again.

One chapter is worked on at a time, through files on disk, so that a book of ten hours needs no more memory than a page
of it. Everything is made in a hidden folder beside its destination and moved there at the end: whoever cancels, or
meets a full disk, finds the destination as it was.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from studio import content_credentials, watermark
from studio.containers import FORMATS, SAMPLE_RATES, Chapter, Encoder, ExportError, Format, add_tags, cover_jpeg
from studio.delivery_report import LANDMARK_SECONDS, Landmark, Plan, report_file, whole_report
from studio.file_names import safe_name, unique_names
from studio.layout import ChapterAudio, Mark, Span, Spooled, gains_for, lay_out, retail_sample
from studio.mastering import PRESETS, Master, Preset, master
from studio.provenance import Facts, comment, credentials_folder, tags
from studio.report_page import report_html
from studio.subtitles import cues_of, srt, vtt, words_of

_SEARCHED = 10  # seconds at a chapter's start that its landmark is taken from
_ENCODED_AT_MOST = 3  # times, for a true peak that the encoder raised above the ceiling
_MORE_MARGIN = 0.2  # dB beyond what was measured: another gain makes other peaks
_STALE = 24 * 3600.0  # seconds: a work folder that old was left by a crash


class ExportCancelled(ExportError):
    """The export was given up; nothing of it is left."""


@dataclass(frozen=True)
class BookInfo:
    """What is known of a book. ``cover`` is a picture file's bytes."""

    title: str
    author: str = ""
    narrator: str = ""
    language: str = ""
    cover: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Order:
    """What is to be made. ``whole``: one file for the book; M4B always is. ``None``: where the package is installed."""

    format: str = "mp3"
    preset: str = "audiobook"
    whole: bool = False
    sample_rate: int = 44_100
    subtitles: bool = True
    sample: bool = False  # a retail sample besides
    watermark: bool | None = None
    credentials: bool | None = None
    language: str = "en"  # of the report

    def check(self) -> None:
        """Raises ExportError naming what is wrong, what is possible, and what is not installed."""
        for name, value, known in (("format", self.format, FORMATS), ("preset", self.preset, PRESETS)):
            if value not in known:
                raise ExportError(f"The {name} {value!r} is not known: choose {', '.join(known)}.")
        if self.sample_rate not in SAMPLE_RATES:
            rates = ", ".join(map(str, SAMPLE_RATES))
            raise ExportError(f"A sample rate of {self.sample_rate} Hz is not offered: choose {rates}.")
        for wanted, module in ((self.watermark, watermark), (self.credentials, content_credentials)):
            if wanted and not module.available():
                raise ExportError(f"A package is missing for what was asked for: {module.PIP_LINE}")


Progress = Callable[[float, str, str], None]  # share done, stage ("levels" | "sound" | "report"), chapter's title


def deliver(
    info: BookInfo,
    chapters: Sequence[ChapterAudio],
    order: Order,
    out_dir: Path,
    facts: Facts,
    data_dir: Path | None = None,
    progress: Progress = lambda share, stage, title: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Make all files of an order in ``out_dir``; returns {"files": [paths], "report": see studio.delivery_report}.

    Content Credentials need ``data_dir``, where the signing key lies. Raises ExportError with a sentence, and
    ExportCancelled soon after ``cancelled()`` is true; either leaves ``out_dir`` as it was.
    """
    order.check()
    empty = [chapter.title for chapter in chapters if not chapter.pieces]
    if empty or not chapters:
        raise ExportError(f"There is nothing to hear in: {', '.join(empty) or info.title}. Render it first.")
    try:
        with _work_folder(out_dir) as work:
            job = _Job(info, order, facts, work, data_dir, progress, cancelled)
            report = job.run(chapters)
            return {"files": _move(job.made, out_dir), "report": report}
    except OSError as error:
        raise ExportError(
            f"The files could not be written to {out_dir}: {error}. Free some space, or choose another folder."
        ) from error


@dataclass
class _Sound:
    """What was encoded: where its pieces, its chapters and the landmarks of these lie, and its length in seconds."""

    spans: list[Span] = field(default_factory=list)
    marks: list[Chapter] = field(default_factory=list)
    landmarks: list[Landmark] = field(default_factory=list)
    seconds: float = 0.0


class _Job:
    """One run of :func:`deliver`."""

    def __init__(
        self,
        info: BookInfo,
        order: Order,
        facts: Facts,
        work: Path,
        data_dir: Path | None,
        progress: Progress,
        cancelled: Callable[[], bool],
    ) -> None:
        self.made: list[Path] = []
        self._info, self._order, self._facts, self._work = info, order, facts, work
        self._kind: Format = FORMATS[order.format]
        self._preset: Preset = PRESETS[order.preset]
        self._cover = cover_jpeg(info.cover) if info.cover else None
        self._mark = _wanted(order.watermark, watermark) and watermark.mark
        signs = data_dir is not None and _wanted(order.credentials, content_credentials)
        self._key_folder = credentials_folder(data_dir) if signs else None
        self._progress, self._cancelled = progress, cancelled
        self._done, self._all = 0, 1

    def run(self, chapters: Sequence[ChapterAudio]) -> dict[str, Any]:
        """Make everything; returns the report, which is also written."""
        self._gains = gains_for(chapters, self._preset)
        groups = self._groups(chapters)
        self._all = 2 * sum(len(chapter.pieces) for _, _, group in groups for chapter in group)
        files = [
            self._make(name, kind, group, number, len(groups)) for number, (name, kind, group) in enumerate(groups, 1)
        ]
        report = whole_report(files, self._preset, self._facts.tool, self._facts.created)
        name = safe_name(self._info.title)
        self._write(f"{name}.report.json", json.dumps(report, ensure_ascii=False, indent=1))
        self._write(f"{name}.report.html", report_html(report, self._info.title, self._order.language))
        return report

    def _groups(self, chapters: Sequence[ChapterAudio]) -> list[tuple[str, Format, list[ChapterAudio]]]:
        """What goes into which file: (name without suffix, format, chapters)."""
        book = safe_name(self._info.title)
        if self._order.whole or self._kind.name == "m4b":
            groups = [(book, self._kind, list(chapters))]
        else:
            width = max(2, len(str(len(chapters))))
            groups = [
                (f"{number:0{width}d} {safe_name(chapter.title, 'chapter')}", self._kind, [chapter])
                for number, chapter in enumerate(chapters, 1)
            ]
        sample = retail_sample(chapters, f"{self._info.title} (sample)") if self._order.sample else None
        if sample:
            kind = FORMATS["mp3"] if self._kind.name == "m4b" else self._kind
            groups.append((f"{book} - sample", kind, [sample]))
        names = unique_names(name for name, _, _ in groups)
        return [(name, kind, group) for name, (_, kind, group) in zip(names, groups, strict=True)]

    def _make(
        self, name: str, kind: Format, chapters: Sequence[ChapterAudio], number: int, count: int
    ) -> dict[str, Any]:
        """One file with its subtitles; returns the report on it."""
        whole = len(chapters) > 1 or kind.name == "m4b"
        raw, path = self._work / f"raw{kind.suffix}", self._work / f"{name}{kind.suffix}"
        title = self._info.title if whole else chapters[0].title
        margin = kind.margin
        for _ in range(_ENCODED_AT_MOST):
            sound = self._encode(raw, kind, chapters, margin)
            self._finish(raw, path, kind, title, f"{number}/{count}", sound.marks if whole else ())
            self._report(title)
            marks = tuple(sound.marks) if whole and kind.chapters else ()
            plan = Plan(sound.seconds, marks, tuple(sound.landmarks), not whole)
            report = report_file(path, self._preset, plan, self._order.language)
            over = _over_the_ceiling(report, self._preset) if kind.lossy else 0.0
            if not over:
                break
            margin += over + _MORE_MARGIN  # how much an encoder raises peaks depends on the voice
        self.made.append(path)
        if self._order.subtitles:
            self._subtitles(name, sound.spans, sound.seconds)
        return report

    def _encode(self, raw: Path, kind: Format, chapters: Sequence[ChapterAudio], margin: float) -> _Sound:
        rate, sound = self._order.sample_rate, _Sound()
        at = 0
        with Encoder(raw, kind, rate) as encoder:
            for chapter in chapters:
                with self._laid_out(chapter, margin) as (mastered, own_spans):
                    for block in mastered.blocks():
                        self._check()
                        encoder.write(block)
                    sound.landmarks.append(_landmark(mastered, at))
                    sound.spans += [span.moved(at) for span in own_spans]
                    end = at + len(mastered.samples)
                sound.marks.append(Chapter(chapter.title, at / rate, end / rate))
                at = end
                self._step(len(chapter.pieces), "sound", chapter.title)
        sound.seconds = at / rate
        return sound

    @contextmanager
    def _laid_out(self, chapter: ChapterAudio, margin: float) -> Iterator[tuple[Master, list[Span]]]:
        """A chapter's master and where its pieces lie. Its sound is on disk meanwhile."""
        spool, rate = self._work / "chapter.f32", self._order.sample_rate
        mark: Mark | None = self._mark or None
        with open(spool, "wb") as file:
            step = lambda: self._step(1, "levels", chapter.title)  # noqa: E731
            spans = lay_out(chapter, file, rate, self._preset, self._gains, mark, step)
        if not spool.stat().st_size:
            raise ExportError(f"There is nothing to hear in: {chapter.title}. Render it again.")
        yield master(Spooled(spool), rate, self._preset, margin), spans
        spool.unlink()

    def _finish(self, raw: Path, path: Path, kind: Format, title: str, track: str, marks: Sequence[Chapter]) -> None:
        """Tags, chapter marks, cover and signature."""
        info, facts = self._info, self._facts
        about = {
            "title": title,
            "album": info.title,
            "artist": info.author or info.narrator,
            "album_artist": info.author,
            "composer": info.narrator,  # where players of audiobooks look for who reads
            "genre": "Audiobook" if self._preset.name == "audiobook" or kind.name == "m4b" else "Speech",
            "date": facts.created[:4],
            "track": track,
            "language": info.language,
        }
        if kind.container == "ipod":
            about["media_type"] = "2"  # audiobook: players remember the place
        if self._key_folder is None:
            add_tags(raw, path, kind, about | tags(facts, kind), marks, self._cover)
        else:
            unsigned = self._work / f"unsigned{kind.suffix}"
            add_tags(raw, unsigned, kind, about | tags(facts, kind), marks, self._cover)
            content_credentials.sign(unsigned, path, self._key_folder, facts.tool, title, facts.model)
            unsigned.unlink()
        raw.unlink()

    def _subtitles(self, name: str, spans: Sequence[Span], seconds: float) -> None:
        rate = self._order.sample_rate
        cues, words = cues_of(spans, rate, seconds), words_of(spans, rate, seconds)
        self._write(f"{name}.srt", srt(cues))
        self._write(f"{name}.vtt", vtt(cues, comment(self._facts)))
        if words:
            self._write(f"{name}.words.srt", srt(words))
            self._write(f"{name}.words.vtt", vtt(words, comment(self._facts)))

    def _write(self, name: str, text: str) -> None:
        path = self._work / name
        path.write_text(text, encoding="utf-8", newline="\n")
        self.made.append(path)

    def _step(self, steps: int, stage: str, title: str) -> None:
        self._check()
        self._done += steps
        self._progress(min(1.0, self._done / self._all), stage, title)

    def _report(self, title: str) -> None:
        self._check()
        self._progress(min(1.0, self._done / self._all), "report", title)

    def _check(self) -> None:
        if self._cancelled():
            raise ExportCancelled("The export was cancelled. Nothing was written.")


def _over_the_ceiling(report: dict[str, Any], preset: Preset) -> float:
    """dB by which a finished file's true peak fails; 0.0 when it passes."""
    row = next(row for row in report["rows"] if row["name"] == "true_peak")
    return row["value"] - preset.ceiling if row["status"] == "fail" else 0.0


def _landmark(mastered: Master, at: int) -> Landmark:
    """The loudest moment near a chapter's start; ``at`` is where the chapter begins in its file."""
    near = np.abs(mastered.samples[: _SEARCHED * mastered.sample_rate])
    length = round(LANDMARK_SECONDS * mastered.sample_rate)
    start = max(0, int(near.argmax()) - length // 2)
    return Landmark(at + start, mastered.part(start, min(start + length, len(mastered.samples))))


def _wanted(wish: bool | None, module: Any) -> bool:
    return module.available() if wish is None else wish


@contextmanager
def _work_folder(out_dir: Path) -> Iterator[Path]:
    """A hidden folder on the destination's disk, gone afterwards; so is ``out_dir`` if it was made for nothing."""
    existed = out_dir.is_dir()
    out_dir.mkdir(parents=True, exist_ok=True)
    for old in out_dir.glob(".export-*"):
        if time.time() - old.stat().st_mtime > _STALE:
            shutil.rmtree(old, ignore_errors=True)
    work = out_dir / f".export-{uuid.uuid4().hex}"
    work.mkdir()
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if not existed and not any(out_dir.iterdir()):
            out_dir.rmdir()


def _move(made: Sequence[Path], out_dir: Path) -> list[str]:
    """Everything to its place: renamed, so that each file is whole at every moment."""
    for path in made:
        os.replace(path, out_dir / path.name)
    return [str(out_dir / path.name) for path in made]

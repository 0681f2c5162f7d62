"""One running job: a generation's chunks become events for its listener, its ended rows become stored takes."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from studio.checks import worst
from studio.events import Chunk, Event, Finished, Progress
from studio.kept_clips import KeptClips
from studio.loudness import loudness, peak
from studio.store import Store, StoreError
from studio.take_checks import Recogniser, check_take
from studio.takes import Origin, TakeRecord, model_facts, record_of
from voxcpm_core import Generation, SpeechRequest, Take, VoxCPM
from voxcpm_core.audio import content_hash, load_audio, wav_bytes
from voxcpm_core.errors import VoxCPMError

logger = logging.getLogger(__name__)


@dataclass
class _Row:
    pieces: list[np.ndarray] = field(default_factory=list)
    samples: int = 0
    first_audio_seconds: float | None = None
    stored: bool = False


class Job:
    """One running generation: turns its chunks into events and its ended rows into stored takes."""

    def __init__(
        self,
        generation: Generation,
        model: VoxCPM,
        origin: Origin,
        store: Store,
        recognise: Recogniser | None = None,
        only: int | None = None,
    ) -> None:
        """``recognise`` checks the words of each take; with ``only`` the other rows are company and not kept."""
        self.id = uuid.uuid4().hex
        self._generation = generation
        self._chunks = iter(generation)
        self._model = model
        self._origin = replace(origin, group=origin.group or self.id, batch=tuple(generation.seeds))
        self._store = store
        self._recognise = recognise
        self._rows = [_Row() for _ in generation.seeds]
        for index, row in enumerate(self._rows):
            row.stored = only is not None and index != only
        self._began = time.monotonic()
        self._failure = ""

    @property
    def group(self) -> str:
        return self._origin.group

    def events(self) -> Iterator[Event]:
        for row, samples in self._received():
            if not self._rows[row].stored:
                yield Chunk(row, wav_bytes(samples, self._model.sample_rate), samples)
                yield self._progress(row)
            for ended in self._ended_rows():
                yield Finished(ended, self._keep(ended))
            if all(row.stored for row in self._rows):  # what still runs is company
                self._generation.cancel()
        for ended, row in enumerate(self._rows):
            if not row.stored:
                yield Finished(ended, self._keep(ended))

    def finish(self) -> None:
        """Leave no row running and no take unstored. Quick and without effect when all events were taken."""
        self._generation.cancel()
        if all(row.stored for row in self._rows):
            return
        for _ in self._received():
            pass
        for index, row in enumerate(self._rows):
            if not row.stored:
                self._keep(index)

    def _received(self) -> Iterator[tuple[int, np.ndarray]]:
        """The generation's chunks, noted per row.

        A failure of the model ends them and is kept as a sentence.
        """
        try:
            for index, samples in self._chunks:
                row = self._rows[index]
                row.pieces.append(samples)
                row.samples += len(samples)
                if row.first_audio_seconds is None:
                    row.first_audio_seconds = time.monotonic() - self._began
                yield index, samples
        except VoxCPMError as error:
            logger.exception("job %s failed", self.id)
            self._failure = str(error)
        except Exception as error:
            logger.exception("job %s failed", self.id)
            self._failure = sentence("The model failed while speaking", error)

    def _progress(self, index: int) -> Progress:
        seconds = self._rows[index].samples / self._model.sample_rate
        elapsed = time.monotonic() - self._began
        return Progress(index, self._patches(index), seconds, elapsed / seconds if seconds else 0.0)

    def _patches(self, index: int) -> int:
        return round(self._rows[index].samples / self._model.sample_rate / self._model.patch_seconds)

    def _ended_rows(self) -> Iterator[int]:
        """Rows whose take is complete and whose audio has all been relayed."""
        for index, row in enumerate(self._rows):
            take = self._generation.takes[index]
            if not row.stored and take is not None and row.samples >= len(take.samples):
                yield index

    def _keep(self, index: int) -> TakeRecord:
        row = self._rows[index]
        row.stored = True  # also when storing fails: it is tried once
        take = self._generation.takes[index] or self._broken_take(index)
        row.pieces.clear()
        record = record_of(take, self._origin)
        if not len(take.samples):
            return record  # nothing to keep; the message says why
        record = replace(record, **self._findings(take))
        try:
            return self._store.save_take(record, take.samples)
        except StoreError as error:
            logger.exception("take of job %s was not saved", self.id)
            return replace(record, message=f"{record.message} {error}".strip())

    def _findings(self, take: Take) -> dict[str, Any]:
        """What the take sounds like, for its record. A check that breaks costs the checks and not the take."""
        try:
            checks = check_take(
                take.samples,
                take.sample_rate,
                spoken_text=take.spoken.text,
                ended_by=take.ended_by,
                too_long_for_model=self._model.is_too_long(take, self._origin.request),
                recognise=self._recognise,
            )
            return {
                "checks": tuple(check.as_dict() for check in checks),
                "verdict": worst(checks),
                "loudness": _hundredths(loudness(take.samples, take.sample_rate)),
                "peak": _hundredths(peak(take.samples)),
            }
        except Exception:
            logger.exception("a take of job %s was not checked", self.id)
            return {}

    def _broken_take(self, index: int) -> Take:
        """What a row had made when the model gave up without handing over its take."""
        row, request, defaults = self._rows[index], self._origin.request, self._model.defaults
        return Take(
            samples=np.concatenate(row.pieces) if row.pieces else np.zeros(0, np.float32),
            sample_rate=self._model.sample_rate,
            seed=self._generation.seeds[index],
            attempt=0,
            ended_by="error" if self._failure else "cancelled",
            message=self._failure,
            patches=self._patches(index),
            spoken=self._model.prepare(request),
            cfg_value=defaults.cfg_value if request.cfg_value is None else request.cfg_value,
            inference_timesteps=request.inference_timesteps or defaults.inference_timesteps,
            temperature=defaults.temperature if request.temperature is None else request.temperature,
            generation_seconds=time.monotonic() - self._began,
            first_audio_seconds=row.first_audio_seconds,
        )


def _hundredths(level: float | None) -> float | None:
    return None if level is None else round(level, 2)


def origin_of(model: VoxCPM, request: SpeechRequest, clip_name: str = "", **known: Any) -> tuple[SpeechRequest, Origin]:
    """The request with its clips read (what is hashed is what is heard) and the origin of its takes.

    ``clip_name`` is told for clips that come without a file's name; ``known`` are further fields of the origin.
    """
    reference, reference_hash, reference_name = _clip(request.reference_wav_path, clip_name)
    prompt, prompt_hash, prompt_name = _clip(request.prompt_wav_path, clip_name)
    request = replace(request, reference_wav_path=reference, prompt_wav_path=prompt)
    return request, Origin(
        request=request,
        reference_hash=reference_hash,
        reference_name=reference_name,
        prompt_hash=prompt_hash,
        prompt_name=prompt_name,
        model_facts=model_facts(model, request),
        **known,
    )


def _clip(source: Any, name: str) -> tuple[Any, str, str]:
    """A clip as audio, its content hash and the file name it came by; (None, "", "") for none."""
    if source is None:
        return None, "", ""
    is_file = isinstance(source, str | Path)
    audio = load_audio(source) if is_file else source
    return audio, content_hash(audio), Path(source).name if is_file else name


def keep_clips(request: SpeechRequest, clips: KeptClips) -> tuple[str, ...]:
    """Keep the clips of a request for replays. What cannot be kept is told as a sentence: the take matters more."""
    notes = []
    for audio in (request.reference_wav_path, request.prompt_wav_path):
        try:
            if audio is not None:
                clips.keep(audio)
        except StoreError as error:
            logger.warning("%s", error)
            notes.append(f"This take cannot be replayed later. {error}")
    return tuple(notes)


def sentence(what: str, error: Exception) -> str:
    """A sentence for users about an error that nobody foresaw: its kind and first line, never a traceback."""
    detail = str(error).strip().splitlines()[:1]
    kind = type(error).__name__
    return f"{what} ({kind}{': ' + detail[0] if detail else ''}). The log of the program has the details."

"""The running batch. One thread owns the model; everything else talks to it through a queue.

    submit(jobs) -> Generation          any thread
    admit -> step -> decode -> yield    the model thread, over and over

A *row* is one take: its own seed, noise generator, limits, cache place, decoder state and end reason. Rows join while
others run and leave when they end; all rows make one patch per turn. Takes of one request share one prefill, requests
with the same reference share its prefix.
"""

from __future__ import annotations

import atexit
import logging
import queue
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from .audio import Audio, content_hash
from .audio_vae import AudioVAE, State
from .errors import EngineError
from .generation import Generation
from .jobs import Job
from .model import Model, Prefilled, VoicePrefix
from .request import Take
from .sequence import Sequence, build_sequence
from .tokenizer import Tokenizer

log = logging.getLogger(__name__)

_CACHED_VOICES = 16
_running: weakref.WeakSet[Engine] = weakref.WeakSet()


@dataclass
class Row:
    """One take on its way. Lives at the same place in the engine's list as in every tensor of the batch."""

    job: Job
    generation: Generation
    number: int
    seed: int
    submitted: float
    admitted: float
    generator: torch.Generator
    chunks: list[np.ndarray] = field(default_factory=list)
    first_audio: float | None = None

    def noise(self, shape: tuple[int, int]) -> Tensor:
        """Noise of the next patch, [D, P]. Drawn on the CPU: the same on every device and beside any other rows."""
        return torch.randn(shape, generator=self.generator) * self.job.temperature

    def take(self, sample_rate: int, ended_by: str, message: str) -> Take:
        samples = np.concatenate(self.chunks) if self.chunks else np.zeros(0, np.float32)
        job, now = self.job, time.perf_counter()
        return Take(
            samples=samples,
            sample_rate=sample_rate,
            seed=self.seed,
            ended_by=ended_by,
            message=message,
            patches=len(self.chunks),
            spoken=job.spoken,
            cfg_value=job.cfg_value,
            inference_timesteps=job.inference_timesteps,
            temperature=job.temperature,
            generation_seconds=now - self.admitted,
            first_audio_seconds=self.first_audio,
        )


@dataclass
class _Waiting:
    job: Job
    generation: Generation
    submitted: float
    start: tuple[Prefilled, State] | None = None  # once read, shared by the rows that are still to be admitted
    rows: list[tuple[int, int]] = field(default_factory=list)
    admitted: float = 0.0


@dataclass
class _Call:
    """A function that needs the model to itself (changing adapters); runs when no row is running."""

    function: Callable[[], object]
    done: threading.Event = field(default_factory=threading.Event)
    result: object = None
    error: BaseException | None = None


class Engine:
    """Runs requests on one model. ``max_rows`` bounds how many rows share a turn; more wait their turn."""

    def __init__(self, model: Model, audio_vae: AudioVAE, tokenizer: Tokenizer, max_rows: int = 8):
        self.model, self.audio_vae, self.tokenizer, self.max_rows = model, audio_vae, tokenizer, max_rows
        self.steps = 0  # patches made by the whole batch since the start; tests read it
        self._inbox: queue.SimpleQueue[_Waiting | _Call | None] = queue.SimpleQueue()
        self._waiting: list[_Waiting | _Call] = []
        self._rows: list[Row] = []
        self._batch = model.new_batch()
        self._latents: OrderedDict[Hashable, Tensor] = OrderedDict()
        self._voices: OrderedDict[Hashable, VoicePrefix] = OrderedDict()
        self._closed = False
        self._gate = threading.Lock()  # nothing may be put into the inbox after the end mark
        self._thread = threading.Thread(target=self._run, name="voxcpm-engine", daemon=True)
        _running.add(self)
        self._thread.start()

    # ---- any thread

    def submit(self, jobs: list[Job], generation: Generation) -> None:
        now = time.perf_counter()
        self._put(*(_Waiting(job, generation, now, rows=list(job.rows)) for job in jobs))

    def call(self, function: Callable[[], object]) -> object:
        """Runs ``function`` on the model thread between generations and returns its result."""
        call = _Call(function)
        self._put(call)
        call.done.wait()
        if call.error is not None:
            raise call.error
        return call.result

    def close(self) -> None:
        """Cancels what runs, ends the thread and empties its caches; the weights go when nobody holds the model."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._inbox.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _put(self, *items: _Waiting | _Call) -> None:
        with self._gate:
            if self._closed:
                raise EngineError("The model was closed; load it again before asking for speech.")
            if not self._thread.is_alive():  # threads do not come along into a forked process
                raise EngineError("The model was loaded in another process; load it in the one that uses it.")
            for item in items:
                self._inbox.put(item)

    # ---- the model thread

    @torch.inference_mode()  # all of it: caches made in this mode may only be written in it
    def _run(self) -> None:
        while self._receive():
            try:
                self._admit()
                self._turn()
            except Exception as error:  # the thread must outlive whatever happens: callers wait for it
                log.exception("a turn failed")
                self._end_all("error", f"The model failed: {error}. What was made so far is kept.")
        self._end_all("cancelled", "The model was closed.")
        for item in self._waiting:
            self._refuse(item, "cancelled", "The model was closed.")
        self._waiting = []
        self._latents.clear()
        self._voices.clear()

    @property
    def _rate(self) -> int:
        return self.audio_vae.config.out_sample_rate

    def _receive(self) -> bool:
        """Takes what has arrived, waiting for something when idle; False when closing."""
        idle = not self._rows and not self._waiting
        while True:
            try:
                item = self._inbox.get(block=idle)
            except queue.Empty:
                return True
            if item is None:
                return False
            self._waiting.append(item)
            idle = False

    def _admit(self) -> None:
        """Lets waiting rows in, in order of arrival, while there is room. A call waits for an empty batch.

        One request is read per turn, so that a queue of long references does not hold up the rows that run.
        """
        self._drop_cancelled()
        may_read = True
        while self._waiting and len(self._rows) < self.max_rows:
            item = self._waiting[0]
            if isinstance(item, _Call):
                if self._rows:
                    return
                self._answer(item)
                self._waiting.pop(0)
                continue
            if item.start is None:
                if not may_read:
                    return
                may_read = False
            try:
                self._admit_row(item)
            except Exception as error:
                log.exception("a row was not let in")
                self._refuse(item, "error", f"The model failed while reading the request: {error}")
                if item.start is not None:  # read, then not put into the batch, which may now be half changed
                    self._end_all("error", f"The model failed: {error}. What was made so far is kept.")
            if not item.rows:
                self._waiting.pop(0)

    def _drop_cancelled(self) -> None:
        for item in self._waiting:
            if isinstance(item, _Waiting):
                for place in [place for place in item.rows if item.generation.is_cancelled(place[0])]:
                    self._refuse_row(item, place, "cancelled", "Stopped before it began.")
        self._waiting = [item for item in self._waiting if isinstance(item, _Call) or item.rows]

    def _admit_row(self, item: _Waiting) -> None:
        number, seed = item.rows[0]
        if item.start is None:
            item.admitted = time.perf_counter()
            item.start = self._prefill(item.job)
        generator = torch.Generator().manual_seed(seed)
        row = Row(item.job, item.generation, number, seed, item.submitted, item.admitted, generator)
        self._batch.add(*item.start)
        self._rows.append(row)
        item.rows.pop(0)

    def _prefill(self, job: Job) -> tuple[Prefilled, State]:
        reference = None if job.reference is None else self._encode(job.reference, "right")
        prompt = None if job.prompt is None else self._encode(job.prompt, "left")
        sequence = build_sequence(self.tokenizer, job.spoken.prompt, job.transcript, prompt, reference)
        voice = None if job.reference is None else self._voice(job.reference, sequence)
        return self.model.prefill(sequence, voice), self._prime(prompt)

    def _prime(self, prompt: Tensor | None) -> State:
        """The decoder's memory before the first patch: silence, or the end of the prompt: no seam is heard."""
        if prompt is None:
            return self.audio_vae.decoder.initial_state(1)
        patches = 2 if self.model.config.version == 1 else 3
        context = prompt[-patches:].flatten(0, 1)[None]
        return self.audio_vae.decode(context)[1]

    def _encode(self, audio: Audio, pad: str) -> Tensor:
        """Patches [T, P, D] float32 of a clip at the encoder's rate, filled up with zeros on the side ``pad``."""

        def encode() -> Tensor:
            patch = self.model.config.patch_size
            short = -len(audio.samples) % (patch * self.audio_vae.config.encoder_hop)
            samples = np.pad(audio.samples, (short, 0) if pad == "left" else (0, short))
            latents = self.audio_vae.encode(torch.from_numpy(samples)[None].to(self.model.device))
            return latents.view(-1, patch, self.model.config.feat_dim)

        return _cached(self._latents, (content_hash(audio), pad), encode)

    def _voice(self, reference: Audio, sequence: Sequence) -> VoicePrefix:
        return _cached(self._voices, content_hash(reference), lambda: self.model.prefill_voice(sequence))

    def _turn(self) -> None:
        """One patch for every row."""
        for index in reversed(range(len(self._rows))):
            row = self._rows[index]
            if row.generation.is_cancelled(row.number):
                self._end(index, "cancelled", "Stopped on request.")
        if self._rows:
            self._step()

    def _step(self) -> None:
        rows, batch, config = self._rows, self._batch, self.model.config
        shape = (config.feat_dim, config.patch_size)
        noise = torch.stack([row.noise(shape) for row in rows]).transpose(1, 2).to(self.model.device)
        cfg_value = torch.tensor([row.job.cfg_value for row in rows], device=self.model.device)
        steps = [row.job.inference_timesteps for row in rows]
        patches, stop = self.model.step(batch, noise, cfg_value, steps)
        samples, batch.vae_state = self.audio_vae.decode(patches.float(), batch.vae_state)
        self.steps += 1
        samples = samples.cpu()
        finite = torch.isfinite(samples).all(-1).tolist()
        self._deliver(samples.numpy(), finite)
        ends = [self._end_reason(*facts) for facts in zip(rows, stop.tolist(), finite, strict=True)]
        keep = [index for index, end in enumerate(ends) if end is None]
        for index in reversed(range(len(ends))):
            if ends[index] is not None:
                # the last row moves into the gap, in the batch as in these lists
                patches[index] = patches[len(self._rows) - 1]
                self._end(index, *ends[index])
        if keep:
            self.model.advance(batch, patches[: len(keep)])

    def _deliver(self, samples: np.ndarray, finite: list[bool]) -> None:
        now = time.perf_counter()
        for row, chunk, good in zip(self._rows, samples, finite, strict=True):
            if not good:
                continue
            if row.first_audio is None:
                row.first_audio = now - row.submitted
            row.chunks.append(chunk)
            row.generation.put(row.number, chunk.copy())  # the listener may change what it gets

    @staticmethod
    def _end_reason(row: Row, stop: bool, finite: bool) -> tuple[str, str] | None:
        made = len(row.chunks)
        if not finite:
            return "error", (
                f"The model computed values that are not numbers after {made} patches; what was made before is kept. "
                "Try another seed, or load the model with dtype float32."
            )
        if stop and made > row.job.request.min_len + 1:
            return "stop", ""
        return ("limit", row.job.limit_message) if made >= row.job.limit else None

    def _end(self, index: int, ended_by: str, message: str) -> None:
        row = self._rows[index]
        self._batch.remove(index)
        self._rows[index] = self._rows[-1]
        self._rows.pop()
        row.generation.finish(row.number, row.take(self._rate, ended_by, message))

    def _end_all(self, ended_by: str, message: str) -> None:
        """Ends every running row and starts an empty batch; needs nothing of the old one to be in order."""
        rows, self._rows, self._batch = self._rows, [], self.model.new_batch()
        for row in rows:
            row.generation.finish(row.number, row.take(self._rate, ended_by, message))

    def _refuse(self, item: _Waiting | _Call, ended_by: str, message: str) -> None:
        if isinstance(item, _Call):
            item.error = EngineError(message)
            item.done.set()
            return
        for place in list(item.rows):
            self._refuse_row(item, place, ended_by, message)

    def _refuse_row(self, item: _Waiting, place: tuple[int, int], ended_by: str, message: str) -> None:
        """Ends a row that never ran, with a take of no samples."""
        number, seed = place
        row = Row(item.job, item.generation, number, seed, item.submitted, time.perf_counter(), torch.Generator())
        item.rows.remove(place)
        item.generation.finish(number, row.take(self._rate, ended_by, message))

    def _answer(self, call: _Call) -> None:
        self._voices.clear()  # computed with the adapter that is about to change, as are the time embeddings
        self.model.feat_decoder.forget_times()
        try:
            call.result = call.function()
        except BaseException as error:
            call.error = error
        call.done.set()


@atexit.register
def _close_all() -> None:
    """No thread may be inside torch when the interpreter goes: that aborts the process."""
    for engine in list(_running):
        engine.close()


def _cached(cache: OrderedDict, key: Hashable, make: Callable[[], object]) -> object:
    if key not in cache:
        cache[key] = make()
        while len(cache) > _CACHED_VOICES:
            cache.popitem(last=False)
    cache.move_to_end(key)
    return cache[key]

"""The running batch. One thread owns the model; everything else talks to it through a queue.

    submit(jobs) -> Generation          any thread
    admit -> step -> decode -> yield    the model thread, over and over

A *row* is one take: its own seed, noise generator, limits, cache place, decoder state and end reason. Rows join while
others run and leave when they end; all rows make one patch per turn. Takes of one request share one prefill, requests
with the same reference share its prefix. Rows of one batch are spoken with the same adapter: a request with another one
waits until the batch is empty, and what came after it waits behind it.
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

import numpy as np
import torch
from torch import Tensor

from .audio import Audio, content_hash
from .audio_vae import AudioVAE, State
from .errors import EngineError
from .generation import Generation
from .jobs import Job
from .lora import Worn, wear
from .model import Model, Prefilled, VoicePrefix
from .rows import Call, Known, Row, Waiting
from .sequence import Sequence, build_sequence
from .tokenizer import Tokenizer

log = logging.getLogger(__name__)

_CACHED_VOICES = 16
_REFERENCE_PAD = "right"  # a prompt is filled up on the left
_running: weakref.WeakSet[Engine] = weakref.WeakSet()


class Engine:
    """Runs requests on one model. ``max_rows`` bounds how many rows share a turn; more wait their turn."""

    def __init__(self, model: Model, audio_vae: AudioVAE, tokenizer: Tokenizer, max_rows: int = 8):
        self.model, self.audio_vae, self.tokenizer, self.max_rows = model, audio_vae, tokenizer, max_rows
        self.steps = 0  # patches made by the whole batch since the start; tests read it
        self._inbox: queue.SimpleQueue[Waiting | Call | Known | None] = queue.SimpleQueue()
        self._waiting: list[Waiting | Call] = []
        self._rows: list[Row] = []
        self._batch = model.new_batch()
        self._latents: OrderedDict[Hashable, Tensor] = OrderedDict()
        self._voices: OrderedDict[Hashable, VoicePrefix] = OrderedDict()
        self._worn: Worn | None = None  # the adapter that is on the model, and all running rows are spoken with
        self._closed = False
        self._gate = threading.Lock()  # nothing may be put into the inbox after the end mark
        self._thread = threading.Thread(target=self._run, name="voxcpm-engine", daemon=True)
        _running.add(self)
        self._thread.start()

    # ---- any thread

    def submit(self, jobs: list[Job], generation: Generation) -> None:
        now = time.perf_counter()
        self._put(*(Waiting(job, generation, now, rows=list(job.rows)) for job in jobs))

    def call(self, function: Callable[[], object]) -> object:
        """Runs ``function`` on the model thread between generations and returns its result."""
        call = Call(function)
        self._put(call)
        call.done.wait()
        if call.error is not None:
            raise call.error
        return call.result

    def recall(self, reference: Audio) -> tuple[Tensor, VoicePrefix | None] | None:
        """What is remembered of a reference at the encoder's rate: its patches [T, P, D], and its voice part.

        None when it was not heard lately. The voice part is that of the base model; there is none when the reference
        was heard with adapters only. The tensors are shared: not to be written to.
        """
        key = content_hash(reference)
        latents, prefix = self._latents.get((key, _REFERENCE_PAD)), self._voices.get((key, None))
        return None if latents is None else (latents, prefix)

    def remember(self, reference: Audio, latents: Tensor, prefix: VoicePrefix | None) -> None:
        """Hands back what :meth:`recall` gave, of this process or an earlier one, for the same weights and device."""
        self._put(Known(content_hash(reference), latents, prefix))

    def close(self) -> None:
        """Cancels what runs, ends the thread and empties its caches; the weights go when nobody holds the model."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._inbox.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _put(self, *items: Waiting | Call | Known) -> None:
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
            if isinstance(item, Known):
                self._learn(item)
                continue
            self._waiting.append(item)
            idle = False

    def _learn(self, known: Known) -> None:
        _cached(self._latents, (known.key, _REFERENCE_PAD), lambda: known.latents)
        if known.prefix is not None:
            _cached(self._voices, (known.key, None), lambda: known.prefix)

    def _admit(self) -> None:
        """Lets waiting rows in, in order of arrival, while there is room. A call waits for an empty batch.

        One request is read per turn, so that a queue of long references does not hold up the rows that run.
        """
        self._drop_cancelled()
        may_read = True
        while self._waiting and len(self._rows) < self.max_rows:
            item = self._waiting[0]
            if isinstance(item, Call):
                if self._rows:
                    return
                self._answer(item)
                self._waiting.pop(0)
                continue
            if item.start is None:
                if not may_read or (self._rows and item.job.worn != self._worn):
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
            if isinstance(item, Waiting):
                for place in [place for place in item.rows if item.generation.is_cancelled(place[0])]:
                    self._refuse_row(item, place, "cancelled", "Stopped before it began.")
        self._waiting = [item for item in self._waiting if isinstance(item, Call) or item.rows]

    def _admit_row(self, item: Waiting) -> None:
        number, seed = item.rows[0]
        if item.start is None:
            item.admitted = time.perf_counter()
            self._wear(item.job.worn)
            item.start = self._prefill(item.job)
        generator = torch.Generator().manual_seed(seed)
        row = Row(item.job, item.generation, number, seed, item.submitted, item.admitted, generator)
        self._batch.add(*item.start)
        self._rows.append(row)
        item.rows.pop(0)

    def _wear(self, worn: Worn | None) -> None:
        """Changes the adapter; no row may be running with another one."""
        if worn != self._worn:
            wear(self.model, worn)
            self.model.feat_decoder.forget_times()
            self._worn = worn

    def _prefill(self, job: Job) -> tuple[Prefilled, State]:
        reference = None if job.reference is None else self._encode(job.reference, _REFERENCE_PAD)
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
        key = content_hash(reference), self._worn
        return _cached(self._voices, key, lambda: self.model.prefill_voice(sequence))

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

    def _refuse(self, item: Waiting | Call, ended_by: str, message: str) -> None:
        if isinstance(item, Call):
            item.error = EngineError(message)
            item.done.set()
            return
        for place in list(item.rows):
            self._refuse_row(item, place, ended_by, message)

    def _refuse_row(self, item: Waiting, place: tuple[int, int], ended_by: str, message: str) -> None:
        """Ends a row that never ran, with a take of no samples."""
        number, seed = place
        row = Row(item.job, item.generation, number, seed, item.submitted, time.perf_counter(), torch.Generator())
        item.rows.remove(place)
        item.generation.finish(number, row.take(self._rate, ended_by, message))

    def _answer(self, call: Call) -> None:
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

"""The only way from the studio to sound: load a model, ask it for rows, relay the chunks, keep every take.

The model itself runs on its own thread (``voxcpm_core.engine``); many sessions may call
:meth:`Synthesizer.speak` at once and each iterates over its own generation. What goes wrong reaches the
caller as a sentence; the traceback goes to the log.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from studio import replay
from studio.adapters import AdapterShelf
from studio.events import Event, Finished, ModelStatus, Reason, Started
from studio.speaking import Job, keep_clips, origin_of, sentence
from studio.store import Store
from studio.take_checks import Recogniser
from studio.takes import EVERYONE, readable, seen_by
from studio.voice_cache import VoiceCache
from studio.voice_use import VoiceUse, refuse_unsupported, with_voice
from studio.voices import Voice, VoiceLibrary
from voxcpm_core import Generation, SpeechRequest, SpokenText, VoxCPM
from voxcpm_core.errors import EngineError, VoxCPMError
from voxcpm_core.text import prepare_text

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0  # how long closing waits for listeners to take their last chunks


class LoadProgress:
    """Handed to ``load_model``: call it with stage and fraction; ``notice`` takes what users should know."""

    def __init__(self, update: Callable[..., None]) -> None:
        self._update = update

    def __call__(self, stage: str, fraction: float | None = None) -> None:
        self._update(stage=stage, fraction=fraction)

    def notice(self, sentence: str) -> None:
        self._update(notice=sentence)


class Synthesizer:
    """A model that loads in the background, and the jobs that run on it.

    ``load_model(on_progress)`` returns the model; ``on_progress`` is a :class:`LoadProgress`. ``recognise`` hears the
    words of every take for its checks; ``adapters`` can be chosen by name (default: those of the data folder).
    """

    def __init__(
        self,
        store: Store,
        load_model: Callable[[LoadProgress], VoxCPM],
        voices: VoiceLibrary | None = None,
        recognise: Recogniser | None = None,
        adapters: AdapterShelf | None = None,
    ) -> None:
        self.store = store
        self.adapters = adapters or AdapterShelf(store.data_dir / "adapters")
        self.voices = voices or VoiceLibrary(store)
        self._voice_cache = VoiceCache(self.voices.cache_folder)
        self._recognise = recognise
        self._load_model = load_model
        self._model: VoxCPM | None = None
        self._status = ModelStatus()
        self._jobs: dict[str, Generation] = {}
        self._lock = threading.Lock()
        self._job_ended = threading.Condition(self._lock)
        self._settled = threading.Event()  # loaded or failed
        self._loading = False
        self._closed = False

    @property
    def status(self) -> ModelStatus:
        return self._status

    def load(self) -> None:
        """Start loading in the background, after a failure again. Nothing happens while a load runs or after it."""
        with self._lock:
            if self._loading or self._model is not None or self._closed:
                return
            self._loading = True
            self._settled.clear()
            self._status = ModelStatus()
        threading.Thread(target=self._load, name="model-load", daemon=True).start()

    def wait(self, timeout: float | None = None) -> ModelStatus:
        """Wait until the model is ready or has failed, at most ``timeout`` seconds, and return the status."""
        self._settled.wait(timeout)
        return self._status

    def preview(self, text: str, control: str = "", normalize: bool = False) -> SpokenText:
        """Exactly what would be spoken, also while the model still loads.

        Raises TextError for nothing to speak.
        """
        model, text, control = self._model, readable(text or ""), readable(control or "")
        if model is None:
            return prepare_text(text, control, normalize=normalize)
        return model.prepare(SpeechRequest(text=text, control=control, normalize=normalize))

    def speak(
        self,
        request: SpeechRequest,
        *,
        seeds: list[int] | None = None,
        tab: str = "tts",
        session: str = EVERYONE,
        voice_id: str = "",
        voice_as: VoiceUse = "reference",
        group: str = "",
        attempt: int = 0,
        notes: tuple[str, ...] = (),
        consent: bool | None = None,
    ) -> Iterator[Event]:
        """Make one take, or ``len(seeds)`` takes of one request, and store each when its row ends.

        Yields Started, then for every piece of audio Chunk and Progress, and exactly one Finished per row,
        also for rows that were stopped or failed (``record.ended_by``). Closing the iterator cancels the
        job; what was made is stored all the same. A request that cannot be started raises VoxCPMError (a
        sentence for users) at the first ``next``; after Started nothing is raised.

        ``voice_id`` names a saved voice of the session, whose clip becomes the reference, or is continued
        (``voice_as="prompt"``, which needs its transcript). ``group`` puts the takes beside those of an earlier job
        (``Started.group``); ``notes`` are sentences for their records, ``consent`` tells them that the voice may be
        used (None: what was said when the voice was saved).
        """
        model = self._ready_model()
        voice = self.voices.voice(voice_id, seen_by(session)) if voice_id else None
        if voice is not None:
            request = with_voice(request, voice, self.voices.audio(voice.id), voice_as)
        yield from self._run(
            model,
            request,
            seeds,
            voice,
            tab=tab,
            session=session,
            group=group,
            attempt=attempt,
            notes=tuple(notes),
            consent=voice.consent if consent is None and voice is not None else consent,
        )

    def replay_reasons(self, take_id: str, session: str = EVERYONE) -> tuple[Reason, ...]:
        """What is missing or changed since a take was made, before anything is made again; () when all is as it was."""
        record = self.store.take(take_id, seen_by(session))
        return replay.can_replay(record, self._ready_model(), self.store.clips, self.adapters)

    def replay(self, take_id: str, session: str = EVERYONE) -> Iterator[Event]:
        """Make a take again from its recipe, as a new take. The events of :meth:`speak`, and Replayed at the end.

        Raises StoreError naming what is missing when it cannot be tried. A take that was made beside others is made
        beside them again, since a batch may round differently; only the one take is kept.
        """
        model, record = self._ready_model(), self.store.take(take_id, seen_by(session))
        reasons = replay.can_replay(record, model, self.store.clips, self.adapters)
        replay.refuse_blocked(reasons)
        row, seeds = replay.rows_of(record)
        finished = None
        for event in self._run(
            model,
            replay.request_of(record, model, self.store.clips, self.adapters),
            seeds,
            only=row,
            clip_name=record.reference_name or record.prompt_name,
            tab=record.tab,
            session=session,
            known_voice=record.voice,
            consent=record.consent,
            replay_of=record.id,
        ):
            yield event
            finished = event.record if isinstance(event, Finished) else finished
        yield replay.compared(record, finished, self.store, reasons)

    def _run(
        self,
        model: VoxCPM,
        request: SpeechRequest,
        seeds: list[int] | None,
        voice: Voice | None = None,
        *,
        only: int | None = None,
        clip_name: str = "",
        known_voice: str = "",
        **known: Any,
    ) -> Iterator[Event]:
        """The one way to sound. ``known`` are fields of the origin of its takes."""
        request = replace(request, text=readable(request.text or ""), control=readable(request.control or ""))
        refuse_unsupported(model, request)
        if voice is not None:
            clip_name, known_voice = voice.name, voice.id
        request, origin = origin_of(model, request, clip_name, voice=known_voice, **known)
        cached = voice if voice is not None and voice.audio_hash == origin.reference_hash else None
        if cached is not None:
            self._voice_cache.use(model, cached, request.reference_wav_path)
        generation = _start(model, request, seeds)
        notes = (*origin.notes, *keep_clips(request, self.store.clips))
        job = Job(generation, model, replace(origin, notes=notes), self.store, self._recognise, only)
        with self._lock:
            self._jobs[job.id] = generation
        try:
            yield Started(job.id, tuple(generation.seeds), model.sample_rate, job.group)
            yield from job.events()
        finally:
            job.finish()  # after an early close: stop the rows and keep what they made
            with self._job_ended:
                del self._jobs[job.id]
                self._job_ended.notify_all()
            if cached is not None:
                self._voice_cache.keep(model, cached, request.reference_wav_path)

    def refuse_unfit(self, adapter: str) -> None:
        """Raises StoreError for an adapter that is not there, LoRAError for one that the loaded model cannot use."""
        self.adapters.refuse_unfit(self._ready_model(), adapter)

    def stop(self, job_id: str) -> bool:
        """Stop a job; its iterator ends within two patches with the takes so far.

        False if there is no such job.
        """
        with self._lock:
            generation = self._jobs.get(job_id)
        if generation is None:
            return False
        generation.cancel()
        return True

    def close(self) -> None:
        """Stop all jobs, let them store what they made, and give the model back.

        A load that still runs is dropped when it ends.
        """
        with self._lock:
            self._closed = True
            model, self._model = self._model, None
            jobs = list(self._jobs.values())
        for generation in jobs:
            generation.cancel()
        with self._job_ended:
            self._job_ended.wait_for(lambda: not self._jobs, CLOSE_SECONDS)
        if model is not None:
            model.close()

    def _ready_model(self) -> VoxCPM:
        model, status = self._model, self._status
        if model is not None:
            return model
        if status.state == "failed":
            raise EngineError(f"There is no model to speak with. {status.message}")
        doing = f" ({status.stage})" if status.stage else ""
        raise EngineError(f"The model is still loading{doing}. Please try again in a moment.")

    def _load(self) -> None:
        try:
            model = self._load_model(LoadProgress(self._update_status))
            status = _ready_status(model, self._status.notice)
        except VoxCPMError as error:
            logger.exception("loading the model failed")
            self._settle(None, ModelStatus(state="failed", message=str(error)))
        except Exception as error:
            logger.exception("loading the model failed")
            message = sentence("The model could not be loaded", error)
            self._settle(None, ModelStatus(state="failed", message=message))
        else:
            self._settle(model, status)

    def _settle(self, model: VoxCPM | None, status: ModelStatus) -> None:
        with self._lock:
            too_late = self._closed
            if not too_late:
                self._model, self._status = model, status
            self._loading = False
            self._settled.set()
        if too_late and model is not None:
            model.close()

    def _update_status(self, **changes: Any) -> None:
        self._status = replace(self._status, **changes)


def _start(model: VoxCPM, request: SpeechRequest, seeds: list[int] | None) -> Generation:
    try:
        return model.start(request, seeds=seeds)
    except VoxCPMError:
        raise
    except Exception as error:
        logger.exception("the model did not take the request")
        raise EngineError(sentence("The model could not start", error)) from error


def _ready_status(model: VoxCPM, notice: str) -> ModelStatus:
    return ModelStatus(
        state="ready",
        fraction=1.0,
        notice=notice,
        name=str(model.model_id),
        generation=str(model.generation),
        device=str(model.device),
        dtype=str(model.dtype),
        sample_rate=int(model.sample_rate),
        supports_reference=bool(model.supports_reference),
        supports_control=bool(model.supports_control),
        defaults=model.defaults,
    )

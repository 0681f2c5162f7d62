"""Making a take again from its recipe: what stands against it, the request, and whether the audio is the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from studio.adapters import AdapterShelf
from studio.database import StoreError
from studio.events import Reason, Replayed
from studio.files import read_pcm
from studio.kept_clips import KeptClips
from studio.store import Store
from studio.takes import TakeRecord, library_versions, model_facts
from voxcpm_core import LoRAError, SpeechRequest, VoxCPM
from voxcpm_core.errors import VoxCPMError

# Versions that can change the sound. Python cannot, and what wetext changes shows in the text.
WATCHED = ("voxcpm_core", "torch", "torchaudio", "numpy", "tokenizers")


def can_replay(
    record: TakeRecord, model: VoxCPM, clips: KeptClips, adapters: AdapterShelf | None = None
) -> tuple[Reason, ...]:
    """All that is missing or changed since ``record`` was made; () when everything is as it was."""
    return tuple(
        reason
        for found in (
            _clip_reasons(record, clips),
            _model_reasons(record, model, lora_of(record, model, adapters)),
            _support_reasons(record, model),
            _text_reasons(record, model),
        )
        for reason in found
    )


def refuse_blocked(reasons: tuple[Reason, ...]) -> None:
    """Raises StoreError with every reason that makes a replay impossible."""
    blocking = [reason.sentence for reason in reasons if reason.blocks]
    if blocking:
        raise StoreError(" ".join(blocking))


def lora_of(record: TakeRecord, model: VoxCPM, adapters: AdapterShelf | None) -> str | None:
    """The adapter of a take, by the hash of its weights: a path, "" for none; None: what is attached stands in."""
    attached = model_facts(model)
    if (record.lora_hash, record.lora_strength) == (attached["lora_hash"], attached["lora_strength"]):
        return None
    if not record.lora_hash:
        return ""
    path = adapters.find(record.lora_name, record.lora_hash) if adapters else None
    return str(path) if path else None


def request_of(
    record: TakeRecord, model: VoxCPM, clips: KeptClips, adapters: AdapterShelf | None = None
) -> SpeechRequest:
    """The request that makes the take again; :func:`can_replay` must have found nothing that blocks."""
    text, control, normalize = _wording(record, model) or (record.spoken_text, record.control, False)
    return SpeechRequest(
        text=text,
        control=control,
        reference_wav_path=clips.audio(record.reference_hash) if record.reference_hash else None,
        prompt_wav_path=clips.audio(record.prompt_hash) if record.prompt_hash else None,
        prompt_text=record.prompt_text or None,
        cfg_value=record.cfg_value,
        inference_timesteps=record.inference_timesteps,
        temperature=record.temperature,
        min_len=record.min_len,
        # what was stopped on request is stopped at the same length
        max_len=record.max_len if record.ended_by in ("stop", "limit") else record.patches,
        normalize=normalize,
        seed=record.seed,
        patches_per_token=record.patches_per_token,
        lora=lora_of(record, model, adapters),
        lora_strength=record.lora_strength,
    )


def rows_of(record: TakeRecord) -> tuple[int, list[int]]:
    """The row of a take and the seeds of its job; a take of before there were groups was made alone."""
    if record.seed in record.batch:
        return record.batch.index(record.seed), list(record.batch)
    return 0, [record.seed]


def compared(original: TakeRecord, record: TakeRecord | None, store: Store, reasons: tuple[Reason, ...]) -> Replayed:
    """What came out, beside what it should be."""
    if record is None or not record.file_name:
        return Replayed(
            original, record or original, False, None, "No sound was made, so nothing can be compared.", reasons
        )
    known = bool(original.audio_hash)
    same = record.audio_hash == original.audio_hash if known else record.file_hash == original.file_hash
    if same:
        return Replayed(original, record, True, 0.0, "Identical: every sample is the same.", reasons)
    difference = _difference(original, record, store)
    return Replayed(original, record, False, difference, _told(original, record, difference), reasons)


def _told(original: TakeRecord, record: TakeRecord, difference: float | None) -> str:
    if difference is not None:
        return f"Not identical: samples differ by up to {difference:.2g} of full scale."
    if abs(original.seconds - record.seconds) > 1e-6:
        return f"Not identical: {record.seconds:.2f} s long instead of {original.seconds:.2f} s."
    return "Not identical, and the file of the original is gone, so the difference cannot be measured."


def _difference(original: TakeRecord, record: TakeRecord, store: Store) -> float | None:
    """The largest difference between two samples; None for other lengths, other rates, or no file."""
    try:
        (one, one_rate), (other, other_rate) = (read_pcm(store.audio_path(take.id)) for take in (original, record))
    except StoreError:
        return None
    if one_rate != other_rate or len(one) != len(other):
        return None
    return float(np.abs(one - other).max())


# ------------------------------------------------------------------------------------------------ reasons


def _clip_reasons(record: TakeRecord, clips: KeptClips) -> Iterator[Reason]:
    for what, digest, name in [
        ("reference", record.reference_hash, record.reference_name),
        ("prompt", record.prompt_hash, record.prompt_name),
    ]:
        try:
            if digest:
                clips.audio(digest)
        except StoreError as error:
            facts = {"name": name, "hash": digest}
            state = "changed" if clips.path(digest).is_file() else "missing"
            yield Reason(what, state, f"The {what} clip {name or digest[:12]} is {state}: {error}", True, facts)


def _model_reasons(record: TakeRecord, model: VoxCPM, lora: str | None) -> Iterator[Reason]:
    now = _facts_with(model, lora, record.lora_strength)
    if record.weights_hash != now["weights_hash"]:
        yield _changed("model", "The model", f"{record.model_id} ({record.weights_hash[:8]})",
                       f"{now['model_id']} ({now['weights_hash'][:8]})")  # fmt: skip
    if record.lora_hash != now["lora_hash"]:
        was, is_now = (f"{n} ({h[:8]})" if h else "none" for n, h in
                       [(record.lora_name, record.lora_hash), (now["lora_name"], now["lora_hash"])])  # fmt: skip
        state = "missing" if not now["lora_hash"] else "changed"
        yield replace(_changed("lora", "The adapter (LoRA)", was, is_now), state=state)
    for what, called in [("device", "The device"), ("dtype", "The number format")]:
        if getattr(record, what) != now[what]:
            yield _changed(what, called, getattr(record, what), now[what])
    versions = library_versions()
    for name in WATCHED:
        if record.versions.get(name, "") != versions.get(name, ""):
            was, is_now = record.versions.get(name, "none"), versions.get(name, "none")
            yield _changed("library", f"The library {name}", was, is_now, name=name)


def _facts_with(model: VoxCPM, lora: str | None, strength: float) -> dict[str, Any]:
    try:
        return model_facts(model, SpeechRequest("", lora=lora, lora_strength=strength))
    except LoRAError:  # it is there, but fits another model: that one's weights are named, too
        return model_facts(model)


def _changed(what: str, called: str, was: str, is_now: str, **facts: str) -> Reason:
    said = f"{called} has changed: it was {was}, now it is {is_now}. The audio may differ."
    return Reason(what, "changed", said, False, {"was": was, "now": is_now, **facts})


def _support_reasons(record: TakeRecord, model: VoxCPM) -> Iterator[Reason]:
    for what, wanted, can in [
        ("reference", record.reference_hash, model.supports_reference),
        ("control", record.control, model.supports_control),
    ]:
        if wanted and not can:
            said = f"The take has a {what}, which {model.generation} cannot use. Load {record.model_id} to replay it."
            yield Reason("support", "missing", said, True, {"name": what, "model": record.model_id})


def _text_reasons(record: TakeRecord, model: VoxCPM) -> Iterator[Reason]:
    if _wording(record, model) is None:
        said = (
            "The way in which texts are made ready has changed: neither what was typed nor what was spoken gives the "
            "same words any more."
        )
        yield Reason("text", "changed", said, True, {"text": record.spoken_text[:200]})


def _wording(record: TakeRecord, model: VoxCPM) -> tuple[str, str, bool] | None:
    """Text, control and normalising that give exactly the recorded words: as typed, or else as spoken."""
    typed = record.typed_text, record.typed_control, record.normalize
    for text, control, normalize in (typed, (record.spoken_text, record.control, False)):
        prompt = Path("prompt.wav") if record.prompt_hash else None  # only whether there is one counts
        wish = SpeechRequest(text, control, prompt_wav_path=prompt, prompt_text=record.prompt_text, normalize=normalize)
        try:
            spoken = model.prepare(wish)
        except VoxCPMError:
            continue
        if (spoken.text, spoken.control) == (record.spoken_text, record.control):
            return text, control, normalize
    return None

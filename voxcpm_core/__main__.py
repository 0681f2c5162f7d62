"""The command line: ``python -m voxcpm_core design|clone|batch|info``, with the flags that VoxCPM users know.

Standard output carries results only (one line per file: path, seed, seconds and end reason, separated by tabs; for
``info`` the facts); everything else goes to standard error. Exit codes: 0 all made, 1 something failed, 2 wrong usage,
130 stopped with Ctrl-C. A WAV file appears whole or not at all; what was made before a stop or a failure is kept beside
it as ``NAME.partial.wav``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import torch

from .audio import load_audio, write_wav
from .device import default_model
from .errors import LoRAError, RequestError, VoxCPMError
from .flags import check_usage, make_parser
from .generation import Generation
from .model import Model
from .request import MAX_SEED, SpeechRequest, Take
from .text import split_control
from .voxcpm import VoxCPM, random_seed

log = logging.getLogger("voxcpm_core.cli")

_AHEAD = 32  # lines of a batch handed to the engine before the first of them is done
_INTERRUPTED = 130
_PATIENCE = 60  # seconds to wait for the partial audio after Ctrl-C


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code; argparse ends the program with 2 when the flags are wrong."""
    args = make_parser({"design": _speak, "clone": _speak, "batch": _batch, "info": _info}).parse_args(argv)
    with _log_to_stderr():
        try:
            check_usage(args)
            return args.run(args)
        except (VoxCPMError, OSError) as error:
            log.error("%s", error)
            return 1
        except KeyboardInterrupt:
            log.error("Stopped. Audio that was still being made is not kept; finished files are.")
            return _INTERRUPTED


# ---- commands


def _speak(args: argparse.Namespace) -> int:
    """design and clone: one text, one file or ``--takes`` of them."""
    clips = _load_clips(args)
    paths = _take_paths(_output_file(args.output), args.takes)
    base = random_seed() if args.seed is None else args.seed
    with _load_model(args) as model:
        request = _request(args, model, args.text, clips)
        generation = model.start(request, [(base + k) % (MAX_SEED + 1) for k in range(args.takes)])
        stopped = _finish(generation)
        made = [_save(take, path) for take, path in zip(generation.takes, paths, strict=True)]
    return _INTERRUPTED if stopped else 0 if all(made) else 1


def _batch(args: argparse.Namespace) -> int:
    """One file per line that is not blank. A line that fails is named, the others are made all the same."""
    lines = _read_lines(Path(args.input).expanduser())
    clips = _load_clips(args)
    folder = Path(args.output_dir).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    with _load_model(args) as model:
        made, stopped = _speak_lines(args, model, lines, clips, folder)
    log.info("%d of %d lines made.", made, len(lines))
    return _INTERRUPTED if stopped else 0 if made == len(lines) else 1


def _speak_lines(
    args: argparse.Namespace, model: VoxCPM, lines: list[tuple[int, str]], clips: dict, folder: Path
) -> tuple[int, bool]:
    """(number of lines made, whether Ctrl-C ended it). Lines run side by side; files are written in their order."""
    todo, flight = deque(enumerate(lines, 1)), deque()
    made, stopped = 0, False
    while todo or flight:
        while todo and len(flight) < _AHEAD:
            number, (line, text) = todo.popleft()
            flight.append((line, folder / f"output_{number:03d}.wav", _start(args, model, text, clips)))
        line, path, started = flight.popleft()
        if isinstance(started, VoxCPMError):
            log.error("Line %d was not made: %s", line, started)
            continue
        stopped = _finish(started) or stopped
        if stopped:
            todo.clear()
            for _, _, other in flight:
                if isinstance(other, Generation):
                    other.cancel()
        made += _save(started.takes[0], path, f"Line {line}: ")
    return made, stopped


def _start(args: argparse.Namespace, model: VoxCPM, text: str, clips: dict) -> Generation | VoxCPMError:
    try:
        return model.start(_request(args, model, text, clips))
    except VoxCPMError as error:
        return error


def _info(args: argparse.Namespace) -> int:
    with _load_model(args) as model:
        facts = describe(model)
    if args.json:
        _say(json.dumps(facts, indent=2))
        return 0
    for name, value in facts.items():
        _say(f"{name.replace('_', ' '):<22}{_readable(value)}")
    return 0


def describe(model: VoxCPM) -> dict:
    """What there is to know about a loaded model, as JSON-able values; rates in hertz, times in seconds."""
    vae = model.tts_model.audio_vae
    with torch.device("meta"):  # counted on empty copies: a prepared model has packed its weights away
        networks = Model(model.model.config), type(vae)(vae.config)
    parameters = [sum(p.numel() for p in network.parameters()) for network in networks]
    defaults = model.defaults
    return {
        "model": model.model_id,
        "generation": model.generation,
        "sample_rate": model.sample_rate,
        "reference_sample_rate": vae.config.sample_rate,
        "patch_seconds": model.patch_seconds,
        "parameters": parameters[0],
        "audio_vae_parameters": parameters[1],
        "device": model.device,
        "dtype": model.dtype,
        "weights_hash": model.weights_hash,
        "supports_control": model.supports_control,
        "supports_reference": model.supports_reference,
        "defaults": {
            "cfg_value": defaults.cfg_value,
            "inference_timesteps": defaults.inference_timesteps,
            "temperature": defaults.temperature,
        },
        "lora": model.lora,
    }


def _readable(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, dict):
        return ", ".join(f"{name} {_readable(item)}" for name, item in value.items())
    return f"{value:,}" if isinstance(value, int) and value >= 1_000_000 else str(value)


# ---- pieces


def _load_model(args: argparse.Namespace) -> VoxCPM:
    name = next((name for name in (args.model, args.model_path, args.hf_model_id) if name), "auto")
    name = default_model(args.device) if name == "auto" else name
    log.info("Loading %s.", name)
    model = VoxCPM.from_pretrained(
        name,
        cache_dir=args.cache_dir,
        local_files_only=args.local_files_only,
        device=args.device,
        dtype=args.dtype,
        lora_weights_path=args.lora_path,
        on_progress=_stages(),
    )
    try:
        _check_adapter(args, model)
    except LoRAError:
        model.close()
        raise
    log.info("%s (%s) on %s in %s.", model.model_id, model.generation, model.device, model.dtype)
    return model


def _stages():
    """A progress function that logs each stage once; the hub's client draws its own bars."""
    seen: set[str] = set()

    def on_progress(stage: str, fraction: float | None) -> None:
        if stage not in seen:
            seen.add(stage)
            log.debug("%s", stage)

    return on_progress


def _check_adapter(args: argparse.Namespace, model: VoxCPM) -> None:
    """Rank and alpha come from the adapter's files; a flag that says something else is a mistake somewhere."""
    for flag, given, name in (("--lora-r", args.lora_r, "rank"), ("--lora-alpha", args.lora_alpha, "alpha")):
        if given is not None and model.lora is not None and given != model.lora[name]:
            raise LoRAError(
                f"{flag} says {given}, the adapter's own files say {model.lora[name]:g}. Leave the flag out: rank and "
                "alpha are read from the files."
            )


def _load_clips(args: argparse.Namespace) -> dict:
    """Fields of the request that come from files; read before the model, so that a wrong path fails at once."""
    fields: dict = {}
    if args.reference_audio:
        fields["reference_wav_path"] = load_audio(Path(args.reference_audio).expanduser())
    if args.prompt_audio:
        fields["prompt_wav_path"] = load_audio(Path(args.prompt_audio).expanduser())
        fields["prompt_text"] = args.prompt_text or _read_text(Path(args.prompt_file).expanduser()).strip()
    return fields


def _request(args: argparse.Namespace, model: VoxCPM, text: str, clips: dict) -> SpeechRequest:
    """As in the reference package a description in brackets may start the text, unless ``--control`` is given."""
    control = args.control
    if control is None:
        control, text = split_control(text) if model.supports_control else ("", text)
    request = SpeechRequest(
        text,
        control,
        cfg_value=args.cfg_value,
        inference_timesteps=args.inference_timesteps,
        normalize=args.normalize,
        seed=args.seed,
        **clips,
    )
    for note in model.prepare(request).notes:
        log.info("%s", note)
    return request


def _finish(generation: Generation) -> bool:
    """Waits until every row has ended; True when Ctrl-C ended them (their takes then hold what was made)."""
    try:
        for _ in generation:
            pass
        return False
    except KeyboardInterrupt:
        log.warning("Stopping. Press Ctrl-C again to leave at once, without the audio made so far.")
        generation.cancel()
        if not generation.wait(_PATIENCE):
            raise
        return True


def _save(take: Take, path: Path, name: str = "") -> bool:
    """Writes a take that ended well; anything else is kept as a marked file. True for a take that ended well."""
    if take.ended_by in ("stop", "limit"):
        write_wav(path, take.samples, take.sample_rate)
        if take.message:
            log.warning("%s%s: %s", name, path.name, take.message)
        _say(f"{path}\t{take.seed}\t{take.seconds:.2f}\t{take.ended_by}")
        return True
    if len(take.samples):
        partial = path.with_name(f"{path.stem}.partial.wav")
        write_wav(partial, take.samples, take.sample_rate)
        log.error("%s%s The first %.2f s are kept as %s.", name, take.message, take.seconds, partial)
    else:
        log.error("%s%s Nothing was made yet, so %s is not written.", name, take.message, path.name)
    return False


def _output_file(name: str) -> Path:
    """The path for ``--output``, its folder made. Refused before any work: a folder, or a name for another format."""
    path = Path(name).expanduser()
    if path.is_dir() or path.suffix.lower() != ".wav":
        raise RequestError(f"--output {name} is not a name for a WAV file; give one that ends in .wav.")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _take_paths(path: Path, takes: int) -> list[Path]:
    if takes == 1:
        return [path]
    return [path.with_name(f"{path.stem}-{number}{path.suffix}") for number in range(1, takes + 1)]


def _read_lines(path: Path) -> list[tuple[int, str]]:
    """(line number, text) of every line that is not blank."""
    lines = [(number, line.strip()) for number, line in enumerate(_read_text(path).splitlines(), 1) if line.strip()]
    if not lines:
        raise RequestError(f"{path} holds no text: write one text per line.")
    return lines


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError(f"{path} is not UTF-8 text; save it with that encoding.") from None
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.") from None


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


@contextlib.contextmanager
def _log_to_stderr() -> Iterator[None]:
    """Our messages as plain sentences on standard error, each once (a batch would repeat what is wrong with a clip)."""
    seen: set[str] = set()
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(lambda record: not (record.getMessage() in seen or seen.add(record.getMessage())))
    ours = logging.getLogger("voxcpm_core")
    level, propagate = ours.level, ours.propagate
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    ours.propagate = False
    try:
        yield
    finally:
        ours.removeHandler(handler)
        ours.setLevel(level)
        ours.propagate = propagate


if __name__ == "__main__":
    sys.exit(main())

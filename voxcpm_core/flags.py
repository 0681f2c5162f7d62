"""The flags of the command line, and which of them go together. No model work happens here."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable

log = logging.getLogger("voxcpm_core.cli")


def make_parser(commands: dict[str, Callable[[argparse.Namespace], int]]) -> argparse.ArgumentParser:
    """The parser for ``{command: function}``; the parsed arguments carry the function as ``run``."""
    parser = argparse.ArgumentParser(
        prog="python -m voxcpm_core",
        description="Speech from text with the VoxCPM models.",
        epilog="Results go to standard output, everything else to standard error. COMMAND --help lists its flags.",
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, run in commands.items():
        about, adders = _COMMANDS[name]
        command = subparsers.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
        for add in (*adders, _add_model, _add_lora):
            add(command)
        command.set_defaults(run=run, error=command.error)
    return parser


def _add_one(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text", "-t", required=True, help="what to say")
    parser.add_argument("--output", "-o", required=True, help="the WAV file to write")
    parser.set_defaults(takes=1)


def _add_takes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--takes", type=_count, default=1, metavar="N", help="make N takes in one batch: NAME-1.wav, NAME-2.wav ..."
    )


def _add_many(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", "-i", required=True, help="UTF-8 file with one text per line; blank ones are skipped"
    )
    parser.add_argument("--output-dir", "-od", required=True, help="folder for output_001.wav, output_002.wav ...")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")


def _add_voice(parser: argparse.ArgumentParser) -> None:
    voice = parser.add_argument_group("voice and settings (without a flag the checkpoint's own default)")
    voice.add_argument("--control", help="voice or style in words; else brackets at the start of the text")
    voice.add_argument("--reference-audio", "-ra", help="clip whose voice is taken")
    voice.add_argument("--prompt-audio", "-pa", help="clip that is continued; needs its transcript")
    voice.add_argument("--prompt-text", "-pt", help="the words heard in the prompt clip")
    voice.add_argument("--prompt-file", help="text file with the words heard in the prompt clip")
    voice.add_argument("--cfg-value", type=float, help="how strictly text and voice are followed; 1 to 3 is usual")
    voice.add_argument("--inference-timesteps", type=int, help="solver steps per patch; 4 to 30 is usual")
    voice.add_argument("--seed", type=int, help="0 to 4294967295; a seed makes the same audio again (default: random)")
    voice.add_argument("--normalize", action="store_true", help="write out numbers, dates and units before speaking")
    voice.add_argument("--denoise", action="store_true", help="not available; clean the clip beforehand")


def _add_model(parser: argparse.ArgumentParser) -> None:
    model = parser.add_argument_group("model")
    model.add_argument("--model", help="nano, a checkpoint folder, a hub id, or auto (default)")
    model.add_argument("--model-path", help="a checkpoint folder: the same as --model")
    model.add_argument("--hf-model-id", help="a hub id such as openbmb/VoxCPM2: the same as --model")
    model.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps")
    model.add_argument("--dtype", default="auto", help="auto, bfloat16 or float32")
    model.add_argument("--cache-dir", help="where downloads from the hub are kept")
    model.add_argument("--local-files-only", action="store_true", help="use only what is already downloaded")
    model.add_argument("--no-denoiser", action="store_true", help="changes nothing: there is none")
    model.add_argument("--no-optimize", action="store_true", help="changes nothing: nothing is compiled at loading")
    model.add_argument("--zipenhancer-path", help="changes nothing: there is no denoiser")


def _add_lora(parser: argparse.ArgumentParser) -> None:
    lora = parser.add_argument_group("adapter")
    lora.add_argument("--lora-path", help="folder or weights file of an adapter")
    lora.add_argument("--lora-r", type=int, help="checked against the adapter's files")
    lora.add_argument("--lora-alpha", type=float, help="checked against the adapter's files")
    lora.add_argument("--lora-dropout", type=float, help="changes nothing: it matters in training only")
    lora.add_argument("--lora-enable-proj", action="store_true", help="changes nothing: all of the adapter is used")
    lora.add_argument("--lora-disable-lm", action="store_true", help="not available: an adapter is used whole")
    lora.add_argument("--lora-disable-dit", action="store_true", help="not available: an adapter is used whole")


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 100:
        raise argparse.ArgumentTypeError(f"{number} is not a number from 1 to 100")
    return number


_COMMANDS = {
    "design": ("speak a text in a voice that is described, or in any voice", (_add_one, _add_takes, _add_voice)),
    "clone": ("speak a text in the voice of a clip", (_add_one, _add_voice)),
    "batch": ("speak every line of a text file", (_add_many, _add_voice)),
    "info": ("tell what a model is and can do", (_add_json,)),
}
_NOT_POSSIBLE = {
    "denoise": "--denoise is not available: clean the clip with another program and give the cleaned file.",
    "lora_disable_lm": "--lora-disable-lm is not available: an adapter is used whole or not at all.",
    "lora_disable_dit": "--lora-disable-dit is not available: an adapter is used whole or not at all.",
}
_WITHOUT_EFFECT = {
    "zipenhancer_path": "--zipenhancer-path changes nothing: there is no denoiser.",
    "no_optimize": "--no-optimize changes nothing: nothing is compiled at loading.",
    "lora_dropout": "--lora-dropout changes nothing: it matters in training only.",
}


def check_usage(args: argparse.Namespace) -> None:
    """Flags that do not go together, before anything is loaded. Ends the program with a sentence and code 2."""
    for name, sentence in _NOT_POSSIBLE.items():
        if getattr(args, name, False):
            args.error(sentence)
    for name, sentence in _WITHOUT_EFFECT.items():
        if getattr(args, name, None):
            log.info("%s", sentence)
    if sum(bool(name) for name in (args.model, args.model_path, args.hf_model_id)) > 1:
        args.error("give one of --model, --model-path and --hf-model-id.")
    if (args.lora_r is not None or args.lora_alpha is not None) and not args.lora_path:
        args.error("--lora-r and --lora-alpha describe an adapter; give it with --lora-path.")
    if args.command != "info":
        _check_clips(args)


def _check_clips(args: argparse.Namespace) -> None:
    transcript = args.prompt_text or args.prompt_file
    if args.command == "design" and (args.reference_audio or args.prompt_audio or transcript):
        args.error("design takes no clips; use clone to speak in the voice of a clip.")
    if args.prompt_text and args.prompt_file:
        args.error("give the transcript once, as --prompt-text or as --prompt-file.")
    if bool(args.prompt_audio) != bool(transcript):
        args.error("--prompt-audio and its transcript (--prompt-text or --prompt-file) belong together.")
    if args.command == "clone" and not (args.reference_audio or args.prompt_audio):
        args.error("clone needs a clip: --reference-audio, or --prompt-audio with its transcript.")

"""The studio without its page: `python -m studio import BOOK ...`, `python -m studio render ...`, `... export ...`.

Each command prints one JSON object to stdout; progress and errors, as sentences, go to stderr. Exit code 0: done;
1: it could not be done, or not all of it; 2: wrong arguments; 130: stopped, and the same command goes on from there.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from typing import NoReturn

from voxcpm_core.errors import VoxCPMError


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studio", description="VoxCPM Studio without its page: books.")
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--data-dir", help="folder for projects and takes (default: the one that the studio uses)")
    common.add_argument("--project", required=True, help="title of the book in the studio")

    bring = commands.add_parser("import", parents=[common], help="make a project from a book's file or a project zip")
    bring.add_argument("book", help="TXT, MD, EPUB or DOCX, or what --format project has exported")
    bring.add_argument("--max-characters", type=int, default=400, help="longest segment (default: 400)")
    bring.add_argument("--max-seconds", type=float, default=22.0, help="longest segment, estimated (default: 22)")
    bring.add_argument("--seed", type=int, default=0, help="what all seeds of the book come from (default: 0)")

    render = commands.add_parser("render", parents=[common], help="make the takes that are missing or stale")
    render.add_argument("--voice", help="narrator: name or id of a saved voice, or an audio file")
    render.add_argument("--takes", type=int, default=1, help="takes for each segment, 1 to 3 (default: 1)")
    render.add_argument("--retries", type=int, default=2, help="more takes where the checks are red (default: 2)")
    render.add_argument("--rows", type=int, default=8, help="takes that are made side by side (default: 8)")
    render.add_argument("--chapter", type=int, action="append", help="only this one, counted from 1; may be repeated")
    render.add_argument("--model", default="auto", help="auto, nano, a folder, or a model of the hub (default: auto)")
    render.add_argument("--device", default="auto", help="auto, cpu, cuda, mps ... (default: auto)")
    render.add_argument("--recogniser", help="check the words of every take with this Whisper model (size or folder)")
    render.add_argument("--local-files-only", action="store_true", help="never ask the hub")

    export = commands.add_parser("export", parents=[common], help="make finished files of the chosen takes")
    export.add_argument("--format", default="mp3", help="wav, flac, mp3, m4b, or project: a zip (default: mp3)")
    export.add_argument("--preset", default="audiobook", help="audiobook, podcast, broadcast or none")
    export.add_argument("--out", required=True, help="folder for the files")
    export.add_argument("--whole", action="store_true", help="one file for the whole book (M4B always is)")
    export.add_argument("--sample-rate", type=int, default=44_100, help="default: 44100")
    export.add_argument("--no-subtitles", dest="subtitles", action="store_false", help="no SRT and VTT")
    export.add_argument("--recogniser", help="subtitles by word besides, heard by this Whisper model (size or folder)")
    export.add_argument("--sample", action="store_true", help="a retail sample besides")
    export.add_argument("--author", help="default: that of the book")
    export.add_argument("--narrator", help="who is named as the voice")
    export.add_argument("--cover", help="a picture file")
    export.add_argument("--allow-incomplete", action="store_true", help="leave out what has no take")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as in app.py; before torch is imported
    from studio.book import headless
    from studio.store import Store

    run = {"import": headless.import_book, "render": headless.render_book, "export": headless.export_book}
    try:
        store = Store(options.data_dir)
        try:
            result, code = run[options.command](options, store, say)
        finally:
            store.close()
    except VoxCPMError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("Stopped. Run the same command again to go on.")
        return 130
    print(json.dumps(result, ensure_ascii=False))
    return code


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def leave(code: int) -> NoReturn:
    """Ends the program at once, as app.py does: the interpreter's own end aborts while a thread is inside torch."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    leave(main())

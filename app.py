"""VoxCPM Studio: the page and what it stands on.

`python app.py` opens the studio on http://127.0.0.1:7860. The page is up first; the model loads in the background.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from studio.hosts import is_local

log = logging.getLogger("app")

OPEN_WARNING = (
    "The studio listens on %s: everyone who reaches this address can use it and fill your disk. Every browser sees "
    "its own takes only, but there is no password. Use the default --host 127.0.0.1 unless you mean this."
)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="VoxCPM Studio: a text becomes takes, takes become a recording.")
    host, port = os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"), os.environ.get("GRADIO_SERVER_PORT", "7860")
    parser.add_argument("--host", default=host, help="address to listen on (default: 127.0.0.1, this machine only)")
    parser.add_argument("--port", type=port_number, default=port, help="default: 7860")
    parser.add_argument("--model", default="auto", help="auto, nano, a folder, or a model of the hub (default: auto)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, mps ... (default: auto)")
    parser.add_argument("--dtype", default="auto", help="auto, float32 or bfloat16 (default: auto)")
    parser.add_argument("--data-dir", help="folder for takes (default: the system's place for user data)")
    parser.add_argument("--lora", help="an adapter to put on the model: folder or file")
    parser.add_argument(
        "--adapters",
        default=os.environ.get("VOXCPM_ADAPTERS"),
        help="a folder of adapters to choose from in the page, beside <data folder>/adapters",
    )
    parser.add_argument(
        "--local-files-only", action="store_true", help="use what is on this machine, never ask the hub"
    )
    parser.add_argument(
        "--recogniser",
        default=os.environ.get("VOXCPM_RECOGNISER", ""),
        help="a Whisper size or a folder: what writes down clips (default: base) and, when given here, checks the "
        "words of every take; needs faster-whisper",
    )
    parser.add_argument(
        "--multi-user",
        action="store_true",
        help="every browser sees only its own takes and voices (always so on a Space and where others can connect)",
    )
    parser.add_argument(
        "--open", action=argparse.BooleanOptionalAction, default=False, help="open the page in a browser"
    )
    return parser.parse_args(arguments)


def port_number(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 6 and 0 < int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port. Use a whole number from 1 to 65535, for example 7860.")


def why_not_listening(host: str, port: int) -> str:
    """Why the studio cannot listen there, as a sentence; "" when it can."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        return f"The host {host} cannot be found ({error}). Use --host 127.0.0.1, or an address of this machine."
    with socket.socket(family, kind, protocol) as probe:
        if os.name == "posix":  # elsewhere it would take a port that is in use
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            return f"The studio cannot listen on {host}:{port} ({error}). Choose another --port or --host."
    return ""


def unusable_proxies() -> dict[str, str]:
    """Proxy variables of the environment that httpx, and gradio with it, ends with an error on."""
    usable = ["http", "https"] + (["socks5", "socks5h"] if find_spec("socksio") else [])
    found = {}
    for name, value in os.environ.items():
        scheme = value.partition("://")[0].lower() if "://" in value else "http"
        if name.lower() in ("http_proxy", "https_proxy", "all_proxy") and value and scheme not in usable:
            found[name] = value
    return found


@contextmanager
def without_unusable_proxies() -> Iterator[None]:
    """While gradio starts: it needs no proxy. The hub gets them back."""
    hidden = unusable_proxies()
    if hidden:
        log.warning(
            "%s: the page does without this proxy, which it cannot use. Downloads may need `pip install socksio`.",
            ", ".join(sorted(hidden)),
        )
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


def ended_by_signal() -> threading.Event:
    """Set when the system or the terminal asks the program to end; Ctrl-C stays what it is."""
    asked = threading.Event()
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number and signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, lambda *_: asked.set())
    return asked


def prepare_environment(data_dir: Path) -> None:
    """What gradio reads from the environment; to be called before it is imported."""
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    os.environ.setdefault("GRADIO_TEMP_DIR", str(data_dir / "cache"))  # not a folder in /tmp shared with other users
    for name in ("no_proxy", "NO_PROXY"):  # gradio checks its own page at start; a proxy cannot know it
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), "localhost,127.0.0.1,::1"]))


def put_ffmpeg_on_path(folder: Path) -> None:
    """Streaming looks for a program called ffmpeg. Without one, imageio-ffmpeg's gets that name in ``folder``."""
    from voxcpm_core.audio import ffmpeg_path

    if shutil.which("ffmpeg"):
        return
    found = ffmpeg_path()
    if not found:
        log.warning("No ffmpeg was found: streaming needs it. `pip install imageio-ffmpeg`.")
        return
    folder.mkdir(parents=True, exist_ok=True)
    named = folder / ("ffmpeg.exe" if os.name == "nt" else "ffmpeg")
    if not named.exists():  # another studio may be running the one that is there
        named.unlink(missing_ok=True)  # a link that leads nowhere any more
        try:
            named.symlink_to(found)
        except OSError:  # Windows lets only some users make links
            shutil.copy2(found, named)
    os.environ["PATH"] = os.pathsep.join([str(folder), os.environ.get("PATH", "")])


def model_loader(options: argparse.Namespace) -> Callable[[Any], Any]:
    """What the synthesizer calls on its own thread: the chosen model, or nano when "auto" cannot get the large one."""

    def load(progress: Any) -> Any:
        from voxcpm_core import CheckpointError, VoxCPM
        from voxcpm_core.device import default_model, limit_threads

        def from_pretrained(name: str) -> VoxCPM:
            model = VoxCPM.from_pretrained(
                name,
                device=options.device,
                dtype=options.dtype,
                local_files_only=options.local_files_only,
                on_progress=progress,
            )
            limit_threads(model.model.config.lm.hidden_size, model.model.device.type)
            if options.lora:  # not before: a thread that has computed keeps its number of threads
                model.load_lora(options.lora)
            return model

        name = default_model(options.device) if options.model == "auto" else options.model
        try:
            return from_pretrained(name)
        except CheckpointError as error:
            if options.model != "auto" or name == "nano":
                raise
            log.warning("%s is not to be had, nano stands in: %s", name, error)
            progress.notice(f"{name} could not be loaded, so nano stands in. {error}")
            return from_pretrained("nano")

    return load


def is_shared(options: argparse.Namespace) -> bool:
    """Whether visitors are kept apart: asked for, on a Space, or where other machines can reach the page."""
    return options.multi_user or bool(os.environ.get("SPACE_ID")) or not is_local(options.host)


def open_page(options: argparse.Namespace, synthesizer: Any, store: Any) -> tuple[Any, Any, str]:
    """The page, served on a thread of its own, its objects, and its address. Raises OSError when it cannot listen."""
    with without_unusable_proxies():
        from studio.ui.page import build_page, launch

        page, context = build_page(synthesizer, store, shared=is_shared(options), recogniser=options.recogniser)
        address = launch(page, context, host=options.host, port=options.port, open_browser=options.open)
    return page, context, address


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    # Threads that wait give the core back soon: spinning, they hold up the page and the encoder on small machines.
    # Read once, when torch is imported: before the studio is.
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    from studio.adapters import AdapterShelf
    from studio.hearing import word_check
    from studio.store import Store, StoreError
    from studio.synthesizer import Synthesizer

    trouble = why_not_listening(options.host, options.port)
    if trouble:
        log.error("%s", trouble)
        return 1
    try:
        store = Store(options.data_dir)
    except StoreError as error:
        log.error("%s", error)
        return 1
    prepare_environment(store.data_dir)
    put_ffmpeg_on_path(store.data_dir / "bin")
    folders = [store.data_dir / "adapters", *([Path(options.adapters).expanduser()] if options.adapters else [])]
    shelf = AdapterShelf(*folders, started=options.lora)
    recognise = word_check(options.recogniser)
    synthesizer = Synthesizer(store, model_loader(options), recognise=recognise, adapters=shelf)
    try:
        page, context, address = open_page(options, synthesizer, store)
    except OSError as error:
        log.error("The studio cannot listen on %s:%s (%s). Choose another --port.", options.host, options.port, error)
        return 1
    asked_to_end = ended_by_signal()
    synthesizer.load()
    context.books.start()
    if not is_local(options.host):
        log.warning(OPEN_WARNING, options.host)
    log.info("VoxCPM Studio is at %s", address)
    try:
        while not asked_to_end.wait(1):  # Windows hears Ctrl-C between two waits only
            pass
        log.info("Closing.")
    except KeyboardInterrupt:
        log.info("Closing.")
    finally:
        from studio.ui.page import close

        context.books.close()  # before what it speaks with
        synthesizer.close()  # before the page: the listeners of running takes bring them home
        close(page)
        store.close()
    return 0


def leave(code: int) -> NoReturn:
    """Ends the program at once: the interpreter's own end aborts while a thread is still loading torch."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    leave(main())

"""app.py as people start it: arguments, the choice of a model, and the program itself, offline and proxied."""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

import app
import voxcpm_core
from tests.browser import free_port
from voxcpm_core import CheckpointError
from voxcpm_core.device import FULL_MODEL

ROOT = Path(app.__file__).parent


def options(**changes: object) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(app.parse_arguments([])), **changes})


def test_the_defaults_are_for_this_machine_only() -> None:
    defaults = app.parse_arguments([])
    assert (defaults.host, defaults.port, defaults.model, defaults.device) == ("127.0.0.1", 7860, "auto", "auto")
    assert not defaults.open and not defaults.local_files_only


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("studio.example", False),
    ],
)
def test_what_counts_as_this_machine(host: str, local: bool) -> None:
    assert app.is_local(host) is local


class Progress:
    def __init__(self) -> None:
        self.notices: list[str] = []

    def __call__(self, stage: str, fraction: float | None = None) -> None: ...

    def notice(self, sentence: str) -> None:
        self.notices.append(sentence)


@pytest.fixture
def offline_hub(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every model of the hub is out of reach; nano is there. Returns the names that were asked for."""
    asked: list[str] = []

    def from_pretrained(name: str, **kwargs: object) -> SimpleNamespace:
        asked.append(name)
        if name != "nano":
            raise CheckpointError(f"{name} cannot be downloaded: the hub is out of reach.")
        config = SimpleNamespace(lm=SimpleNamespace(hidden_size=64))
        return SimpleNamespace(name=name, model=SimpleNamespace(config=config, device=SimpleNamespace(type="cpu")))

    monkeypatch.setattr("voxcpm_core.device.limit_threads", lambda hidden_size, device_type: None)
    monkeypatch.setattr(voxcpm_core.VoxCPM, "from_pretrained", staticmethod(from_pretrained))
    return asked


def test_auto_falls_back_to_nano_and_says_so(monkeypatch, offline_hub) -> None:
    monkeypatch.setattr("voxcpm_core.device.default_model", lambda device: FULL_MODEL)
    progress = Progress()
    assert app.model_loader(options())(progress).name == "nano"
    assert offline_hub == [FULL_MODEL, "nano"]
    assert "out of reach" in progress.notices[0] and "nano stands in" in progress.notices[0]


def test_a_model_that_was_asked_for_is_not_replaced(offline_hub) -> None:
    progress = Progress()
    with pytest.raises(CheckpointError, match="out of reach"):
        app.model_loader(options(model=FULL_MODEL))(progress)
    assert offline_hub == [FULL_MODEL] and not progress.notices


def test_an_ffmpeg_is_put_on_an_empty_path(monkeypatch, tmp_path: Path) -> None:
    pytest.importorskip("imageio_ffmpeg")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    app.put_ffmpeg_on_path(tmp_path / "bin")
    app.put_ffmpeg_on_path(tmp_path / "bin")  # a second start finds what the first one made
    found = shutil.which("ffmpeg")
    assert found and Path(found).parent == tmp_path / "bin"
    assert b"ffmpeg version" in subprocess.run([found, "-version"], capture_output=True, check=True).stdout


def test_an_ffmpeg_that_is_there_is_left_alone(monkeypatch, tmp_path: Path) -> None:
    if not shutil.which("ffmpeg"):
        pytest.skip("no ffmpeg on this machine")
    before = os.environ["PATH"]
    app.put_ffmpeg_on_path(tmp_path / "bin")
    assert os.environ["PATH"] == before and not (tmp_path / "bin").exists()


def test_a_data_folder_that_cannot_be_used_ends_with_a_sentence(tmp_path: Path, caplog) -> None:
    (tmp_path / "file").write_text("in the way")
    assert app.main(["--data-dir", str(tmp_path / "file")]) == 1
    assert "--data-dir" in caplog.text


@pytest.mark.parametrize("port", ["99999", "0", "-1", "http", "7860.5"])
def test_a_port_that_is_none_is_a_sentence(port: str, capsys) -> None:
    with pytest.raises(SystemExit):
        app.parse_arguments([f"--port={port}"])
    assert f"'{port}' is not a port. Use a whole number from 1 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["no-such-host.invalid", "x" * 70])
def test_a_host_that_cannot_be_found_is_named(host: str, tmp_path: Path, caplog) -> None:
    assert app.main(["--host", host, "--data-dir", str(tmp_path / "data")]) == 1
    assert f"The host {host} cannot be found" in caplog.text and not (tmp_path / "data").exists()


def test_proxies_that_gradio_cannot_use_are_hidden_while_it_starts(monkeypatch, caplog) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        for spelled in (name, name.upper()):
            monkeypatch.delenv(spelled, raising=False)
    monkeypatch.setenv("ALL_PROXY", "socks://127.0.0.1:9")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "socks5h://127.0.0.1:9")
    monkeypatch.setattr(app, "find_spec", lambda name: None)
    before = dict(os.environ)
    with app.without_unusable_proxies():
        assert "ALL_PROXY" not in os.environ and "http_proxy" not in os.environ and "HTTPS_PROXY" in os.environ
        httpx.Client().close()
    assert dict(os.environ) == before
    assert len(caplog.records) == 1 and "ALL_PROXY, http_proxy" in caplog.text


@contextmanager
def started(*arguments: str, folder: Path, **environment: str) -> Iterator[SimpleNamespace]:
    """The program in a process of its own; its address, and its output once it has been stopped."""
    port = free_port()
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING", "GRADIO_"))}
    command = [sys.executable, "app.py", "--port", str(port), "--data-dir", str(folder), *arguments]
    with open(folder.parent / "out", "wb") as out, open(folder.parent / "err", "wb") as err:
        process = subprocess.Popen(command, cwd=ROOT, env={**clean, **environment}, stdout=out, stderr=err)
    run = SimpleNamespace(url=f"http://127.0.0.1:{port}/", port=port, process=process, log=folder.parent / "err")
    try:
        yield run
    finally:
        process.terminate()
        process.wait(20)
        run.out = (folder.parent / "out").read_bytes()
        run.err = (folder.parent / "err").read_text(encoding="utf-8", errors="replace")


def answers(run: SimpleNamespace, seconds: float) -> httpx.Response:
    deadline = time.monotonic() + seconds
    with httpx.Client(trust_env=False) as client:
        while time.monotonic() < deadline and run.process.poll() is None:
            try:
                return client.get(run.url, timeout=10)
            except httpx.TransportError:
                time.sleep(0.2)
    raise AssertionError(f"no page within {seconds} s")


@pytest.mark.slow
def test_the_page_is_up_offline_behind_a_dead_proxy_on_this_machine_only(tmp_path: Path) -> None:
    dead, socks = "http://127.0.0.1:9", "socks://127.0.0.1:9"
    with started(
        "--model", "nano", folder=tmp_path / "data", HTTP_PROXY=dead, HTTPS_PROXY=dead, ALL_PROXY=socks
    ) as run:
        began = time.monotonic()
        page = answers(run, 60)  # 30 s at the most on a machine that does nothing else
        while "VoxCPM Studio is at" not in run.log.read_text() and time.monotonic() - began < 60:
            time.sleep(0.1)
        assert page.status_code == 200 and "VoxCPM Studio" in page.text and "studio.css" not in page.text
        others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
        for address in others - {"127.0.0.1", "127.0.1.1"}:
            with pytest.raises(OSError):
                socket.create_connection((address, run.port), timeout=2).close()
        foreign = httpx.get(run.url, headers={"Host": "attacker.example"}, trust_env=False)
        assert foreign.status_code == 403 and "localhost" in foreign.text
    if os.name == "posix":  # the system asks the program to end as Ctrl-C does
        assert run.process.returncode == 0 and "Closing." in run.err
    assert run.out == b"" and run.url.rstrip("/") in run.err and "Traceback" not in run.err
    assert (tmp_path / "data" / "studio.sqlite3").exists()


@pytest.mark.slow
def test_a_taken_port_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        command = [
            sys.executable,
            "app.py",
            "--model",
            "nano",
            "--data-dir",
            str(tmp_path / "data"),
            "--port",
            str(taken),
        ]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1 and "--port" in ended.stderr and "Traceback" not in ended.stderr


ENDING = """
import sys, threading, time
import torch
import app

def compute():
    matrix = torch.randn(1500, 1500)
    while True:
        began.set()
        matrix @ matrix

began = threading.Event()
threading.Thread(target=compute, daemon=True).start()
began.wait()
time.sleep(0.2)
app.leave(3)
"""


@pytest.mark.slow
def test_the_program_ends_while_a_thread_is_inside_torch() -> None:
    """`sys.exit` ends in an abort (code -6) here: the thread meets the end inside C++."""
    ended = subprocess.run([sys.executable, "-c", ENDING], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 3 and ended.stderr == ""

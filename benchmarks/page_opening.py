"""How long the page takes to open, and from a click on Generate to the first sound.

python benchmarks/page_opening.py [--takes 5000] [--rounds 5] [--checkout FOLDER ...]

Needs what the browser tests need: `pip install -r requirements-dev.txt` and a Chromium. Starts the studio of this
checkout, or of each FOLDER in turn (an older version beside this one), with nano and a data folder of so many takes,
and opens it in a fresh browser each time. Wall times depend on what else the machine does, so the time that the
browser's main thread works is told beside them ("script" of "work").
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from playwright.sync_api import Browser, sync_playwright  # noqa: E402

from studio.store import Store, _insert  # noqa: E402
from studio.takes import TakeRecord, new_take_id, utc_text  # noqa: E402

FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--autoplay-policy=no-user-gesture-required",
]
TEXT = "Good morning. The library opens at nine."
# Milliseconds since the address was asked for: a field to type in, Generate can be pressed, recent takes are listed.
WATCH = """
window.marks = {};
const found = {
  words: '#vx-text', ready: '#vx-generate:not([disabled])', listed: '#vx-recent .vx-lane, #vx-recent .vx-none',
};
const look = () => {
  for (const [name, what] of Object.entries(found))
    if (!(name in marks) && document.querySelector(what)) marks[name] = performance.now();
  if (Object.keys(marks).length < 3) requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
SOUND = """() => new Promise((done) => {
  const began = performance.now();
  const look = () => {
    const players = [...document.querySelectorAll('#vx-live audio, #vx-tts-live-1 audio')];
    players.some((audio) => audio.currentTime > 0.01) ? done(performance.now() - began) : requestAnimationFrame(look);
  };
  document.querySelector('#vx-generate').click();
  look();
})"""


def fill(folder: Path, count: int) -> None:
    """A data folder with ``count`` takes of six seconds; they share one file by links."""
    store = Store(folder)
    tone = (0.3 * np.sin(np.arange(6 * 16_000) / 30)).astype(np.float32)
    for number in range(count):
        text = f"The lantern in the harbour, told for the {number}th time."
        record = TakeRecord(
            id=new_take_id(), created=utc_text(), session="local", tab="tts", typed_text=text, typed_control="",
            normalize=False, spoken_text=text, control="", notes=(), mode="plain", seed=number, model_id="nano",
            sample_rate=16_000, seconds=6.0, patches=60,
        )  # fmt: skip
        if number == 0:
            first = store.save_take(record, tone)
            continue
        with store.database.writing() as db:
            _insert(db, TakeRecord(**{**vars(record), "file_name": f"{record.id}.wav"}))
        os.link(store.audio_path(first.id), folder / "takes" / f"{record.id}.wav")
    store.close()


@contextmanager
def running(checkout: Path, data: Path) -> Iterator[str]:
    """The studio of a checkout, its model loaded; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "app.py", "--model", "nano", "--port", str(port), "--data-dir", str(data)]
    with tempfile.TemporaryFile() as log:
        studio = subprocess.Popen(command, cwd=checkout, stdout=log, stderr=log)
        try:
            address, deadline = f"http://127.0.0.1:{port}/", time.monotonic() + 300
            while time.monotonic() < deadline and studio.poll() is None:
                try:
                    urllib.request.urlopen(address, timeout=10).read()
                    break
                except OSError:
                    time.sleep(0.5)
            else:
                log.seek(0)
                raise SystemExit(f"The studio of {checkout} did not start:\n{log.read().decode()[-2000:]}")
            yield address
        finally:
            studio.terminate()
            studio.wait(30)


def opening(browser: Browser, address: str) -> dict[str, float]:
    """One visit: milliseconds until something is shown, of work, and to the first sound; calls to the server."""
    visit = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
    page = visit.new_page()
    page.add_init_script(WATCH)
    calls: list[str] = []
    page.on("request", lambda request: calls.append(request.url) if request.method == "POST" else None)
    meter = visit.new_cdp_session(page)
    meter.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(address, wait_until="commit")
    page.wait_for_function("window.marks && Object.keys(marks).length === 3", timeout=120_000)
    found = dict(page.evaluate("marks"))
    metrics = {entry["name"]: entry["value"] * 1000 for entry in meter.send("Performance.getMetrics")["metrics"]}
    found |= {"script": metrics["ScriptDuration"], "work": metrics["TaskDuration"], "calls": len(calls)}
    page.fill("#vx-text textarea", TEXT)
    page.wait_for_timeout(1000)  # the preview has been written
    found["first sound"] = page.evaluate(SOUND)
    visit.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--takes", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--checkout", type=Path, nargs="*", default=[ROOT])
    parser.add_argument("--json", type=Path, help="write the numbers here")
    options = parser.parse_args()
    program = os.environ.get("VOXCPM_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    results = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        fill(Path(folder) / "first", options.takes)
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        for number, checkout in enumerate(options.checkout):
            data = Path(folder) / f"data{number}"
            shutil.copytree(Path(folder) / "first", data, copy_function=os.link)
            with running(checkout, data) as address:
                opening(browser, address)  # warm-up; the model may still be loading
                visits = [opening(browser, address) for _ in range(options.rounds)]
            results[str(checkout)] = {name: statistics.median(visit[name] for visit in visits) for name in visits[0]}
            said = "  ".join(f"{name} {value:.0f}" for name, value in results[str(checkout)].items())
            print(f"{checkout}: {said} (ms, median of {options.rounds}; load {os.getloadavg()[0]:.1f})", flush=True)
        browser.close()
    if options.json:
        options.json.write_text(json.dumps(results, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()

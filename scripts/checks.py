"""What `scripts/test.py` does: tools, ruff, pytest, one summary line. Standard library only."""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from workshop import ROOT, install, say, venv_python

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "chrome",
    "msedge",
)
MOST_AGAIN = 20  # failures that may be the machine's fault
BROWSER_FILES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
    r"C:\Program Files\Microsoft\Edge\Application\msedge.exe",
)


# --- browser and ffmpeg ----------------------------------------------------------------------------------


def starts(browser: str) -> bool:
    """Whether a browser tells its version. Not asked on Windows and macOS, where that opens a window."""
    if platform.system() != "Linux":
        return True
    try:
        told = subprocess.run([browser, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return told.returncode == 0 and any(name in told.stdout for name in ("Chrom", "Edge"))


def playwright_browser() -> str | None:
    """The Chromium that playwright installed for itself, if there is one."""
    probe = (
        "from playwright.sync_api import sync_playwright\n"
        "with sync_playwright() as p: print(p.chromium.executable_path)"
    )
    told = subprocess.run([str(venv_python()), "-c", probe], capture_output=True, text=True)
    path = told.stdout.strip()
    return path if path and Path(path).exists() else None


def find_browser() -> str | None:
    """A Chromium-like browser: VOXCPM_BROWSER, one on PATH, one in its usual place, or playwright's own."""
    named = os.environ.get("VOXCPM_BROWSER")
    candidates = [named] if named else []
    candidates += [found for found in map(shutil.which, BROWSERS) if found]
    candidates += [path for path in BROWSER_FILES if Path(path).exists()]
    return next((path for path in candidates if starts(path)), None) or playwright_browser()


def apt_install(packages: list[str]) -> bool:
    """Install Debian packages as root or through sudo without a question; whether that worked."""
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if root and not shutil.which("sudo"):
        return False
    say("Installing with apt-get: " + " ".join(packages))
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    quiet = ["-qq"] if os.environ.get("CI") else []
    for step in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        command = [*root, "apt-get", "-o", "DPkg::Lock::Timeout=300", *quiet, *step]
        if subprocess.run(command, env=environment, stdin=subprocess.DEVNULL).returncode:
            say("apt-get could not do it.")
            return False
    return True


def playwright_install() -> None:
    """Let playwright download its own Chromium."""
    say("Asking playwright for its own Chromium ...")
    subprocess.run([str(venv_python()), "-m", "playwright", "install", "chromium"])


def ensure_tools() -> str | None:
    """ffmpeg, ffprobe and a browser; installs what is missing where it can. The browser's path, or None."""
    browser = find_browser()
    missing = [] if browser else ["chromium"]
    if not (shutil.which("ffmpeg") and shutil.which("ffprobe")):
        missing.append("ffmpeg")
    if missing and shutil.which("apt-get"):
        for package in missing:  # one by one: where chromium is not a Debian package, ffmpeg still is
            apt_install([package])
        browser = browser or find_browser()
    if not browser:
        playwright_install()
        browser = find_browser()
    if not (shutil.which("ffmpeg") and shutil.which("ffprobe")):
        say("ffmpeg and ffprobe are not on PATH; tests that need them will say so.")
    return browser


# --- the checks ------------------------------------------------------------------------------------------


def check_environment(browser: str | None) -> dict[str, str]:
    """Environment variables of the checks: no hub, no telemetry, the browser's path."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "GRADIO_ANALYTICS_ENABLED": "False"}
    if browser:
        environment["VOXCPM_BROWSER"] = browser
    return environment


def run_step(name: str, command: list[str], environment: dict[str, str]) -> bool:
    """Run one check with its output on the terminal; whether it passed."""
    say(f"{name} ...")
    started = time.monotonic()
    code = subprocess.run([str(venv_python()), *command], cwd=ROOT, env=environment).returncode
    say(f"{name}: {'ok' if code == 0 else f'FAILED (exit code {code})'}, {time.monotonic() - started:.0f} s")
    return code == 0


def outcome(report: Path) -> tuple[int, int, int, int]:
    """(tests, failures, errors, skipped) from pytest's JUnit report."""
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    total, failures, errors, skipped = (
        sum(int(suite.get(key, 0)) for suite in suites) for key in ("tests", "failures", "errors", "skipped")
    )
    return total, failures, errors, skipped


def counts(report: Path, again: Path | None = None) -> str:
    """The closing line from pytest's JUnit reports: "N passed, N failed, N skipped".

    ``again`` is the report on those that failed at first.
    """
    if not report.exists() or (again and not again.exists()):
        return "0 passed, 1 failed (pytest wrote no report)"
    total, failures, errors, skipped = outcome(report)
    failed = sum(outcome(again)[1:3]) if again else failures + errors
    return f"{total - failed - skipped} passed, {failed} failed, {skipped} skipped"


def workers() -> list[str]:
    """pytest's arguments for one process per core, at most four; files stay whole, for they share their servers."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ["-n", str(min(4, cores)), "--dist", "loadfile"] if cores > 1 else []


def run_tests(arguments: list[str], environment: dict[str, str]) -> tuple[bool, str]:
    """Run pytest on every core; whether it passed, and the counts.

    The few that fail beside others are asked again alone: a busy machine can be too slow for a browser, and what is
    wrong with the project fails alone as well.
    """
    with tempfile.TemporaryDirectory() as folder:
        report, again = Path(folder) / "report.xml", Path(folder) / "again.xml"
        command = ["-m", "pytest", *arguments]
        if run_step("pytest", [*command, *workers(), f"--junitxml={report}"], environment):
            return True, counts(report)
        failed = sum(outcome(report)[1:3]) if report.exists() else 0
        if not workers() or not 0 < failed <= MOST_AGAIN:
            return False, counts(report)
        say(f"{failed} failed beside others: once more alone.")
        alone = run_step("pytest, alone", [*command, "--last-failed", f"--junitxml={again}"], environment)
        return alone, counts(report, again)


def arguments_from(argv: list[str]) -> tuple[bool, list[str]]:
    """(fast, arguments for pytest)."""
    split = argv.index("--") if "--" in argv else len(argv)
    parser = argparse.ArgumentParser(
        prog="scripts/test.py", description="Run ruff and pytest. Arguments after -- go to pytest."
    )
    parser.add_argument("--fast", action="store_true", help="leave out the slow and the browser tests")
    return parser.parse_args(argv[:split]).fast, argv[split + 1 :]


def main(argv: list[str]) -> int:
    """Install, check, summarise; 0 when everything passed."""
    fast, extra = arguments_from(argv)
    install(("requirements.txt", "requirements-dev.txt"), "checks")
    browser = None if fast else ensure_tools()
    chosen = ["-m", "not slow and not browser"] if fast else [] if browser else ["-m", "not browser"]
    environment = check_environment(browser)
    passed = {
        "ruff check": run_step("ruff check", ["-m", "ruff", "check", "--output-format", "concise", "."], environment),
        "ruff format": run_step(
            "ruff format", ["-m", "ruff", "format", "--check", "--output-format", "concise", "."], environment
        ),
    }
    passed["pytest"], summary = run_tests([*chosen, *extra], environment)
    if not fast and not browser:
        passed["browser tests (no browser was found; --fast leaves them out)"] = False
    for name in (name for name, good in passed.items() if not good):
        say(f"NOT PASSED: {name}")
    print(f"summary: {summary}", flush=True)
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

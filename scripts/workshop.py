"""The virtual environment of the project and what goes into it. Standard library only.

Everything here may be interrupted at any moment and run again: the stamp that says "installed" is removed
before pip starts and written after the packages were imported once, and a broken environment is made anew.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
WINDOWS = os.name == "nt"

TORCH_PAGES = "https://download.pytorch.org/whl/"
TORCH_CUDA = {(13, 0): "cu130", (12, 8): "cu128", (12, 6): "cu126"}  # what a driver must offer for each build
IMPORTS = {
    "requirements.txt": ("torch", "torchaudio", "gradio", "soundfile", "tokenizers", "safetensors"),
    "requirements-dev.txt": ("pytest", "playwright"),
}


def say(text: str) -> None:
    """One line for the person at the terminal."""
    print("[studio] " + text, flush=True)


# --- the environment -------------------------------------------------------------------------------------


def venv_python() -> Path:
    """The interpreter of the project's environment, whether it exists or not."""
    return VENV / ("Scripts/python.exe" if WINDOWS else "bin/python")


def works(python: Path) -> bool:
    """Whether an interpreter starts, is new enough and has pip."""
    probe = "import sys, pip; sys.exit(sys.version_info < (3, 10))"
    try:
        return subprocess.run([str(python), "-c", probe], capture_output=True, timeout=120).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def ensure_venv() -> None:
    """Make the environment, or make it anew when it is half-made or its Python has gone.

    Raises SystemExit with a sentence when this Python cannot make one.
    """
    if works(venv_python()):
        return
    if VENV.exists():
        say(f"The environment in {VENV.name} is incomplete; making it anew.")
        shutil.rmtree(VENV)
    say(f"Making a virtual environment in {VENV.name} with Python {platform.python_version()} ...")
    made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True)
    if made.returncode or not works(venv_python()):
        shutil.rmtree(VENV, ignore_errors=True)
        sys.exit(
            "This Python could not make a virtual environment. On Debian or Ubuntu install the missing part "
            "with: sudo apt-get install python3-venv\n" + made.stdout + made.stderr
        )


def pip_environment() -> dict[str, str]:
    """Environment variables for pip, without its settings for user installs, which a venv refuses."""
    return {
        **os.environ,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_USER": "0",
        "PIP_REQUIRE_VIRTUALENV": "0",
    }


def pip(*arguments: str) -> bool:
    """Run pip in the environment with its own progress on the terminal; whether it succeeded."""
    command = [str(venv_python()), "-m", "pip", *arguments]
    if os.environ.get("CI"):
        command += ["--quiet", "--progress-bar", "off"] if arguments[0] == "install" else ["--quiet"]
    return subprocess.run(command, env=pip_environment(), cwd=ROOT).returncode == 0


def imports(*names: str) -> bool:
    """Whether all these modules can be imported in the environment."""
    command = [str(venv_python()), "-c", "import " + ", ".join(names)]
    return subprocess.run(command, capture_output=True, cwd=ROOT).returncode == 0


# --- torch: which build ----------------------------------------------------------------------------------


def driver_cuda() -> tuple[int, int] | None:
    """The CUDA version that the NVIDIA driver offers, or None without a working driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        told = subprocess.run([program], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"CUDA[^:|]*Version:\s*(\d+)\.(\d+)", told.stdout) if told.returncode == 0 else None
    return (int(found[1]), int(found[2])) if found else None


def torch_pages(system: str, cuda: tuple[int, int] | None, chosen: str = "") -> list[str]:
    """The package pages to ask for torch before PyPI, best first.

    PyPI's wheels are CUDA 13 builds of several GB on Linux, and builds without CUDA on Windows and macOS.
    So other pages are needed on Linux without an NVIDIA GPU (small CPU build) or with an older driver, and on
    Windows with a GPU. `chosen` (the variable VOXCPM_TORCH_INDEX) is a page to use instead, or "pypi".
    """
    if chosen:
        return [] if chosen == "pypi" else [chosen]
    if system == "Linux" and cuda is None:
        return [TORCH_PAGES + "cpu"]
    if cuda and (system == "Windows" or (system == "Linux" and cuda < (13, 0))):
        fitting = [build for needed, build in TORCH_CUDA.items() if cuda >= needed]
        return [TORCH_PAGES + build for build in fitting or ["cpu"]]
    return []


def reachable(page: str) -> bool:
    """Whether a package page answers within a few seconds."""
    try:
        with urllib.request.urlopen(page.rstrip("/") + "/torch/", timeout=8):
            return True
    except (urllib.error.URLError, OSError, ValueError):
        return False


def torch_requirements() -> list[str]:
    """The lines of requirements.txt for torch and torchaudio."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if re.match(r"(torch|torchaudio)\b", line)]


def installed_torch() -> str | None:
    """ "cpu" or "cuda" for the torch in the environment, None when it or torchaudio does not load."""
    probe = "import torch, torchaudio; print('cuda' if torch.version.cuda or torch.version.hip else 'cpu')"
    told = subprocess.run([str(venv_python()), "-c", probe], capture_output=True, text=True, cwd=ROOT)
    return told.stdout.strip() if told.returncode == 0 else None


def install_torch() -> None:
    """Put the fitting build of torch and torchaudio in place, where PyPI's is not the fitting one.

    Both come from one page, because a torchaudio built for another torch does not load. When no page helps,
    nothing is installed here and requirements.txt takes the pair from PyPI.
    """
    cuda = driver_cuda()
    pages = torch_pages(platform.system(), cuda, os.environ.get("VOXCPM_TORCH_INDEX", ""))
    present = installed_torch()
    wrong_build = present == "cpu" and cuda and pages != [TORCH_PAGES + "cpu"]
    if not pages or (present and not wrong_build):
        return
    for page in pages:
        if not reachable(page):
            say(f"{page} does not answer.")
            continue
        say(f"Installing torch from {page} ...")
        renew = ["--force-reinstall"] if present else []
        if pip("install", "--index-url", page, *renew, *torch_requirements()) and installed_torch():
            return
        say("That build does not work here.")
        pip("uninstall", "-y", "torch", "torchaudio")
    say("Taking torch from PyPI instead; on Linux that is a download of several GB.")


# --- installing ------------------------------------------------------------------------------------------


def fingerprint(files: tuple[str, ...]) -> str:
    """What the stamp holds: the requirements' hash and everything else that makes an install stale."""
    digest = hashlib.sha256()
    for name in files:
        digest.update((ROOT / name).read_bytes().replace(b"\r\n", b"\n"))
    facts = {
        "requirements": digest.hexdigest(),
        "nvidia": driver_cuda() is not None,
        "torch_index": os.environ.get("VOXCPM_TORCH_INDEX", ""),
    }
    return json.dumps(facts, sort_keys=True)


def install(files: tuple[str, ...], purpose: str) -> None:
    """Install requirement files into the environment unless its stamp says that this was done.

    Raises SystemExit with a sentence when it cannot be done; running again goes on where it stopped.
    """
    ensure_venv()
    stamp = VENV / f"installed-for-{purpose}.json"
    wanted = fingerprint(files)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    stamp.unlink(missing_ok=True)
    refuse_intel_mac()
    need = "the app needs" if purpose == "app" else f"the {purpose} need"
    say(f"Installing what {need}; this happens once, and pip shows its progress ...")
    modules = tuple(name for file in files for name in IMPORTS[file])
    if not install_once(files, modules):
        say("The packages do not import; making the environment anew and trying once more.")
        shutil.rmtree(VENV)
        ensure_venv()
        if not install_once(files, modules):
            sys.exit("The packages were installed but do not import. Please report this with the output above.")
    written = stamp.with_suffix(".part")
    written.write_text(wanted, encoding="utf-8")
    written.replace(stamp)
    say("Installed.")


def install_once(files: tuple[str, ...], modules: tuple[str, ...]) -> bool:
    """One run of pip; whether the modules can be imported afterwards. SystemExit when pip itself fails."""
    install_torch()
    arguments = [part for name in files for part in ("-r", name)]
    if not pip("install", *arguments):
        sys.exit(
            "The installation stopped; pip's message is above. Check the network and the free disk space, "
            "then run the same command again: it goes on where it stopped."
        )
    return imports(*modules)


def refuse_intel_mac() -> None:
    """SystemExit on a Mac with an Intel processor: there is no recent torch for it."""
    if platform.system() == "Darwin" and platform.machine() == "x86_64":
        sys.exit(
            "There is no recent PyTorch for Macs with an Intel processor. On an Apple-silicon Mac this means "
            "that an Intel build of Python is in use: install the universal one from python.org."
        )


# --- the app ---------------------------------------------------------------------------------------------


def address(arguments: list[str]) -> str:
    """Where the page will be, from the arguments for app.py."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--host", default=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"))
    parser.add_argument("--port", default=os.environ.get("GRADIO_SERVER_PORT", "7860"))
    known, _ = parser.parse_known_args(arguments)
    host = "127.0.0.1" if known.host in ("0.0.0.0", "::") else known.host
    host = f"[{host}]" if ":" in host else host
    return f"http://{host}:{known.port}"


def run_app(arguments: list[str]) -> int:
    """Install what is missing and run app.py with these arguments; its exit code."""
    install(("requirements.txt",), "app")
    if not {"-h", "--help"} & set(arguments):
        say(f"Starting. The page will be at {address(arguments)} (Ctrl+C ends it).")
    return hand_over([str(venv_python()), str(ROOT / "app.py"), *arguments])


def hand_over(command: list[str]) -> int:
    """Become another program where the system can, so that signals reach it; else run it and wait."""
    if not WINDOWS:
        sys.stdout.flush()
        os.execv(command[0], command)
    with subprocess.Popen(command) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue  # the console gave it to the app too, which is closing

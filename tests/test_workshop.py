"""The scripts that install and start: what they decide, without a network and without installing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import checks  # noqa: E402
import workshop  # noqa: E402


@pytest.mark.parametrize(
    ("system", "cuda", "builds"),
    [
        ("Linux", None, ["cpu"]),
        ("Linux", (13, 2), []),
        ("Linux", (12, 8), ["cu128", "cu126"]),
        ("Linux", (11, 8), ["cpu"]),
        ("Windows", None, []),
        ("Windows", (13, 0), ["cu130", "cu128", "cu126"]),
        ("Windows", (12, 6), ["cu126"]),
        ("Darwin", None, []),
    ],
)
def test_torch_build_fits_the_machine(system: str, cuda: tuple[int, int] | None, builds: list[str]) -> None:
    assert [page.rsplit("/", 1)[1] for page in workshop.torch_pages(system, cuda)] == builds


def test_torch_page_can_be_chosen() -> None:
    assert workshop.torch_pages("Linux", None, "pypi") == []
    assert workshop.torch_pages("Darwin", None, "https://example.org/rocm") == ["https://example.org/rocm"]


def test_unreachable_page_is_no_error() -> None:
    assert not workshop.reachable("http://127.0.0.1:9")
    assert not workshop.reachable("not an address")


def test_torch_and_torchaudio_come_as_a_pair() -> None:
    lines = workshop.torch_requirements()
    assert [line.split(">")[0] for line in lines] == ["torch", "torchaudio"]
    assert all("<" in line for line in lines), "an unbounded torch meets a torchaudio it was not tried with"


def test_stamp_changes_with_the_requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workshop, "ROOT", tmp_path)
    (tmp_path / "requirements.txt").write_bytes(b"numpy\n")
    before = workshop.fingerprint(("requirements.txt",))
    (tmp_path / "requirements.txt").write_bytes(b"numpy\r\n")
    assert workshop.fingerprint(("requirements.txt",)) == before, "a Windows checkout is the same install"
    (tmp_path / "requirements.txt").write_bytes(b"numpy>=2\n")
    assert workshop.fingerprint(("requirements.txt",)) != before


def test_half_made_environment_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workshop, "VENV", tmp_path / ".venv")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("home = /nowhere\n")
    assert not workshop.works(workshop.venv_python())
    workshop.ensure_venv()
    assert workshop.works(workshop.venv_python())


def test_interrupted_install_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stamp is gone while pip works, so a run that is killed there leaves none behind."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(workshop, "VENV", tmp_path)
    monkeypatch.setattr(workshop, "ensure_venv", lambda: None)
    monkeypatch.setattr(workshop, "install_torch", lambda: None)
    monkeypatch.setattr(workshop, "imports", lambda *names: True)

    def killed(*arguments: str) -> bool:
        calls.append(arguments)
        assert not (tmp_path / "installed-for-app.json").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(workshop, "pip", killed)
    (tmp_path / "installed-for-app.json").write_text("an older install")
    with pytest.raises(KeyboardInterrupt):
        workshop.install(("requirements.txt",), "app")
    monkeypatch.setattr(workshop, "pip", lambda *arguments: calls.append(arguments) or True)
    workshop.install(("requirements.txt",), "app")
    workshop.install(("requirements.txt",), "app")
    assert len(calls) == 2, "the second run installs, the third finds the stamp"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "http://127.0.0.1:7860"),
        (["--port", "8080", "--model", "nano"], "http://127.0.0.1:8080"),
        (["--host=0.0.0.0"], "http://127.0.0.1:7860"),
    ],
)
def test_address_follows_the_arguments(arguments: list[str], expected: str) -> None:
    assert workshop.address(arguments) == expected


def test_arguments_after_the_dashes_go_to_pytest() -> None:
    assert checks.arguments_from(["--fast", "--", "-k", "seed"]) == (True, ["-k", "seed"])
    assert checks.arguments_from([]) == (False, [])


@pytest.mark.parametrize(
    ("failed", "still", "asked", "passed", "said"),
    [
        (0, 0, 1, True, "40 passed, 0 failed, 0 skipped"),
        (2, 0, 2, True, "40 passed, 0 failed, 0 skipped"),
        (2, 1, 2, False, "39 passed, 1 failed, 0 skipped"),
        (30, 0, 1, False, "10 passed, 30 failed, 0 skipped"),
    ],
)
def test_what_failed_beside_others_is_asked_once_more_alone(monkeypatch, failed, still, asked, passed, said) -> None:
    commands = []

    def run_step(name: str, command: list[str], environment: dict[str, str]) -> bool:
        commands.append(command)
        bad = still if "--last-failed" in command else failed
        path = next(part for part in command if part.startswith("--junitxml=")).removeprefix("--junitxml=")
        Path(path).write_text(f'<testsuite tests="40" failures="{bad}" errors="0" skipped="0"/>')
        return not bad

    monkeypatch.setattr(checks, "run_step", run_step)
    monkeypatch.setattr(checks, "workers", lambda: ["-n", "2"])
    assert checks.run_tests(["-k", "seed"], {}) == (passed, said)
    assert len(commands) == asked and "-n" in commands[0] and all("-n" not in command for command in commands[1:])


def test_summary_counts_failures_errors_and_skips(tmp_path: Path) -> None:
    """The closing line agrees with a real pytest run of known results."""
    (tmp_path / "test_known.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert False\n"
        "@pytest.fixture\n"
        "def broken(): raise RuntimeError\n"
        "def test_error(broken): pass\n"
        "@pytest.mark.skip\n"
        "def test_skipped(): pass\n"
    )
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", str(tmp_path)]
    subprocess.run(command, capture_output=True, cwd=tmp_path)
    assert checks.counts(report) == "1 passed, 2 failed, 1 skipped"
    assert "1 failed" in checks.counts(tmp_path / "absent.xml")

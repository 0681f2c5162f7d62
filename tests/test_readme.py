"""The README tells the truth: its commands and flags exist, its Python compiles, and runs where marked."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RUNS_ON_NANO = "<!-- runs on nano -->"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, its first line's number, and whether it runs on nano."""

    language: str
    text: str
    line: int
    runs: bool


def blocks_of(markdown: str) -> list[Block]:
    """All fenced blocks of a Markdown text."""
    pattern = re.compile(rf"(?P<mark>{re.escape(RUNS_ON_NANO)}\n)?```(?P<language>\w+)\n(?P<text>.*?)```", re.S)
    return [
        Block(m["language"], m["text"], markdown[: m.start("text")].count("\n") + 1, bool(m["mark"]))
        for m in pattern.finditer(markdown)
    ]


def commands_of(blocks: list[Block]) -> list[list[str]]:
    """The words of every command line in the bash blocks, comments dropped."""
    lines = (line for block in blocks if block.language == "bash" for line in block.text.splitlines())
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


BLOCKS = blocks_of(README.read_text(encoding="utf-8"))
PYTHON = [block for block in BLOCKS if block.language == "python"]
COMMANDS = commands_of(BLOCKS)
SPEAKING = [words for words in COMMANDS if words[1:3] == ["-m", "voxcpm_core"]]
BOOK = [words for words in COMMANDS if words[1:3] == ["-m", "studio"]]


def line_of(block: Block) -> str:
    return f"line {block.line}"


@cache
def help_of(*program: str) -> str:
    """What a program of the project prints for --help."""
    told = subprocess.run([sys.executable, *program, "--help"], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert told.returncode == 0, told.stderr
    return told.stdout


def program_of(words: list[str]) -> str:
    """The file that understands a command's flags: run.py passes its own on to app.py."""
    return "app.py" if words[1] == "scripts/run.py" else words[1]


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with the files that the README's examples speak of: voice.wav and lines.txt."""
    shutil.copy(ROOT / "tests" / "goldens" / "v2_48k" / "reference.wav", tmp_path / "voice.wav")
    (tmp_path / "lines.txt").write_text("The first line.\nThe second line.\n", encoding="utf-8")
    return tmp_path


def test_readme_is_read() -> None:
    """Without blocks everything below would pass."""
    assert len(PYTHON) >= 4 and sum(block.runs for block in PYTHON) >= 3
    assert {("python", "scripts/run.py"), ("python", "scripts/test.py")} <= {tuple(c[:2]) for c in COMMANDS}
    assert {c[3] for c in SPEAKING} == {"design", "clone", "batch", "info"}
    assert [c[3] for c in BOOK] == ["import", "render", "export"]


@pytest.mark.slow
@pytest.mark.parametrize("words", [c for c in COMMANDS if c[1] != "-m"], ids=" ".join)
def test_command_exists_with_its_flags(words: list[str]) -> None:
    assert words[0] == "python"
    assert (ROOT / words[1]).is_file(), f"{words[1]} is not in the project"
    flags = {word.split("=")[0] for word in words if word.startswith("--")}
    if flags:
        told = set(re.findall(r"--[\w-]+", help_of(program_of(words))))
        assert flags <= told, f"{program_of(words)} has no {sorted(flags - told)}"


@pytest.mark.slow
@pytest.mark.parametrize("words", SPEAKING, ids=" ".join)
def test_command_line_runs(words: list[str], desk: Path) -> None:
    """Each command as written; it leaves the audio where it was told to."""
    before = set(desk.rglob("*.wav"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    told = subprocess.run(
        [sys.executable, *words[1:]], capture_output=True, text=True, cwd=desk, env=environment, timeout=240
    )
    assert told.returncode == 0, told.stderr
    made = set(desk.rglob("*.wav")) - before
    if "--output" in words:
        assert made == {desk / words[words.index("--output") + 1]}
    else:
        assert len(made) == (2 if "batch" in words else 0)
    assert "Traceback" not in told.stderr and told.stdout.strip()


@pytest.mark.slow
def test_a_book_is_made_as_written(tmp_path: Path) -> None:
    """The commands in their order: imported, spoken, delivered."""
    (tmp_path / "lighthouse.md").write_text("# The Stair\n\nThe keeper climbed the stair. The lamp was lit.\n")
    for words in BOOK:
        command, environment = [sys.executable, *words[1:]], {**os.environ, "PYTHONPATH": str(ROOT)}
        told = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=240)
        assert told.returncode == 0, told.stderr
        assert json.loads(told.stdout) and "Traceback" not in told.stderr
    assert [path.suffix for path in (tmp_path / "finished").rglob("*.m4b")] == [".m4b"]


@pytest.mark.parametrize("block", PYTHON, ids=line_of)
def test_python_compiles(block: Block) -> None:
    ast.parse(block.text)


@pytest.mark.slow
@pytest.mark.parametrize("block", [block for block in PYTHON if block.runs], ids=line_of)
def test_python_runs(block: Block, nano: Any, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As written; every take it makes has sound."""
    monkeypatch.chdir(desk)
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(block.text, f"README.md, {line_of(block)}", "exec"), names)
    made = [names[name] for name in ("wav", "timbre", "go_on") if name in names]
    made += [take.samples for take in names.get("takes", [])]
    assert made and all(len(samples) > nano.sample_rate // 10 for samples in made)
    assert all(abs(samples).max() > 0 for samples in made)


def test_links_lead_somewhere() -> None:
    """Links between the project's own documents, for every Markdown file of ours."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "assets" / "nano" / "README.md"]
    broken = [
        f"{page.relative_to(ROOT)} -> {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not broken


def test_reader_of_blocks_can_fail() -> None:
    text = f"# x\n\n{RUNS_ON_NANO}\n```python\na = 1\n```\n\n```bash\npython x.py --y  # z\n```\n"
    python, bash = blocks_of(text)
    assert (python.language, python.text, python.line, python.runs) == ("python", "a = 1\n", 5, True)
    assert not bash.runs and commands_of([python, bash]) == [["python", "x.py", "--y"]]

"""`python -m studio`: one JSON object on stdout, sentences on stderr, exit codes, and a run that can be repeated."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from studio import __main__ as program
from studio.book import headless
from studio.book.library import Library
from studio.store import Store
from tests import books
from tests.fakes import SineModel

ROOT = Path(__file__).resolve().parents[1]
TEXT = "Chapter 1\n\nThe fox ran home.\n\nIt was late, and dark.\n\nChapter 2\n\nAll was well."


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "Fox.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def sine(monkeypatch: pytest.MonkeyPatch) -> SineModel:
    """Stands in for the model of `render`."""
    model = SineModel(sample_rate=16_000, patch_seconds=0.08)
    monkeypatch.setattr(headless, "load_model", lambda options, progress: model)
    return model


@pytest.fixture
def run(data_dir: Path, capsys: pytest.CaptureFixture):
    """run(command, ...) -> (exit code, object on stdout or None, sentences on stderr)."""

    def command(*arguments: object) -> tuple[int, Any, str]:
        words = [str(word) for word in arguments]
        code = program.main([words[0], *words[1:], "--data-dir", str(data_dir), "--project", "Fox"])
        said = capsys.readouterr()
        assert said.out.count("\n") == (1 if said.out else 0)
        return code, json.loads(said.out) if said.out else None, said.err

    return command


def test_import_prints_chapters_with_segments_and_words(run, book: Path) -> None:
    code, result, said = run("import", book)
    assert code == 0 and not said
    assert [(c["title"], c["on"], c["segments"], c["words"]) for c in result["chapters"]] == [
        ("Chapter 1", True, 3, 11),
        ("Chapter 2", True, 2, 5),
    ]
    assert (result["segments"], result["words"], result["left_out"]) == (5, 16, [])


def test_what_is_off_is_listed(run, tmp_path: Path) -> None:
    path = tmp_path / "a.epub"
    path.write_bytes(books.as_epub(books.make_novel(chapters=2, words_each=200)))
    code, result, _ = run("import", path)
    assert code == 0 and result["title"] == books.TITLE and result["author"] == books.AUTHOR
    assert {"front matter", "legal", "contents", "page number"} <= {found["kind"] for found in result["left_out"]}


def test_render_makes_what_is_missing_and_only_that(run, book: Path, sine: SineModel) -> None:
    run("import", book)
    code, result, said = run("render")
    assert code == 0
    assert (result["state"], result["segments"], result["ready"]) == ("done", 5, 5)
    assert (result["takes_made"], result["takes_kept"], result["failed"]) == (5, 5, [])
    assert "5 of 5 segments" in said
    code, result, _ = run("render")
    assert (code, result["takes_made"], result["takes_kept"]) == (0, 0, 5)
    code, result, _ = run("render", "--takes", 3)
    assert (result["takes_made"], result["takes_kept"]) == (10, 15)


def test_render_one_chapter_with_a_voice_from_a_file(run, book: Path, sine: SineModel, tmp_path: Path) -> None:
    import numpy as np

    from voxcpm_core.audio import wav_bytes

    run("import", book)
    clip = tmp_path / "me.wav"
    clip.write_bytes(wav_bytes((0.3 * np.sin(np.arange(80_000) / 9)).astype(np.float32), 16_000))
    code, result, _ = run("render", "--chapter", 2, "--voice", clip)
    assert (code, result["takes_made"], result["ready"]) == (0, 2, 2)
    assert all(len(request.reference_wav_path.samples) == 80_000 for request in sine.requests)


def test_a_segment_that_fails_is_named_and_the_exit_code_says_so(run, tmp_path: Path, sine: SineModel) -> None:
    path = tmp_path / "Fox.txt"
    path.write_text(TEXT + "\n\nThis one will fail.", encoding="utf-8")
    run("import", path)
    code, result, said = run("render")
    assert code == 1 and result["state"] == "incomplete"
    assert [failed["text"] for failed in result["failed"]] == ["This one will fail."]
    assert "Not made: “This one will fail.”" in said


def test_export_writes_the_files_and_tells_what_is_missing(run, book: Path, sine: SineModel, tmp_path: Path) -> None:
    run("import", book)
    out = tmp_path / "out"
    code, result, said = run("export", "--out", out)
    assert code == 1 and result is None and "5 segments have no take" in said and not out.exists()
    run("render")
    code, result, _ = run("export", "--out", out, "--format", "wav", "--preset", "none", "--no-subtitles")
    assert code == 0 and all(Path(path).is_file() for path in result["files"])
    assert sum(path.endswith(".wav") for path in result["files"]) == 2
    assert result["report"]["preset"] == "none" and result["incomplete"] == []


def test_a_project_travels_as_one_file(run, book: Path, sine: SineModel, tmp_path: Path, capsys) -> None:
    run("import", book)
    run("render")
    code, result, _ = run("export", "--format", "project", "--out", tmp_path / "out")
    assert code == 0 and result["files"] == [str(tmp_path / "out" / "Fox.voxcpm-book.zip")]
    assert run("import", result["files"][0])[2].startswith("There is a book called “Fox” already")
    asked = len(sine.requests)
    there = ["--data-dir", str(tmp_path / "there"), "--project", "Fox"]
    assert program.main(["import", result["files"][0], *there]) == 0
    taken = json.loads(capsys.readouterr().out)
    assert (taken["segments"], taken["takes"], [c["title"] for c in taken["chapters"]]) == (
        5,
        5,
        ["Chapter 1", "Chapter 2"],
    )
    assert program.main(["render", *there]) == 0
    assert json.loads(capsys.readouterr().out)["takes_made"] == 0 and len(sine.requests) == asked


def test_the_words_of_takes_are_checked_by_a_recogniser(
    run, book: Path, sine: SineModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("import", book)
    code, _, said = run("render", "--recogniser", "/nowhere")
    assert code == 1 and "/nowhere" in said and not sine.requests
    monkeypatch.setattr(headless, "recogniser", lambda model, language: lambda samples, rate: "the fox ran home")
    code, result, _ = run("render", "--recogniser", "tiny", "--retries", "1")
    assert code == 0 and result["red"] == 4 and result["takes_made"] == 9  # all but one say something else


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["import", "nowhere.txt"], "nowhere.txt cannot be read"),
        (["import", "BOOK", "--max-characters", "5"], "choose 20 to 2000"),
        (["import", "BOOK", "--seed", "-1"], "seed -1 is not possible"),
        (["render", "--takes", "9"], "choose 1 to 3"),
        (["render", "--chapter", "7"], "no chapter 7; the book has 2"),
        (["render", "--voice", "Nobody"], "no voice and no audio file called “Nobody”"),
        (["import", "BOOK"], "called “Fox” already"),
    ],
)
def test_errors_are_one_sentence_on_stderr(
    run, book: Path, sine: SineModel, arguments: list[str], sentence: str
) -> None:
    run("import", book)
    code, result, said = run(*[str(book) if word == "BOOK" else word for word in arguments])
    assert code == 1 and result is None
    assert sentence in said and "Traceback" not in said and len(said.strip().splitlines()) == 1


def test_a_project_that_is_not_there(run) -> None:
    code, result, said = run("render")
    assert code == 1 and result is None and "no book called “Fox”" in said
    with pytest.raises(SystemExit) as error:
        program.main(["render"])
    assert error.value.code == 2


def test_a_model_that_does_not_load(run, book: Path) -> None:
    run("import", book)
    code, result, said = run("render", "--model", "/nowhere", "--local-files-only")
    assert code == 1 and result is None and "/nowhere" in said


@pytest.mark.slow
def test_nano_renders_exports_and_resumes_after_ctrl_c(book: Path, data_dir: Path) -> None:
    """The real program, the real model: interrupted in the middle, run again, nothing is made twice."""
    book.write_text(TEXT + "\n\n" + "\n\n".join(f"The fox saw {n} hens." for n in range(2, 12)), encoding="utf-8")
    command = [sys.executable, "-m", "studio"]
    common = ["--data-dir", str(data_dir), "--project", "Fox"]
    made = subprocess.run([*command, "import", str(book), *common], cwd=ROOT, capture_output=True, text=True)
    assert json.loads(made.stdout)["segments"] == 15
    render = [*command, "render", *common, "--model", "nano", "--rows", "4", "--retries", "0"]
    process = subprocess.Popen(render, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    timer = threading.Timer(240, process.kill)
    timer.start()
    for line in process.stderr:
        if re.match(r"[1-9]\d* of 15", line):
            os.kill(process.pid, signal.SIGINT)
            break
    out, err = process.communicate()
    timer.cancel()
    assert process.returncode == 130 and "go on" in err and not out
    done = subprocess.run(render, cwd=ROOT, capture_output=True, text=True, timeout=280)
    result = json.loads(done.stdout)
    assert done.returncode == 0 and (result["state"], result["ready"], result["takes_kept"]) == ("done", 15, 15)
    assert 0 < result["takes_made"] < 15
    store = Store(data_dir)
    takes = Library(store).book(1).takes
    assert [len(found) for found in takes.values()] == [1] * 15
    store.close()

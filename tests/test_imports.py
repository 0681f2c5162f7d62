"""The direction of imports, and what library code may not do. Every Python file of the project is parsed."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ("voxcpm_core", "studio")
EVERYWHERE = (*LIBRARY, "tests", "benchmarks", "scripts")


def python_files(*folders: str) -> list[Path]:
    """All Python files below these folders; what lies in a hidden folder (an environment) is not ours."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if not any(p.startswith(".") for p in path.relative_to(ROOT).parts))


def module_name(path: Path) -> str:
    """studio/ui/tts.py -> "studio.ui.tts"; a package's __init__ keeps its last part, for relative imports."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imported(source: str, module: str) -> set[str]:
    """Every module that a source imports, wherever in the file, with relative imports spelled out.

    `from a import b` counts as "a" and "a.b": b may be a module.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".")[: -node.level] if node.level else []
            base = [*package, *([node.module] if node.module else [])]
            names |= {".".join([*base, *more]) for more in ([], *([alias.name] for alias in node.names))}
        elif isinstance(node, ast.Call) and is_import_call(node):
            names.add(node.args[0].value)
    return names


def is_import_call(node: ast.Call) -> bool:
    """importlib.import_module("x") or __import__("x"), which would slip past the other two."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    literal = node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    return name in ("import_module", "__import__") and bool(literal)


def printed(source: str) -> list[int]:
    """The lines on which a source calls print."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [node.lineno for node in calls if getattr(node.func, "id", "") == "print"]


def forbidden(path: Path) -> tuple[str, ...]:
    """The modules that a file may not import."""
    folders = path.relative_to(ROOT).parts
    if folders[0] == "voxcpm_core":
        return ("app", "studio", "gradio")
    if folders[:2] == ("studio", "ui"):
        return ("app", "torch", "torchaudio")
    if folders[0] == "studio":
        return ("app", "gradio", "studio.ui")
    return () if folders[0] == "tests" else ("app",)  # a test may start the app


def broken_rules(source: str, module: str, rules: tuple[str, ...]) -> set[str]:
    """The imports of a source that a rule forbids."""
    return {name for name in imported(source, module) for rule in rules if f"{name}.".startswith(f"{rule}.")}


@pytest.mark.parametrize("path", python_files(*EVERYWHERE), ids=module_name)
def test_imports_point_one_way(path: Path) -> None:
    broken = broken_rules(path.read_text(encoding="utf-8"), module_name(path), forbidden(path))
    assert not broken, f"{module_name(path)} may not import {', '.join(sorted(broken))}"


@pytest.mark.parametrize("path", python_files(*LIBRARY), ids=module_name)
def test_library_does_not_print(path: Path) -> None:
    lines = printed(path.read_text(encoding="utf-8")) if path.name != "__main__.py" else []
    assert not lines, f"{module_name(path)} prints on line {lines}; use logging"


def test_every_part_is_there() -> None:
    """An empty list of files would pass everything above."""
    for folder in LIBRARY:
        assert len(python_files(folder)) >= 3, folder
    assert python_files("studio/ui")


@pytest.mark.parametrize(
    ("source", "module", "broken"),
    [
        ("import gradio as gr", "voxcpm_core.model", {"gradio"}),
        (
            "def f():\n    from studio.store import Store",
            "voxcpm_core.model",
            {"studio.store", "studio.store.Store"},
        ),
        ("from .. import studio", "voxcpm_core.model", {"studio"}),
        (
            "import importlib\nimportlib.import_module('gradio.blocks')",
            "voxcpm_core.model",
            {"gradio.blocks"},
        ),
        ("import gradio_client\nimport studios\nfrom .studio import x", "voxcpm_core.model", set()),
    ],
)
def test_the_rule_can_fail(source: str, module: str, broken: set[str]) -> None:
    assert broken_rules(source, module, forbidden(ROOT / "voxcpm_core" / "model.py")) == broken


def test_print_is_found() -> None:
    assert printed("x = 1\ndef f():\n    print(x)\n") == [3]
    assert printed("log.print(1)\nfingerprint(2)\n") == []

"""The page's words in one table, gathered from one module per room: ``key: (English, Chinese)``."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules


def gathered() -> dict[str, tuple[str, str]]:
    """All words of the modules beside this one. A key that two of them define is an error."""
    words: dict[str, tuple[str, str]] = {}
    for module in sorted(iter_modules(__path__), key=lambda module: module.name):
        table = import_module(f"{__name__}.{module.name}").WORDS
        twice = words.keys() & table.keys()
        if twice:
            raise KeyError(f"{module.name} defines words again: {', '.join(sorted(twice))}")
        words.update(table)
    return words

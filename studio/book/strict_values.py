"""JSON that a stranger wrote -> the plain values of a dataclass: every field has the kind that its annotation names."""

from __future__ import annotations

import math
import types
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from studio.takes import readable

LONGEST_TEXT = 100_000
LONGEST_LIST = 100_000

T = TypeVar("T")


class WrongValue(ValueError):
    """``str(error)`` names the place and what is wanted there."""


def read_value(kind: type[T], value: Any, place: str) -> T:
    """``value`` as ``kind``: a dataclass, text, number, truth, None, a choice of words, a list or a table of those.

    Fields that are not known are left out, those that are missing have their default. Raises WrongValue.
    """
    if is_dataclass(kind):
        return _read_object(kind, value, place)
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inside:
            return None  # type: ignore[return-value]
        return read_value(next(one for one in inside if one is not type(None)), value, place)
    if origin is Literal:
        return _one_of(value, inside, place)
    if origin is tuple:
        items = _of_type(value, list, "a list", place)
        if len(items) > LONGEST_LIST:
            raise WrongValue(f"{place} must have at most {LONGEST_LIST} entries")
        return tuple(read_value(inside[0], item, f"{place} {number}") for number, item in enumerate(items, 1))  # type: ignore[return-value]
    if origin is dict:
        table = _of_type(value, dict, "a table", place)
        if len(table) > 1000:
            raise WrongValue(f"{place} must have at most 1000 entries")
        return {_text(key, place): read_value(inside[1], item, f"{place}: {key[:40]}") for key, item in table.items()}  # type: ignore[return-value]
    return _read_plain(kind, value, place)


def _read_object(kind: Any, value: Any, place: str) -> Any:
    table = _of_type(value, dict, "an object", place)
    hints = _hints(kind)
    found = {}
    for field in fields(kind):
        if field.name in table:
            found[field.name] = read_value(hints[field.name], table[field.name], f"{place}: {field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise WrongValue(f"{place} has no {field.name}")
    return kind(**found)


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read_plain(kind: Any, value: Any, place: str) -> Any:
    if kind is str:
        return _text(value, place)
    if kind is bool:
        return _of_type(value, bool, "true or false", place)
    if kind is int:
        number = _of_type(value, int, "a whole number", place)
        if abs(number) >= 2**53:
            raise WrongValue(f"{place} is too large")
        return number
    if kind is float:
        if type(value) not in (int, float) or abs(value) > 1e15 or not math.isfinite(value):
            raise WrongValue(f"{place} must be a number")
        return float(value)
    if kind is Any:  # the facts of a check
        return _read_any(value, place)
    raise TypeError(f"{kind} is not read from strangers")


def _read_any(value: Any, place: str) -> Any:
    if type(value) is dict:
        return read_value(dict[str, Any], value, place)
    if type(value) is list:
        return list(read_value(tuple[Any, ...], value, place))
    if value is None or type(value) in (bool, int):
        return value
    return read_value(float, value, place) if type(value) is float else _text(value, place)


def _of_type(value: Any, kind: type[T], name: str, place: str) -> T:
    if type(value) is not kind:
        raise WrongValue(f"{place} must be {name}")
    return value


def _text(value: Any, place: str) -> str:
    text = _of_type(value, str, "a text", place)
    if len(text) > LONGEST_TEXT:
        raise WrongValue(f"{place} must have at most {LONGEST_TEXT} characters")
    return readable(text).replace("\0", "")


def _one_of(value: Any, choices: tuple, place: str) -> Any:
    if value not in choices or type(value) is not type(choices[0]):
        raise WrongValue(f"{place} must be one of {', '.join(map(repr, choices))}")
    return value

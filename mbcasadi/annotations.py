"""What an annotation of an argument says, and whether a value is that.

An annotation is a union of parts: a class, `float`, `Sequence[str]`, `ArrayLike` and so on.
`ArrayLike` is itself a union in NumPy and counts as one part here.
"""

import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, is_typeddict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.errors import ShapeError
from mbcasadi.readable_signatures import NUMBERS
from mbcasadi.real_numbers import real_array

Test = Callable[[object], bool]


@cache
def hints_of(owner: Any) -> dict[str, Any]:
    """Return the annotations of arguments, those of `**options: Unpack[...]` among them."""
    hints = typing.get_type_hints(owner)
    hints.pop("return", None)
    for name, hint in list(hints.items()):  # `**options: Unpack[Options]`
        if typing.get_origin(hint) is typing.Unpack:
            del hints[name]
            hints |= typing.get_type_hints(*typing.get_args(hint))
    return hints


def parts_of(hint: Any) -> list[Any]:
    """Return the parts of a union; `ArrayLike`, itself a union, is one part."""
    if isinstance(hint, TypeVar):
        return list(hint.__constraints__) or [Any]
    if typing.get_origin(hint) not in {Union, types.UnionType}:
        return [_without_dtype(hint)]
    parts = typing.get_args(hint)
    known = bool(NUMBERS) and set(parts) >= NUMBERS
    given = [part for part in parts if not (known and part in NUMBERS)]
    single = [each for part in given for each in parts_of(part)]
    return [*single, ArrayLike] if known else single


def _without_dtype(hint: Any) -> Any:
    """Return `ArrayLike` for arrays of numbers: what NumPy turns into one is one."""
    return ArrayLike if typing.get_origin(hint) in {np.ndarray, NDArray} else hint


def documented(docstring: str) -> dict[str, str]:
    """Return what a docstring says of each argument or attribute."""
    docs: dict[str, str] = {}
    names: list[str] = []
    for line in inspect.cleandoc(docstring).splitlines():
        entry = re.match(r" {4}(\w+(?:, \w+)*): (.*)", line)
        if entry:
            names = entry[1].split(", ")
            docs |= dict.fromkeys(names, entry[2])
        elif not line.startswith(" " * 8):
            names = []
        for name in () if entry else names:
            docs[name] += f" {line.strip()}"
    return docs


def is_any_of(value: object, hint: Any) -> bool:
    """Whether a value is what an annotation says."""
    return test_of(hint)(value)


@cache
def test_of(hint: Any) -> Test:
    """Return whether a value is what an annotation says, as a function of the value.

    Public functions are called often, and their annotations do not change: they are read once.
    """
    tests = tuple(_test_of_part(each) for each in parts_of(hint))
    if len(tests) == 1:
        return tests[0]
    return lambda value: any(test(value) for test in tests)


def _test_of_part(hint: Any) -> Test:
    """Return the test of one part of an annotation."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is object:
        return lambda _: True
    if is_typeddict(hint):
        return lambda value: isinstance(value, Mapping)
    if hint is ArrayLike:
        return _is_array
    if hint in SCALARS:
        return SCALARS[hint]
    if origin is Literal:
        return lambda value: isinstance(value, str) and value in parts
    if origin is not None and issubclass(origin, Callable):  # type: ignore[arg-type]
        return callable
    if origin is not None and issubclass(origin, Mapping):
        key, item = map(test_of, parts)
        return lambda value: (
            isinstance(value, Mapping) and all(key(k) and item(v) for k, v in value.items())
        )
    if origin is not None and issubclass(origin, Sequence):
        return _test_of_sequence(origin, parts)
    return lambda value: isinstance(value, origin or hint)


def _test_of_sequence(origin: type, parts: tuple[Any, ...]) -> Test:
    """Return the test of a sequence of such items; a text alone is none."""
    tests = [test_of(part) for part in parts if part is not Ellipsis]
    fixed = issubclass(origin, tuple) and Ellipsis not in parts

    def is_sequence(value: object) -> bool:
        if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
            return False
        if isinstance(value, np.ndarray) and value.ndim != 1:
            return False
        if fixed:
            return len(value) == len(tests) and all(
                test(item) for test, item in zip(tests, value, strict=True)
            )
        return all(map(tests[0], value))

    return is_sequence


def _is_array(value: object) -> bool:
    try:
        real_array("", value)
    except ShapeError:
        return False
    return value is not None


def _is_number(value: object) -> bool:
    """Whether a value is one real number; infinity is one, NaN is not."""
    if isinstance(value, (str, bytes)) or not _is_array(value):
        return False
    array = real_array("", value)
    return not array.ndim and not math.isnan(float(array))


def _is_whole(value: object) -> bool:
    """Whether a value counts something; 5.0 does not, since nothing is done 5.0 times."""
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value.item()
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


SCALARS: dict[Any, Test] = {
    float: _is_number,
    int: _is_whole,
    complex: lambda value: isinstance(value, (int, float, complex, np.number)),
    bool: lambda value: isinstance(value, (bool, np.bool_)),
    str: lambda value: isinstance(value, str),
    Path: lambda value: isinstance(value, Path),
    type(None): lambda value: value is None,
}

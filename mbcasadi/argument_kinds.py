"""Checks at public entry points that an argument is what its annotation says.

Annotations are checked by mypy in this package and by nothing in a program of a user, where a
wrong argument would fail far inside, in words of NumPy or CasADi. `checked` reads the annotations
of a function and refuses what is none of them before the function starts. Sizes, ranges and names
are for the function itself (`mbcasadi.shapes`).
"""

import inspect
import math
import types
import typing
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache, wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, Union, is_typeddict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.errors import ProblemError, ShapeError

P = ParamSpec("P")
R = TypeVar("R")

NUMBERS = frozenset(typing.get_args(ArrayLike))
MAKERS = {
    "System": "read_mjcf, from_lagrangian or from_equations makes one",
    "Linearization": "linearize makes one",
    "OptimalControlProblem": "optimal_control_problem makes one",
    "Task": "PostureTask, FrameTask, ComTask or one of your own",
    "SX": "symbols or expressions, as ca.SX.sym gives them",
}
"""What makes the objects that users do not construct themselves."""


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that refuses arguments which are not what its annotations say.

    The wrapper raises `ShapeError` for what is no array of numbers, and `ProblemError` for what
    is of another kind.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def entry(*args: P.args, **kwargs: P.kwargs) -> R:
        hints = _hints(function)
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            kind = signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL and name in hints:
                for item in value:
                    _require(name, item, hints[name])
            elif kind is inspect.Parameter.VAR_KEYWORD:
                for key, item in value.items():
                    _require(key, item, hints.get(key, hints.get(name, Any)))
            elif name in hints:
                _require(name, value, hints[name])
        return function(*args, **kwargs)

    return entry


def require_fields(data: Any) -> None:
    """Raise unless each field of a dataclass is what its annotation says.

    Raises:
        ShapeError: a field is no array of numbers.
        ProblemError: a field is of another kind.
    """
    kind: Any = type(data)
    hints = _hints(kind)
    for field in fields(data):
        if field.init:
            _require(field.name, getattr(data, field.name), hints[field.name])


def described(value: object) -> str:
    """Return a value for a message: short texts and numbers as they are, others by their kind."""
    if value is None or isinstance(value, (str, int, float)):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"a {type(value).__name__}"


def real_array(name: str, value: object) -> NDArray[np.float64]:
    """Return `value` as an array of real numbers.

    Raises:
        ShapeError: it has masked or complex entries, which NumPy would turn into plain real ones
            silently, or entries that are no numbers.
    """
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ShapeError(
            f"{name} has {int(value.mask.sum())} masked entries; expected a number in each: "
            "fill them, or leave them out"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # CasADi's note that it was asked for an array
            array: NDArray[Any] = np.asarray(value)
        if array.dtype.kind == "c":
            raise ShapeError(f"{name} is complex; expected real numbers: give its real part")
        if array.dtype.kind in "USM" or (
            array.dtype.kind == "O" and None in array.ravel().tolist()
        ):
            raise TypeError("texts and None, which NumPy takes for numbers")
        return array.astype(float, copy=False)
    except (TypeError, ValueError, RuntimeError, NotImplementedError, Warning) as error:
        if isinstance(error, ShapeError):
            raise
        raise ShapeError(f"{name} is {described(value)}; expected numbers") from None


@cache
def _hints(owner: Any) -> dict[str, Any]:
    """Return the annotations of arguments, those of `**options: Unpack[...]` among them."""
    hints = typing.get_type_hints(owner)
    hints.pop("return", None)
    for name, hint in list(hints.items()):  # `**options: Unpack[Options]`
        if typing.get_origin(hint) is typing.Unpack:
            del hints[name]
            hints |= typing.get_type_hints(*typing.get_args(hint))
    return hints


def _require(name: str, value: object, hint: Any) -> None:
    """Raise unless a value is what an annotation says."""
    alternatives = _alternatives(hint)
    if any(_is(value, each) for each in alternatives):
        return
    if ArrayLike in alternatives and isinstance(value, (np.ndarray, list, tuple)):
        real_array(name, value)  # its message is more exact
    found = f"= {value}" if _is_real(value) else f"is {_found(value, alternatives)}"
    expected = " or ".join(dict.fromkeys(_words(each) for each in alternatives))
    advice = next((f": {MAKERS[w]}" for a in alternatives if (w := _name(a)) in MAKERS), "")
    kind = ShapeError if ArrayLike in alternatives else ProblemError
    raise kind(f"{name} {found}; expected {expected}{advice}")


def _is_real(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _alternatives(hint: Any) -> list[Any]:
    """Return the parts of a union; `ArrayLike`, itself a union, is one part."""
    if isinstance(hint, TypeVar):
        return list(hint.__constraints__) or [Any]
    if typing.get_origin(hint) not in {Union, types.UnionType}:
        return [_without_dtype(hint)]
    parts = typing.get_args(hint)
    known = set(parts) >= NUMBERS
    given = [part for part in parts if not (known and part in NUMBERS)]
    single = [alternative for part in given for alternative in _alternatives(part)]
    return [*single, ArrayLike] if known else single


def _without_dtype(hint: Any) -> Any:
    """Return `ArrayLike` for arrays of numbers: what NumPy turns into one is one."""
    return ArrayLike if typing.get_origin(hint) is np.ndarray else hint


def _is(value: object, hint: Any) -> bool:
    """Whether a value is what one part of an annotation says."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is object:
        return True
    if is_typeddict(hint):
        return isinstance(value, Mapping)
    if hint is ArrayLike:
        return _is_array(value)
    if hint in SCALARS:
        return SCALARS[hint](value)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin is not None and issubclass(origin, Callable):  # type: ignore[arg-type]
        return callable(value)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _one_of(k, parts[0]) and _one_of(v, parts[1]) for k, v in value.items()
        )
    if origin is not None and issubclass(origin, Sequence):
        return _is_sequence(value, origin, parts)
    return isinstance(value, origin or hint)


def _one_of(value: object, hint: Any) -> bool:
    return any(_is(value, each) for each in _alternatives(hint))


def _is_sequence(value: object, origin: type, parts: tuple[Any, ...]) -> bool:
    """Whether a value is a sequence of such items; a text alone is none."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
        return False
    if isinstance(value, np.ndarray) and value.ndim != 1:
        return False
    fixed = issubclass(origin, tuple) and Ellipsis not in parts
    if fixed:
        return len(value) == len(parts) and all(map(_one_of, value, parts))
    return all(_one_of(item, parts[0]) for item in value)


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


SCALARS: dict[Any, Callable[[object], bool]] = {
    float: _is_number,
    int: _is_whole,
    complex: lambda value: isinstance(value, (int, float, complex, np.number)),
    bool: lambda value: isinstance(value, (bool, np.bool_)),
    str: lambda value: isinstance(value, str),
    Path: lambda value: isinstance(value, Path),
    type(None): lambda value: value is None,
}

WORDS = {
    float: "a number",
    int: "a whole number",
    complex: "a number, complex or real",
    bool: "True or False",
    str: "a text",
    type(None): "None",
    ArrayLike: "numbers",
}


PLURALS = {
    float: "numbers",
    int: "whole numbers",
    complex: "numbers, complex or real",
    bool: "True or False",
    str: "texts",
}


def _name(hint: Any) -> str:
    return str(getattr(typing.get_origin(hint) or hint, "__name__", ""))


def _words(hint: Any) -> str:
    """Return what one part of an annotation says, for a message."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if _name(hint).startswith("Has"):  # a protocol of one attribute
        return f"an object with a {_name(hint).removeprefix('Has').lower()}"
    if hint in WORDS:
        return WORDS[hint]
    if origin is Literal:
        return ", ".join(map(repr, parts))
    if origin is not None and issubclass(origin, Mapping):
        return (
            "a mapping by name"
            if len(parts) < 2
            else f"a mapping from {_all_words(parts[0])} to {_all_words(parts[1])}"
        )
    if origin is not None and issubclass(origin, Callable):  # type: ignore[arg-type]
        return "a function"
    if origin is not None and issubclass(origin, Sequence):
        items = PLURALS.get(parts[0], f"{_name(parts[0])} objects")
        fixed = issubclass(origin, tuple) and Ellipsis not in parts
        return f"a list of {len(parts)} {items}" if fixed else f"a list of {items}"
    name = _name(hint)
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"


def _all_words(hint: Any) -> str:
    return " or ".join(_words(each) for each in _alternatives(hint))


def _found(value: object, alternatives: list[Any]) -> str:
    """Return what was found: the kind of a value, or of its first wrong item."""
    for each in alternatives:
        origin, parts = typing.get_origin(each), typing.get_args(each)
        sequence = isinstance(origin, type) and issubclass(origin, Sequence)
        if sequence and isinstance(value, (list, tuple)):
            wrong = [item for item in value if not _one_of(item, parts[0])]
            return f"a list with {described(wrong[0])}" if wrong else f"{len(value)} long"
    return described(value)

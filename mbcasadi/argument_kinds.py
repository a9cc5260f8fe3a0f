"""Checks at public entry points that an argument is what its annotation says.

Annotations are checked by mypy in this package and by nothing in a program of a user, where a
wrong argument would fail far inside, in words of NumPy or CasADi. `checked` reads the annotations
of a function and refuses what is none of them before the function starts. Sizes, ranges and names
are for the function itself (`mbcasadi.shapes`).
"""

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from inspect import Parameter
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.annotations import hints_of, is_any_of, parts_of
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.readable_signatures import readable
from mbcasadi.real_numbers import described, real_array
from mbcasadi.unknown_names import unknown_argument

P = ParamSpec("P")
R = TypeVar("R")

MAKERS = {
    "System": "read_mjcf, from_lagrangian or from_equations makes one",
    "Linearization": "linearize makes one",
    "OptimalControlProblem": "optimal_control_problem makes one",
    "Task": "PostureTask, FrameTask, another task of mbcasadi.control, or one of your own",
    "Executor": "concurrent.futures has some, and client.get_executor() is that of a Dask Client",
    "SX": "symbols or expressions, as ca.SX.sym gives them",
}
"""What makes the objects that users do not construct themselves."""


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that refuses arguments which are not what its annotations say.

    The wrapper raises `ShapeError` for what is no array of numbers, and `ProblemError` for what
    is of another kind.
    """
    names = _ParameterNames.of(function)

    @wraps(function)
    def entry(*args: P.args, **kwargs: P.kwargs) -> R:
        hints = hints_of(function)
        for name, value in zip(names.positional, args, strict=False):
            if name in hints:
                _require(name, value, hints[name])
        if names.more in hints:
            for value in args[len(names.positional) :]:
                _require(names.more, value, hints[names.more])
        for name, value in kwargs.items():
            known = name in hints or name in names.single  # keys of a TypedDict have hints
            if not known and not names.options:
                raise unknown_argument(function.__qualname__, name, names.single)
            hint = name if known else names.options
            if hint in hints:
                _require(name, value, hints[hint])
        return function(*args, **kwargs)  # raises TypeError for arguments that do not fit

    entry.__dict__["__signature__"] = readable(function)
    return entry


class _ParameterNames(NamedTuple):
    """Names of a function's parameters: in order, all but `*more`, `**options`; "" for none."""

    positional: tuple[str, ...]
    single: frozenset[str]
    more: str
    options: str

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "_ParameterNames":
        kinds = {p.name: p.kind for p in inspect.signature(function).parameters.values()}

        def named(*wanted: object) -> tuple[str, ...]:
            return tuple(name for name, kind in kinds.items() if kind in wanted)

        in_order = named(Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        return cls(
            in_order,
            frozenset(in_order + named(Parameter.KEYWORD_ONLY)),
            next(iter(named(Parameter.VAR_POSITIONAL)), ""),
            next(iter(named(Parameter.VAR_KEYWORD)), ""),
        )


def require_fields(data: Any) -> None:
    """Raise unless each field of a dataclass is what its annotation says.

    Raises:
        ShapeError: a field is no array of numbers.
        ProblemError: a field is of another kind.
    """
    kind: Any = type(data)
    hints = hints_of(kind)
    for field in fields(data):
        if field.init:
            _require(field.name, getattr(data, field.name), hints[field.name])


def _require(name: str, value: object, hint: Any) -> None:
    """Raise unless a value is what an annotation says."""
    if is_any_of(value, hint):
        return
    alternatives = parts_of(hint)
    if ArrayLike in alternatives and isinstance(value, (np.ndarray, list, tuple)):
        real_array(name, value)  # its message is more exact
    is_number = isinstance(value, (float, int)) and not isinstance(value, bool)
    of_number = float in alternatives or int in alternatives
    found = f"= {value}" if is_number and of_number else f"is {_found(value, alternatives)}"
    words = dict.fromkeys(_words(each) for each in alternatives)
    expected = " or ".join(sorted(words, key=lambda word: word == "None"))  # None is the last
    advice = next((f": {MAKERS[w]}" for a in alternatives if (w := _name(a)) in MAKERS), "")
    kind = ShapeError if ArrayLike in alternatives else ProblemError
    raise kind(f"{name} {found}; expected {expected}{advice}")


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
    str: "names",
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
        return f"a mapping from {_all_words(parts[0])} to {_all_words(parts[1])}"
    if origin is not None and issubclass(origin, Callable):  # type: ignore[arg-type]
        return "a function"
    if origin is not None and issubclass(origin, Sequence):
        kinds = " or ".join(_name(each) for each in parts_of(parts[0]))
        items = PLURALS.get(parts[0], f"{kinds} objects")
        fixed = issubclass(origin, tuple) and Ellipsis not in parts
        return f"a list of {len(parts)} {items}" if fixed else f"a list of {items}"
    name = _name(hint)
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"


def _all_words(hint: Any) -> str:
    return " or ".join(_words(each) for each in parts_of(hint))


def _found(value: object, alternatives: list[Any]) -> str:
    """Return what was found: the kind of a value, or of its first wrong item."""
    for each in alternatives:
        origin, parts = typing.get_origin(each), typing.get_args(each)
        kind = origin if isinstance(origin, type) else object
        if issubclass(kind, Mapping) and isinstance(value, Mapping):
            wrong = [k for k, item in value.items() if not is_any_of(item, parts[1])]
            found = f"{described(value[wrong[0]])} for {wrong[0]!r}" if wrong else "other names"
            return f"a mapping with {found}"
        if issubclass(kind, Sequence) and isinstance(value, (list, tuple)):
            wrong = [item for item in value if not is_any_of(item, parts[0])]
            return f"a list with {described(wrong[0])}" if wrong else f"{len(value)} long"
    return described(value)

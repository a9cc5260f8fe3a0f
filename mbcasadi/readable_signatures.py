"""Signatures that a person can read: `q: ArrayLike | None` in `help` and `inspect.signature`.

NumPy's `ArrayLike` is a union of eight types, which Python prints in 250 characters. The
annotations themselves stay what they are: only what a signature shows is shorter.
"""

import inspect
import types
import typing
from collections.abc import Callable
from functools import cache, wraps
from inspect import Parameter, Signature
from typing import Any, Literal, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.unknown_names import unknown_argument

NUMBERS = frozenset(typing.get_args(ArrayLike))
"""Parts of NumPy's `ArrayLike`; none from Python 3.12 on, where it is an alias with a name."""

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])


class Shown:
    """An annotation with a short text in place of its own.

    Attributes:
        hint: the annotation.
    """

    def __init__(self, hint: Any) -> None:
        self.hint = hint

    def __repr__(self) -> str:
        return text_of(self.hint)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shown) and bool(self.hint == other.hint)

    def __hash__(self) -> int:
        return hash(self.hint)


def readable(function: Callable[..., Any]) -> Signature:
    """Return the signature of a function with short annotations."""
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=_shown(p.annotation)) for p in signature.parameters.values()]
    return signature.replace(
        parameters=parameters, return_annotation=_shown(signature.return_annotation)
    )


def readable_signature(function: Function) -> Function:
    """Return the function, which shows a readable signature."""
    function.__dict__["__signature__"] = readable(function)
    return function


def readable_fields(kind: type[T]) -> type[T]:
    """Return a dataclass with a readable signature, which says what an unknown argument means."""
    constructor: Any = kind.__init__
    names = [*inspect.signature(constructor).parameters][1:]

    @wraps(constructor)
    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in names:
                raise unknown_argument(kind.__name__, name, names)
        constructor(self, *args, **kwargs)

    shown: Any = initialise
    shown.__signature__ = readable(constructor)
    changed: Any = kind
    changed.__init__ = shown
    return kind


def _shown(hint: Any) -> Any:
    return hint if hint is Parameter.empty or isinstance(hint, (str, Shown)) else Shown(hint)


@cache
def text_of(hint: Any) -> str:
    """Return an annotation as its author would write it."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in {Union, types.UnionType}:
        return " | ".join(_texts_of_union(parts))
    if origin in {np.ndarray, NDArray}:
        return "NDArray"
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, parts))}]"
    if origin is not None:
        return f"{_name(origin)}[{', '.join(map(_text_of_part, parts))}]"
    return "None" if hint in {None, type(None)} else _name(hint)


def _texts_of_union(parts: tuple[Any, ...]) -> list[str]:
    """Return the texts of a union's parts, those of `ArrayLike` as one, None as the last."""
    numbers = bool(NUMBERS) and set(parts) >= NUMBERS
    own = [part for part in parts if not (numbers and part in NUMBERS)]
    texts = [text_of(part) for part in own if part is not type(None)]
    return [*texts, *["ArrayLike"] * numbers, *["None"] * (len(own) > len(texts))]


def _text_of_part(part: Any) -> str:
    if isinstance(part, list):  # the arguments of a Callable
        return f"[{', '.join(map(_text_of_part, part))}]"
    return "..." if part is Ellipsis else text_of(part)


def _name(hint: Any) -> str:
    return str(getattr(hint, "__name__", None) or repr(hint).removeprefix("typing."))

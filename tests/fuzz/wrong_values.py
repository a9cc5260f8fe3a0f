"""Values that an argument is not, and which of them an annotation allows after all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import casadi as ca
import numpy as np

from fuzz import examples as ex
from mbcasadi.description import Baumgarte, Contact
from mbcasadi.errors import MbcasadiError

__all__ = ["MbcasadiError", "Wrong", "never", "perhaps", "spoiled"]


@dataclass(frozen=True)
class Wrong:
    """One value with its name for messages.

    Attributes:
        name: of the value.
        value: itself.
        allowed: words of an annotation that make it a right value.
    """

    name: str
    value: Any
    allowed: tuple[str, ...] = ()


NUMBERS = ("ArrayLike", "Array", "Sequence[float]", "ndarray", "_NestedSequence", "Expression")
SYMBOLS = ("SX", "MX", "DM", "Sym", "_NestedSequence", "Any")


def never() -> list[Wrong]:
    """Return values that are refused unless the annotation names their kind."""
    return [
        Wrong("object()", object()),
        Wrong("None", None, ("None", "Optional")),
        Wrong("a text", "no such name", ("str", "Path")),
        Wrong("a System", ex.four_bar(), ("System",)),
        Wrong("a Linearization", ex.linear(), ("Linearization",)),
        Wrong("a Law", ex.law(), ("Law", "HasController")),
        Wrong("a class", int, ("type",)),
        Wrong("NaN", float("nan")),
        Wrong("a mapping", {"no such name": 1.0}, ("Mapping", "dict")),
        Wrong("[None]", [None]),
        Wrong("ragged rows", [[1.0, 2.0], [3.0]]),
        Wrong("three indices", np.zeros((2, 2, 2))),
        Wrong("complex numbers", np.array([0.1 + 1j, 0.2])),
        Wrong("masked numbers", np.ma.masked_array([0.1, 0.2], mask=[False, True])),
        Wrong("NaN in an array", np.array([np.nan, 0.0])),
        Wrong("a symbol of another shape", ca.SX.sym("wrong", 5, 2)),
    ]


def perhaps() -> list[Wrong]:
    """Return values that may be right: an answer or an exception of ours, nothing else."""
    return [
        Wrong("True", True),
        Wrong("-1", -1),
        Wrong("0", 0),
        Wrong("infinity", float("inf")),
        Wrong("1.5", 1.5),
        Wrong("an empty list", []),
        Wrong("an empty text", ""),
        Wrong("an empty matrix", np.zeros((0, 0))),
        Wrong("a name twice", ["a", "a"]),
        Wrong("an empty mapping", {}),
    ]


def spoiled() -> dict[str, list[tuple[str, Any]]]:
    """Return, by the name of a data class, objects of it with one wrong field."""
    return {type(each).__name__: list(_spoil(each)) for each in right_data()}


def right_data() -> tuple[Any, ...]:
    """Return one object of each data class that a user makes and that others check."""
    return (
        Baumgarte(1.0, 1.0),
        Contact("tracer"),
    )


def _spoil(each: Any) -> Iterator[tuple[str, Any]]:
    """Yield objects with one wrong field."""
    for part in fields(each):
        kind = str(part.type)
        for name, value in (("object()", object()), ("NaN", np.nan), ("None", None), ("a text", "no such name"), ("-1", -1)):
            if name == "None" and "None" in kind or kind == "bool":
                continue
            yield f"{type(each).__name__}({part.name}={name})", replace(each, **{part.name: value})

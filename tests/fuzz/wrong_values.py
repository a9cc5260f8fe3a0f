"""Values that an argument is not, or hardly ever is."""

from dataclasses import fields, replace
from functools import cache
from typing import Any

import casadi as ca
import numpy as np

import mbcasadi as mb
from fuzz import examples as ex
from mbcasadi import control

MADE_BY_USERS = (mb.Baumgarte, mb.Contact, control.Gains)
"""Data that hold what they are given: the functions that take them check their fields."""

NUMBERS = {
    "NaN": float("nan"),
    "infinity": float("inf"),
    "-1": -1,
    "0": 0,
    "1.5": 1.5,
    "True": True,
}
OBJECTS = {
    "object()": object(),
    "None": None,
    "a text": "no such name",
    "an empty text": "",
    "a class": int,
    "an empty mapping": {},
    "a mapping": {"no such name": 1.0},
    "an empty list": [],
    "[None]": [None],
    "a name twice": ["a", "a"],
}
ARRAYS = {
    "ragged rows": [[1.0, 2.0], [3.0]],
    "three indices": np.zeros((2, 2, 2)),
    "complex numbers": np.array([0.1 + 1j, 0.2]),
    "masked numbers": np.ma.masked_array([0.1, 0.2], mask=[False, True]),
    "NaN in an array": np.array([np.nan, 0.0]),
    "an empty matrix": np.zeros((0, 0)),
    "a symbol of another shape": ca.SX.sym("wrong", 5, 2),
}


@cache
def wrong_values() -> dict[str, Any]:
    """Return the wrong values by their names."""
    ours = {
        "a System": ex.four_bar(),
        "a Linearization": ex.linear(),
        "a Law": ex.law(),
    }
    return {**OBJECTS, **ours, **NUMBERS, **ARRAYS}


def with_wrong_fields(value: Any) -> dict[str, Any]:
    """Return copies of what users make, each with one wrong field.

    Of a list, the last one of each kind is changed: what looks at the first one only is found.
    """
    if isinstance(value, (list, tuple)) and not isinstance(value, MADE_BY_USERS):
        last = {type(item): k for k, item in enumerate(value)}
        return {
            name: [*value[:k], wrong, *value[k + 1 :]]
            for k in last.values()
            for name, wrong in with_wrong_fields(value[k]).items()
        }
    if not isinstance(value, MADE_BY_USERS):
        return {}
    few = {"object()": object(), "None": None, "a text": "no such name", **NUMBERS, **ARRAYS}
    return {
        f"{type(value).__name__}({field.name}={wrong})": replace(value, **{field.name: each})
        for field in fields(value)
        for wrong, each in few.items()
        if not is_right(each, str(field.type))
    }


def is_right(value: Any, annotation: str) -> bool:
    """Whether a value is a usual one, as the annotation says, or a function of the user."""
    if value is None:
        return "None" in annotation
    if value is True:
        return "bool" in annotation or "float" in annotation
    if isinstance(value, float) and value == 1.5:
        return "float" in annotation
    return callable(value) and "Callable" in annotation

"""Report data in the types of JSON."""

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""What JSON can hold."""


def plain_data(data: Mapping[str, object]) -> dict[str, Plain]:
    """Return `data` in the types of JSON; NaN and infinity become None."""
    return {str(key): _plain_value(value) for key, value in data.items()}


def _plain_value(value: object) -> Plain:
    if isinstance(value, Mapping):
        return plain_data(value)
    if isinstance(value, list | tuple):
        return [_plain_value(element) for element in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain_value(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"cannot write a {type(value).__name__} as JSON")

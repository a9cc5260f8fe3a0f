"""Arrays of real numbers, and the words for what is none."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import ShapeError

NOT_NUMBERS = (TypeError, ValueError, RuntimeError, NotImplementedError, Warning)
"""What NumPy, CasADi and others' arrays raise where they are no array of numbers."""


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
    if type(value) is np.ndarray and value.dtype.kind in "fiub":  # nothing to find out
        return value.astype(float, copy=False)
    if type(value) in (list, tuple, float) and _is_plain(value):
        return np.array(value, dtype=float)
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ShapeError(
            f"{name} has {int(value.mask.sum())} masked entries; expected a number in each: "
            "fill them, or leave them out"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # CasADi's note on conversion to an array
            array: NDArray[Any] = np.asarray(value)
        has_none = array.dtype.kind == "O" and any(each is None for each in array.ravel().tolist())
        if array.dtype.kind in "USMm" or has_none:
            raise TypeError("NumPy would turn texts and dates into numbers, None into NaN")
        numbers = array if array.dtype.kind == "c" else array.astype(float, copy=False)
    except NOT_NUMBERS:
        raise ShapeError(f"{name} is {described(value)}; expected numbers") from None
    if numbers.dtype.kind == "c":
        raise ShapeError(f"{name} is complex; expected real numbers: give its real part")
    return numbers


def _is_plain(value: Any) -> bool:
    """Whether a list, a tuple or a number holds numbers of Python's or NumPy's type float alone."""
    return type(value) is float or all(type(each) in (float, np.float64) for each in value)

"""Shape checks at public doors, in the words of the docstrings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.errors import ShapeError, UnknownNameError


def column(name: str, value: ArrayLike, size: int, *, finite: bool = True) -> NDArray[np.float64]:
    """Return `value` as a float array of shape (size,).

    Accepts (size,), (size, 1) and anything that NumPy turns into one of them.

    Raises:
        ShapeError: another shape, or NaN or infinity while `finite` is set.
    """
    array = np.asarray(value, dtype=float)
    if array.shape not in {(size,), (size, 1)}:
        raise ShapeError(f"{name} has shape {array.shape}, expected ({size},)")
    if finite and not np.all(np.isfinite(array)):
        raise ShapeError(f"{name} holds NaN or infinity: {array.ravel()}; expected finite numbers")
    return array.reshape(size).copy()


def require_shape(name: str, value: Any, shape: tuple[int, int], meaning: str = "") -> None:
    """Raise `ShapeError` unless the CasADi or NumPy matrix `value` has this shape."""
    found = tuple(value.shape)
    if found != shape:
        hint = f" = {meaning}" if meaning else ""
        raise ShapeError(f"{name} has shape {found}, expected {shape}{hint}")


def require_each(name: str, given: object, kind: type) -> None:
    """Raise `ShapeError` unless `given` is a list or tuple of objects of this kind."""
    parts = given if isinstance(given, (list, tuple)) else (given,)
    wrong = next((type(one).__name__ for one in parts if not isinstance(one, kind)), None)
    if parts is not given or wrong is not None:
        found = f"holds a {wrong}" if wrong and parts is given else f"is a {type(given).__name__}"
        raise ShapeError(f"{name} {found}; expected a list of {kind.__name__} objects")


def require_name(kind: str, name: str, valid: Sequence[str]) -> None:
    """Raise `UnknownNameError` with the valid names unless `name` is one of them."""
    if name not in valid:
        listed = ", ".join(repr(v) for v in valid) if valid else "none"
        raise UnknownNameError(f"unknown {kind} {name!r}; valid: {listed}")

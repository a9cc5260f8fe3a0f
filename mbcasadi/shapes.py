"""Checks of shapes, numbers and names at public entry points, in the words of the docstrings."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.description.c_names import is_c_name
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.real_numbers import described as described
from mbcasadi.real_numbers import real_array as real_array
from mbcasadi.unknown_names import require_name as require_name

Array = NDArray[np.float64]


def column(name: str, value: ArrayLike, size: int, *, finite: bool = True) -> NDArray[np.float64]:
    """Return `value` as a float array of shape (size,).

    Args:
        name: of the value, for messages.
        value: (size,), (size, 1), or anything that NumPy turns into one of them.
        size: number of entries.
        finite: refuse NaN and infinity.

    Raises:
        ShapeError: another shape, no real numbers, or NaN or infinity while `finite` is set.
    """
    array = real_array(name, value)
    if array.shape not in {(size,), (size, 1)}:
        raise ShapeError(f"{name} has shape {array.shape}, expected ({size},)")
    if finite and not np.all(np.isfinite(array)):
        raise ShapeError(f"{name} holds NaN or infinity: {array.ravel()}; expected finite numbers")
    return array.reshape(size).copy()


def matrix(name: str, value: object, shape: tuple[int, ...], *, finite: bool = True) -> Array:
    """Return `value` as a float array of this shape.

    Args:
        name: of the value, for messages.
        value: anything that NumPy turns into such an array.
        shape: of the array.
        finite: refuse NaN and infinity.

    Raises:
        ShapeError: another shape, no real numbers, or NaN or infinity while `finite` is set.
    """
    array = real_array(name, value)
    if array.shape != shape:
        raise ShapeError(f"{name} has shape {array.shape}, expected {shape}")
    if finite and not np.all(np.isfinite(array)):
        raise ShapeError(f"{name} holds NaN or infinity; expected finite numbers")
    return array.copy()


def require_kind(name: str, value: object, kind: type, advice: str = "") -> None:
    """Raise `ProblemError` unless `value` is of this kind.

    Args:
        name: of the value, for messages.
        value: of the caller.
        kind: expected.
        advice: what makes one.
    """
    if not isinstance(value, kind):
        hint = f": {advice}" if advice else ""
        raise ProblemError(f"{name} is {described(value)}; expected a {kind.__name__}{hint}")


def require_texts(name: str, value: object) -> None:
    """Raise `ProblemError` unless `value` is a list or tuple of texts; one text alone is not."""
    if not isinstance(value, (list, tuple)):
        raise ProblemError(f"{name} is {described(value)}; expected a list of names")
    wrong = [one for one in value if not isinstance(one, str)]
    if wrong:
        raise ProblemError(f"{name} holds {described(wrong[0])}; expected a list of names")


def require_shape(name: str, value: Any, shape: tuple[int, int], meaning: str = "") -> None:
    """Raise `ShapeError` unless the matrix has this shape.

    Args:
        name: of the matrix, for messages.
        value: a CasADi or NumPy matrix.
        shape: (rows, columns).
        meaning: the shape in symbols, for messages.
    """
    found = tuple(value.shape)
    if found != shape:
        hint = f" = {meaning}" if meaning else ""
        raise ShapeError(f"{name} has shape {found}, expected {shape}{hint}")


def require_square(name: str, value: Any) -> None:
    """Raise `ShapeError` unless a matrix or a sparsity pattern is square."""
    rows, columns = value.shape
    if rows != columns:
        raise ShapeError(f"{name} has shape {(rows, columns)}, expected a square matrix")


def require_rows(name: str, value: Any, rows: int) -> None:
    """Raise `ShapeError` unless a matrix has this number of rows."""
    if value.shape[0] != rows:
        raise ShapeError(f"{name} has shape {value.shape}, expected {rows} rows")


def require_scale(name: str, value: Any, count: int) -> None:
    """Raise `ShapeError` unless an expression is a number or has one for each row, (count, 1)."""
    if getattr(value, "shape", ()) not in {(), (1, 1), (count, 1)}:
        raise ShapeError(f"{name} has shape {value.shape}, expected a number or ({count}, 1)")


def require_each(name: str, given: object, kind: type) -> None:
    """Raise `ShapeError` unless `given` is a list or tuple of objects of this kind."""
    parts = given if isinstance(given, (list, tuple)) else (given,)
    wrong = next((type(one).__name__ for one in parts if not isinstance(one, kind)), None)
    if parts is not given or wrong is not None:
        found = f"holds a {wrong}" if wrong and parts is given else f"is a {type(given).__name__}"
        raise ShapeError(f"{name} {found}; expected a list of {kind.__name__} objects")


def number(name: str, value: object) -> float:
    """Return a number.

    Raises:
        ProblemError: `value` is none; a text or an array is not taken for one.
    """
    array = real_array(name, value) if not isinstance(value, (str, bytes)) else np.zeros(0)
    if array.ndim or value is None:
        raise ProblemError(f"{name} is {described(value)}; expected a number")
    return float(array)


def require_numbers(**numbers: float) -> None:
    """Raise `ProblemError` for a number that is not finite and not negative."""
    for name, value in numbers.items():
        if not np.isfinite(number(name, value)) or value < 0:
            raise ProblemError(f"{name} = {value}; expected a finite number, not negative")


def require_choice(name: str, value: str, valid: Sequence[str]) -> None:
    """Raise `ProblemError` unless an option has one of its values."""
    if not isinstance(value, str) or value not in valid:
        listed = ", ".join(repr(each) for each in valid)
        raise ProblemError(f"{name} = {described(value)}; expected one of {listed}")


def require_positive(**numbers: float) -> None:
    """Raise `ProblemError` for a number that is not finite and positive."""
    for name, value in numbers.items():
        if not np.isfinite(number(name, value)) or value <= 0:
            raise ProblemError(f"{name} = {value}; expected a finite, positive number")


def require_share(**numbers: float) -> None:
    """Raise `ProblemError` for a number that is not a share: at least zero and below one."""
    for name, value in numbers.items():
        if not 0 <= number(name, value) < 1:
            raise ProblemError(f"{name} = {value}; expected a share, at least 0 and below 1")


PERIOD_ROUNDING = 1e-6
"""Difference of a ratio of times from a whole number that counts as rounding."""


def require_whole(least: int, **numbers: float) -> None:
    """Raise `ProblemError` for a number that is not whole, or less than the least one."""
    for name, value in numbers.items():
        if not number(name, value).is_integer() or value < least:
            raise ProblemError(f"{name} = {value}; expected a whole number, at least {least}")


def count_of_periods(name: str, value: float, period: float) -> int:
    """Return how many periods a duration has, at least one.

    Args:
        name: of the duration, for messages.
        value, period: s.

    Raises:
        ProblemError: no positive numbers, or a duration that is no multiple of the period.
    """
    require_positive(**{name: value, "period": period})
    ratio = value / period
    count = round(ratio)
    if value < period * (1 - PERIOD_ROUNDING):
        raise ProblemError(f"{name} = {value:g} s is shorter than one period of {period:g} s")
    if abs(ratio - count) > PERIOD_ROUNDING * (1 + PERIOD_ROUNDING * ratio):
        low = max(1, math.floor(ratio))
        raise ProblemError(
            f"{name} = {value:g} s is no multiple of the period of {period:g} s; expected for "
            f"example {low * period:g} s or {(low + 1) * period:g} s"
        )
    return count


def require_identifier(name: str, value: str) -> None:
    """Raise `ProblemError` unless an option is a C identifier."""
    if not is_c_name(value):
        raise ProblemError(
            f"{name} {value!r}; expected a C identifier: a letter, then letters, digits or "
            "underscores, and no word of C or of its library"
        )


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, repeated ones with a count: foot, then foot_2."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return tuple(result)


ASYMMETRY = 1e-9
"""Relative difference of a weight and its transpose that is taken for rounding."""


NEGATIVE = 1e-9
"""Eigenvalue of a weight, relative to the largest, below whose negative it is indefinite."""


def weight(name: str, value: ArrayLike, size: int, *, definite: bool = False) -> Array:
    """Return a symmetric weight (size, size).

    Args:
        name: of the weight, for messages.
        value: (size, size), or its diagonal (size,), or one number for the whole diagonal.
        size: number of rows.
        definite: refuse a weight that is not positive definite.

    Raises:
        ShapeError: another shape, or NaN.
        ProblemError: not symmetric, or negative (not positive where `definite`) somewhere.
    """
    given = real_array(name, value)
    if given.shape not in {(), (size,), (size, size)}:
        raise ShapeError(
            f"{name} has shape {given.shape}, expected ({size}, {size}), or ({size},) or a number "
            "for a diagonal one"
        )
    full = given if given.ndim == 2 else np.diag(np.broadcast_to(given, size))
    if not np.all(np.isfinite(full)):
        raise ShapeError(f"{name} holds NaN or infinity; expected finite numbers")
    if np.abs(full - full.T).max(initial=0.0) > ASYMMETRY * np.abs(full).max(initial=0.0):
        raise ProblemError(f"{name} is not symmetric; expected a weight `xᵀ {name} x`")
    least = float(np.linalg.eigvalsh(full).min(initial=np.inf))
    if least < -NEGATIVE * np.abs(full).max(initial=0.0) or (definite and not least > 0):
        wanted = "all eigenvalues positive" if definite else "none negative"
        raise ProblemError(f"{name} has the eigenvalue {least:.3g}; expected {wanted}")
    return np.asarray((full + full.T) / 2)


def bounds(name: str, value: ArrayLike | None, size: int) -> Array:
    """Return (size, 2) bounds, infinite by default.

    Raises:
        ShapeError: another shape, or NaN.
        ProblemError: a lower bound above its upper one.
    """
    given = np.tile([-np.inf, np.inf], (size, 1)) if value is None else real_array(name, value)
    if given.shape != (size, 2) or np.any(np.isnan(given)):
        raise ShapeError(f"{name} has shape {given.shape}, expected ({size}, 2), without NaN")
    low, high = given.T
    empty = np.flatnonzero((low > high) | (low == np.inf) | (high == -np.inf))
    if empty.size:
        i = empty[0]
        raise ProblemError(f"{name}[{i}] is {low[i]} to {high[i]}: empty; expected low <= high")
    return given

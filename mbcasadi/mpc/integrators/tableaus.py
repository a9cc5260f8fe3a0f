"""Coefficients of explicit Runge-Kutta methods."""

from dataclasses import dataclass
from typing import cast

from mbcasadi.linalg.symbols import Sym


@dataclass(frozen=True)
class Tableau:
    """Coefficients of an explicit method: `a` row by row below the diagonal, `b`, `c`."""

    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    c: tuple[float, ...]


TABLEAUS = {
    1: Tableau(((),), (1.0,), (0.0,)),
    2: Tableau(((), (0.5,)), (0.0, 1.0), (0.0, 0.5)),
    3: Tableau(((), (0.5,), (-1.0, 2.0)), (1 / 6, 2 / 3, 1 / 6), (0.0, 0.5, 1.0)),
    4: Tableau(
        ((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)),
        (1 / 6, 1 / 3, 1 / 3, 1 / 6),
        (0.0, 0.5, 0.5, 1.0),
    ),
}
"""Euler, midpoint, Kutta of order 3, and the classical method of order 4."""


def weighted_sum(weights: tuple[float, ...], rates: list[Sym]) -> Sym:
    """Return the weighted sum, zero weights left out."""
    total = sum(w * rate for w, rate in zip(weights, rates, strict=True) if w)
    return cast(Sym, total)

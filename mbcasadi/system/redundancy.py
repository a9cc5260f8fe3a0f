"""Rank, redundancy and consistency of constraint rows at one state, as numbers and as text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.shapes import column
from mbcasadi.short_text import summarised
from mbcasadi.system.functions import evaluate
from mbcasadi.system.limits import Array
from mbcasadi.system.parametric import at_model_values
from mbcasadi.system.sizes import residual_sizes, sized_rows
from mbcasadi.system.system import System

REDUNDANT_SHARE = 1e-6  # remainder of a row, relative to its length, that counts as zero
VANISHING = 1e-9  # length of a row, relative to its usual one, that counts as zero
CONSISTENT = 1e-9  # part of the rate or bias outside range(A), relative to it, that counts as zero
SHARE = 1e-6  # coefficient of a row in another one, both of the length one, that counts as zero


@summarised
@dataclass(frozen=True)
class Redundancy:
    """Dependence of the rows of A on each other; rows are counted from 0, as in A.

    Attributes:
        rows: number of rows, including those that the mask switches off.
        rank: rank of A.
        off: rows that the mask switches off.
        vanishing: rows that are zero here.
        repeated: row → rows before it whose combination it is.
        residual: largest |phi|, m or rad.
        no_velocity: `max |(I - A A⁺) a0|`: above zero, no velocity obeys all rows. Zero where it is
            rounding; the number depends on the units of the rows.
        no_acceleration: `max |(I - A A⁺) c|`, likewise of accelerations.

    Rank and verdicts are decided in the sizes of coordinates and residuals, which no unit changes.
    """

    rows: int
    rank: int
    off: tuple[int, ...]
    vanishing: tuple[int, ...]
    repeated: dict[int, tuple[int, ...]]
    residual: float
    no_velocity: float
    no_acceleration: float

    @property
    def consistent(self) -> bool:
        """Whether velocities and accelerations exist that obey all rows."""
        return self.no_velocity == 0.0 == self.no_acceleration

    @property
    def in_words(self) -> str:
        """`7 rows, rank 5: rows 3 and 6 repeat others here`."""
        if self.rows == 0:
            return "no constraints"
        parts = [
            _row_text(self.off, "is switched off", "are switched off"),
            _row_text(self.vanishing, "vanishes here", "vanish here"),
            _row_text(tuple(self.repeated), "repeats others here", "repeat others here"),
        ]
        if self.no_velocity > 0:
            parts.append(f"no velocity obeys them all (by {self.no_velocity:.1e})")
        if self.no_acceleration > 0:
            parts.append(f"no acceleration obeys them all (by {self.no_acceleration:.1e})")
        text = "; ".join(text for text in parts if text)
        head = f"{self.rows} row{'s' * (self.rows > 1)}, rank {self.rank}"
        return f"{head}: {text}" if text else f"{head}: all independent here"


@checked
@at_model_values
def redundancy(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None = None,
    t: float = 0.0,
    mask: ArrayLike | None = None,
) -> Redundancy:
    """Return the dependence of the constraint rows on each other at a state.

    Args:
        system: the mechanism.
        q: (nq,) configuration.
        v: (nv,) velocity, zero by default.
        t: time, s, where constraints depend on it.
        mask: (nc,) active rows; the system's own by default.

    Raises:
        ShapeError: a wrong shape, or NaN.
    """
    at: dict[str, ArrayLike] = {
        "q": column("q", q, system.nq),
        "v": column("v", np.zeros(system.nv) if v is None else v, system.nv),
        "t": t,
    }
    rows_on = mask if mask is not None else system.mask
    on = np.ones(system.nc) if rows_on is None else column("mask", rows_on, system.nc)
    A = on[:, None] * np.array(evaluate(system.constraint_jacobian, at))
    a0 = on * np.array(evaluate(system.constraint_rate, at | {"v": np.zeros(system.nv)})).ravel()
    c = on * np.array(evaluate(system.constraint_bias, at)).ravel()
    phi = on * np.array(evaluate(system.constraint, at)).ravel()
    off = tuple(int(i) for i in np.flatnonzero(on == 0))
    sizes = residual_sizes(system)
    sized = sized_rows(system, A)
    lengths, usual = np.linalg.norm(sized, axis=1), system.scales.rows / sizes
    is_vanishing = lengths < VANISHING * usual
    vanishing = tuple(int(i) for i in np.flatnonzero(is_vanishing & (on > 0)))
    independent, repeated = _split_rows(sized, lengths, ~is_vanishing)
    return Redundancy(
        rows=system.nc,
        rank=len(independent),
        off=off,
        vanishing=vanishing,
        repeated=repeated,
        residual=float(np.max(np.abs(phi), initial=0.0)),
        no_velocity=_largest_outside(sized[independent], sized, a0, sizes),
        no_acceleration=_largest_outside(sized[independent], sized, c, sizes),
    )


def _split_rows(
    A: Array, lengths: Array, counting: Array
) -> tuple[list[int], dict[int, tuple[int, ...]]]:
    """Return rows that are independent of those before them, and the combinations of the others."""
    independent: list[int] = []
    repeated: dict[int, tuple[int, ...]] = {}
    for i in np.flatnonzero(counting):
        row, basis = A[i] / lengths[i], A[independent] / lengths[independent, None]
        shares = np.linalg.lstsq(basis.T, row, rcond=None)[0] if independent else np.zeros(0)
        if independent and np.linalg.norm(row - shares @ basis) < REDUNDANT_SHARE:
            repeated[int(i)] = tuple(np.array(independent)[np.abs(shares) > SHARE].tolist())
        else:
            independent.append(int(i))
    return independent, repeated


def _largest_outside(independent: Array, A: Array, value: Array, sizes: Array) -> float:
    """Return the largest entry of the part of `value` outside range(A), zero where it is rounding.

    Args:
        independent: (rank, nv) rows of A that span the others.
        A: (nc, nv) rows over the sizes of residuals.
        value: (nc,) in the rows' own units.
        sizes: (nc,) of the residuals.
    """
    outside = value
    if len(independent):
        columns = A @ np.linalg.pinv(independent)  # range(A), with as many columns as its rank
        rest = value / sizes
        rest = rest - columns @ np.linalg.lstsq(columns, rest, rcond=None)[0]
        if np.all(np.abs(rest) <= CONSISTENT * np.abs(value / sizes).max(initial=0.0)):
            return 0.0
        own = sizes[:, None] * columns
        outside = value - own @ np.linalg.lstsq(own, value, rcond=None)[0]
    return float(np.max(np.abs(outside), initial=0.0))


def _row_text(rows: Sequence[int], singular: str, plural: str) -> str:
    if not rows:
        return ""
    if len(rows) == 1:
        return f"row {rows[0]} {singular}"
    numbers = ", ".join(str(row) for row in rows[:-1]) + f" and {rows[-1]}"
    return f"rows {numbers} {plural}"

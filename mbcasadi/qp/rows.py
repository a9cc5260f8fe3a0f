"""Inequality rows that know what they are.

Every row is `lower <= C_p p + C_lam lam + C_w w + C_a a <= upper` with actuator forces p,
multipliers lam, further unknowns w and accelerations a. What a row is of is data; its name is for
people.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.linalg import product
from mbcasadi.linalg.scalars import Late
from mbcasadi.readable_signatures import readable_fields

FORCE_UNIT = "N or N m"


@readable_fields
@dataclass(frozen=True)
class Bounded:
    """`lower <= value <= upper`, an expression of a stage's symbols; equal ends fix it.

    Attributes:
        value, lower, upper: (n,); one number bounds all entries.
        linear_penalty, quadratic_penalty: ρ₁ and ρ₂ of `ρ₁ e + ½ ρ₂ e²`, the cost of violating the
            row by e, at each sample. A row without any is hard. ρ₂ is at least ρ₁ / (100 b), b the
            row's largest bound, clipped to at most 1, and 1 where that is zero: without curvature
            the solution would be inaccurate. With ρ₁ above the multiplier of the hard row it is
            satisfied wherever it can be; far above, ρ₁ costs accuracy.
        name: for reports; `path[i]` or `end[i]` by default.
        at_end: whether it holds at the last sample, in place of all others.
    """

    value: ca.SX
    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf
    linear_penalty: float = 0.0
    quadratic_penalty: float = 0.0
    name: str = ""
    at_end: bool = False

    def __post_init__(self) -> None:
        require_fields(self)


LEAST_WIDTH = 1e-6
"""Share of its default below which the width of a moved range counts as this share."""


def moved_ends(row: Bounded, lower: ca.SX | float, upper: ca.SX | float) -> Bounded:
    """Return a row with expressions as ends, of which its own are the values now and then.

    Its value is mapped linearly, so that the numbers stay its bounds. Infinite ends stay so.
    """
    lower, upper = ca.SX(lower), ca.SX(upper)
    if lower.is_constant() and upper.is_constant():
        return row
    low, high = float(np.max(row.lower)), float(np.min(row.upper))
    if not np.isfinite(low):
        value = row.value + (high - upper)
    elif not np.isfinite(high) or high <= low:
        value = row.value + (low - lower)
    else:
        width = ca.fmax(upper - lower, LEAST_WIDTH * (high - low))
        value = low + (row.value - lower) * ((high - low) / width)
    return replace(row, value=value)


class Row(NamedTuple):
    """What a row is.

    Attributes:
        name: unique, for messages.
        limit: the limit that it belongs to, in words: "cone of FL" has a row for each face.
        kind: what is limited, as `SoftLimit` names it ("joints", "friction", ...).
        owner: whose it is, as ("actuator", name), ("contact", name), ("joint", name).
        unit: of the row.
        planned: deceleration of a limit of a position that is planned with, NaN for none; None for
            other limits.
        may_yield: whether the row may be soft: what an actuator cannot give cannot be violated.
    """

    name: str
    limit: str
    kind: str
    owner: tuple[str, str] = ("", "")
    unit: str = FORCE_UNIT
    planned: float | None = None
    may_yield: bool = True


@dataclass(frozen=True)
class Rows:
    """`lower <= C_p p + C_lam lam + C_w w + C_a a <= upper`.

    The last rows are those of `cones` quadratic cones, see `qp/quadratic_cones.py`.

    Attributes:
        about: what each row is.
        late: what stands for a call of a Function in the rows, or None.
    """

    C_p: ca.SX
    C_lam: ca.SX
    C_w: ca.SX
    C_a: ca.SX
    lower: ca.SX
    upper: ca.SX
    about: tuple[Row, ...]
    cones: int = 0
    late: Late | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each row."""
        return tuple(row.name for row in self.about)

    def places(self, kind: str) -> list[int]:
        """Return which rows are of a kind."""
        return [k for k, row in enumerate(self.about) if row.kind == kind]

    def value(self, p: ca.SX, lam: ca.SX, w: ca.SX, a: ca.SX) -> ca.SX:
        """Return the middle of the inequality (m,)."""
        return _middle((self.C_p, self.C_lam, self.C_w, self.C_a), (p, lam, w, a))

    def size(self, p: ca.SX, lam: ca.SX, w: ca.SX, a: ca.SX) -> ca.SX:
        """Return what the middle of the inequality (m,) would be if nothing in it cancelled."""
        absolute = tuple(
            type(C)(ca.fabs(ca.evalf(C))) if C.is_constant() else ca.fabs(C)
            for C in (self.C_p, self.C_lam, self.C_w, self.C_a)
        )
        return _middle(absolute, tuple(ca.fabs(x) for x in (p, lam, w, a)))

    def some(self, places: Sequence[int]) -> "Rows":
        """Return the rows at these places, none of a cone."""
        chosen = list(places)
        return Rows(
            C_p=self.C_p[chosen, :],
            C_lam=self.C_lam[chosen, :],
            C_w=self.C_w[chosen, :],
            C_a=self.C_a[chosen, :],
            lower=self.lower[chosen, 0],
            upper=self.upper[chosen, 0],
            about=tuple(self.about[i] for i in chosen),
        )


def _middle(matrices: tuple[ca.SX, ...], unknowns: tuple[ca.SX, ...]) -> ca.SX:
    """Return the sum of the products."""
    parts = [product(C, x) for C, x in zip(matrices, unknowns, strict=True) if C.nnz()]
    return ca.densify(sum(parts, type(unknowns[0])(matrices[0].shape[0], 1)))


def stack_rows(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts, one below the other; those of cones come last."""
    ordered = sorted(parts, key=lambda part: part.cones > 0)
    late = [part.late for part in ordered if part.late is not None]
    return Rows(
        C_p=ca.vertcat(*(part.C_p for part in ordered)),
        C_lam=ca.vertcat(*(part.C_lam for part in ordered)),
        C_w=ca.vertcat(*(part.C_w for part in ordered)),
        C_a=ca.vertcat(*(part.C_a for part in ordered)),
        lower=ca.vertcat(*(part.lower for part in ordered)),
        upper=ca.vertcat(*(part.upper for part in ordered)),
        about=tuple(row for part in ordered for row in part.about),
        cones=sum(part.cones for part in ordered),
        late=Late(*(ca.vertcat(*column) for column in zip(*late, strict=True))) if late else None,
    )


class Sizes(NamedTuple):
    """Numbers of actuator forces, multipliers, internal contact forces and accelerations."""

    nu: int
    m: int
    nw: int
    nv: int

    def rows(
        self, about: Sequence[Row], lower: ca.SX, upper: ca.SX, cones: int = 0, **matrices: ca.SX
    ) -> Rows:
        """Return rows; matrices that are not given are zero.

        Args:
            about: what the rows are.
            lower, upper: bounds.
            cones: number of quadratic cones that the rows are of.
            matrices: by their names in `Rows`.
        """
        k, names_of = len(about), ("C_p", "C_lam", "C_w", "C_a")
        zero = {name: ca.SX(k, size) for name, size in zip(names_of, self, strict=True)}
        filled: dict[str, Any] = zero | matrices
        return Rows(**filled, lower=lower, upper=upper, about=tuple(about), cones=cones)

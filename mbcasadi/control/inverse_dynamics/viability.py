"""What is demanded of limits of positions: no more than actuators can give, and the flag if it is.

A row of a joint or of a distance, `lower <= C a <= upper`, is bounded by what the actuator forces
within their ranges make of it at this state, `C T p + C t`: more is not demanded. Several rows
together, or beside friction cones and other limits, may still ask for more than there is. All of
them share one unknown, the shortfall s >= 0:

    lower - e⁻ s <= C a <= upper + e⁺ s,

with e the deceleration that the row demands on the side that it is pushed from, no less than the
planned one, and zero on the other side: s is the share of all demands that is not given. Its price
`L (s + ½ s²)` has a slope that exceeds what the tasks gain by it, so s is zero wherever the rows
can be kept. Rows that are soft by a `SoftLimit` have their own price, and with levels the rows are
hard.

The unknown of the QP is `w = (1 + s) (L / r_w)^½`, with the weight r_w that all unknowns w have.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.condensed_dynamics import Condensed
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.scales import ProblemScales
from mbcasadi.control.limits.soft_limits import SoftLimit, covers, soft_rows
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.linalg import product
from mbcasadi.linalg.scalars import in_scalars
from mbcasadi.qp.rows import Row, Rows, Sizes
from mbcasadi.qp.whitening import is_unbounded, shift_bounds
from mbcasadi.system.actuator_model import ActuatorModel

T = TypeVar("T", ca.SX, ca.DM)
Array = NDArray[np.float64]

SHORTFALL = "limits of positions: shortfall"
"""Name of the row `s >= 0`."""

LOST = 0.02
"""Share of a demand from which it counts as not given: braking with 2 % less is within what a
reserve covers."""

GIVEN = 0.99
"""Share of the actuators' ranges that a single row is given: at their very ends nothing is left for
rounding."""

SOFT_PULL = 10.0
"""Violation of a soft row that the price counts with, relative to what all actuators can give."""

MOST_DEMAND = 2.0
"""Largest demand, relative to what forces of unit size make of a row and all actuators give: the
inertia that a joint sees where others are free is smaller than its own."""


class Demands(NamedTuple):
    """What each row of a position demands, and what actuators can give of it.

    Attributes:
        asked: (k,) deceleration that is needed, rad/s² or m/s².
        given: (k,) the largest one that the actuators give within their ranges.
    """

    asked: ca.SX
    given: ca.SX


@dataclass(frozen=True)
class Viability:
    """The limits of positions of a controller, and the shortfall that they share.

    Attributes:
        rows: of positions, in their order.
        soft: limits that have a price of their own.
        strict: whether there are levels, with which all rows are hard.
    """

    rows: tuple[Row, ...]
    soft: tuple[SoftLimit, ...]
    strict: bool

    @classmethod
    def of(cls, setup: Setup) -> "Viability":
        """Return the limits of positions of a controller."""
        rows = tuple(row for each in setup.bound for row in each.positions)
        return cls(rows, tuple(setup.soft), bool(setup.levels))

    @cached_property
    def hard(self) -> list[bool]:
        """Which rows have no price of their own."""
        return [not any(covers(each, row) for each in self.soft) for row in self.rows]

    @cached_property
    def sharing(self) -> list[int]:
        """Which rows share the shortfall."""
        return [] if self.strict else [k for k, hard in enumerate(self.hard) if hard]

    def shortfall_row(self, sizes: Sizes) -> Rows:
        """Return the row `s >= 0`, without its entry: the problem has no units yet."""
        about = [Row(SHORTFALL, SHORTFALL, "shortfall")] if self.sharing else []
        ones = ca.SX.ones(len(about))
        return sizes.rows(about, ones, UNBOUNDED * ones)

    def price(self, scales: ProblemScales, about: Sequence[Row]) -> float:
        """Return L: the largest slope of the cost, times the largest demand.

        A task's error is clipped at `scales.required`, so no motion of unit size gains more than
        `pull`; soft rows gain by their price. A demand is bounded by what the actuators can give.

        Args:
            scales: the units of the problem.
            about: what all rows are.
        """
        strength = scales.strength
        if not np.isfinite(strength):  # an actuator has no limit: nothing bounds demands either
            sizes = {row.name: size for row, size in zip(about, scales.inequalities, strict=False)}
            rows = [self.rows[k] for k in self.sharing]
            demands = [float(row.planned or 0.0) / sizes[row.name] for row in rows]
            strength = max((x for x in demands if np.isfinite(x)), default=1.0)
        soft = sum(each.price + each.linear / strength for each in self.soft)
        pull = scales.pull + SOFT_PULL * soft * scales.task**2
        return float(MOST_DEMAND * pull * strength**2)

    def viable_rows(
        self, rows: Rows, condensed: Condensed, actuators: ActuatorModel, scales: ProblemScales
    ) -> tuple[Rows, Demands]:
        """Return the rows with bounded demands and a share of the shortfall, and the demands.

        Args:
            rows: the inequalities.
            condensed: the motion by the forces.
            actuators: their ranges.
            scales: the units of the problem.
        """
        if not self.rows:
            nothing = type(condensed.t)(0, 1)
            return rows, Demands(nothing, nothing)
        places = [rows.about.index(row) for row in self.rows]
        C_a, kind = rows.C_a[places, :], type(rows.lower)
        lower, upper, demand, asked, given = in_scalars(
            "viable",
            lambda terms: _bounded(
                terms, [float(row.planned or 0) for row in self.rows], self.hard
            ),
            {
                "of_p": ca.densify(product(C_a, condensed.T)),
                "rest": ca.densify(product(C_a, condensed.t)),
                "least": actuators.lower,
                "most": actuators.upper,
                "lower": rows.lower[places, 0],
                "upper": rows.upper[places, 0],
            },
        )
        all_lower, all_upper = kind(rows.lower), kind(rows.upper)
        all_lower[places], all_upper[places] = lower, upper
        rows = replace(rows, lower=all_lower, upper=all_upper)
        if self.sharing:
            own = [places[k] for k in self.sharing]
            rows = self._shared(rows, own, demand[self.sharing, 0], scales)
        return rows, Demands(asked, given)

    def _shared(self, rows: Rows, places: list[int], demand: ca.SX, scales: ProblemScales) -> Rows:
        """Return the rows with the columns of the shortfall.

        Args:
            rows: the inequalities.
            places: of those that share it.
            demand: e of each of them, negative on the lower side.
            scales: the units of the problem.
        """
        column, turn = self._column(rows.about), self._turn(scales, rows.about)
        entries = type(demand)(len(rows.about), 1)
        entries[places] = -turn * demand
        entries[rows.names.index(SHORTFALL)] = turn
        C_w = ca.horzcat(rows.C_w[:, :column], entries, rows.C_w[:, column + 1 :])
        lower, upper = type(demand)(rows.lower), type(demand)(rows.upper)
        lower[places] = shift_bounds(lower[places, 0], demand)
        upper[places] = shift_bounds(upper[places, 0], demand)
        return replace(rows, C_w=C_w, lower=lower, upper=upper)

    def _column(self, about: Sequence[Row]) -> int:
        """Return which of the unknowns w is the shortfall's: the first behind the slacks."""
        return len(soft_rows(about, self.soft))

    def _turn(self, scales: ProblemScales, about: Sequence[Row]) -> float:
        """Return `(r_w / L)^½`, of `1 + s = turn w`."""
        return float((scales.force_weights.internal / self.price(scales, about)) ** 0.5)

    def shortfall(self, scales: ProblemScales, about: Sequence[Row], w: ca.SX) -> ca.SX:
        """Return s of the unknowns w."""
        return self._turn(scales, about) * w[self._column(about), 0] - 1


def lost_rows(asked: T, given: T) -> T:
    """Return which rows (k,) demand more than actuators can give."""
    lost: T = asked > given + LOST * ca.fabs(asked)
    return lost


def _bounded(
    terms: dict[str, ca.SX], planned: Sequence[float], hard: Sequence[bool]
) -> list[ca.SX]:
    """Return lower and upper bounds, the signed demands, what is asked and what can be given."""
    k = terms
    middle, half = (k["most"] + k["least"]) / 2, GIVEN * (k["most"] - k["least"]) / 2
    centre, reach = k["rest"] + k["of_p"] @ middle, ca.fabs(k["of_p"]) @ half
    lower, upper, demands, asked, given = [], [], [], [], []
    for i, d in enumerate(planned):
        low, high, least = k["lower"][i], k["upper"][i], 0.0 if np.isnan(d) else d
        most = reach[i] - centre[i], reach[i] + centre[i]  # decelerations of each direction
        is_above = high + low < 0
        asked.append(ca.if_else(is_above, -high, low))
        given.append(ca.if_else(is_above, *most))
        if hard[i]:
            high = high if is_unbounded(high) else ca.fmax(high, -most[0])
            low = low if is_unbounded(low) else ca.fmin(low, most[1])
        demands.append(ca.if_else(is_above, ca.fmax(-high, least), -ca.fmax(low, least)))
        lower.append(low)
        upper.append(high)
    return [ca.vertcat(*column) for column in (lower, upper, demands, asked, given)]

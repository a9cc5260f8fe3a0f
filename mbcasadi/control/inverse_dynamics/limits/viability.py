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
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.condensed_dynamics import Condensed
from mbcasadi.control.inverse_dynamics.inequalities import Rows, Sizes
from mbcasadi.control.inverse_dynamics.limits.soft_limits import covers, soft_rows
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.linalg import product
from mbcasadi.linalg.scalars import in_scalars
from mbcasadi.qp.whitening import is_unbounded, shift_bounds
from mbcasadi.system.actuator_model import ActuatorModel

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.options import Setup
    from mbcasadi.control.inverse_dynamics.scaling import ProblemScales

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


class PositionRow(NamedTuple):
    """A row that keeps a position: its name, and the deceleration that is planned; NaN for none."""

    name: str
    planned: float


class Demands(NamedTuple):
    """What each row of a position demands, and what actuators can give of it.

    Attributes:
        asked: (k,) deceleration that is needed, rad/s² or m/s².
        given: (k,) the largest one that the actuators give within their ranges.
    """

    asked: ca.SX
    given: ca.SX


def position_rows(setup: "Setup") -> tuple[PositionRow, ...]:
    """Return the rows of joints and distances, in their order."""
    joints, distances = setup.limited_joints, setup.limited_distances
    rows = []
    if joints is not None:
        for name, planned in zip(joints.names, joints.planned, strict=True):
            rows.append(PositionRow(f"joint '{name}': range", float(planned)))
    if distances is not None:
        planned = distances.limits.planned
        rows += [PositionRow(name, planned) for name in distances.row_names]
    return tuple(rows)


def sharing_rows(setup: "Setup") -> tuple[PositionRow, ...]:
    """Return those that share the shortfall; none with levels."""
    if setup.levels:
        return ()
    rows = position_rows(setup)
    return tuple(row for row in rows if not any(covers(each, row.name) for each in setup.soft))


def shortfall_row(setup: "Setup", sizes: Sizes) -> Rows:
    """Return the row `s >= 0`, without its entry: the units of the problem are not known yet."""
    names = [SHORTFALL] if sharing_rows(setup) else []
    return sizes.rows(names, ca.SX.ones(len(names)), UNBOUNDED * ca.SX.ones(len(names)))


def shortfall_price(setup: "Setup", scales: "ProblemScales", names: Sequence[str]) -> float:
    """Return L: the largest slope of the cost, times the largest demand.

    A task's error is clipped at `scales.required`, so no motion of unit size gains more than
    `pull`; soft rows gain by their price. A demand is bounded by what the actuators can give.

    Args:
        setup: the options.
        scales: the units of the problem.
        names: of all rows.
    """
    strength = scales.strength
    if not np.isfinite(strength):  # an actuator has no limit: nothing bounds demands either
        demands = [
            row.planned / scales.inequalities[list(names).index(row.name)]
            for row in sharing_rows(setup)
        ]
        strength = max((x for x in demands if np.isfinite(x)), default=1.0)
    soft = sum(each.price + each.linear / strength for each in setup.soft)
    pull = scales.pull + SOFT_PULL * soft * scales.task**2
    return float(MOST_DEMAND * pull * strength**2)


def viable_rows(
    setup: "Setup",
    rows: Rows,
    condensed: Condensed,
    actuators: ActuatorModel,
    scales: "ProblemScales",
) -> tuple[Rows, Demands]:
    """Return the rows with their demands bounded and a share of the shortfall, and the demands.

    Args:
        setup: the options.
        rows: the inequalities.
        condensed: the motion by the forces.
        actuators: their ranges.
        scales: the units of the problem.
    """
    kept = position_rows(setup)
    if not kept:
        nothing = type(condensed.t)(0, 1)
        return rows, Demands(nothing, nothing)
    names = list(rows.names)
    places = [names.index(row.name) for row in kept]
    C_a = rows.C_a[places, :]
    kind = type(rows.lower)
    sharing = {row.name for row in sharing_rows(setup)}
    hard = [not any(covers(each, row.name) for each in setup.soft) for row in kept]
    lower, upper, demand, asked, given = in_scalars(
        "viable",
        lambda terms: _bounded(terms, [row.planned for row in kept], hard),
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
    if sharing:
        own = [k for k, row in enumerate(kept) if row.name in sharing]
        rows = _shared(setup, rows, [places[k] for k in own], demand[own, 0], scales)
    return rows, Demands(asked, given)


def _shared(
    setup: "Setup", rows: Rows, places: list[int], demand: ca.SX, scales: "ProblemScales"
) -> Rows:
    """Return the rows with the columns of the shortfall.

    Args:
        setup: the options.
        rows: the inequalities.
        places: of those that share it.
        demand: e of each of them, negative on the lower side.
        scales: the units of the problem.
    """
    column, turn = shortfall_column(setup, rows.names), shortfall_turn(setup, scales, rows.names)
    last = rows.names.index(SHORTFALL)
    entries = type(demand)(len(rows.names), 1)
    entries[places] = -turn * demand
    entries[last] = turn
    C_w = ca.horzcat(rows.C_w[:, :column], entries, rows.C_w[:, column + 1 :])
    lower, upper = type(demand)(rows.lower), type(demand)(rows.upper)
    lower[places] = shift_bounds(lower[places, 0], demand)
    upper[places] = shift_bounds(upper[places, 0], demand)
    return replace(rows, C_w=C_w, lower=lower, upper=upper)


def shortfall_column(setup: "Setup", names: Sequence[str]) -> int:
    """Return which of the unknowns w is the shortfall's: the first behind the slacks."""
    return len(soft_rows(names, setup.soft))


def shortfall_turn(setup: "Setup", scales: "ProblemScales", names: Sequence[str]) -> float:
    """Return `(r_w / L)^½`, of `1 + s = turn w`."""
    price = shortfall_price(setup, scales, names)
    return float((scales.force_weights(setup).internal / price) ** 0.5)


def shortfall(setup: "Setup", scales: "ProblemScales", names: Sequence[str], w: ca.SX) -> ca.SX:
    """Return s of the unknowns w."""
    turn = shortfall_turn(setup, scales, names)
    return turn * w[shortfall_column(setup, names), 0] - 1


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

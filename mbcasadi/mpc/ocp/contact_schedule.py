"""Rows that come with a schedule of contacts: what closes is closed, and nothing falls through.

A step of the dynamics moves the rows that its mask closes onto `phi = 0`, from any distance. These
rows of the path leave it nothing to move, and keep open unilateral rows on their side:

    -closing <= mask_i phi_i(q) <= closing           at the start of every interval
    sign_i phi_i(q) >= -closing                      at every sample, for rows "not below"

The given state is not planned but measured. Where feet land, the contacts of a plant have given
way, and for rows "not below" both bounds towards the closed side are wider there:

    sign_i phi_i(q) >= -depth,   sign_i mask_i phi_i(q) >= -depth        at the given state
"""

from collections.abc import Mapping
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.ocp.stage import Bounded, Stage
from mbcasadi.shapes import require_positive, unique
from mbcasadi.simulation.functions import holonomic_rows
from mbcasadi.system import evaluate

CLOSING = 5e-3
"""Largest distance from which a row may close, in the row's unit."""

DEPTH = 0.02
"""Largest depth of a row "not below" at the given state, in its unit. A contact of MuJoCo with its
default `solref` gives way by 7 mm for each m/s of a landing."""


class ScheduleRows(NamedTuple):
    """Rows of the path and of the end; `given` (n, 2) bounds those of the path in a given state."""

    path: tuple[Bounded, ...]
    end: tuple[Bounded, ...]
    given: Array


def schedule_rows(
    stage: Stage, closing: float, depth: float, not_below: Mapping[str, int]
) -> ScheduleRows:
    """Return the rows of a stage whose system has a mask; none otherwise.

    Args:
        stage: symbols and parameters.
        closing: largest distance from which a row may close, in its unit.
        depth: largest depth of a row "not below" at the given state, in its unit; `closing` where
            that is larger.
        not_below: 1 for `phi >= 0`, -1 for `phi <= 0`, by the name of the row.

    Raises:
        ProblemError: a distance that is not positive; another sign; no such row, one of velocities
            only, or no mask.
    """
    require_positive(closing=closing, depth=depth)
    depth = max(depth, closing)
    system = stage.system
    if system.mask is None:
        if not_below:
            raise ProblemError(
                f"not_below = {dict(not_below)}, but no row of '{system.name}' is switched; "
                "expected system.with_mask()"
            )
        return ScheduleRows((), (), np.empty((0, 2)))
    names, of_q = unique(system.constraint_names), holonomic_rows(system).full().ravel() > 0
    _check(system.name, not_below, [n for n, yes in zip(names, of_q, strict=True) if yes])
    inputs = {"q": stage.variables.q, "v": ca.DM.zeros(system.nv), "t": stage.ref.get("t", 0)}
    phi, mask = ca.SX(evaluate(system.constraint, inputs)), stage.ref["mask"]
    switched = [name for name, yes in zip(names, of_q, strict=True) if yes]
    closed = [
        Bounded((mask * phi)[names.index(name)], -closing, closing, name=f"closing.{name}")
        for name in switched
    ]
    above = [
        Bounded(sign * phi[names.index(name)], -closing, name=f"not_below.{name}")
        for name, sign in not_below.items()
    ]
    sides = {0: [-closing, closing], 1: [-depth, closing], -1: [-closing, depth]}
    given = [sides[not_below.get(name, 0)] for name in switched]
    given += [[-depth, np.inf]] * len(above)
    return ScheduleRows((*closed, *above), tuple(above), np.reshape(given, (-1, 2)))


def _check(system: str, not_below: Mapping[str, int], valid: list[str]) -> None:
    for name, sign in not_below.items():
        if name not in valid:
            raise ProblemError(
                f"not_below: no row {name!r} of positions in '{system}'; expected some of {valid}"
            )
        if sign not in (-1, 1):
            raise ProblemError(f"not_below: {name} has the sign {sign}; expected 1 or -1")

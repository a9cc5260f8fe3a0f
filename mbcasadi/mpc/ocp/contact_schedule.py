"""Rows that come with a schedule of contacts: what closes is closed, and nothing falls through.

A step of the dynamics moves the rows that its mask closes onto `phi = 0`, from any distance. These
rows of the path leave it nothing to move, and keep open unilateral rows on their side:

    -closing <= mask_i phi_i(q) <= closing           at the start of every interval
    sign_i phi_i(q) >= -closing                      at every sample, for rows "not below"

The given state is not planned but measured. Where feet land, they penetrate the floor of a
plant, and for rows "not below" both bounds towards the closed side are wider there:

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
from mbcasadi.simulation.active_rows import holonomic_rows
from mbcasadi.system import System, evaluate
from mbcasadi.system.sizes import residual_sizes

CLOSING = 0.01
"""Largest distance from which a row may close, over the size of its residual."""

DEPTH = 0.04
"""Largest depth of a row "not below" at the given state, over the size of its residual. With
MuJoCo's default `solref` a foot that lands penetrates the floor by 7 mm for each m/s."""


class ScheduleRows(NamedTuple):
    """Rows of the path and of the end; `given` (n, 2) bounds those of the path in a given state."""

    path: tuple[Bounded, ...]
    end: tuple[Bounded, ...]
    given: Array


def schedule_rows(
    stage: Stage, closing: float | None, depth: float | None, not_below: Mapping[str, int]
) -> ScheduleRows:
    """Return the rows of a stage whose system has a mask; none otherwise.

    Args:
        stage: symbols and parameters.
        closing: largest distance from which a row may close, in its unit; by default `CLOSING`
            times the size of its residual.
        depth: largest depth of a row "not below" at the given state, in its unit; by default
            `DEPTH` times that size; `closing` where that is larger.
        not_below: 1 for `phi >= 0`, -1 for `phi <= 0`, by the name of the row.

    Raises:
        ProblemError: a distance that is not positive; another sign; no such row, one of velocities
            only, or no mask.
    """
    given_lengths = {"closing": closing, "depth": depth}
    require_positive(**{name: x for name, x in given_lengths.items() if x is not None})
    system = stage.system
    if system.mask is None:
        if not_below:
            raise ProblemError(
                f"not_below = {dict(not_below)}, but no row of '{system.name}' is switched; "
                "expected system.with_mask()"
            )
        return ScheduleRows((), (), np.empty((0, 2)))
    names, of_q = unique(system.constraint_names), holonomic_rows(system).full().ravel() > 0
    near = _lengths(system, closing, CLOSING)
    far = np.maximum(_lengths(system, depth, DEPTH), near)
    _check(system.name, not_below, [n for n, yes in zip(names, of_q, strict=True) if yes])
    inputs = {
        "q": stage.variables.carried_q,
        "v": ca.DM.zeros(system.nv),
        "t": stage.ref.get("t", 0),
    }
    phi, mask = ca.SX(evaluate(stage.members.constraint, inputs)), stage.ref["mask"]
    switched = [i for i, yes in enumerate(of_q) if yes]
    closed = [
        Bounded((mask * phi)[i], -near[i], near[i], name=f"closing.{names[i]}") for i in switched
    ]
    sides = {names.index(name): sign for name, sign in not_below.items()}
    above = [
        Bounded(sign * phi[i], -near[i], name=f"not_below.{names[i]}") for i, sign in sides.items()
    ]
    given = [
        [-far[i] if sides.get(i) == 1 else -near[i], far[i] if sides.get(i) == -1 else near[i]]
        for i in switched
    ]
    given += [[-far[i], np.inf] for i in sides]
    return ScheduleRows((*closed, *above), tuple(above), np.reshape(given, (-1, 2)))


def _lengths(system: System, given: float | None, share: float) -> Array:
    """Return (nc,) a length for each row: the given one, or a share of its residual's size."""
    return share * residual_sizes(system) if given is None else np.full(system.nc, float(given))


def _check(system: str, not_below: Mapping[str, int], valid: list[str]) -> None:
    for name, sign in not_below.items():
        if name not in valid:
            raise ProblemError(
                f"not_below: no row {name!r} of positions in '{system}'; expected some of {valid}"
            )
        if sign not in (-1, 1):
            raise ProblemError(f"not_below: {name} has the sign {sign}; expected 1 or -1")

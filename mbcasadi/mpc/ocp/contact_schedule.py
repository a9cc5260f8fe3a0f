"""Rows that come with a schedule of contacts: what closes is closed, and nothing falls through.

A step of the dynamics moves the rows that its mask closes onto `phi = 0`, from any distance. These
rows of the path leave it nothing to move, and keep open unilateral rows on their side:

    -closing <= mask_i phi_i(q) <= closing           at the start of every interval
    sign_i phi_i(q) >= -closing                      at every sample, for rows "not below"
"""

from collections.abc import Mapping
from typing import NamedTuple

import casadi as ca

from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.stage import Bounded, Stage
from mbcasadi.shapes import require_positive, unique
from mbcasadi.simulation.functions import holonomic_rows
from mbcasadi.system import evaluate

CLOSING = 5e-3
"""Largest distance from which a row may close, in the row's unit."""


class ScheduleRows(NamedTuple):
    """Rows of the path and of the end."""

    path: tuple[Bounded, ...]
    end: tuple[Bounded, ...]


def schedule_rows(stage: Stage, closing: float, not_below: Mapping[str, int]) -> ScheduleRows:
    """Return the rows of a stage whose system has a mask; none otherwise.

    Args:
        stage: symbols and parameters.
        closing: largest distance from which a row may close, in its unit.
        not_below: 1 for `phi >= 0`, -1 for `phi <= 0`, by the name of the row.

    Raises:
        ProblemError: a distance that is not positive; another sign; no such row, one of velocities
            only, or no mask.
    """
    require_positive(closing=closing)
    system = stage.system
    if system.mask is None:
        if not_below:
            raise ProblemError(
                f"not_below = {dict(not_below)}, but no row of '{system.name}' is switched; "
                "expected system.with_mask()"
            )
        return ScheduleRows((), ())
    names, of_q = unique(system.constraint_names), holonomic_rows(system).full().ravel() > 0
    _check(system.name, not_below, [n for n, yes in zip(names, of_q, strict=True) if yes])
    inputs = {"q": stage.variables.q, "v": ca.DM.zeros(system.nv), "t": stage.ref.get("t", 0)}
    phi, mask = ca.SX(evaluate(system.constraint, inputs)), stage.ref["mask"]
    closed = [
        Bounded(mask[i] * phi[i], -closing, closing, name=f"closing.{name}")
        for i, name in enumerate(names)
        if of_q[i]
    ]
    above = [
        Bounded(sign * phi[names.index(name)], -closing, name=f"not_below.{name}")
        for name, sign in not_below.items()
    ]
    return ScheduleRows((*closed, *above), tuple(above))


def _check(system: str, not_below: Mapping[str, int], valid: list[str]) -> None:
    for name, sign in not_below.items():
        if name not in valid:
            raise ProblemError(
                f"not_below: no row {name!r} of positions in '{system}'; expected some of {valid}"
            )
        if sign not in (-1, 1):
            raise ProblemError(f"not_below: {name} has the sign {sign}; expected 1 or -1")

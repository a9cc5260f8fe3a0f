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
from dataclasses import dataclass, field, replace
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_part import StagePart, StageTerms
from mbcasadi.qp.rows import Bounded
from mbcasadi.shapes import require_positive, unique
from mbcasadi.simulation.active_rows import holonomic_rows
from mbcasadi.system import System, evaluate
from mbcasadi.system.sizes import residual_sizes

CLOSING = 0.01
"""Largest distance from which a row may close, over the size of its residual."""

DEPTH = 0.04
"""Largest depth of a row "not below" at the given state, over the size of its residual. With
MuJoCo's default `solref` a foot that lands penetrates the floor by 7 mm for each m/s."""


@final
@dataclass(frozen=True)
class ContactSchedule(StagePart):
    """What a schedule of contacts keeps, of a system with a mask; without one, its defaults hold.

    Attributes:
        closing: largest distance from which a row may close, in its unit; by default `CLOSING`
            times the size of its residual: 1 % of a length of the model, or of 1 rad. A schedule
            that closes a row farther away is infeasible.
        depth: largest depth of a row "not below" at the given state, which is measured, in its
            unit; by default `DEPTH` times that size; `closing` where that is larger.
        not_below: rows that the mask switches and that are unilateral, by name: 1 for `phi >= 0`,
            -1 for `phi <= 0`, kept at all samples.
    """

    closing: float | None = None
    depth: float | None = None
    not_below: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_fields(self)
        lengths = {"closing": self.closing, "depth": self.depth}
        require_positive(**{name: x for name, x in lengths.items() if x is not None})

    def terms(self, stage: Stage) -> StageTerms:
        """Return the rows.

        Raises:
            ProblemError: another sign than 1 or -1; no such row, one of velocities only, or no
                mask.
        """
        system, not_below = stage.system, self.not_below
        if system.mask is None:
            if not_below:
                raise ProblemError(
                    f"not_below = {dict(not_below)}, but no row of '{system.name}' is switched; "
                    "expected system.with_mask()"
                )
            return StageTerms()
        names, of_q = unique(system.constraint_names), holonomic_rows(system).full().ravel() > 0
        near = _lengths(system, self.closing, CLOSING)
        far = np.maximum(_lengths(system, self.depth, DEPTH), near)
        _check(system.name, not_below, [n for n, yes in zip(names, of_q, strict=True) if yes])
        phi, mask = positions(stage), stage.ref["mask"]
        sides = {names.index(name): sign for name, sign in not_below.items()}
        rows, given = list[Bounded](), list[tuple[float, float]]()
        for i in np.flatnonzero(of_q).tolist():
            rows.append(Bounded((mask * phi)[i], -near[i], near[i], name=f"closing.{names[i]}"))
            depth = {sign: far[i] if sides.get(i) == sign else near[i] for sign in (1, -1)}
            given.append((-depth[1], depth[-1]))
        above = [
            Bounded(sign * phi[i], -near[i], name=f"not_below.{names[i]}")
            for i, sign in sides.items()
        ]
        given += [(-far[i], np.inf) for i in sides]
        at_end = [replace(row, at_end=True) for row in above]
        return StageTerms(rows=[*rows, *above, *at_end], given=dict(enumerate(given)))


def positions(stage: Stage) -> ca.SX:
    """Return phi (nc,) of a stage."""
    still, t = ca.DM.zeros(stage.system.nv), stage.ref.get("t", 0)
    inputs = {"q": stage.variables.carried_q, "v": still, "t": t}
    return ca.SX(evaluate(stage.members.constraint, inputs))


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

"""Limits of constraint forces: of loops, pins, couplings and user rows.

A multiplier lam of an equality constraint is the force of its row: of MuJoCo's `<connect>` the
force on body1 at its anchor, N, world axes; of a coupling or a user's row in that row's unit. A
rope pulls, a pin carries so much. Where rows depend on each other, `load_sharing.py` says what is
limited.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.inverse_dynamics.inequalities import Rows, Sizes
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.errors import ProblemError
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import real_array
from mbcasadi.system.names_by_kind import require_name_of

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.inputs import Inputs
    from mbcasadi.control.inverse_dynamics.options import Setup

AXES = {3: ("x", "y", "z"), 6: ("x", "y", "z", "rx", "ry", "rz")}


@readable_fields
@dataclass(frozen=True)
class LoopForceLimits:
    """Limits of the forces of equality constraints.

    Attributes:
        limits: by the name of the constraint, as in `mask_names`: (lower, upper) of each of its
            rows, or one such pair for each row. Infinite where there is none: (0, inf) pulls only.
    """

    limits: Mapping[str, ArrayLike]

    def __post_init__(self) -> None:
        require_fields(self)
        if not self.limits:
            raise ProblemError("no limits of loop forces; expected some by name")


class LimitedRow(NamedTuple):
    """A limited multiplier: its place in lam, names of the row and in `tuning`, its limits."""

    place: int
    name: str
    entry: str
    lower: float
    upper: float


def limited_rows(setup: "Setup") -> list[LimitedRow]:
    """Return each limited multiplier.

    Raises:
        UnknownNameError: no equality constraint of this name.
        ProblemError: limits of another shape, NaN, or in the wrong order.
    """
    given = {} if setup.loop_force_limits is None else setup.loop_force_limits.limits
    names = setup.mask_names[len(setup.contacts) :]
    for name in given:
        require_name_of(setup.system, "equality constraint", name, list(names))
    found, first = [], 0
    for name, size in zip(names, setup.equality_sizes, strict=True):
        if name in given:
            ends = real_array(f"limits of '{name}'", given[name])
            if ends.shape not in {(2,), (size, 2)} or not np.all(ends.T[0] <= ends.T[1]):
                raise ProblemError(
                    f"limits of '{name}' = {ends.tolist()}; expected (lower, upper), or {size} "
                    "such pairs, lower <= upper"
                )
            axes = AXES.get(size, ("",) * size)
            for i, (low, high) in enumerate(np.broadcast_to(ends, (size, 2)).tolist()):
                if np.isfinite(low) or np.isfinite(high):
                    row = f"loop '{name}': force {axes[i]}".rstrip()
                    entry = f"{name}.loop_force.{axes[i]}".rstrip(".")
                    found.append(LimitedRow(first + i, row, entry, low, high))
        first += size
    return found


def loop_force_rows(setup: "Setup", at: "Inputs", sizes: Sizes) -> Rows:
    """Return the limits of loop forces; those of a loop that is off have no bounds."""
    limited = limited_rows(setup)
    places = [row.place for row in limited]
    off = (1 - at.on_rows(setup)[places, 0]) * UNBOUNDED if places else ca.SX(0, 1)
    ends = {
        end: ca.vertcat(
            ca.SX(0, 1),
            *(at.tuning.get(f"{row.entry}.{end}", getattr(row, end)) for row in limited),
        )
        for end in ("lower", "upper")
    }
    lower, upper = ca.fmax(ends["lower"], -UNBOUNDED), ca.fmin(ends["upper"], UNBOUNDED)
    return sizes.rows(
        [row.name for row in limited],
        ca.fmax(lower - off, -UNBOUNDED) if places else ca.SX(0, 1),
        ca.fmin(upper + off, UNBOUNDED) if places else ca.SX(0, 1),
        C_lam=ca.SX.eye(sizes.m)[places, :],
    )

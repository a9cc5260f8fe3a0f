"""Limits of constraint forces: of loops, pins, couplings and user rows.

A multiplier lam of an equality constraint is the force of its row: of MuJoCo's `<connect>` the
force on body1 at its anchor, N, world axes; of a coupling or a user's row in that row's unit. A
rope pulls, a pin carries so much. Where rows depend on each other, `load_sharing.py` says what is
limited.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Part
from mbcasadi.description import TuningParameter
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.errors import ProblemError
from mbcasadi.qp.rows import Row, Rows, Sizes
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import real_array
from mbcasadi.system.names_by_kind import require_name_of

NO_LIMIT = 1e9
"""N or N m, a force beyond all loads."""

AXES = {3: ("x", "y", "z"), 6: ("x", "y", "z", "rx", "ry", "rz")}


@final
@readable_fields
@dataclass(frozen=True)
class LoopForceLimits(Part):
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

    def bind(self, design: Design) -> Bound:
        """Return the limits as rows, and their entries of `tuning`.

        Raises:
            ProblemError, UnknownNameError: as in `limited_rows`.
        """
        limited = limited_rows(design, self)
        places = [row.place for row in limited]
        about = [Row(x.name, x.limit, "loop forces", ("loop", x.constraint)) for x in limited]

        def ends(now: Instant, end: str) -> ca.SX:
            values = (now.tuning.get(f"{row.entry}.{end}", getattr(row, end)) for row in limited)
            return ca.vertcat(ca.SX(0, 1), *values)

        def rows(now: Instant, sizes: Sizes) -> list[Rows]:
            """Return the limits; those of a loop that is off have no bounds."""
            off = (1 - now.on_rows[places, 0]) * UNBOUNDED
            lower = ca.fmax(ends(now, "lower"), -UNBOUNDED)
            upper = ca.fmin(ends(now, "upper"), UNBOUNDED)
            low, high = ca.fmax(lower - off, -UNBOUNDED), ca.fmin(upper + off, UNBOUNDED)
            return [sizes.rows(about, low, high, C_lam=ca.SX.eye(sizes.m)[places, :])]

        tuning = [
            TuningParameter(f"{row.entry}.{end}", getattr(row, end), -NO_LIMIT, NO_LIMIT)
            for row in limited
            for end in ("lower", "upper")
            if np.isfinite(getattr(row, end))
        ]
        both = [row.entry for row in limited if np.isfinite(row.lower) and np.isfinite(row.upper)]
        is_tuned = "limits" in design.tunable
        return Bound(
            "loop forces",
            tuning=tuple(tuning) if is_tuned else (),
            ordered=tuple((f"{x}.lower", f"{x}.upper") for x in both) if is_tuned else (),
            rows=rows,
        )


class LimitedRow(NamedTuple):
    """A limited multiplier.

    Fields: its place in lam, its constraint, names of the row, of the limit and in `tuning`, and
    its limits.
    """

    place: int
    constraint: str
    name: str
    limit: str
    entry: str
    lower: float
    upper: float


def limited_rows(design: Design, limits: LoopForceLimits) -> list[LimitedRow]:
    """Return each limited multiplier.

    Raises:
        UnknownNameError: no equality constraint of this name.
        ProblemError: limits of another shape, NaN, or in the wrong order.
    """
    given, names = limits.limits, design.equality_names
    for name in given:
        require_name_of(design.system, "equality constraint", name, list(names))
    found, first = [], 0
    for name, size in zip(names, design.equality_sizes, strict=True):
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
                    force = f"force {axes[i]}".rstrip()
                    row, limit = f"loop '{name}': {force}", f"{force} of {name}"
                    entry = f"{name}.loop_force.{axes[i]}".rstrip(".")
                    found.append(LimitedRow(first + i, name, row, limit, entry, low, high))
        first += size
    return found

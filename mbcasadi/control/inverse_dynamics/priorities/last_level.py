"""What `finish` needs of a tick with levels."""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca

from mbcasadi.control.inverse_dynamics.priorities.cascade import solved_point
from mbcasadi.control.inverse_dynamics.priorities.judge import LevelJudge
from mbcasadi.control.inverse_dynamics.priorities.pressed_rows import without
from mbcasadi.control.tick.columns import Layout, matrix_symbols, unpack

Values = dict[str, ca.SX]


class Judged(NamedTuple):
    """The end of a tick with levels.

    Fields: `residual` (5,) of all levels together; `p` actuator forces; `w` the unknowns beside
    them; `errors` (levels,);
    `active` (problems · m,) active sets of all problems; `flag` of the first problem, the only one
    that can be infeasible.
    """

    residual: ca.SX
    p: ca.SX
    w: ca.SX
    errors: ca.SX
    active: ca.SX
    flag: ca.SX


@dataclass(frozen=True)
class LastLevel:
    """The regularisation's solution, and what was passed on to it.

    Attributes:
        judge: of the levels' solutions.
        layout: of the passed numbers.
        n: number of unknowns.
    """

    judge: LevelJudge
    layout: Layout
    n: int

    def judged(self, carried: Values, column: ca.SX, found: Values) -> Judged:
        """Return the end of a tick.

        Args:
            carried: numbers of `build`.
            column: (size,) what the last problem passes on.
            found: `x`, `lam_a` and `active` of the solver.
        """
        passed = unpack(self.layout, column)
        found = found | {"lam_a": without(found["lam_a"], passed["gone"])}
        y, zeta = solved_point(passed, found["x"])
        p, w = self.judge.unknowns(carried, y)
        actives = [passed[f"done{k}.active"] for k in range(len(self.judge.levels))]
        return Judged(
            residual=self.judge.last(carried, passed, y, zeta, found),
            p=p,
            w=w,
            errors=self.judge.errors(carried, p, w),
            active=ca.vertcat(*actives, found["active"]),
            flag=passed["flag"],
        )

    def unknowns(self, carried: Layout) -> ca.Function:
        """Return (carry, passed, x) → y = (p, w); `carried` is the layout of `carry`."""
        sizes = {"carry": carried.size, "passed": self.layout.size, "x": self.n}
        given = matrix_symbols(sizes)
        y, _ = solved_point(unpack(self.layout, given["passed"]), given["x"])
        p, w = self.judge.unknowns(unpack(carried, given["carry"]), y)
        return ca.Function("unknowns", list(given.values()), [ca.vertcat(p, w)], list(given), ["y"])

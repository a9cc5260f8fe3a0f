"""The QP as data, its solution, and why there may be none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.inverse_dynamics.residuals import RESIDUALS
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.description.status import Flag, Status
from mbcasadi.errors import ProblemError
from mbcasadi.qp.rows import Row
from mbcasadi.short_text import with_table

Array = NDArray[np.float64]

VIOLATED = 1e-6
"""Violation, N or N m, from which a row is named by `explain`."""

EXPLAINED_SIDES = 64
"""Sides of the pyramid that stands for a quadratic cone in `explain`."""


@with_table
class CondensedQP(NamedTuple):
    """`min ½ yᵀ H y + gᵀ y` subject to `lba <= A_qp y <= uba`, with `y = (p, w)`.

    p (nu,) are the actuator forces, N or N m (equal to u for motors of unit gain); w are the
    internal contact forces. `a = T p + t`. Bounds of ±1e30 mean no bound. The last `3 cones` rows
    are those of quadratic cones: `s = A y - lba` of a cone's rows has `|(s_1, s_2)| <= s_0`.

    Attributes:
        H, g: (n, n), (n,).
        A_qp, lba, uba: (m, n), (m,), (m,).
        row_names: name of each row.
        limits: the limit that each row belongs to, in words: a cone has several faces.
        T, t: (nv, nu), (nv,).
        cones: number of quadratic cones.
    """

    H: Array
    g: Array
    A_qp: Array
    lba: Array
    uba: Array
    row_names: tuple[str, ...]
    limits: tuple[str, ...]
    T: Array
    t: Array
    cones: int = 0

    def _summary(self) -> dict[str, object]:
        return {"unknowns": self.H.shape[0], "rows": self.row_names, "cones": self.cones}

    def __repr__(self) -> str:
        m, n = self.A_qp.shape
        cones = f", {self.cones} cones" if self.cones else ""
        return f"CondensedQP({n} unknowns, {m} rows{cones})"

    @classmethod
    @checked
    def of(
        cls, matrices: Mapping[str, Array], about: Sequence[Row], cones: int = 0
    ) -> "CondensedQP":
        """Return the QP of the matrices of an inspection, by name, and of what its rows are."""
        for key in ("H", "A_qp", "T", "g", "lba", "uba", "t"):
            if key not in matrices:
                raise ProblemError(
                    f"the matrices of the QP lack '{key}'; expected those of `problem`"
                )
        parts = {key: matrices[key] for key in ("H", "A_qp", "T")}
        flat = {key: matrices[key].ravel() for key in ("g", "lba", "uba", "t")}
        names, limits = (tuple(getattr(row, key) for row in about) for key in ("name", "limit"))
        return cls(row_names=names, limits=limits, cones=cones, **parts, **flat)


@with_table
@dataclass(frozen=True)
class InverseDynamicsSolution:
    """The controller's output at one state, with the solution of its QP.

    Attributes:
        u: (nu,) controls.
        z_next: (nz,) next state.
        status: see `Status`. From INFEASIBLE on, `u` is the safe output and the other fields
            describe the rejected candidate.
        status_text: the status as text.
        flags: the bits of what was changed to reach a valid output, see `Flag`.
        residual: (5,) dynamics, constraint, primal, stationarity, complementarity (relative).
        a: (nv,) acceleration.
        lam: (nc,) multipliers of the equality constraints.
        determined: (nc,) whether motion and actuator forces determine each of them; the others
            are shared as `sharing` says, or by the order of the rows.
        contact_forces: (number of contacts, 3) normal and two tangential forces, N.
        p: (nu,) actuator forces, N or N m.
        independent_rows: one for each independent row of equality constraints, rigid springs and
            contacts, zero for dropped ones.
        problem: the QP.
        levels: weighted error `|J a + c - a_des|_W` of each level by the names of its tasks; none
            without levels.
        violations: (m,) by how much the candidate violates each row, N or N m.
        disturbance: (nv,) force that the observer has learned, N or N m; zero without one.
        relaxed: by how much each violated soft row exceeds its bounds, by name; below them
            negative. In the row's unit: rad/s² or m/s² of a joint, N of a contact.
    """

    u: Array
    z_next: Array
    status: int
    status_text: str
    flags: Flag
    residual: Array
    a: Array
    lam: Array
    determined: NDArray[np.bool_]
    contact_forces: Array
    p: Array
    independent_rows: Array
    problem: CondensedQP
    violations: Array
    disturbance: Array
    relaxed: Mapping[str, float]
    levels: dict[str, float] = field(default_factory=dict)

    def _summary(self) -> dict[str, object]:
        return {
            "status": self.status_text,
            "u": self.u,
            "p": self.p,
            "a": self.a,
            "contact forces": self.contact_forces,
            "residuals": self.residuals(),
            "relaxed": self.relaxed,
            "levels": self.levels,
        }

    @property
    def solved(self) -> bool:
        """Whether the solution passed all checks."""
        return self.status == Status.SOLVED

    def __repr__(self) -> str:
        u = np.array2string(self.u, precision=3, suppress_small=True, max_line_width=10**6)
        return (
            f"InverseDynamicsSolution({self.status_text}, u={u}, "
            f"largest residual {max(self.residual, default=0.0):.1e})"
        )

    def residuals(self) -> dict[str, float]:
        """Return the residuals by name."""
        return dict(zip(RESIDUALS, self.residual.tolist(), strict=True))

    def explain(self) -> str:
        """Return the status as text, with the rows that contradict each other.

        For an infeasible problem: the rows that cannot hold together, from the least sum of
        violations over all y (a linear program).
        """
        lines = [f"status {self.status}: {self.status_text}"]
        lines += [f"  {name} residual {value:.1e}" for name, value in self.residuals().items()]
        if self.status == Status.BAD_INPUT:
            return "\n".join([*lines, "  an input is NaN, infinite or outside its bounds"])
        if not np.all(np.isfinite(self.problem.A_qp)):
            return "\n".join([*lines, "  the problem is not finite: a singular inertia?"])
        least = least_violations(self.problem)
        if np.any(least > VIOLATED):
            lines.append("  the problem is infeasible; these rows have to be violated:")
            lines += _violated_rows(self.problem, least)
        else:
            lines.append("  the problem is feasible")
            named = _violated_rows(self.problem, self.violations)
            lines += (["  the candidate violates:", *named]) if named else []
            lines += [
                f"  {name} is violated by {amount:.3g}" for name, amount in self.relaxed.items()
            ]
        return "\n".join(lines)


def least_violations(problem: CondensedQP) -> Array:
    """Return (m,) violations whose sum is least over all y; zero where the QP is feasible.

    In the place of a quadratic cone is its outer pyramid of `EXPLAINED_SIDES` sides.
    """
    from scipy.optimize import linprog  # heavy, and needed for explanations only

    A, lba, uba = problem.A_qp, problem.lba, problem.uba
    m, n = A.shape
    if m == 0:
        return np.zeros(0)
    upper, lower = uba < UNBOUNDED / 2, lba > -UNBOUNDED / 2
    slack = np.eye(m)
    upper[m - 3 * problem.cones :] = lower[m - 3 * problem.cones :] = False
    faces, of_apex = _faces(problem)
    rows = np.vstack(
        [np.hstack([A, -slack])[upper], np.hstack([-A, -slack])[lower], faces],
    )
    bounds = np.concatenate([uba[upper], -lba[lower], of_apex])
    cost = np.concatenate([np.zeros(n), np.ones(m)])
    limits = [(None, None)] * n + [(0, None)] * m
    least = linprog(cost, A_ub=rows, b_ub=bounds, bounds=limits, method="highs")
    return np.asarray(least.x[n:]) if least.x is not None else np.full(m, np.inf)


def _faces(problem: CondensedQP) -> tuple[Array, Array]:
    """Return rows over (y, slack) and bounds of the outer pyramids of all quadratic cones."""
    m, n = problem.A_qp.shape
    rows, bounds = [np.zeros((0, n + m))], [np.zeros(0)]
    angles = 2 * np.pi / EXPLAINED_SIDES * np.arange(EXPLAINED_SIDES)
    sides = np.column_stack([-np.ones(EXPLAINED_SIDES), np.cos(angles), np.sin(angles)])
    for first in range(m - 3 * problem.cones, m, 3):
        of_cone = slice(first, first + 3)
        slack = np.zeros((EXPLAINED_SIDES, m))
        slack[:, first] = -1.0
        rows.append(np.hstack([sides @ problem.A_qp[of_cone], slack]))
        bounds.append(sides @ problem.lba[of_cone])
    return np.vstack(rows), np.concatenate(bounds)


def _violated_rows(problem: CondensedQP, violations: Array) -> list[str]:
    """Return a line for each violated row, the worst first."""
    worst = [i for i in np.argsort(-violations) if violations[i] > VIOLATED]
    return [f"    {problem.row_names[i]}: short by {violations[i]:.3g}" for i in worst]

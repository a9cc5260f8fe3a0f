"""A minimal set of limits that exclude each other, in the user's names.

A limit is all rows of one thing: both ends of a motor's range, all faces of a cone. The rows of a
dual ray are a candidate (J. Gleeson, J. Ryan, Identifying minimally infeasible subsystems of
inequalities, ORSA J. Computing 1990); limits are left out one by one while the rest stays
infeasible, those with the least share in the ray first (J. Chinneck, E. Dravnieks, ORSA J.
Computing 1991).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.solution import CondensedQP
from mbcasadi.control.inverse_dynamics.viability import SHORTFALL
from mbcasadi.description.qp_stages import UNBOUNDED

Array = NDArray[np.float64]

CONTRADICTORY = 1e-7
"""Least violation, relative to the largest bound, of rows of unit length that have no solution."""


class TaskShares(NamedTuple):
    """What tasks require: `map y - right` is their error, with weights.

    Attributes:
        map, right, weight: (k, n), (k,), (k,).
        rows: name of each task, with its rows.
    """

    map: Array
    right: Array
    weight: Array
    rows: Mapping[str, slice]

    def equality(self, name: str) -> tuple[Array, Array]:
        """Return `map`, `right` of a task that is met without error: its rows with a weight."""
        place = self.rows[name]
        counts = self.weight[place] > 0
        return self.map[place][counts], self.right[place][counts]

    def costs(self, y: Array) -> dict[str, float]:
        """Return `½ |error|²_W` of each task."""
        squares = self.weight * (self.map @ y - self.right) ** 2 / 2
        return {name: float(squares[place].sum()) for name, place in self.rows.items()}


def rows_of_limits(problem: CondensedQP) -> dict[str, list[int]]:
    """Return the rows of each limit."""
    limits: dict[str, list[int]] = {}
    for i, limit in enumerate(problem.limits):
        limits.setdefault(limit, []).append(i)
    return limits


def excluding_limits(
    problem: CondensedQP, equalities: Mapping[str, tuple[Array, Array]] | None = None
) -> tuple[str, ...]:
    """Return a minimal set of limits that exclude each other; none where all can be met.

    Args:
        problem: the QP.
        equalities: by name `map` (k, n) and `right` (k,) of `map y = right`; they count as limits.
    """
    groups, A, b = _one_sided(problem, equalities or {})
    ray = _dual_ray(A, b, np.ones(len(b), bool))
    if ray is None:
        return ()
    left = _with_share(groups, ray)
    if _dual_ray(A, b, _chosen(left, len(b))) is None:
        left = dict(groups)  # rounding in the ray: begin with all
    for name in sorted(left, key=lambda name: float(ray[groups[name]].sum())):
        rest = {other: rows for other, rows in left.items() if other != name}
        if _dual_ray(A, b, _chosen(rest, len(b))) is not None:
            left = rest
    return tuple(left)


def _with_share(groups: Mapping[str, list[int]], ray: Array) -> dict[str, list[int]]:
    """Return the groups of which a row has a share in a ray."""
    return {name: rows for name, rows in groups.items() if np.any(ray[rows] > CONTRADICTORY)}


def _one_sided(
    problem: CondensedQP, equalities: Mapping[str, tuple[Array, Array]]
) -> tuple[dict[str, list[int]], Array, Array]:
    """Return rows `A y <= b` of unit length, and those of each limit.

    The shortfall of limits of positions is in its own unit.
    """
    n = problem.A_qp.shape[1]
    rows: list[Array] = []
    bounds: list[float] = []
    groups: dict[str, list[int]] = {}
    for name, members in rows_of_limits(problem).items():
        for i in members:
            for side, bound in ((1.0, problem.uba[i]), (-1.0, problem.lba[i])):
                if abs(bound) < UNBOUNDED / 2:
                    groups.setdefault(name, []).append(len(rows))
                    rows.append(side * problem.A_qp[i])
                    bounds.append(side * bound)
    for name, (of_y, right) in equalities.items():
        for row, bound in zip(of_y, right, strict=True):
            for side in (1.0, -1.0):
                groups.setdefault(name, []).append(len(rows))
                rows.append(side * row)
                bounds.append(side * bound)
    A, b = np.array(rows).reshape(-1, n), np.array(bounds)
    if SHORTFALL in problem.row_names:
        entries = np.abs(problem.A_qp[problem.row_names.index(SHORTFALL)])
        A = A / np.where(entries > 0, entries, 1.0)
    length = np.linalg.norm(A, axis=1)
    length[length == 0] = 1.0
    return groups, A / length[:, None], b / length


def _chosen(groups: Mapping[str, Sequence[int]], m: int) -> NDArray[np.bool_]:
    """Return which rows are in these groups."""
    chosen = np.zeros(m, bool)
    for rows in groups.values():
        chosen[list(rows)] = True
    return chosen


def _dual_ray(A: Array, b: Array, chosen: NDArray[np.bool_]) -> Array | None:
    """Return a dual ray (m,) where the chosen rows have no solution; None where they have one.

    The ray is that of `min t, A y - t <= b, t >= 0`: shares of the rows that sum up to 1.
    """
    from scipy.optimize import linprog  # heavy, and needed for explanations only

    places = np.flatnonzero(chosen)
    if not places.size:
        return None
    n, size = A.shape[1], float(np.abs(b[places]).max()) or 1.0
    least = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.hstack([A[places], -np.ones((places.size, 1))]),
        b_ub=b[places] / size,
        bounds=[(None, None)] * n + [(0, None)],
        method="highs",
    )
    if least.x is None or least.x[-1] <= CONTRADICTORY:
        return None
    ray = np.zeros(len(b))
    ray[places] = np.abs(least.ineqlin.marginals)
    return ray

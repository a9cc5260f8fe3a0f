"""Least-distance problems with quadratic cones: `min ½ xᵀ x` inside linear rows and cones.

    lba <= A x <= uba,      s_k = A_k x - lba_k with |(s_k1, s_k2)| <= s_k0      for each cone k

A cone is the intersection of its tangent planes `s_0 - cos θ s_1 - sin θ s_2 >= 0`. The dual
active-set method of Goldfarb and Idnani needs only the plane that is violated most, the one at
the angle of (s_1, s_2), so it takes cones as it takes rows: what is active is a list of rows and
tangent planes, three of them at a cone's apex. All multipliers are dual feasible at each step, and
a proof of infeasibility holds for the cones too.

Tangent planes alone converge slowly. Where the cone that is violated most has an active plane,
Newton's step of the Karush-Kuhn-Tucker conditions turns the planes of all cones: with the active
rows held, a cone's curvature `λ / s_0` acts along `e = (-sin θ, cos θ)`. A plane at any angle is
valid, so a bad step costs time and not correctness. After `NEWTON_PASSES` of them violated planes
are only added, which ends.

The generated C has the same method on an updated factor (`cones.c.in`); here it is made anew.

Source: D. Goldfarb, A. Idnani, Mathematical Programming 27 (1983), for the active set.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.qp_stages import (
    APEX,
    C_PRIMAL_TOLERANCE,
    CONE_ROWS,
    DEPENDENT,
    LEAST_DISTANCE,
    NEWTON_GAIN,
    NEWTON_PASSES,
    NEWTON_STALLS,
    ON_CONE,
    PROOF_RADIUS,
    PROOF_ROUNDING,
    RAY_ROUNDING,
    ROUNDING,
    SMALL_DISTANCE,
    UNBOUNDED,
    ZERO_BOUND,
    ZERO_ROW,
    SolverFlag,
)
from mbcasadi.qp.cone_newton import newton
from mbcasadi.qp.cone_planes import (
    Plane,
    Progress,
    are_wide,
    back_substitution,
    enter_where_independent,
    has_bound,
    let_go,
    split,
    unit_vector,
)

Array = NDArray[np.float64]
THIRDS = 2 * np.pi / 3 * np.arange(3)
HALF = 0.5
LIMIT = 100
"""Most planes that enter or leave, for each row and unknown."""


class ConeSolution(NamedTuple):
    """What the method ends with; zeros where the flag is not `OPTIMAL`.

    Attributes:
        x: (n,) unknown.
        lam: (m,) multipliers, `x + Aᵀ lam = 0`; those of a cone are a point of minus the cone.
        active: (m,) -1 at the lower bound, 1 at the upper, else 0; of a cone `ON_CONE`, `APEX` or
            0, then the direction of its force (cosine, sine).
        flag: a `SolverFlag`.
    """

    x: Array
    lam: Array
    active: Array
    flag: int


def solve_cone_program(A: Array, lba: Array, uba: Array, cones: int, active: Array) -> ConeSolution:
    """Return the solution, from any content of the active set.

    Args:
        A: (m, n) rows; the last `3 cones` are s_0, s_1, s_2 of each cone.
        lba, uba: (m,) bounds; those of a cone's rows are the place of its apex.
        cones: number of cones.
        active: (m,) the active set to start from, see `ConeSolution`.
    """
    posed, progress = _pose(A, lba, uba, cones)
    flag = SolverFlag.INFEASIBLE if posed < 0 else SolverFlag.STOPPED
    if posed > 0:
        _warm(progress, active)
        limit = LIMIT * sum(A.shape)
        if progress.planes:
            flag = _iterate(progress, limit // 2)
        if flag == SolverFlag.STOPPED:
            progress.hold([])
            flag = _iterate(progress, limit)
    m, n = A.shape
    if flag != SolverFlag.OPTIMAL or not np.all(np.isfinite(progress.x)):
        return ConeSolution(np.zeros(n), np.zeros(m), np.zeros(m), int(flag))
    return ConeSolution(progress.x, *_multipliers_of_rows(progress), int(flag))


def _pose(A: Array, lba: Array, uba: Array, cones: int) -> tuple[int, Progress]:
    """Return 1, 0 for numbers that are none, -1 where one row alone cannot be met."""
    linear = A.shape[0] - CONE_ROWS * cones
    lower, upper = np.maximum(lba, -UNBOUNDED), np.minimum(uba, UNBOUNDED)
    length = np.sqrt(np.sum(A**2, axis=1))
    present = length > ZERO_ROW * length.max(initial=0.0)
    progress = Progress(A, lower.copy(), upper.copy(), np.where(present, length, 0.0), cones)
    progress.hold([])
    if not (np.all(np.isfinite(A)) and not np.any(np.isnan(lba) | np.isnan(uba))):
        return 0, progress
    for i in range(linear):
        if lower[i] >= UNBOUNDED or upper[i] <= -UNBOUNDED:
            return -1, progress
        if not present[i]:
            if lower[i] > ZERO_BOUND or upper[i] < -ZERO_BOUND:
                return -1, progress
        elif lower[i] > upper[i]:
            if lower[i] - upper[i] > C_PRIMAL_TOLERANCE * (length[i] + abs(upper[i])):
                return -1, progress
            progress.lower[i] = progress.upper[i] = (lower[i] + upper[i]) / 2
    distances = [max(lower[i], -upper[i]) / length[i] for i in range(linear) if present[i]]
    for first in progress.firsts:
        rows = slice(first, first + CONE_ROWS)
        size = float(np.linalg.norm(progress.length[rows]))
        s = -progress.lower[rows]
        if size > 0:
            distances.append((float(np.hypot(s[1], s[2])) - s[0]) / size)
        elif np.hypot(s[1], s[2]) - s[0] > ZERO_BOUND:
            return -1, progress
    progress.unit = _unit(max([0.0, *distances]))
    return 1, progress


def _unit(distance: float) -> float:
    """Return the power of two in which x is of size one."""
    if distance >= 1 or LEAST_DISTANCE < distance < SMALL_DISTANCE:
        return float(np.ldexp(1.0, np.frexp(distance)[1]))
    return 2.0


def _warm(p: Progress, active: Array) -> None:
    """Start from an active set: what exists and is independent, and pulls the right way."""
    for i in range(p.linear):
        side = -1 if active[i] > HALF else 1 if active[i] < -HALF else 0
        if side and p.length[i] > 0 and has_bound(p, i, side):
            enter_where_independent(p, p.row(i, side))
    for first in p.firsts:
        kind, direction = active[first], active[first + 1 : first + CONE_ROWS]
        size = float(np.hypot(*direction))
        if not (abs(kind) > HALF and HALF < size < 2):
            continue
        angle = float(np.arctan2(direction[1], direction[0]))
        for turn in THIRDS if kind < 0 else THIRDS[:1]:
            plane = p.tangent(first, unit_vector(angle + turn))
            if plane is not None:
                enter_where_independent(p, plane)
    let_go(p)


def _iterate(p: Progress, limit: int) -> SolverFlag:
    """Bring violated planes to their bounds, and turn tangent planes, until none is violated."""
    passes = idle = steps = stalled = 0
    best = reach = -1.0
    while True:
        y2 = float(p.y @ p.y)
        size = p.unit * max(1.0, np.sqrt(y2))
        if not y2 < PROOF_RADIUS**2:
            return SolverFlag.STOPPED
        plane, violated = _worst(p, ROUNDING * size)
        is_cone = plane is not None and plane.direction is not None
        has_tangents = plane is None or (is_cone and bool(p.tangents(plane.row)))
        if has_tangents and passes < NEWTON_PASSES:
            stalled = 0 if y2 > reach * (1 + NEWTON_GAIN) else stalled + 1
            reach = max(reach, y2)
            if stalled <= NEWTON_STALLS and newton(p, size, plane):
                passes, best = passes + 1, -1.0
                continue
            if (
                stalled <= NEWTON_STALLS
                and plane is not None
                and violated <= C_PRIMAL_TOLERANCE * size
            ):
                return SolverFlag.OPTIMAL
        if plane is None:
            return SolverFlag.OPTIMAL
        idle = 0 if y2 > best * (1 + ROUNDING) else idle + 1
        best = max(best, y2)
        late = idle > p.A.shape[1] or steps >= limit
        if late and violated <= C_PRIMAL_TOLERANCE * size:
            return SolverFlag.OPTIMAL
        before = p.planes
        flag, taken = _bring(p, plane, limit - steps)
        steps += taken
        if flag != SolverFlag.OPTIMAL:
            if violated > C_PRIMAL_TOLERANCE * size:
                return flag
            p.hold(before)
            return SolverFlag.OPTIMAL


def _worst(p: Progress, tolerance: float) -> tuple[Plane | None, float]:
    """Return the plane that x violates most, and by how much; None where none is."""
    x, held = p.x, {plane.row for plane in p.planes if plane.direction is None}
    value = p.A @ x
    worst, found = tolerance, None
    for i in range(p.linear):
        if p.length[i] == 0 or i in held:
            continue
        for side, gap in ((1, p.lower[i] - value[i]), (-1, value[i] - p.upper[i])):
            if gap > worst * p.length[i] and has_bound(p, i, side):
                worst, found = gap / p.length[i], p.row(i, side)
    for first in p.firsts:
        s = p.inside(first, x)
        across = float(np.hypot(s[1], s[2]))
        if across <= s[0]:
            continue
        direction = s[1:] / across if across > 0 else np.array([1.0, 0.0])
        plane = p.tangent(first, direction)
        if plane is not None and across - s[0] > worst * plane.length:
            worst, found = (across - s[0]) / plane.length, plane
    return found, worst


def _bring(p: Progress, plane: Plane, limit: int) -> tuple[SolverFlag, int]:
    """Bring a violated plane to its bound; planes whose multiplier becomes zero leave."""
    steps, n = 0, p.A.shape[1]
    while True:
        h, rest = split(p, plane)
        gap = plane.bound - float(h @ p.y)
        independent = len(p.planes) < n and rest > DEPENDENT and gap < PROOF_RADIUS * rest
        steps += 1
        if steps > limit:
            return SolverFlag.STOPPED, steps
        multipliers, shares = p.multipliers, back_substitution(p.R, h)
        blocking = [i for i in range(len(p.planes)) if shares[i] > ROUNDING]
        place = min(blocking, key=lambda i: multipliers[i] / shares[i], default=-1)
        step = multipliers[place] / shares[place] if place >= 0 else np.inf
        if independent and gap / rest**2 <= step:
            p.hold([*p.planes, plane])
            return SolverFlag.OPTIMAL, steps
        if place < 0:
            return _ended(p, plane, shares), steps
        p.hold([each for i, each in enumerate(p.planes) if i != place])


def _ended(p: Progress, plane: Plane, shares: Array) -> SolverFlag:
    """Return `INFEASIBLE` where plane and active planes prove it by Farkas' lemma.

    Numbers r >= 0 with `Σ r normal = 0` and `Σ r bound > 0`. What is left of a sum that should be
    zero is tolerated as far as no point within `PROOF_RADIUS` could repair it.
    """
    r = np.maximum(np.array([*(-shares), 1.0]), 0.0)
    r = np.where(r > RAY_ROUNDING * r.max(), r / r.max(), 0.0)
    every = [*p.planes, plane]
    work = r * np.array([each.bound for each in every])
    slope = sum((size * each.normal for size, each in zip(r, every, strict=True)), 0.0)
    error = PROOF_RADIUS * float(np.linalg.norm(slope)) + PROOF_ROUNDING * np.abs(work).sum()
    return SolverFlag.INFEASIBLE if work.sum() > error else SolverFlag.STOPPED


def _multipliers_of_rows(p: Progress) -> tuple[Array, Array]:
    """Return `lam` and `active` (m,)."""
    lam, active, x = np.zeros(p.A.shape[0]), np.zeros(p.A.shape[0]), p.x
    for plane, multiplier in zip(p.planes, np.maximum(p.multipliers, 0), strict=True):
        size = p.unit * multiplier / plane.length
        if plane.direction is None:
            lam[plane.row], active[plane.row] = -plane.side * size, -plane.side
            continue
        lam[plane.row : plane.row + CONE_ROWS] -= size * np.array([1.0, *-plane.direction])
    for first in p.firsts:
        places = p.tangents(first)
        if not places:
            continue
        s, across = p.inside(first, x), lam[first + 1 : first + CONE_ROWS]
        directions = [p.planes[place].direction for place in places]
        at_apex = len(places) == CONE_ROWS or are_wide(directions)
        direction = across if at_apex else s[1:]
        length = float(np.linalg.norm(direction))
        active[first] = APEX if at_apex else ON_CONE
        active[first + 1 : first + CONE_ROWS] = direction / length if length > 0 else (1.0, 0.0)
    return lam, active

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

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mbcasadi.description.qp_stages import (
    APEX,
    C_PRIMAL_TOLERANCE,
    CONE_ROWS,
    DEPENDENT,
    INDEPENDENT,
    LEAST_COSINE,
    LEAST_COST,
    LEAST_DISTANCE,
    LEAST_FORCE,
    LEAST_RADIUS,
    NEWTON_GAIN,
    NEWTON_LAST,
    NEWTON_PASSES,
    NEWTON_STALLS,
    NEWTON_STEP,
    NEWTON_STEPS,
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


class Plane(NamedTuple):
    """One plane `normal · x >= bound`, of unit length: a row, or a tangent plane of a cone.

    Attributes:
        row: of A; the first one of a cone.
        side: 1 at the lower bound, -1 at the upper; 1 for a tangent plane.
        normal, bound: in the unit of x.
        length: of the row that it is made from.
        direction: (2,) cosine and sine of the tangent plane's angle, None for a row.
    """

    row: int
    side: int
    normal: Array
    bound: float
    length: float
    direction: Array | None


@dataclass
class Progress:
    """The active planes with their factor: normals are `Q R`, `Rᵀ y = bounds`, `x = Q y`."""

    A: Array
    lower: Array
    upper: Array
    length: Array
    cones: int
    unit: float = 2.0
    planes: list[Plane] = field(default_factory=list)
    Q: Array = field(default_factory=lambda: np.zeros((0, 0)))
    R: Array = field(default_factory=lambda: np.zeros((0, 0)))
    y: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def linear(self) -> int:
        """Number of rows that belong to no cone."""
        return self.A.shape[0] - CONE_ROWS * self.cones

    @property
    def firsts(self) -> range:
        """The first row of each cone that exists."""
        return range(self.linear, self.A.shape[0], CONE_ROWS)

    @property
    def x(self) -> Array:
        """(n,) the nearest point of the active planes."""
        return np.asarray(self.unit * (self.Q @ self.y))

    @property
    def multipliers(self) -> Array:
        """Multipliers of the active planes, in the solver's unit."""
        return _back(self.R, self.y)

    def hold(self, planes: list[Plane]) -> None:
        """Make these planes the active ones."""
        self.planes = planes
        normals = np.array([plane.normal for plane in planes]).reshape(-1, self.A.shape[1])
        self.Q, self.R = np.linalg.qr(normals.T)
        self.y = _forward(self.R, np.array([plane.bound for plane in planes]))

    def row(self, row: int, side: int) -> Plane:
        """Return a side of a row."""
        size = side / self.length[row]
        bound = self.lower[row] if side > 0 else self.upper[row]
        return Plane(
            row, side, size * self.A[row], size * bound / self.unit, self.length[row], None
        )

    def tangent(self, first: int, direction: Array) -> Plane | None:
        """Return the tangent plane of a cone in a direction; None where it has no normal."""
        weights = np.array([1.0, -direction[0], -direction[1]])
        rows = slice(first, first + CONE_ROWS)
        normal = weights @ self.A[rows]
        length = float(np.linalg.norm(normal))
        size = float(np.linalg.norm(self.length[rows]))
        if size == 0 or length <= ZERO_ROW * size:
            return None
        bound = float(weights @ self.lower[rows]) / (length * self.unit)
        return Plane(first, 1, normal / length, bound, length, direction)

    def inside(self, first: int, x: Array) -> Array:
        """Return (3,) s of a cone."""
        rows = slice(first, first + CONE_ROWS)
        return np.asarray(self.A[rows] @ x - self.lower[rows])

    def tangents(self, first: int) -> list[int]:
        """Return the places of the active tangent planes of a cone."""
        return [i for i, p in enumerate(self.planes) if p.direction is not None and p.row == first]


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
        if side and p.length[i] > 0 and _has_bound(p, i, side):
            _enter_where_independent(p, p.row(i, side))
    for first in p.firsts:
        kind, direction = active[first], active[first + 1 : first + CONE_ROWS]
        size = float(np.hypot(*direction))
        if not (abs(kind) > HALF and HALF < size < 2):
            continue
        angle = float(np.arctan2(direction[1], direction[0]))
        for turn in THIRDS if kind < 0 else THIRDS[:1]:
            plane = p.tangent(first, _direction(angle + turn))
            if plane is not None:
                _enter_where_independent(p, plane)
    _let_go(p)


def _direction(angle: float) -> Array:
    return np.array([np.cos(angle), np.sin(angle)])


def _has_bound(p: Progress, row: int, side: int) -> bool:
    return bool(p.lower[row] > -UNBOUNDED if side > 0 else p.upper[row] < UNBOUNDED)


def _enter_where_independent(p: Progress, plane: Plane) -> None:
    if len(p.planes) < p.A.shape[1] and _split(p, plane)[1] > INDEPENDENT:
        p.hold([*p.planes, plane])


def _let_go(p: Progress) -> None:
    """Drop planes that pull the wrong way, until none does; an equality turns instead."""
    while p.planes:
        multipliers = p.multipliers
        place = int(np.argmin(multipliers))
        if multipliers[place] >= 0:
            return
        plane = p.planes[place]
        rest = [each for i, each in enumerate(p.planes) if i != place]
        if plane.direction is None and p.lower[plane.row] == p.upper[plane.row]:
            turned = p.row(plane.row, -plane.side)
            p.hold([*p.planes[:place], turned, *p.planes[place + 1 :]])
        else:
            p.hold(rest)


def _split(p: Progress, plane: Plane) -> tuple[Array, float]:
    """Return h and the length of what is left of a plane's normal, `normal = Q h + rest`."""
    h = p.Q.T @ plane.normal
    rest = plane.normal - p.Q @ h
    more = p.Q.T @ rest
    return h + more, float(np.linalg.norm(rest - p.Q @ more))


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
            if stalled <= NEWTON_STALLS and _newton(p, size, plane):
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
            if gap > worst * p.length[i] and _has_bound(p, i, side):
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
        h, rest = _split(p, plane)
        gap = plane.bound - float(h @ p.y)
        independent = len(p.planes) < n and rest > DEPENDENT and gap < PROOF_RADIUS * rest
        steps += 1
        if steps > limit:
            return SolverFlag.STOPPED, steps
        multipliers, shares = p.multipliers, _back(p.R, h)
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


@dataclass
class _Touched:
    """The cones that x touches away from their apex, as Newton's method goes.

    Attributes:
        firsts: first row of each.
        directions: (k, 2) of the tangent planes.
        radii, forces: (k,) `|(s_1, s_2)|` and multiplier.
    """

    firsts: list[int]
    directions: Array
    radii: Array
    forces: Array


def _newton(p: Progress, size: float, worst: Plane | None) -> bool:
    """Turn the tangent planes by Newton's method with the active rows held; whether any turned.

    Args:
        p: the active planes.
        size: of x.
        worst: the tangent plane that is violated most, or None; where its cone cannot be turned,
            nothing is.
    """
    at = _touched(p, size)
    if not at.firsts or (worst is not None and worst.row not in at.firsts):
        return False
    x, turned, before, cost = p.x, False, p.planes, float(p.y @ p.y)
    if any(len(p.tangents(first)) > 1 for first in at.firsts):
        turned = _turn(p, at)
    for _ in range(NEWTON_STEPS):
        stepped = _step(p, at) if all(len(p.tangents(first)) == 1 for first in at.firsts) else None
        if stepped is None:
            break
        x_next, after, wrong = stepped
        if np.min(after.forces) <= 0:
            at, turned = _without(p, at, int(np.argmin(after.forces))), True
            if at.firsts:
                continue
            break
        length, x = float(np.linalg.norm(x_next - x)), x_next
        cosines = np.sum(at.directions * after.directions, axis=1)
        if np.min(cosines) <= LEAST_COSINE:
            break
        if length > NEWTON_STEP * size:
            turned, at = _turn(p, after), after
        if length <= NEWTON_LAST * size:
            if wrong is None:
                break
            turned = _release(p, wrong)
    if turned:
        _let_go(p)
    if turned and float(p.y @ p.y) < LEAST_COST * cost:
        p.hold(before)
        return False
    return turned


def _touched(p: Progress, size: float) -> _Touched:
    """Return the cones with one active plane, or two near each other and the sum of both."""
    x, multipliers, found = p.x, p.multipliers, []
    for first in p.firsts:
        places, s = p.tangents(first), p.inside(first, x)
        radius = max(float(s[0]), LEAST_RADIUS * float(np.hypot(s[1], s[2])))
        planes = [p.planes[place] for place in places]
        if not 0 < len(places) < CONE_ROWS or radius <= NEWTON_STEP * size * p.length[first]:
            continue
        wide = _are_wide([plane.direction for plane in planes])
        directions = np.array([plane.direction for plane in planes])
        forces = np.array([max(multipliers[i], ROUNDING) / p.planes[i].length for i in places])
        if not wide:
            total = forces @ directions
            found.append((first, total / np.linalg.norm(total), radius, p.unit * forces.sum()))
    firsts, directions, radii, forces = zip(*found, strict=True) if found else ((), (), (), ())
    return _Touched(
        list(firsts), np.array(directions).reshape(-1, 2), np.array(radii), np.array(forces)
    )


def _step(p: Progress, at: _Touched) -> tuple[Array, _Touched, int | None] | None:
    """Return x, the cones and the row that pulls most after a step; None where it leads nowhere.

    `min ½ |x|² + ½ Σ w (e · s(x))²` on the active planes, with `w = force / radius`.
    """
    x, k = p.x, len(at.firsts)
    rows, misses = np.zeros((k, x.size)), np.zeros(k)
    for i, (first, (c, s)) in enumerate(zip(at.firsts, at.directions, strict=True)):
        rows[i] = np.array([-s, c]) @ p.A[first + 1 : first + CONE_ROWS]
        misses[i] = np.array([-s, c]) @ p.inside(first, x)[1:]
    shares = rows @ p.Q
    free = rows - shares @ p.Q.T
    forces = np.maximum(at.forces, at.radii * LEAST_FORCE)
    pulls = np.linalg.solve(np.diag(at.radii / forces) + free @ free.T, misses)
    x = x - free.T @ pulls
    multipliers = _back(p.R, p.unit * p.y + shares.T @ pulls)
    after = _Touched(at.firsts, np.zeros((k, 2)), np.zeros(k), np.zeros(k))
    for i, first in enumerate(at.firsts):
        (place,), s = p.tangents(first), p.inside(first, x)
        after.radii[i] = np.hypot(s[1], s[2])
        after.forces[i] = multipliers[place] / p.planes[place].length
        if not (after.forces[i] <= 0 or (s[0] > 0 and after.radii[i] > 0)):
            return None
        after.directions[i] = s[1:] / max(after.radii[i], LEAST_DISTANCE)
    pulling = [
        (multiplier, plane.row)
        for multiplier, plane in zip(multipliers, p.planes, strict=True)
        if plane.direction is None and multiplier < 0
    ]
    return x, after, min(pulling)[1] if pulling else None


def _release(p: Progress, row: int) -> bool:
    """Let an active row go, or turn it where both its bounds are at one place; true."""
    planes = []
    for plane in p.planes:
        if plane.direction is not None or plane.row != row:
            planes.append(plane)
        elif p.lower[row] == p.upper[row]:
            planes.append(p.row(row, -plane.side))
    p.hold(planes)
    return True


def _without(p: Progress, at: _Touched, gone: int) -> _Touched:
    """Let the plane of a cone go that would pull; return the other cones."""
    p.hold([x for x in p.planes if x.direction is None or x.row != at.firsts[gone]])
    kept = [i for i in range(len(at.firsts)) if i != gone]
    firsts = [at.firsts[i] for i in kept]
    return _Touched(firsts, at.directions[kept], at.radii[kept], at.forces[kept])


def _turn(p: Progress, at: _Touched) -> bool:
    """Put one plane in the place of all active ones of these cones; true."""
    p.hold([x for x in p.planes if x.direction is None or x.row not in at.firsts])
    for first, direction in zip(at.firsts, at.directions, strict=True):
        plane = p.tangent(first, direction)
        if plane is not None:
            _enter_where_independent(p, plane)
    return True


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
        at_apex = len(places) == CONE_ROWS or _are_wide(directions)
        direction = across if at_apex else s[1:]
        length = float(np.linalg.norm(direction))
        active[first] = APEX if at_apex else ON_CONE
        active[first + 1 : first + CONE_ROWS] = direction / length if length > 0 else (1.0, 0.0)
    return lam, active


def _are_wide(directions: Sequence[Array | None]) -> bool:
    """Return whether tangent planes are far from each other: then they meet at the apex only."""
    first, last = directions[0], directions[-1]
    return first is not None and last is not None and float(first @ last) <= LEAST_COSINE


def _back(R: Array, v: Array) -> Array:
    return np.asarray(solve_triangular(R, v) if v.size else v)


def _forward(R: Array, v: Array) -> Array:
    return np.asarray(solve_triangular(R, v, trans="T") if v.size else v)

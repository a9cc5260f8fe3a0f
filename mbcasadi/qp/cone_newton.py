"""Newton's method on the tangent planes of a cone program, with the active rows held.

    min ½ |x|² + ½ Σ w (e · s(x))²   on the active planes,
    w = force / radius,   e = (-sin θ, cos θ)

A step gives each touched cone a new angle θ, that of s. Where a cone or a row would pull, it goes.
See `cone_program.py`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.qp_stages import (
    CONE_ROWS,
    LEAST_COSINE,
    LEAST_COST,
    LEAST_DISTANCE,
    LEAST_FORCE,
    LEAST_RADIUS,
    NEWTON_LAST,
    NEWTON_STEP,
    NEWTON_STEPS,
    ROUNDING,
)
from mbcasadi.qp.cone_planes import (
    Plane,
    Progress,
    are_wide,
    back_substitution,
    enter_where_independent,
    let_go,
)

Array = NDArray[np.float64]


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


def newton(p: Progress, size: float, worst: Plane | None) -> bool:
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
        let_go(p)
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
        wide = are_wide([plane.direction for plane in planes])
        directions = np.array([plane.direction for plane in planes])
        forces = np.array([max(multipliers[i], ROUNDING) / p.planes[i].length for i in places])
        if not wide:
            total = forces @ directions
            found.append((first, total / np.linalg.norm(total), radius, p.unit * forces.sum()))
    return _Touched(
        [first for first, *_ in found],
        np.array([direction for _, direction, *_ in found]).reshape(-1, 2),
        np.array([radius for *_, radius, _ in found]),
        np.array([force for *_, force in found]),
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
    multipliers = back_substitution(p.R, p.unit * p.y + shares.T @ pulls)
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


def _without(p: Progress, at: _Touched, gone: int) -> _Touched:
    """Let the plane of a cone go that would pull; return the other cones."""
    p.hold([x for x in p.planes if x.direction is None or x.row != at.firsts[gone]])
    kept = [i for i in range(len(at.firsts)) if i != gone]
    firsts = [at.firsts[i] for i in kept]
    return _Touched(firsts, at.directions[kept], at.radii[kept], at.forces[kept])


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


def _turn(p: Progress, at: _Touched) -> bool:
    """Put one plane in the place of all active ones of these cones; true."""
    p.hold([x for x in p.planes if x.direction is None or x.row not in at.firsts])
    for first, direction in zip(at.firsts, at.directions, strict=True):
        plane = p.tangent(first, direction)
        if plane is not None:
            enter_where_independent(p, plane)
    return True

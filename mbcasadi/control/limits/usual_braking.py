"""The deceleration of joints that their actuators can be relied on for together, at any pose.

Joints that brake at the same time load each other's actuators. With decelerations `|a_j| <= d_j` of
any signs the actuator of joint i gives at most `Σ_j |M_ij| d_j` beside the load; all of them are
within their limits where this is at most what is free of them, at each sampled pose. Of the boxes d
for which it is, the one with the largest `Σ log d_j` is taken: no joint gains a share at which
others lose more of theirs (J. Nash, The bargaining problem, Econometrica 1950).

With equality constraints the joints that are braked are independent ones, driven before others:
`v = S v_i` on null(A), the inertia is `Sᵀ M S`, the load `Sᵀ g`. A joint that depends on these
brakes with `Σ_k |S_jk| d_k`.

M holds what servos add to it during a tick, see `servo_map.py`: they brake without being clipped.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.system import System
from mbcasadi.system.joint_roles import independent_motions
from mbcasadi.system.ranges import Ranges
from mbcasadi.system.sizes import resting_actuation

Array = NDArray[np.float64]
Inertia = Callable[[Array], Array]

RELIED_ON = 0.5
"""Share of the deceleration that actuators at their limits give against gravity: the rest is for
centrifugal and Coriolis forces."""

LEAST_TICKS = 100
"""A joint crosses its range in at least as many ticks, speeding up and braking alike: what brakes
within a few ticks misses its stop by the error of one."""

LARGEST_RATIO = 5.0
"""Speeds of joints by those of independent ones, both over the sizes of their coordinates, from
which on a pose is near a singular one."""

LEAST_SHARE = 1e-3
"""Least share of what a joint's actuators give it alone."""


class JointIndices(NamedTuple):
    """Indices of joints in v and in q."""

    dofs: tuple[int, ...]
    places: tuple[int, ...]


def usual_braking(
    system: System,
    joints: JointIndices,
    ends: tuple[Array, Array],
    ranges: Ranges,
    inertia: Inertia | None = None,
) -> Array:
    """Return a share of the deceleration that is there at all sampled poses, NaN where none is.

    A servo brakes with what it gives at the stop, with the set-point at the far end of its range.

    Args:
        system: read from a model.
        joints: indices of the joints in v and in q.
        ends: (k,) lower and upper stops, infinite for none.
        ranges: of controls and actuator forces.
        inertia: q → (nv, nv) with what servos add to it; the system's own where None.
    """
    dofs, at = list(joints.dofs), inertia or (lambda q: np.array(system.mass_matrix(q)))
    if not system.nc:
        motions = [np.eye(system.nv)[:, dofs] for _ in system.scales.states]
        return _braking_of(system, joints, ends, ranges, (dofs, motions, at))
    alone = [np.eye(system.nv)[:, dofs] for _ in system.scales.states]
    direct = _braking_of(system, joints, ends, ranges, (dofs, alone, at))
    own, ratios = independent_motions(system, system.scales)
    if all(np.isfinite(direct)) and max(np.abs(S).max() for S in ratios) > LARGEST_RATIO:
        return direct  # near singular poses `Sᵀ g` has no bound
    size = system.scales.coordinates
    motions = [size[:, None] * S / size[own] for S in ratios]
    stops = tuple(np.full(len(own), np.inf) for _ in ends)
    for k, dof in enumerate(dofs):
        for side in range(2):
            if dof in own:
                stops[side][own.index(dof)] = ends[side][k]
    assert system.tree is not None
    place_of = {joint.dof: joint.qpos for joint in system.tree.joints}
    places = tuple(place_of.get(dof, -1) for dof in own)
    braking = _braking_of(
        system,
        JointIndices(tuple(own), places),
        (stops[0], stops[1]),
        ranges,
        (own, motions, at),
    )
    usable = np.nan_to_num(braking, nan=0.0)
    through = np.min([np.abs(S[dofs]) @ usable for S in motions], axis=0)
    return np.where(through > 0, through, direct)


def _braking_of(
    system: System,
    joints: JointIndices,
    ends: tuple[Array, Array],
    ranges: Ranges,
    motion: tuple[list[int], list[Array], Inertia],
) -> Array:
    """Return the braking (k,) of independent coordinates.

    Args:
        system, joints, ends, ranges: as in `usual_braking`, of these coordinates.
        motion: the coordinates, S (nv, k) at each sampled pose, and the inertia.
    """
    dofs, motions, inertia_at = motion
    alone = np.full(len(dofs), np.inf)
    most, inertia, free = _summed_limits(system), [], []
    for (q, _), S in zip(system.scales.states, motions, strict=True):
        M, B = inertia_at(q), np.abs(resting_actuation(system, q))
        M = S.T @ M @ S
        load = np.abs(S.T @ np.array(system.gravity_force(q)).ravel())
        most_here = np.minimum(most, _at_most(B, np.abs(ranges.force).min(axis=1)))
        for stops, sign in zip(ends, (1.0, -1.0), strict=True):
            pose = np.where(np.isfinite(stops), stops, np.ravel(q)[list(joints.places)])
            strength = _strength(system, _posed(q, joints.places, pose), ranges, sign)
            free.append(np.minimum(strength, most_here)[dofs] - load)
            inertia.append(np.abs(M))
            alone = np.minimum(alone, free[-1] / np.diag(inertia[-1]))
    braked = (alone > 0) & np.isfinite(alone)
    braking = np.where(alone > 0, RELIED_ON * alone, np.nan)
    if np.any(braked):
        rows = np.concatenate([M[np.ix_(braked, braked)] for M in inertia])
        ends_of = np.concatenate([f[braked] for f in free])
        braking[braked] *= shares_together(rows * alone[braked] / ends_of[:, None])
    return braking


def shares_together(load: Array) -> Array:
    """Return the shares x (k,) of what each joint brakes with alone: `load x <= 1`, `Σ log x` most.

    Args:
        load: (m, k) share of an actuator that a joint's deceleration alone takes.
    """
    x, start = ca.SX.sym("x", load.shape[1]), np.full(load.shape[1], 0.5 / load.sum(axis=1).max())
    problem = {"x": x, "f": -ca.sum1(ca.log(x)), "g": ca.sparsify(ca.DM(load)) @ x}
    quiet: dict[str, Any] = {
        "print_time": False,
        "ipopt": {"print_level": 0, "sb": "yes"},
        "error_on_fail": False,
    }
    solver = ca.nlpsol("shares", "ipopt", problem, quiet)
    found = solver(x0=start, lbx=LEAST_SHARE * start, ubx=1, lbg=-np.inf, ubg=1)
    best = np.array(found["x"]).ravel()
    best = best if np.all(np.isfinite(best)) and np.all(best > 0) else start
    return np.asarray(best / (load @ best).max())


def _posed(q: Array, places: tuple[int, ...], values: Array) -> Array:
    pose = np.array(q, dtype=float).ravel()
    pose[list(places)] = values
    return pose


def _strength(system: System, q: Array, ranges: Ranges, sign: float) -> Array:
    """Return the largest force (nv,) along a direction, 1 or -1, of controls within their range."""
    rest, act = np.zeros(system.nv), [np.zeros(system.na)] if system.na else []
    ends = [np.array(system.actuator_force(q, rest, u, *act)).ravel() for u in ranges.ctrl.T]
    strength: Array = np.maximum(np.max(sign * np.array(ends), axis=0), 0.0)
    return strength


def _summed_limits(system: System) -> Array:
    """Return the limits (nv,) of summed actuator forces on joints, infinite for none."""
    most = np.full(system.nv, np.inf)
    assert system.tree is not None
    dofs = {joint.name: joint.dof for joint in system.tree.joints}
    for name, range_ in zip(system.limits.joint_names, system.limits.joint_force, strict=True):
        most[dofs[name]] = np.abs(range_).min()
    return most


def _at_most(B: Array, force: Array) -> Array:
    """Return `B |p|` (nv,), infinite where a force without a limit acts."""
    unlimited = ~np.isfinite(force)
    acts = np.any(B[:, unlimited] > 0, axis=1)
    return np.where(acts, np.inf, B @ np.where(unlimited, 0.0, force))

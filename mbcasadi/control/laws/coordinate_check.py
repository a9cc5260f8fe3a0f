"""Whether the coordinates θ of a law determine the motions of its mechanism, and no more.

With a basis Z of the motions at a pose, θ determines them iff `J Z`, `J = ∂θ/∂q`, has as many
independent rows as there are motions. Its entries are independent iff it has as many as θ. Both are
generic: they are lost at single poses, so the best of some poses counts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.law_interface.law import Array, LawInputs
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.laws.poses import POSE_RANK_TOL, joint_rates, motions_at, sampled_poses
from mbcasadi.control.laws.task_coordinates import (
    Coordinates,
    DesiredMotion,
    chosen_coordinates,
    desired_motion,
    motion_gains,
)
from mbcasadi.control.tasks.task import Gain
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_kind, require_numbers
from mbcasadi.system import System

SAMPLES = 8
"""Poses around the authored one that are tried."""

STARTS = 64
"""Random configurations from which poses of a system without an authored one are sought."""

NEAR, WIDE = 0.2, 1.0
"""Spread of both, rad or lengths of the model."""

ADVICE = "joint_coordinates, function_coordinates or chosen_coordinates makes them"


@dataclass(frozen=True)
class _Count:
    """At one pose: motions, those that θ determines, and independent entries of θ."""

    motions: int
    determined: int
    independent: int


def coordinates_of(
    system: System,
    coordinates: Coordinates | None,
    *,
    allow_free: bool,
    metric: ArrayLike | None = None,
) -> Coordinates:
    """Return a law's coordinates, `chosen_coordinates` where none are given.

    Args:
        system: the mechanism.
        coordinates: θ of the caller.
        allow_free: θ may leave motions open; the law damps them.
        metric: (nv, nv) of `chosen_coordinates`.

    Raises:
        ProblemError: no coordinates of this system, dependent entries, or motions left open.
    """
    if coordinates is None:
        return chosen_coordinates(system, metric=metric)
    require_coordinates(system, coordinates)
    _require_determined(system, coordinates, allow_free)
    return coordinates


def motion_towards(
    system: System,
    coordinates: Coordinates | None,
    gains: tuple[Gain, Gain | None],
    damping: float,
    metric: ArrayLike | None,
    rank_tol: float,
) -> tuple[Coordinates, Callable[[LawInputs], tuple[Mechanism, DesiredMotion]]]:
    """Return θ, and the mechanism in its metric with its desired motion as a function of the state.

    Args:
        system: the mechanism.
        coordinates: θ; `chosen_coordinates` by default.
        gains: G_P, 1/s², and G_D, 1/s; critical where None.
        damping: 1/s, of motions that θ does not determine; without it θ has to determine all.
        metric: as in `computed_torque`.
        rank_tol: of `LawOptions`.

    Raises:
        ProblemError: the options do not fit the system.
    """
    require_numbers(damping=damping)
    theta = coordinates_of(system, coordinates, allow_free=damping > 0, metric=metric)
    checked = motion_gains(theta, *gains)

    def motion_at(at: LawInputs) -> tuple[Mechanism, DesiredMotion]:
        m = Mechanism.measured(system, at, rank_tol, metric=metric)
        return m, desired_motion(m, theta, at.ref, checked, damping)

    return theta, motion_at


def require_coordinates(system: System, coordinates: object) -> None:
    """Raise `ProblemError` unless an argument is coordinates for this system."""
    require_kind("coordinates", coordinates, Coordinates, ADVICE)
    assert isinstance(coordinates, Coordinates)
    nq, nv = coordinates.rows.numel_in("q"), coordinates.rows.numel_in("v")
    if (nq, nv) != (system.nq, system.nv):
        raise ProblemError(
            f"coordinates are of a system with nq = {nq}, nv = {nv}; '{system.name}' has "
            f"nq = {system.nq}, nv = {system.nv}"
        )


def _require_determined(system: System, theta: Coordinates, allow_free: bool) -> None:
    counts = _counts(system, theta)
    if not counts:  # no closed pose is known: the status of the law reports it at run time
        return
    named, k = ", ".join(theta.names), len(theta.names)
    most = max(count.independent for count in counts)
    if most < k:
        raise ProblemError(
            f"θ = ({named}) has {k} entries, of which {most} are independent on '{system.name}'; "
            f"expected independent ones, of {counts[0].motions} motions"
        )
    missing = min(count.motions - count.determined for count in counts)
    if missing > 0 and not allow_free:
        motions = min(count.motions for count in counts)
        raise ProblemError(
            f"θ = ({named}) determines {motions - missing} of the {motions} motions of "
            f"'{system.name}' and leaves the others without control; give one entry for each "
            "motion, or have them damped: damping=, or allow_free=True in quasi-velocities"
        )


def _counts(system: System, theta: Coordinates) -> list[_Count]:
    """Return the counts at some poses; rows that a mask can switch off bind no entry of θ."""
    counts = []
    for q in _poses(system):
        Z = motions_at(system, q)
        J = np.array(theta.rows(q, np.zeros(system.nv))[1]) @ joint_rates(system, None)
        free = np.eye(system.nv) if system.mask is not None else Z
        counts.append(_Count(Z.shape[1], _rank(J @ Z), _rank(J @ free)))
    return counts


def _poses(system: System) -> Array:
    if system.timed or "v" in _inputs_of_rows(system):
        return np.zeros((0, system.nq))
    if system.tree is not None:
        around = sampled_poses(system, SAMPLES, spread=NEAR)
        return np.vstack([np.asarray(system.tree.q0, dtype=float)[None], around])
    starts = sampled_poses(system, STARTS, q0=np.zeros(system.nq), spread=WIDE)
    return starts[:SAMPLES]


def _inputs_of_rows(system: System) -> list[str]:
    loop: ca.Function | None = system.loop_jacobian if system.nc else None
    return [] if loop is None else list(loop.name_in())


def _rank(X: Array) -> int:
    length = np.linalg.norm(X, axis=1, keepdims=True)
    rows = X / np.where(length > 0, length, 1.0)
    return int(np.linalg.matrix_rank(rows, POSE_RANK_TOL)) if rows.size else 0

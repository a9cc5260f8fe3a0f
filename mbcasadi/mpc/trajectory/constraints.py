"""Independent rows on the constraint manifold.

A mechanism with loops has fewer freedoms than coordinates, and its rows may repeat each other.
Rows of an optimal control problem that repeat the loops have no unique multipliers, so
they are chosen near a pose: with `A = U S Vᵀ` there, `Uᵀ phi` are as many independent combinations
of rows as A has rank, and `Z` (`A Z = 0`) the free directions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
import scipy
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.operating_point import Array, numbers, place_of, rows_fun
from mbcasadi.control.regulators.tangent import (
    TANGENT_RANK_TOL,
    project_state,
    tangent,
)
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.stage import StageSymbols
from mbcasadi.qp.rows import Bounded
from mbcasadi.system import System, evaluate
from mbcasadi.system.coordinates import authored_pose

DEPENDENT = 1e-7
"""Share of the largest pivot below which a row repeats the others."""


@checked
def pin_independent_coordinates(
    system: System,
    symbols: StageSymbols,
    q: ArrayLike,
    v: ArrayLike | None = None,
    mask: ArrayLike | None = None,
) -> list[Bounded]:
    """Return `Z_qᵀ (q ⊖ q_ref) = 0` and `Z_vᵀ (v - v_ref) = 0`: a state by its free directions.

    The rows hold at the end; those of a `Start` at the start.

    Args:
        system: the mechanism.
        symbols: those of the problem's expressions.
        q, v: (nq,), (nv,) state on the manifold; rest by default.
        mask: (nc,) rows that are on at that sample; the system's own by default.

    Raises:
        ProblemError: a mask for a system without one; the state is off the manifold.
        ShapeError: a wrong shape, or NaN.
    """
    place = project_state(system, place_of(system, q, v, mask=mask), TANGENT_RANK_TOL)
    now = tangent(system, place, TANGENT_RANK_TOL)
    dq = system.difference(ca.DM(place.q), symbols.q)
    E_q, E_v = (ca.DM(_orthonormal(Z)) for Z in (now.Z_q, now.Z_v))
    rows = [E_q.T @ dq, E_v.T @ (symbols.v - ca.DM(place.v))]
    return [Bounded(row, 0.0, 0.0, at_end=True) for row in rows if row.numel()]


def _orthonormal(Z: Array) -> Array:
    """Return the orthonormal columns nearest to those of Z: rows in the units of q and v."""
    U, _, Vt = np.linalg.svd(Z, full_matrices=False)
    return np.asarray(U @ Vt)


@dataclass(frozen=True)
class Closure:
    """Rows that are zero on the manifold, and near it only there.

    Attributes:
        of_q: of positions: independent combinations of phi, and unit quaternions.
        of_v: of velocities: independent combinations of psi.
    """

    of_q: ca.SX
    of_v: ca.SX


def closure(system: System, q: ca.SX, v: ca.SX, near: ArrayLike | None) -> Closure:
    """Return independent closure rows, chosen at the pose `near` on the manifold.

    Args:
        system: the mechanism; rows that a mask switches are left out.
        q, v: (nq, 1), (nv, 1) symbols.
        near: (nq,) pose; the authored one by default.
    """
    norms = _norms(system, q)
    if not system.nc or system.mask is not None:
        return Closure(norms, ca.SX(0, 1))
    pose = authored_pose(system) if near is None else near
    place = project_state(system, place_of(system, pose), TANGENT_RANK_TOL)
    rows = numbers(rows_fun(system), place.values)
    at = {"q": q, "v": v, "t": ca.SX(0)}
    phi = independent(rows["of_phi"] * rows["A"]).T @ ca.SX(evaluate(system.constraint, at))
    psi = independent(rows["A"]).T @ ca.SX(evaluate(system.loop_rate, at))
    return Closure(ca.vertcat(phi, norms), psi)


def require_independent(names: Sequence[str], rows: Array) -> None:
    """Raise where rows repeat or contradict each other.

    Raises:
        ProblemError: with the names of those that can be left out.
    """
    if not len(names):
        return
    R, order = scipy.linalg.qr(rows.T, mode="r", pivoting=True)
    size = np.abs(np.diag(R))
    rank = int(np.sum(size > DEPENDENT * max(1.0, size.max(initial=0.0))))
    if rank < len(names):
        dependent = ", ".join(names[i] for i in order[rank:])
        raise ProblemError(
            f"{len(names)} rows of start and end are equalities, and {rank} of them are "
            f"independent on the manifold: {dependent} repeat or contradict the others. Fix "
            "freedoms only: see pin_independent_coordinates"
        )


def independent(A: Array) -> ca.DM:
    """Return U (nc, rank), so that `Uᵀ A` has full rank."""
    U, s, _ = np.linalg.svd(A)
    rank = int(np.sum(s > TANGENT_RANK_TOL * max(1.0, s.max(initial=0.0))))
    return ca.DM(U[:, :rank])


def _norms(system: System, q: ca.SX) -> ca.SX:
    """Return `|quaternion|² - 1` of each ball and free joint."""
    rows = [ca.SX(0, 1)]
    for joint in () if system.tree is None else system.tree.joints:
        if joint.kind in ("ball", "free"):
            first = joint.qpos + (3 if joint.kind == "free" else 0)
            rows.append(ca.sumsqr(q[first : first + 4]) - 1)
    return ca.vertcat(*rows)

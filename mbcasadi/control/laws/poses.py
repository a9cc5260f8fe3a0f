"""Rows and motions of a mechanism at one pose, and sampled poses of its workspace."""

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.arguments import require_system
from mbcasadi.control.law_interface.law import Array
from mbcasadi.errors import ShapeError
from mbcasadi.formulation.metric import metric_root
from mbcasadi.linalg import MatrixRoot
from mbcasadi.shapes import (
    column,
    number,
    real_array,
    require_numbers,
    require_positive,
    require_shape,
)
from mbcasadi.system import System, evaluate
from mbcasadi.system.coordinates import authored_pose

POSE_RANK_TOL = 1e-6
"""Singular values of A below this share of the largest, or of the usual length of the longest row,
count as zero at a pose."""

CLOSED = 1e-10
"""Residual of the rows, in their units, below which a pose counts as closed."""

CLOSING_STEPS = 30


def weights_of(system: System, metric: ArrayLike | None) -> MatrixRoot[ca.DM] | None:
    """Return `W^{1/2}` and `W^{-1/2}` of a metric  [A05, §7.2], or None without one.

    Raises:
        ShapeError: not (nv, nv), not symmetric or not positive definite.
    """
    if metric is None:
        return None
    root = metric_root(real_array("metric", metric))
    require_shape("metric", root.root, (system.nv, system.nv), "(nv, nv)")
    return root


def rows_at(
    system: System,
    q: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    v: ArrayLike | None = None,
    t: float = 0.0,
) -> Array:
    """Return A (nc, nv), `∂psi/∂v` for rows of velocities; rows that are off are zero.

    Args:
        system: the mechanism.
        q: (nq,) pose.
        mask: (nc,) rows that are on; all by default.
        v: (nv,) velocity; rest by default. It matters for rows that are nonlinear in v.
        t: s.
    """
    require_system(system)
    place = column("q", q, system.nq)
    on = column("mask", np.ones(system.nc) if mask is None else mask, system.nc)
    rate = column("v", np.zeros(system.nv) if v is None else v, system.nv)
    require_numbers(t=abs(number("t", t)))
    if not system.nc:
        return np.zeros((0, system.nv))
    values: dict[str, ArrayLike] = {"q": place, "v": rate, "t": t}
    return np.asarray(on[:, None] * evaluate(system.loop_jacobian, values).full())


def motions_at(
    system: System,
    q: ArrayLike,
    *,
    metric: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    v: ArrayLike | None = None,
    t: float = 0.0,
) -> Array:
    """Return (nv, k) an orthonormal basis of the weighted velocities that the rows allow at q.

    Args:
        system: the mechanism.
        q: (nq,) closed pose.
        metric: (nv, nv) W of velocities; the identity by default.
        mask, v, t: as in `rows_at`.
    """
    A = rows_at(system, q, mask, v=v, t=t)
    weights = weights_of(system, metric)
    if weights is not None:
        A = A @ weights.inverse.full()
    _, size, Vt = np.linalg.svd(A)
    usual = system.scales.longest_row if weights is None else 0.0
    rank = int(np.sum(size > POSE_RANK_TOL * max(usual, size.max(initial=0.0))))
    return np.asarray(Vt[rank:].T)


@checked
def sampled_poses(
    system: System,
    count: int,
    *,
    q0: ArrayLike | None = None,
    spread: ArrayLike = 0.5,
    seed: int = 0,
) -> Array:
    """Return (n, nq) closed poses around q0, `n <= count`: a sample of the workspace.

    Random steps from q0, normal with the deviation `spread`, are moved onto the rows by Newton's
    method; those that do not close are left out. Joint limits are ignored.

    Args:
        system: the mechanism.
        count: of random steps.
        q0: (nq,) closed pose; the authored one by default.
        spread: rad or m, a number or (nv,).
        seed: of the random numbers.

    Raises:
        ProblemError: no count or a negative seed.
        ShapeError: q0 or `spread` of a wrong shape, or not finite and at least zero.
    """
    require_system(system)
    require_positive(count=count)
    require_numbers(seed=seed)
    count = int(count)
    start = authored_pose(system) if q0 is None else column("q0", q0, system.nq)
    rng = np.random.default_rng(int(seed))
    step = _spread(system, spread)
    dq = step[:, None] * rng.standard_normal((system.nv, count))
    move = system.integrate.map(count)
    q = np.asarray(move(np.tile(start[:, None], count), dq).full())
    if not system.nc:
        return np.asarray(q.T)
    phi, A = system.constraint.map(count), system.constraint_jacobian
    rows = A.map(count)
    for _ in range(CLOSING_STEPS):
        gap = phi(q).full()
        if np.abs(gap).max(initial=0.0) <= CLOSED:
            break
        blocks = rows(q).full().reshape(system.nc, count, system.nv).transpose(1, 0, 2)
        back = np.linalg.pinv(blocks, rcond=POSE_RANK_TOL) @ gap.T[:, :, None]
        q = np.asarray(move(q, -back[:, :, 0].T).full())
    return np.asarray(q.T[np.abs(phi(q).full()).max(axis=0) <= CLOSED])


def _spread(system: System, spread: ArrayLike) -> Array:
    """Return (nv,) deviations, finite and at least zero."""
    given = real_array("spread", spread)
    if given.shape not in {(), (system.nv,)} or not np.all(np.isfinite(given) & (given >= 0)):
        raise ShapeError(
            f"spread is {given.tolist()}; expected a number or ({system.nv},), at least zero, "
            "in rad or m"
        )
    return np.broadcast_to(given, (system.nv,))

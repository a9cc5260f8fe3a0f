"""Rows and motions of a mechanism at one pose, and sampled poses of its workspace."""

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Array
from mbcasadi.control.law_interface.weights import weights_of
from mbcasadi.errors import ShapeError
from mbcasadi.shapes import column, number, real_array, require_numbers, require_positive
from mbcasadi.system import System, evaluate
from mbcasadi.system.coordinates import authored_pose
from mbcasadi.system.parametric import at_model_values
from mbcasadi.system.row_lengths import typical_row_lengths
from mbcasadi.system.sizes import residual_sizes

POSE_RANK_TOL = 1e-6
"""Singular values of A, its rows over the sizes of their residuals, count as zero at a pose below
this share of the largest, or of the usual length of the longest row."""

CLOSED = 1e-10
"""Residual, over its size, below which a row counts as closed."""

CLOSING_STEPS = 30


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
        metric: (nv, nv) W of velocities; that of `weights_of` by default.
        mask, v, t: as in `rows_at`.
    """
    A = rows_at(system, q, mask, v=v, t=t) @ joint_rates(system, metric)
    A = A / residual_sizes(system)[:, None]
    _, size, Vt = np.linalg.svd(A)
    rank = int(np.sum(size > POSE_RANK_TOL * max(_usual_length(system, metric), *size, 0.0)))
    return np.asarray(Vt[rank:].T)


def joint_rates(system: System, metric: ArrayLike | None) -> Array:
    """Return (nv, nv) `W^{-1/2}`, from weighted velocities to v."""
    weights = weights_of(system, metric)
    return np.eye(system.nv) if weights is None else np.asarray(weights.inverse.full())


def _usual_length(system: System, metric: ArrayLike | None) -> float:
    """Return the usual length of the longest row, over the sizes of residuals, in a metric."""
    lengths = typical_row_lengths(system, system.scales.states, joint_rates(system, metric))
    return float((lengths / residual_sizes(system)).max(initial=0.0))


@checked
@at_model_values
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
    method, in the sizes of `System.scales`; those that do not close are left out. Joint limits
    are ignored.

    Args:
        system: the mechanism.
        count: of random steps.
        q0: (nq,) closed pose; the authored one by default.
        spread: (nv,) in rad or m; or a number, in rad and in lengths of the model.
        seed: of the random numbers.

    Raises:
        ProblemError: no count or a negative seed.
        ShapeError: q0 or `spread` of a wrong shape, or not finite and at least zero.
    """
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
    rows, per_row = A.map(count), 1 / residual_sizes(system)[:, None]
    size = system.scales.coordinates
    for _ in range(CLOSING_STEPS):
        gap = per_row * phi(q).full()
        if np.abs(gap).max(initial=0.0) <= CLOSED:
            break
        blocks = rows(q).full().reshape(system.nc, count, system.nv).transpose(1, 0, 2)
        blocks = per_row * blocks * size
        back = np.linalg.pinv(blocks, rcond=POSE_RANK_TOL) @ gap.T[:, :, None]
        q = np.asarray(move(q, -size[:, None] * back[:, :, 0].T).full())
    return np.asarray(q.T[np.abs(per_row * phi(q).full()).max(axis=0) <= CLOSED])


def _spread(system: System, spread: ArrayLike) -> Array:
    """Return (nv,) deviations, finite and at least zero."""
    given = real_array("spread", spread)
    if given.shape not in {(), (system.nv,)} or not np.all(np.isfinite(given) & (given >= 0)):
        raise ShapeError(
            f"spread is {given.tolist()}; expected a number or ({system.nv},), at least zero"
        )
    return given * system.scales.coordinates if given.shape == () else given

"""The constraint manifold near a state: rank, bases of the free directions, singular poses.

Positions move within null(A_phi), the rows of phi alone; velocities within null(A), all rows. The
two differ where rows hold for velocities only (a wheel that rolls). Lengths of motions and of rows
are those in the sizes of the mechanism (`System.scales`), so that no decision depends on units.
"""

from dataclasses import dataclass, replace

import numpy as np

from mbcasadi.control.law_interface.pivots import leading_rows
from mbcasadi.control.regulators.operating_point import Array, Place, numbers, rows_fun
from mbcasadi.errors import ProblemError
from mbcasadi.system import System
from mbcasadi.system.sizes import longest_row, rate_sizes, residual_sizes, sized_rows

TANGENT_RANK_TOL = 1e-7
"""Singular value of A, relative to the largest (the longest row at least), that counts as zero.
States are closed to rounding errors before the rank is decided."""

OPEN = 1e-6
"""Residual, over its size, of a state that is not on the manifold: an error. Smaller ones are
closed by Newton's steps."""

CLOSED = 1e-11
"""Largest residual, over its size, after Newton's steps."""

NEWTON_LIMIT = 40

BESIDE = 1e-3
"""Rad, or share of a length. Distance of the neighbours that a pose is compared with."""

ALIKE = 6
"""Digits of a share used to sort rows; rows with equal shares keep the order of the model."""

NEIGHBOURS = 3


@dataclass(frozen=True)
class Tangent:
    """Bases of the tangent space: `δq = Z_q ξ`, `δv = slope ξ + Z_v η`.

    Attributes:
        Z_q: (nv, n_q) null space of the rows of phi, `Z_qᵀ W Z_q = I`, `W = diag(1 / size²)`.
        Z_v: (nv, n_v) null space of all rows, in the same metric.
        slope: (nv, n_q) `-A⁺ (∂psi/∂q) Z_q`, the change of v with q that keeps it admissible.
        A_pinv: (nv, nc) A⁺ in the metric W.
        moving: (nc, nv) `Ȧ`.
    """

    Z_q: Array
    Z_v: Array
    slope: Array
    A_pinv: Array
    moving: Array


def project_state(system: System, place: Place, rank_tol: float) -> Place:
    """Return the state on the manifold, by Newton's steps `-A⁺ phi` and `v - A⁺ psi`.

    Raises:
        ProblemError: rows are open by more than `OPEN`, or cannot be closed.
    """
    rows = numbers(rows_fun(system), place.values)
    for name, size, violation in (
        ("phi", residual_sizes(system), "open"),
        ("psi", rate_sizes(system, place.v), "violated by the velocity"),
    ):
        gap = np.abs(rows[name]).ravel()
        if (gap / size).max(initial=0.0) > OPEN:
            worst = int((gap / size).argmax())
            raise ProblemError(
                f"'{system.name}': row {worst} ({system.constraint_names[worst]}) is {violation} "
                f"by {gap[worst]:.1e}; expected a state on the constraint manifold: see mb.assemble"
            )
    projected = newton_projection(system, place, rank_tol)
    if projected is None:
        raise ProblemError(
            f"'{system.name}': the constraints cannot be closed to {CLOSED} of their size; they "
            "contradict each other, or the pose is singular"
        )
    return projected


def newton_projection(system: System, place: Place, rank_tol: float) -> Place | None:
    """Return the state on the manifold that Newton's steps reach, or None."""
    size = residual_sizes(system)
    for _ in range(NEWTON_LIMIT):
        rows = numbers(rows_fun(system), place.values)
        phi, psi = rows["phi"].ravel(), rows["psi"].ravel()
        gap = np.abs(phi / size).max(initial=0.0)
        gap = max(gap, np.abs(psi / rate_sizes(system, place.v)).max(initial=0.0))
        step = -weighted_inverse(system, rows["of_phi"] * rows["A"], rank_tol) @ phi
        q = np.array(system.integrate(place.q, step)).ravel()
        v = place.v - weighted_inverse(system, rows["A"], rank_tol) @ psi
        place = replace(place, q=q, v=v)
        if gap < CLOSED:
            return place
    return None


def tangent(system: System, place: Place, rank_tol: float, like: Tangent | None = None) -> Tangent:
    """Return the bases at a state on the manifold.

    Args:
        system: the mechanism.
        place: a state on the manifold.
        rank_tol: see `RANK_TOL`.
        like: bases to turn towards; without them each column is near one coordinate.
    """
    rows = numbers(rows_fun(system), place.values)
    A_pinv = weighted_inverse(system, rows["A"], rank_tol)
    previous = (None, None) if like is None else (like.Z_q, like.Z_v)
    Z_q = free_directions_of(system, rows["of_phi"] * rows["A"], rank_tol, previous[0])
    Z_v = free_directions_of(system, rows["A"], rank_tol, previous[1])
    return Tangent(Z_q, Z_v, -A_pinv @ rows["psi_q"] @ Z_q, A_pinv, rows["moving"])


def require_regular(system: System, place: Place, bases: Tangent, rank_tol: float) -> None:
    """Raise where the rank of the constraints is higher beside the state than in it.

    Args:
        system: the mechanism.
        place: a state on the manifold.
        bases: bases of the tangent space there.
        rank_tol: see `RANK_TOL`.

    Raises:
        ProblemError: a singular pose; the message names the constraints that lose rank there.
    """
    rng = np.random.default_rng(0)
    n_free = bases.Z_q.shape[1]
    for _ in range(NEIGHBOURS if n_free and system.nc else 0):
        direction = rng.standard_normal(n_free)
        step = bases.Z_q @ (BESIDE * direction / np.linalg.norm(direction))
        q = np.array(system.integrate(place.q, step)).ravel()
        neighbour = newton_projection(system, replace(place, q=q), rank_tol)
        beside = None if neighbour is None else tangent(system, neighbour, rank_tol)
        shapes = (bases.Z_q.shape, bases.Z_v.shape)
        if beside is not None and (beside.Z_q.shape, beside.Z_v.shape) == shapes:
            continue
        raise ProblemError(_singular(system, bases, neighbour, rank_tol))


def free_directions_of(
    system: System, A: Array, rank_tol: float, like: Array | None = None
) -> Array:
    """Return (nv, k) columns with `A Z = 0`, `Zᵀ W Z = I`, `W = diag(1 / size²)`.

    Args:
        system: the mechanism, with the sizes of coordinates and residuals.
        A: (nc, nv) rows of it.
        rank_tol: share of the largest singular value, or of the longest row, that counts as zero.
        like: (nv, k) bases to turn towards.
    """
    size = system.scales.coordinates[:, None]
    near = None if like is None else like / size
    return size * null_basis(sized_rows(system, A), rank_tol, near, scale=longest_row(system))


def coordinates_of(system: System, Z: Array) -> Array:
    """Return (k, nv) `Zᵀ W`, the left inverse of a basis of `free_directions_of`."""
    return np.asarray((Z / system.scales.coordinates[:, None] ** 2).T)


def weighted_inverse(system: System, A: Array, rank_tol: float) -> Array:
    """Return (nv, nc) A⁺, least in the sizes of coordinates, nearest in those of residuals."""
    inverse = pseudo_inverse(sized_rows(system, A), rank_tol, scale=longest_row(system))
    size = system.scales.coordinates[:, None]
    return np.asarray(size * inverse / residual_sizes(system))


def null_basis(
    A: Array, rank_tol: float, like: Array | None = None, *, scale: float = 1.0
) -> Array:
    """Return (n, k) orthonormal columns with `A Z = 0`.

    Z is turned to be nearest to `like`, or to k unit vectors: those of the coordinates that
    pivoting selects as the most independent. So it varies smoothly with A, and its columns have
    the signs of coordinates.

    Args:
        A: (m, n), entries of one unit.
        rank_tol: share of the largest singular value, or of `scale`, that counts as zero.
        like: (n, k).
        scale: usual length of a row.
    """
    n = A.shape[1]
    _, s, Vt = np.linalg.svd(A, full_matrices=True)
    rank = int(np.sum(s > rank_tol * max(scale, s.max(initial=0.0))))
    Z = Vt[rank:].T
    if Z.shape[1] == 0:
        return Z
    if like is None:
        like = np.eye(n)[:, leading_rows(Z)]
    U, _, Wt = np.linalg.svd(Z.T @ like)
    return np.asarray(Z @ U @ Wt)


def pseudo_inverse(A: Array, rank_tol: float, *, scale: float = 1.0) -> Array:
    """Return A⁺ with the drop rule of `null_basis`."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    significant = s > rank_tol * max(scale, s.max(initial=0.0))
    return np.asarray(Vt[significant].T @ (U[:, significant] / s[significant]).T)


def spin(system: System, v: Array) -> Array:
    """Return (nv, nv) W with `d(δq)/dt = δv - W δq` beside a motion with velocity v.

    `-[ω]×` on the diagonal for each ball and free joint, whose rates are in body axes.
    """
    W = np.zeros((system.nv, system.nv))
    for joint in () if system.tree is None else system.tree.joints:
        if joint.kind in ("ball", "free"):
            first = joint.dof + (3 if joint.kind == "free" else 0)
            x, y, z = v[first : first + 3]
            W[first : first + 3, first : first + 3] = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
    return W


def _singular(system: System, bases: Tangent, neighbour: Place | None, rank_tol: float) -> str:
    """Return a message with the pose where the rank changes, and the constraints concerned."""
    rank = system.nv - bases.Z_v.shape[1]
    head = f"'{system.name}': the constraints have rank {rank} at this pose"
    if neighbour is None:
        return f"{head}, and no pose beside it was found: a singular pose has no linear model"
    A = sized_rows(system, numbers(rows_fun(system), neighbour.values)["A"])
    U, s, _ = np.linalg.svd(A)
    neighbour_rank = int(np.sum(s > rank_tol * max(longest_row(system), s.max())))
    share = np.abs(U[:, neighbour_rank - 1])
    names = system.constraint_names
    order = np.argsort(-share.round(ALIKE), kind="stable")
    released = dict.fromkeys(names[i] for i in order if share[i] > share.max() / 2)
    return (
        f"{head} and {neighbour_rank} beside it: a singular pose, where "
        f"{', '.join(released)} leaves one more direction free and no linear model "
        "holds. Linearise beside it"
    )

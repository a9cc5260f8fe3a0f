"""Forces that hold a pose: controls of least norm, then reactions of least norm, within limits.

And the directions along which the pose can move and still be held, to first order.

All numbers have the sizes of `RestSizes`, one being the largest load of the mechanism: no result
depends on the units of a model.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from mbcasadi.control.regulators.operating_point import Array

ROUNDING = 1e-10
"""Singular value, relative to the largest, that counts as zero."""

BALANCED = 1e-9
"""Unbalanced force, in loads and relative to the largest one, that counts as zero."""

REACTION_WEIGHT = 1e-4
"""Weight of reactions beside controls where limits bind: controls come within 1e-8 of the least."""

SATISFIED = 1e-9
"""Violation of a limit, in loads and relative to its size, that counts as none."""

WIDENED = SATISFIED / 2
"""Widening of limits, in loads and relative to their size, where they leave a single point."""


FREE_TOL = 1e-8
"""Singular value, relative to the largest stiffness (a load per rad at least), of a direction along
which an equilibrium persists."""


@dataclass(frozen=True)
class LoadLimits:
    """`G y <= d`: rows for controls and reactions, `y = (u, reactions)`.

    Attributes:
        G: (m, ny).
        d: (m,).
    """

    G: Array
    d: Array

    def violation(self, y: Array) -> float:
        """Return the largest violation, relative to the size of its limit; zero inside."""
        over = (self.G @ y - self.d) / (1.0 + np.abs(self.d))
        return float(max(over.max(initial=0.0), 0.0))


@dataclass(frozen=True)
class Loads:
    """The forces that hold a pose.

    Attributes:
        y: (ny,) controls and reactions.
        unbalanced: (nv,) force that is not balanced.
        balanced: whether it is zero.
        feasible: the limits hold.
    """

    y: Array
    unbalanced: Array
    balanced: bool
    feasible: bool


def loads(E: Array, g: Array, limits: LoadLimits, nu: int) -> Loads:
    """Return y with `E y = g`, least `|u|`, then least reactions, `G y <= d`.

    Without active limits two pseudo-inverses give it, exactly. Otherwise the least-distance problem
    `min |w|, G' w >= d'` is solved through non-negative least squares (Lawson and Hanson, Solving
    Least Squares Problems, chapter 23).

    Args:
        E: (nv, ny) generalised forces of unit controls and reactions.
        g: (nv,) force to balance.
        limits: on y.
        nu: number of controls, the first entries of y.
    """
    y = np.asarray(np.linalg.pinv(E, ROUNDING) @ g)
    unbalanced = g - E @ y
    balanced = float(np.abs(unbalanced).max(initial=0)) <= BALANCED * (1 + np.abs(g).max(initial=0))
    N = null(E)
    least = y + N @ _lexicographic(N, y, nu)
    if limits.violation(least) <= SATISFIED:
        return Loads(least, unbalanced, balanced, True)
    inside = _within(N, y, limits, nu)
    return Loads(least if inside is None else inside, unbalanced, balanced, inside is not None)


def null(E: Array, tol: float = ROUNDING) -> Array:
    """Return (n, k) orthonormal columns with `E N = 0`."""
    _, s, Vt = np.linalg.svd(E, full_matrices=True)
    return np.asarray(Vt[int(np.sum(s > tol * s.max(initial=0.0))) :].T)


def _lexicographic(N: Array, y: Array, nu: int) -> Array:
    """Return w with the least `|u|` of `y + N w`, and among those the least reactions.

    N is orthonormal, so its parts are compared with one: where no internal force loads an
    actuator, its upper part consists of rounding errors.
    """
    if N.shape[1] == 0:
        return np.zeros(0)
    U, s, Vt = np.linalg.svd(N[:nu], full_matrices=True)
    rank = int(np.sum(s > ROUNDING))
    w = -Vt[:rank].T @ ((U[:, :rank].T @ y[:nu]) / s[:rank])
    internal = Vt[rank:].T  # internal forces of the constraints alone: orthonormal reactions
    return np.asarray(w - internal @ ((N @ internal).T @ (y + N @ w)))


def _within(N: Array, y: Array, limits: LoadLimits, nu: int) -> Array | None:
    """Return the y within limits of least weighted norm, or None where there is none.

    At the edge of what the limits allow a single y is left, and rounding errors decide whether it
    is inside: the limits are then widened by `WIDENED`, so that the answer does not depend on them.
    """
    if N.shape[1] == 0:
        return None
    weight = np.where(np.arange(y.size) < nu, 1.0, REACTION_WEIGHT)[:, None]
    Q, R = np.linalg.qr(weight * N)
    shift = Q.T @ (weight[:, 0] * y)
    back = np.linalg.inv(R)  # y + N w, with w = back (z - shift)
    size = 1.0 + np.abs(limits.d)
    excess = limits.G @ y - limits.d
    fixed = np.linalg.norm(limits.G @ N, axis=1) <= ROUNDING * np.linalg.norm(limits.G, axis=1)
    if np.any(excess[fixed] > SATISFIED * size[fixed]):
        return None  # no internal force changes this row, and it is violated
    G = -limits.G[~fixed] @ N @ back
    for widening in (0.0, WIDENED):
        z = _least_distance(G, (excess - widening * size)[~fixed] + G @ shift)
        solution = None if z is None else y + N @ (back @ (z - shift))
        if solution is not None and limits.violation(solution) <= SATISFIED:
            return solution
    return None


def _least_distance(G: Array, d: Array) -> Array | None:
    """Return the z of `min |z|, G z >= d`, or None where there is none."""
    size = np.linalg.norm(G, axis=1)
    rows = np.vstack([(G / size[:, None]).T, d / size])
    target = np.zeros(rows.shape[0])
    target[-1] = 1.0
    dual, _ = scipy.optimize.nnls(rows, target, maxiter=30 * rows.shape[1])
    r = rows @ dual - target
    if abs(r[-1]) <= np.finfo(float).eps:
        return None
    return np.asarray(-r[:-1] / r[-1])


def persistent_directions(gap_q: Array, unbalanced_q: Array, E: Array) -> Array:
    """Return δq with `gap_q δq = 0` and `unbalanced_q δq` in range(E), orthonormal columns.

    All in the sizes of `RestSizes`.

    Args:
        gap_q: (m, nv) derivative of the constraint rows.
        unbalanced_q: (nv, nv) derivative of the unbalanced force, the stiffness.
        E: (nv, ny) generalised forces of unit controls and reactions.
    """
    unreachable = null(E.T, FREE_TOL)
    admissible = null(gap_q, FREE_TOL) if gap_q.size else np.eye(unbalanced_q.shape[1])
    stiffness = unreachable.T @ unbalanced_q @ admissible
    if not stiffness.size:
        return admissible
    _, s, Vt = np.linalg.svd(stiffness, full_matrices=True)
    size = max(1.0, float(np.abs(unbalanced_q).max(initial=0.0)))
    return np.asarray(admissible @ Vt[int(np.sum(s > FREE_TOL * size)) :].T)


def range_basis(columns: Array) -> Array:
    """Return orthonormal columns that span the range of `columns`, in the sizes."""
    if columns.size == 0:
        return np.zeros((columns.shape[0], 0))
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(U[:, s > FREE_TOL])


def in_units(basis: Array, size: Array) -> Array:
    """Return orthonormal columns of the model's units with the span of `diag(size) basis`.

    The span depends on no units; what is orthonormal does.
    """
    if np.ptp(size) == 0.0 if size.size else True:
        return basis
    return np.asarray(np.linalg.qr(size[:, None] * basis)[0])

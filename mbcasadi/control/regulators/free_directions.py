"""Directions along which an equilibrium persists, to first order."""

import numpy as np

from mbcasadi.control.regulators.loads import null
from mbcasadi.control.regulators.operating_point import Array

FREE_TOL = 1e-8
"""Singular value, relative to the largest stiffness (a load per rad at least), of a direction along
which an equilibrium persists."""


def persistent_directions(gap_q: Array, unbalanced_q: Array, E: Array) -> Array:
    """Return δq with `gap_q δq = 0` and `unbalanced_q δq` in range(E), orthonormal columns.

    All in the sizes of `RestSizes`.

    Args:
        gap_q: (m, nv) derivative of the constraint rows.
        unbalanced_q: (nv, nv) derivative of the unbalanced force, the stiffness.
        E: (nv, ny) generalised forces of unit controls and reactions.
    """
    U, s, _ = np.linalg.svd(E, full_matrices=True)
    unreachable = U[:, int(np.sum(s > FREE_TOL * s.max(initial=0.0))) :]
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

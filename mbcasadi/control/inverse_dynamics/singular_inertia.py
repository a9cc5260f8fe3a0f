"""A singular inertia, completed along the active bilateral constraints.

`M a = f + Aᵀ lam` and `A a + c = 0` determine a where M is definite on null(A). With orthonormal
rows `Vᵀ` that span those of A, `V Vᵀ a` is known from the constraints alone, so

    (M + s V Vᵀ) a = f + s V Vᵀ a + Aᵀ lam

has the same a and lam, and an inertia that is definite. Contacts are not among the rows: a contact
may lift. V is orthonormal in the scaled coordinates of `System.scales`.
"""

import casadi as ca
import numpy as np

from mbcasadi import linalg
from mbcasadi.system import System


def completed_inertia(
    system: System,
    M: ca.SX,
    rows: tuple[ca.SX, ca.SX],
    *,
    row_scale: ca.SX | ca.DM,
    rank_tol: float,
) -> tuple[ca.SX, ca.SX]:
    """Return `M + s V Vᵀ` and `s V Vᵀ a`.

    Args:
        system: the mechanism.
        M: (nv, nv) inertia, positive semidefinite.
        rows: A (nc, nv) and c (nc,) of `A a + c = 0`; rows that are off are zero.
        row_scale: (nc,) usual length of each row in scaled coordinates.
        rank_tol: drop rule of `linalg.row_basis`.
    """
    A, c = rows
    size = system.scales.coordinates
    basis = linalg.row_basis(
        A @ ca.diag(ca.DM(size)), row_scale=row_scale, rank_tol=rank_tol, pivot=False
    )
    s = typical_inertia(system)
    V = ca.diag(ca.DM(1 / size)) @ basis.V
    across = -linalg.solve_kept(basis, c)
    return ca.sparsify(M + s * (V @ V.T)), s * (across / ca.DM(size))


def typical_inertia(system: System) -> float:
    """Return the mean of the diagonal of M in scaled coordinates, over closed poses."""
    scales = system.scales
    diagonals = [np.diag(np.asarray(system.mass_matrix(q))) for q, _ in scales.states]
    return float(np.mean(diagonals @ scales.coordinates**2) / system.nv) or 1.0

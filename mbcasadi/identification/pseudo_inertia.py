"""Inertial parameters of real bodies, as a smooth function of free numbers.

Ten numbers (m, m c, I) are those of a distribution of mass where the pseudo-inertia

    J = ∫ [r; 1] [r; 1]ᵀ dm = [[E, m c], [m cᵀ, m]],   E = ½ tr(I) 1 - I

is positive definite  [P. M. Wensing, S. Kim, J.-J. Slotine, *Linear matrix inequalities for
physically consistent inertial parameter identification*, IEEE Robotics and Automation Letters 3,
2018]. So `J = e^(2α) U Uᵀ` with U upper triangular, its diagonal `e^d1, e^d2, e^d3, 1`, is one for
any numbers (α, d, s, t), and every J has just one such form  [C. Rucker, P. M. Wensing, *Smooth
parameterization of rigid-body inertia*, IEEE Robotics and Automation Letters 7, 2022].
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FLOOR = 1e-4
"""Share of a body's own extent that its mass is spread at least in each direction: point masses
and thin plates of a model are not exactly on the border of what is physical."""

UPPER = ((0, 1), (1, 2), (0, 2))
PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def pseudo_inertia(theta: Array) -> Array:
    """Return J (4, 4) of (m, m c, I as xx, yy, zz, xy, xz, yz)."""
    inertia = np.zeros((3, 3))
    for (i, j), value in zip(PAIRS, theta[4:], strict=True):
        inertia[i, j] = inertia[j, i] = value
    J = np.zeros((4, 4))
    J[:3, :3] = np.trace(inertia) / 2 * np.eye(3) - inertia
    J[:3, 3] = J[3, :3] = theta[1:4]
    J[3, 3] = theta[0]
    return J


def parameters_of(J: Array) -> Array:
    """Return (m, m c, I) (10,) of a pseudo-inertia; linear, so of its differentials too."""
    E = J[:3, :3]
    inertia = np.trace(E) * np.eye(3) - E
    return np.array([J[3, 3], *J[:3, 3], *(inertia[pair] for pair in PAIRS)])


def spread_out(J: Array) -> Array:
    """Return a positive definite pseudo-inertia next to one that may be on the border."""
    extent = max(np.trace(J[:3, :3]) / J[3, 3], np.finfo(float).tiny)
    values, vectors = np.linalg.eigh(J[:3, :3] - np.outer(J[:3, 3], J[3, :3]) / J[3, 3])
    missing = np.maximum(0.0, FLOOR * J[3, 3] * extent - values)
    spread = J.copy()
    spread[:3, :3] += vectors @ np.diag(missing) @ vectors.T
    return spread


def free_numbers(J: Array) -> Array:
    """Return φ = (α, d1, d2, d3, s12, s23, s13, t1, t2, t3) of a positive definite J."""
    L = np.linalg.cholesky(J[::-1, ::-1])[::-1, ::-1]  # upper triangular, J = L Lᵀ
    U = L / L[3, 3]
    d = np.log(np.diag(U)[:3])
    return np.array([np.log(L[3, 3]), *d, *(U[pair] for pair in UPPER), *U[:3, 3]])


def body_parameters(phi: Array) -> tuple[Array, Array]:
    """Return θ (10,) of free numbers, and dθ/dφ (10, 10)."""
    U, scale = _factor(phi), float(np.exp(2 * phi[0]))
    J = scale * U @ U.T
    columns = [parameters_of(2 * J)]
    for i, j in ((0, 0), (1, 1), (2, 2), *UPPER, (0, 3), (1, 3), (2, 3)):
        dU = np.zeros((4, 4))
        dU[i, j] = U[i, i] if i == j else 1.0
        columns.append(parameters_of(scale * (dU @ U.T + U @ dU.T)))
    return parameters_of(J), np.array(columns).T


def relative_change(J0: Array) -> Array:
    """Return D (16, 10): `|D (θ - θ_0)|² = ½ tr((J0⁻¹ (J - J0))²)`, in any units and axes.

    The distance of inertias of T. Lee, P. M. Wensing, F. C. Park, *Geometric robot dynamic
    identification: a convex programming approach*, IEEE Trans. Robotics 36, 2020, with the metric
    at J0.
    """
    inverse = np.linalg.inv(np.linalg.cholesky(J0))
    columns = [(inverse @ pseudo_inertia(unit) @ inverse.T).ravel() for unit in np.eye(10)]
    return np.asarray(np.array(columns).T / np.sqrt(2))


def _factor(phi: Array) -> Array:
    U = np.diag([*np.exp(phi[1:4]), 1.0])
    for pair, value in zip(UPPER, phi[4:7], strict=True):
        U[pair] = value
    U[:3, 3] = phi[7:]
    return U

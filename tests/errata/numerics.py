"""Linear algebra and differences, on NumPy arrays and independent of the package."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RANK_TOL = 1e-10  # singular values below this, relative to the largest, count as zero

# Six-point central difference: error step⁶/140 times the seventh derivative.
STEP = 1e-2
STENCIL = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))


def rate(fun: Callable[[Array], Array], x: Array, along: Array) -> Array:
    """Return ``d fun(x + s along)/ds`` at ``s = 0``."""
    total = sum(w * (fun(x + k * STEP * along) - fun(x - k * STEP * along)) for k, w in STENCIL)
    return np.asarray(total) / STEP


def partials(fun: Callable[[Array], Array], x: Array) -> Array:
    """Return the derivatives of ``fun`` along each coordinate, in the last axis."""
    return np.stack([rate(fun, x, direction) for direction in np.eye(len(x))], axis=-1)


def pinv(A: Array) -> Array:
    """Return the Moore-Penrose inverse."""
    return np.asarray(np.linalg.pinv(A, rcond=RANK_TOL))


def rank(A: Array) -> int:
    """Return the number of singular values above ``RANK_TOL`` times the largest."""
    size = np.linalg.norm(A, 2) if A.size else 0.0
    return int(np.linalg.matrix_rank(A, tol=RANK_TOL * size)) if size else 0


def projector(A: Array) -> Array:
    """Return ``P = I - A⁺ A``, the projector on null(A)."""
    return np.asarray(np.eye(A.shape[1]) - pinv(A) @ A)


def null_basis(A: Array) -> Array:
    """Return orthonormal columns that span null(A)."""
    return np.asarray(np.linalg.svd(A)[2][rank(A) :].T)


def power(M: Array, exponent: float) -> Array:
    """Return a symmetric positive definite matrix to a real power."""
    values, vectors = np.linalg.eigh(M)
    return np.asarray((vectors * values**exponent) @ vectors.T)


def polar(X: Array) -> Array:
    """Return the orthonormal factor ``X (XᵀX)^{-1/2}`` of a matrix of full column rank."""
    return np.asarray(X @ power(X.T @ X, -0.5))


def spd(rng: np.random.Generator, n: int) -> Array:
    """Return a random symmetric positive definite matrix."""
    G = rng.normal(size=(n, n))
    return np.asarray(G @ G.T + np.eye(n))


def skew(rng: np.random.Generator, n: int) -> Array:
    """Return a random skew-symmetric matrix."""
    G = rng.normal(size=(n, n))
    return np.asarray(G - G.T)


def error(value: Array | float, reference: Array | float) -> float:
    """Return ``‖value - reference‖ / max(1, ‖reference‖)`` in the Frobenius norm."""
    distance = np.linalg.norm(np.asarray(value) - np.asarray(reference))
    return float(distance / max(1.0, float(np.linalg.norm(np.asarray(reference)))))

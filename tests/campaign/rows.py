"""Constraint rows and the inertia, scaled so that ranks can be read from singular values."""

import numpy as np

from campaign.case import Case
from campaign.mechanics import Array

CERTAINLY_ZERO = 1e-7  # relative singular values below it are of dependent rows,
CERTAINLY_NOT = 2e-2  # above it of independent ones; the controller's rule decides between them
SEMIDEFINITE = 1e-10  # eigenvalue of M, relative to the largest of its scaled form


def inertia_root(case: Case, at, on: Array) -> tuple[Array, bool]:
    """Return L with `L Lᵀ = M`, completed along the rows where M is singular, and if it could."""
    M, size = at.M, case.metric
    scaled = M * np.outer(size, size)
    if np.linalg.eigvalsh(scaled)[0] <= SEMIDEFINITE * np.abs(np.diag(scaled)).max():
        A = at.A * size
        lengths = case.lengths_on(on)[:, None]
        _, s, Vt = np.linalg.svd(A / lengths, full_matrices=True)
        rank = int(np.sum(s > CERTAINLY_NOT))
        V, free = Vt[:rank], Vt[rank:]
        mean = np.trace(scaled) / len(scaled)
        definite = not len(free) or (
            np.linalg.eigvalsh(free @ scaled @ free.T)[0] > SEMIDEFINITE * mean
        )
        scaled = scaled + mean * V.T @ V
        M = scaled / np.outer(size, size)
        if not definite:
            return np.linalg.cholesky(M + np.diag(mean / size**2)), False
    return np.linalg.cholesky(M), True


def whitened_lengths(case: Case, at, rows: Array, usual: Array) -> Array:
    """Return the usual length of each row in the inertia's metric: its own, unless it vanishes."""
    own = np.linalg.norm(rows, axis=1)
    here = np.linalg.norm(at.A * case.metric, axis=1)
    typical = np.median(own / np.maximum(here, 1e-300)) if len(own) else 1.0
    return np.maximum(own, np.where(here < 0.05 * usual, typical * usual, 0.0)) + 1e-300


def row_sizes(rows: Array) -> Array:
    """Return the lengths of rows, none of them tiny."""
    lengths = np.linalg.norm(rows, axis=1)
    return np.maximum(lengths, 1e-3 * lengths.max(initial=0.0) + 1e-300)


def independent(rows: Array, bias: Array) -> tuple[Array, Array, Array, float]:
    """Return orthonormal independent combinations, their bias, singular values, the rest of c."""
    if not len(rows):
        return rows, bias, np.zeros(0), 0.0
    U, s, Vt = np.linalg.svd(rows, full_matrices=False)
    keep = s > np.sqrt(CERTAINLY_ZERO * CERTAINLY_NOT)
    part = U[:, keep].T @ bias
    rest = float(np.linalg.norm(bias - U[:, keep] @ part))
    return Vt[keep], part / s[keep], s, rest


def orthonormal(projector: Array) -> Array:
    """Return an orthonormal basis of the range of a projector, as rows."""
    values, vectors = np.linalg.eigh(projector)
    return vectors[:, values > 0.5].T

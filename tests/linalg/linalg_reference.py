"""Independent references for the linear algebra: 80 digits, exact ranks, compiled C."""

from dataclasses import dataclass

import casadi as ca
import mpmath
import numpy as np

DIGITS = 80  # rows scaled by 1e±6 lose 24 digits in normal equations; 50 good ones remain

SHAPES_AND_RANKS = [
    (m, n, r)
    for m, n in [(1, 4), (3, 3), (3, 6), (6, 3), (5, 5), (6, 9)]
    for r in range(min(m, n) + 1)
]


@dataclass(frozen=True)
class Sample:
    """`A = D F G` exactly: integers times powers of two, so that the rank is exact."""

    F: np.ndarray
    G: np.ndarray
    scale: np.ndarray

    @property
    def A(self) -> np.ndarray:
        return self.scale[:, None] * (self.F @ self.G)


def sample(rng: np.random.Generator, m: int, n: int, r: int, scaled: bool) -> Sample:
    """Return a random matrix of exact rank r, rows scaled by about 1e±6 on request."""
    while True:
        F = rng.integers(-3, 4, (m, r)).astype(float)
        G = rng.integers(-3, 4, (r, n)).astype(float)
        if np.linalg.matrix_rank(F) == r == np.linalg.matrix_rank(G):
            break
    powers = rng.choice([-20, 0, 20], m) if scaled else np.zeros(m)
    return Sample(F, G, 2.0**powers)


def pinv_reference(s: Sample) -> mpmath.matrix:
    """Return `A⁺ = G⁺ (D F)⁺` in many digits."""
    m, n, r = s.F.shape[0], s.G.shape[1], s.F.shape[1]
    with mpmath.workdps(DIGITS):
        if r == 0:
            return mpmath.zeros(n, m)
        G = mpmath.matrix(s.G.tolist())
        DF = mpmath.matrix((s.scale[:, None] * s.F).tolist())
        left = mpmath.inverse(DF.T * DF) * DF.T
        return G.T * mpmath.inverse(G * G.T) * left


def projector_reference(s: Sample) -> np.ndarray:
    """Return `I - A⁺ A` in many digits, rounded at the end."""
    n = s.G.shape[1]
    with mpmath.workdps(DIGITS):
        P = mpmath.eye(n) - pinv_reference(s) * mpmath.matrix(s.A.tolist())
    return to_numpy(P)


def to_numpy(matrix: mpmath.matrix) -> np.ndarray:
    return np.array(matrix.tolist(), dtype=float).reshape(matrix.rows, matrix.cols)


def quadruped_contact_pattern() -> ca.Sparsity:
    """Return the pattern of four legs, each 3 x (6 base + 3 leg): 12 x 18."""
    mask = np.zeros((12, 18))
    for leg in range(4):
        rows = slice(3 * leg, 3 * leg + 3)
        mask[rows, :6] = 1
        mask[rows, 6 + 3 * leg : 9 + 3 * leg] = 1
    return ca.sparsify(ca.DM(mask)).sparsity()

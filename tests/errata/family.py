"""A smooth family of constrained mechanisms, redundant rows included, and its states.

``M(q)`` is positive definite and ``A(q)`` has ``m`` rows of constant rank ``r < m``: one row is
zero and one repeats another. Entries are random trigonometric functions of ``q``.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from .numerics import Array, null_basis, partials, pinv, projector, rate

N, ROWS, RANK = 5, 4, 2


@dataclass(frozen=True)
class Family:
    """Coefficients of ``M(q) = G(q)ᵀ G(q) + I`` and ``A(q) = L(q) R(q)``."""

    G: Array
    L: Array
    R: Array
    phase: Array

    def _at(self, coefficients: Array, q: Array) -> Array:
        return np.asarray(coefficients[..., 0] + coefficients[..., 1:] @ np.sin(q + self.phase))

    def M(self, q: Array) -> Array:
        """Return the inertia (n, n)."""
        G = self._at(self.G, q)
        return np.asarray(G.T @ G + np.eye(len(q)))

    def A(self, q: Array) -> Array:
        """Return the constraint Jacobian (m, n) of rank r."""
        left = self._at(self.L, q)
        left[-1] = left[0]
        left[1] = 0.0
        return np.asarray(left @ self.rows(q))

    def rows(self, q: Array) -> Array:
        """Return r independent rows that span the same space as ``A``."""
        return self._at(self.R, q)


@dataclass(frozen=True)
class State:
    """All matrices of one admissible state, with the reference motion ``a``, ``f_c``, ``lam``.

    ``M a + C v = f + f_g + f_c``, ``A a + Adot v = 0``, ``f_c = Aᵀ lam`` with the smallest ``lam``;
    ``h = C v - f_g``.
    """

    family: Family
    q: Array
    v: Array
    f: Array
    f_g: Array
    M: Array
    Mdot: Array
    C: Array
    h: Array
    A: Array
    Adot: Array
    P: Array
    Q: Array
    Pdot: Array
    a: Array
    lam: Array
    f_c: Array


def christoffel(slopes: Array, v: Array) -> Array:
    """Return ``C_ij = Σ_k ½ (∂_k M_ij + ∂_j M_ik - ∂_i M_jk) v_k``; slopes has k last."""
    along = np.einsum("ijk,k->ij", slopes, v)
    across = np.einsum("ikj,k->ij", slopes, v)
    return np.asarray((along + across - across.T) / 2)


def kkt(M: Array, A: Array, force: Array, bias: Array) -> tuple[Array, Array]:
    """Return ``a``, ``lam`` of ``M a = force + Aᵀ lam``, ``A a + bias = 0`` by least squares."""
    n, m = len(M), len(A)
    K = np.block([[M, -A.T], [A, np.zeros((m, m))]])
    solution = np.linalg.lstsq(K, np.concatenate([force, -bias]), rcond=1e-11)[0]
    return solution[:n], solution[n:]


@cache
def state(seed: int) -> State:
    """Return a random family at a random admissible state."""
    rng = np.random.default_rng(seed)
    weight = np.where(np.arange(N + 1) == 0, 1.0, 0.3)  # of the constant, of each sine
    family = Family(
        G=rng.normal(size=(N, N, N + 1)) * weight,
        L=rng.normal(size=(ROWS, RANK, N + 1)) * weight,
        R=rng.normal(size=(RANK, N, N + 1)) * weight,
        phase=rng.uniform(0, 2 * np.pi, N),
    )
    q, f, f_g = rng.normal(size=(3, N))
    A, M = family.A(q), family.M(q)
    P = projector(A)
    v = P @ rng.normal(size=N)
    C = christoffel(partials(family.M, q), v)
    Adot = rate(family.A, q, v)
    a, lam = kkt(M, A, f + f_g - C @ v, Adot @ v)
    return State(
        family,
        q,
        v,
        f,
        f_g,
        M,
        rate(family.M, q, v),
        C,
        C @ v - f_g,
        A,
        Adot,
        P,
        np.eye(N) - P,
        rate(lambda x: projector(family.A(x)), q, v),
        a,
        lam,
        A.T @ lam,
    )


def tangent_rate(s: State) -> tuple[Array, Array]:
    """Return ``Λ = -A⁺ Ȧ`` and ``Ω = Λ - Λᵀ`` of A16."""
    Lam = -pinv(s.A) @ s.Adot
    return Lam, Lam - Lam.T


def aligned_basis(A: Array, Z: Array) -> Array:
    """Return the orthonormal basis of null(A) nearest to ``Z``, so that ``Zᵀ dZ`` is zero there."""
    basis = null_basis(A)
    U, _, Vt = np.linalg.svd(basis.T @ Z)
    return np.asarray(basis @ U @ Vt)

"""Quasi-velocities of A10 at one state of the random family, every rate by differences.

``M = W Wᵀ`` (Cholesky), ``w = Wᵀ v`` the quasi-velocity (A10 writes v), ``A_W = A W⁻ᵀ`` its
constraint Jacobian, ``V = (V1 V2)`` with ``V2`` a basis of null(A_W). The basis turns with q in a
random way, as that of an SVD routine does, unless it is `kept`.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.linalg import expm

from .family import State, aligned_basis, state
from .numerics import Array, null_basis, partials, rate, skew

SEED = 10


@dataclass(frozen=True)
class Quasi:
    """Matrices at one state; ``w_slope`` is ∂wᵀ/∂q, ``wr_slope`` is ∂w_rᵀ/∂q."""

    s: State
    W: Array
    Wdot: Array
    w: Array
    w_slope: Array
    V: Array
    Vdot: Array
    V2: Array
    V2dot: Array
    Wr: Array
    Wrdot: Array
    w_r: Array
    wr_slope: Array

    @property
    def Gamma(self) -> Array:
        """Return Γ as printed in (7b)."""
        return np.asarray(np.linalg.solve(self.W, self.Wdot - self.w_slope))

    @property
    def Gamma_skew(self) -> Array:
        """Return ``(W⁻¹ C - Ẇᵀ) W⁻ᵀ``."""
        inner = np.linalg.solve(self.W, self.s.C) - self.Wdot.T
        return np.asarray(np.linalg.solve(self.W, inner.T).T)

    @property
    def Omega(self) -> Array:
        """Return Ω of (10), ``V̇ = -Ω V``."""
        return np.asarray(-self.Vdot @ self.V.T)

    @property
    def Gamma_r(self) -> Array:
        """Return Γ_r of (29), (30)."""
        return np.asarray(self.V2.T @ (self.Gamma - self.Omega) @ self.V2)

    @property
    def Gamma_r_36(self) -> Array:
        """Return Γ_r of (36), with the left inverse ``V2ᵀ W⁻¹``."""
        return np.asarray(self.V2.T @ np.linalg.solve(self.W, self.Wrdot - self.wr_slope))


@cache
def quasi(kept: bool = False) -> Quasi:
    """Return the quasi-velocity quantities; ``kept`` chooses the gauge ``V2ᵀ dV2 = 0``."""
    s = state(SEED)
    rng = np.random.default_rng(SEED)

    def W(q: Array) -> Array:
        return np.asarray(np.linalg.cholesky(s.family.M(q)))

    def A_W(q: Array) -> Array:
        return np.asarray(np.linalg.solve(W(q), s.family.A(q).T).T)

    Z = null_basis(A_W(s.q))
    Z1 = null_basis(Z.T)
    turn, along = skew(rng, Z.shape[1]), rng.normal(size=len(s.q))

    def V2(q: Array) -> Array:
        basis = aligned_basis(A_W(q), Z)
        return basis if kept else np.asarray(basis @ expm(turn * (along @ (q - s.q))))

    def V(q: Array) -> Array:
        basis = V2(q)
        return np.hstack([aligned_basis(basis.T, Z1), basis])

    def Wr(q: Array) -> Array:
        return np.asarray(W(q) @ V2(q))

    return Quasi(
        s=s,
        W=W(s.q),
        Wdot=rate(W, s.q, s.v),
        w=W(s.q).T @ s.v,
        w_slope=partials(lambda q: W(q).T @ s.v, s.q).T,
        V=V(s.q),
        Vdot=rate(V, s.q, s.v),
        V2=V2(s.q),
        V2dot=rate(V2, s.q, s.v),
        Wr=Wr(s.q),
        Wrdot=rate(Wr, s.q, s.v),
        w_r=Wr(s.q).T @ s.v,
        wr_slope=partials(lambda q: Wr(q).T @ s.v, s.q).T,
    )

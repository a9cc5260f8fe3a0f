"""Pieces of the equations of motion: Coriolis matrix, energies, definiteness of M."""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.system.functions import Builder

SINGULAR = 1e-12  # smallest over largest eigenvalue of an M that counts as singular
SAMPLES = 3  # generic configurations at which M is evaluated


def coriolis_of_inertia(M: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `C = ½ (Ṁ + D - Dᵀ)` with `D = ∂(M v)/∂q`: the Christoffel symbols of M times v.

    `C v = Ṁ v - ½ ∂(vᵀ M v)/∂q` and `Ṁ = C + Cᵀ`. For `dq/dt = v`.
    """
    Mdot = ca.jtimes(M, q, v)
    D = ca.jacobian(M @ v, q)
    return ca.sparsify((Mdot + D - D.T) / 2)


def kinetic_energy(mass_matrix: Builder, nv: int) -> Builder:
    """Return the builder of (q, v) → (T), `T = ½ vᵀ M v`."""

    def build() -> ca.Function:
        inertia = mass_matrix()
        q, v = ca.SX.sym("q", inertia.sparsity_in(0)), ca.SX.sym("v", nv)
        energy = ca.bilin(inertia(q), v, v) / 2
        return ca.Function("kinetic_energy", [q, v], [energy], ["q", "v"], ["T"], {"cse": True})

    return build


def rate_of(name: str, jacobian: Builder, nv: int) -> Builder:
    """Return the builder of the Function `name` (q, v) → (psi), `psi = A v`."""

    def build() -> ca.Function:
        A = jacobian()
        q, v = ca.SX.sym("q", A.sparsity_in(0)), ca.SX.sym("v", nv)
        return ca.Function(name, [q, v], [A(q) @ v], ["q", "v"], ["psi"])

    return build


def is_semidefinite(mass_matrix: ca.Function, nv: int) -> bool:
    """Return whether M is singular at each of a few generic configurations."""
    rng = np.random.default_rng(0)
    inertias = [mass_matrix(rng.uniform(0.2, 1.2, nv)).full() for _ in range(SAMPLES)]
    finite = [np.linalg.eigvalsh((M + M.T) / 2) for M in inertias if nv and np.all(np.isfinite(M))]
    return bool(finite) and all(low <= SINGULAR * abs(high) for low, high in map(_ends, finite))


def _ends(eigenvalues: NDArray[np.float64]) -> tuple[float, float]:
    return float(eigenvalues[0]), float(eigenvalues[-1])

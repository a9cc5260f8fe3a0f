"""Pieces of the equations of motion: Coriolis matrix, energies, rates."""

import casadi as ca

from mbcasadi.system.functions import Builder


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


def total_energy(kinetic: Builder, potential: Builder, nv: int) -> Builder:
    """Return the builder of (q, v) → (E), `E = T + V`."""

    def build() -> ca.Function:
        T, V = kinetic(), potential()
        q, v = ca.SX.sym("q", V.sparsity_in(0)), ca.SX.sym("v", nv)
        return ca.Function("total_energy", [q, v], [T(q, v) + V(q)], ["q", "v"], ["E"])

    return build


def rate_of(name: str, jacobian: Builder, nv: int) -> Builder:
    """Return the builder of the Function `name` (q, v) → (psi), `psi = A v`."""

    def build() -> ca.Function:
        A = jacobian()
        q, v = ca.SX.sym("q", A.sparsity_in(0)), ca.SX.sym("v", nv)
        return ca.Function(name, [q, v], [A(q) @ v], ["q", "v"], ["psi"])

    return build

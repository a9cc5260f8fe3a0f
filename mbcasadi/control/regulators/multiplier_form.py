"""A linear system with multipliers, reduced to its free coordinates  [S20, eq. 7-12].

    dx/dt = A x + B u + S λ + c,    G dx/dt + G_x x = 0

`G = [F 0; Ḟ F]` is the Jacobian of the constraints of the state. S20 takes it for constant, which
is right at rest, where `G_x = 0`; at a state that moves its change with x counts to first order.

S20 multiplies by `Nᵀ`, `N = null(G)`, and drops λ because `NᵀS = 0` "for all mechanical
systems". That holds only where the inertia is a multiple of the identity on N. The multiplier has
to be eliminated first: `G S λ = -G (A x + B u + c)` gives the factor `I - S (G S)⁺ G`.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.loads import null
from mbcasadi.control.regulators.operating_point import (
    Array,
    motion_fun,
    numbers,
    require_no_activations,
    rows_fun,
)
from mbcasadi.control.regulators.tangent import spin
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.shapes import real_array, require_share
from mbcasadi.short_text import summarised
from mbcasadi.system import System, evaluate

DESCRIPTOR_RANK_TOL = 1e-9
"""Singular value, relative to the largest, that counts as zero."""

IN_NULL_SPACE = 1e-7
"""Part of a row of `G N`, relative to the terms of its sums, that counts as zero."""

IN_CHART = 1e-7
"""The same of `inverse N - I`."""


@summarised
class DescriptorForm(NamedTuple):
    """`dx/dt = dfdx x + dfdu u + S λ + c`, `G dx/dt + G_x x = 0`; rows of G may repeat.

    Fields: `dfdx` (n, n), `dfdu` (n, nu), `S` (n, nc), `G` (m, n), `c` (n,); `G_x` (m, n), None for
    zero, as at rest.
    """

    dfdx: Array
    dfdu: Array
    S: Array
    G: Array
    c: Array
    G_x: Array | None = None


@summarised
class ReducedDescriptor(NamedTuple):
    """`dz/dt = dfdz z + dfdu u + c`, `x = N z`.

    Fields: `dfdz` (k, k), `dfdu` (k, nu), `c` (k,), `N` (n, k) orthonormal, `G N = 0`.
    """

    dfdz: Array
    dfdu: Array
    c: Array
    N: Array


@checked
def reduce_descriptor(
    full: DescriptorForm,
    *,
    basis: ArrayLike | None = None,
    inverse: ArrayLike | None = None,
    rank_tol: float = DESCRIPTOR_RANK_TOL,
) -> ReducedDescriptor:
    """Return `dz/dt = Nᵀ (L (A N z + B u + c) - S (G S)⁺ G_x N z)`  [S20, eq. 10, corrected].

    `L = I - S (G S)⁺ G`.

    As printed, `L` is missing: false unless `NᵀS = 0`. Equation 8, `x = N z`, assumes that x lies
    in null(G): let x be the deviation from an operating point that obeys the constraints. With a
    basis that is not orthonormal, `N⁺` replaces `Nᵀ`.

    Args:
        full: the system with its multipliers.
        basis: (n, k) columns N with `G N = 0`; an orthonormal one of null(G) by default.
        inverse: (k, n) with `inverse N = I`, the coordinates `z = inverse x`; N⁺ by default. At
            rest all give the same; at a state that moves they are different charts.
        rank_tol: singular value of G, relative to the largest in the units of x, that is zero;
            scale x, or give a basis, where its entries have different units.

    Raises:
        ShapeError: a basis that is not one of null(G), or an inverse that is not one of it.
    """
    require_share(rank_tol=rank_tol)
    N = null(full.G, rank_tol) if basis is None else real_array("basis", basis)
    if N.ndim != 2 or N.shape[0] != full.G.shape[1]:
        raise ShapeError(f"basis has shape {N.shape}, expected ({full.G.shape[1]}, k)")
    terms = (np.abs(full.G) @ np.abs(N)).max(axis=1, initial=0.0, keepdims=True)
    if np.any(np.abs(full.G @ N) > IN_NULL_SPACE * terms):
        raise ShapeError("basis holds columns that G does not send to zero; expected G N = 0")
    GS_pinv = np.linalg.pinv(full.G @ full.S, rank_tol)
    L = np.eye(len(full.c)) - full.S @ GS_pinv @ full.G
    left = np.asarray(np.linalg.pinv(N)) if inverse is None else real_array("inverse", inverse)
    if left.shape != N.T.shape or not _is_inverse(left, N):
        raise ShapeError(f"inverse has shape {left.shape}; expected {N.T.shape} with inverse N = I")
    rate = L @ full.dfdx
    if full.G_x is not None:
        rate = rate - full.S @ GS_pinv @ full.G_x
    return ReducedDescriptor(left @ rate @ N, left @ L @ full.dfdu, left @ L @ full.c, N)


def _is_inverse(left: Array, N: Array) -> bool:
    rounding = IN_CHART * (np.abs(left) @ np.abs(N)).max(initial=0.0)
    return bool(np.abs(left @ N - np.eye(N.shape[1])).max(initial=0.0) <= rounding)


@checked
def descriptor_form(linear: Linearization) -> DescriptorForm:
    """Return S20's form (7) of a mechanism near a state, `x = (δq, δv)`, λ the change of lam.

        dfdx = [-W/2 I; -M⁻¹ ∂r/∂q, -M⁻¹ ∂r/∂v],  r = M a + h - f_passive - f_0 - B u - Aᵀ lam
        S = [0; M⁻¹ Aᵀ],  G = [A 0; ∂psi/∂q A],  c = (v, a)

    In coordinates of a vector space `∂psi/∂q` is `Ḟ`, and W, the spin of ball and free joints,
    vanishes. (S20 calls S the constraint Jacobian: corrected.) At an equilibrium c and `G_x` are
    zero; the multipliers of the operating point appear in dfdx: their force turns with the
    constraints. Rows that hold for velocities only are in the lower half of G alone.

    Raises:
        ProblemError: a discrete system; a singular inertia, which (7) inverts; rows that depend on
            time, at a state that moves.
    """
    system, nv = linear.system, linear.system.nv
    require_no_activations(system, "the form with multipliers")
    if linear.period is not None:
        raise ProblemError(
            f"expected a continuous linearisation, found a period of {linear.period} s: "
            "[S20, eq. 7] is a differential equation"
        )
    if system.semidefinite:
        raise ProblemError(f"'{system.name}' has a singular M, and [S20, eq. 7] inverts it")
    if system.timed:
        raise ProblemError(f"'{system.name}' has rows that depend on time; [S20, eq. 7] has none")
    at: dict[str, Array | float] = {
        "q": linear.q,
        "v": linear.v,
        "t": linear.t,
        "mask": linear.mask,
    }
    rows, equations = numbers(rows_fun(system), at), _equations_fun(system)
    A, B = rows["A"], np.array(evaluate(system.actuation, {"q": linear.q, "v": linear.v}))
    W = spin(system, linear.v)
    a = numbers(motion_fun(system, DESCRIPTOR_RANK_TOL), at | {"u": linear.u, "act": linear.act})[
        "a"
    ].ravel()
    force = equations(linear.q, linear.v, a, linear.u, np.zeros(system.nc), linear.mask)[0]
    lam = np.linalg.pinv(A.T, DESCRIPTOR_RANK_TOL) @ np.array(force).ravel()
    out = equations(linear.q, linear.v, a, linear.u, lam, linear.mask)
    M, r_q, r_v, c_q, c_v = (np.array(x) for x in out[1:])
    M_inv = np.linalg.inv(M)
    above = rows["of_phi"] * A
    of_phi, of_psi = rows["of_phi"] * rows["psi_q"], rows["psi_q"]
    return DescriptorForm(
        dfdx=np.block([[-W / 2, np.eye(nv)], [-M_inv @ r_q, -M_inv @ r_v]]),
        dfdu=np.vstack([np.zeros_like(B), M_inv @ B]),
        S=np.vstack([np.zeros_like(A.T), M_inv @ A.T]),
        G=np.block([[above, 0 * A], [of_psi, A]]),
        c=np.concatenate([linear.v, a]),
        G_x=np.block(
            [
                [of_phi + above @ W / 2, 0 * A],
                [c_q + of_psi @ W / 2, c_v - of_psi],
            ]
        ),
    )


def _equations_fun(system: System) -> ca.Function:
    """Return (q, v, a, u, lam, mask) → (r, M, r_q, r_v, c_q, c_v), tangent derivatives along q.

    `c_q` and `c_v` are those of `A a + c`.
    """
    q, v, a = (
        ca.SX.sym(name, n) for name, n in (("q", system.nq), ("v", system.nv), ("a", system.nv))
    )
    u, lam = ca.SX.sym("u", system.nu), ca.SX.sym("lam", system.nc)
    mask, N = ca.SX.sym("mask", system.nc), system.velocity_map(q)
    M = system.mass_matrix(q)
    r = M @ a + system.bias_force(q, v) - system.passive_force(q, v)
    r = r - system.actuator_bias(q, v) - evaluate(system.actuation, {"q": q, "v": v}) @ u
    rate = ca.SX(0, 1)
    if system.nc:
        A = evaluate(system.loop_jacobian, {"q": q, "v": v})
        r = r - A.T @ (mask * lam)
        rate = mask * (A @ a + evaluate(system.loop_bias, {"q": q, "v": v}))
    outputs = [r, M, ca.jacobian(r, q) @ N, ca.jacobian(r, v)]
    outputs += [ca.jacobian(rate, q) @ N, ca.jacobian(rate, v)]
    return ca.Function("equations", [q, v, a, u, lam, mask], [ca.densify(x) for x in outputs])

"""A linear system with multipliers, reduced to its free coordinates  [S20, eq. 7-12].

    dx/dt = A x + B u + S λ + c,    G dx/dt = 0

S20 multiplies by `Nᵀ`, `N = null(G)`, and drops λ because `NᵀS = 0` "for all mechanical
systems". That holds only where the inertia is a multiple of the identity on N. The multiplier has
to be eliminated first: `G S λ = -G (A x + B u + c)` gives the factor `I - S (G S)⁺ G`.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.loads import null
from mbcasadi.control.regulators.operating_point import Array, numbers, rows_fun
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.shapes import real_array
from mbcasadi.system import System, evaluate

DESCRIPTOR_RANK_TOL = 1e-9
"""Singular value, relative to the largest, that counts as zero."""

AT_REST = 1e-8
"""Drift of x that counts as zero."""

IN_NULL_SPACE = 1e-7


class DescriptorForm(NamedTuple):
    """`dx/dt = dfdx x + dfdu u + S λ + c`, `G dx/dt = 0`; rows of G may repeat.

    Fields: `dfdx` (n, n), `dfdu` (n, nu), `S` (n, nc), `G` (m, n), `c` (n,).
    """

    dfdx: Array
    dfdu: Array
    S: Array
    G: Array
    c: Array


class ReducedDescriptor(NamedTuple):
    """`dz/dt = dfdz z + dfdu u + c`, `x = N z`.

    Fields: `dfdz` (k, k), `dfdu` (k, nu), `c` (k,), `N` (n, k) orthonormal, `G N = 0`.
    """

    dfdz: Array
    dfdu: Array
    c: Array
    N: Array


def reduce_descriptor(
    full: DescriptorForm, *, basis: ArrayLike | None = None, rank_tol: float = DESCRIPTOR_RANK_TOL
) -> ReducedDescriptor:
    """Return `dz/dt = Nᵀ L (A N z + B u + c)`, `L = I - S (G S)⁺ G`  [S20, eq. 10, corrected].

    As printed, `L` is missing: false unless `NᵀS = 0`. Equation 8, `x = N z`, assumes that x lies
    in null(G): let x be the deviation from an operating point that obeys the constraints. With a
    basis that is not orthonormal, `N⁺` replaces `Nᵀ`.

    Args:
        full: the system with its multipliers.
        basis: (n, k) columns N with `G N = 0`; an orthonormal one of null(G) by default.
        rank_tol: singular value, relative to the largest, that counts as zero.

    Raises:
        ShapeError: a basis that is not one of null(G).
    """
    N = null(full.G, rank_tol) if basis is None else real_array("basis", basis)
    size = 1.0 + float(np.abs(N).max(initial=0.0))
    if np.abs(full.G @ N).max(initial=0.0) > IN_NULL_SPACE * size:
        raise ShapeError("basis holds columns that G does not send to zero; expected G N = 0")
    GS_pinv = np.linalg.pinv(full.G @ full.S, rank_tol)
    L = np.eye(len(full.c)) - full.S @ GS_pinv @ full.G
    projection = np.linalg.pinv(N) @ L
    return ReducedDescriptor(
        projection @ full.dfdx @ N, projection @ full.dfdu, projection @ full.c, N
    )


def descriptor_form(linear: Linearization) -> DescriptorForm:
    """Return S20's form (7) of a mechanism at an equilibrium, `x = (δq, δv)`, λ the change of lam.

        dfdx = [0 I; -M⁻¹ ∂r/∂q, -M⁻¹ ∂r/∂v],  r = h - f_passive - f_0 - B u - Aᵀ lam
        S = [0; M⁻¹ Aᵀ],  G = [A 0; 0 A],  c = 0

    The multipliers of the operating point appear in dfdx: their force turns with the constraints.
    Rows that hold for velocities only are in the lower half of G alone.

    Raises:
        ProblemError: no equilibrium, or a discrete system, because (7) assumes a constant G; a
            singular inertia, which (7) inverts.
    """
    drift = float(np.abs(linear.drift).max(initial=0.0))
    size = max(1.0, float(np.linalg.norm(linear.dfdx)), float(np.linalg.norm(linear.dfdu)))
    if linear.period is not None or drift > AT_REST * size:
        raise ProblemError(
            f"expected a continuous linearisation of an equilibrium; found period {linear.period}, "
            f"drift {drift:.1e}: [S20, eq. 7] takes G for constant. See mb.equilibrium"
        )
    system, nv = linear.system, linear.system.nv
    if system.semidefinite:
        raise ProblemError(f"'{system.name}' has a singular M, and [S20, eq. 7] inverts it")
    at: dict[str, Array | float] = {
        "q": linear.q,
        "v": linear.v,
        "t": linear.t,
        "mask": linear.mask,
    }
    rows = numbers(rows_fun(system), at)
    A, equations = rows["A"], _force_fun(system)
    force = np.array(equations(linear.q, linear.u, np.zeros(system.nc), linear.mask)[0]).ravel()
    lam = np.linalg.pinv(A.T, DESCRIPTOR_RANK_TOL) @ force
    out = equations(linear.q, linear.u, lam, linear.mask)
    M, r_q, r_v = (np.array(x) for x in out[1:])
    M_inv = np.linalg.inv(M)
    zero, identity = np.zeros((nv, nv)), np.eye(nv)
    B = np.array(system.actuation(linear.q))
    above = rows["of_phi"] * A
    return DescriptorForm(
        dfdx=np.block([[zero, identity], [-M_inv @ r_q, -M_inv @ r_v]]),
        dfdu=np.vstack([np.zeros_like(B), M_inv @ B]),
        S=np.vstack([np.zeros_like(A.T), M_inv @ A.T]),
        G=np.block([[above, 0 * A], [0 * A, A]]),
        c=np.zeros(2 * nv),
    )


def _force_fun(system: System) -> ca.Function:
    """Return (q, u, lam, mask) → (r, M, r_q, r_v) at rest, tangent derivatives along q."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    u, lam = ca.SX.sym("u", system.nu), ca.SX.sym("lam", system.nc)
    mask = ca.SX.sym("mask", system.nc)
    r = system.bias_force(q, v) - system.passive_force(q, v) - system.actuator_bias(q, v)
    r = r - system.actuation(q) @ u
    if system.nc:
        r = r - evaluate(system.loop_jacobian, {"q": q, "v": v}).T @ (mask * lam)
    outputs = [
        r,
        system.mass_matrix(q),
        ca.jacobian(r, q) @ system.velocity_map(q),
        ca.jacobian(r, v),
    ]
    at_rest = [ca.densify(ca.substitute(x, v, ca.SX.zeros(system.nv))) for x in outputs]
    return ca.Function("at_rest", [q, u, lam, mask], at_rest)

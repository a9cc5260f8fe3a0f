"""Constraints that a user writes down: phi(q, t), Pfaffian rows and psi(q, v, t).

All of them become the same data: a rate `psi(q, v, t) = 0` with `A = ∂psi/∂v`, and a bias c
with `A a + c = 0`. Servo constraints of a controller are written the same way.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.shapes import require_shape


class UserRows(NamedTuple):
    """Rows in the order phi, Pfaffian, psi.

    Fields: `phi` (k, 1) residual, zero for rows that hold for velocities only; `psi` (k, 1)
    rate, `dphi/dt`, `A v + a0` or psi; `A` (k, nv) `∂psi/∂v`; `a0` (k, 1) rate at rest;
    `c` (k, 1) bias; `nonlinear`: A depends on v.
    """

    phi: ca.SX
    psi: ca.SX
    A: ca.SX
    a0: ca.SX
    c: ca.SX
    nonlinear: bool


def user_rows(
    q: ca.SX,
    v: ca.SX,
    N: ca.SX,
    *,
    phi: ca.SX,
    A: ca.SX,
    a0: ca.SX,
    psi: ca.SX,
    t: ca.SX,
) -> UserRows:
    """Return `c = (∂psi/∂q) N v + ∂psi/∂t` and the rest  [L15, section II].

    Args:
        q, v, t: symbols, (nq, 1), (nv, 1) and scalar.
        N: (nq, nv) velocity map, `dq/dt = N v`.
        phi: (m, 1) holonomic rows phi(q, t) = 0.
        A, a0: (k, nv), (k, 1) Pfaffian rows `A(q, t) v + a0(q, t) = 0`.
        psi: (j, 1) rows psi(q, v, t) = 0, of any form in v.

    Raises:
        ShapeError: A and a0 do not belong together.
    """
    require_shape("t", t, (1, 1))
    require_shape("a0", a0, (int(A.shape[0]), 1), "one for each row of A")
    of_phi = ca.jacobian(phi, q) @ N
    of_psi = ca.jacobian(psi, v)
    rate = ca.vertcat(of_phi @ v + ca.jacobian(phi, t), A @ v + a0, psi)
    return UserRows(
        phi=ca.vertcat(phi, ca.SX.zeros(A.shape[0] + psi.numel())),
        psi=rate,
        A=ca.sparsify(ca.vertcat(of_phi, A, of_psi)),
        a0=ca.substitute(rate, v, ca.SX.zeros(v.numel())),
        c=ca.jtimes(rate, q, N @ v) + ca.jacobian(rate, t),
        nonlinear=bool(ca.depends_on(of_psi, v)),
    )


def stabilised_bias(
    c: ca.SX, psi: ca.SX, phi: ca.SX, alpha: ca.SX | ca.DM, beta: ca.SX | ca.DM
) -> ca.SX:
    """Return `c + 2 α psi + β² phi`, so that `A a + bias = 0` gives `φ̈ + 2αφ̇ + β²φ = 0`.

    J. Baumgarte, Comput. Methods Appl. Mech. Eng. 1 (1972). `α = β` is critically damped; rows
    that hold for velocities only (phi = 0) decay as `exp(-2αt)`.

    Args:
        c: (nc, 1) constraint bias.
        psi, phi: (nc, 1) rate and residual of the rows.
        alpha, beta: (nc, 1) rates α and β, 1/s.
    """
    return c + 2 * alpha * psi + beta**2 * phi

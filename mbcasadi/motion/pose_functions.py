"""Exponential, logarithm and interpolation of poses, of positions (3,) and unit quaternions (4,).

    Exp(v, ω) = (Γ_1(ω) v, exp(ω)),     Log(p, q) = (Γ_1(ω)⁻¹ p, ω),  ω = log(q).

Being Functions, they take numbers, SX and MX alike.
"""

from functools import cache

import casadi as ca

from mbcasadi.spatial import (
    conjugate,
    exponential,
    logarithm,
    multiply,
)
from mbcasadi.spatial.integrals import integrals, inverse_of_first
from mbcasadi.spatial.quaternion_columns import column_of, quat_of, quat_of_matrix
from mbcasadi.spatial.vectors import entries


@cache
def quaternion_fun() -> ca.Function:
    """Return (R) → q (4,)."""
    R = ca.SX.sym("R", 3, 3)
    return ca.Function("quaternion", [R], [column_of(quat_of_matrix(R))], ["R"], ["q"])


@cache
def exponential_fun() -> ca.Function:
    """Return (twist) → (p, q); the twist is linear above angular."""
    twist = ca.SX.sym("twist", 6)
    p = integrals(twist[3:]).first @ twist[:3]
    return ca.Function("exponential", [twist], [p, ca.vertcat(*exponential(entries(twist, 3)))])


@cache
def logarithm_fun() -> ca.Function:
    """Return (p, q) → (twist)."""
    p, q = _symbols("a")
    turn = ca.vertcat(*logarithm(quat_of(q)))
    return ca.Function("logarithm", [p, q], [ca.vertcat(inverse_of_first(turn) @ p, turn)])


@cache
def interpolation_fun() -> ca.Function:
    """Return (p_a, q_a, p_b, q_b, s) → (p, q): a line, and a turn about one axis."""
    a, b, s = _symbols("a"), _symbols("b"), ca.SX.sym("s")
    turn = logarithm(multiply(conjugate(quat_of(a[1])), quat_of(b[1])))
    part = exponential((s * turn[0], s * turn[1], s * turn[2]))
    q = ca.vertcat(*multiply(quat_of(a[1]), part))
    return ca.Function("interpolation", [*a, *b, s], [a[0] + s * (b[0] - a[0]), q])


def _symbols(name: str) -> tuple[ca.SX, ca.SX]:
    return ca.SX.sym(f"p_{name}", 3), ca.SX.sym(f"q_{name}", 4)

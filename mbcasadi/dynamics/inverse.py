"""Inverse dynamics of a `System`: of the tree, and of the mechanism with its actuators."""

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.dynamics.terms import (
    Treatment,
    choose_kind,
    drop_rule,
    state_symbols,
    terms,
    terms_at,
)
from mbcasadi.linalg import complement, complete_factor
from mbcasadi.system import System


@checked
def inverse_dynamics(system: System) -> ca.Function:
    """Return (q, v, a, [t]) → (f): `f = M a + h - f_passive`, the force that the motion needs.

    Constraint forces are part of this f; `constrained_inverse_dynamics` separates them.
    """
    state = state_symbols(system, ca.SX)
    a = ca.SX.sym("a", system.nv)
    M, h, _, _ = terms(system, state)
    inputs = {"q": state.q, "v": state.v, "a": a} | state.last
    return ca.Function(
        "inverse_dynamics",
        list(inputs.values()),
        [M @ a + h],
        list(inputs),
        ["f"],
        {"cse": True},
    )


@checked
def constrained_inverse_dynamics(system: System, *, pivot: bool = True) -> ca.Function:
    """Return (q, v, a, [t]) → (u, f_c, lam, residual): controls of minimum norm for a motion.

    `u = (P B)⁺ P (M a + h - f_passive - f_0)`  [A16, eq. 19 corrected: redundant actuation
    needs the pseudo-inverse]; then `f_c = M a + h - f_passive - f_0 - B u` within range(Aᵀ).
    `residual` (nv, 1) is what neither actuators nor constraints can give: zero where the
    motion is possible. `a` must obey `A a + c = 0`; ranges of u are not considered.
    """
    kind = choose_kind(system, pivot)
    state = state_symbols(system, kind)
    a = kind.sym("a", system.nv)
    M, h, A, _ = terms_at(system, state)
    f_0 = system.actuator_bias(q=state.q, v=state.v)["f_0"]
    B = system.actuation(q=state.q)["B"]
    required_force = M @ a + h - f_0
    factor = complete_factor(A, **drop_rule(system, state, Treatment(pivot=pivot)))
    V = factor.basis.V
    P = complement(V)
    actuators = complete_factor(P @ B, row_scale=ca.norm_fro(B), pivot=pivot)
    u = actuators.pinv_times(P @ required_force)
    remainder = required_force - B @ u
    f_c = V @ (V.T @ remainder)
    inputs = {"q": state.q, "v": state.v, "a": a} | state.last
    outputs = {
        "u": u,
        "f_c": f_c,
        "lam": factor.pinv_transposed_times(f_c),
        "residual": remainder - f_c,
    }
    return ca.Function(
        "constrained_inverse_dynamics",
        list(inputs.values()),
        list(outputs.values()),
        list(inputs),
        list(outputs),
        {"cse": True},
    )

"""Inverse dynamics of a `System`: of the tree, and of the mechanism with its actuators."""

import casadi as ca

from mbcasadi.dynamics.terms import choose_kind, state_symbols, terms_at
from mbcasadi.linalg import complement, complete_factor
from mbcasadi.system import System


def inverse_dynamics(system: System) -> ca.Function:
    """Return (q, v, a, [t]) → (f): `f = M a + h - f_passive`, the force that the motion needs.

    Constraint forces are part of this f; `constrained_inverse_dynamics` takes them off.
    """
    state = state_symbols(system, ca.SX)
    a = ca.SX.sym("a", system.nv)
    M, h, _, _ = terms_at(system, state)
    inputs = {"q": state.q, "v": state.v, "a": a} | state.last
    return ca.Function(
        "inverse_dynamics",
        list(inputs.values()),
        [M @ a + h],
        list(inputs),
        ["f"],
        {"cse": True},
    )


def constrained_inverse_dynamics(system: System, *, pivot: bool = True) -> ca.Function:
    """Return (q, v, a, [t]) → (u, f_c, lam, residual): controls of minimum norm for a motion.

    `u = (P B)⁺ P (M a + h - f_passive - f_0)`  [A16, eq. 19 corrected: redundant actuation
    needs the pseudo-inverse]; then `f_c = M a + h - f_passive - f_0 - B u` within range(Aᵀ).
    `residual` (nv, 1) is what neither actuators nor constraints can give: zero where the
    motion is possible. `a` must obey `A a + c = 0`; ranges of u are not looked at.
    """
    kind = choose_kind(system, pivot)
    state = state_symbols(system, kind)
    a = kind.sym("a", system.nv)
    now = terms_at(system, state)
    f_0 = system.actuator_bias(q=state.q, v=state.v)["f_0"]
    B = system.actuation(q=state.q)["B"]
    wanted = now.M @ a + now.h - f_0
    rows = complete_factor(now.A, pivot=pivot)
    V = rows.basis.V
    P = complement(V)
    u = complete_factor(P @ B, pivot=pivot).pinv_times(P @ wanted)
    left = wanted - B @ u
    f_c = V @ (V.T @ left)
    inputs = {"q": state.q, "v": state.v, "a": a} | state.last
    outputs = {
        "u": u,
        "f_c": f_c,
        "lam": rows.pinv_transposed_times(f_c),
        "residual": left - f_c,
    }
    return ca.Function(
        "constrained_inverse_dynamics",
        list(inputs.values()),
        list(outputs.values()),
        list(inputs),
        list(outputs),
        {"cse": True},
    )

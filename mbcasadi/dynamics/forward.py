"""Forward dynamics of a `System` in a chosen formulation, with derivatives by implicit rules."""

from collections.abc import Callable
from typing import Any

import casadi as ca

from mbcasadi.dynamics.derivatives import OUTPUTS, implicit_jacobian, jacobian_fun
from mbcasadi.dynamics.terms import Terms, choose_kind, state_symbols, terms_at
from mbcasadi.formulation import ConstrainedMotion, lagrange, projection
from mbcasadi.linalg import RANK_TOL, Sym, tree_cholesky, tree_solve
from mbcasadi.shapes import require_name
from mbcasadi.system import System

FORMULATIONS: dict[str, Callable[..., ConstrainedMotion[Any]]] = {
    "lagrange": lagrange,
    "projection": projection,
}
"""Name → equations; each takes (M, h, f, A, c) and the drop rule of `linalg.row_basis`."""


def forward_dynamics(
    system: System,
    formulation: str = "projection",
    *,
    row_scale: float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return (q, v, f, [t]) → (a, f_c, lam), the motion under the applied force f.

    `M a + h = f + f_passive + Aᵀ lam`, `A a + c = 0`: valid with redundant rows, at singular
    poses and, in the least-squares sense `A⁺ A a = -A⁺ c`, on drifted states. `lam` are the
    multipliers of minimum norm; `f_c = Aᵀ lam` is unique.

    Its derivatives (Jacobian, forward, reverse, `map`) follow implicit rules: see
    `dynamics.derivatives`. They hold wherever the rank is locally constant. `.expand()` gives
    plain scalars instead, whose derivatives go through the factorisation.

    Args:
        system: the mechanism.
        formulation: one of `FORMULATIONS`.
        row_scale, rank_tol: drop rule of `linalg.row_basis`.
        pivot: safest where constraints are redundant; without it, independent constraints on
            different branches take a half to a fifth of the time.

    Raises:
        UnknownNameError: no such formulation; the message lists the names.
    """
    require_name("formulation", formulation, list(FORMULATIONS))
    rule = {"row_scale": row_scale, "rank_tol": rank_tol, "pivot": pivot}
    core = _core(system, FORMULATIONS[formulation], rule)
    # A Function of matrices around the core: CasADi then asks the core for its own Jacobian,
    # where a Function of scalars would be differentiated through its operations.
    state = state_symbols(system, ca.MX)
    inputs = {"q": state.q, "v": state.v, "f": ca.MX.sym("f", system.nv)} | state.last
    out = core(**inputs)
    return ca.Function(
        "forward_dynamics",
        list(inputs.values()),
        [out[key] for key in OUTPUTS],
        list(inputs),
        list(OUTPUTS),
    )


def forward_dynamics_derivatives(
    system: System, formulation: str = "projection", *, pivot: bool = True
) -> ca.Function:
    """Return (q, v, f, [t]) → (a, dadq, dadv, dadf, lam, dlamdq, dlamdv, dlamdf).

    Derivatives with respect to q are tangent ones, (nv, nv): along `q ⊕ dq`, so that
    quaternions stay unit. They hold wherever the rank is locally constant.
    """
    fd = forward_dynamics(system, formulation, pivot=pivot)
    state = state_symbols(system, ca.MX)
    inputs = {"q": state.q, "v": state.v, "f": ca.MX.sym("f", system.nv)} | state.last
    motion = fd(**inputs)
    J = implicit_jacobian(system, state, motion["a"], motion["lam"], pivot)
    N = system.velocity_map(state.q)
    outputs = {}
    for key in ("a", "lam"):
        outputs[key] = motion[key]
        outputs[f"d{key}dq"] = J[key, "q"] @ N
        outputs[f"d{key}dv"] = J[key, "v"]
        outputs[f"d{key}df"] = J[key, "f"]
    return ca.Function(
        "forward_dynamics_derivatives",
        list(inputs.values()),
        list(outputs.values()),
        list(inputs),
        list(outputs),
    )


def constraint_force(system: System, formulation: str = "projection") -> ca.Function:
    """Return (q, v, f, [t]) → (f_c, lam), the constraint force under the applied force f."""
    fd = forward_dynamics(system, formulation)
    inputs = fd.mx_in()
    outputs = fd.call(inputs)
    names = [fd.name_in(i) for i in range(fd.n_in())]
    return ca.Function("constraint_force", inputs, outputs[1:], names, list(OUTPUTS[1:]))


def solve_motion(
    now: Terms[Sym], f: Sym, equations: Callable[..., ConstrainedMotion[Any]], rule: dict[str, Any]
) -> ConstrainedMotion[Sym]:
    """Return the motion; without constraints every formulation is `a = M⁻¹ (f - h)`."""
    if now.A.shape[0] == 0:
        a = tree_solve(tree_cholesky(now.M), f - now.h)
        return ConstrainedMotion(a, 0 * f, type(f)(0, 1))
    return equations(now.M, now.h, f, now.A, now.c, **rule)


def _core(
    system: System, equations: Callable[..., ConstrainedMotion[Any]], rule: dict[str, Any]
) -> ca.Function:
    """Return the forward dynamics as one Function that knows its own Jacobian."""
    name = "forward_dynamics_core"
    kind = choose_kind(system, rule["pivot"])
    state = state_symbols(system, kind)
    f = kind.sym("f", system.nv)
    now = terms_at(system, state)
    inputs = {"q": state.q, "v": state.v, "f": f} | state.last
    motion = solve_motion(now, f, equations, rule)
    options: dict[str, Any] = {
        "cse": True,
        "custom_jacobian": jacobian_fun(system, name, rule["pivot"]),
        "jac_penalty": 0,  # directional derivatives by way of this Jacobian
        "enable_forward": False,
        "enable_reverse": False,
    }
    return ca.Function(
        name, list(inputs.values()), list(motion), list(inputs), list(OUTPUTS), options
    )

"""Parts of a step on the manifold with their derivatives, each factoring its matrices once.

A least-squares solution x = A⁺(z) b(z) has the derivative [G. Golub and V. Pereyra, 1973]

    ∂x = A⁺ (∂(b - A x) + A⁺ᵀ ∂(Aᵀ e)) + P ∂(Aᵀ y),   e = b - A x,   y = A⁺ᵀ x,

with x, e, y constant on the right, wherever the rank is constant. Steps back onto the manifold
are such solutions (`b = phi`, `b = psi`); no term of second order is dropped, so the derivatives
are those of the map itself, off the manifold and with redundant rows too.
"""

from collections.abc import Mapping
from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.dynamics.inverse_derivatives import by_constants, coordinate_chart, force_derivatives
from mbcasadi.dynamics.row_derivatives import Fixed, row_derivatives
from mbcasadi.dynamics.slopes import Residual, scalar_if_small, slopes_fun
from mbcasadi.dynamics.terms import State, Treatment, row_scale_of, state_symbols, terms
from mbcasadi.linalg import complement, complete_factor
from mbcasadi.model import inverse_dynamics, inverse_dynamics_derivatives
from mbcasadi.simulation.active_rows import holonomic_rows
from mbcasadi.simulation.functions import chart_rate_fun
from mbcasadi.system import System, evaluate


def row_scale_column(system: System, inputs: Mapping[str, ca.SX], treatment: Treatment) -> ca.SX:
    """Return (nc,) the scales of the constraint rows at a state."""
    scale = row_scale_of(system, inputs, treatment)
    return ca.densify(scale * ca.SX.ones(system.nc))


def acceleration_slopes_fun(system: System, treatment: Treatment) -> ca.Function:
    """Return (q, v, u, [t], [mask]) → (a, slopes): `∂a` by (q, v, u, [t]), (nv, ·)."""
    state: State[ca.SX] = state_symbols(system, ca.SX)
    u = ca.SX.sym("u", system.nu)
    inputs = {"q": state.q, "v": state.v, "u": u} | state.last
    M, h, A, c = terms(system, state, treatment.baumgarte)
    pull = ca.SX(system.nv, 1)
    if system.nu:
        pull = evaluate(system.actuation, {"q": state.q, "v": state.v}) @ u + system.actuator_bias(
            state.q, state.v
        )
    along = tuple(key for key in inputs if key != "mask")
    equations = {"M": M, "r": ca.densify(pull - h), "A": A, "c": ca.densify(c)}
    equations["row_scale"] = row_scale_column(system, inputs, treatment)
    return slopes_fun(
        "acceleration_slopes",
        inputs,
        along,
        equations,
        treatment,
        semidefinite=system.semidefinite,
        residual=_acceleration_residual(system, inputs, pull, treatment),
    )


def _acceleration_residual(
    system: System, inputs: Mapping[str, ca.SX], pull: ca.SX, treatment: Treatment
) -> Residual | None:
    """Return the Jacobians of the residuals under the force `pull`, recursively of a tree."""
    if system.tree is None:
        return None
    state = State(inputs["q"], inputs["v"], inputs.get("t"), inputs.get("mask"))
    chart, no_share = coordinate_chart(system, state.q), ca.SX(system.nv, 1)
    nv, nc = system.nv, system.nc

    def jacobians(a: ca.SX, lam: ca.SX, e: ca.SX) -> dict[str, ca.SX]:
        fixed = Fixed(a, lam, e, no_share)
        of_force = dict(zip(("q", "v"), force_derivatives(system, state, a, chart), strict=True))
        of_rows = row_derivatives(system, state, fixed, chart, treatment.baumgarte)
        out: dict[str, ca.SX] = {}
        for x in (key for key in inputs if key != "mask"):
            n = inputs[x].shape[0]
            of_pull = ca.jacobian(pull, inputs[x])
            force = of_rows.get(f"force_{x}", ca.SX(nv, n))
            out[f"balance_{x}"] = of_force.get(x, ca.SX(nv, n)) - of_pull - force
            out[f"row_{x}"] = of_rows.get(f"row_{x}", ca.SX(nc, n))
            out[f"gap_{x}"] = of_rows.get(f"gap_{x}", ca.SX(nv, n))
        return out

    return jacobians


def landing_slopes_fun(system: System, treatment: Treatment) -> ca.Function:
    """Return (q, v, [t], mask) → (a, slopes): v after an inelastic impact, by (q, v, [t])."""
    state: State[ca.SX] = state_symbols(system, ca.SX)
    s = state.inputs
    A = ca.diag(s["mask"]) @ evaluate(system.loop_jacobian, s)
    psi = s["mask"] * evaluate(system.loop_rate, s)
    M = system.mass_matrix(state.q)
    equations = {"M": M, "r": ca.densify(M @ state.v), "A": A, "c": ca.densify(psi - A @ state.v)}
    equations["row_scale"] = row_scale_column(system, s, treatment)
    return slopes_fun(
        "landing_slopes",
        s,
        tuple(state.of_qv),
        equations,
        treatment,
        semidefinite=system.semidefinite,
        residual=_landing_residual(system, s, equations),
    )


def _landing_residual(
    system: System, inputs: Mapping[str, ca.SX], equations: Mapping[str, ca.SX]
) -> Residual | None:
    """Return the Jacobians of `M (v⁺ - v) - Aᵀ Λ` and of the rows, that of the inertia recursively.

    It is the force of inverse dynamics at rest and without gravity.
    """
    if system.tree is None:
        return None
    numbers = system.numbers_at(inputs["q"])
    tree = replace(numbers.tree, gravity=np.zeros(3))
    q, chart, nv = inputs["q"], coordinate_chart(system, inputs["q"]), system.nv
    A, c, M = equations["A"], equations["c"], equations["M"]

    def jacobians(a: ca.SX, lam: ca.SX, e: ca.SX) -> dict[str, ca.SX]:
        change, rest = a - inputs["v"], ca.SX(nv, 1)
        by_q, _ = inverse_dynamics_derivatives(tree, q, rest, change, numbers.actuators)
        by_q = chart.from_tangent(by_q)
        if tree.constants:
            force = ca.cse(inverse_dynamics(tree, q, rest, change, numbers.actuators))
            by_q += by_constants(force, q, tree.nq_of_joints)
        of_inertia = {"q": by_q, "v": -M}
        forces = ca.cse([A.T @ lam, A @ a + c, A.T @ e])
        out: dict[str, ca.SX] = {}
        for x in (key for key in inputs if key != "mask"):
            force, row, gap = (ca.jacobian(value, inputs[x]) for value in forces)
            balance = of_inertia.get(x, ca.SX(*force.shape)) - force
            out |= {f"balance_{x}": balance, f"row_{x}": row, f"gap_{x}": gap}
        return out

    return jacobians


def newton_slopes_fun(system: System, treatment: Treatment) -> ca.Function:
    """Return (q, [t], [mask]) → (q_next, slopes): `q ⊕ (-A⁺ phi)` and its slopes by (q, [t])."""
    state: State[ca.SX] = state_symbols(system, ca.SX)
    s = {key: symbol for key, symbol in state.inputs.items() if key != "v"}
    on = s.get("mask", ca.DM.ones(system.nc)) * holonomic_rows(system)
    still = s | {"v": ca.DM.zeros(system.nv)}
    A = ca.diag(on) @ evaluate(system.loop_jacobian, still)
    phi = on * evaluate(system.constraint, s)
    row_scale = row_scale_column(system, s, treatment)
    back = _least_squares("newton", s, (A, phi, row_scale), treatment)
    here = {key: ca.MX.sym(key, symbol.shape) for key, symbol in s.items()}
    correction = back(**here)
    step = -correction["x"]
    plus = plus_slopes_fun(system)(q=here["q"], dv=step)
    slopes = -plus["by_dv"] @ correction["slopes"]
    slopes += ca.horzcat(plus["by_q"], ca.MX(system.nq, slopes.shape[1] - system.nq))
    outputs = [plus["q_next"], ca.densify(slopes)]
    function = ca.Function(
        "newton_slopes", [*here.values()], outputs, [*here], ["q_next", "slopes"]
    )
    return scalar_if_small(function)


def tangent_slopes_fun(system: System, treatment: Treatment) -> ca.Function:
    """Return (q, v, [t], [mask]) → (v_next, slopes): `v - A⁺ psi` and its slopes by (q, v, [t])."""
    state: State[ca.SX] = state_symbols(system, ca.SX)
    s = state.inputs
    mask = s.get("mask", ca.DM.ones(system.nc))
    A = ca.diag(mask) @ evaluate(system.loop_jacobian, s)
    psi = mask * evaluate(system.loop_rate, s)
    row_scale = row_scale_column(system, s, treatment)
    back = _least_squares("tangent", s, (A, psi, row_scale), treatment)
    here = {key: ca.MX.sym(key, symbol.shape) for key, symbol in s.items()}
    correction = back(**here)
    before = ca.horzcat(ca.DM(system.nv, system.nq), ca.DM.eye(system.nv))
    rest = correction["slopes"].shape[1] - before.shape[1]
    slopes = ca.horzcat(before, ca.DM(system.nv, rest)) - correction["slopes"]
    outputs = [here["v"] - correction["x"], ca.densify(slopes)]
    function = ca.Function(
        "tangent_slopes", [*here.values()], outputs, [*here], ["v_next", "slopes"]
    )
    return scalar_if_small(function)


def plus_slopes_fun(system: System) -> ca.Function:
    """Return (q, dv) → (q_next, by_q, by_dv): `q ⊕ dv` and its Jacobians."""
    q, dv = ca.SX.sym("q", system.nq), ca.SX.sym("dv", system.nv)
    q_next = ca.densify(system.integrate(q, dv))
    outputs = [q_next, ca.jacobian(q_next, q), ca.jacobian(q_next, dv)]
    names = ["q_next", "by_q", "by_dv"]
    return ca.Function("plus_slopes", [q, dv], outputs, ["q", "dv"], names, {"cse": True})


def chart_slopes_fun(system: System) -> ca.Function:
    """Return (q_base, q, v) → (xi_dot, by_base, by_q, by_v): rate of local coordinates."""
    base, q = ca.SX.sym("q_base", system.nq), ca.SX.sym("q", system.nq)
    v = ca.SX.sym("v", system.nv)
    rate = chart_rate_fun(system)(base, q, v)
    outputs = [rate, *(ca.jacobian(rate, symbol) for symbol in (base, q, v))]
    names_out = ["xi_dot", "by_base", "by_q", "by_v"]
    names_in = ["q_base", "q", "v"]
    return ca.Function("chart_slopes", [base, q, v], outputs, names_in, names_out, {"cse": True})


def _least_squares(
    name: str,
    inputs: Mapping[str, ca.SX],
    equations: tuple[ca.SX, ca.SX, ca.SX],
    treatment: Treatment,
) -> ca.Function:
    """Return (inputs) → (x, slopes): `x = A⁺ b` and its slopes by all inputs but the mask.

    Args:
        name: of the Function.
        inputs: symbols by name.
        equations: A, b and the scales of their rows.
        treatment: the drop rule.
    """
    A, b, row_scale = equations
    nc, nv = A.shape
    here = {key: ca.MX.sym(key, symbol.shape) for key, symbol in inputs.items()}
    symbols = [*inputs.values()]
    now = ca.Function(f"{name}_terms", symbols, [A, ca.densify(b), row_scale], {"cse": True})
    A_now, b_now, scale_now = now(*here.values())
    factor = complete_factor(A_now, **treatment.rule(scale_now))
    V, U = factor.basis.V, factor.U
    x = factor.pinv_times(b_now)
    e, y = b_now - U @ (U.T @ b_now), factor.pinv_transposed_times(x)
    constants = {key: ca.SX.sym(key, n) for key, n in (("x", nv), ("e", nc), ("y", nc))}
    z = ca.vertcat(*(symbol for key, symbol in inputs.items() if key != "mask"))
    products = [b - A @ constants["x"], A.T @ constants["e"], A.T @ constants["y"]]
    jacobians = ca.cse([ca.jacobian(product, z) for product in ca.cse(products)])
    residual = ca.Function(f"{name}_residual", [*symbols, *constants.values()], jacobians)
    row, gap, turn = residual(*here.values(), x, e, y)
    across = factor.pinv_times(row + factor.pinv_transposed_times(gap))
    slopes = ca.densify(across + complement(V) @ turn)
    return ca.Function(name, [*here.values()], [x, slopes], [*here], ["x", "slopes"])

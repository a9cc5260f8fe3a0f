"""Parts of a step on the manifold, beside the dynamics."""

from collections.abc import Callable, Mapping
from typing import cast

import casadi as ca

from mbcasadi.dynamics.terms import Treatment, row_scale_of
from mbcasadi.errors import ProblemError
from mbcasadi.linalg import RANK_TOL, complete_factor
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.integrators.tableaus import Tableau, weighted_sum
from mbcasadi.simulation.active_rows import constraints_unroll, holonomic_rows
from mbcasadi.simulation.functions import chart_rate_fun
from mbcasadi.system import System, evaluate


def back_fun(
    system: System, newton: int = 2, rank_tol: float = RANK_TOL, pivot: bool = True
) -> ca.Function:
    """Return (q, v, [t], [mask]) → (q_next, v_next): `q ⊕ (-A⁺ phi)`, then `v - A⁺ psi`.

    [A05, eq. 39]. It holds for redundant rows: the rank of A is revealed.

    Args:
        system: the mechanism.
        newton: number of Newton steps of the positions.
        rank_tol, pivot: drop rule of `linalg.row_basis`.
    """
    unrolled = constraints_unroll(system)
    s = step_symbols(system, cast(type[ca.MX], ca.SX) if unrolled else ca.MX)
    del s["u"]
    mask = s.get("mask", cast(ca.MX, ca.DM.ones(system.nc)))
    q, v, treatment = s["q"], s["v"], Treatment(rank_tol=rank_tol, pivot=pivot)
    on = mask * holonomic_rows(system)
    for _ in range(newton):
        at_rest = {**s, "q": q, "v": cast(ca.MX, ca.DM.zeros(system.nv))}
        A = ca.diag(on) @ evaluate(system.loop_jacobian, at_rest)
        phi = on * evaluate(system.constraint, at_rest)
        factor = complete_factor(A, **treatment.rule(row_scale_of(system, at_rest, treatment)))
        q = system.integrate(q, ca.densify(-factor.pinv_times(phi)))
    inputs = s | {"q": q}
    A = ca.diag(mask) @ evaluate(system.loop_jacobian, inputs)
    psi = mask * evaluate(system.loop_rate, inputs)
    factor = complete_factor(A, **treatment.rule(row_scale_of(system, inputs, treatment)))
    v = v - factor.pinv_times(psi)
    outputs = [ca.densify(q), ca.densify(v)]
    options = {"cse": True} if unrolled else {}
    return ca.Function("back", list(s.values()), outputs, list(s), ["q_next", "v_next"], options)


def force_fun(system: System) -> ca.Function:
    """Return (q, v, u, [step]) → (f), `B u + f_0`, and what a system over steps adds to it."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    u = ca.SX.sym("u", system.nu)
    f = ca.SX(system.nv, 1)
    if system.nu:
        B = evaluate(system.actuation, {"q": q, "v": v})
        f = B @ u + system.actuator_bias(q, v)
    inputs = {"q": q, "v": v, "u": u}
    if system.step_is_input:
        inputs["step"] = ca.SX.sym("step")
    if system.at_end is not None:
        f += system.at_end.force(q, v, inputs.get("step"))
    return ca.Function("force", [*inputs.values()], [ca.densify(f)], [*inputs], ["f"])


def runge_kutta(
    system: System,
    tableau: Tableau,
    motion: Callable[[ca.MX, ca.MX, ca.MX | float], ca.MX],
    s: Mapping[str, ca.MX],
    h: ca.MX | float,
) -> tuple[ca.MX, ca.MX]:
    """Return q and v after one step, off the manifold by the method's error.

    Args:
        system: the mechanism.
        tableau: coefficients of the method.
        motion: (q, v, t) → a.
        s: q, v and [t] at the start, by name.
        h: length of the step, s.
    """
    chart = None if system.nq == system.nv else chart_rate_fun(system)
    q, v, t = s["q"], s["v"], s.get("t", 0)
    rates: list[ca.MX] = []
    accelerations: list[ca.MX] = []
    for row, c in zip(tableau.a, tableau.c, strict=True):
        # At the start the local coordinates are zero, where their rate is v for rotations too.
        first = not any(row)
        q_i = q if first else system.integrate(q, h * weighted_sum(row, rates))
        v_i = v if first else v + h * weighted_sum(row, accelerations)
        rates.append(v_i if first or chart is None else chart(q, q_i, v_i))
        accelerations.append(motion(q_i, v_i, t + c * h))
    q_end = system.integrate(q, h * weighted_sum(tableau.b, rates))
    return q_end, v + h * weighted_sum(tableau.b, accelerations)


def step_symbols(system: System, kind: type[Sym]) -> dict[str, Sym]:
    """Return symbols of `kind` for q, v, u, [t], [mask]."""
    sizes = {"q": system.nq, "v": system.nv, "u": system.nu}
    sizes |= {"t": 1} if system.timed else {}
    sizes |= {} if system.mask is None else {"mask": system.nc}
    return {name: kind.sym(name, size) for name, size in sizes.items()}


def require_no_activation(system: System) -> None:
    """Raise `ProblemError` where a system has activation states."""
    if system.na:
        raise ProblemError(
            f"'{system.name}' has {system.na} activation states, which (q, v) does not hold; "
            "expected actuators without them"
        )

"""Jacobians of the residuals that the implicit rules of `dynamics.derivatives` differentiate."""

import casadi as ca

from mbcasadi.description import Baumgarte
from mbcasadi.dynamics.inverse_derivatives import (
    coordinate_chart,
    force_derivatives,
    tangent_chart,
)
from mbcasadi.dynamics.reduced_row_derivatives import reduced_row_derivatives
from mbcasadi.dynamics.reduced_rows import reduced_size
from mbcasadi.dynamics.row_derivatives import Fixed, row_derivatives
from mbcasadi.dynamics.terms import state_symbols
from mbcasadi.system import System


def residual_jacobian_fun(
    system: System, baumgarte: Baumgarte | None = None, *, tangent: bool = False
) -> ca.Function:
    """Return the Jacobians that implicit rules need, as one Function that shares its terms.

    (q, v, a, lam, e, w, [t], [mask]) → (for x in q, v, [t]: id_x, force_x, row_x, gap_x, share_x),
    the derivatives of `M a + h` (inverse dynamics), `Aᵀ lam`, `A a + c`, `Aᵀ e` and `A w`.

    Args:
        system: the mechanism.
        baumgarte: stabilisation of drift.
        tangent: those by q are along `q ⊕ dq`, else by the coordinates of q.
    """
    state = state_symbols(system, ca.SX)
    sizes = {"a": system.nv, "lam": system.nc, "e": system.nc, "w": system.nv}
    fixed = Fixed(**{key: ca.SX.sym(key, size) for key, size in sizes.items()})
    chart = (tangent_chart if tangent else coordinate_chart)(system, state.q)
    id_q, id_v = force_derivatives(system, state, fixed.a, chart)
    of_force = {"id_q": id_q, "id_v": id_v} | (
        {} if state.t is None else {"id_t": ca.SX(system.nv, 1)}
    )
    of_rows = row_derivatives(system, state, fixed, chart, baumgarte)
    outputs = {
        f"{name}_{x}": (of_force if name == "id" else of_rows)[f"{name}_{x}"]
        for x in state.of_qv
        for name in ("id", "force", "row", "gap", "share")
    }
    inputs = {"q": state.q, "v": state.v} | fixed._asdict() | state.last
    return ca.Function(
        "residual_jacobian",
        list(inputs.values()),
        list(outputs.values()),
        list(inputs),
        list(outputs),
        {"cse": True},
    )


def reduced_residual_fun(
    system: System, baumgarte: Baumgarte | None, tangent: bool, forces: bool
) -> ca.Function:
    """Return (q, v, a, lam, [t], [mask]) → (for x in q, v: [id_x], rho_x; turn_q).

    Of reduced rows that are independent: they leave no `e` and no `w`. `rho_x` stacks `force - id`
    on `row` of `residual_jacobian_fun`; all multipliers are `Q lam` with `turn_q = ∂(Q lam)/∂q`.

    Args:
        system: the mechanism.
        baumgarte: stabilisation of drift.
        tangent: those by q are along `q ⊕ dq`, else by the coordinates of q.
        forces: make id_x, which derivatives of constraint forces need.
    """
    state = state_symbols(system, ca.SX)
    chart = (tangent_chart if tangent else coordinate_chart)(system, state.q)
    a, lam = ca.SX.sym("a", system.nv), ca.SX.sym("lam", reduced_size(system))
    of_force = dict(zip(("q", "v"), force_derivatives(system, state, a, chart), strict=True))
    of_rows = reduced_row_derivatives(system, state, (a, lam), chart, baumgarte)
    outputs = {f"id_{x}": value for x, value in of_force.items()} if forces else {}
    for x, value in of_force.items():
        stacked = ca.vertcat(of_rows[f"force_{x}"] - value, of_rows[f"row_{x}"])
        outputs[f"rho_{x}"] = ca.sparsify(stacked)
    outputs |= {"turn_q": of_rows["turn_q"]} if "turn_q" in of_rows else {}
    inputs = {"q": state.q, "v": state.v, "a": a, "lam": lam} | state.last
    names = (list(inputs), list(outputs))
    return ca.Function(
        "residual_jacobian", [*inputs.values()], [*outputs.values()], *names, {"cse": True}
    )

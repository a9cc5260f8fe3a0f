"""The Functions that a simulation calls: onto the manifold, along it, and across it.

All of them take the time `t`, the activity `mask` (nc,) and the `offset` (nc,) at which rows
of phi are held, whether the system depends on them or not: one call fits every mechanism.
"""

from collections.abc import Mapping
from typing import cast

import casadi as ca

from mbcasadi.dynamics import forward_dynamics
from mbcasadi.formulation import lagrange
from mbcasadi.linalg import UNROLL_LIMIT, Sym, complete_factor, operations
from mbcasadi.simulation.options import EquationOptions
from mbcasadi.system import System, evaluate
from mbcasadi.system.closing import row_scale_at, worst_gap
from mbcasadi.system.sizes import residual_sizes

TRUSTED_STEP = 0.1
"""Rad, or share of a length. A direction in which Newton would go further than this is not one of
the constraint's: it comes from the gap itself (the loop of Bricard has rank 5 when closed and 6
when slightly open), so it is dropped until the gap is closed."""

ROWS_TO_FACTOR = 3
"""A Function holds about this many times the operations of one factorisation."""


def newton_fun(system: System, equations: EquationOptions) -> ca.Function:
    """Return (q, t, mask, offset) → (q_next, length): `q ⊕ (-A⁺ phi)`  [A05, eq. 39].

    A⁺ is that in the sizes of coordinates and residuals, so the step depends on no units. `length`
    is its largest entry, in these sizes. Rows that hold for velocities only take no part.
    """
    s = _symbols(system, ("q", "t", "mask", "offset"), _constraint_kind(system))
    known = s | {"v": ca.DM.zeros(system.nv)}
    on = s["mask"] * holonomic_rows(system)
    size, row_size = ca.DM(system.scales.coordinates), ca.DM(residual_sizes(system))
    A = ca.diag(on / row_size) @ evaluate(system.loop_jacobian, known) @ ca.diag(size)
    phi = on * evaluate(system.constraint, known) - s["offset"]
    step = ca.norm_inf(ca.densify(phi / system.scales.rows))  # that the usual row needs
    least = ca.DM(system.scales.rows) / row_size * step / (TRUSTED_STEP * equations.rank_tol)
    scale = ca.fmax(_sized_scale(system, equations), least)
    factor = complete_factor(A, row_scale=scale, rank_tol=equations.rank_tol)
    x = ca.densify(-factor.pinv_times(phi / row_size))
    q_next = system.integrate(s["q"], size * x)
    return _function("newton", s, {"q_next": q_next, "length": ca.norm_inf(x)})


def tangent_fun(system: System, equations: EquationOptions) -> ca.Function:
    """Return (q, v, t, mask, offset) → (v_next, gap, slip, clearance, rank, slip_next, off).

    `v_next = v - A⁺ psi`, which is `P v` for rows linear in v that do not depend on time; for
    others it is one Newton step. A⁺ and P are those in the sizes of coordinates and residuals, so
    v_next depends on no units. `gap` and `slip` are the worst of phi and of psi before it,
    `slip_next` that of psi after it; `off` (2,) are gap and slip over their sizes.
    `clearance` is the shortest remainder of a kept row, in the sizes: it shrinks where a singular
    pose is near.
    """
    s = _symbols(system, ("q", "v", "t", "mask", "offset"), _constraint_kind(system))
    size, row_size = ca.DM(system.scales.coordinates), ca.DM(residual_sizes(system))
    A = ca.diag(s["mask"] / row_size) @ evaluate(system.loop_jacobian, s) @ ca.diag(size)
    psi = s["mask"] * evaluate(system.loop_rate, s)
    phi = s["mask"] * evaluate(system.constraint, s) - s["offset"]
    scale = _scale_at(system, equations, phi)
    factor = complete_factor(A, row_scale=scale, rank_tol=equations.rank_tol)
    R, used = factor.basis.R, factor.basis.used
    remainders = [
        ca.if_else(used[j] > 0, ca.norm_inf(ca.densify(R[j, :].T)), ca.inf)
        for j in range(R.shape[0])
    ]
    v_next = ca.densify(s["v"] - size * factor.pinv_times(psi / row_size))
    rate = ca.fmax(ca.norm_inf(ca.densify(s["v"] / size)), system.scales.rate)
    off = (ca.norm_inf(ca.densify(x / row_size)) for x in (phi, psi / rate))
    psi_next = s["mask"] * evaluate(system.loop_rate, s | {"v": v_next})
    outputs = {
        "v_next": v_next,
        "gap": ca.norm_inf(ca.densify(phi)),
        "slip": ca.norm_inf(ca.densify(psi)),
        "clearance": ca.mmin(ca.vertcat(ca.inf, *remainders)),
        "rank": factor.basis.rank,
        "slip_next": ca.norm_inf(ca.densify(psi_next)),
        "off": ca.vertcat(*off),
    }
    return _function("tangent", s, outputs)


def jump_fun(system: System, equations: EquationOptions) -> ca.Function:
    """Return (q, v, t, mask) → (v_next, impulse): an inelastic closure.

    `M (v⁺ - v) = Aᵀ Λ` with `A v⁺ + a0 = 0`: the projection of v in the metric of M. Kinetic
    energy never grows by it where `a0 = 0`. The impulse `Aᵀ Λ` is in N s or N m s.
    """
    s = _symbols(system, ("q", "v", "t", "mask"), _constraint_kind(system))
    A = ca.diag(s["mask"]) @ evaluate(system.loop_jacobian, s)
    psi = s["mask"] * evaluate(system.loop_rate, s)
    M = system.mass_matrix(s["q"])
    momentum = ca.densify(M @ s["v"])
    motion = lagrange(
        M,
        0 * momentum,
        momentum,
        A,
        psi - A @ s["v"],
        row_scale=_usual_scale(system, equations),
        rank_tol=equations.rank_tol,
        semidefinite=system.semidefinite,
    )
    return _function("jump", s, {"v_next": motion.a, "impulse": motion.f_c})


def rate_fun(system: System, formulation: str, equations: EquationOptions) -> ca.Function:
    """Return (q_base, q, v, t, act, u, f, mask) → (xi_dot, a, act_dot).

    `xi = q ⊖ q_base` are the local coordinates of one step, `xi_dot` their rate at velocity v:
    v itself but for rotations. `f` acts on top of passive and actuator forces.
    """
    s = _symbols(system, ("q", "v", "t", "act", "u", "f", "mask"), ca.MX)
    base = ca.MX.sym("q_base", system.nq)
    motion = _motion(system, formulation, equations, s)
    act_dot = evaluate(system.act_dot, s) if system.na else ca.MX(0, 1)
    outputs = {
        "xi_dot": chart_rate_fun(system)(base, s["q"], s["v"]),
        "a": motion["a"],
        "act_dot": act_dot,
    }
    return _function("rate", {"q_base": base} | s, outputs)


def sample_fun(system: System, formulation: str, equations: EquationOptions) -> ca.Function:
    """Return (q, v, t, act, u, f, mask) → (a, lam, f_c, energy), what a trajectory reports."""
    s = _symbols(system, ("q", "v", "t", "act", "u", "f", "mask"), ca.MX)
    motion = _motion(system, formulation, equations, s)
    outputs = {key: motion[key] for key in ("a", "lam", "f_c")}
    return _function("sample", s, outputs | {"energy": ca.sum1(_energies(system, s))})


def energy_fun(system: System) -> ca.Function:
    """Return (q, v) → (energies): (2,) kinetic and potential energy, J.

    The potential one is NaN where the system has none.
    """
    s = _symbols(system, ("q", "v"), ca.MX)
    return _function("energy", s, {"energies": _energies(system, s)})


def _energies(system: System, s: Mapping[str, ca.MX]) -> ca.MX:
    kinetic = evaluate(system.kinetic_energy, s)
    name = "potential_energy"
    known = name in system.builders and system.coverage.refusal(name) is None
    potential = evaluate(system.potential_energy, s) if known else ca.DM.nan(1, 1)
    energies: ca.MX = ca.vertcat(kinetic, potential)
    return energies


def holonomic_rows(system: System) -> ca.DM:
    """Return (nc, 1) one where phi depends on anything, zero for rows of velocities only."""
    constraint = system.constraint
    dependent = ca.DM.zeros(system.nc)
    for i in range(constraint.n_in()):
        for row in set(constraint.jac_sparsity(0, i).row()):
            dependent[row] = 1
    return dependent


def chart_rate_fun(system: System) -> ca.Function:
    """Return (q_base, q, v) → (xi_dot), the rate of `q ⊖ q_base`; v itself but for rotations."""
    base, q = ca.SX.sym("q_base", system.nq), ca.SX.sym("q", system.nq)
    v = ca.SX.sym("v", system.nv)
    xi = system.difference(base, q)
    q_dot = system.velocity_map(q) @ v
    return ca.Function("chart_rate", [base, q, v], [ca.densify(ca.jtimes(xi, q, q_dot))])


def has_nonlinear_rates(system: System) -> bool:
    """Return whether rows are nonlinear in v, so that one projection does not reach them."""
    return system.nc > 0 and "v" in system.loop_jacobian.name_in()


def constraints_unroll(system: System) -> bool:
    """Return whether the constraints are few enough for Functions of scalars."""
    count = operations(ca.Sparsity.dense(system.nc, system.nv), True)
    return ROWS_TO_FACTOR * count <= UNROLL_LIMIT


def _motion(
    system: System, formulation: str, equations: EquationOptions, s: Mapping[str, ca.MX]
) -> dict[str, ca.MX]:
    """Return a, f_c and lam under f and the actuators."""
    dynamics = forward_dynamics(
        system,
        formulation,
        row_scale=equations.row_scale,
        rank_tol=equations.rank_tol,
        baumgarte=equations.baumgarte,
        **equations.formulation_options,
    )
    f = s["f"] + (evaluate(system.actuator_force, s) if system.nu else 0)
    known = dict(s) | {"f": f}
    return dict(dynamics(**{name: known[name] for name in dynamics.name_in()}))


def _usual_scale(system: System, equations: EquationOptions) -> ca.DM:
    """Return (nc,) the scales of the constraint rows at a state on the manifold."""
    if equations.row_scale is None:
        return ca.DM(system.scales.row_norms)
    return equations.row_scale * ca.DM.ones(system.nc)


def _sized_scale(system: System, equations: EquationOptions) -> ca.DM:
    """Return `_usual_scale` of the rows in the sizes of coordinates and residuals."""
    scales = system.scales
    of_size = scales.rows / (scales.row_norms * residual_sizes(system))
    return ca.DM(of_size) * _usual_scale(system, equations)


def _scale_at(system: System, equations: EquationOptions, phi: Sym) -> Sym | ca.DM:
    """Return (nc,) the scales of the sized rows at a state with the residual phi."""
    usual = _sized_scale(system, equations)
    if equations.row_scale is not None or not system.nc:
        return usual
    gap = worst_gap(phi, ca.DM(system.scales.rows))
    return row_scale_at(usual, equations.rank_tol, gap)


def _constraint_kind(system: System) -> type[ca.MX]:
    """Return `ca.SX` where the constraints are few, else `ca.MX`; typed as the latter."""
    return cast(type[ca.MX], ca.SX) if constraints_unroll(system) else ca.MX


def _symbols(system: System, names: tuple[str, ...], kind: type[Sym]) -> dict[str, Sym]:
    sizes = {"q": system.nq, "v": system.nv, "t": 1, "act": system.na, "u": system.nu}
    sizes |= {"f": system.nv, "mask": system.nc, "offset": system.nc}
    return {name: kind.sym(name, sizes[name]) for name in names}


def _function(name: str, inputs: Mapping[str, Sym], outputs: Mapping[str, Sym]) -> ca.Function:
    options = {"cse": True} if isinstance(next(iter(inputs.values())), ca.SX) else {}
    return ca.Function(
        name,
        list(inputs.values()),
        [ca.densify(x) for x in outputs.values()],
        list(inputs),
        list(outputs),
        options,
    )

"""The Functions that a simulation calls: onto the manifold, along it, and across it.

All of them take the time `t`, the activity `mask` (nc,) and the `offset` (nc,) at which rows
of phi are held, whether the system depends on them or not: one call fits every mechanism.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Concatenate, ParamSpec

import casadi as ca

from mbcasadi.dynamics import forward_dynamics
from mbcasadi.formulation import lagrange
from mbcasadi.linalg import Sym, complete_factor
from mbcasadi.simulation.active_rows import (
    active_rows,
    constraint_kind,
    holonomic_rows,
    scale_at,
    trusted_scale,
    usual_scale,
)
from mbcasadi.simulation.options import EquationOptions
from mbcasadi.system import System, evaluate
from mbcasadi.system.sizes import residual_sizes

P = ParamSpec("P")


def kept(
    make: Callable[Concatenate[System, P], ca.Function],
) -> Callable[Concatenate[System, P], ca.Function]:
    """Return a function whose Functions are kept by the system, for its next simulation."""

    @wraps(make)
    def entry(system: System, /, *args: P.args, **kwargs: P.kwargs) -> ca.Function:
        given = (*args, *kwargs.values())
        words = (x.key if isinstance(x, EquationOptions) else str(x) for x in given)
        key = " ".join((make.__name__, *words))
        return system.cached_function(key, lambda: make(system, *args, **kwargs))

    return entry


@kept
def newton_fun(system: System, equations: EquationOptions) -> ca.Function:
    """Return (q, t, mask, offset) → (q_next, length): `q ⊕ (-A⁺ phi)`  [A05, eq. 39].

    A⁺ is that in the sizes of coordinates and residuals, so the step depends on no units. `length`
    is its largest entry, in these sizes. Rows that hold for velocities only take no part.
    """
    s = _symbols(system, ("q", "t", "mask", "offset"), constraint_kind(system))
    size, row_size = ca.DM(system.scales.coordinates), ca.DM(residual_sizes(system))
    on = s["mask"] * holonomic_rows(system)
    A = active_rows(system, s, on)
    phi = on * evaluate(system.constraint, s) - s["offset"]
    scale = trusted_scale(system, equations, phi)
    factor = complete_factor(A, row_scale=scale, rank_tol=equations.rank_tol)
    x = ca.densify(-factor.pinv_times(phi / row_size))
    q_next = system.integrate(s["q"], size * x)
    return _function("newton", s, {"q_next": q_next, "length": ca.norm_inf(x)})


@kept
def tangent_fun(system: System, equations: EquationOptions) -> ca.Function:
    """Return (q, v, t, mask, offset) → (v_next, gap, slip, clearance, rank, slip_next, off).

    `v_next = v - A⁺ psi`, which is `P v` for rows linear in v that do not depend on time; for
    others it is one Newton step. A⁺ and P are those in the sizes of coordinates and residuals, so
    v_next depends on no units. `gap` and `slip` are the worst of phi and of psi before it,
    `slip_next` that of psi after it; `off` (2,) are gap and slip over their sizes.
    `clearance` is the shortest remainder of a kept row, in the sizes: it shrinks where a singular
    pose is near.
    """
    s = _symbols(system, ("q", "v", "t", "mask", "offset"), constraint_kind(system))
    size, row_size = ca.DM(system.scales.coordinates), ca.DM(residual_sizes(system))
    A = active_rows(system, s, s["mask"])
    psi = s["mask"] * evaluate(system.loop_rate, s)
    phi = s["mask"] * evaluate(system.constraint, s) - s["offset"]
    scale = scale_at(system, equations, phi)
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
    s = _symbols(system, ("q", "v", "t", "mask"), constraint_kind(system))
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
        row_scale=usual_scale(system, equations),
        rank_tol=equations.rank_tol,
        semidefinite=system.semidefinite,
    )
    return _function("jump", s, {"v_next": motion.a, "impulse": motion.f_c})


@kept
def rate_fun(
    system: System, formulation: str, equations: EquationOptions, *, derivatives: bool = True
) -> ca.Function:
    """Return (q_base, q, v, t, act, u, f, mask) → (xi_dot, a, act_dot).

    `xi = q ⊖ q_base` are the local coordinates of one step, `xi_dot` their rate at velocity v:
    v itself but for rotations. `f` acts on top of passive and actuator forces. `derivatives` are
    those of `forward_dynamics`.
    """
    s = _symbols(system, ("q", "v", "t", "act", "u", "f", "mask"), ca.MX)
    base = ca.MX.sym("q_base", system.nq)
    motion = _motion(system, motion_fun(system, formulation, equations, derivatives), s)
    act_dot = evaluate(system.act_dot, s) if system.na else ca.MX(0, 1)
    outputs = {
        "xi_dot": chart_rate_fun(system)(base, s["q"], s["v"]),
        "a": motion["a"],
        "act_dot": act_dot,
    }
    return _function("rate", {"q_base": base} | s, outputs)


@kept
def sample_fun(system: System, formulation: str, equations: EquationOptions) -> ca.Function:
    """Return (q, v, t, act, u, f, mask) → (a, lam, f_c, energy), what a trajectory reports."""
    s = _symbols(system, ("q", "v", "t", "act", "u", "f", "mask"), ca.MX)
    motion = _motion(system, motion_fun(system, formulation, equations, False), s)
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


def chart_rate_fun(system: System) -> ca.Function:
    """Return (q_base, q, v) → (xi_dot), the rate of `q ⊖ q_base`; v itself but for rotations."""
    base, q = ca.SX.sym("q_base", system.nq), ca.SX.sym("q", system.nq)
    v = ca.SX.sym("v", system.nv)
    xi = system.difference(base, q)
    q_dot = system.velocity_map(q) @ v
    return ca.Function("chart_rate", [base, q, v], [ca.densify(ca.jtimes(xi, q, q_dot))])


@kept
def motion_fun(
    system: System, formulation: str, equations: EquationOptions, derivatives: bool
) -> ca.Function:
    """Return the forward dynamics with these options."""
    return forward_dynamics(
        system,
        formulation,
        treatment=equations.treatment,
        derivatives=derivatives,
        **equations.formulation_options,
    )


def _motion(system: System, dynamics: ca.Function, s: Mapping[str, ca.MX]) -> dict[str, ca.MX]:
    """Return a, f_c and lam under f and the actuators."""
    f = s["f"] + (evaluate(system.actuator_force, s) if system.nu else 0)
    known = dict(s) | {"f": f}
    return dict(dynamics(**{name: known[name] for name in dynamics.name_in()}))


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

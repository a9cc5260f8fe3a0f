"""Discrete-time dynamics on the constraint manifold: Runge-Kutta steps, then back onto it.

    q_i = q ⊕ h Σ_j a_ij w_j,   v_i = v + h Σ_j a_ij a(q_i, v_i, u),
    q⁺ = (q ⊕ h Σ b_i w_i) ⊕ (-A⁺ phi),   v⁺ = v - A⁺ psi,

with the acceleration `a` of projected dynamics, which exists at singular poses and with redundant
rows. `w_i` is the rate of the local coordinates, v itself but for rotations. One Newton step
squares the gap that a Runge-Kutta step leaves. Where a mask closes rows, the step starts with their
inelastic impact: the projection of v in the metric of M. Rows that it closes at a distance are
moved onto `phi = 0` within the step, without a word: the rows `closing` of
`optimal_control_problem` keep plans from this.
"""

from collections.abc import Mapping
from typing import Any

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.dynamics.slopes import scalar_if_small
from mbcasadi.dynamics.terms import Treatment
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.integrators.manifold_step import (
    back_fun,
    force_fun,
    require_no_activation,
    runge_kutta,
    step_symbols,
)
from mbcasadi.mpc.integrators.step_derivatives import StepRule, jacobian_fun, step_slopes_fun
from mbcasadi.mpc.integrators.step_options import DEFAULT_STEP, StepOptions
from mbcasadi.mpc.integrators.tableaus import TABLEAUS
from mbcasadi.shapes import require_whole
from mbcasadi.simulation import EquationOptions
from mbcasadi.simulation.functions import jump_fun
from mbcasadi.system import System
from mbcasadi.system.parametric import takes_parameters

UNROLLED = 20_000
"""Operations of a step with its slopes up to which both are scalar code."""


@checked
def discrete_dynamics(
    system: System, period: float | None, step: StepOptions = DEFAULT_STEP
) -> ca.Function:
    """Return (x, u, p) → (x_next) with `x = (q, v)`, `p = ([p], [t], [mask], [h])`.

    Args:
        system: the mechanism.
        period: length of the step, over which u is held, s; None for an input, h.
        step: options of the integrator.

    Raises:
        ProblemError: an invalid period, or activation states.
    """
    single = free_step_fun(system, step) if period is None else step_fun(system, period, step)
    sizes = {name: single.size1_in(name) for name in single.name_in()[3:]}
    x, u = ca.MX.sym("x", system.nq + system.nv), ca.MX.sym("u", system.nu)
    p = ca.MX.sym("p", sum(sizes.values()))
    ends = [sum(list(sizes.values())[:i]) for i in range(len(sizes) + 1)]
    signals = dict(zip(sizes, ca.vertsplit(p, ends), strict=True)) if sizes else {}
    out = single(q=x[: system.nq], v=x[system.nq :], u=u, **signals)
    x_next = ca.vertcat(out["q_next"], out["v_next"])
    return ca.Function("dynamics", [x, u, p], [x_next], ["x", "u", "p"], ["x_next"])


@checked
@takes_parameters
def step_fun(system: System, period: float, step: StepOptions = DEFAULT_STEP) -> ca.Function:
    """Return (q, v, u, [t], [mask]) → (q_next, v_next), one period on the manifold.

    The actuators' force is `B u + f_0`, without clipping, whose derivative vanishes: bound the
    controls in the problem. Derivatives are exact, by the rules of `step_derivatives`.

    Args:
        system: the mechanism.
        period: length of the step, s.
        step: options of the integrator.

    Raises:
        ProblemError: an invalid period, or activation states.
    """
    if not 0 < period < float("inf"):
        raise ProblemError(f"period = {period}; expected a positive number of seconds")
    require_no_activation(system)
    return _with_jacobian(system, step_symbols(system, ca.MX), period, step)


@takes_parameters
def free_step_fun(system: System, step: StepOptions = DEFAULT_STEP) -> ca.Function:
    """Return (q, v, u, [t], [mask], h) → (q_next, v_next): a step whose length h, s, is an input.

    Args:
        system: the mechanism.
        step: options of the integrator.

    Raises:
        ProblemError: activation states.
    """
    require_no_activation(system)
    s = step_symbols(system, ca.MX) | {"h": ca.MX.sym("h")}
    return _with_jacobian(system, s, s["h"], step)


def require_horizon(horizon: float) -> int:
    """Return the number of intervals.

    Raises:
        ProblemError: not a whole number, or less than one.
    """
    require_whole(1, horizon=horizon)
    return int(horizon)


def _slopes_rule(step: StepOptions) -> StepRule:
    """Return the part of the options that the slopes of a step need."""
    return StepRule(
        tableau=TABLEAUS[step.order],
        newton=step.newton,
        motion=step.treatment,
        landing=Treatment(rank_tol=step.rank_tol),
        back=Treatment(rank_tol=step.rank_tol, pivot=step.pivot),
    )


def _with_jacobian(
    system: System, s: dict[str, ca.MX], length: ca.MX | float, step: StepOptions
) -> ca.Function:
    """Return the steps with the Jacobian of `step_derivatives`.

    The Function around them makes CasADi use it, in calls and when it is called directly.
    """
    rule = _slopes_rule(step)
    slopes = scalar_if_small(step_slopes_fun(system, rule, s, length, step.substeps), UNROLLED)
    options: dict[str, Any] = {
        "custom_jacobian": jacobian_fun(slopes, "step_core"),
        "jac_penalty": 0,  # directional derivatives by way of this Jacobian
        "enable_forward": False,
        "enable_reverse": False,
    }
    names, inputs = ([*s], ["q_next", "v_next"]), list(s.values())
    if slopes.is_a("SXFunction") and step.is_default:
        # The value of the slopes' Function: where both are needed, common parts are computed once.
        symbols = slopes.sx_in()
        core = ca.Function("step_core", symbols, slopes.call(symbols)[:2], *names, options)
    else:
        options["never_inline"] = True
        steps = _all_substeps(system, s, length, step)
        core = ca.Function("step_core", inputs, steps.call(inputs), *names, options)
    return ca.Function("step", inputs, core.call(inputs), *names)


def _all_substeps(
    system: System, s: dict[str, ca.MX], length: ca.MX | float, step: StepOptions
) -> ca.Function:
    """Return all substeps of one period."""
    h = length / step.substeps
    single = _substep(system, s, length if "h" in s else h, step)
    return single if step.substeps == 1 else _chain(single, s, step.substeps, h)


def _substep(
    system: System, s: dict[str, ca.MX], h: ca.MX | float, step: StepOptions
) -> ca.Function:
    """Return one step of length h."""
    acceleration, force = step.acceleration_fun(system, derivatives=False), force_fun(system)
    time_inputs = {name: s[name] for name in ("t", "mask") if name in s}

    def motion(q: ca.MX, v: ca.MX, t: ca.MX | float) -> ca.MX:
        inputs = time_inputs | ({"t": t} if "t" in time_inputs else {})
        return acceleration(q=q, v=v, f=force(q, v, s["u"]), **inputs)["a"]

    start = s if system.mask is None else s | {"v": _velocity_after_impact(system, s, step)}
    q, v = runge_kutta(system, TABLEAUS[step.order], motion, start, h)
    if system.nc and step.newton:
        back = back_fun(system, step.newton, step.rank_tol, step.pivot)
        inputs = s | {"q": q, "v": v} | ({"t": s["t"] + h} if "t" in s else {})
        out = back(**{name: inputs[name] for name in back.name_in()})
        q, v = out["q_next"], out["v_next"]
    return ca.Function("step", list(s.values()), [q, v], list(s), ["q_next", "v_next"])


def _velocity_after_impact(system: System, s: Mapping[str, ca.MX], step: StepOptions) -> ca.MX:
    """Return v after the impact of rows that the mask has just closed; v itself without any."""
    jump = jump_fun(system, EquationOptions(rank_tol=step.rank_tol))
    inputs: dict[str, ca.MX | ca.DM] = {"t": ca.DM(0), **s}
    return jump(**{name: inputs[name] for name in jump.name_in()})["v_next"]


def _chain(
    single: ca.Function, s: dict[str, ca.MX], substeps: int, h: ca.MX | float
) -> ca.Function:
    """Return so many steps in a row, the time advanced by h after each."""
    inputs = dict(s) | ({"h": h} if "h" in s else {})
    for _ in range(substeps):
        out = single(**inputs)
        inputs |= {"q": out["q_next"], "v": out["v_next"]}
        if "t" in inputs:
            inputs["t"] = inputs["t"] + h
    outputs = [inputs["q"], inputs["v"]]
    return ca.Function("step", list(s.values()), outputs, list(s), ["q_next", "v_next"])

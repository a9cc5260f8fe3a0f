"""Discrete-time dynamics on the constraint manifold: Runge-Kutta steps, then back onto it.

    q_i = q ⊕ h Σ_j a_ij w_j,   v_i = v + h Σ_j a_ij a(q_i, v_i, u),
    q⁺ = (q ⊕ h Σ b_i w_i) ⊕ (-A⁺ phi),   v⁺ = v - A⁺ psi,

with the acceleration `a` of projected dynamics, which exists at singular poses and with redundant
rows. `w_i` is the rate of the local coordinates, v itself but for rotations. One Newton step
squares the gap that a Runge-Kutta step leaves. Where a mask closes rows, the step starts with their
inelastic impact: the projection of v in the metric of M.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca

from mbcasadi.dynamics import forward_dynamics
from mbcasadi.dynamics.slopes import scalar_if_small
from mbcasadi.dynamics.terms import Treatment
from mbcasadi.errors import ProblemError
from mbcasadi.linalg import RANK_TOL
from mbcasadi.mpc.integrators.manifold_step import back_fun, force_fun, runge_kutta, step_symbols
from mbcasadi.mpc.integrators.step_derivatives import StepRule, jacobian_fun, step_slopes_fun
from mbcasadi.mpc.integrators.tableaus import TABLEAUS
from mbcasadi.shapes import require_name
from mbcasadi.simulation import EquationOptions
from mbcasadi.simulation.functions import jump_fun
from mbcasadi.system import System

UNROLLED = 20_000
"""Operations of a step with its slopes up to which both are scalar code."""

DEFAULT = "projection"
"""Formulation of the dynamics; all of them give the same motion."""

ROWS = ("row_scale", "baumgarte")
"""Options of the dynamics that treat rows."""


def discrete_dynamics(system: System, period: float, **options: Any) -> ca.Function:
    """Return (x, u, p) → (x_next) with `x = (q, v)` and `p = ([t], [mask])`.

    Args:
        system: the mechanism.
        period: length of the step, over which u is held, s.
        options: of `step_fun`.

    Raises:
        ProblemError: as `step_fun`.
    """
    step = step_fun(system, period, **options)
    sizes = {name: step.size1_in(name) for name in step.name_in()[3:]}
    x, u = ca.MX.sym("x", system.nq + system.nv), ca.MX.sym("u", system.nu)
    p = ca.MX.sym("p", sum(sizes.values()))
    ends = [sum(list(sizes.values())[:i]) for i in range(len(sizes) + 1)]
    known = dict(zip(sizes, ca.vertsplit(p, ends), strict=True)) if sizes else {}
    out = step(q=x[: system.nq], v=x[system.nq :], u=u, **known)
    x_next = ca.vertcat(out["q_next"], out["v_next"])
    return ca.Function("dynamics", [x, u, p], [x_next], ["x", "u", "p"], ["x_next"])


def step_fun(
    system: System,
    period: float,
    *,
    order: int = 4,
    substeps: int = 1,
    newton: int = 2,
    formulation: str = DEFAULT,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
    **options: Any,
) -> ca.Function:
    """Return (q, v, u, [t], [mask]) → (q_next, v_next), one period on the manifold.

    The actuators' force is `B u + f_0`, without clipping, whose derivative vanishes: bound the
    controls in the problem. Derivatives are exact, by the rules of `step_derivatives`.

    Args:
        system: the mechanism.
        period: length of the step, s.
        order: 1 to 4, of the explicit Runge-Kutta method.
        substeps: number of equal steps in a period.
        newton: number of Newton steps back onto positions, 0 for none; velocities are projected
            where it is not zero. With two of them the gap of a four-bar stays below 1e-10 m in
            steps that turn no joint by more than half a radian.
        formulation, rank_tol, pivot, options: of `forward_dynamics`.

    Raises:
        ProblemError: an invalid period, order or number, or activation states.
        UnknownNameError: no such formulation.
    """
    _check(system, period, order, substeps, newton)
    method = Method(order, newton, formulation, rank_tol, pivot, options)
    return _with_jacobian(system, step_symbols(system, ca.MX), period, substeps, method)


def free_step_fun(
    system: System,
    *,
    order: int = 4,
    substeps: int = 1,
    newton: int = 2,
    formulation: str = DEFAULT,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
    **options: Any,
) -> ca.Function:
    """Return (q, v, u, [t], [mask], h) → (q_next, v_next): a step whose length h, s, is an input.

    Args:
        system, order, substeps, newton, formulation, rank_tol, pivot, options: as in `step_fun`.

    Raises:
        ProblemError, UnknownNameError: as in `step_fun`.
    """
    _check(system, 1.0, order, substeps, newton)
    method = Method(order, newton, formulation, rank_tol, pivot, options)
    s = step_symbols(system, ca.MX) | {"h": ca.MX.sym("h")}
    return _with_jacobian(system, s, s["h"], substeps, method)


@dataclass(frozen=True)
class Method:
    """Options of `step_fun`."""

    order: int
    newton: int
    formulation: str
    rank_tol: float
    pivot: bool
    options: Mapping[str, Any]

    @property
    def plain(self) -> bool:
        """Whether the options concern only the treatment of rows."""
        return self.formulation == DEFAULT and set(self.options) <= set(ROWS)

    @property
    def rule(self) -> StepRule:
        """The part of the options that the slopes of a step need."""
        back = Treatment(rank_tol=self.rank_tol, pivot=self.pivot)
        own = {key: self.options[key] for key in ROWS if key in self.options}
        return StepRule(
            tableau=TABLEAUS[self.order],
            newton=self.newton,
            motion=replace(back, **own),
            landing=Treatment(rank_tol=self.rank_tol),
            back=back,
        )


def _with_jacobian(
    system: System, s: dict[str, Any], length: Any, substeps: int, method: Method
) -> ca.Function:
    """Return the steps with the Jacobian of `step_derivatives`.

    The Function around them makes CasADi use it, in calls and when it is called directly.
    """
    slopes = scalar_if_small(step_slopes_fun(system, method.rule, s, length, substeps), UNROLLED)
    whole = _stepped(system, s, length, substeps, method)
    options: dict[str, Any] = {
        "custom_jacobian": jacobian_fun(slopes, "step_core"),
        "jac_penalty": 0,  # directional derivatives by way of this Jacobian
        "enable_forward": False,
        "enable_reverse": False,
    }
    names, inputs = (whole.name_in(), whole.name_out()), list(s.values())
    if slopes.is_a("SXFunction") and method.plain:
        # The value of the slopes' Function: where both are needed, common parts are computed once.
        given: Any = slopes.sx_in()
        core = ca.Function("step_core", given, slopes.call(given)[:2], *names, options)
    else:
        options["never_inline"] = True
        core = ca.Function("step_core", inputs, whole.call(inputs), *names, options)
    return ca.Function("step", inputs, core.call(inputs), *names)


def _stepped(
    system: System, s: dict[str, Any], length: Any, substeps: int, method: Method
) -> ca.Function:
    h = length / substeps
    single = _single(system, s, length if "h" in s else h, method)
    return single if substeps == 1 else _repeated(single, s, substeps, h)


def _single(system: System, s: dict[str, Any], h: Any, method: Method) -> ca.Function:
    """Return one step of length h."""
    rank_tol, pivot = method.rank_tol, method.pivot
    dynamics = forward_dynamics(
        system, method.formulation, rank_tol=rank_tol, pivot=pivot, **method.options
    )
    pull = force_fun(system)
    timed = {name: s[name] for name in ("t", "mask") if name in s}

    def motion(q: Any, v: Any, t: Any) -> Any:
        known = timed | ({"t": t} if "t" in timed else {})
        return dynamics(q=q, v=v, f=pull(q, v, s["u"]), **known)["a"]

    start = s if system.mask is None else s | {"v": _landed(system, s, rank_tol)}
    q, v = runge_kutta(system, TABLEAUS[method.order], motion, start, h)
    if system.nc and method.newton:
        back = back_fun(system, method.newton, rank_tol, pivot)
        known = s | {"q": q, "v": v} | ({"t": s["t"] + h} if "t" in s else {})
        closed = back(**{name: known[name] for name in back.name_in()})
        q, v = closed["q_next"], closed["v_next"]
    return ca.Function("step", list(s.values()), [q, v], list(s), ["q_next", "v_next"])


def _landed(system: System, s: Mapping[str, Any], rank_tol: float) -> Any:
    """Return v after the impact of rows that the mask has just closed; v itself without any."""
    jump = jump_fun(system, EquationOptions(rank_tol=rank_tol))
    known = {"t": ca.DM(0)} | dict(s)
    return jump(**{name: known[name] for name in jump.name_in()})["v_next"]


def _repeated(single: ca.Function, s: dict[str, Any], substeps: int, h: Any) -> ca.Function:
    """Return `single` in a row, time moved on."""
    known = dict(s) | ({"h": h} if "h" in s else {})
    for _ in range(substeps):
        out = single(**known)
        known |= {"q": out["q_next"], "v": out["v_next"]}
        if "t" in known:
            known["t"] = known["t"] + h
    outputs = [known["q"], known["v"]]
    return ca.Function("step", list(s.values()), outputs, list(s), ["q_next", "v_next"])


def _check(system: System, period: float, order: int, substeps: int, newton: int) -> None:
    if not 0 < period < float("inf"):
        raise ProblemError(f"period = {period}; expected a positive number of seconds")
    if order not in TABLEAUS:
        require_name("order", str(order), [str(one) for one in TABLEAUS])
    whole = float(substeps).is_integer() and float(newton).is_integer()
    if not whole or substeps < 1 or newton < 0:
        raise ProblemError(
            f"substeps = {substeps}, newton = {newton}; expected whole numbers, at least 1 and 0"
        )
    if system.na:
        raise ProblemError(
            f"'{system.name}' has {system.na} activation states, which (q, v) does not hold; "
            "expected actuators without them"
        )

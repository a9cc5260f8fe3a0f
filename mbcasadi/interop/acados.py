"""A mechanism as an acados model, and an optimal control problem as an AcadosOcp."""

import re
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.interop.continuous_dynamics import (
    continuous_dynamics,
    neighbour,
    require_members,
)
from mbcasadi.interop.ocp_stages import parameters_of
from mbcasadi.mpc.integrators.step import discrete_dynamics
from mbcasadi.mpc.integrators.step_options import (
    DEFAULT_DYNAMICS,
    DEFAULT_STEP,
    DynamicsOptions,
    StepOptions,
)
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.shapes import column, described
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values

INFINITE = 1e10
"""Of acados: a bound that is none."""


@checked
@at_model_values
def to_acados_model(
    system: System,
    *,
    period: float | None = None,
    model: Any = None,
    dynamics: DynamicsOptions = DEFAULT_DYNAMICS,
    step: StepOptions | None = None,
) -> Any:
    """Return an AcadosModel: name, x, u, p, t, xdot, `f_expl_expr`, `f_impl_expr = xdot - f`.

    p is the mask, where there is one.

    Args:
        system: the mechanism.
        period: fill `disc_dyn_expr` too, with one of our steps of this length, s; acados takes
            it as `integrator_type = "DISCRETE"`.
        model: an AcadosModel to fill; a new one by default.
        dynamics: how the acceleration of the continuous model is computed.
        step: options of the step, with a period.

    Raises:
        MissingExtraError: acados_template is not installed, and no model was given.
        ProblemError: activation states; a step without a period; constraints that depend on time,
            with a period: acados has no time in discrete dynamics.
    """
    if system.timed and period is not None:
        raise ProblemError(
            f"'{system.name}' has constraints that move, and acados gives no time to discrete "
            "dynamics; leave period out"
        )
    if period is None and step is not None:
        raise ProblemError("step without a period; give the period, or dynamics= in place of step=")
    motion = continuous_dynamics(system, dynamics)
    if model is None:
        hint = "it comes with acados: https://docs.acados.org/installation"
        model = neighbour("acados_template", hint).AcadosModel()
    frozen = getattr(getattr(model, "__dataclass_params__", None), "frozen", False)
    if not hasattr(model, "__dict__") or isinstance(model, type) or frozen:
        raise ProblemError(f"model is {described(model)}; expected an AcadosModel to fill")
    x, u = ca.MX.sym("x", system.nq + system.nv), ca.MX.sym("u", system.nu)
    xdot, t = ca.MX.sym("xdot", system.nq + system.nv), ca.MX.sym("t")
    mask = ca.MX.sym("p", 0 if system.mask is None else system.nc)
    f = motion(x, u, ca.vertcat(t, mask) if system.timed else mask)
    model.name = re.sub(r"\W|^(?=\d)", "_", system.name, flags=re.ASCII)
    model.x, model.u, model.xdot = x, u, xdot
    model.p = mask if mask.numel() else []
    if system.timed:
        model.t = t
    model.f_expl_expr, model.f_impl_expr = f, xdot - f
    if period is not None:
        model.disc_dyn_expr = discrete_dynamics(system, period, step or DEFAULT_STEP)(x, u, mask)
    return model


@checked
def ocp_to_acados(
    problem: OptimalControlProblem,
    x0: ArrayLike,
    p: ArrayLike | None = None,
    *,
    ocp: Any = None,
) -> Any:
    """Return an AcadosOcp: discrete steps, cost (NONLINEAR_LS) and all rows of a problem.

    Soft rows are acados' own, with slacks. The solver comes from the user:
    `AcadosOcpSolver(ocp)`, then `solver.set(k, "p", values)` with row k of p for each sample.

    Args:
        problem: to hand on.
        x0: (nx,) initial state.
        p: (N + 1, np) parameters, of which the first sample's are `parameter_values`; nominal by
            default.
        ocp: an AcadosOcp to fill; a new one by default.

    Raises:
        MissingExtraError: acados_template is not installed, and no Ocp was given.
        ShapeError: x0 or p of a wrong shape, or NaN.
    """
    start, values = column("x0", x0, problem.nx), parameters_of(problem, p)
    if ocp is None:
        hint = "it comes with acados: https://docs.acados.org/installation"
        ocp = neighbour("acados_template", hint).AcadosOcp()
    tables = ("model", "cost", "constraints", "solver_options")
    require_members("ocp", ocp, tables, "an AcadosOcp to fill")
    model, cost, limits = ocp.model, ocp.cost, ocp.constraints
    x, u, q = (
        ca.MX.sym(n, k) for n, k in zip("xup", (problem.nx, problem.nu, problem.np_), strict=True)
    )
    model.name, model.x, model.u = problem.name, x, u
    model.p = q if problem.np_ else []
    model.disc_dyn_expr = problem.dynamics(x, u, q)
    ocp.parameter_values = values[0].copy()
    stage, end = problem.residual(x, u, q), problem.terminal(x, q)
    for suffix, residual, weight in (
        ("_0", stage, 1 / problem.period), ("", stage, 1 / problem.period), ("_e", end, 1.0),
    ):  # fmt: skip
        # Costs of intervals are multiplied by their length there; ours hold the period.
        size = residual.numel()
        setattr(model, f"cost_y_expr{suffix}", residual)
        setattr(cost, f"cost_type{suffix}", "NONLINEAR_LS")
        setattr(cost, f"W{suffix}", weight * np.eye(size))
        setattr(cost, f"yref{suffix}", np.zeros(size))
    path, last, share = problem.path(x, u, q), problem.end(x, q), 1 / problem.period
    _rows(ocp, "_0", path, (problem.first_path_bounds, problem.path_penalties), share)
    _rows(ocp, "", path, (problem.path_bounds, problem.path_penalties), share)
    _rows(ocp, "_e", last, (problem.end_bounds, problem.end_penalties), 1.0)
    limits.x0 = start
    for name, bounds, suffixes in (
        ("u", problem.u_bounds, [""]),
        ("x", problem.x_bounds, ["", "_e"]),
    ):
        places = np.flatnonzero(np.isfinite(bounds).any(axis=1))
        for suffix in suffixes if places.size else []:
            setattr(limits, f"idxb{name}{suffix}", places)
            setattr(limits, f"lb{name}{suffix}", _finite(bounds[places, 0]))
            setattr(limits, f"ub{name}{suffix}", _finite(bounds[places, 1]))
    options = ocp.solver_options
    options.N_horizon, options.tf = problem.horizon, problem.horizon * problem.period
    options.integrator_type, options.hessian_approx = "DISCRETE", "GAUSS_NEWTON"
    return ocp


def _finite(bounds: Array) -> Array:
    return np.clip(bounds, -INFINITE, INFINITE)


def _rows(
    ocp: Any, suffix: str, rows: ca.MX, limits: tuple[Array, Array | None], share: float
) -> None:
    """Give the rows of a kind of stages, and the prices of soft ones times a share."""
    bounds, penalties = limits
    places = np.flatnonzero(np.isfinite(bounds).any(axis=1))
    if not places.size:
        return
    setattr(ocp.model, f"con_h_expr{suffix}", rows[places.tolist()])
    setattr(ocp.constraints, f"lh{suffix}", _finite(bounds[places, 0]))
    setattr(ocp.constraints, f"uh{suffix}", _finite(bounds[places, 1]))
    prices = np.full((len(bounds), 2), np.inf)
    if penalties is not None:
        prices[: len(penalties)] = penalties
    soft = np.flatnonzero(np.isfinite(prices[places]).all(axis=1))
    if not soft.size:
        return
    linear, quadratic = share * prices[places][soft].T
    setattr(ocp.constraints, f"idxsh{suffix}", soft)
    for side in "lu":
        setattr(ocp.cost, f"z{side}{suffix}", linear)
        setattr(ocp.cost, f"Z{side}{suffix}", quadratic)

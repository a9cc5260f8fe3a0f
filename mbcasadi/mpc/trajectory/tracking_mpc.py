"""Linear MPC along a trajectory: its matrices vary with time, as input data of the generated C."""

from collections.abc import Callable
from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.signals import deviations
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.control.tasks.task import Slot
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.mpc.ocp.problem import OptimalControlProblem
from mbcasadi.mpc.rti.controller import real_time_iteration
from mbcasadi.mpc.rti.iteration import RealTimeIteration
from mbcasadi.mpc.trajectory.reference import mean_controls, tracking_guess
from mbcasadi.mpc.trajectory.solution import TrajectorySolution
from mbcasadi.shapes import bounds, require_positive, require_whole, weight
from mbcasadi.simulation.recorder import map_samples
from mbcasadi.system import System


@checked
def trajectory_mpc(
    solution: TrajectorySolution,
    horizon: int,
    period: float,
    cost: Cost,
    *,
    u_bounds: ArrayLike | None = None,
    delay: int = 0,
    beyond: str = "hold",
    name: str = "trajectory_mpc",
) -> RealTimeIteration:
    """Return linear MPC along a trajectory; `time_varying_model` gives its `ref`.

        x_{k+1} = F(x_r, u_r) + A_k (x_k - x_r) + B_k (u_k - u_r),
        A, B = ∂F/∂(x, u) at (x_r, u_r),
        cost = Σ T ½ (|x_r - x|²_Q + |u_r - u|²_R) + ½ |x_r - x_N|²_{Q_N},   u_min <= u_k <= u_max.

    F is a step that ends on the constraint manifold, so A contains the projection: the part of a
    measured state across the constraints has no effect. The problem is a QP, and the real-time
    iteration solves it completely in each tick. Unlike that of the nonlinear problem it does not
    linearise at run time. Far from the trajectory the nonlinear one is better.

    Args:
        solution: the trajectory to track.
        horizon: number of intervals N.
        period: length of one, s.
        cost: its Q, R, positive definite, and Q_end, Q by default; it has nothing else.
        u_bounds: (nu, 2); the model's ranges by default.
        delay, name: as in `real_time_iteration`.
        beyond: after the end, "hold" or "repeat"; see `TrajectorySolution.at`.

    Raises:
        ProblemError: joints with quaternions, a mask, an invalid horizon or period, an
            indefinite weight, another cost.
        ShapeError: a wrong shape, or NaN.
    """
    system = solution.problem.system
    require_positive(period=period)
    require_whole(1, horizon=horizon)
    if system.nq != system.nv or system.mask is not None:
        raise ProblemError(
            f"'{system.name}' has quaternions or a mask; a linear MPC along a trajectory counts "
            "differences of coordinates: use real_time_iteration of a nonlinear problem"
        )
    limits = bounds("u_bounds", system.limits.ctrl if u_bounds is None else u_bounds, system.nu)
    more = [name for name in ("S", "residual", "terminal") if getattr(cost, name) is not None]
    if cost.Q is None or cost.R is None or more:
        found = f"has {', '.join(more)}" if more else "lacks Q or R"
        raise ProblemError(f"the cost {found}; expected Cost(Q, R, Q_end)")
    weights = (cost.Q, cost.R, cost.Q if cost.Q_end is None else cost.Q_end)
    ocp = _problem(name, int(horizon), float(period), system, weights, limits)
    # Parameters of the dynamics are stored over a delay; before the first tick those of t = 0.
    begun = time_varying_model(solution, ocp, beyond=beyond)(0.0)
    ocp = replace(ocp, nominal=begun.reshape(ocp.horizon + 1, ocp.np_))
    guess = tracking_guess(solution, ocp, beyond=beyond)
    return real_time_iteration(ocp, guess, delay=delay, name=name)


@checked
def time_varying_model(
    solution: TrajectorySolution,
    ocp: OptimalControlProblem,
    *,
    beyond: str = "hold",
    delay: int = 0,
    start: float = 0.0,
) -> Callable[[float], Array]:
    """Return t → ref: states, controls and matrices of all samples that begin at t.

    Args:
        solution: the trajectory to track.
        ocp: of `trajectory_mpc`, its `ocp`.
        beyond, delay, start: as in `reference_from_trajectory`.

    Raises:
        ProblemError: a delay that is no whole number of ticks.
    """
    require_whole(0, delay=delay)
    ahead: Array = ocp.period * (np.arange(ocp.horizon + 1, dtype=np.float64) + delay)
    slopes = _slopes(solution, ocp.period)

    def reference(t: float) -> Array:
        times = np.maximum(t - start + ahead, 0.0)
        q, v, _ = solution.at(times, beyond)
        v = np.where((t - start + ahead >= 0)[:, None], v, 0.0)
        u = mean_controls(solution, times, ocp.period, beyond)
        x_next, A, B = map_samples(slopes, q, v, u)
        rows = np.hstack([q, v, x_next, u, A, B])
        return np.asarray(rows.ravel())

    return reference


def _slopes(solution: TrajectorySolution, period: float) -> ca.Function:
    """Return (q, v, u) → (x_next, A, B), matrices column by column."""
    system = solution.problem.system
    q, v, u = (ca.MX.sym(key, n) for key, n in
               (("q", system.nq), ("v", system.nv), ("u", system.nu)))  # fmt: skip
    out = solution.problem.step(q=q, v=v, u=u, h=period)
    x_next = ca.vertcat(out["q_next"], out["v_next"])
    A = ca.horzcat(ca.jacobian(x_next, q), ca.jacobian(x_next, v))
    blocks = [x_next, ca.vec(ca.densify(A)), ca.vec(ca.densify(ca.jacobian(x_next, u)))]
    return ca.Function("slopes", [q, v, u], blocks)


def _problem(
    name: str,
    horizon: int,
    period: float,
    system: System,
    weights: tuple[ArrayLike, ArrayLike, ArrayLike],
    limits: Array,
) -> OptimalControlProblem:
    nv, nu = system.nv, system.nu
    tracked = tuple(zip(*deviations(system), strict=True))
    nx, root = 2 * nv, np.sqrt(period)
    widths = {"state": nx, "next": nx, "control": nu, "A": nx * nx, "B": nx * nu}
    s = {key: ca.SX.sym(key, n) for key, n in widths.items()}
    x, u, p = ca.SX.sym("x", nx), ca.SX.sym("u", nu), ca.vertcat(*s.values())
    A, B = ca.reshape(s["A"], nx, nx), ca.reshape(s["B"], nx, nu)
    away = s["state"] - x
    residuals = [root * _root("Q", weights[0], nx) @ away]
    residuals.append(root * _root("R", weights[1], nu) @ (s["control"] - u))
    inner, last = {"x": x, "u": u, "p": p}, {"x": x, "p": p}
    q, v = ca.SX.sym("q", nv), ca.SX.sym("v", nv)
    return OptimalControlProblem(
        name=name,
        horizon=horizon,
        period=period,
        dynamics=_fun("dynamics", inner, "x_next", s["next"] - A @ away + B @ (u - s["control"])),
        residual=_fun("residual", inner, "r", ca.vertcat(*residuals)),
        terminal=_fun("terminal", last, "r", _root("Q_end", weights[2], nx) @ away),
        path=_fun("path", inner, "g", ca.SX(0, 1)),
        path_bounds=np.empty((0, 2)),
        end=_fun("end", last, "g", ca.SX(0, 1)),
        end_bounds=np.empty((0, 2)),
        x_bounds=np.tile([-np.inf, np.inf], (nx, 1)),
        u_bounds=limits,
        slots=tuple(
            Slot(key, tuple(f"{i}" for i in range(n)), ("",) * n) for key, n in widths.items()
        ),
        state=_fun("state", {"q": q, "v": v}, "x", ca.vertcat(q, v)),
        tracking=ca.Function(
            "tracking",
            [q, p],
            [s["state"][:nv], s["state"][:nv] - q],
            ["q", "p"],
            ["target", "error"],
        ),
        labels={"tracked": tracked[0], "tracked_units": tracked[1]},
    )


def _root(name: str, value: ArrayLike, size: int) -> ca.DM:
    """Return L with `Lᵀ L` the weight."""
    squares, V = np.linalg.eigh(weight(name, value, size))
    return ca.sparsify(ca.DM(np.sqrt(np.maximum(squares, 0.0))[:, None] * V.T))


def _fun(name: str, inputs: dict[str, ca.SX], output: str, value: ca.SX) -> ca.Function:
    return ca.Function(name, [*inputs.values()], [ca.densify(value)], [*inputs], [output])

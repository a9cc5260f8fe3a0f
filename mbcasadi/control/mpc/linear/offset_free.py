"""Offset-free linear MPC: a disturbance is estimated, predicted with, and cancelled.

    model      x_next = A x + B u + drift + B_d d,   d_next = d,   y = C x
    correct    (x, d) ← (x, d) + L (y - C x)                    stationary Kalman filter
    target     0 = (A - I) x_s + B u_s + drift + B_d d,   H x_s = H r,   near (r, s)
    control    the linear MPC of (x, d) about (x_s, u_s)
    predict    (x, d) ← (A x + B u + drift + B_d d, d)          u that acts, clipped to its limits

With one disturbance for each measured number, d represents any constant force or model error that
keeps the plant from its setpoint: where the loop settles and no bound is active, H x = H r
[G. Pannocchia, J. B. Rawlings, AIChE J. 49 (2003), 426-437].
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.guard import clamped
from mbcasadi.control.linear.linearization import Linearization
from mbcasadi.control.linear.riccati import weight
from mbcasadi.control.mpc.linear.around import SOLUTION, around_function
from mbcasadi.control.mpc.linear.disturbance import Disturbed, beside, disturbed, estimates, matrix
from mbcasadi.control.mpc.linear.limits import limits_of
from mbcasadi.control.mpc.linear.lti import (
    SOLVERS,
    LinearMPC,
    lti_mpc,
    plain_signal,
    reference_slots,
)
from mbcasadi.control.mpc.linear.model import LinearModel, Output
from mbcasadi.control.mpc.linear.on_manifold import on_manifold
from mbcasadi.control.mpc.linear.problem import LinearProblem, linear_problem
from mbcasadi.control.solver import controller_fun
from mbcasadi.control.tasks import Slot
from mbcasadi.description import LeastDistanceStages
from mbcasadi.errors import ProblemError


def offset_free_lti(
    model: LinearModel,
    horizon: int,
    Q: ArrayLike,
    R: ArrayLike,
    *,
    tracked: ArrayLike,
    measured: ArrayLike | None = None,
    disturbances: ArrayLike | None = None,
    state_noise: ArrayLike = 1.0,
    disturbance_noise: ArrayLike = 0.1,
    measurement_noise: ArrayLike = 0.1,
    outputs: Sequence[Output] = (),
    solver: str | None = None,
    name: str = "offset_free_mpc",
    tolerance: float = 1e-6,
    **options: Any,
) -> LinearMPC:
    """Return the controller `(y, ref, z) → (u, z_next, status, residual)` of a plain model.

    `ref` holds r, then s; z the active set, then the estimate (x, d) predicted for this tick. The
    target ignores the bounds: for a setpoint beyond them the cost determines the nearest state.

    Args:
        model: constant.
        horizon, Q, R, solver, name, tolerance, options: as in `lti_mpc`, without a preview.
        tracked: H, (nt, nx), nt <= nu: rows of x without steady error.
        measured: C, (ny, nx); the whole state by default.
        disturbances: B_d, (nx, nd); one for each state by default, none for zero columns.
        state_noise, disturbance_noise, measurement_noise: covariances of the noise of x and d in
            one sample, and of y; matrices, columns for diagonal ones, or numbers. More noise of d
            gives a faster estimate.
        outputs: rows of x and u.

    Raises:
        ProblemError: no steady state has every tracked value; a disturbance is unobservable in y;
            a model that varies, or a preview; and as in `linear_problem`.
        ShapeError: a wrong shape, or NaN.
    """
    if model.varies or any(options.get(key) for key in ("preview", "form", "terminal_set")):
        raise ProblemError(
            "steady states need a constant model and one setpoint, which moves with what is "
            "estimated; expected no leading axis, no preview, no terminal set, the condensed form"
        )
    plain = linear_problem(model, horizon, Q, R, outputs=outputs, **options)
    B_d = matrix("disturbances", disturbances, np.eye(model.nx), rows=model.nx)
    C = matrix("measured", measured, np.eye(model.nx), columns=model.nx)
    noise = (
        weight("state_noise", state_noise, model.nx),
        weight("disturbance_noise", disturbance_noise, B_d.shape[1]),
        weight("measurement_noise", measurement_noise, C.shape[0], definite=True),
    )
    H = matrix("tracked", tracked, None, columns=model.nx)
    parts = disturbed(plain, B_d, C, H, noise)
    unseen = np.zeros((B_d.shape[1],) * 2)
    core = lti_mpc(
        parts.model,
        horizon,
        beside(plain.Q, unseen),
        plain.R,
        P=beside(plain.P, unseen),
        outputs=[_padded(output, B_d.shape[1]) for output in plain.outputs],
        solver=solver,
        name=name,
        tolerance=tolerance,
        **{key: value for key, value in options.items() if key != "P"},
    )
    return _observed(core, plain, parts, solver)


def offset_free_mpc(
    linear: Linearization,
    horizon: int,
    Q: ArrayLike,
    R: ArrayLike,
    *,
    tracked: ArrayLike,
    period: float = 1e-2,
    outputs: Sequence[Output] = (),
    ctrl_limits: ArrayLike | None = None,
    solver: str | None = None,
    name: str = "offset_free_mpc",
    **options: Any,
) -> LinearMPC:
    """Return the controller `(q, v, ref, z) → (u, z_next, status, residual)` of a mechanism.

    As `linear_mpc`, without its steady error: the effect of a payload, a weak motor or a wrong
    gravity is estimated as a disturbance of the free directions.

    Args:
        linear, horizon, Q, R, period, outputs, ctrl_limits, solver, name: as in `linear_mpc`.
        tracked: (nt, 2 nv) rows of the deviations (δq, δv) without steady error, at
            most one for each control.
        options: as in `offset_free_lti`.

    Raises:
        ProblemError, ShapeError: as in `linear_mpc` and `offset_free_lti`.
    """
    rows = matrix("tracked", tracked, None, columns=2 * linear.system.nv)
    return on_manifold(
        linear,
        offset_free_lti,
        horizon,
        (Q, R),
        period=period,
        outputs=outputs,
        ctrl_limits=ctrl_limits,
        preview=False,
        solver=solver,
        name=name,
        tracked=rows @ np.vstack([linear.to_dq, linear.to_dv]),
        **options,
    )


def _observed(
    core: LinearMPC, plain: LinearProblem, parts: Disturbed, solver: str | None
) -> LinearMPC:
    """Return the controller that estimates (x, d) and computes the control with `core`."""
    inner, n_inner = core.controller.stages, core.controller.z0.size
    assert inner is not None
    kind: Any = ca.SX if inner.build.is_a("SXFunction") else ca.MX
    nx, nu, size = plain.model.nx, plain.model.nu, parts.model.nx
    sizes = {"y": parts.C.shape[0], "ref": nx + nu, "z": n_inner + size}
    given = {key: kind.sym(key, count) for key, count in sizes.items()}
    own, coasted = _own(parts, given, nx, n_inner)
    build = ca.Function(
        "build", list(given.values()), inner.build.call(own), list(given), inner.build.name_out()
    )
    names = inner.finish.name_in()[-SOLUTION:]
    found = {key: kind.sym(key, inner.finish.numel_in(key)) for key in names}
    u, z_next, status, residual = inner.finish.call([*own, *found.values()])
    A, B, drift = (ca.DM(part) for part in parts.model.interval(0))
    acts = _acting(core, given["z"], u)
    z_next = ca.vertcat(z_next, A @ coasted + B @ acts + drift)
    finish = ca.Function(
        "finish",
        [*given.values(), *found.values()],
        [ca.densify(part) for part in (u, z_next, status, residual)],
        [*given, *found],
        inner.finish.name_out(),
    )
    made = _described(core, plain, LeastDistanceStages(build, finish), solver)
    assert core.controller.prediction is not None

    def inwards(symbols: dict[str, Any]) -> list[Any]:
        return _own(parts, symbols, nx, n_inner)[0]

    plan = around_function(core.controller.prediction, sizes, inwards, lambda x: x[:nx, :])
    whole = np.array_equal(parts.C[:, :nx], np.eye(nx))
    limits = limits_of(plain, "y") if whole else None
    return replace(
        made,
        controller=replace(made.controller, prediction=plan, limits=limits),
        parameters=around_function(core.parameters, sizes, inwards),
    )


def _own(parts: Disturbed, given: dict[str, Any], nx: int, n_inner: int) -> tuple[list[Any], Any]:
    """Return the inputs of the MPC of (x, d), and the estimate kept at a bad measurement."""
    now, coasted = estimates(parts, given["y"], given["z"][n_inner:, 0])
    goal = ca.DM(parts.target) @ ca.vertcat(given["ref"], now[nx:, 0]) + ca.DM(parts.target_0)
    ref = ca.vertcat(goal[:nx, 0], now[nx:, 0], goal[nx:, 0])
    return [now, ref, given["z"][:n_inner, 0]], coasted


def _acting(core: LinearMPC, z: Any, u: Any) -> Any:
    """Return the control that acts until the next sample: the oldest pending one."""
    problem = core.problem
    if not problem.delay:
        return u
    first = len(core.condensed.names)
    return clamped(z[first : first + problem.model.nu, 0], *problem.u_bounds.T)


def _described(
    core: LinearMPC, plain: LinearProblem, stages: LeastDistanceStages, solver: str | None
) -> LinearMPC:
    inner = core.controller
    nx, size = plain.model.nx, core.problem.model.nx
    states = [f"x{i}" for i in range(nx)]
    controls = inner.outputs[0].components
    slots = (*reference_slots(plain, states), Slot("u", controls, ("",) * len(controls)))
    ref = tuple(f"{slot.name}.{one}" for slot in slots for one in slot.components)
    measured = tuple(f"y{i}" for i in range(stages.build.numel_in("y")))
    kept = next(signal for signal in inner.inputs if signal.name == "z").components
    z = (*kept, *(f"estimate.{one}" for one in (*states, *(f"d{i}" for i in range(size - nx)))))
    parts = {"y": measured, "ref": ref, "z": z}
    controller = replace(
        inner,
        function=controller_fun(inner.name, stages, solver or SOLVERS["condensed"]),
        inputs=tuple(plain_signal(key, names) for key, names in parts.items()),
        outputs=(inner.outputs[0], plain_signal("z_next", z), *inner.outputs[2:]),
        z0=np.concatenate([inner.z0, np.zeros(size)]),
        stages=stages,
        prediction_rows=tuple(states),
        notes=inner.notes | {"law": "linear MPC, condensed, with an estimated disturbance"},
    )
    return replace(core, controller=controller, slots=slots)


def _padded(output: Output, nd: int) -> Output:
    return replace(output, C=np.hstack([output.C, np.zeros((output.C.shape[0], nd))]))

"""Offset-free linear MPC: a disturbance is estimated, predicted with, and cancelled.

    model      x_next = A x + B u + drift + B_d d,   d_next = d,   y = C x
    correct    (x, d) ← (x, d) + L (y - C x)                    stationary Kalman filter
    target     0 = (A - I) x_s + B u_s + drift + B_d d,   H x_s = H r,   near (r, s)
    control    the linear MPC of (x, d) about (x_s, u_s)
    predict    (x, d) ← (A x + B u + drift + B_d d, d)          u that acts, clipped to its limits

With one disturbance for each measured number, d represents any constant force or model error that
keeps the plant from its setpoint: where the loop settles and no bound is active, H x = H r. A
measurement that the noise does not explain is rejected at first: see `Gate`
[G. Pannocchia, J. B. Rawlings, AIChE J. 49 (2003), 426-437].
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.innovation_gate import DEFAULT_GATE, Gate, require_rows
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.measurements import coordinate_rows
from mbcasadi.control.regulators.operating_point import require_no_activations
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.linear.controller import LinearMPC
from mbcasadi.mpc.linear.deviation_model import deviation_model
from mbcasadi.mpc.linear.disturbance import Noise, matrix
from mbcasadi.mpc.linear.disturbance_controller import disturbance_mpc
from mbcasadi.mpc.linear.interface import StateInterface
from mbcasadi.mpc.linear.mechanism import MechanismInterface
from mbcasadi.mpc.linear.prediction_model import LinearModel, Output
from mbcasadi.mpc.linear.problem import linear_problem

POSITION_DEVIATION = 0.1
"""rad or m: standard deviation of a position from its prediction, where no noise is given."""


@checked
def offset_free_lti(
    model: LinearModel,
    horizon: int,
    Q: ArrayLike,
    R: ArrayLike,
    *,
    tracked: ArrayLike,
    measured: ArrayLike | None = None,
    disturbances: ArrayLike | None = None,
    noise: Noise | None = None,
    gate: Gate | None = DEFAULT_GATE,
    wrap: Sequence[int] = (),
    P: ArrayLike | None = None,
    S: ArrayLike | None = None,
    u_bounds: ArrayLike | None = None,
    du_bounds: ArrayLike | None = None,
    outputs: Sequence[Output] = (),
    blocks: Sequence[int] | None = None,
    delay: int = 0,
    tolerance: float = 1e-6,
    solver: str | None = None,
    name: str = "offset_free_mpc",
) -> LinearMPC:
    """Return the controller `(y, ref, z) → (u, z_next, status, flags, residual)` of a plain model.

    `ref` holds r, then s; z the active set, then the estimate (x, d) predicted for this step. The
    target ignores the bounds: for a setpoint beyond them the cost determines the nearest state.

    Args:
        model: constant.
        horizon, Q, R, P, S, u_bounds, du_bounds, blocks, delay: as in `linear_problem`.
        tracked: H, (nt, nx), nt <= nu: rows without a steady error.
        measured: C, (ny, nx); the whole state by default.
        disturbances: B_d, (nx, nd); one for each state by default, none for zero columns.
        noise: covariances, from which the filter gain and the gate follow; by default those of
            `Noise`, whose ratios determine the gain.
        gate: when a measurement is rejected; None for never. Without `noise` there is no gate: the
            size of a good innovation is unknown.
        wrap: rows of y that are angles which the sensor knows up to 2 π.
        outputs: rows of x and u.
        tolerance, solver, name: as in `lti_mpc`, condensed form.

    Raises:
        ProblemError: no steady state has every tracked value; a disturbance is not observable; a
            model that varies; and as in `linear_problem`.
        ShapeError: a wrong shape, or NaN.
    """
    _require_constant(model)
    problem = linear_problem(
        model,
        horizon,
        Q,
        R,
        P=P,
        S=S,
        u_bounds=u_bounds,
        du_bounds=du_bounds,
        outputs=outputs,
        blocks=blocks,
        delay=delay,
    )
    C = matrix("measured", measured, np.eye(model.nx), columns=model.nx)
    whole = np.array_equal(C, np.eye(model.nx))
    interface = StateInterface(problem, "y", tuple(f"y{i}" for i in range(len(C))), whole)
    return disturbance_mpc(
        problem,
        interface,
        C=C,
        tracked=tracked,
        disturbances=disturbances,
        noise=noise or Noise(),
        gate=gate if noise else None,
        wrap=require_rows(wrap, len(C)),
        solver=solver,
        tolerance=tolerance,
        name=name,
    )


@checked
def offset_free_mpc(
    linear: Linearization,
    horizon: int,
    Q: ArrayLike,
    R: ArrayLike,
    *,
    tracked: ArrayLike,
    disturbances: ArrayLike | None = None,
    noise: Noise | None = None,
    gate: Gate | None = DEFAULT_GATE,
    wrap: Sequence[str] = (),
    period: float = 1e-2,
    P: ArrayLike | None = None,
    S: ArrayLike | None = None,
    du_bounds: ArrayLike | None = None,
    ctrl_limits: ArrayLike | None = None,
    outputs: Sequence[Output] = (),
    blocks: Sequence[int] | None = None,
    delay: int = 0,
    tolerance: float = 1e-6,
    solver: str | None = None,
    name: str = "offset_free_mpc",
) -> LinearMPC:
    """Return the controller `(q, v, ref, z) → (u, z_next, status, flags, residual)` of a mechanism.

    As `linear_mpc`, without its steady error: a payload, a weak motor, a wrong gravity are
    estimated as a disturbance of the free directions.

    Args:
        linear, horizon, Q, R, period, P, S: as in `linear_mpc`.
        du_bounds, ctrl_limits, outputs, blocks, delay: as in `linear_mpc`, with one setpoint.
        tolerance, solver, name: as in `linear_mpc`, condensed form.
        tracked: (nt, 2 nv) rows of the deviations (δq, δv) without a steady error, at most one
            for each control.
        disturbances: (nx, nd) of the free coordinates; one for each by default.
        noise: covariances of the free coordinates, as state and as measurement, and of d; by
            default those of `Noise`, whose ratios determine the gain.
        gate: when a measurement is rejected; None for never. Without `noise` a standard deviation
            is `POSITION_DEVIATION` of a position, and that in one period of a speed.
        wrap: joints whose sensor knows the angle up to 2 π.

    Raises:
        ProblemError, ShapeError: as in `linear_mpc` and `offset_free_lti`.
        UnknownNameError: no such joint to wrap.
    """
    require_no_activations(linear.system, "an offset-free MPC")
    rows = matrix("tracked", tracked, None, columns=2 * linear.system.nv)
    deviations = deviation_model(
        linear,
        (Q, R),
        period=period,
        outputs=outputs,
        ctrl_limits=ctrl_limits,
        terminal_weight=P,
    )
    problem = linear_problem(
        deviations.model,
        horizon,
        deviations.Q,
        deviations.R,
        P=P,
        S=S,
        u_bounds=deviations.u_bounds,
        du_bounds=du_bounds,
        outputs=deviations.outputs,
        blocks=blocks,
        delay=delay,
    )
    deviation = np.repeat(
        [POSITION_DEVIATION, POSITION_DEVIATION / period], [linear.n_q, linear.n_v]
    )
    return disturbance_mpc(
        problem,
        MechanismInterface(
            linear, problem, deviations.u_limits, coordinate_rows(linear.system, wrap)
        ),
        C=np.eye(linear.nx),
        tracked=rows @ np.vstack([linear.to_dq, linear.to_dv]),
        disturbances=disturbances,
        noise=noise or Noise(),
        gate=gate,
        innovation=None if noise else np.diag(deviation**2),
        solver=solver,
        tolerance=tolerance,
        name=name,
    )


def _require_constant(model: LinearModel) -> None:
    if model.varies:
        raise ProblemError(
            "steady states need a constant model; expected matrices without a leading axis"
        )

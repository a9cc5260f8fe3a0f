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

from collections.abc import Mapping, Sequence
from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.innovation_gate import DEFAULT_GATE, Gate, require_rows
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.measurements import coordinate_rows
from mbcasadi.control.regulators.operating_point import require_no_activations
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.linear.controller import LinearMPC
from mbcasadi.mpc.linear.disturbance import (
    DisturbanceModel,
    Estimation,
    Noise,
    augment_with_disturbance,
    block_diagonal,
    correct,
    matrix,
    sound_estimate,
)
from mbcasadi.mpc.linear.interface import Expression, Interface, ProblemInputs, state_interface
from mbcasadi.mpc.linear.linear_mpc import controller_of, require_plain
from mbcasadi.mpc.linear.mechanism import (
    control_limits,
    deviation_problem,
    mechanism_interface,
    period_of,
)
from mbcasadi.mpc.linear.model import LinearModel, Output
from mbcasadi.mpc.linear.problem import LinearOptions, LinearProblem, linear_problem

POSITION_DEVIATION = 0.1
"""rad or m: standard deviation of a position from its prediction, where no noise is given."""


@checked
def offset_free_lti(
    model: LinearModel,
    options: LinearOptions,
    tracked: ArrayLike,
    *,
    measured: ArrayLike | None = None,
    disturbances: ArrayLike | None = None,
    noise: Noise | None = None,
    gate: Gate | None = DEFAULT_GATE,
    wrap: Sequence[int] = (),
) -> LinearMPC:
    """Return the controller `(y, ref, z) → (u, z_next, status, flags, residual)` of a plain model.

    `ref` holds r, then s; z the active set, then the estimate (x, d) predicted for this step. The
    target ignores the bounds: for a setpoint beyond them the cost determines the nearest state.

    Args:
        model: constant.
        options: cost, bounds and horizon, condensed, with one setpoint and no terminal set.
        tracked: H, (nt, nx), nt <= nu: rows without a steady error.
        measured: C, (ny, nx); the whole state by default.
        disturbances: B_d, (nx, nd); one for each state by default, none for zero columns.
        noise: covariances, from which the filter gain and the gate follow; by default those of
            `Noise`, whose ratios determine the gain.
        gate: when a measurement is rejected; None for never. Without `noise` there is no gate: the
            size of a good innovation is unknown.
        wrap: rows of y that are angles which the sensor knows up to 2 π.

    Raises:
        ProblemError: no steady state has every tracked value; a disturbance is not observable; a
            model that varies; an option that is not offered here; and as in `linear_problem`.
        ShapeError: a wrong shape, or NaN.
        SolverError: the solver is not available.
    """
    _require_offered(options)
    require_plain(options)
    if model.varies:
        raise ProblemError(
            "steady states need a constant model; expected matrices without a leading axis"
        )
    problem = linear_problem(model, options)
    C = matrix("measured", measured, np.eye(model.nx), columns=model.nx)
    whole = np.array_equal(C, np.eye(model.nx))
    estimation = Estimation(
        C=C,
        tracked=tracked,
        disturbances=disturbances,
        noise=noise or Noise(),
        gate=gate if noise else None,
        wrap=require_rows(wrap, len(C)),
    )
    outer = state_interface(problem, "y", [f"y{i}" for i in range(len(C))], whole=whole)
    return _with_estimate(problem, outer, estimation, options)


@checked
def offset_free_mpc(
    linear: Linearization,
    options: LinearOptions,
    tracked: ArrayLike,
    *,
    disturbances: ArrayLike | None = None,
    noise: Noise | None = None,
    gate: Gate | None = DEFAULT_GATE,
    wrap: Sequence[str] = (),
) -> LinearMPC:
    """Return the controller `(q, v, ref, z) → (u, z_next, status, flags, residual)` of a mechanism.

    As `linear_mpc`, without its steady error: a payload, a weak motor, a wrong gravity are
    estimated as a disturbance of the free directions.

    Args:
        linear, options: as in `linear_mpc`, condensed, with one setpoint and no terminal set.
        tracked: (nt, 2 nv) rows of the deviations (δq, δv) without a steady error, at most one
            for each control.
        disturbances: (nx, nd) of the free coordinates; one for each by default.
        noise: covariances of the free coordinates, as state and as measurement, and of d; by
            default those of `Noise`, whose ratios determine the gain.
        gate: when a measurement is rejected; None for never. Without `noise` a standard deviation
            is `POSITION_DEVIATION` of a position, and that in one period of a speed.
        wrap: joints whose sensor knows the angle up to 2 π.

    Raises:
        ProblemError, ShapeError, SolverError: as in `linear_mpc` and `offset_free_lti`.
        UnknownNameError: no such joint to wrap.
    """
    _require_offered(options)
    require_no_activations(linear.system, "an offset-free MPC")
    rows = matrix("tracked", tracked, None, columns=2 * linear.system.nv)
    problem = deviation_problem(linear, options)
    sizes = [POSITION_DEVIATION, POSITION_DEVIATION / period_of(options)]
    estimation = Estimation(
        C=np.eye(linear.nx),
        tracked=rows @ np.vstack([linear.to_dq, linear.to_dv]),
        disturbances=disturbances,
        noise=noise or Noise(),
        gate=gate,
        innovation=None if noise else np.diag(np.repeat(sizes, [linear.n_q, linear.n_v]) ** 2),
    )
    limits, turns = control_limits(linear, options), coordinate_rows(linear.system, wrap)
    outer = mechanism_interface(linear, problem, limits, turns)
    return _with_estimate(problem, outer, estimation, options)


def _require_offered(options: LinearOptions) -> None:
    if options.preview or options.terminal_set or options.form != "condensed":
        raise ProblemError(
            f"preview = {options.preview}, terminal_set = {options.terminal_set}, form = "
            f"{options.form!r}: an offset-free MPC aims at one steady state, which moves; expected "
            'neither preview nor terminal set, and the form "condensed"'
        )


def _with_estimate(
    problem: LinearProblem, outer: Interface, estimation: Estimation, options: LinearOptions
) -> LinearMPC:
    """Return the controller of (x, d) behind an estimator of both.

    The disturbance is without cost and without bounds: the estimator predicts it as a constant,
    and the MPC has the target at which it is cancelled.

    Args:
        problem: in x.
        outer: its measurement and its control.
        estimation: of x and d.
        options: solver, tolerance and name.
    """
    augmented = augment_with_disturbance(problem, estimation)
    nd = augmented.model.nx - problem.model.nx
    unpriced = np.zeros((nd, nd))
    of_both = replace(
        problem,
        model=augmented.model,
        Q=block_diagonal(problem.Q, unpriced),
        P=block_diagonal(problem.P, unpriced),
        outputs=tuple(_without_disturbance(output, nd) for output in problem.outputs),
    )
    interface = _observed(outer, augmented, problem.model.nx)
    return controller_of(of_both, interface, options, "offset_free_mpc")


def _without_disturbance(output: Output, nd: int) -> Output:
    """Return the rows over (x, d) and u."""
    return replace(output, C=np.hstack([output.C, np.zeros((output.C.shape[0], nd))]))


def _observed(outer: Interface, augmented: DisturbanceModel, nx: int) -> Interface:
    """Return an interface whose state is a measurement, from which (x, d) are estimated.

    Args:
        outer: gives y and the setpoints (r, s) of x.
        augmented: the model of (x, d), its filter gain and its steady states.
        nx: size of x.
    """
    size, gate = augmented.model.nx, augmented.gate

    def inputs(symbols: Mapping[str, Expression], estimate: Expression) -> ProblemInputs:
        before, memory = estimate[:size, 0], estimate[size:, 0]
        measured = outer.inputs(symbols, sound_estimate(before)[0])
        state = correct(augmented, measured.x0, before, memory)
        d = state.now[nx:, 0]
        goal = ca.DM(augmented.target) @ ca.vertcat(measured.ref, d)
        goal = goal + ca.DM(augmented.target_0)
        return ProblemInputs(
            x0=state.now,
            ref=ca.vertcat(goal[:nx, 0], d, goal[nx:, 0]),
            estimate=ca.vertcat(state.before_prediction, state.memory),
            gated=state.gated,
            doubted=state.doubted,
        )

    def next_estimate(now: ProblemInputs, u: Expression) -> Expression:
        A, B, drift = (ca.DM(part) for part in augmented.model.interval(0))
        predicted = A @ now.estimate[:size, 0] + B @ u + drift
        return ca.vertcat(predicted, now.estimate[size:, 0])

    return replace(
        outer,
        inputs=inputs,
        next_estimate=next_estimate,
        plan=lambda x, u: outer.plan(x[:nx, :], u),
        estimates=(
            *(f"estimate.x{i}" for i in range(nx)),
            *(f"estimate.d{i}" for i in range(size - nx)),
            *(f"gate.{name}" for name in (() if gate is None else gate.names)),
        ),
        first_estimate=np.append(np.zeros(size), () if gate is None else gate.start),
    )

"""LQR over a finite horizon and along a motion: gains that change from tick to tick.

    cost = Σ ∫ (zᵀ Q z + δuᵀ R δu) dt + x_endᵀ S_end x_end,    u = u_r(t) - K(t) x

`x` are the coordinates of the manifold relative to the reference motion. The law stores each gain
as one on (δq, δv), so it needs no basis. States, controls and gains are a constant table of the
generated C, and a state of the law counts the ticks; the last row is kept after the horizon.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Command, Law, LawInputs, LawInterface
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.law_interface.signals import deviations
from mbcasadi.control.regulators.feedback import (
    caused_acceleration,
    require_continuous,
    setpoint_slots,
)
from mbcasadi.control.regulators.linearization import Linearization, linearize
from mbcasadi.control.regulators.lqr import (
    gain_in_full_coordinates,
    lqr_gain,
    manifold_weights,
    require_equilibrium,
)
from mbcasadi.control.regulators.operating_point import Array, require_no_activations
from mbcasadi.control.regulators.riccati import backward_riccati, sample_cost
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Signal
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import count_of_periods, require_positive, require_whole, weight
from mbcasadi.system import System

STEP = "step"
"""Name of the state that counts ticks, the law's first."""


@checked
def finite_horizon_lqr(
    linear: Linearization,
    Q: ArrayLike,
    R: ArrayLike,
    duration: float,
    *,
    Q_end: ArrayLike | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return the law of least cost over a duration; after it the last gain is kept.

    With `Q_end` no mode needs to be stabilisable, because the horizon is finite; uncontrollable
    modes grow until its end. Without it the cost to go of `lqr` must exist.

    Args:
        linear: from `linearize` at an equilibrium.
        Q, R: as in `lqr_gain`.
        duration: s, a multiple of the period.
        Q_end: (2 nv, 2 nv) or (2 nv,) weight of (δq, δv) at the end; the cost to go of `lqr` by
            default, with which all gains equal that of `lqr`.
        options: see `LawOptions`.

    Raises:
        ShapeError, ProblemError: as in `lqr_gain`; a duration that is no multiple of the
            period.
    """
    require_equilibrium(linear)
    period = options.sample_time
    ticks = count_of_periods("duration", duration, period)
    gains = finite_horizon_gains(linear, Q, R, ticks, Q_end=Q_end, period=period)
    return _gain_schedule_law(linear.system, [linear] * ticks, gains, "finite_horizon_lqr", options)


@checked
def finite_horizon_gains(
    linear: Linearization,
    Q: ArrayLike,
    R: ArrayLike,
    ticks: int,
    *,
    Q_end: ArrayLike | None = None,
    period: float,
) -> list[Array]:
    """Return K (nu, nx) of each tick; see `finite_horizon_lqr`.

    Args:
        linear: from `linearize` at an equilibrium.
        Q, R: as in `lqr_gain`.
        ticks: number of ticks.
        Q_end: as in `finite_horizon_lqr`.
        period: sample time, s.

    Raises:
        ShapeError, ProblemError: as in `lqr_gain`.
    """
    require_continuous(linear)
    require_positive(period=period)
    require_whole(0, ticks=ticks)
    require_no_activations(linear.system, "a regulator of a finite horizon")
    weights = manifold_weights(linear, Q, R)
    tick = sample_cost(linear.dfdx, linear.dfdu, weights.Q, weights.R, period)
    return backward_riccati([tick] * ticks, _end(linear, Q, R, Q_end, period, linear))[0]


@checked
def trajectory_lqr(
    along: Sequence[Linearization],
    Q: ArrayLike,
    R: ArrayLike,
    *,
    Q_end: ArrayLike | None = None,
    hold: Linearization | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `u = u_r - K x` along a motion, with K of least cost to its end.

    It starts with its first tick and follows the motion's own time. After it, `lqr` holds the
    equilibrium `hold`; without one, the last gain is kept, which is weak where `Q_end`
    is small.

    Args:
        along: from `linearize_along`, one period apart; the u of each is held from this sample
            on.
        Q, R: as in `lqr_gain`.
        Q_end: weight of (δq, δv) at the end, in place of the cost to go of `lqr` at `hold`.
        hold: equilibrium near the end of the motion; the end itself if neither is given.
        options: see `LawOptions`.

    Raises:
        ShapeError, ProblemError: as in `lqr_gain`; fewer than two samples; an end in motion with
            neither `Q_end` nor `hold`.
    """
    period = options.sample_time
    gains = trajectory_gains(along, Q, R, Q_end=Q_end, hold=hold, period=period)
    end_point = _linearize_sample(along[-1]) if hold is None and Q_end is None else hold
    rows = list(along[:-1])
    if end_point is not None:
        rows, gains = [*rows, end_point], [*gains, lqr_gain(end_point, Q, R, period=period).K]
    return _gain_schedule_law(along[0].system, rows, gains, "trajectory_lqr", options)


@checked
def trajectory_gains(
    along: Sequence[Linearization],
    Q: ArrayLike,
    R: ArrayLike,
    *,
    Q_end: ArrayLike | None = None,
    hold: Linearization | None = None,
    period: float,
) -> list[Array]:
    """Return K (nu, nx) of each step, one fewer than there are samples.

    A step has the mean of the matrices at both its ends, as in `discretize_along`.

    Args:
        along, Q, R, Q_end, hold: as in `trajectory_lqr`.
        period: sample time, s.

    Raises:
        ShapeError, ProblemError: as in `lqr_gain`; fewer than two samples.
    """
    if len(along) < 2:
        raise ProblemError(f"{len(along)} samples of a motion; expected at least two")
    for linear in along:
        require_continuous(linear)
    require_positive(period=period)
    ticks = []
    for linear, following in pairwise(along):
        weights = manifold_weights(linear, Q, R)
        dfdx, dfdu = (linear.dfdx + following.dfdx) / 2, (linear.dfdu + following.dfdu) / 2
        ticks.append(sample_cost(dfdx, dfdu, weights.Q, weights.R, period))
    return backward_riccati(ticks, _end(along[-1], Q, R, Q_end, period, hold))[0]


def _end(
    sample: Linearization,
    Q: ArrayLike,
    R: ArrayLike,
    Q_end: ArrayLike | None,
    period: float,
    hold: Linearization | None = None,
) -> Array:
    """Return the weight of the last x: that of `Q_end`, or the cost to go at `hold` or the end."""
    T = np.vstack([sample.to_dq, sample.to_dv])
    if Q_end is not None:
        return np.asarray(T.T @ weight("Q_end", Q_end, 2 * sample.system.nv) @ T)
    end_point = _linearize_sample(sample) if hold is None else hold
    to_end_point = np.hstack([end_point.from_dq, end_point.from_dv]) @ T
    try:
        S = lqr_gain(end_point, Q, R, period=period).S
    except ProblemError as error:
        raise ProblemError(
            f"{error}. The end weight is that of lqr unless Q_end is given: with Q_end no mode "
            "needs to be stabilisable"
        ) from error
    return np.asarray(to_end_point.T @ S @ to_end_point)


def _linearize_sample(sample: Linearization) -> Linearization:
    """Return the linear system of a sample by itself, with its drift."""
    mask = sample.mask if sample.system.mask is not None else None
    return linearize(sample.system, sample.q, sample.v, sample.u, t=sample.t, mask=mask)


def _gain_schedule_law(
    system: System,
    along: Sequence[Linearization],
    gains: Sequence[Array],
    name: str,
    options: LawOptions,
) -> Law:
    """Return the law that steps through states, controls and gains on (δq, δv)."""
    size = system.nu * 2 * system.nv
    table = np.array(
        [
            np.concatenate(
                [linear.q, linear.v, linear.u, gain_in_full_coordinates(linear, K).ravel(order="F")]
            )
            for linear, K in zip(along, gains, strict=True)
        ]
    )

    def equations(at: LawInputs) -> Command:
        q_r, v_r, u_r = (at.ref[f"setpoint.{key}"] for key in "qvu")
        G = ca.reshape(at.ref["gain"], system.nu, 2 * system.nv)
        dq = system.difference(q_r, at.q)
        u = u_r - G @ ca.vertcat(dq, at.v - v_r)
        return Command(
            u=u,
            a=caused_acceleration(system, at, u, options),
            z_next={STEP: _next_step(at.z[STEP], len(table))},
            error=-dq,
            target=system.difference(along[0].q, q_r),
        )

    names = tuple(f"gain{k}" for k in range(size))
    law = make_law(
        system,
        name,
        equations,
        LawInterface(
            slots=(*setpoint_slots(system), Slot("gain", names, ("",) * size)),
            tracked=deviations(system),
            states={STEP: [0.0]},
            closes_state=False,
            notes={"law": "LQR with a gain for each tick", "ticks": str(len(table))},
        ),
        options,
    )
    return _schedule_gains(law, table)


def _next_step(step: ca.SX, rows: int) -> ca.SX:
    """Return the row of the next tick."""
    return ca.fmin(ca.fmax(step, 0) + 1, rows - 1)


def _schedule_gains(law: Law, table: Array) -> Law:
    """Return `law` with its whole reference taken from the row of `table` that its state counts.

    The state is rounded towards zero and clipped to the table (rows, nref), whatever its value.
    """
    rows = ca.MX(ca.DM(table.T))

    def with_table_row(function: ca.Function) -> ca.Function:
        s = {n: ca.MX.sym(n, function.size1_in(n)) for n in function.name_in()}
        step = ca.fmin(ca.fmax(s["z"][0], 0), table.shape[0] - 1)  # zero for NaN
        inputs = dict(s) | {"ref": rows[:, ca.floor(step)]}
        out = function.call([inputs[n] for n in function.name_in()])
        s["ref"] = ca.MX.sym("ref", 0)
        return ca.Function(
            function.name(), list(s.values()), out, function.name_in(), function.name_out()
        )

    original = law.controller
    controller = replace(
        original,
        function=with_table_row(original.function),
        monitor=None if original.monitor is None else with_table_row(original.monitor),
        inputs=tuple(_without_reference(signal) for signal in original.inputs),
    )
    equations = law.core.function
    joined = equations.expand(equations.name(), {"cse": True})  # not joined later behind a table
    core = replace(law.core, function=with_table_row(joined))
    return Law(
        controller=controller,
        slots=(),
        system=law.system,
        core=core,
        make_desired=lambda: with_table_row(law.desired),
    )


def _without_reference(signal: Signal) -> Signal:
    return Signal("ref", (), ()) if signal.name == "ref" else signal

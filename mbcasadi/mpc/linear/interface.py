"""The interface between a linear problem in (x0, ref) and the controller that is exported.

A linear problem has the state x of its model, the setpoints r and s, and its control u. An
interface defines the measurement, how x, r and s follow from it, and the control that is sent to
the actuators. Stages and controller are made once, from a problem and its interface.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.safe_output.mechanism_hold import Hold, hold_of_controls
from mbcasadi.control.tasks.reference import slot_signal
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import ReportedLimits, Signal
from mbcasadi.mpc.linear.model import Array
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.qp.input_guard import is_bounded
from mbcasadi.system.coordinates import unitless_signal

Expression = Any
"""`ca.SX` of a small problem, `ca.MX` of a large one."""


@dataclass(frozen=True)
class ProblemInputs:
    """The inputs of a linear problem at one control step.

    Attributes:
        x0: (nx,) measured or estimated state.
        ref: setpoints r, then s.
        estimate: the estimator's next state, before the control acts; no rows without one.
        gated: whether a measurement was rejected.
        doubted: whether measurement and estimate have contradicted each other for several samples.
    """

    x0: Expression
    ref: Expression
    estimate: Expression
    gated: Expression = field(default_factory=lambda: ca.DM(0))
    doubted: Expression = field(default_factory=lambda: ca.DM(0))


@dataclass(frozen=True)
class Interface:
    """Measured numbers to (x0, ref), and the problem's control to the actuators'.

    Attributes:
        measured: the measured inputs of the controller, in order; `ref` and `z` come after them.
        slots: the slices of the controller's reference.
        control: names and units of u.
        u_limits: (nu, 2) limits that the control never leaves.
        plan_rows: names of the planned states, as reports see them.
        hold: the safe output after bad input.
        inputs: (measured inputs and `ref` by name, estimate) → the problem's inputs.
        is_measured: (inputs by name) → whether they are finite, and not too far away.
        send: the problem's control → that of the actuators.
        plan: planned states and controls (columns) → the same as reports see them.
        next_estimate: (inputs, u that acts) → the estimate predicted for the next step.
        estimates, first_estimate: names of the estimated numbers in z, and their values at first.
        limits: what else is kept between bounds, for reports.
        rest: the equilibrium that the reference has by default; None for zero.
        described: further fields of the `Controller`: its source and monitor.
    """

    measured: tuple[Signal, ...]
    slots: tuple[Slot, ...]
    control: Signal
    u_limits: Array
    plan_rows: tuple[str, ...]
    hold: Hold
    inputs: Callable[[Mapping[str, Expression], Expression], ProblemInputs]
    is_measured: Callable[[Mapping[str, Expression]], Expression]
    send: Callable[[Expression], Expression] = lambda u: u
    plan: Callable[[ca.MX, ca.MX], tuple[ca.MX, ca.MX]] = lambda x, u: (x, u)
    next_estimate: Callable[[ProblemInputs, Expression], Expression] = lambda now, _: now.estimate
    estimates: tuple[str, ...] = ()
    first_estimate: Array = field(default_factory=lambda: np.zeros(0))
    limits: ReportedLimits | None = None
    rest: Linearization | None = None
    described: Mapping[str, Any] = field(default_factory=dict)

    def offered(self, symbols: Mapping[str, Expression]) -> tuple[Expression, Expression]:
        """Return what `SafeOutput.step` takes: the hold, and whether the measurement is finite."""
        measured, hold = self.is_measured(symbols), self.hold
        start = type(measured)(ca.DM(hold.safe.start))
        if hold.command is None:
            return start, measured
        return hold.command(*(symbols[name] for name in hold.command.name_in())), measured

    def signals(self, state: Sequence[str]) -> tuple[Signal, ...]:
        """Return the controller's inputs; `state` names the entries of z."""
        return (*self.measured, slot_signal(self.slots), unitless_signal("z", tuple(state)))


def state_interface(
    problem: LinearProblem, name: str, rows: Sequence[str], *, whole: bool = True
) -> Interface:
    """Return the interface that measures the state itself, or numbers `y` of it.

    Args:
        problem: without estimated disturbances.
        name: of the measured input.
        rows: names of the measured numbers.
        whole: whether they are the state.
    """
    model = problem.model
    u, x = (tuple(f"{key}{i}" for i in range(n)) for key, n in (("u", model.nu), ("x", model.nx)))
    samples = range(1, problem.horizon + 1) if problem.preview else [""]
    slots = [Slot(f"x{k}", x, ("",) * len(x)) for k in samples]
    return Interface(
        measured=(unitless_signal(name, tuple(rows)),),
        slots=(*slots, Slot("u", u, ("",) * len(u))),
        control=unitless_signal("u", u),
        u_limits=problem.u_bounds,
        plan_rows=x,
        hold=hold_of_controls(problem.u_bounds, model.period, np.zeros(model.nu)),
        inputs=lambda symbols, estimate: ProblemInputs(symbols[name], symbols["ref"], estimate),
        is_measured=lambda symbols: is_bounded(symbols[name]),  # its units are unknown
        limits=limits_of(problem, name) if whole else None,
    )


def limits_of(problem: LinearProblem, state: str = "x0") -> ReportedLimits | None:
    """Return `u - u_last` and `C x + D u` with their finite bounds, for reports.

    Args:
        problem: gives the bounds.
        state: name of the controller's input that is x.
    """
    x, u = ca.SX.sym(state, problem.model.nx), ca.SX.sym("u", problem.model.nu)
    last = ca.SX.sym("u_last", problem.model.nu)
    rows = [
        (f"du{i}", u[i] - last[i], low, high, False)
        for i, (low, high) in enumerate(problem.du_bounds)
    ]
    for output in problem.outputs:
        y = ca.DM(output.C) @ x + ca.DM(output.D) @ u
        rows += [
            (name, y[i], output.lower[i], output.upper[i], output.soft)
            for i, name in enumerate(output.rows)
        ]
    bounded_rows = [row for row in rows if np.isfinite(row[2]) or np.isfinite(row[3])]
    if not bounded_rows:
        return None
    names, values, lower, upper, soft = zip(*bounded_rows, strict=True)
    inputs = {state: x, "u": u, "u_last": last}
    value = ca.Function("limits", [*inputs.values()], [ca.vertcat(*values)], [*inputs], ["value"])
    signal = Signal("limited", names, ("",) * len(names))
    return ReportedLimits(value, signal, np.array(lower), np.array(upper), soft)

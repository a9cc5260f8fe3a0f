"""The interface between a linear problem in (x0, ref) and the controller that is exported.

A linear problem has the state x of its model, the setpoints r and s, and its control u. An
interface defines the measurement, how x, r and s follow from it, and the control that is sent to
the actuators. Stages and controller are made once, from a problem and its interface.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, final

import casadi as ca
import numpy as np

from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.safe_output.mechanism_hold import Hold, hold_of_controls
from mbcasadi.control.tasks.reference import slot_signal
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Controller, ReportedLimits, Signal
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.linear.limits import limits_of
from mbcasadi.mpc.linear.prediction_model import Array
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.qp.input_guard import is_bounded
from mbcasadi.system.coordinates import unitless_signal


@dataclass(frozen=True)
class ProblemInputs(Generic[Sym]):
    """The inputs of a linear problem at one control step.

    Attributes:
        x0: (nx,) measured or estimated state.
        ref: setpoints r, then s.
        estimate: the estimator's next state, before the control acts; no rows without one.
        gated: whether a measurement was rejected.
        doubted: whether measurement and estimate have contradicted each other for several samples.
    """

    x0: Sym
    ref: Sym
    estimate: Sym
    gated: Sym | ca.DM = field(default_factory=lambda: ca.DM(0))
    doubted: Sym | ca.DM = field(default_factory=lambda: ca.DM(0))


class Interface(ABC):
    """Measured numbers to (x0, ref), and the problem's control to the actuators'."""

    @property
    @abstractmethod
    def measured(self) -> tuple[Signal, ...]:
        """The measured inputs of the controller, in order; `ref` and `z` come after them."""

    @property
    @abstractmethod
    def slots(self) -> tuple[Slot, ...]:
        """The slices of the controller's reference."""

    @property
    @abstractmethod
    def control(self) -> Signal:
        """Names and units of u."""

    @property
    @abstractmethod
    def u_limits(self) -> Array:
        """(nu, 2) limits that the control never leaves."""

    @property
    @abstractmethod
    def estimates(self) -> tuple[str, ...]:
        """Names of the estimated numbers, which are the last entries of z."""

    @property
    @abstractmethod
    def first_estimate(self) -> Array:
        """Their values at first."""

    @property
    @abstractmethod
    def limits(self) -> ReportedLimits | None:
        """What else is kept between bounds, for reports."""

    @property
    @abstractmethod
    def plan_rows(self) -> tuple[str, ...]:
        """Names of the planned states, as reports see them."""

    @abstractmethod
    def inputs(self, symbols: Mapping[str, Sym], estimate: Sym) -> ProblemInputs[Sym]:
        """Return the problem's inputs.

        Args:
            symbols: measured inputs and `ref`, by name.
            estimate: the last entries of z, `estimates`.
        """

    @property
    @abstractmethod
    def rest(self) -> Linearization | None:
        """The equilibrium that the reference has by default; None for zero."""

    @property
    @abstractmethod
    def hold(self) -> Hold:
        """The safe output after bad input."""

    @abstractmethod
    def next_estimate(self, inputs: ProblemInputs[Sym], u: Sym) -> Sym:
        """Return the estimate predicted for the next step, with the problem's u that acts."""

    @abstractmethod
    def send(self, u: Sym) -> Sym:
        """Return the actuators' control of the problem's control."""

    @abstractmethod
    def plan(self, x: ca.MX, u: ca.MX) -> tuple[ca.MX, ca.MX]:
        """Return planned states and controls (columns) as reports see them."""

    @abstractmethod
    def complete(self, controller: Controller) -> Controller:
        """Return the controller completed with the source and monitor of this interface."""

    @abstractmethod
    def is_measured(self, symbols: Mapping[str, Sym]) -> Sym:
        """Return whether the measured inputs are finite, and not too far away."""

    @final
    def offered(self, symbols: Mapping[str, Sym]) -> tuple[Sym, Sym]:
        """Return what `SafeOutput.step` takes: the hold, and whether the measurement is finite."""
        measured, hold = self.is_measured(symbols), self.hold
        start = type(measured)(ca.DM(hold.safe.start))
        if hold.command is None:
            return start, measured
        return hold.command(*(symbols[name] for name in hold.command.name_in())), measured

    @final
    def signals(self, state: Sequence[str]) -> tuple[Signal, ...]:
        """Return the controller's inputs; `state` names the entries of z."""
        return (*self.measured, slot_signal(self.slots), unitless_signal("z", tuple(state)))


def reference_slots(problem: LinearProblem, states: Sequence[str]) -> tuple[Slot, ...]:
    """Return the slices of the reference of the state: one, or one for each sample."""
    samples = range(1, problem.horizon + 1) if problem.preview else [None]
    names = ["x" if k is None else f"x{k}" for k in samples]
    return tuple(Slot(name, tuple(states), ("",) * len(states)) for name in names)


@final
@dataclass(frozen=True)
class StateInterface(Interface):
    """The state itself is measured, or numbers `y` of it.

    Attributes:
        problem: without estimated disturbances.
        name: of the measured input.
        rows: names of the measured numbers.
        whole: whether they are the state.
    """

    problem: LinearProblem
    name: str
    rows: tuple[str, ...]
    whole: bool = True

    @property
    def measured(self) -> tuple[Signal, ...]:
        """x0, or y."""
        return (unitless_signal(self.name, self.rows),)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Setpoints of x, of one or of all samples, then of u."""
        names = self.control.components
        return (
            *reference_slots(self.problem, self.plan_rows),
            Slot("u", names, ("",) * len(names)),
        )

    @property
    def control(self) -> Signal:
        """u0, u1 and so on."""
        return unitless_signal("u", tuple(f"u{i}" for i in range(self.problem.model.nu)))

    @property
    def u_limits(self) -> Array:
        """The problem's bounds."""
        return self.problem.u_bounds

    @property
    def estimates(self) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def first_estimate(self) -> Array:
        """None."""
        return np.zeros(0)

    @property
    def limits(self) -> ReportedLimits | None:
        """Rates and outputs, where the whole state is measured."""
        return limits_of(self.problem, self.name) if self.whole else None

    @property
    def plan_rows(self) -> tuple[str, ...]:
        """x0, x1 and so on."""
        return tuple(f"x{i}" for i in range(self.problem.model.nx))

    def inputs(self, symbols: Mapping[str, Sym], estimate: Sym) -> ProblemInputs[Sym]:
        """Return the measurement and the reference, unchanged."""
        return ProblemInputs(symbols[self.name], symbols["ref"], estimate)

    def is_measured(self, symbols: Mapping[str, Sym]) -> Sym:
        """Return whether the measurement is finite; its units are unknown."""
        return is_bounded(symbols[self.name])

    @property
    def rest(self) -> Linearization | None:
        """None."""
        return None

    @cached_property
    def hold(self) -> Hold:
        """Zero control."""
        model = self.problem.model
        return hold_of_controls(self.problem.u_bounds, model.period, np.zeros(model.nu))

    def next_estimate(self, inputs: ProblemInputs[Sym], u: Sym) -> Sym:  # noqa: ARG002
        """Return no rows."""
        return inputs.estimate

    def send(self, u: Sym) -> Sym:
        """Return u."""
        return u

    def plan(self, x: ca.MX, u: ca.MX) -> tuple[ca.MX, ca.MX]:
        """Return the plan as it is."""
        return x, u

    def complete(self, controller: Controller) -> Controller:
        """Return the controller."""
        return replace(controller)

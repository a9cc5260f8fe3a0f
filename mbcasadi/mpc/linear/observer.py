"""The interface of offset-free MPC: a disturbance is estimated behind another interface.

    correct    (x, d) ← (x, d) + L (y - C x)                    stationary Kalman filter, gated
    target     0 = (A - I) x_s + B u_s + drift + B_d d,   H x_s = H r,   near (r, s)
    predict    (x, d) ← (A x + B u + drift + B_d d, d)          u that acts, clipped to its limits

y is the state of the outer interface, or a measurement of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.safe_output.mechanism_hold import Hold
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Controller, ReportedLimits, Signal
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.linear.disturbance import DisturbanceModel, correct, sound_estimate
from mbcasadi.mpc.linear.interface import Interface, ProblemInputs
from mbcasadi.mpc.linear.prediction_model import Array


@final
@dataclass(frozen=True)
class ObserverInterface(Interface):
    """Another interface's state is a measurement, from which (x, d) are estimated.

    Attributes:
        outer: gives y and the setpoints (r, s) of x.
        augmented: the model of (x, d), its filter gain and its steady states.
        nx: size of x.
    """

    outer: Interface
    augmented: DisturbanceModel
    nx: int

    @property
    def measured(self) -> tuple[Signal, ...]:
        """Those of the outer interface."""
        return self.outer.measured

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Those of the outer interface."""
        return self.outer.slots

    @property
    def control(self) -> Signal:
        """That of the outer interface."""
        return self.outer.control

    @property
    def u_limits(self) -> Array:
        """Those of the outer interface."""
        return self.outer.u_limits

    @property
    def estimates(self) -> tuple[str, ...]:
        """The states, then the disturbances, then the memory of the gate."""
        nd, gate = self.augmented.model.nx - self.nx, self.augmented.gate
        return (
            *(f"estimate.x{i}" for i in range(self.nx)),
            *(f"estimate.d{i}" for i in range(nd)),
            *(f"gate.{name}" for name in (() if gate is None else gate.names)),
        )

    @property
    def first_estimate(self) -> Array:
        """Zero, with the memory of a gate that knows nothing."""
        gate = self.augmented.gate
        memory = np.zeros(0) if gate is None else gate.start
        return np.concatenate([np.zeros(self.augmented.model.nx), memory])

    @property
    def limits(self) -> ReportedLimits | None:
        """Those of the outer interface."""
        return self.outer.limits

    @property
    def plan_rows(self) -> tuple[str, ...]:
        """Those of the outer interface."""
        return self.outer.plan_rows

    def inputs(self, symbols: Mapping[str, Sym], estimate: Sym) -> ProblemInputs[Sym]:
        """Return the estimated (x, d), and the steady state nearest to the setpoints."""
        size = self.augmented.model.nx
        before, memory = estimate[:size, 0], estimate[size:, 0]
        outer = self.outer.inputs(symbols, sound_estimate(before)[0])
        state = correct(self.augmented, outer.x0, before, memory)
        d = state.now[self.nx :, 0]
        goal = ca.DM(self.augmented.target) @ ca.vertcat(outer.ref, d)
        goal = goal + ca.DM(self.augmented.target_0)
        return ProblemInputs(
            x0=state.now,
            ref=ca.vertcat(goal[: self.nx, 0], d, goal[self.nx :, 0]),
            estimate=ca.vertcat(state.before_prediction, state.memory),
            gated=state.gated,
            doubted=state.doubted,
        )

    def is_measured(self, symbols: Mapping[str, Sym]) -> Sym:
        """Return what the outer interface finds."""
        return self.outer.is_measured(symbols)

    @property
    def rest(self) -> Linearization | None:
        """That of the outer interface."""
        return self.outer.rest

    @property
    def hold(self) -> Hold:
        """That of the outer interface."""
        return self.outer.hold

    def next_estimate(self, inputs: ProblemInputs[Sym], u: Sym) -> Sym:
        """Return the prediction of (x, d) with the control that acts, and the gate's memory."""
        A, B, drift = (ca.DM(part) for part in self.augmented.model.interval(0))
        size = self.augmented.model.nx
        predicted = A @ inputs.estimate[:size, 0] + B @ u + drift
        return ca.vertcat(predicted, inputs.estimate[size:, 0])

    def send(self, u: Sym) -> Sym:
        """Return the control of the outer interface."""
        return self.outer.send(u)

    def plan(self, x: ca.MX, u: ca.MX) -> tuple[ca.MX, ca.MX]:
        """Return the plan of x."""
        return self.outer.plan(x[: self.nx, :], u)

    def complete(self, controller: Controller) -> Controller:
        """Return the controller as the outer interface completes it."""
        return self.outer.complete(controller)

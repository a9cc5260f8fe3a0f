"""The interface of a linear MPC of a mechanism near an equilibrium.

The controller measures (q, v, [act]) and returns u; its linear problem is in deviations along the
free directions of the constraint manifold, and of the activations.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.control.law_interface.signals import deviations
from mbcasadi.control.regulators.feedback import setpoint_slots
from mbcasadi.control.regulators.innovation_gate import wrap_angles
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.safe_output.mechanism_hold import Hold, hold_of_mechanism
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Controller, ReportedLimits, Signal
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.linear.interface import Interface, ProblemInputs
from mbcasadi.mpc.linear.limits import limits_of, limits_of_mechanism
from mbcasadi.mpc.linear.prediction_model import Array
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.qp.input_guard import is_bounded, state_validity
from mbcasadi.system.coordinates import controls, coordinates, rates, state_sizes, unitless_signal
from mbcasadi.system.pulling_inputs import activation_names


@final
@dataclass(frozen=True)
class MechanismInterface(Interface):
    """(q, v) are measured; x, r and s are deviations from the equilibrium.

    Attributes:
        linear: the linear system and its equilibrium.
        problem: in deviations.
        ctrl_limits: (nu, 2) limits of u.
        wrap: rows of q whose sensor knows an angle up to 2 π; needs an estimate.
    """

    linear: Linearization
    problem: LinearProblem
    ctrl_limits: Array
    wrap: tuple[int, ...] = ()

    @property
    def measured(self) -> tuple[Signal, ...]:
        """q, v, and act where there are activation states."""
        system = self.linear.system
        state = coordinates(system), rates(system)
        return (*state, unitless_signal("act", activation_names(system))) if system.na else state

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Setpoints of q and v, of one or of all samples, then of u."""
        q, v, u = setpoint_slots(self.linear.system)
        if not self.problem.preview:
            return q, v, u
        stages = [
            replace(slot, name=f"{part}{k}")
            for k in range(1, self.problem.horizon + 1)
            for part, slot in (("q", q), ("v", v))
        ]
        return (*stages, u)

    @property
    def control(self) -> Signal:
        """The actuators' controls."""
        system = self.linear.system
        return controls(system)

    @property
    def u_limits(self) -> Array:
        """`ctrl_limits`."""
        return self.ctrl_limits

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
        """Rates and outputs over (q, v, u)."""
        system = self.linear.system
        return limits_of_mechanism(
            limits_of(self.problem),
            {"q": system.nq, "v": system.nv} | ({"act": system.na} if system.na else {}),
            lambda symbols: self._deviation(symbols["q"], symbols["v"], symbols.get("act")),
            self.linear.u,
        )

    @property
    def plan_rows(self) -> tuple[str, ...]:
        """Coordinates and rates."""
        planned = self.measured[:2]
        return tuple(f"{part.name}.{row}" for part in planned for row in part.components)

    def inputs(self, symbols: Mapping[str, Sym], estimate: Sym) -> ProblemInputs[Sym]:
        """Return the deviations of state and setpoints."""
        q = self._near(symbols["q"], estimate)
        x = self._deviation(q, symbols["v"], symbols.get("act"))
        return ProblemInputs(x, self._reference(symbols["ref"]), estimate)

    def is_measured(self, symbols: Mapping[str, Sym]) -> Sym:
        """Return whether q and v are finite, and not too far away."""
        system = self.linear.system
        valid = state_validity((symbols["q"], symbols["v"]), state_sizes(system))
        return ca.logic_and(valid, is_bounded(symbols["act"])) if system.na else valid

    @property
    def rest(self) -> Linearization | None:
        """The equilibrium."""
        return self.linear

    @cached_property
    def hold(self) -> Hold:
        """Each actuator holds where it is."""
        linear, period = self.linear, self.problem.model.period
        bounds_of_u = self.problem.u_bounds
        return hold_of_mechanism(linear.system, bounds_of_u, period, linear.u, linear.q)

    def next_estimate(self, inputs: ProblemInputs[Sym], u: Sym) -> Sym:  # noqa: ARG002
        """Return no rows."""
        return inputs.estimate

    def send(self, u: Sym) -> Sym:
        """Return `u_0 + δu` within its limits."""
        low, high = ca.DM(self.ctrl_limits[:, 0]), ca.DM(self.ctrl_limits[:, 1])
        return ca.fmin(ca.fmax(u + ca.DM(self.linear.u), low), high)

    def plan(self, x: ca.MX, u: ca.MX) -> tuple[ca.MX, ca.MX]:
        """Return the planned (q, v) and u."""
        linear, samples = self.linear, x.shape[1]
        q_0 = ca.repmat(ca.DM(linear.q), 1, samples)
        q = linear.system.integrate.map(samples)(q_0, ca.DM(linear.to_dq) @ x)
        v = ca.repmat(ca.DM(linear.v), 1, samples) + ca.DM(linear.to_dv) @ x
        return ca.vertcat(q, v), ca.repmat(ca.DM(linear.u), 1, u.shape[1]) + u

    def complete(self, controller: Controller) -> Controller:
        """Return the controller with the mechanism's name and a monitor of q."""
        names, units = zip(*deviations(self.linear.system), strict=True)
        return replace(
            controller,
            source=self.linear.system.name,
            monitor=self._monitor(),
            monitors=tuple(Signal(name, names, units) for name in ("target", "error")),
        )

    def _near(self, q: Sym, estimate: Sym) -> Sym:
        """Return q, with angles that wrap brought within π of their estimate."""
        if not self.wrap:
            return q
        linear = self.linear
        dq = ca.DM(linear.to_dq) @ estimate[: linear.nx, 0]
        expected = linear.system.integrate(ca.DM(linear.q), dq)
        apart, rows = wrap_angles(q - expected, self.wrap), ca.vertsplit(q)
        for row in self.wrap:
            rows[row] = expected[row] + apart[row]
        return ca.vertcat(*rows)

    def _deviation(self, q: Sym, v: Sym, act: Sym | None = None) -> Sym:
        """Return x (nx, 1); activations at the equilibrium where none are given."""
        linear = self.linear
        dq = linear.system.difference(ca.DM(linear.q), q)
        x = ca.DM(linear.from_dq) @ dq + ca.DM(linear.from_dv) @ (v - ca.DM(linear.v))
        return x if act is None else x + ca.DM(linear.from_dact) @ (act - ca.DM(linear.act))

    def _reference(self, ref: Sym) -> Sym:
        """Return the states of all samples, then the control, as deviations."""
        nq, nv, nu = self.linear.system.nq, self.linear.system.nv, self.linear.nu
        samples = (ref.numel() - nu) // (nq + nv)
        states = [
            self._deviation(part[:nq, 0], part[nq:, 0])
            for part in ca.vertsplit(ref[: samples * (nq + nv), 0], nq + nv)
        ]
        return ca.vertcat(*states, ref[samples * (nq + nv) :, 0] - ca.DM(self.linear.u))

    def _monitor(self) -> ca.Function:
        """Return (q, ref) → (target, error): the first setpoint and the difference to it."""
        system = self.linear.system
        q = ca.SX.sym("q", system.nq)
        ref = ca.SX.sym("ref", sum(slot.size for slot in self.slots))
        desired = ref[: system.nq, 0]
        target = system.difference(ca.DM(self.linear.q), desired)
        outputs = [target, system.difference(q, desired)]
        return ca.Function("monitor", [q, ref], outputs, ["q", "ref"], ["target", "error"])

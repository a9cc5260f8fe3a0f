"""Forces of the actuators as unknowns, and the controls that produce them.

An actuator pulls with `p = g w + b`, where `g(q, v)` is its gain, `b(q, v)` its bias and `w` its
control `u`, or its activation. The unknown of the QP is `p` (N or N m), not `u`: a weight on
`p` means the same for motors and for servos, and force ranges are its bounds.

With an activation state the control cannot move the force at once; `w` is then the activation
after one period, and `u` the control that leads there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import casadi as ca
import numpy as np

from mbcasadi import model
from mbcasadi.description import Actuator, RigidTree
from mbcasadi.description.actuators import MuscleTimes
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.model.transmission import actuator_length, moment_row
from mbcasadi.system.activation_step import ActivationStep, activation_step
from mbcasadi.system.functions import evaluate
from mbcasadi.system.pid_step import PidLaw, PidState, PidStep, pid_state
from mbcasadi.system.ranges import Ranges, clip, finite, force_range
from mbcasadi.system.system import System

LEAST_GAIN2 = 1e-30
"""Keeps `u = (p - b)/g` finite where a gain passes through zero; below the square of any gain in
any units."""


@dataclass(frozen=True)
class ActuatorModel:
    """The actuators at one state.

    Attributes:
        moment: (nv, nu) generalised forces are `moment @ p + rest`.
        rest: (nv,) generalised actuator force that belongs to no single actuator.
        gain, bias: (nu,) of `p = gain w + bias`.
        lower, upper: (nu,) range of p within the limits of controls and forces.
        bounded: for each p, whether anything bounds it.
        act, hold: (nu,) present activation, and the control that keeps it; zero where there is
            none. See `ActivationStep`.
        reach, muscles, period: numbers of the `ActivationStep`.
        pids, pid_state: PID servos with a memory by the index of their control, and their state
            (k, 4): a row of `PidState` each. Their bias holds the force of the integral.
    """

    moment: ca.SX
    rest: ca.SX
    gain: ca.SX
    bias: ca.SX
    lower: ca.SX
    upper: ca.SX
    bounded: tuple[bool, ...]
    act: ca.SX
    hold: ca.SX
    reach: ca.DM
    muscles: dict[int, MuscleTimes]
    period: float
    pids: dict[int, PidStep] = field(default_factory=dict)
    pid_state: ca.SX = field(default_factory=lambda: ca.SX(0, len(PidState._fields)))

    @property
    def activation(self) -> ActivationStep:
        """What a period of control makes of the activations."""
        return ActivationStep(self.act, self.hold, self.reach, self.muscles, self.period)

    def controls(self, p: ca.SX) -> ca.SX:
        """Return the control (nu,) that gives the force p; zero where the gain vanishes."""
        u = self.activation.control((p - self.bias) * reciprocal(self.gain))
        for k, (i, pid) in enumerate(self.pids.items()):
            u[i] = pid.control(self._law(i), self._pid_state(k), p[i])
        return u

    def forces(self, u: ca.SX) -> ca.SX:
        """Return the force p (nu,) that the control u gives, within the range of the forces."""
        p = self.gain * self.activation.after(u) + self.bias
        for i, force in self.forces_of_pids(u).items():
            p[i] = force
        return ca.fmin(ca.fmax(p, self.lower), self.upper)

    def forces_of_pids(self, u: ca.SX) -> dict[int, ca.SX]:
        """Return the force of each PID servo with a memory, by the index of its control."""
        states = {i: self._pid_state(k) for k, i in enumerate(self.pids)}
        return {i: self.pids[i].force(self._law(i), at, u[i]) for i, at in states.items()}

    def _law(self, i: int) -> PidLaw:
        return PidLaw(self.gain[i], self.bias[i], self.act[i], self.hold[i], self.reach[i])

    def _pid_state(self, k: int) -> PidState:
        return PidState(*(self.pid_state[k, i] for i in range(len(PidState._fields))))


def reciprocal(gain: ca.SX) -> ca.SX:
    """Return `1/g`, and zero at `g = 0`; exact for constants."""
    entries = [
        ca.SX(1 / float(g)) if g.is_constant() and float(g) != 0 else g / (g**2 + LEAST_GAIN2)
        for g in (gain[i] for i in range(gain.numel()))
    ]
    return ca.vertcat(*entries)


def actuator_model(
    system: System,
    ranges: Ranges,
    period: float,
    q: ca.SX,
    v: ca.SX,
    act: ca.SX | None,
    ahead: tuple[ca.SX, ca.SX] | None = None,
) -> ActuatorModel:
    """Return the actuators of a system at (q, v, act).

    A system that is given by equations has unit gains: `p = u`.

    Args:
        system: the mechanism.
        ranges: of controls and actuator forces.
        period: sample time, s; activations move during it.
        q, v: (nq,), (nv,) state.
        act: (na,) activations, or None where the system has none.
        ahead: (nu,) changes of lengths and speeds until the control acts; None for none.

    Raises:
        UnsupportedFeatureError: an actuator of the model has no equation.
    """
    nu = system.nu
    system.require_available("actuator_force", *(["act_dot"] if system.na else []))
    _require_own_controls(system)
    if not system.actuators or system.tree is None:
        ones, zeros = ca.SX.ones(nu), ca.SX.zeros(nu)
        lower, upper = finite(ranges.ctrl[:, 0]), finite(ranges.ctrl[:, 1])
        lower, upper = force_range(system.actuator_names, ranges, lower, upper)
        return ActuatorModel(
            moment=evaluate(system.actuation, {"q": q, "v": v}),
            rest=system.actuator_bias(q, v),
            gain=ones,
            bias=zeros,
            lower=lower,
            upper=upper,
            bounded=_is_bounded(ranges, ones),
            act=zeros,
            hold=zeros,
            reach=ca.DM.ones(nu),
            muscles={},
            period=period,
        )
    return _model_of_tree(system, system.tree, ranges, period, q, v, act, ahead)


def _require_own_controls(system: System) -> None:
    """Raise unless each control has a force of its own, affine in it.

    Raises:
        UnsupportedFeatureError: a motor or servo with several controls, or a force that depends on
            further states.
    """
    for actuator in system.actuators:
        motor = actuator.motor
        several = actuator.leader is not None or (motor is not None and len(motor.controls) > 1)
        if several or not (motor is None or motor.affine) or (motor and motor.bristle):
            raise UnsupportedFeatureError(
                f"actuator {actuator.name!r}: its force is not gain times one control plus bias; "
                "expected one input, without thermal and lugre, where forces are unknowns"
            )


def _model_of_tree(
    system: System,
    tree: RigidTree,
    ranges: Ranges,
    period: float,
    q: ca.SX,
    v: ca.SX,
    act: ca.SX | None,
    ahead: tuple[ca.SX, ca.SX] | None,
) -> ActuatorModel:
    actuators = system.numbers_at(q).actuators
    moment = ca.sparsify(ca.vertcat(*(moment_row(tree, actuator, q) for actuator in actuators)).T)
    rates = [moment[:, i].T @ v for i in range(len(actuators))]
    lengths = [actuator_length(tree, actuator, q) for actuator in actuators]
    gain, bias = _law(actuators, lengths, rates)
    owned = any(joint.compensation == "actuator" for joint in tree.joints) or any(
        actuator.motor is not None for actuator in actuators
    )
    rest = system.actuator_bias(q, v) - moment @ bias if owned else ca.SX(tree.nv, 1)
    if ahead is not None:
        lengths = [x + ahead[0][i] for i, x in enumerate(lengths)]
        rates = [x + ahead[1][i] for i, x in enumerate(rates)]
        gain, bias = _law(actuators, lengths, rates)
    activation = activation_step(actuators, period, act, rates)
    pids, states = {}, []
    for i, actuator in enumerate(actuators):
        if actuator.pid is not None and actuator.acts and act is not None:
            pids[i] = PidStep(actuator)
            states.append(pid_state(actuator, period, lengths[i], act))
            bias[i] += actuator.pid.ki * states[-1].integral
    model_at = ActuatorModel(
        moment=moment,
        rest=rest,
        gain=gain,
        bias=bias,
        lower=ca.SX(0, 1),
        upper=ca.SX(0, 1),
        bounded=tuple(
            known or (i in pids and pids[i].is_bounded)
            for i, known in enumerate(_is_bounded(ranges, gain))
        ),
        act=activation.act,
        hold=activation.hold,
        reach=activation.reach,
        muscles=activation.muscles,
        period=period,
        pids=pids,
        pid_state=ca.densify(ca.vertcat(*(ca.horzcat(*state) for state in states)))
        if states
        else ca.SX(0, len(PidState._fields)),
    )
    commanded = _range_of_force(actuators, ranges, model_at)
    lower, upper = force_range(system.actuator_names, ranges, *commanded)
    return replace(model_at, lower=lower, upper=upper)


def _law(
    actuators: Sequence[Actuator], lengths: list[ca.SX], rates: list[ca.SX]
) -> tuple[ca.SX, ca.SX]:
    """Return gain and bias (nu,) at lengths and their rates."""
    each = list(zip(actuators, lengths, rates, strict=True))
    gain = ca.vertcat(*(model.gain_of(*one) for one in each))
    return ca.densify(gain), ca.densify(ca.vertcat(*(model.bias_of(*one) for one in each)))


def _range_of_force(
    actuators: Sequence[Actuator], ranges: Ranges, at: ActuatorModel
) -> tuple[ca.SX, ca.SX]:
    """Return the least and the greatest force that the controls can command."""
    ends = []
    for side in (0, 1):
        u = finite(ranges.ctrl[:, side])
        act_ranges = np.array([actuator.act_range or (-np.inf, np.inf) for actuator in actuators])
        p = at.gain * clip(at.activation.after(u), act_ranges) + at.bias
        for i, force in at.forces_of_pids(u).items():
            p[i] = force
        ends.append(p)
    low, high = [], []
    for i in range(len(actuators)):
        a, b, g = ends[0][i], ends[1][i], at.gain[i]
        if g.is_constant() and i not in at.pids:
            positive = float(g) >= 0
            low.append(a if positive else b)
            high.append(b if positive else a)
        else:
            low.append(ca.fmin(a, b))
            high.append(ca.fmax(a, b))
    return ca.vertcat(*low), ca.vertcat(*high)


def _is_bounded(ranges: Ranges, gain: ca.SX) -> tuple[bool, ...]:
    """Whether a finite limit can act on each force."""
    limits = np.hstack([ranges.ctrl, ranges.force])
    unbounded = np.all(np.abs(limits) >= UNBOUNDED, axis=1)
    return tuple(
        bool(not unbounded[i] or not gain[i].is_constant() or float(gain[i]) == 0.0)
        for i in range(len(unbounded))
    )


def servo_indices(system: System) -> tuple[int, ...]:
    """Return the actuators whose force depends on length or speed; none of equations."""
    return tuple(i for i, each in enumerate(system.actuators) if any(each.bias[1:]))


def direct_drives(B: ca.SX) -> dict[int, tuple[int, float]]:
    """Return column → (row, constant) for columns of B with one entry on a row of their own.

    Args:
        B: (nv, nu) moments of the actuators.
    """
    drives: dict[int, tuple[int, float]] = {}
    for column in range(B.shape[1]):
        rows = B[:, column].sparsity().row()
        entry = B[rows[0], column] if len(rows) == 1 else None
        if entry is None or not entry.is_constant() or float(entry) == 0.0:
            continue
        if rows[0] not in {dof for dof, _ in drives.values()}:
            drives[column] = (rows[0], float(entry))
    return drives

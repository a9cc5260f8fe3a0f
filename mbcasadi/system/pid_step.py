"""The force of a PID servo by its control, and the control by its force.

With the bounds of its set-point and of its integral the force is a piecewise linear function of the
control, which never turns back:

    p = gain c + bias + ki (z_b - z - h e) + rate_gain ẇ,   e = c - l,   z_b = clip(z + h e),
    c = w inside its range,   w = act + reach (u - hold),   ẇ of w.

Its corners are where a bound is reached. An activation is that after a period of control, and so
are integral and set-point.
"""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.description import Actuator
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.model.activation import activation_rate, clip
from mbcasadi.model.pid import bound_excess, integral_rate


class PidState(NamedTuple):
    """A PID servo at a state: its length, its integral, and the range of its set-point."""

    length: ca.SX
    integral: ca.SX
    lower: ca.SX
    upper: ca.SX


class PidLaw(NamedTuple):
    """`gain`, `bias`, and `act`, `hold` and `reach` of its activation (`ActivationStep`)."""

    gain: ca.SX
    bias: ca.SX
    act: ca.SX
    hold: ca.SX
    reach: ca.DM


@dataclass(frozen=True)
class PidStep:
    """The numbers of one PID servo that no state changes; see the file's docstring."""

    actuator: Actuator

    def force(self, law: PidLaw, at: PidState, u: ca.SX) -> ca.SX:
        """Return p of a control."""
        actuator = self.actuator
        w = law.act + law.reach * (u - law.hold)
        w = w if actuator.act is None else clip(w, actuator.act_range)
        c = ca.fmin(ca.fmax(w, at.lower), at.upper)
        assert actuator.pid is not None  # of a servo with a memory
        p = law.gain * c + law.bias + bound_excess(actuator.pid, at.integral, c - at.length)
        if actuator.pid.rate_gain:
            p = p + actuator.pid.rate_gain * activation_rate(actuator, u, w)
        return p

    def control(self, law: PidLaw, at: PidState, p: ca.SX) -> ca.SX:
        """Return the control of a force; the nearest corner where no control gives it."""
        corners = [law.hold + (c - law.act) / law.reach for c in self._corners(at)]
        forces = [self.force(law, at, u) for u in corners]
        first, last = corners[0], corners[-1]
        ends = [
            (first, forces[0], self.force(law, at, first - 1) - forces[0], -1.0),
            (last, forces[-1], self.force(law, at, last + 1) - forces[-1], 1.0),
        ]
        below, above = (
            start + side * _quotient(p - force, rise) for start, force, rise, side in ends
        )
        u, sign = below, 1.0 if self.rises else -1.0
        for k, (corner, force) in enumerate(zip(corners, forces, strict=True)):
            beyond = above
            if corner is not last:
                share = _quotient(p - force, forces[k + 1] - force)
                beyond = corner + share * (corners[k + 1] - corner)
            u = ca.if_else(sign * p > sign * force, beyond, u)
        return u

    @property
    def rises(self) -> bool:
        """Whether the force rises with the control.

        Raises:
            UnsupportedFeatureError: it does neither everywhere.
        """
        actuator, pid = self.actuator, self.actuator.pid
        assert pid is not None  # of a servo with a memory
        kp = float(actuator.gain[0])
        slopes = [kp, kp - (pid.error_gain if pid.max_integral < np.inf else 0.0), pid.rate_gain]
        if min(slopes) < 0 < max(slopes):
            raise UnsupportedFeatureError(
                f"actuator {actuator.name!r}: its force rises with the control in one place and "
                "falls in another; expected gains kp, ki, kd of one sign where forces are unknowns"
            )
        return max(slopes) > 0 or min(slopes) == 0

    @property
    def is_bounded(self) -> bool:
        """Whether a bound of its own can act on the force."""
        pid = self.actuator.pid
        assert pid is not None  # of a servo with a memory
        return pid.reached is not None or pid.max_integral < np.inf

    def _corners(self, at: PidState) -> list[ca.SX]:
        """Return the set-points where a bound is reached, in order; the length where none is."""
        pid = self.actuator.pid
        assert pid is not None  # of a servo with a memory
        corners = []
        if pid.reached is not None:
            corners += [at.lower, at.upper]
        if self.actuator.act is not None:
            corners += [0 * at.length + end for end in self.actuator.act_range or ()]
        if pid.is_plugin and pid.max_integral < np.inf:
            most = pid.max_integral
            corners += [at.length + (m - at.integral) / pid.step for m in (-most, most)]
        for k in range(len(corners)):
            for i in range(len(corners) - 1 - k):
                a, b = corners[i : i + 2]
                corners[i : i + 2] = ca.fmin(a, b), ca.fmax(a, b)
        return corners or [at.length]


def pid_state(actuator: Actuator, period: float, length: ca.SX, act: ca.SX) -> PidState:
    """Return a PID servo at a state, after a period where it follows an activation.

    Args:
        actuator: with a memory.
        period: of control, s.
        length: of the actuator.
        act: (na, 1) all activations.
    """
    pid = actuator.pid
    assert pid is not None  # of a servo with a memory
    z = ca.SX(0) if pid.integral is None else act[pid.integral]
    lower, upper = ca.SX(-UNBOUNDED), ca.SX(UNBOUNDED)
    share = 1.0  # MuJoCo steps all states of a filterexact as the filter
    if actuator.dynamics == "filterexact":
        share = -actuator.time_constant / period * float(np.expm1(-period / actuator.time_constant))
    c = None if actuator.act is None else act[actuator.act]
    if pid.reached is not None:
        last, reach = act[pid.reached], pid.slew * period
        if c is not None:
            c = ca.fmin(ca.fmax(c, last - reach), last + reach)
            last = clip(last + share * (c - last), actuator.act_range)
        lower, upper = last - pid.slew * pid.step, last + pid.slew * pid.step
    if c is not None and pid.integral is not None:
        later = z + share * period * integral_rate(pid, z, c - length)
        if pid.is_plugin:
            later = ca.fmin(later, ca.fmax(z, pid.max_integral))
            later = ca.fmax(later, ca.fmin(z, -pid.max_integral))
        z = clip(later, actuator.act_range)
    return PidState(length, z, lower, upper)


def _quotient(x: ca.SX, y: ca.SX) -> ca.SX:
    """Return x / y, 0 at y = 0."""
    zero = y == 0
    return ca.if_else(zero, 0.0, x / ca.if_else(zero, 1.0, y))

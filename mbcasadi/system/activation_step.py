"""What a control makes of the activation that pulls within one period.

    w = act + reach(u - hold) (u - hold),

`hold` is the control that keeps the activation: itself for filters and muscles, zero for
integrators, `R i + K l̇` for the current of a motor. `reach` is constant but for muscles, which
rise faster than they fall. Without a state `w = u`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.description import Actuator
from mbcasadi.description.actuators import MuscleTimes
from mbcasadi.model.muscle import muscle_time

HALVINGS = 40
"""Of the interval that holds the control of a smoothly blended muscle: to 1e-12 of it."""

LONGEST_STEP = 1.0
"""Share of its way that a muscle's activation goes in one period at most."""


@dataclass(frozen=True)
class ActivationStep:
    """The activations of all actuators at one state, and their next ones.

    Attributes:
        act: (nu,) present activation, zero where there is none.
        hold: (nu,) control that keeps it, zero where there is none.
        reach: (nu,) share of `u - hold` that is added in one period; 1 without a state. Of muscles
            the share of a rise.
        muscles: times of each muscle by the index of its control.
        period: s.
    """

    act: ca.SX
    hold: ca.SX
    reach: ca.DM
    muscles: dict[int, MuscleTimes]
    period: float

    def after(self, u: ca.SX) -> ca.SX:
        """Return w (nu,)."""
        w = self.act + self.reach * (u - self.hold)
        for i, times in self.muscles.items():
            w[i] = self.act[i] + self._step(times, u[i] - self.act[i], self.act[i])
        return w

    def control(self, w: ca.SX) -> ca.SX:
        """Return u (nu,) that leads to w."""
        u = (w - self.act) / self.reach + self.hold
        for i, times in self.muscles.items():
            u[i] = self.act[i] + self._excess(times, w[i] - self.act[i], self.act[i])
        return u

    def _step(self, times: MuscleTimes, excess: ca.SX, act: ca.SX) -> ca.SX:
        share = self.period / muscle_time(times, excess, act)
        return ca.fmin(share, LONGEST_STEP) * excess

    def _excess(self, times: MuscleTimes, step: ca.SX, act: ca.SX) -> ca.SX:
        """Return `u - act` of a step of the activation; halvings where the times blend."""
        if not times.width:
            return step / ca.fmin(self.period / muscle_time(times, step, act), LONGEST_STEP)
        ends = [
            step / ca.fmin(self.period / muscle_time(times, end, act), LONGEST_STEP)
            for end in (ca.SX(times.width), ca.SX(-times.width))
        ]
        low, high = ca.fmin(*ends), ca.fmax(*ends)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            short = self._step(times, middle, act) < step
            low, high = ca.if_else(short, middle, low), ca.if_else(short, high, middle)
        return 0.5 * (low + high)


def activation_step(
    actuators: Sequence[Actuator], period: float, act: ca.SX | None, rates: Sequence[ca.SX]
) -> ActivationStep:
    """Return the activations at a state, and how a period of control changes them.

    Args:
        actuators: in the order of the controls.
        period: sample time, s.
        act: (na,) activations; None for controls that pull as they are.
        rates: of the actuators' lengths.
    """
    nu = len(actuators)
    present, hold, reach = ca.SX.zeros(nu), ca.SX.zeros(nu), ca.DM.ones(nu)
    muscles = {}
    for i, actuator in enumerate(actuators):
        if actuator.act is None or act is None:
            continue
        present[i] = hold[i] = act[actuator.act]
        ratio = period / actuator.time_constant
        if actuator.muscle_times is not None:
            muscles[i] = actuator.muscle_times
            reach[i] = LONGEST_STEP
        elif actuator.dynamics == "integrator":
            reach[i], hold[i] = period, 0.0
        elif actuator.motor is not None:
            motor = actuator.motor
            reach[i] = -np.expm1(-period / motor.electrical_time) / motor.resistance
            hold[i] = motor.resistance * present[i] + motor.constant * rates[i]
        else:
            reach[i] = -np.expm1(-ratio) if actuator.dynamics == "filterexact" else ratio
    return ActivationStep(present, hold, reach, muscles, period)

"""Regulators and filters of mechanisms at rest, for the benchmark and the tests of laws."""

from types import SimpleNamespace

import numpy as np

from mbcasadi import estimation
from mbcasadi.control import regulators
from mbcasadi.control.laws import Law, LawOptions
from mbcasadi.control.regulators import Linearization
from mbcasadi.system import System

PERIOD = 1e-3  # s
HORIZON = 0.1  # s
PASS = 0.5  # share of the last value in a low-pass
ANGLE, SPEED = 10.0, 0.1  # weights of deviations and rates; rad, m, s
TORQUE = {"pendulum_on_four_bar": 1.0, "planar_biped": 1e-4}  # weights of controls, 1/(N m)²
SENSOR, DISTURBANCE = 1e-3, 1.0  # rad; rad/s² √s


def at_rest(system: System) -> Linearization:
    """Return the linear system at the equilibrium."""
    equilibrium = regulators.equilibrium(system)
    return regulators.linearize(system, equilibrium)


def weights(system: System) -> tuple[np.ndarray, float]:
    """Return Q and R."""
    return np.repeat([ANGLE, SPEED], system.nv), TORQUE[system.name]


def feedback(system: System) -> Law:
    """Return the gain of LQR as plain feedback."""
    linear = at_rest(system)
    return regulators.feedback(
        linear, regulators.lqr_gain(linear, *weights(system)).K, options=LawOptions(period=PERIOD)
    )


def feedback_from_ss(system: System) -> Law:
    """Return the gain of LQR behind a low-pass of its input, as matrices."""
    linear = at_rest(system)
    K = regulators.lqr_gain(linear, *weights(system)).K
    eye = np.eye(linear.nx)
    held, new = PASS * eye, (1 - PASS) * eye  # z = held z + new x, u = -K (held z + new x)
    controller = SimpleNamespace(A=held, B=new, C=-K @ held, D=-K @ new, dt=PERIOD)
    return regulators.feedback_from_ss(linear, controller, options=LawOptions(period=PERIOD))


def lqr(system: System) -> Law:
    """Return LQR."""
    return regulators.lqr(at_rest(system), *weights(system), options=LawOptions(period=PERIOD))


def pole_placement(system: System) -> Law:
    """Return poles from -5 1/s on, one apart."""
    linear = at_rest(system)
    poles = [-5.0 - k for k in range(linear.nx)]
    return regulators.pole_placement(linear, poles, options=LawOptions(period=PERIOD))


def finite_horizon_lqr(system: System) -> Law:
    """Return LQR over a hundred ticks."""
    return regulators.finite_horizon_lqr(
        at_rest(system), *weights(system), HORIZON, options=LawOptions(period=PERIOD)
    )


def trajectory_lqr(system: System) -> Law:
    """Return LQR along the motion that stays at rest, a hundred ticks."""
    linear, ticks = at_rest(system), round(HORIZON / PERIOD)
    rows = (np.tile(x, (ticks, 1)) for x in (linear.q, linear.v, linear.u))
    along = regulators.linearize_along(system, *rows)
    return regulators.trajectory_lqr(
        along, *weights(system), hold=linear, options=LawOptions(period=PERIOD)
    )


def lqg(system: System) -> Law:
    """Return LQG with an encoder at every joint."""
    linear = at_rest(system)
    joints = [joint.name for joint in system.tree.joints] if system.tree else []
    noise = np.repeat([0.0, DISTURBANCE**2], system.nv)
    estimator = estimation.kalman(
        linear, regulators.encoders(system, joints), noise, SENSOR**2, period=PERIOD
    )
    return estimation.lqg(estimator, regulators.lqr_gain(linear, *weights(system), period=PERIOD).K)

"""Controls of a large mechanism in small units: large numbers, and the right ones."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask

LENGTH, MASS, GRAVITY = 40.0, 2e5, 9.81  # m, kg, m/s²: the jib of a large crane
UNITS = {"m, kg": (1.0, 1.0), "mm, g": (1e3, 1e3), "um, mg": (1e6, 1e6)}
SAME = 1e-6  # the bias of `torque_weight`, 1e-7, and of the kp of the task


@pytest.mark.parametrize("units", list(UNITS))
@pytest.mark.parametrize("limited", [True, False])
def test_a_control_beyond_1e12_is_the_actuator_force_that_was_found(units, limited):
    m, kg = UNITS[units]
    system = mb.read_mjcf(
        f'<mujoco><compiler angle="radian" boundmass="0"/><option gravity="0 0 {-GRAVITY * m}"/>'
        f'<worldbody><body><joint name="jib" axis="0 1 0"/>'
        f'<inertial pos="{LENGTH * m} 0 0" mass="{MASS * kg}" diaginertia="{kg * m**2} {kg * m**2} '
        f'{kg * m**2}"/></body></worldbody><actuator><motor joint="jib"/></actuator></mujoco>'
    )
    weight = MASS * GRAVITY * LENGTH * kg * m**2  # by hand: the torque that holds the jib level
    limits = [[-3 * weight, 3 * weight]] if limited else None
    controller = InverseDynamicsQP(system, [PostureTask(kp=1.0)], ctrl_limits=limits)
    for angle in (0.0, 0.4):
        solution = controller.solve([angle], [0.0])
        assert solution.solved
        expected = -weight * np.cos(angle)
        np.testing.assert_allclose(solution.u, expected, rtol=SAME)
        np.testing.assert_allclose(solution.u, solution.p, rtol=1e-12)

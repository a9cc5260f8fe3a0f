"""Actuators of gears that differ by many orders: each is limited by its own row of the QP."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask

KP, AWAY, FORCE = 100.0, 1e-3, 0.05  # 1/s², m, N: the tasks ask for 0.1 N on each of two masses
SAME = 1e-6


@pytest.mark.parametrize("gear", [1e-9, 1e-5, 1.0, 1e5, 1e9])
@pytest.mark.parametrize("limited", [(True, True), (True, False), (False, True), (False, False)])
def test_each_motor_gives_what_its_task_asks_for_within_its_limits(gear, limited):
    bodies = "".join(
        f'<body><joint name="{name}" type="slide" axis="1 0 0"/>'
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>'
        for name in "ab"
    )
    system = mb.read_mjcf(
        f'<mujoco><option gravity="0 0 0"/><worldbody>{bodies}</worldbody><actuator>'
        f'<motor joint="a"/><motor joint="b" gear="{gear!r}"/></actuator></mujoco>'
    )
    force = np.where(limited, FORCE, 10 * FORCE)
    limits = (force / [1.0, gear])[:, None] * [-1.0, 1.0]
    controller = InverseDynamicsQP(system, [PostureTask(kp=KP)], ctrl_limits=limits)
    for signs in ([1, 1], [1, -1]):
        ref = controller.reference_at(np.zeros(2))
        ref[controller.reference_slices["posture.q"]] = AWAY * np.array(signs)
        solution = controller.solve(np.zeros(2), np.zeros(2), ref)
        expected = np.array(signs) * np.minimum(KP * AWAY, force)  # N, by hand
        assert solution.status == 0, solution.explain()
        np.testing.assert_allclose(solution.u * [1.0, gear], expected, rtol=SAME)
        np.testing.assert_allclose(solution.a, expected, rtol=SAME)

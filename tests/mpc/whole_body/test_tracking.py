"""How a law's posture tasks bring a state back to the plan."""

import numpy as np
import pytest
from support.two_feet import MODEL

import mbcasadi as mb
from mbcasadi.control import FrameTask, PostureTask
from mbcasadi.mpc.whole_body.tracking import tracking_fun

SPAN, STEPS = 0.02, 20000


@pytest.fixture(scope="module")
def system():
    return mb.read_mjcf(MODEL)


def test_a_law_takes_joints_back_as_its_task_demands_over_a_time(system):
    """Beside the task's own acceleration, integrated in short steps."""
    rng, nv = np.random.default_rng(3), system.nv
    tasks = [PostureTask(kp=300.0), FrameTask("base", kind="body", kp=100.0)]
    q_ref = np.array(system.tree.q0)
    q, v, v_ref = q_ref.copy(), rng.normal(size=nv), rng.normal(size=nv)
    q[7:] += 0.1 * rng.normal(size=nv - 6)
    a = tracking_fun(tasks, system, SPAN)(q, v, q_ref, v_ref).full().ravel()
    assert not a[:6].any()
    error, rate, h = q[7:] - q_ref[7:], (v - v_ref)[6:], SPAN / STEPS
    start, kd = rate.copy(), 2 * np.sqrt(300.0)
    for _ in range(STEPS):
        rate += h * (-kd * rate - 300.0 * error)
        error += h * rate
    np.testing.assert_allclose(a[6:], (rate - start) / SPAN, rtol=2e-4)


def test_the_prediction_of_a_joint_that_is_stuck_dies_out(system):
    """Each plan stops what the one before has predicted; the joint never moves."""
    back, q0 = tracking_fun([PostureTask(kp=300.0)], system, SPAN), np.array(system.tree.q0)
    predicted, still = np.zeros(system.nv), np.zeros(system.nv)
    predicted[6] = 1.0
    for _ in range(10):
        a = back(q0, still, q0, predicted).full().ravel() - predicted / SPAN
        predicted = SPAN * a
    assert abs(predicted[6]) < 1e-2
    assert predicted[6] != 0.0

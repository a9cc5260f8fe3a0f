"""How a law's tasks of joints and base bring a state back to the plan."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.two_feet import MODEL

import mbcasadi as mb
from mbcasadi.control import FrameTask, PostureTask
from mbcasadi.mpc.whole_body.tracking import tracking_fun

SPAN, STEPS = 0.02, 40000
TASKS = [PostureTask(kp=300.0), FrameTask("base", kind="body", kp=100.0)]


@pytest.fixture(scope="module")
def system():
    return mb.read_mjcf(MODEL)


def taken_back(error, rate, kp):
    """Return the mean acceleration of `ë = -2 √kp ė - kp e` over the span, by short steps."""
    h, start = SPAN / STEPS, rate.copy()
    for _ in range(STEPS):
        rate = rate + h * (-2 * np.sqrt(kp) * rate - kp * error)
        error = error + h * rate
    return (rate - start) / SPAN


def test_a_law_takes_joints_and_base_back_as_its_tasks_demand_over_a_time(system):
    """Beside the tasks' own accelerations, integrated in short steps."""
    rng, nv = np.random.default_rng(3), system.nv
    q_ref = np.array(system.tree.q0)
    q, v, v_ref = q_ref.copy(), rng.normal(size=nv), rng.normal(size=nv)
    q[:3] += 0.1 * rng.normal(size=3)
    q[7:] += 0.1 * rng.normal(size=nv - 6)
    a = tracking_fun(TASKS, system, SPAN)(q, v, q_ref, v_ref).full().ravel()
    error, rate = np.concatenate([q[:3] - q_ref[:3], np.zeros(3), q[7:] - q_ref[7:]]), v - v_ref
    np.testing.assert_allclose(a[:6], taken_back(error[:6], rate[:6], 100.0), rtol=2e-4)
    np.testing.assert_allclose(a[6:], taken_back(error[6:], rate[6:], 300.0), rtol=2e-4)


def test_a_task_of_one_axis_takes_a_turned_base_back_about_this_axis_of_the_world(system):
    turn = Rotation.from_rotvec([0.3, -0.4, 0.2])
    q, rate, still = np.array(system.tree.q0), np.array([0.5, 0.7, -0.6]), np.zeros(system.nv)
    q[3:7] = turn.as_quat(scalar_first=True)
    v = np.concatenate([[1.0, 2.0, 3.0], rate, np.zeros(system.nv - 6)])
    task = FrameTask("base", kind="body", position="y", orientation="z", kp=100.0)
    a = tracking_fun([task], system, SPAN)(q, v, q, still).full().ravel()
    along = taken_back(np.zeros(1), np.array([2.0]), 100.0)[0]
    np.testing.assert_allclose(a[:3], [0, along, 0], rtol=2e-4)
    about = taken_back(np.zeros(1), turn.apply(rate)[2:], 100.0)[0]
    np.testing.assert_allclose(turn.apply(a[3:6]), [0, 0, about], rtol=2e-4, atol=1e-12)
    assert not a[6:].any()


@pytest.mark.parametrize("task", [FrameTask("foot_left"), FrameTask("base", "body", base="base")])
def test_what_is_no_task_of_the_base_in_the_world_counts_for_nothing(system, task):
    q0, v = np.array(system.tree.q0), np.ones(system.nv)
    assert not tracking_fun([task], system, SPAN)(q0, v, q0, 0 * v).full().any()


@pytest.mark.parametrize("dof", [0, 4, 6], ids=["along", "about", "joint"])
def test_the_prediction_of_what_is_stuck_dies_out(system, dof):
    """Each plan stops what the one before has predicted; base or joint never move."""
    back, q0 = tracking_fun(TASKS, system, SPAN), np.array(system.tree.q0)
    predicted, still = np.zeros(system.nv), np.zeros(system.nv)
    predicted[dof] = 1.0
    for _ in range(20):
        a = back(q0, still, q0, predicted).full().ravel() - predicted / SPAN
        predicted = SPAN * a
    assert abs(predicted[dof]) < 1e-2
    assert predicted[dof] != 0.0

"""Limits of inverse dynamics in optimal control: what they bound, at which samples, refused."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.control import (
    AngularMomentumLimit,
    DistanceLimits,
    DisturbanceObserver,
    HalfSpace,
    JointLimits,
)
from mbcasadi.errors import ProblemError

N, T = 12, 0.05
WEIGHTS = {"Q": [30.0, 30.0, 1.0, 1.0], "R": 1e-3, "Q_end": [30.0, 30.0, 1.0, 1.0]}
REACHED = 1e-6  # of ipopt's rows
ARM = """
<mujoco>
  <option gravity="0 0 0"/><compiler angle="radian"/>
  <default><joint axis="0 1 0" limited="true" range="-2 2"/><geom mass="1"/></default>
  <worldbody>
    <geom name="post" type="sphere" size=".1" pos=".35 0 -.45" mass="0"/>
    <body name="upper"><joint name="a"/><geom name="upper" type="capsule" fromto="0 0 0 .4 0 0" size=".03"/>
      <body name="fore" pos=".4 0 0"><joint name="b"/>
        <geom name="fore" type="capsule" fromto=".1 0 0 .4 0 0" size=".03"/><site name="hand" pos=".4 0 0"/></body></body>
  </worldbody>
  <actuator><motor joint="a"/><motor joint="b"/></actuator>
</mujoco>
"""  # noqa: E501
GOAL = [1.2, 0.8]  # rad, hand low and turned in: on the way through all that is limited


def plan(*limits):
    """Return the motion to `GOAL`, solved, and MuJoCo's data at each sample."""
    system, model = mb.read_mjcf(ARM), mujoco.MjModel.from_xml_string(ARM)
    ocp = mpc.optimal_control_problem(system, N, T, [mpc.Cost(**WEIGHTS), *limits])
    found = mpc.solve_ocp(ocp, np.zeros(4), ocp.parameters(setpoint_q=GOAL))
    assert found.solved, found.in_words
    samples = []
    for x in found.x:
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = np.split(x, 2)
        mujoco.mj_forward(model, data)
        mujoco.mj_subtreeVel(model, data)
        samples.append(data)
    return found, model, samples


def gap(model, data):
    """Return the distance of fore arm and post."""
    ends = [model.geom(name).id for name in ("fore", "post")]
    return mujoco.mj_geomDistance(model, data, *ends, 1.0, None)


MEASURES = {
    "half-space": (HalfSpace("hand", -0.4, 5.0), lambda _, d: d.site("hand").xpos[2], -0.4),
    "distance": (DistanceLimits(5.0, margin=0.05, pairs=("fore on post",)), gap, 0.05),
    "momentum": (AngularMomentumLimit(0.1), lambda _, d: -abs(d.subtree_angmom[0, 1]), -0.1),
    "range": (
        JointLimits(("a",), margin=1.2, braking=9.0),
        lambda _, d: -d.joint("a").qpos[0],
        -0.8,
    ),
    "speed": (
        JointLimits(("a",), velocity=1.5, braking=9.0),
        lambda _, d: -abs(d.joint("a").qvel[0]),
        -1.5,
    ),
}


@pytest.mark.parametrize("kind", MEASURES)
def test_a_limit_holds_at_every_sample_and_without_it_is_passed(kind):
    limit, measure, least = MEASURES[kind]
    values = [
        min(measure(model, d) for d in samples) for _, model, samples in (plan(limit), plan())
    ]
    assert values[0] == pytest.approx(least, abs=1e-5)
    assert values[1] < least - 0.02


@pytest.mark.parametrize("kind", ["half-space", "distance", "range"])
@pytest.mark.every(3)
def test_a_real_time_iteration_comes_to_the_same_plan_and_its_c_too(kind, tmp_path):
    limit, start = MEASURES[kind][0], np.zeros(2)
    best = plan(limit)[0]
    parts = [mpc.Cost(**WEIGHTS), limit]
    ocp = mpc.optimal_control_problem(mb.read_mjcf(ARM), N, T, parts)
    rti = mpc.real_time_iteration(ocp, shift=False)
    z, p = rti.controller.z0, ocp.parameters(setpoint_q=GOAL).ravel()
    for _ in range(30):
        _, z, status, *_ = rti.function(start, start, p, z)
    assert int(status) == 0
    np.testing.assert_allclose(rti.trajectory(z)[0], best.x, atol=1e-6)
    in_c = mb.export_c(rti, tmp_path / kind).load(flags=("-O0",))
    found, expected = (np.array(f(start, start, p, z)[0]) for f in (in_c, rti.function))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_measured_state_beyond_a_limit_is_a_start_like_others():
    samples = plan(HalfSpace("hand", 0.02, 5.0))[2]
    heights = [data.site("hand").xpos[2] for data in samples]
    assert abs(heights[0]) < REACHED
    assert min(heights[1:]) > 0.02 - REACHED


def test_ranges_of_joints_are_bounds_of_x_and_no_rows():
    system = mb.read_mjcf(ARM)
    ocp = mpc.optimal_control_problem(system, N, T, [mpc.Cost(R=1.0), JointLimits(braking=9.0)])
    assert not len(ocp.path_bounds)
    np.testing.assert_allclose(ocp.x_bounds[:2], [[-2, 2]] * 2)


def test_joints_that_nothing_drives_have_ranges_over_a_horizon():
    """They need no braking there, and inverse dynamics could give them none."""
    pendulum = mb.read_mjcf(ARM.replace('<motor joint="a"/>', ""))
    parts = [mpc.Cost(R=1.0), JointLimits(("a",), margin=1.5)]
    ocp = mpc.optimal_control_problem(pendulum, N, T, parts)
    np.testing.assert_allclose(ocp.x_bounds[0], [-0.5, 0.5])


def test_of_two_limits_of_a_joint_the_tighter_one_holds():
    """Of two tables, either may be the tighter one at either end."""
    bounds = mpc.StageBounds(q=[[-1.5, 0.5], [-3.0, 3.0]])
    parts = [mpc.Cost(R=1.0), JointLimits(("a", "b"), margin=1.0), bounds]
    for order in (parts, parts[::-1]):
        ocp = mpc.optimal_control_problem(mb.read_mjcf(ARM), N, T, order)
        np.testing.assert_allclose(ocp.x_bounds[:2], [[-1, 0.5], [-1, 1]])


def test_parts_that_bound_no_state_are_refused():
    parts = [mpc.Cost(R=1.0), JointLimits(("a",), acceleration=5.0)]
    with pytest.raises(ProblemError, match="over a horizon JointLimits bound positions and speeds"):
        mpc.optimal_control_problem(mb.read_mjcf(ARM), N, T, parts)
    quadruped = mb.read_mjcf(models.path("quadruped"))
    with pytest.raises(ProblemError, match="'observer' is a part of inverse dynamics that bounds"):
        mpc.optimal_control_problem(quadruped, N, T, [mpc.Cost(R=1.0), DisturbanceObserver(2.0)])

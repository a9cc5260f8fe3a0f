"""A frame beyond a plane, and a bounded angular momentum: in MuJoCo, tuned, flagged, refused."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.refusals import refused

import mbcasadi as mb
from mbcasadi.control import (
    AngularMomentumLimit,
    DistanceLimits,
    FrameTask,
    HalfSpace,
    InverseDynamicsQP,
    PostureTask,
)
from mbcasadi.description.status import Flag
from mbcasadi.errors import ProblemError, UnknownNameError

H, LEVEL = 0.002, 0.25  # s, m
LARGEST = 0.3  # kg m²/s
ARM = """
<mujoco><option timestep="0.002" integrator="implicitfast"/>
  <default><motor ctrllimited="true" ctrlrange="-80 80"/></default>
  <worldbody><body name="upper" pos="0 0 .6"><joint name="shoulder" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>
      <body name="lower" pos=".4 0 0"><joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
        <site name="hand" pos=".3 0 0"/></body></body></worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/></actuator></mujoco>
"""
STOOL = """
<mujoco><option timestep="0.002" integrator="implicitfast"/>
  <default><motor ctrllimited="true" ctrlrange="-20 20"/></default>
  <worldbody><body name="seat" pos="0 0 1"><joint name="turn" axis="0 0 1"/>
      <geom type="cylinder" size=".15 .05" mass="4"/>
      <body name="arm" pos="0 0 .1"><joint name="swing" axis="0 0 1"/>
        <geom type="capsule" fromto="-.3 0 0 .3 0 0" size=".03" mass="1"/></body></body>
  </worldbody>
  <actuator><motor joint="turn"/><motor joint="swing"/></actuator></mujoco>
"""
START = np.array([0.2, 0.6])
PLANE = HalfSpace("hand", LEVEL, braking=5.0)


def law_of(*parts, text=ARM, **options):
    hand = FrameTask("hand", position="xz", orientation="", kp=400.0)
    tasks = [hand, PostureTask(kp=1.0, weight=1e-3)]
    tasks = [PostureTask(kp=400.0)] if text == STOOL else tasks
    return InverseDynamicsQP(mb.read_mjcf(text), tasks, parts=parts, period=H, **options)


def run(law, text, ref, count, seen, q0=(0.0, 0.0), **tuning):
    """Return what `seen` sees at each tick of a loop with MuJoCo, the flags, and the last pose."""
    model = mujoco.MjModel.from_xml_string(text)
    data, z, found, flags = mujoco.MjData(model), law.z0, [], Flag(0)
    data.qpos[:] = q0
    for _ in range(count):
        solution = law.solve(data.qpos, data.qvel, ref, z=z, **tuning)
        assert solution.solved, solution.explain()
        z, flags = solution.z_next, flags | solution.flags
        data.ctrl[:] = solution.u
        mujoco.mj_step(model, data)
        found.append(seen(model, data))
    return np.array(found), flags, data.qpos


def lowest(law, **tuning):
    """Return the lowest height of the hand, sent 0.2 m below the level, and all flags."""
    here = np.array(law.system.frame("hand").pose(START)[0]).ravel()
    ref = law.reference(hand_position=[here[0], LEVEL - 0.2])
    height = lambda _, data: data.site("hand").xpos[2]  # noqa: E731
    heights, flags, _ = run(law, ARM, ref, 500, height, START, **tuning)
    return heights.min(), flags


@pytest.mark.long
def test_the_hand_stops_at_the_plane_and_without_it_goes_below():
    height, flags = lowest(law_of(PLANE))
    assert LEVEL - 1e-4 < height < LEVEL + 1e-3  # explicit steps: 1e-4 of a tick's motion
    assert Flag.UNVIABLE not in flags
    assert lowest(law_of())[0] < LEVEL - 0.1


def test_the_offset_is_tuned_and_the_normal_has_any_length():
    part = HalfSpace("hand", LEVEL, braking=5.0, normal=(0, 0, 3.0))
    law = law_of(part, tunable=("limits",))
    height, _ = lowest(law, tuning={"hand.half_space.offset": LEVEL + 0.05})
    assert LEVEL + 0.0499 < height < LEVEL + 0.051


def test_a_plane_that_cannot_be_kept_is_flagged_and_explained():
    law = law_of(PLANE)
    assert Flag.UNVIABLE in law.solve(START, [30.0, 30.0]).flags
    assert "half-space 'hand'" in law.explain(START, [30.0, 30.0]).unviable


def test_the_law_is_what_a_distance_limit_makes_of_the_same_plane():
    """A sphere of no size over a floor at the level has the row of the half-space."""
    floor = f'<geom name="floor" type="plane" size="1 1 .1" pos="0 0 {LEVEL}"/><body name="upper"'
    ball = '<geom name="ball" type="sphere" size="1e-6" pos=".3 0 0" mass="0"/><site name="hand"'
    text = ARM.replace('<body name="upper"', floor).replace('<site name="hand"', ball)
    theirs = law_of(text=text, distance_limits=DistanceLimits(5.0, 0.0, pairs=("ball on floor",)))
    ours, rng = law_of(PLANE), np.random.default_rng(0)
    for _ in range(20):
        q, v = START + 0.2 * rng.standard_normal(2), rng.standard_normal(2)
        qp, other = ours.problem(q, v), theirs.problem(q, v)
        row = qp.row_names.index("half-space 'hand'")
        same = other.row_names.index("distance 'ball on floor'")
        assert_allclose(qp.lba[row], other.lba[same], rtol=1e-3, atol=1e-2)
        assert_allclose(qp.A_qp[row], other.A_qp[same], rtol=1e-4, atol=1e-5)


def largest_momentum(law, **tuning):
    """Return the largest momentum about the axis on the way to another pose, and what is missed."""

    def momentum(model, data):
        mujoco.mj_subtreeVel(model, data)
        return abs(data.subtree_angmom[0, 2])

    ref = law.reference(posture_q=[1.0, 1.5])
    found, _, q = run(law, STOOL, ref, 600, momentum, **tuning)
    return found.max(), q - [1.0, 1.5]


@pytest.mark.long
def test_momentum_stays_within_its_bound_and_the_pose_is_reached_all_the_same():
    bounded, miss = largest_momentum(law_of(AngularMomentumLimit(LARGEST), text=STOOL))
    assert 0.99 * LARGEST < bounded < LARGEST * (1 + 1e-3)
    assert np.abs(miss).max() < 0.02
    assert largest_momentum(law_of(text=STOOL))[0] > 2 * LARGEST


@pytest.mark.long
def test_the_bound_is_tuned_by_its_axis_and_others_have_none():
    part = AngularMomentumLimit((np.inf, np.inf, 1.0))
    law = law_of(part, text=STOOL, tunable=("limits",))
    assert [x.name for x in law.tuning if "momentum" in x.name] == ["angular_momentum.z"]
    bounded, _ = largest_momentum(law, tuning={"angular_momentum.z": LARGEST})
    assert 0.99 * LARGEST < bounded < LARGEST * (1 + 1e-3)


def test_what_is_beyond_returns_and_is_flagged():
    found = law_of(AngularMomentumLimit(LARGEST), text=STOOL).solve([0.0, 0.0], [40.0, 40.0])
    assert found.solved
    assert Flag.UNVIABLE in found.flags
    assert found.p[0] == pytest.approx(-20.0, rel=1e-6)  # all that turns the whole back


def test_what_does_not_fit_is_refused():
    refused(ProblemError, "normal", lambda: HalfSpace("hand", 0.0, 1.0, normal=(0, 0, 0)))
    refused(UnknownNameError, "palm", lambda: law_of(HalfSpace("palm", 0.0, 1.0)))
    for wrong in (0.0, -1.0, (1.0, 2.0)):
        with pytest.raises(ProblemError, match="largest"):
            AngularMomentumLimit(wrong)
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    pendulum = mb.from_lagrangian(q, v, kinetic=v**2 / 2, B=ca.SX(1))
    limit = [AngularMomentumLimit(1.0)]
    with pytest.raises((ProblemError, UnknownNameError), match="momentum"):
        InverseDynamicsQP(pendulum, [PostureTask()], parts=limit)

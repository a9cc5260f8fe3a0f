"""A frame that stays beyond a plane: in MuJoCo, beside the law without it, tuned, in C."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, HalfSpace, InverseDynamicsQP, PostureTask
from mbcasadi.description.status import Flag
from mbcasadi.errors import ProblemError, UnknownNameError

H, LEVEL = 0.002, 0.25
ARM = """
<mujoco>
  <option timestep="0.002" integrator="implicitfast"/>
  <default><motor ctrllimited="true" ctrlrange="-80 80"/></default>
  <worldbody>
    <body name="upper" pos="0 0 .6"><joint name="shoulder" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>
      <body name="lower" pos=".4 0 0"><joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
        <site name="hand" pos=".3 0 0"/></body></body>
  </worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/></actuator>
</mujoco>
"""
START = np.array([0.2, 0.6])


def law_of(parts, **options):
    hand = FrameTask("hand", position="xz", orientation="", kp=400.0)
    tasks = [hand, PostureTask(kp=1.0, weight=1e-3)]
    return InverseDynamicsQP(mb.read_mjcf(ARM), tasks, parts=parts, period=H, **options)


def lowest(law, **tuning):
    """Return the lowest height of the hand, sent 0.2 m below the level, and all flags."""
    model = mujoco.MjModel.from_xml_string(ARM)
    data, z, flags, heights = mujoco.MjData(model), law.z0, Flag(0), []
    data.qpos[:] = START
    mujoco.mj_kinematics(model, data)
    target = data.site("hand").xpos[[0, 2]] * [1, 0] + [0, LEVEL - 0.2]
    ref = law.reference(hand_position=target)
    for _ in range(500):
        solution = law.solve(data.qpos, data.qvel, ref, z=z, **tuning)
        assert solution.solved, solution.explain()
        flags, z = flags | solution.flags, solution.z_next
        data.ctrl[:] = solution.u
        mujoco.mj_step(model, data)
        heights.append(float(data.site("hand").xpos[2]))
    return min(heights), flags


def test_the_hand_stops_at_the_plane_and_without_it_goes_below():
    height, flags = lowest(law_of([HalfSpace("hand", LEVEL, braking=5.0)]))
    assert LEVEL - 1e-4 < height < LEVEL + 1e-3  # explicit steps: 1e-4 of a tick's motion
    assert Flag.UNVIABLE not in flags
    assert lowest(law_of([]))[0] < LEVEL - 0.1


def test_the_offset_is_tuned_and_the_normal_has_any_length():
    part = HalfSpace("hand", LEVEL, braking=5.0, normal=(0, 0, 3.0))
    law = law_of([part], tunable=("limits",))
    height, _ = lowest(law, tuning={"hand.half_space.offset": LEVEL + 0.05})
    assert LEVEL + 0.0499 < height < LEVEL + 0.051


def test_a_plane_that_cannot_be_kept_is_flagged_and_explained():
    law = law_of([HalfSpace("hand", LEVEL, braking=5.0)])
    found = law.explain(START, [30.0, 30.0])
    assert Flag.UNVIABLE in law.solve(START, [30.0, 30.0]).flags
    assert "half-space 'hand'" in found.unviable


def test_the_c_is_the_function(tmp_path):
    law = law_of([HalfSpace("hand", LEVEL, braking=5.0)], delay=1)
    compiled = export_c(law, tmp_path / "law").load()
    rng, z = np.random.default_rng(2), law.z0
    ref = law.reference_at(START)
    for _ in range(20):
        q, v = START + 0.2 * rng.standard_normal(2), rng.standard_normal(2)
        mine = law.solve(q, v, ref, z=z)
        u = compiled(q=q, v=v, ref=ref, mask=[], z=z)["u"]
        np.testing.assert_allclose(np.array(u).ravel(), mine.u, rtol=1e-7, atol=1e-7)
        z = mine.z_next


def test_what_does_not_fit_is_refused():
    with pytest.raises(ProblemError, match="normal"):
        HalfSpace("hand", 0.0, 1.0, normal=(0, 0, 0))
    with pytest.raises(UnknownNameError, match="palm"):
        law_of([HalfSpace("palm", 0.0, 1.0)])


def test_the_law_is_what_a_distance_limit_makes_of_the_same_plane():
    """A sphere of no size over a floor at the level has the row of the half-space."""
    floor = f'<geom name="floor" type="plane" size="1 1 .1" pos="0 0 {LEVEL}"/><body name="upper"'
    ball = '<geom name="ball" type="sphere" size="1e-6" pos=".3 0 0" mass="0"/><site name="hand"'
    text = ARM.replace('<body name="upper"', floor).replace('<site name="hand"', ball)
    hand = FrameTask("hand", position="xz", orientation="", kp=400.0)
    tasks = [hand, PostureTask(kp=1.0, weight=1e-3)]
    pairs = mb.control.DistanceLimits(5.0, pairs=("ball on floor",))
    theirs = InverseDynamicsQP(mb.read_mjcf(text), tasks, distance_limits=pairs, period=H)
    ours, rng = law_of([HalfSpace("hand", LEVEL, braking=5.0)]), np.random.default_rng(0)
    for _ in range(20):
        q, v = START + 0.2 * rng.standard_normal(2), rng.standard_normal(2)
        qp, other = ours.problem(q, v), theirs.problem(q, v)
        row = qp.row_names.index("half-space 'hand'")
        same = other.row_names.index("distance 'ball on floor'")
        np.testing.assert_allclose(qp.lba[row], other.lba[same], rtol=1e-3, atol=1e-2)
        np.testing.assert_allclose(qp.A_qp[row], other.A_qp[same], rtol=1e-4, atol=1e-5)

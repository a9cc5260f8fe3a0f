"""A bounded angular momentum: in MuJoCo's motion of a body in the air, tuned, refused."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.control import AngularMomentumLimit, InverseDynamicsQP, PostureTask
from mbcasadi.description.status import Flag
from mbcasadi.errors import ProblemError, UnknownNameError

H, LARGEST = 0.002, 0.3  # s, kg m²/s
STOOL = """
<mujoco>
  <option timestep="0.002" integrator="implicitfast"/>
  <default><motor ctrllimited="true" ctrlrange="-20 20"/></default>
  <worldbody>
    <body name="seat" pos="0 0 1"><joint name="turn" axis="0 0 1"/>
      <geom type="cylinder" size=".15 .05" mass="4"/>
      <body name="arm" pos="0 0 .1"><joint name="swing" axis="0 0 1"/>
        <geom type="capsule" fromto="-.3 0 0 .3 0 0" size=".03" mass="1"/></body></body>
  </worldbody>
  <actuator><motor joint="turn"/><motor joint="swing"/></actuator>
</mujoco>
"""


def law_of(parts, **options):
    tasks = [PostureTask(("turn", "swing"), kp=400.0)]
    return InverseDynamicsQP(mb.read_mjcf(STOOL), tasks, parts=parts, period=H, **options)


def largest_momentum(law, **tuning):
    """Return the largest momentum about the axis on the way to another pose, by MuJoCo."""
    model = mujoco.MjModel.from_xml_string(STOOL)
    data, z, found = mujoco.MjData(model), law.z0, 0.0
    ref = law.reference(posture_q=[1.0, 1.5])
    for _ in range(600):
        solution = law.solve(data.qpos, data.qvel, ref, z=z, **tuning)
        assert solution.solved, solution.explain()
        z = solution.z_next
        data.ctrl[:] = solution.u
        mujoco.mj_step(model, data)
        mujoco.mj_subtreeVel(model, data)
        found = max(found, abs(data.subtree_angmom[0, 2]))
    return found, data.qpos - [1.0, 1.5]


def test_momentum_stays_within_its_bound_and_the_pose_is_reached_all_the_same():
    bounded, miss = largest_momentum(law_of([AngularMomentumLimit(LARGEST)]))
    assert 0.99 * LARGEST < bounded < LARGEST * (1 + 1e-3)
    assert np.abs(miss).max() < 0.02
    assert largest_momentum(law_of([]))[0] > 2 * LARGEST


def test_the_bound_is_tuned_by_its_axis_and_others_have_none():
    law = law_of([AngularMomentumLimit((np.inf, np.inf, 1.0))], tunable=("limits",))
    assert [x.name for x in law.tuning if "momentum" in x.name] == ["angular_momentum.z"]
    bounded, _ = largest_momentum(law, tuning={"angular_momentum.z": LARGEST})
    assert 0.99 * LARGEST < bounded < LARGEST * (1 + 1e-3)


def test_what_is_beyond_returns_and_is_flagged():
    law = law_of([AngularMomentumLimit(LARGEST)])
    found = law.solve([0.0, 0.0], [40.0, 40.0])
    assert found.solved
    assert Flag.UNVIABLE in found.flags
    assert found.p[0] == pytest.approx(-20.0, rel=1e-6)  # all that turns the whole back


def test_numbers_and_systems_that_do_not_fit_are_refused():
    for wrong in (0.0, -1.0, (1.0, 2.0)):
        with pytest.raises(ProblemError, match="largest"):
            AngularMomentumLimit(wrong)
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    pendulum = mb.from_lagrangian(q, v, kinetic=v**2 / 2, B=ca.SX(1))
    limit = [AngularMomentumLimit(1.0)]
    with pytest.raises((ProblemError, UnknownNameError), match="momentum"):
        InverseDynamicsQP(pendulum, [PostureTask()], parts=limit)

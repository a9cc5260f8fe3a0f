"""A task that keeps joints off their stops: formula, MuJoCo, C, over a horizon, refusals."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.refusals import refused

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP, JointRangeTask, PostureTask, check_task
from mbcasadi.errors import ProblemError, UnknownNameError

H = 0.002
ARM = """
<mujoco><option timestep="0.002" integrator="implicitfast" gravity="0 0 0"/>
  <compiler angle="radian"/>
  <default><geom mass="1" contype="0"/><joint axis="0 1 0" limited="true"/></default>
  <worldbody>
    <body><joint name="shoulder" range="-2 2"/><geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/>
      <body pos=".4 0 0"><joint name="elbow" range="-2 2"/><geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/>
        <body pos=".4 0 0"><joint name="wrist" range="-1 1"/><geom type="capsule" fromto="0 0 0 .2 0 0" size=".03"/>
          <site name="hand" pos=".2 0 0"/></body></body></body></worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/><motor joint="wrist"/></actuator>
</mujoco>
"""  # noqa: E501
START = np.array([0.3, -1.0, 0.95])  # the wrist 0.05 rad before its stop


def law_of(*tasks, **options):
    system = mb.read_mjcf(ARM)
    hand = FrameTask("hand", position="xz", orientation="", kp=400.0, weight=100.0)
    return InverseDynamicsQP(system, [hand, *tasks], period=H, **options)


def test_the_output_is_flat_in_the_middle_and_the_depth_in_a_border():
    task, system = JointRangeTask(("wrist",), border=0.25), mb.read_mjcf(ARM)
    q = ca.SX.sym("q", 3)
    error = ca.Function("error", [q], [task.residual(system, q, ca.SX.zeros(3), {}).error])
    found = [float(error([0.0, 0.0, x])) for x in (0.0, 0.5, 1.5, -1.5)]
    s = [(x + np.sqrt(x**2 + 0.25**2)) / 2 for x in (-0.5, 0.0, 1.0, -1.0, -2.0)]
    assert_allclose(found, [0, s[3] - s[1], s[4] - s[2], s[2] - s[4]], atol=1e-12)
    assert check_task(JointRangeTask(), mb.read_mjcf(models.path("arm_gripper"))).hold == 0


@pytest.mark.long
def test_a_hand_stays_where_it_is_while_its_wrist_leaves_the_stop():
    """Three joints for two rows of the hand: the third freedom goes to the ranges, in MuJoCo."""
    law, model = law_of(JointRangeTask(weight=1.0)), mujoco.MjModel.from_xml_string(ARM)
    data, z = mujoco.MjData(model), law.z0
    data.qpos[:] = START
    mujoco.mj_forward(model, data)
    place, ref = data.site("hand").xpos.copy(), law.reference_at(START)
    for _ in range(1500):
        solution = law.solve(data.qpos, data.qvel, ref, z=z)
        assert solution.solved
        z, data.ctrl[:] = solution.z_next, solution.u
        mujoco.mj_step(model, data)
    assert np.abs(data.site("hand").xpos - place).max() < 2e-3
    assert abs(data.qpos[2]) < 0.7
    assert np.abs(data.qvel).max() < 1e-3


def test_it_has_gains_and_weights_to_tune_and_the_same_answer_in_c(tmp_path):
    law = law_of(JointRangeTask(("wrist",)), tunable=("gains", "weights"))
    assert "ranges.weight.wrist" in [entry.name for entry in law.tuning]
    compiled = export_c(law, tmp_path / "law").load(flags=("-O0",))
    given = {"q": START, "v": [0.1, 0.2, -0.1], "ref": law.reference_at(START), "z": law.z0}
    given |= {"tuning": [entry.default for entry in law.tuning], "mask": []}
    here, there = law.function(**given), compiled(**given)
    assert int(there["status"]) == 0
    assert_allclose(np.array(there["u"]), np.array(here["u"]), atol=1e-9)


def test_over_a_horizon_it_costs_what_its_weight_says():
    """`½ Σ w |(kp y, kd J v)|²` per second, as every task, at random states."""
    task, system = JointRangeTask(weight=3.0, kp=50.0), mb.read_mjcf(ARM)
    posture = PostureTask(("elbow",), kp=10.0, kd=2.0, weight=0.5)
    ocp = mpc.optimal_control_problem(system, 4, 0.05, [task, posture])
    rng, d = np.random.default_rng(0), 1e-6
    for _ in range(20):
        q, v = rng.uniform(-1.5, 1.5, 3), rng.standard_normal(3)

        def y(q):
            top, width = np.array([2.0, 2.0, 1.0]), np.array([0.8, 0.8, 0.4]) / 2
            s = [
                (x + np.sqrt(x**2 + width**2)) / 2
                for x in (q - top + 2 * width, -q - top + 2 * width)
            ]
            return s[0] - s[1]

        rate = (y(q + d * v) - y(q - d * v)) / (2 * d)
        cost = 3.0 * np.sum((50 * y(q)) ** 2 + (2 * 50**0.5 * rate) ** 2)
        cost += 0.5 * ((10 * (q[1] - 0.2)) ** 2 + (2 * v[1]) ** 2)
        p = ocp.parameters(posture_q=0.2)[0]
        r = ocp.residual(np.r_[q, v], np.zeros(3), p).full()
        assert np.sum(r**2) == pytest.approx(0.05 * cost, rel=1e-6)


def test_what_has_no_range_is_refused():
    system = mb.read_mjcf(models.path("quadruped"))
    with pytest.raises(UnknownNameError, match="unknown slide or hinge joint 'knee'"):
        JointRangeTask(("knee",)).components(system)
    refused(ProblemError, r"border = 0.6; expected a share", lambda: JointRangeTask(border=0.6))
    with pytest.raises(ProblemError, match="every joint of 'four_bar' lacks a stop"):
        JointRangeTask().components(mb.read_mjcf(models.path("four_bar")))

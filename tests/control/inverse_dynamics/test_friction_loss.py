"""Dry friction of joints that counts: against MuJoCo's frictionloss, and in its closed loop."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import FrictionLoss, InverseDynamicsQP, PostureTask
from mbcasadi.errors import ProblemError, UnknownNameError

LOSSES = {"shoulder": 2.0, "elbow": 0.8}
ARM = """
<mujoco>
  <option timestep="0.001" integrator="implicitfast"/>
  <worldbody><body name="upper"><joint name="shoulder" axis="0 1 0" frictionloss="2"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".04" mass="3"/>
    <body name="lower" pos=".4 0 0"><joint name="elbow" axis="0 1 0" frictionloss=".8"/>
      <geom type="capsule" fromto="0 0 0 .35 0 0" size=".03" mass="2"/></body></body></worldbody>
  <actuator><motor joint="shoulder" ctrlrange="-90 90"/><motor joint="elbow" ctrlrange="-60 60"/>
  </actuator>
</mujoco>
"""


STIFF = ARM.replace("frictionloss", 'solimpfriction=".999 .999 .001" frictionloss')


def law_of(friction, model=ARM, **options):
    return InverseDynamicsQP(
        mb.read_mjcf(model), [PostureTask(kp=100.0)], friction_loss=friction, **options
    )


def test_the_losses_are_those_of_the_model():
    joints = mb.read_mjcf(ARM).tree.joints
    assert {joint.name: joint.friction_loss for joint in joints} == LOSSES
    without = ARM.replace("<option", '<option><flag frictionloss="disable"/></option><option')
    assert [joint.friction_loss for joint in mb.read_mjcf(without).tree.joints] == [0.0, 0.0]


def test_the_control_of_a_moving_arm_makes_up_for_mujocos_friction():
    """With the friction in the law, MuJoCo's joints accelerate as the law says."""
    law = law_of(FrictionLoss(speed=1e-3), STIFF)
    model = mujoco.MjModel.from_xml_string(STIFF)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, v = rng.standard_normal(2), rng.choice([-1.0, 1.0], 2) * (0.5 + rng.random(2))
        got = law.solve(q, v, law.reference_at(q))
        data.qpos, data.qvel, data.ctrl = q, v, got.u
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(data.qfrc_constraint, -np.sign(v) * [2.0, 0.8], rtol=1e-3)
        np.testing.assert_allclose(data.qacc, got.a, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("task", ["", "posture"])
def test_an_arm_with_friction_follows_its_path(task):
    def moved(t):
        w, size = 2 * np.pi * 0.5, np.array([0.5, 0.4])
        motion = 1 - np.cos(w * t), w * np.sin(w * t), w**2 * np.cos(w * t)
        return np.concatenate([size * part for part in motion])

    errors = []
    for friction in (None, FrictionLoss(task=task)):
        report = mb.validate(
            law_of(friction, delay=1), ARM, 3.0, reference=moved, q0=np.zeros(2), delay=1
        )
        run = report.runs[0].recording
        assert np.all(run.status == 0)
        errors.append(np.sqrt(np.mean(run.monitor["error"][1000:] ** 2)))
    assert errors[0] > 1e-2
    assert errors[1] < 0.15 * errors[0]


FINGER = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody><body><joint name="slide" type="slide" frictionloss="1"/><geom size=".05" mass="1"/>
    <body pos=".1 0 0"><joint name="finger" axis="0 0 1" frictionloss="1"/>
      <inertial pos="0 .02 0" mass=".02" diaginertia="1e-4 1e-4 1e-4"/></body></body></worldbody>
  <actuator><motor joint="slide"/><motor joint="finger"/></actuator>
</mujoco>
"""


def test_a_light_finger_rests_where_its_friction_is_that_of_the_plant():
    """As steep as asked for, the friction drives the finger at low speed; the law says so."""
    speed = 0.1  # rad/s
    with pytest.warns(UserWarning, match=r"they have finger: 14 rad/s") as caught:
        law = InverseDynamicsQP(
            mb.read_mjcf(FINGER),
            [PostureTask(kp=60.0)],
            friction_loss=FrictionLoss(speed=speed),
            period=0.002,
            delay=1,
        )
    assert caught[0].filename == __file__
    assert law.controller.notes["speeds of friction losses"] == "finger: 14"
    model = mujoco.MjModel.from_xml_string(FINGER)
    model.body_mass *= 1.1
    model.body_inertia *= 1.1
    data, z, steep = mujoco.MjData(model), law.z0, np.zeros(400)
    data.qvel[:] = 1e-3
    inputs, u, rest = {"ref": np.zeros(6), "mask": []}, np.zeros(2), np.zeros(400)
    for k in range(rest.size):
        out = law.function(q=data.qpos, v=data.qvel, z=z, **inputs)
        data.ctrl, u, z = u, np.array(out["u"]).ravel(), out["z_next"]
        mujoco.mj_step(model, data)
        rest[k] = np.abs(data.qvel).max()
    mujoco.mj_resetData(model, data)
    data.qvel[:], late = 1e-3, 0.0
    for k in range(steep.size):
        data.ctrl[1], late = late, data.qvel[1] / np.hypot(data.qvel[1], speed)
        mujoco.mj_step(model, data)
        steep[k] = np.abs(data.qvel).max()
    assert steep[-100:].max() > 1.0
    assert rest[-100:].max() < 1e-3


def test_the_friction_of_a_prescribed_velocity_keeps_its_speed():
    """It is no feedback, and builds without a warning."""
    law = InverseDynamicsQP(
        mb.read_mjcf(FINGER), [PostureTask(kp=60.0)], friction_loss=FrictionLoss(task="posture")
    )
    q, v = np.zeros(2), np.zeros(2)
    moves, rests = (law.reference_at(q, {"posture.v": [0.0, s]}) for s in (0.02, 0.0))
    damped = law.tasks[0].components(law.system).index("finger")
    found = [law.solve(q, v, ref) for ref in (moves, rests)]
    force = [s.u - np.array(law.system.mass_matrix(q)) @ s.a for s in found]
    np.testing.assert_allclose(force[0][damped] - force[1][damped], 2**-0.5, rtol=1e-6)


def test_the_generated_c_is_the_function(tmp_path):
    law = law_of(FrictionLoss({"elbow": 0.5}, share=0.8, task="posture"))
    compiled = export_c(law, tmp_path / "law").load(flags=("-O0",))
    rng = np.random.default_rng(1)
    for _ in range(10):
        q, v = rng.standard_normal(2), rng.standard_normal(2)
        inputs = {"q": q, "v": v, "ref": rng.standard_normal(6), "mask": [], "z": law.z0}
        np.testing.assert_allclose(
            np.array(compiled(**inputs)["u"]), np.array(law.function(**inputs)["u"]), rtol=1e-9
        )


def test_what_is_no_loss_is_refused():
    with pytest.raises(UnknownNameError, match="wrist"):
        law_of(FrictionLoss({"wrist": 1.0}))
    with pytest.raises(UnknownNameError, match="tip"):
        law_of(FrictionLoss(task="tip"))
    with pytest.raises(ProblemError, match="at most 1"):
        FrictionLoss(share=1.2)
    with pytest.raises(ProblemError, match="zero or more"):
        FrictionLoss({"elbow": -1.0})
    without = ARM.replace('frictionloss="2"', "").replace('frictionloss=".8"', "")
    with pytest.raises(ProblemError, match="no joint of"):
        InverseDynamicsQP(mb.read_mjcf(without), [PostureTask()], friction_loss=FrictionLoss())

"""Variants of a model move as the laws of similarity, or of their actuators, say, in MuJoCo."""

import mujoco
import numpy as np
import pytest
from support.actuator_variants import motors_for_servos, servos_for_motors, weak
from support.model_variants import turned_roots
from support.scaled_models import scaled, scaled_pose

from mbcasadi import models

SIMILAR = 1e-9
"""Of coordinates, m and rad: what rounding leaves, contacts and their solver included."""

STEPS, HELD = 150, 15
"""Of a motion; steps for which a control is held."""

SERVOS = """<mujoco><worldbody><body><joint name="a" axis="0 1 0" damping=".3" armature=".01"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/><body pos=".3 0 0"><joint name="b"
type="slide" axis="1 0 0" range="-.05 .05" limited="true" stiffness="20" frictionloss=".1"/>
<geom size=".05"/></body></body></worldbody><equality><joint joint1="a" joint2="b" active="false"/>
</equality><actuator><position joint="a" kp="40" kv="2" forcerange="-9 9"/>
<velocity joint="b" kv="3"/></actuator></mujoco>"""


def largest_gap(path, s):
    """Return the largest gap to the scaled motion, the way that it went, and its contacts."""
    old, made = mujoco.MjModel.from_xml_path(str(path)), scaled(path, s)
    new = made.spec.compile()
    pairs = [(model, mujoco.MjData(model)) for model in (old, new)]
    for model, data in pairs:
        model.opt.tolerance, model.opt.iterations = 0.0, 50
        if model.nkey:
            mujoco.mj_resetDataKeyframe(model, data, 0)
    (_, first), (_, second) = pairs
    start, rng, gap, touched = first.qpos.copy(), np.random.default_rng(0), 0.0, 0
    span = np.where(old.actuator_ctrllimited[:, None], old.actuator_ctrlrange, [-1.0, 1.0])
    for step in range(STEPS):
        if step % HELD == 0:
            u = 0.3 * rng.uniform(*span.T)
        first.ctrl, second.ctrl = u, u * made.controls
        for model, data in pairs:
            mujoco.mj_step(model, data)
        gap = max(gap, float(np.abs(scaled_pose(old, first.qpos, s) - second.qpos).max()))
        touched = max(touched, first.ncon)
    assert second.time == pytest.approx(first.time * s**0.5, rel=1e-12)
    return gap, float(np.abs(first.qpos - start).max()), touched


@pytest.mark.parametrize("s", [0.5, 2.0])
@pytest.mark.parametrize("name", ["quadruped", "four_bar", "quadrotor", "servos"])
def test_a_scaled_model_moves_as_the_original(tmp_path, name, s):
    path = tmp_path / "servos.xml" if name == "servos" else models.path(name)
    if name == "servos":
        path.write_text(SERVOS)
    gap, way, touched = largest_gap(path, s)
    assert gap < SIMILAR
    assert way > 0.02
    assert touched >= 4 * (name == "quadruped")


def test_motors_push_as_servos_did_and_servos_hold_as_motors_do(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text(SERVOS)
    servos, motors = (
        mujoco.MjModel.from_xml_path(str(path)),
        mujoco.MjModel.from_xml_string(motors_for_servos(path)),
    )
    old, new = mujoco.MjData(servos), mujoco.MjData(motors)
    old.ctrl = [0.1, 0.2]
    mujoco.mj_forward(servos, old)
    new.ctrl = old.actuator_force
    mujoco.mj_forward(motors, new)
    assert new.qacc == pytest.approx(old.qacc, rel=1e-9)
    assert motors.actuator_ctrlrange[0] == pytest.approx([-9, 9])
    path.write_text(motors_for_servos(path))
    again = mujoco.MjModel.from_xml_string(servos_for_motors(path))
    held = mujoco.MjData(again)
    for _ in range(3000):
        mujoco.mj_step(again, held)
    assert held.qvel == pytest.approx([0, 0], abs=1e-6)
    assert again.actuator_forcerange[0] == pytest.approx([-9, 9])


def test_weak_motors_have_half_of_the_load():
    path = models.path("scara")
    model = mujoco.MjModel.from_xml_path(str(path))
    load = np.zeros(model.nu)
    load[1] = -8.0
    weaker = mujoco.MjModel.from_xml_string(weak(path, load))
    assert weaker.actuator_forcerange[1] == pytest.approx([-4, 4])
    others = [k for k in range(model.nu) if k != 1]
    assert np.array_equal(weaker.actuator_forcerange[others], model.actuator_forcerange[others])


def test_a_turned_arm_needs_the_same_torques(tmp_path):
    path = models.path("scara")
    old, new = (
        mujoco.MjModel.from_xml_path(str(path)),
        mujoco.MjModel.from_xml_string(turned_roots(path, 0.5 * np.pi)),
    )
    first, second = mujoco.MjData(old), mujoco.MjData(new)
    for model, data in ((old, first), (new, second)):
        data.qpos[:] = 0.1
        mujoco.mj_forward(model, data)
    assert second.qfrc_bias == pytest.approx(first.qfrc_bias, abs=1e-9)
    tip, turned = first.xpos[-1], second.xpos[-1]
    assert turned == pytest.approx([-tip[1], tip[0], tip[2]], abs=1e-6)  # six figures of the XML

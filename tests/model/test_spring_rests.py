"""Springs that yield: their force at MuJoCo's plastic state, and where their rest goes."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import dynamics, read_mjcf
from mbcasadi.control import PostureTask
from mbcasadi.control.laws import LawOptions, computed_torque
from mbcasadi.mjcf.compat import VERSION
from mbcasadi.plant import Plant
from mbcasadi.validation.agreement import agreement_with_mujoco, judge

pytestmark = pytest.mark.skipif(VERSION < (4, 0), reason="no springyield before MuJoCo 4.0")

ROUNDING = 1e-12
SPRINGS = """
<mujoco><compiler angle="radian"/><option timestep="0.002"><flag energy="enable"/></option>
<worldbody><site name="o"/>
<body><joint name="j" axis="0 1 0" stiffness="9 1" springyield=".1" springref=".05"/>
<geom size=".1" pos="0 0 .2"/><body pos="0 0 .4"><joint name="b" type="ball" stiffness="2 1"
springyield=".1"/><geom size=".1" pos="0 0 .2"/><site name="a" pos=".1 0 .1"/>
<body><joint name="s" type="slide" stiffness="30" springyield=".02"/><geom size=".1"/></body>
</body></body></worldbody><tendon>
<spatial name="t" stiffness="30 2" springyield=".05" springlength=".2 .3"><site site="o"/>
<site site="a"/></spatial>
<fixed name="f" stiffness="4" springyield=".03"><joint joint="j" coef="1"/>
<joint joint="s" coef="2"/></fixed></tendon></mujoco>
"""
RESTS = ("joint:*:springref", "joint:*:springquat", "tendon:*:springlength")
BENT = """
<mujoco><option timestep="0.002"/><worldbody><body><joint name="j" axis="0 1 0" stiffness="50"
springyield="20" armature=".05"/><geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="1"/>
</body></worldbody><actuator><motor name="m" joint="j"/></actuator></mujoco>
"""


def run():
    """Yield MuJoCo's data after each step of a motion in which all springs yield."""
    model = mujoco.MjModel.from_xml_string(SPRINGS)
    data = mujoco.MjData(model)
    data.qvel[:] = [4, 3, -2, 1, 0.5]
    for _ in range(200):
        mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        yield model, data


def test_force_and_energy_are_mujocos_wherever_the_springs_are_at_rest():
    system = read_mjcf(SPRINGS, parameters=RESTS)
    names = system.parameters.names
    start = system.parameter_values({})
    moved = 0.0
    for _, data in list_every(run(), 40):
        plant = Plant(SPRINGS)
        plant.data.plastic[:] = data.plastic
        p = np.array([plant.spring_rests[name] for name in names])
        force = system.passive_force(data.qpos, data.qvel, p).full().ravel()
        np.testing.assert_allclose(force, data.qfrc_passive, atol=ROUNDING * 30)
        assert float(system.potential_energy(data.qpos, p)) == pytest.approx(
            data.energy[0], rel=1e-12
        )
        moved = max(moved, float(np.abs(p - start).max()))
    assert moved > 0.05


def list_every(steps, count):
    """Yield each `count`-th element as it is at that time."""
    for k, step in enumerate(steps):
        if k % count == count - 1:
            yield step


def test_rests_follow_mujocos_plastic_state():
    follow = dynamics.spring_rests(read_mjcf(SPRINGS))
    plant = Plant(SPRINGS)
    rests = np.array(list(plant.spring_rests.values()))
    joints = [name.startswith("joint") for name in plant.spring_rests]
    start = np.array(rests)
    for _, data in run():
        rests = follow(data.qpos, rests).full().ravel()
        gap = np.abs(rests - data.plastic)
        assert gap[joints].max() < ROUNDING
        assert gap.max() < 1e-5  # MuJoCo takes lengths from rates: 2 m/s², half a step² of 2 ms
    assert np.abs(rests - start).min(where=np.abs(start - 1) > 0, initial=1.0) > 1e-3


def test_members_at_the_rest_of_the_model_agree_with_mujoco():
    compiled = mujoco.MjModel.from_xml_string(SPRINGS)
    system = read_mjcf(compiled)
    assert judge(agreement_with_mujoco(system, compiled, 5)).passed
    listed = {item.feature for item in system.coverage.by("plant only")}
    assert {"joint 'j', 'b', 's': springyield", "tendon 't', 'f': springyield"} <= listed


def test_the_generated_law_gets_the_rest_of_a_bent_spring_from_the_plant():
    errors, path = [], [1.2, 0.0, 0.0]
    for parameters in ((), ("joint:j:springref",)):
        system = read_mjcf(BENT, parameters=parameters)
        law = computed_torque(system, PostureTask(kp=100, kd=20), options=LawOptions(period=0.002))
        report = mb.validate(law, BENT, 1.0, reference=lambda _: path, q0=[1.2], rigid=False)
        errors.append(abs(float(report.runs[0].recording.q[-1][0]) - path[0]))
    assert errors[0] > 0.05  # the spring has yielded by 0.85 rad of 1.2
    assert errors[1] < 1e-4

"""What the step of a plant leaves of the motion that its contact forces were found for."""

import mujoco
import numpy as np
import pytest

from mbcasadi.plant.contact_share import ENOUGH, contact_share, contact_step, implicit_damping
from mbcasadi.plant.contacts import find_frame

MASS, DAMPING, LEG = 2.0, 30.0, 0.4  # kg, N s/m, m
RULES = ("Euler", "implicit", "implicitfast")


def slider(rule, servo=0.0, damping=0.0):
    """Return a ball on the ground, on slides along it and across it."""
    return mujoco.MjModel.from_xml_string(f"""<mujoco>
    <option integrator="{rule}" timestep=".002" cone="elliptic" impratio="100"/>
    <worldbody><geom type="plane" size="0 0 1" friction="1"/><body pos="0 0 .05">
    <joint name="x" type="slide" axis="1 0 0" damping="{damping}"/>
    <joint type="slide" axis="0 0 1"/>
    <geom size=".05" mass="{MASS}"/><site name="foot" pos="0 0 -.05"/></body></worldbody>
    <actuator><position joint="x" kp="0" kv="{servo}"/></actuator></mujoco>""")


def foot(model):
    """Return the frame of the foot."""
    return [find_frame(model, "foot", "site")]


def leg(rule):
    """Return a free trunk on a leg whose knee a servo damps."""
    return mujoco.MjModel.from_xml_string(f"""<mujoco><option integrator="{rule}"/>
    <worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 .7"><freejoint/>
    <geom size=".1" mass="10"/><body><joint name="hip" axis="0 1 0" damping=".3"/>
    <geom type="capsule" size=".02" fromto="0 0 0 .1 0 -{LEG}" mass="1"/>
    <body pos=".1 0 -{LEG}"><joint name="knee" axis="0 1 0"/>
    <geom type="capsule" size=".02" fromto="0 0 0 -.1 0 -.3" mass=".3"/>
    <site name="foot" pos="-.1 0 -.3"/></body></body></body></worldbody>
    <actuator><position joint="knee" kp="100" kv="5" gear="2"/></actuator></mujoco>""")


@pytest.mark.parametrize("rule", RULES)
def test_the_step_takes_the_damping_into_what_contacts_were_found_for(rule):
    model = leg(rule)
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(3).normal(size=model.nv)
    if rule == "implicit":
        data.qvel[:] = 0  # it takes in what turns, too
        data.ctrl[:] = 1.0
    M, before = np.zeros((model.nv, model.nv)), data.qvel.copy()
    mujoco.mj_step(model, data)
    mujoco.mj_fullM(model, data, M)
    h = model.opt.timestep
    got = (data.qvel - before) / h
    damped = M + h * np.diag(implicit_damping(model))
    assert np.abs(M @ got - M @ data.qacc).max() > 1e-2  # they differ
    np.testing.assert_allclose(damped @ got, M @ data.qacc, atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_the_share_of_a_mass_on_a_slide_is_that_of_its_inertia(rule):
    model, damping = slider(rule, servo=DAMPING, damping=5.0), 5.0
    damping += 0.0 if rule == "Euler" else DAMPING  # whose step leaves servos out
    share = contact_share(model, np.zeros(2), foot(model), 0.01)
    assert share == pytest.approx(MASS / (MASS + 0.01 * damping), rel=1e-12)


@pytest.mark.parametrize("rule", ["RK4", "discrete"])
def test_other_rules_leave_all_of_it(rule):
    model = leg(rule)
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(3).normal(size=model.nv)
    before = data.qvel.copy()
    mujoco.mj_step(model, data)
    np.testing.assert_allclose((data.qvel - before) / model.opt.timestep, data.qacc, atol=1e-9)
    assert contact_share(model, model.qpos0, foot(model), 0.01) == pytest.approx(1.0)


def test_a_foot_that_slides_comes_to_rest_by_the_share():
    """Within its cone it loses `s b h` of its speed in a step, b = 2 / (d_max time constant)."""
    h, constant, hardest, speed = 0.002, 0.02, 0.95, 1e-3
    for servo in (0.0, 20 * MASS / h):
        model = slider("implicitfast", servo=servo)
        model.opt.gravity[2] = -1e4  # m/s²; so large a load holds the foot within its cone
        model.opt.impratio = 1e4  # hard along the ground
        model.geom_solref[:], model.geom_solimp[:, :2] = (constant, 1.0), hardest
        data = mujoco.MjData(model)
        mujoco.mj_step(model, data, 2000)
        data.qvel[0] = speed
        mujoco.mj_step(model, data)
        share = contact_share(model, data.qpos, foot(model), h)
        assert share == pytest.approx(1 / (1 + h * servo / MASS))
        lost = share * 2 / (hardest * constant) * h
        assert 1 - data.qvel[0] / speed == pytest.approx(lost, rel=5e-3)  # contacts are soft


@pytest.mark.parametrize("damping", [1.0, 1e3, 1e4])
def test_the_step_is_halved_until_contacts_get_enough(damping):
    model = slider("implicitfast", servo=damping)
    step = contact_step(model, np.zeros(2), foot(model))
    assert contact_share(model, np.zeros(2), foot(model), step) >= ENOUGH
    if damping == 1.0:
        assert step == model.opt.timestep
    else:
        assert contact_share(model, np.zeros(2), foot(model), 2 * step) < ENOUGH


def test_what_is_touched_moves_too():
    """Of a damped finger on a ball the motion of both is what the contact is found for."""
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep=".01"/><worldbody>
    <body name="finger"><joint type="slide" axis="1 0 0" damping="{DAMPING}"/>
    <geom size=".05" mass="{MASS}"/></body><body name="ball" pos=".1 0 0">
    <joint type="slide" axis="1 0 0"/><geom size=".05" mass="1"/></body></worldbody></mujoco>""")
    frames = [find_frame(model, "finger", "body")]
    damped = 1 / (MASS + 0.01 * DAMPING)
    for touched, other in (("world", 0.0), ("ball", 1.0)):
        share = contact_share(model, np.zeros(2), frames, 0.01, model.body(touched).id)
        assert share == pytest.approx((damped + other) / (1 / MASS + other), rel=1e-9)

"""Contacts of two geoms that move: rows and forces against MuJoCo, a ball among fingers."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mbcasadi as mb
from mbcasadi.contacts import with_contacts
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant

FINGER = """<body name="f{k}" pos="{x} {y} .5"><joint name="x{k}" type="slide" axis="1 0 0"/>
<joint name="y{k}" type="slide" axis="0 1 0"/><joint name="z{k}" type="slide" axis="0 0 1"/>
<joint name="r{k}" axis="0.6 0 0.8" pos="0 0 .05"/>
<geom name="t{k}" {shape} mass=".05"/></body>"""
SHAPES = (
    'type="sphere" size=".02"',
    'type="capsule" size=".02 .03"',
    'type="box" size=".02 .02 .02" euler="0 0 60"',
)
PLACES = ((0.08, 0.0), (-0.04, 0.0693), (-0.04, -0.0693))
MOTORS = "".join(f'<motor joint="{a}{k}" ctrlrange="-9 9"/>' for k in range(3) for a in "xyzr")
MODEL = """<mujoco><option timestep="0.001" cone="elliptic" impratio="10"/>
<default><geom friction="0.8" solref="0.01 1"/></default><worldbody>
{fingers}
<body name="ball" pos="0 0 .5"><freejoint/><geom name="ball" size=".0601" mass=".1"/></body>
</worldbody><actuator>{motors}</actuator></mujoco>"""
STEP = 1e-6  # s, of central differences
RATE = 1e-7  # m/s², rounding of central differences of metres
ROUNDING = 1e-9


def text_of(shapes=SHAPES, motors=MOTORS):
    fingers = "".join(
        FINGER.format(k=k, x=x, y=y, shape=shape)
        for k, ((x, y), shape) in enumerate(zip(PLACES, shapes, strict=True))
    )
    return MODEL.format(fingers=fingers, motors=motors)


def law_of(system, **options):
    contacts = [each.as_contact(friction=0.6, min_force=1.0) for each in touching(system)]
    tasks = [FrameTask("ball", kind="body", kp=400.0), PostureTask(joints(), kp=50.0, weight=1e-3)]
    return InverseDynamicsQP(system, tasks, contacts, period=0.001, **options)


def touching(system):
    return mb.contacts_of(system, bodies=["ball"])


def joints():
    return [f"{axis}{k}" for k in range(3) for axis in "xyzr"]


system = pytest.fixture(scope="module")(lambda: mb.read_mjcf(text_of()))
law = pytest.fixture(scope="module")(lambda system: law_of(system))


def states(system, count):
    rng = np.random.default_rng(3)
    for _ in range(count):
        q = system.integrate(system.tree.q0, 0.02 * rng.standard_normal(system.nv))
        yield np.array(q).ravel(), 0.5 * rng.standard_normal(system.nv)


@pytest.mark.parametrize("last", ['type="ellipsoid" size=".02 .03 .02"', SHAPES[2]])
def test_bias_is_the_rate_of_the_material_s_velocity_while_both_bodies_roll(last):
    system = mb.read_mjcf(text_of((*SHAPES[:2], last)))
    for q, v in states(system, 4):
        ends = [np.array(system.integrate(q, s * STEP * v)).ravel() for s in (1, -1)]
        for each in touching(system):
            frame = system.frame(each.name, "contact")
            after, before = (np.array(frame.jacobian(x)) @ v for x in ends)
            bias = np.array(frame.bias(q, v)).ravel()
            assert np.linalg.norm(bias) > 1e-2  # it is there
            assert_allclose((after - before) / (2 * STEP), bias, atol=RATE)


def test_forces_move_the_bodies_of_mujoco_as_planned_and_lie_in_the_cones(system, law):
    model = mujoco.MjModel.from_xml_string(text_of())
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    ref = law.reference_at(system.tree.q0)
    for q, v in states(system, 5):
        solution = law.solve(q, 0.1 * v, ref)
        assert solution.status_text == "solved"
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, 0.1 * v, solution.u
        data.qfrc_applied[:] = 0.0
        mujoco.mj_forward(model, data)
        for each, force in zip(touching(system), solution.contact_forces, strict=True):
            _, point, normal = (np.array(x).ravel() for x in each.gap(q))
            axes = np.array(system.frame(each.name, "contact").pose(q)[1]).T
            assert_allclose(axes[0], normal, atol=ROUNDING)
            assert_allclose(axes @ axes.T, np.eye(3), atol=ROUNDING)
            assert force[0] > 1 - ROUNDING
            assert np.hypot(*force[1:]) <= 0.6 * force[0] + ROUNDING
            for geom, sign in ((each.geom2, 1.0), (each.geom1, -1.0)):
                body = int(model.geom(geom).bodyid[0])
                pull = sign * axes.T @ force
                mujoco.mj_applyFT(model, data, pull, np.zeros(3), point, body, data.qfrc_applied)
        mujoco.mj_forward(model, data)
        assert_allclose(data.qacc, solution.a, atol=ROUNDING * max(1.0, np.abs(solution.a).max()))
        for each in touching(system):
            frame = system.frame(each.name, "contact")
            rate = np.array(frame.jacobian(q)) @ solution.a + np.array(frame.bias(q, 0.1 * v)).T
            damped = rate.ravel() + law.contact_damping * np.array(frame.jacobian(q)) @ (0.1 * v)
            assert_allclose(damped[:3], 0.0, atol=1e-7)


def test_a_contact_that_is_off_carries_nothing(system, law):
    mask = np.array([1.0, 1.0, 0.0])
    q = system.tree.q0
    solution = law.solve(q, np.zeros(system.nv), law.reference_at(q), mask=mask)
    assert_allclose(solution.contact_forces[2], 0.0, atol=ROUNDING)
    assert solution.contact_forces[:2, 0].min() > 0.5


@pytest.mark.long
def test_generated_c_lifts_and_turns_a_ball_between_fingers_of_mujoco_that_roll_on_it(system, law):
    """By 20 mm and by 0.2 rad about the vertical; what is measured is MuJoCo's force."""
    q = system.tree.q0
    start = np.array(law.reference_at(q)).ravel()
    places = law.reference_slices

    def reference(t):
        ref, w = start.copy(), 2 * np.pi
        wave = 1 - np.cos(w * t), w * np.sin(w * t), w * w * np.cos(w * t)
        for rate, x in zip(("position", "velocity", "acceleration"), wave, strict=True):
            ref[places[f"ball.{rate}"]][2] += 0.01 * x
        ref[places["ball.quaternion"]] = [np.cos(0.05 * wave[0]), 0, 0, np.sin(0.05 * wave[0])]
        ref[places["ball.angular_velocity"]][2] = 0.1 * wave[1]
        ref[places["ball.angular_acceleration"]][2] = 0.1 * wave[2]
        return ref

    run = mb.validate(law, text_of(), 1.0, reference=reference, delay=1).runs[0]
    record = run.recording
    assert not record.status.any()
    lifted = record.q[:, -5] - record.q[0, -5]
    desired = 0.01 * (1 - np.cos(2 * np.pi * record.t))
    turned = 2 * np.arctan2(record.q[:, -1], record.q[:, -4])
    assert_allclose(lifted, desired, atol=1e-3)
    assert_allclose(turned, 0.1 * (1 - np.cos(2 * np.pi * record.t)), atol=0.02)
    forces = record.f_measured.reshape(-1, 3, 3)[200:]
    assert forces[:, :, 0].min() > 0.5
    contact = touching(system)[0]
    plant = Plant(text_of())
    plant.reset(record.q[-1], record.v[-1])
    plant.measure(record.u[-1])
    force, place, normal = plant.force_between(contact.geom1, contact.geom2)
    assert_allclose(normal, np.array(contact.gap(record.q[-1])[2]).ravel(), atol=1e-6)
    assert_allclose(normal @ force.force, force.normal, rtol=1e-6)
    assert_allclose(place, np.array(contact.gap(record.q[-1])[1]).ravel(), atol=1e-5)


def test_motors_that_are_too_weak_to_press_are_infeasible():
    weak = mb.read_mjcf(text_of(motors=MOTORS.replace("-9 9", "-.5 .5")))
    law = law_of(weak)
    q = weak.tree.q0
    assert law.solve(q, np.zeros(weak.nv), law.reference_at(q)).status_text == "infeasible"


def test_normals_that_turn_are_refused_where_they_have_to_be_constant(system):
    contact = touching(system)[0].as_contact()
    with pytest.raises(ProblemError, match="its normal turns with its geoms"):
        with_contacts(system, [contact])
    with pytest.raises(ProblemError, match="its normal turns with its geoms"):
        mb.equilibrium(system, contacts=[contact])
    with pytest.raises(ProblemError, match=r"slides between '.*', whose normal turns"):
        InverseDynamicsQP(system, [PostureTask()], [replace(contact, slides=True)])

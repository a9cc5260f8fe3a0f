"""Contacts that slide: against MuJoCo's matrices with friction, in its closed loop, and in C."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
import scipy
from numpy.testing import assert_allclose

import mbcasadi as mb
from mbcasadi.control import ForceFeedback, FrameTask, InverseDynamicsQP, LoadSharing, PostureTask
from mbcasadi.control.inverse_dynamics.tick import make_stages
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.qp.solver import controller_fun

MU, PRESS = 0.2, 30.0

# solreffriction: the friction of a stiff contact in MuJoCo else lifts what slides off the table
ARM = """
<mujoco><option timestep="0.001" cone="elliptic" impratio="10" integrator="implicitfast"/>
  <default><joint damping="0.2" armature="0.02"/>
    <geom contype="0" conaffinity="0"/></default>
  <worldbody><body name="base"><joint name="turn" axis="0 0 1"/>
      <geom type="capsule" fromto="0 0 0 0 0 .4" size=".05" mass="4"/>
      <body name="upper" pos="0 0 .4"><joint name="shoulder" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .4 0 0" size=".04" mass="3"/>
        <body name="lower" pos=".4 0 0"><joint name="elbow" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 .35 0 0" size=".03" mass="2"/>
          <body name="hand" pos=".35 0 0"><joint name="wrist" axis="0 1 0"/>
            <geom type="capsule" fromto="0 0 0 .1 0 0" size=".02" mass=".5"/>
            <geom name="ball" type="sphere" size=".02" pos=".12 0 0" mass=".1"/>
            <site name="tip" pos=".12 0 0"/></body></body></body></body>
    <geom name="table" type="plane" pos=".6 0 .1" size=".4 .6 .1"/></worldbody>
  <contact><pair geom1="table" geom2="ball" friction="0.2 0.2" condim="3" solref="0.004 1"
    solreffriction="-1 -5"/></contact>
  <actuator><motor joint="turn" ctrlrange="-90 90"/><motor joint="shoulder" ctrlrange="-90 90"/>
    <motor joint="elbow" ctrlrange="-60 60"/><motor joint="wrist" ctrlrange="-30 30"/></actuator>
</mujoco>
"""
ON_TABLE = (0.0, 0.3, 0.9, 0.3)  # rad, the ball 1 mm or so from the table
system = pytest.fixture(scope="module")(lambda: mb.read_mjcf(ARM))


def tip(**options):
    return Contact("tip", friction=MU, slides=True, **options)


def ball(system, **options):
    """Return the contact of the ball on the table, of the model's geometry."""
    contact = mb.contacts_of(system, ground="table")[0].as_contact(friction=MU)
    return replace(contact, slides=True, **options)


def sliding_law(system, *, contact=None, **options):
    along = FrameTask("tip", position="xy", orientation="", kp=400.0, name="tip")
    tasks = [along, PostureTask(["wrist"], kp=100.0, weight=1e-2)]
    options = {"force_weight": (1.0, 0.0, 0.0), "force_reference": True} | options
    return InverseDynamicsQP(system, tasks, [contact or tip()], **options)


def at_state(q, v):
    """Return MuJoCo's M, h, J (3, nv) and J̇v of the tip, without contacts."""
    model = mujoco.MjModel.from_xml_string(ARM)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    data.qpos, data.qvel = q, v
    mujoco.mj_forward(model, data)
    M, J, dJ = np.zeros((4, 4)), np.zeros((3, 4)), np.zeros((3, 4))
    mujoco.mj_fullM(model, data, M)
    mujoco.mj_jacSite(model, data, J, None, model.site("tip").id)
    body = model.body("hand").id
    mujoco.mj_jacDot(model, data, dJ, None, data.site("tip").xpos, body)
    return M, data.qfrc_bias - data.qfrc_passive, J, dJ @ v


@pytest.mark.parametrize(
    ("speed", "task", "levels"),
    [(0.01, "", ()), (0.5, "", ()), (0.5, "tip", ()), (0.5, "", (["tip"], ["posture"]))],
)
def test_motion_and_forces_are_those_of_the_unsymmetric_kkt_system(system, speed, task, levels):
    """Also where the friction opposes the velocity that the task asks for, along x and y."""
    law = sliding_law(system, contact=tip(slide_speed=speed, slide_task=task), levels=levels)
    rng, unlike = np.random.default_rng(0), 0.0
    for _ in range(20):
        q = np.array(ON_TABLE) + 0.2 * rng.standard_normal(4)
        v = rng.standard_normal(4)
        ref = law.reference_at(q)
        ref[law.reference_slices["force"]] = [30.0 + 10 * rng.standard_normal(), 0.0, 0.0]
        ref[law.reference_slices["tip.velocity"]] = asked = 0.3 * rng.standard_normal(2)
        got = law.solve(q, v, ref)
        assert got.solved, got.explain()
        assert all(error < 1e-6 for error in got.levels.values())
        M, h, J, bias = at_state(q, v)
        slip = asked if task else (J @ v)[:2]
        friction = -MU * slip / np.sqrt(slip @ slip + speed**2)
        push = J[2] + J[:2].T @ friction
        kkt = np.block([[M, -push[:, None]], [J[2:], np.zeros((1, 1))]])
        a, f_n = np.split(np.linalg.solve(kkt, np.r_[got.p - h, -bias[2]]), [4])
        assert_allclose(got.a, a, rtol=1e-7, atol=1e-7 * np.abs(a).max())
        expected = f_n[0] * np.r_[1.0, friction]
        assert_allclose(got.contact_forces[0], expected, atol=1e-7 * abs(f_n[0]))
        smooth = np.block([[M, -J[2:].T], [J[2:], np.zeros((1, 1))]])
        unlike += abs(np.linalg.solve(smooth, np.r_[got.p - h, -bias[2]])[4] - f_n[0])
    assert unlike > 10.0


def on_table():
    """Return a pose with the ball on the table, the wrist at 1.2 rad."""
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)

    def above(bend):
        data.qpos = [0.0, bend, 0.6, 0.4]
        mujoco.mj_kinematics(model, data)
        return data.site("tip").xpos[2] - 0.12

    return np.array([0.0, scipy.optimize.brentq(above, -1.5, 0.5), 0.6, 0.4])


def press(law, seconds=3.5, arm=ARM, **options):
    """Return the run of a press with 30 N that slides about on the table."""
    q0, phase = on_table(), np.array([0.0, 1.0])
    ref, w, size = law.reference_at(q0), 2 * np.pi * 0.5, np.array([0.05, 0.15])
    place = {name: law.reference_slices[f"tip.{name}"] for name in ("position", "velocity")}

    def sliding(t):
        now, ramp, turn = ref.copy(), min(1.0, t / 0.5), w * t + phase
        now[law.reference_slices["force"]] = [PRESS, 0, 0]
        now[place["position"]] += ramp * size * (np.sin(turn) - np.sin(phase))
        now[place["velocity"]] = ramp * size * w * np.cos(turn)
        now[law.reference_slices["tip.acceleration"]] = -ramp * size * w**2 * np.sin(turn)
        return now

    return mb.validate(law, arm, seconds, reference=sliding, q0=q0, **options).runs[0]


@pytest.mark.long
def test_a_press_slides_with_its_force_in_mujoco(system):
    """Mass +10 %, one tick late: contact is never lost, and the measured force leaves no error."""
    errors = {}
    for name, options in {
        "alone": {},
        "measured": {"force_feedback": ForceFeedback(limit=10.0, gain=20.0)},
    }.items():
        law = sliding_law(system, contact=ball(system), delay=1, **options)
        whole = press(law, delay=1, perturb={"mass": 0.1})
        run = whole.recording
        assert np.all(run.status == 0)
        assert np.all(run.contact_normal[1:] > 0)
        late = run.contact_normal[1500:, 0]
        friction = run.contact_tangential[1500:, 0] / late
        assert np.median(friction) > 0.99 * MU  # it slides
        errors[name] = late - PRESS
        (row,) = whole.contact_forces.rows  # friction is planned along with the press
        size = np.sqrt(np.mean(run.contact_tangential**2)) / whole.contact_forces.weight
        assert row.normal_rms < 0.03
        # late where the motion turns; friction with the wrong sign would be twice the size away
        assert size > 0.05
        assert row.tangential_rms < 0.8 * size
    assert np.mean(errors["alone"]) > 1.5
    assert np.sqrt(np.mean(errors["measured"] ** 2)) < 1.0
    assert abs(np.mean(errors["measured"])) < 0.05


def test_loops_of_matrices_give_the_same(system):
    law = sliding_law(system)
    q, v = np.array(ON_TABLE), np.ones(4)
    ref = law.reference_at(q)
    ref[law.reference_slices["force"]] = [PRESS, 0.0, 0.0]
    inputs = [q, v, ref, [1.0], law.z0]
    outputs = []
    for loops in (False, True):
        stages = make_stages(law, loops=loops)
        outputs.append(np.array(controller_fun("law", stages.qp, "daqp")(*inputs)[0]).ravel())
    assert_allclose(outputs[0], outputs[1], rtol=1e-9)


def test_a_body_slides_on_another_one():
    """A puck on a sled, both on rails: the sled feels the friction, and the weight of the puck."""
    text = """<mujoco><worldbody>
      <body name="sled"><joint name="sled" type="slide" axis="1 0 0"/>
        <geom size=".1" mass="5"/></body>
      <body name="puck" pos="0 0 .3"><joint name="x" type="slide" axis="1 0 0"/>
        <joint name="z" type="slide" axis="0 0 1"/><geom size=".05" mass="2"/><site name="foot"/>
      </body></worldbody>
      <actuator><motor joint="sled"/><motor joint="x"/></actuator></mujoco>"""
    contact = Contact("foot", friction=0.3, slides=True, slide_speed=1e-4, other="sled")
    law = InverseDynamicsQP(mb.read_mjcf(text), [PostureTask(["sled", "x"])], [contact])
    got = law.solve(np.zeros(3), [0.5, 2.0, 0.0])
    weight = 2 * 9.81
    assert_allclose(got.contact_forces[0], [weight, -0.3 * weight, 0], atol=1e-5)
    expected = [(got.p[0] + 0.3 * weight) / 5, (got.p[1] - 0.3 * weight) / 2, 0.0]
    assert_allclose(got.a, expected, atol=1e-5)


def test_what_cannot_slide_is_refused(system):
    for contact, options, message in (
        (tip(adhesion=1.0), {}, "adhesion"),
        (tip(slide_speed=0.0), {}, "slide_speed"),
        (tip(), {"sharing": LoadSharing(rows="all")}, "follows its normal force"),
        (tip(slide_task="tip", other="base"), {}, "slides on the world"),
        (Contact("tip", slide_task="tip"), {}, "slides False"),
    ):
        with pytest.raises(ProblemError, match=message):
            sliding_law(system, contact=contact, **options)
    with pytest.raises(UnknownNameError, match="FrameTask"):
        sliding_law(system, contact=tip(slide_task="wrist"))
    with pytest.raises(ProblemError, match="slides True"):
        mb.control.regulators.equilibrium(system, contacts=[tip()])

"""Contacts between two bodies that move: against MuJoCo's Jacobians, and a grasp in MuJoCo."""

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError

GRASP = """
<mujoco><option timestep="0.001" cone="elliptic" impratio="20"/>
  <default><geom solref="0.004 1" friction="0.8"/></default>
  <worldbody><body name="hand" pos="0 0 .5">
      <joint name="lift" type="slide" axis="0 0 1"/><joint name="turn" axis="0 1 0"/>
      <geom type="box" size=".02 .08 .02" mass="1" contype="0" conaffinity="0"/>
      <body name="left" pos="0 .06 -.08">
        <joint name="left" type="slide" axis="0 -1 0"/>
        <geom type="box" size=".015 .01 .03" mass=".2"/>
        <site name="l1" pos=".015 -.01 .02"/><site name="l2" pos="-.015 -.01 .02"/>
        <site name="l3" pos=".015 -.01 -.02"/><site name="l4" pos="-.015 -.01 -.02"/></body>
      <body name="right" pos="0 -.06 -.08">
        <joint name="right" type="slide" axis="0 1 0"/>
        <geom type="box" size=".015 .01 .03" mass=".2"/>
        <site name="r1" pos=".015 .01 .02"/><site name="r2" pos="-.015 .01 .02"/>
        <site name="r3" pos=".015 .01 -.02"/><site name="r4" pos="-.015 .01 -.02"/></body></body>
    <body name="box" pos="0 0 .42">
      <freejoint/>
      <geom name="box" type="box" size=".03 .0501 .02" mass=".5"/></body></worldbody>
  <contact><exclude body1="hand" body2="box"/></contact>
  <actuator><motor joint="lift" ctrlrange="-100 100"/><motor joint="turn" ctrlrange="-20 20"/>
    <motor joint="left" ctrlrange="-60 60"/><motor joint="right" ctrlrange="-60 60"/></actuator>
</mujoco>
"""


def pads(sides="lr", **options):
    normals = {"l": (0, 1, 0), "r": (0, -1, 0)}
    return [
        Contact(f"{side}{i}", normal=normals[side], friction=0.7, sides=4, other="box", **options)
        for side in sides
        for i in range(1, 5)
    ]


system = pytest.fixture(scope="module")(lambda: mb.read_mjcf(GRASP))


@pytest.fixture(scope="module")
def law(system):
    tasks = [
        FrameTask("box", kind="body", position="z", orientation="", kp=200.0),
        PostureTask(["turn"], kp=200.0),
    ]
    return InverseDynamicsQP(system, tasks, pads(min_force=2.0), torque_weight=1e-6)


def states(system, count=20):
    rng = np.random.default_rng(1)
    for _ in range(count):
        q = np.array(system.tree.q0)
        q[:4] += 0.02 * rng.standard_normal(4)
        q[1] = 0.5 * rng.standard_normal()
        q[4:7] += 0.02 * rng.standard_normal(3)
        q[7:] += 0.3 * rng.standard_normal(4)
        v = 0.5 * rng.standard_normal(system.nv)
        model, data = mujoco_at(q, v)
        J = np.vstack([relative_rows(model, data, pad.frame) for pad in pads()])
        yield q, v - np.linalg.pinv(J, rcond=1e-9) @ (J @ v)


def mujoco_at(q, v):
    model = mujoco.MjModel.from_xml_string(GRASP)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    data.qpos, data.qvel = q, v
    mujoco.mj_forward(model, data)
    return model, data


def relative_rows(model, data, site):
    """Return the Jacobian (3, nv) of a site's velocity from the box's material, world axes."""
    i, box = model.site(site).id, model.body("box").id
    point = data.site_xpos[i]
    jacobians = [np.zeros((3, model.nv)) for _ in range(2)]
    mujoco.mj_jacSite(model, data, jacobians[0], None, i)
    mujoco.mj_jac(model, data, jacobians[1], None, point, box)
    return jacobians[0] - jacobians[1]


def in_box(model, data, site):
    """Return the site's velocity (3,) from the box in the axes of the box."""
    R = data.body("box").xmat.reshape(3, 3)
    return R.T @ (relative_rows(model, data, site) @ data.qvel)


def test_forces_and_motion_obey_newton_and_the_contacts(system, law):
    """Of MuJoCo's inertia and Jacobians: a pair of forces at each pad, no relative acceleration."""
    solved = 0
    for q, v in states(system, 60):
        solution = law.solve(q, v)
        if solution.status:
            continue
        solved += 1
        model, data = mujoco_at(q, v)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        pull = np.zeros(model.nv)
        R = data.body("box").xmat.reshape(3, 3)
        for contact, (n, t1, t2) in zip(law.contacts, solution.contact_forces, strict=True):
            side = contact.normal[1]  # tangents of normals along y: the world's x, then n × t1
            local = np.array([t1, side * n, -side * t2])
            pull += relative_rows(model, data, contact.frame).T @ (R @ local)
            assert np.hypot(t1, t2) <= 0.7 * n + 1e-9
            assert n >= 2 - 1e-9
        u = np.array(solution.u)
        residual = M @ solution.a + data.qfrc_bias - _moment(model, data).T @ u - pull
        assert_allclose(residual, 0, atol=1e-7 * np.abs(pull).max())
        for contact in law.contacts:
            ends = []
            for sign in (1, -1):  # the pose along the motion, a step before and behind
                ahead, step = q.copy(), sign * 1e-5
                mujoco.mj_integratePos(model, ahead, v + step / 2 * solution.a, step)
                ends.append(in_box(*mujoco_at(ahead, v + step * solution.a), contact.frame))
            assert np.abs(ends[0] - ends[1]).max() / 2e-5 < 2e-5 * np.abs(solution.a).max() + 1e-5
    assert solved >= 10


def _moment(model, data):
    dense, of = np.zeros((model.nu, model.nv)), (data.moment_rownnz, data.moment_rowadr)
    mujoco.mju_sparse2dense(dense, data.actuator_moment, *of, data.moment_colind)
    return dense


@pytest.mark.long
def test_the_generated_c_holds_a_box_in_mujoco(system, law):
    """Grasped, lifted, and shaken at 1 g, with the box 10 % heavier and one tick late."""
    q0 = np.array(system.tree.q0)
    ref, w = law.reference_at(q0), 2 * np.pi * 3.0
    size = 9.81 / w**2

    def shaken(t):
        now, ramp, s, c = ref.copy(), min(1.0, t / 0.3), np.sin(w * t), np.cos(w * t)
        wave = {"position": size * s, "velocity": size * w * c, "acceleration": -size * w**2 * s}
        for name, value in wave.items():
            now[law.reference_slices[f"box.{name}"]] += ramp * value
        return now

    report = mb.validate(law, GRASP, 1.1, reference=shaken, q0=q0, perturb={"mass": 0.1}, delay=1)
    run = report.runs[0]
    assert np.all(run.recording.status == 0)
    assert run.metric("contact.slip") < 5e-4
    assert run.metric("cone.controller") > -1e-9
    forces = run.contact_forces  # axes of the moving box; corners share what they hold together
    measured, planned = (
        np.abs(x).sum(axis=1).mean(axis=0) for x in (forces.measured, forces.planned)
    )
    assert measured[0] == pytest.approx(planned[0], rel=0.1)
    assert forces.rows[-1].normal_rms < 1e-3


def test_what_cannot_touch_is_refused(system):
    with pytest.raises(ProblemError, match="are on one body"):
        InverseDynamicsQP(system, [PostureTask()], [Contact("l1", other="left")])
    with pytest.raises(ProblemError, match="only pushes"):
        mb.control.regulators.equilibrium(system, contacts=pads())
    with pytest.raises(mb.errors.UnknownNameError, match="boxx"):
        InverseDynamicsQP(system, [PostureTask()], [Contact("l1", other="boxx")])

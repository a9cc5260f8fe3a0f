"""Frames at which a foot touches the ground, against MuJoCo and by differences."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.contacts.rigid_points import points_by_body
from mbcasadi.errors import ProblemError

WALKER = """
<mujoco>
  <option cone="elliptic"/>
  <default><joint armature=".01"/></default>
  <worldbody>
    <geom name="ground" type="plane" size="5 5 1" euler="5 -8 0" friction=".6"/>
    <body name="trunk" pos="0 0 .9">
      <freejoint/><geom type="box" size=".1 .2 .1" mass="12" contype="0" conaffinity="0"/>
      {legs}
    </body>
  </worldbody>
  <actuator>{motors}</actuator>
</mujoco>
"""
LEG = """
<body name="thigh{i}" pos="0 {y} -.1">
  <joint name="hip{i}" axis="1 0 0"/><joint name="knee{i}" axis="0 1 0" pos="0 0 -.3"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".04" mass="2" contype="0" conaffinity="0"/>
  <body name="foot{i}" pos="0 0 -.6">
    <joint name="pitch{i}" axis="0 1 0"/><joint name="roll{i}" axis="1 0 0"/>
    <geom type="box" size=".05 .05 .02" mass=".8" contype="0" conaffinity="0"/>{foot}
  </body>
</body>
"""
FEET = {
    "ball": '<geom name="f{i}" type="sphere" size=".05" pos=".01 .02 -.06"/>',
    "ellipsoid": '<geom name="f{i}" type="ellipsoid" size=".1 .05 .04" euler="5 4 20"/>',
    "capsule": '<geom name="f{i}" type="capsule" fromto="-.08 0 -.05 .12 .01 -.06" size=".03"/>',
    "box": '<geom name="f{i}" type="box" size=".12 .05 .02" pos=".03 0 -.04" euler="0 3 10"/>',
    "disc": '<geom name="f{i}" type="cylinder" size=".06 .02" pos=".03 0 -.04"/>',
    "roller": '<geom name="f{i}" type="cylinder" size=".03 .07" euler="90 0 5"/>',
    "four balls": "".join(
        f'<geom name="f{{i}}{k}" size=".01" pos="{x} {y} -.05"/>'
        for k, (x, y) in enumerate([(0.1, 0.04), (0.1, -0.04), (-0.06, 0.04), (-0.06, -0.04)])
    ),
    "unlike balls": '<geom name="f{i}a" size=".01" pos=".1 0 -.05"/>'
    '<geom name="f{i}b" size=".03" pos="-.1 .02 -.03"/>',
}
COUNTS = {"capsule": 2, "box": 4, "disc": 3, "roller": 2, "four balls": 4, "unlike balls": 2}
ROUNDING = 1e-11
HELD = 1e-7  # m: feet of an equilibrium, which an iteration closes
STEP = 1e-5
DIFFERENCE = 1e-7  # central differences with that step; rates of a few 1/s
SLIP = 1e-6  # m/s², with accelerations of some 10
NEWTON = 1e-6  # N, with weights of 200


def walker(kind):
    """Return the model of a biped with a kind of foot."""
    foot = FEET[kind].replace("<geom ", '<geom contype="1" conaffinity="1" mass=".1" margin="9" ')
    legs = "".join(LEG.format(i=i, y=y, foot=foot.format(i=i)) for i, y in ((1, 0.15), (2, -0.15)))
    joints = [f"{name}{i}" for i in (1, 2) for name in ("hip", "knee", "pitch", "roll")]
    motors = "".join(f'<motor joint="{joint}"/>' for joint in joints)
    text = WALKER.format(legs=legs, motors=motors)
    return mujoco.MjModel.from_xml_string(text)


def states(system, count=3, seed=6):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        step = 0.2 * rng.normal(size=system.nv)
        yield np.array(system.integrate(system.tree.q0, step)).ravel(), rng.normal(size=system.nv)


def reported(model, q, v):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    return data


def material_rows(model, data, contact):
    """Return (3, nv): MuJoCo's Jacobian of the foot's material at its surface."""
    surface = contact.pos + contact.frame[:3] * contact.dist / 2
    rows = np.zeros((3, model.nv))
    mujoco.mj_jac(model, data, rows, None, surface, model.geom_bodyid[contact.geom[1]])
    return surface, rows


def match_of(model, data, p):
    """Return MuJoCo's surface point and Jacobian that are nearest to a point."""
    found = [material_rows(model, data, contact) for contact in data.contact[: data.ncon]]
    return min(found, key=lambda each: np.abs(each[0] - p).max())


def feet_of(system, q=None):
    return mb.contacts_of(system, ["foot1", "foot2"], "ground", q=q)


@pytest.mark.parametrize("kind", FEET)
def test_the_frame_is_at_the_surface_and_moves_as_the_material(kind):
    model = walker(kind)
    system = mb.read_mjcf(model)
    for q, v in states(system):
        data = reported(model, q, v)
        feet = feet_of(system)
        assert len(feet) == 2 * COUNTS.get(kind, 1)
        for foot in feet:
            frame = system.frame(foot.as_contact().frame, "contact")
            p, R = (np.array(x) for x in frame.pose(q))
            J = np.array(frame.jacobian(q))
            spin = np.zeros((3, model.nv))
            mujoco.mj_jacBody(model, data, None, spin, model.body(foot.bodies[1]).id)
            np.testing.assert_allclose(J[3:], spin, atol=ROUNDING)
            np.testing.assert_allclose(np.array(frame.velocity(q, v)).ravel(), J @ v, atol=ROUNDING)
            turned = np.zeros(9)
            mujoco.mju_quat2Mat(turned, np.array(frame.quaternion(q)).ravel())
            np.testing.assert_allclose(R.ravel(), turned, atol=ROUNDING)
            if kind in ("disc", "box"):  # MuJoCo takes other points where they are tilted
                rows = np.zeros((3, model.nv))
                mujoco.mj_jac(model, data, rows, None, p, model.body(foot.bodies[1]).id)
            else:
                surface, rows = match_of(model, data, p.ravel())
                np.testing.assert_allclose(p.ravel(), surface, atol=ROUNDING)
            np.testing.assert_allclose(J[:3], rows, atol=ROUNDING)


@pytest.mark.parametrize("kind", FEET)
@pytest.mark.every(3)
def test_the_bias_is_the_change_of_the_velocity_at_the_contact(kind):
    system = mb.read_mjcf(walker(kind))
    for q, v in states(system):
        ends = [system.integrate(q, sign * STEP * v) for sign in (1, -1)]
        for foot in feet_of(system):
            frame = system.frame(foot.name, "contact")
            after, before = (np.array(frame.jacobian(end)) @ v for end in ends)
            found = np.array(frame.bias(q, v)).ravel()
            np.testing.assert_allclose(found, (after - before) / (2 * STEP), atol=DIFFERENCE)


def test_a_ball_that_rolls_freely_needs_no_force_to_go_on():
    text = """<mujoco><worldbody><geom name="ground" type="plane" size="1 1 1"/>
    <body name="b" pos="0 0 .2"><freejoint/><geom name="ball" size=".2"/></body>
    </worldbody></mujoco>"""
    system = mb.read_mjcf(text)
    (contact,) = mb.contacts_of(system)
    frame = system.frame(contact.as_contact().frame, "contact")
    v = np.r_[0.2 * 3.0, 0, 0, 0, 3.0, 0]
    q = system.tree.q0
    np.testing.assert_allclose(np.array(frame.velocity(q, v))[:3], 0, atol=ROUNDING)
    # The acceleration of the material is r w² = 1.8 m/s² upwards; the constraint's bias is none.
    np.testing.assert_allclose(np.array(frame.bias(q, v)), 0, atol=ROUNDING)
    np.testing.assert_allclose(np.array(contact.bias(q, v)), 0, atol=ROUNDING)


@pytest.mark.parametrize(("kind", "groups"), [("four balls", 2), ("box", 2), ("unlike balls", 4)])
def test_points_of_one_body_that_roll_alike_are_one_group(kind, groups):
    system = mb.read_mjcf(walker(kind))
    frames = [system.frame(foot.name, "contact") for foot in feet_of(system)]
    found = points_by_body(system, frames)
    assert len(found) == groups
    for q, _ in states(system):
        for group in found:
            p, R = (np.array(x) for x in group.frame.pose(q))
            for member, arm in zip(group.members, group.arms, strict=True):
                expected = np.array(frames[member].pose(q)[0]).ravel()
                np.testing.assert_allclose(p.ravel() + R @ arm, expected, atol=ROUNDING)


def ground_axes(n):
    """Return rows n, t1, t2: t1 is the world's x axis, projected to the ground."""
    t1 = np.array([1.0, 0, 0]) - n * n[0]
    t1 /= np.linalg.norm(t1)
    return np.array([n, t1, np.cross(n, t1)])


def on_the_ground(model, data, feet, frames, q):
    """Return MuJoCo's Jacobians (3, nv) of the feet's material at the frames."""
    all_rows = []
    for foot, frame in zip(feet, frames, strict=True):
        rows, p = np.zeros((3, model.nv)), np.array(frame.pose(q)[0]).ravel()
        mujoco.mj_jac(model, data, rows, None, p, model.body(foot.bodies[1]).id)
        all_rows.append(rows)
    return all_rows


@pytest.mark.parametrize("kind", FEET)
@pytest.mark.every(3)
def test_inverse_dynamics_on_these_feet_obeys_newton_and_does_not_slip(kind):
    model = walker(kind)
    system = mb.read_mjcf(model)
    feet = feet_of(system)
    contacts = [foot.as_contact(sides=6) for foot in feet]
    tasks = [mb.control.PostureTask(), mb.control.ComTask()]
    law = mb.control.InverseDynamicsQP(system, tasks, contacts)
    frames = [system.frame(contact.frame, "contact") for contact in contacts]
    axes = ground_axes(reported(model, system.tree.q0, 0).geom("ground").xmat.reshape(3, 3)[:, 2])
    for q, v in states(system, 2):
        rows = np.vstack(on_the_ground(model, reported(model, q, 0 * v), feet, frames, q))
        v -= np.linalg.pinv(rows) @ rows @ v  # the feet roll, and do not slip
        solution = law.solve(q, v)
        assert solution.solved, solution.explain()
        data = reported(model, q, v)
        M, force = np.zeros((model.nv, model.nv)), np.zeros(model.nv)
        mujoco.mj_fullM(model, data, M)
        ends = [np.array(system.integrate(q, s * STEP * v)).ravel() for s in (1, -1)]
        J, after, before = (
            on_the_ground(model, reported(model, x, v), feet, frames, x) for x in (q, *ends)
        )
        for k, contact in enumerate(contacts):
            np.testing.assert_allclose(contact.normal, axes[0], atol=ROUNDING)
            force += J[k].T @ axes.T @ solution.contact_forces[k]
            slip = J[k] @ solution.a + (after[k] - before[k]) @ v / (2 * STEP)
            np.testing.assert_allclose(slip, 0, atol=SLIP)
        torque = np.r_[np.zeros(6), solution.u]
        missing = M @ solution.a + data.qfrc_bias - data.qfrc_passive - torque - force
        np.testing.assert_allclose(missing, 0, atol=NEWTON)


def test_what_is_no_foot_on_a_plane_makes_no_contact():
    text = """<mujoco><worldbody><geom name="ground" type="plane" size="1 1 1" condim="1"/>
    <body name="a" pos="0 0 1"><freejoint/><geom name="ball" size=".2" condim="1"/></body>
    <body name="b"><freejoint/><geom name="log" type="capsule" size=".1 .2" condim="1"/></body>
    </worldbody></mujoco>"""
    system = mb.read_mjcf(text)
    (between,) = [c for c in mb.contacts_of(system) if c.geom1 == "ball"]
    with pytest.raises(ProblemError, match="'log on ball' has condim=1, no friction"):
        between.as_contact()
    assert between.as_contact(friction=0.3).geoms == ("ball", "log")
    ground = mb.contacts_of(system, ["a"], "ground")[0]
    with pytest.raises(ProblemError, match="'ball on ground' has condim=1, no friction"):
        ground.as_contact()
    assert ground.as_contact(friction=0.3, max_force=9.0).friction == 0.3
    with pytest.raises(ProblemError, match="friction is 'high'"):
        ground.as_contact(friction="high")


def test_a_frame_that_rolls_is_no_frame_of_a_task():
    ball, box = (mb.read_mjcf(walker(kind)) for kind in ("ball", "box"))
    task = mb.control.FrameTask("f1 on ground", kind="contact")
    with pytest.raises(ProblemError, match="'f1 on ground' moves over the surface of its body"):
        task.components(ball)
    with pytest.raises(ProblemError, match="moves over the surface"):
        ball.relative_frame("f1 on ground", "trunk", kind="contact")
    corner = mb.control.FrameTask("f1 on ground, corner 0", kind="contact")
    mb.control.check_task(corner, box)


@pytest.mark.parametrize("kind", ["ball", "capsule", "box"])
@pytest.mark.every(2)
def test_an_equilibrium_on_these_feet_is_one_of_mujocos_forces(kind):
    model = walker(kind)
    system = mb.read_mjcf(model)
    feet = feet_of(system)
    contacts = [foot.as_contact() for foot in feet]
    rest = mb.equilibrium(system, system.tree.q0, contacts=contacts)
    touching = [
        np.array(system.frame(c.frame, "contact").pose(system.tree.q0)[0]) for c in contacts
    ]
    data, start = reported(model, rest.q, 0), reported(model, system.tree.q0, 0)
    axes = ground_axes(start.geom("ground").xmat.reshape(3, 3)[:, 2])
    force = np.r_[np.zeros(6), rest.u]
    for foot, place, local in zip(feet, touching, rest.contact_forces, strict=True):
        body, rows = model.body(foot.bodies[1]).id, np.zeros((3, model.nv))
        arm = start.xmat[body].reshape(3, 3).T @ (place.ravel() - start.xpos[body])
        now = data.xpos[body] + data.xmat[body].reshape(3, 3) @ arm
        np.testing.assert_allclose(now, place.ravel(), atol=HELD)
        mujoco.mj_jac(model, data, rows, None, now, body)
        force += rows.T @ axes.T @ local
    np.testing.assert_allclose(data.qfrc_bias - data.qfrc_passive, force, atol=NEWTON)
    assert np.abs(rest.contact_forces[:, 1:]).max() > 1  # friction acts at an arm of the radius


def test_frames_take_expressions():
    system = mb.read_mjcf(walker("ellipsoid"))
    q = ca.MX.sym("q", system.nq)
    pose = system.frame("f1 on ground", "contact").pose(q)
    assert pose[0].shape == (3, 1)

"""A legged robot as one rigid body, gaits, and the guide between its two controllers."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.corpora import packaged_model

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models as own_models
from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.mpc import (
    Gait,
    SwingParameters,
    rigid_body_state,
    single_rigid_body,
    single_rigid_body_mpc,
    trot,
    walking_planner,
)
from mbcasadi.mpc.legged.gait import swing_path
from mbcasadi.mpc.legged.rigid_body import next_state

ROUNDING = 1e-10
FEET = ("FL", "FR", "RL", "RR")
GAIT = trot(0.48, 0.55, start=0.3)
PERIOD, HORIZON = 0.03, 6


def numbers(value):
    return np.array(value, dtype=float)


def column(value):
    return numbers(value).ravel()


def models():
    """Return name → (model, feet): ours, and one that others wrote, whose bodies are named."""
    theirs = mujoco.MjModel.from_xml_path(str(packaged_model("gymnasium/ant")))
    legs = ("front_left_leg", "front_right_leg", "back_leg", "right_back_leg")
    return {
        "ours": (mujoco.MjModel.from_xml_path(str(own_models.path("quadruped"))), contacts()),
        "an ant": (theirs, contacts(legs, kind="body")),
    }


def contacts(names=FEET, **options):
    return [mb.Contact(name, **({"friction": 0.6, "sides": 4} | options)) for name in names]


@pytest.mark.parametrize("who", ["ours", "an ant"])
def test_the_body_has_the_mass_and_inertia_of_all_its_parts(who):
    model, feet = models()[who]
    system, rng = mb.read_mjcf(model), np.random.default_rng(0)
    data = mujoco.MjData(model)
    base = system.tree.joints[0].body
    for _ in range(5):
        q = column(system.integrate(system.tree.q0, 0.4 * rng.standard_normal(system.nv)))
        v = rng.standard_normal(system.nv)
        data.qpos, data.qvel = q, v
        mujoco.mj_forward(model, data)
        mujoco.mj_subtreeVel(model, data)
        bodies = [b for b in range(model.nbody) if model.body_rootid[b] == base]
        mass = model.body_mass[bodies].sum()
        centre = model.body_mass[bodies] @ data.xipos[bodies] / mass
        inertia = np.zeros((3, 3))
        for b in bodies:
            R, arm = data.ximat[b].reshape(3, 3), data.xipos[b] - centre
            inertia += R @ np.diag(model.body_inertia[b]) @ R.T
            inertia += model.body_mass[b] * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        R = data.xmat[base].reshape(3, 3)
        body = single_rigid_body(system, feet, q)
        assert body.mass == pytest.approx(mass, rel=ROUNDING)
        scale = np.abs(inertia).max()
        np.testing.assert_allclose(body.inertia, R.T @ inertia @ R, atol=ROUNDING * scale)
        x, R_of, arm = (numbers(one) for one in rigid_body_state(system)(q, v))
        x = x.ravel()
        np.testing.assert_allclose(Rotation.from_euler("xyz", x[:3]).as_matrix(), R, atol=ROUNDING)
        np.testing.assert_allclose(R_of, R, atol=ROUNDING)
        np.testing.assert_allclose(x[3:6], centre, atol=ROUNDING)
        np.testing.assert_allclose(x[3:6] + arm.ravel(), data.xpos[base], atol=ROUNDING)
        np.testing.assert_allclose(x[6:9], R @ v[3:6], atol=ROUNDING)
        np.testing.assert_allclose(x[9:], data.subtree_linvel[base], atol=ROUNDING)
    assert body.gravity == pytest.approx((0, 0, -9.81))
    assert body.friction * np.sqrt(2) == pytest.approx(0.6)


@pytest.mark.long
def test_gravity_that_leans_is_that_of_the_body_and_of_its_motion():
    model = mujoco.MjModel.from_xml_path(str(own_models.path("quadruped")))
    model.opt.gravity = [1.5, -0.7, -9.5]  # a slope, in axes of the ground
    system = mb.read_mjcf(model)
    q0 = system.tree.keyframes["stand"]
    body = single_rigid_body(system, contacts(), q0)
    x, feet = column(rigid_body_state(system)(q0, np.zeros(18))[0]), np.zeros(12)
    falling = column(next_state(body, 0.1)(x, feet, np.zeros(12)))
    data = mujoco.MjData(model)
    data.qpos = q0
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT.value)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.qacc[:3], model.opt.gravity, atol=1e-9)
    np.testing.assert_allclose(falling[9:], 0.1 * data.qacc[:3], atol=1e-9)
    mpc = single_rigid_body_mpc(body, HORIZON, [50] * 6 + [1] * 6, 1e-9, period=PERIOD)
    places = np.array([column(system.frame(name).pose(q0)[0]) for name in FEET])
    plan = mpc.solve(x, places, np.tile(x, (HORIZON, 1)))
    carried = -body.mass * model.opt.gravity
    np.testing.assert_allclose(plan.forces.sum(axis=0), carried, atol=1e-3 * body.weight)
    np.testing.assert_allclose(body.standing_force, carried, rtol=1e-12)
    robot = Robot(model)
    np.testing.assert_allclose(robot.guide.u0.reshape(4, 3).sum(axis=0), carried, rtol=1e-12)
    output = robot.say(0.1, q0, np.zeros(18))
    # the moment of the side forces alone; 1.7 m/s² more where they are absent
    assert np.linalg.norm(output["trunk.acceleration"]) < 0.5


@pytest.mark.long
def test_tasks_that_the_planner_does_not_know_hold_the_nominal_pose(robot):
    tasks = [*robot.law.tasks, PostureTask(weight=1e-3), FrameTask("trunk", name="head")]
    law = robot.inverse_dynamics(tasks=tasks)
    output = robot.say(0.1, robot.q0, np.zeros(18), guide=robot.planner(law=law))
    held = {name: output["ref"][place] for name, place in law.reference_slices.items()}
    np.testing.assert_allclose(held["posture.q"], robot.q0[7:], atol=0)
    p, R = (numbers(part) for part in robot.system.frame("trunk").pose(robot.q0))
    np.testing.assert_allclose(held["head.position"], p.ravel(), atol=ROUNDING)
    quat = held["head.quaternion"]
    np.testing.assert_allclose(Rotation.from_quat(quat[[1, 2, 3, 0]]).as_matrix(), R, atol=1e-9)
    assert np.abs(held["posture.v"]).max() == 0


def test_feet_may_be_points_given_as_expressions(robot):
    """The same places by their equations: guide and inverse dynamics do not see the difference."""
    q, system, names = ca.SX.sym("q", 19), robot.system, tuple(f"{name} point" for name in FEET)
    for name, site in zip(names, FEET, strict=True):
        system = system.with_frame(name, q, system.frame(site).pose(q)[0])
    tasks = [robot.law.tasks[0], *(FrameTask(name, orientation="") for name in names)]
    options = {"force_weight": 1e-3, "force_reference": True, "period": 0.002}
    law = InverseDynamicsQP(system, tasks, contacts(names), **options)
    guide, rng = robot.planner(law=law), np.random.default_rng(2)
    for _ in range(3):
        q0 = column(system.integrate(robot.q0, 0.05 * rng.standard_normal(18)))
        v, t = 0.2 * rng.standard_normal(18), 0.3 + rng.random()
        plain, points = (robot.say(t, q0, v, guide=g) for g in (robot.guide, guide))
        for name in ("ref", "mask", "outer_feet"):
            np.testing.assert_allclose(points[name], plain[name], atol=ROUNDING)
        first, second = (w.solve(q0, v, plain["ref"], mask=plain["mask"]) for w in (robot.law, law))
        assert first.solved
        assert second.solved
        np.testing.assert_allclose(second.u, first.u, atol=1e-8 * np.abs(first.u).max())


@pytest.mark.parametrize("duty", [0.4, 0.55, 1.0])
def test_feet_stand_for_their_share_and_swing_for_the_rest(duty):
    gait = Gait(0.5, duty, (0.0, 0.25, 0.5, 0.75), start=0.2)
    times = np.arange(0.7, 1.7, 1e-4) + 5e-5  # behind the first stride, which has no half swings
    on = np.array([column(gait.on_ground(t)) for t in times[::20]])
    np.testing.assert_allclose(on.mean(axis=0), duty, atol=5e-3)
    assert np.all(column(gait.on_ground(0.1)) == 1)
    assert np.all(column(gait.swing_share(0.1)) == 0)
    shares = np.array([column(gait.swing_share(t)) for t in times[::20]])
    assert np.all(shares[on > 0.5] == 0)
    assert np.all((shares >= 0) & (shares <= 1))
    if duty < 1:
        assert np.abs(shares.max(axis=0) - 1).max() < 0.02
        rising = np.diff(shares, axis=0)[(on[1:] < 0.5) & (on[:-1] < 0.5)]
        np.testing.assert_allclose(rising, 2e-3 / gait.flight, rtol=1e-6)
    schedule = column(gait.schedule(0.401, 5, 0.03)).reshape(5, 4)
    for k in range(5):
        np.testing.assert_array_equal(schedule[k], column(gait.on_ground(0.416 + 0.03 * k)))


def test_a_swing_begins_and_ends_at_rest_and_its_rates_are_derivatives():
    start, target, height, duration = [0.0, 0.1, 0.02], [0.2, 0.0, 0.05], 0.08, 0.3
    share, h = np.linspace(0, 1, 21), 1e-5

    def at(s, what):
        return column(swing_path(s, np.array(start), np.array(target), height, duration)[what])

    for s in share:
        for what in (0, 1):
            slope = (at(s + h, what) - at(s - h, what)) / (2 * h * duration)
            np.testing.assert_allclose(slope, at(s, what + 1), atol=1e-6)
    np.testing.assert_allclose(at(0.0, 0), start, atol=ROUNDING)
    np.testing.assert_allclose(at(1.0, 0), target, atol=ROUNDING)
    assert at(0.5, 0)[2] == pytest.approx(0.035 + height)
    for end in (0.0, 1.0):
        np.testing.assert_allclose(np.r_[at(end, 1), at(end, 2)], 0, atol=ROUNDING)


class Robot:
    """The quadruped with both controllers and a guide."""

    def __init__(self, model=None, **options):
        self.system = mb.read_mjcf(own_models.path("quadruped") if model is None else model)
        self.q0 = self.system.tree.keyframes["stand"]
        self.body = single_rigid_body(self.system, contacts(), self.q0)
        self.mpc = single_rigid_body_mpc(self.body, HORIZON, np.ones(12), 1e-5, period=PERIOD)
        self.law = self.inverse_dynamics()
        self.guide = self.planner(**options)

    def inverse_dynamics(self, **options):
        tasks = [FrameTask("trunk", kind="body", name="trunk")]
        tasks += [FrameTask(name, orientation="") for name in FEET]
        given = {"force_weight": 1e-3, "force_reference": True, "period": 0.002} | options
        return InverseDynamicsQP(self.system, given.pop("tasks", tasks), contacts(), **given)

    def planner(self, law=None, gait=GAIT, **options):
        return walking_planner(law or self.law, self.mpc, gait, self.q0, **options)

    def say(self, t, q, v, command=(0, 0, 0), u=None, z=None, guide=None):
        """Return the guide's outputs by name, the reference by slice too."""
        guide = guide or self.guide
        z = guide.z0 if z is None else z
        u = guide.u0 if u is None else u
        f = guide.function
        out = dict(zip(f.name_out(), map(column, f(q, v, command, u, t, z)), strict=True))
        return out | {name: out["ref"][place] for name, place in self.law.reference_slices.items()}

    def pose_at_yaw(self, yaw, by=(0, 0, 0)):
        """Return the stand, turned about the vertical and moved."""
        q = np.array(self.q0)
        q[:3] = Rotation.from_euler("z", yaw).apply(q[:3]) + by
        q[3:7] = [np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)]
        return q


@pytest.fixture(scope="module")
def robot():
    return Robot()


def test_the_desired_motion_of_the_trunk_contains_the_effect_of_the_forces(robot):
    """Independent: accelerations of a point of a rigid body under forces at the feet in contact."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        q = column(robot.system.integrate(robot.q0, 0.05 * rng.standard_normal(18)))
        v, t = rng.standard_normal(18), 0.3 + rng.random()
        u = rng.standard_normal((4, 3)) * [10, 10, 20] + [0, 0, 40]
        output = robot.say(t, q, v, u=u.ravel())
        x, R, _ = (numbers(one) for one in rigid_body_state(robot.system)(q, v))
        x, on = x.ravel(), output["mask"]
        arms = np.array([column(robot.system.frame(n).pose(q)[0]) for n in FEET]) - x[3:6]
        yaw = Rotation.from_euler("z", x[2]).as_matrix()
        moment = np.sum(on[:, None] * np.cross(arms, u), axis=0)
        alpha = np.linalg.solve(yaw @ robot.body.inertia @ yaw.T, moment)
        a = on @ u / robot.body.mass - [0, 0, 9.81]
        back, omega = q[:3] - x[3:6], R @ v[3:6]
        a = a + np.cross(alpha, back) + np.cross(omega, np.cross(omega, back))
        np.testing.assert_allclose(output["trunk.angular_acceleration"], alpha, atol=1e-8)
        np.testing.assert_allclose(output["trunk.acceleration"], a, atol=1e-8)
        expected = (on[:, None] * u)[:, [2, 0, 1]]  # n, t1, t2
        np.testing.assert_allclose(output["force"], expected.ravel(), atol=1e-12)
        assert 0 < on.sum() <= 4


def test_the_body_is_predicted_over_the_delay_of_the_mpc(robot):
    rng, late, prompt = np.random.default_rng(2), robot.guide, robot.planner(delay=0)
    v = 0.3 * rng.standard_normal(18)
    output = robot.say(0.1, robot.q0, v, command=(0.2, 0.0, 0.4), guide=late)
    first = robot.say(0.1, robot.q0, v, command=(0.2, 0.0, 0.4), guide=prompt)
    x = column(rigid_body_state(robot.system)(robot.q0, v)[0])
    np.testing.assert_allclose(first["outer_x0"], x, atol=ROUNDING)
    moved = output["outer_x0"] - x
    np.testing.assert_allclose(moved[3:5], PERIOD * x[9:11], atol=1e-2 * PERIOD)
    np.testing.assert_allclose(
        output["outer_x0"][11], x[11], atol=ROUNDING
    )  # the weight is carried
    plans = [numbers(out["outer_ref"]).reshape(HORIZON, 12) for out in (first, output)]
    np.testing.assert_allclose(plans[0][1:], plans[1][:-1], atol=ROUNDING)
    np.testing.assert_allclose(plans[0][:, 8], 0.4)
    np.testing.assert_allclose(np.diff(plans[0][:, 2]), 0.4 * PERIOD)
    np.testing.assert_allclose(np.diff(plans[0][:, 3]), 0.2 * PERIOD)
    schedules = [numbers(out["outer_mask"]).reshape(HORIZON, 4) for out in (first, output)]
    np.testing.assert_array_equal(schedules[0][1:], schedules[1][:-1])


def test_everything_turns_and_moves_with_the_robot(robot):
    """The law's question at a turned and moved pose is the turned and moved question."""
    t, v, u = 0.3 + 0.55 * 0.48 + 0.08, np.zeros(18), np.zeros(12)
    v[:6] = [0.3, -0.1, 0.05, 0.1, -0.2, 0.3]
    plain = robot.say(t, robot.q0, v, command=(0.2, 0.1, 0.3), u=u)
    yaw, by = 3.0, np.array([0.7, -0.4, 0.0])
    turn = Rotation.from_euler("z", yaw)
    w, z = np.array(v), np.array(robot.guide.z0)
    w[:3] = turn.apply(v[:3])
    z[:12] = (turn.apply(z[:12].reshape(4, 3)) + by).ravel()
    z[12:] = [*(turn.apply([z[12], z[13], 0]) + by)[:2], z[14] + yaw]
    output = robot.say(t, robot.pose_at_yaw(yaw, by), w, command=(0.2, 0.1, 0.3), u=u, z=z)
    for name in ("trunk.position", "FL.position", "FR.position"):
        np.testing.assert_allclose(output[name], turn.apply(plain[name]) + by, atol=1e-9)
    for name in ("trunk.velocity", "trunk.acceleration", "FR.velocity", "FL.acceleration"):
        np.testing.assert_allclose(output[name], turn.apply(plain[name]), atol=1e-8)
    assert 0 < plain["mask"].sum() < 4
    gone = numbers(output["outer_ref"]).reshape(HORIZON, 12)
    here = numbers(plain["outer_ref"]).reshape(HORIZON, 12)
    assert gone[0, 2] < np.pi < gone[-1, 2] + 0.1  # through the seam of the angle without a jump
    np.testing.assert_allclose(gone[:, 2], here[:, 2] + yaw, atol=1e-9)


def test_feet_land_below_the_hips_and_step_out_where_the_body_is_too_fast(robot):
    t, v = 0.3 + 0.9 * 0.48, np.zeros(18)  # FL and RR swing
    feet = np.array([column(robot.system.frame(n).pose(robot.q0)[0]) for n in FEET])
    output = robot.say(t, robot.q0, v)
    swings = output["mask"] < 0.5
    assert swings.any()
    targets = output["outer_feet"].reshape(4, 3)
    np.testing.assert_allclose(targets, feet, atol=1e-6)
    v[1] = 0.5
    pushed = robot.say(t, robot.q0, v)["outer_feet"].reshape(4, 3)
    left = (1 - column(GAIT.swing_share(t))[swings]) * GAIT.flight
    y_speed = column(rigid_body_state(robot.system)(robot.q0, v)[0])[10]
    out = (left + SwingParameters().feedback) * y_speed
    np.testing.assert_allclose(pushed[swings, 1] - feet[swings, 1], out, atol=1e-9)
    np.testing.assert_allclose(pushed[~swings], feet[~swings], atol=1e-9)
    v[1] = 50.0
    far = robot.say(t, robot.q0, v)["outer_feet"].reshape(4, 3)[swings, 1] - feet[swings, 1]
    np.testing.assert_allclose(far, left * 50.0 + SwingParameters().reach, atol=1e-2)


def test_the_pose_to_be_in_stays_on_its_leash(robot):
    z = np.array(robot.guide.z0)
    z[12:] += [3.0, -3.0, 2.0]
    output = robot.say(0.1, robot.q0, np.zeros(18), z=z)
    x = column(rigid_body_state(robot.system)(robot.q0, np.zeros(18))[0])
    np.testing.assert_allclose(output["z_next"][12:] - x[[3, 4, 2]], [0.1, -0.1, 0.1], atol=1e-9)


def test_the_c_of_the_guide_is_the_guide(robot, tmp_path):
    project = export_c(robot.guide, tmp_path / "c")
    for name in ("COMMAND_TURN", "Z_GOAL_YAW", "OUTER_REF_YAW_1", "REF_FORCE_FL_N"):
        assert f"WALKING_PLANNER_{name}" in project.header.read_text()
    program = project.load(flags=("-O0",))
    rng = np.random.default_rng(3)
    for _ in range(20):
        q = column(robot.system.integrate(robot.q0, 0.1 * rng.standard_normal(18)))
        given = (q, rng.standard_normal(18), rng.standard_normal(3), rng.standard_normal(12))
        given += (2 * rng.random(), robot.guide.z0)
        for one, other in zip(robot.guide.function(*given), program(*given), strict=True):
            np.testing.assert_allclose(column(other), column(one), rtol=1e-9, atol=1e-9)


def test_a_bad_measurement_leaves_no_trace(robot):
    t, v = 0.3 + 0.9 * 0.48, np.zeros(18)
    z = robot.guide.z0 + 0.01
    for i, bad in ((7, np.nan), (0, np.inf), (3, 0.0)):  # (3) leaves no quaternion
        q = np.array(robot.q0)
        q[i] = bad
        np.testing.assert_array_equal(robot.say(t, q, v, z=z)["z_next"], z)
    lost = robot.say(t, robot.q0, v, z=np.full(15, np.nan))
    assert lost["mask"].min() == 0
    assert np.all(np.isfinite(np.concatenate(list(lost.values()))))


def expect_refusal(robot):
    """Return what is asked → (error, words, call)."""
    planes = [mb.Contact("FL", normal=(0.1, 0, 1)), mb.Contact("FR")]
    arm = mb.read_mjcf(own_models.path("prr_arm"))
    q = arm.tree.q0
    free = mujoco.MjModel.from_xml_path(str(own_models.path("quadruped")))
    free.opt.gravity = 0
    afloat = mb.read_mjcf(free)
    system, q0 = robot.system, robot.q0
    plain = InverseDynamicsQP(system, [FrameTask("trunk")], contacts(), period=0.002)
    problem, name = err.ProblemError, err.UnknownNameError
    return {
        "no feet": (problem, "no contacts", lambda: single_rigid_body(system, [], q0)),
        "planes": (problem, "is a plane", lambda: single_rigid_body(system, planes, q0)),
        "weightless": (problem, "gravity = ", lambda: single_rigid_body(afloat, contacts(), q0)),
        "no trunk": (problem, "0 free joints", lambda: single_rigid_body(arm, [], q)),
        "shape": (err.ShapeError, "q0", lambda: single_rigid_body(system, contacts(), q0[1:])),
        "duty": (problem, "duty = 1.5", lambda: trot(0.5, 1.5)),
        "period": (problem, "period = 0", lambda: trot(0.0)),
        "offsets": (problem, "offsets", lambda: Gait(0.5, 0.5, ())),
        "feet": (problem, "same number", lambda: robot.planner(gait=Gait(0.5, 0.5, (0.0, 0.5)))),
        "delay": (problem, "delay = -1", lambda: robot.planner(delay=-1)),
        "reach": (
            problem,
            "reach = -1",
            lambda: robot.planner(stepping=SwingParameters(reach=-1.0)),
        ),
        "ratio": (
            problem,
            "multiple",
            lambda: robot.planner(law=robot.inverse_dynamics(period=0.007)),
        ),
        "tasks": (name, "slice of the reference", lambda: robot.planner(law=plain)),
        "trunk": (name, "torso.position", lambda: robot.planner(trunk="torso")),
    }


def test_what_makes_no_sense_is_refused(robot):
    for _, (error, words, call) in expect_refusal(robot).items():
        with pytest.raises(error, match=words):
            call()

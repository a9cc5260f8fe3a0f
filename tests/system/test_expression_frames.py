"""Frames given as expressions: against those of a model, by differences, and in use."""

from functools import partial

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.lagrangian_of_mjcf import lagrangian_of

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.contacts.rigid_points import points_by_body
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask, laws
from mbcasadi.mpc import optimal_control_problem
from mbcasadi.mpc.ocp.cost import Cost

EXACT = 1e-10
STEP = 1e-6
FORCES = 1e-7  # N


@pytest.mark.parametrize(("model", "site"), [("quadruped", "FL"), ("bricard", None)])
def test_a_models_own_site_as_an_expression_has_the_same_kinematics(model, site):
    """The tree's Jacobian is geometric, that of an expression a derivative."""
    system = mb.read_mjcf(models.path(model))
    name, kind = (site, "site") if site else (system.tree.bodies[-1].name, "body")
    own = system.frame(name, kind)
    q, rng = ca.SX.sym("q", system.nq), np.random.default_rng(1)
    other = system.with_frame("copy", q, *own.pose(q)).frame("copy")
    for _ in range(3):
        place = system.integrate(system.tree.q0, rng.standard_normal(system.nv))
        v = rng.standard_normal(system.nv)
        for ours, theirs in zip(other.pose(place), own.pose(place), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=EXACT)
        np.testing.assert_allclose(other.jacobian(place), own.jacobian(place), atol=EXACT)
        np.testing.assert_allclose(other.velocity(place, v), own.velocity(place, v), atol=EXACT)
        np.testing.assert_allclose(other.bias(place, v), own.bias(place, v), atol=1e-8)


def plank(driven=False):
    """A plank in a plane, `q = (x, z, angle)`, 2 m long, 3 kg, with a foot at each end."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    kinetic = 1.5 * ca.sumsqr(v[:2]) + 0.5 * v[2] ** 2
    B = np.eye(3) if driven else None
    system = mb.from_lagrangian(q, v, kinetic=kinetic, potential=3 * 9.81 * q[1], B=B, name="plank")
    for name, arm in (("left", -1.0), ("right", 1.0)):
        place = ca.vertcat(q[0] + arm * ca.cos(q[2]), 0, q[1] + arm * ca.sin(q[2]))
        system = system.with_frame(name, q, place)
    return system


def test_the_jacobian_and_bias_of_a_point_are_derivatives_of_its_place():
    frame, rng = plank().frame("right"), np.random.default_rng(2)
    q, v = rng.standard_normal(3), rng.standard_normal(3)

    def place(t):
        return frame.pose(q + t * v)[0].full().ravel()

    rate = (place(STEP) - place(-STEP)) / (2 * STEP)
    velocity = frame.velocity(q, v).full().ravel()
    np.testing.assert_allclose(velocity[:3], rate, atol=1e-8)
    np.testing.assert_array_equal(velocity[3:], 0)
    ahead, behind = (frame.velocity(q + t * v, v).full().ravel() for t in (STEP, -STEP))
    bias = (ahead - behind) / (2 * STEP)
    np.testing.assert_allclose(frame.bias(q, v).full().ravel(), bias, atol=1e-8)


def test_feet_of_a_lagrangian_carry_it_at_rest():
    """Each end of a level plank carries half its weight; the pose is found."""
    feet = [mb.Contact(name, normal=(0, 0, 1), friction=0.5) for name in ("left", "right")]
    rest = mb.equilibrium(plank(), q0=np.zeros(3), contacts=feet)
    forces = np.array(rest.contact_forces).reshape(2, 3)
    np.testing.assert_allclose(forces[:, 0], 1.5 * 9.81, atol=FORCES)
    np.testing.assert_allclose(forces[:, 1:], 0, atol=FORCES)


def test_a_task_moves_a_point_of_a_lagrangian():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    tip = ca.vertcat(ca.cos(q[0]) + ca.cos(q[0] + q[1]), 0, ca.sin(q[0]) + ca.sin(q[0] + q[1]))
    speed = ca.jtimes(tip, q, v)
    kinetic = 0.5 * ca.sumsqr(speed) + 0.5 * ca.sumsqr(v)
    arm = mb.from_lagrangian(q, v, kinetic=kinetic, B=np.eye(2)).with_frame("tip", q, tip)
    task = FrameTask("tip", position="xz", orientation="", kp=25.0)
    law = laws.computed_torque(arm, task)
    place, rate, goal = np.array([0.3, 0.8]), np.array([0.5, -0.2]), np.array([1.2, 0.9])
    u = law.function(place, rate, law.reference(tip_position=goal), [])[0]
    a = mb.forward_dynamics(arm, derivatives=False)(place, rate, u)[0].full().ravel()

    def tip_at(t):
        x, y = place + t * rate + t * t / 2 * a
        return np.array([np.cos(x) + np.cos(x + y), np.sin(x) + np.sin(x + y)])

    step = 1e-4
    second = (tip_at(step) - 2 * tip_at(0) + tip_at(-step)) / step**2
    velocity = (tip_at(step) - tip_at(-step)) / (2 * step)
    np.testing.assert_allclose(second, 25 * (goal - tip_at(0)) - 10 * velocity, atol=1e-5)
    np.testing.assert_allclose(task.hold_reference(arm, place)["position"], tip_at(0), atol=EXACT)


def test_frames_stay_when_rows_and_masks_are_added():
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    more = plank().with_rows(q, v, phi=q[1]).with_mask()
    np.testing.assert_allclose(more.frame("left").pose(np.zeros(3))[0], [[-1], [0], [0]])


def test_a_body_and_an_expression_may_have_one_name():
    """Kinds are apart, and it makes no difference whether the body was asked for before."""
    system = mb.read_mjcf(models.path("quadruped"))
    q, body = ca.SX.sym("q", system.nq), system.frame("FL_calf", "body")
    own = system.with_frame("FL_calf", q, 2 * body.pose(q)[0]).frame("FL_calf")
    np.testing.assert_allclose(own.pose(system.tree.q0)[0], 2 * body.pose(system.tree.q0)[0])


def test_what_does_not_fit_is_refused():
    system, q = plank(), ca.SX.sym("q", 3)
    with pytest.raises(err.ShapeError, match=r"position has shape \(2, 1\), expected \(3, 1\)"):
        system.with_frame("top", q, q[:2])
    with pytest.raises(err.ShapeError, match="frame 'top' depends on p; expected expressions of q"):
        system.with_frame("top", q, ca.vertcat(q[:2], ca.SX.sym("p")))
    with pytest.raises(err.ProblemError, match="has a frame 'left' already"):
        system.with_frame("left", q, q)
    with pytest.raises(err.ProblemError, match="q is None; expected a SX"):
        system.with_frame("top", None, q)
    with pytest.raises(err.UnknownNameError, match="unknown site 'top'; valid: 'left', 'right'"):
        system.frame("top")
    with pytest.raises(err.UnknownNameError, match="unknown body 'left'; valid: none"):
        system.frame("left", kind="body")
    speed = ca.SX.sym("v", 3)
    with pytest.raises(err.ShapeError, match=r"'top' depends on v_1; .* neither of v nor of the t"):
        system.with_frame("top", q, ca.vertcat(q[:2], speed[1]))
    with pytest.raises(err.ShapeError, match=r"q holds expressions: .*; expected a column of symb"):
        system.with_frame("top", 2 * q, q)
    with pytest.raises(err.ShapeError, match=r"'top': position is NaN or infinite at all of"):
        system.with_frame("top", q, ca.vertcat(q[:2], ca.sqrt(-1 - q[2] ** 2)))


def turned(angle):
    """Return the rotation about -y, which turns x to z."""
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, 0, -s), ca.horzcat(0, 1, 0), ca.horzcat(s, 0, c))


@pytest.mark.parametrize(
    ("error", "words", "rotation"),
    [
        (err.ShapeError, r"rotation has shape \(2, 2\), expected \(3, 3\)", np.eye(2)),
        (err.ShapeError, "rotation holds NaN", np.full((3, 3), np.nan)),
        (err.ProblemError, r"rotation has \|Rᵀ R - 1\| = 3", 2 * np.eye(3)),
        (err.ProblemError, "the determinant -1", np.diag([1.0, 1.0, -1.0])),
    ],
)
def test_what_is_no_rotation_is_refused(error, words, rotation):
    q = ca.SX.sym("q", 3)
    with pytest.raises(error, match=words):
        plank().with_frame("top", q, q, rotation)


def test_what_needs_axes_names_the_frame_without_them():
    system, q = plank(driven=True), ca.SX.sym("q", 3)
    with pytest.raises(err.ProblemError, match="'left' is a point without a rotation; expected ro"):
        FrameTask("left").components(system)
    with pytest.raises(err.ProblemError, match="'left' is a point without a rotation"):
        laws.computed_torque(system, FrameTask("left"))
    ends = [mb.Contact("left"), mb.Contact("right")]
    with pytest.raises(
        err.ProblemError,
        match=r"'left' and 'right' keep their distance of 2 m, .* rotation= in with",
    ):
        InverseDynamicsQP(system, [PostureTask()], ends)
    with pytest.raises(err.ProblemError, match="contact 'wall' is fixed to the world"):
        InverseDynamicsQP(
            system.with_frame("wall", q, [1, 0, 0]), [PostureTask()], [mb.Contact("wall")]
        )
    with pytest.raises(err.ShapeError, match=r"frame 'rare' is NaN or infinite at .* poses"):
        InverseDynamicsQP(
            system.with_frame("rare", q, ca.vertcat(q[:2], ca.sqrt(-q[2] - 9))),
            [PostureTask()],
            [mb.Contact("rare")],
        )
    with pytest.raises(err.UnknownNameError, match="unknown site 'toe'; valid: 'left', 'right'"):
        InverseDynamicsQP(system, [PostureTask()], [mb.Contact("toe")])


def test_one_frame_with_axes_is_enough_for_a_body():
    system, q = plank(driven=True), ca.SX.sym("q", 3)
    middle = ca.vertcat(q[0], 0, q[1])
    known = system.with_frame("middle", q, middle, turned(q[2]))
    contacts = [mb.Contact(name) for name in ("left", "right", "middle")]
    (group,) = InverseDynamicsQP(known, [PostureTask()], contacts).contact_groups
    assert group.members == (0, 1, 2)
    np.testing.assert_allclose(group.arms, [[-1, 0, 0], [1, 0, 0], [0, 0, 0]], atol=EXACT)


def test_a_body_on_a_fixed_axis_may_stand_beside_an_expression():
    """The origin of the crank never moves, but the crank does: the tree knows, poses do not."""
    system = mb.read_mjcf(models.path("five_bar"))
    q = ca.SX.sym("q", system.nq)
    system = system.with_frame("copy", q, system.frame("tool").pose(q)[0])
    frames = [system.frame("left_proximal", "body"), system.frame("copy"), system.frame("tool")]
    assert [body.members for body in points_by_body(system, frames)] == [(0,), (1, 2)]


HAND = """<mujoco><default><site size="0.01"/></default><worldbody>
<body><joint axis="0 0 1" damping="0.1"/><inertial pos="0 0 0.1" mass="2" diaginertia="1 1 1"/>
<body pos="0 0 0.3" euler="10 0 0"><joint axis="0 1 0"/>
<inertial pos="0.2 0 0" mass="1" diaginertia="0.1 0.2 0.3"/>
<body pos="0.4 0 0"><joint axis="1 0 0"/>
<inertial pos="0.1 0.05 0" mass="0.5" diaginertia="0.01 0.02 0.02"/>
<site name="hand" pos="0.1 0.1 0" euler="20 30 -40"/></body></body></body></worldbody>
<actuator><motor joint="joint0"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def hands():
    """The same three hinges as MJCF and as a Lagrangian."""
    named = HAND
    for k in range(3):
        named = named.replace("<joint axis", f'<joint name="joint{k}" axis', 1)
    motors = "".join(f'<motor joint="joint{k}" ctrlrange="-90 90"/>' for k in range(3))
    named = named.replace('<motor joint="joint0"/>', motors)
    model = mujoco.MjModel.from_xml_string(named)
    return mb.read_mjcf(named), lagrangian_of(model)


@pytest.mark.parametrize("axes", ["xyz", "zx"])
@pytest.mark.parametrize("kind", ["computed torque", "impedance", "impedance with a mass"])
def test_a_law_of_orientation_is_the_same_for_mjcf_and_lagrangian(hands, kind, axes):
    task = FrameTask("hand", position="", orientation=axes, kp=30.0)
    stiff = {"stiffness": 30.0, "damping": 4.0}
    make = {
        "computed torque": partial(laws.computed_torque, metric=np.eye(3)),  # "zx" is redundant
        "impedance": partial(laws.impedance_control, **stiff),
        "impedance with a mass": partial(laws.impedance_control, inertia=0.7, **stiff),
    }[kind]
    pair, rng = [make(system, task) for system in hands], np.random.default_rng(9)
    for _ in range(4):
        q, v = 2 * rng.standard_normal(3), rng.standard_normal(3)
        goal = {"hand_quaternion": rng.standard_normal(4)}
        first, second = (law.function(q, v, law.reference(**goal), [])[0].full() for law in pair)
        assert np.abs(first).max() > 1
        np.testing.assert_allclose(second, first, atol=1e-9 * np.abs(first).max())


def test_a_cost_of_a_frame_is_the_same_for_mjcf_and_lagrangian(hands):
    task, rng = FrameTask("hand", kp=1.0), np.random.default_rng(10)
    problems = [optimal_control_problem(s, 4, 0.05, [Cost(R=1e-3), task]) for s in hands]
    for _ in range(4):
        x, u = rng.standard_normal(6), rng.standard_normal(3)
        p = problems[0].parameters()[0]
        rows = [np.array(problem.residual(x, u, p)).ravel() for problem in problems]
        assert np.abs(rows[0]).max() > 0.1
        np.testing.assert_allclose(rows[1], rows[0], atol=EXACT)

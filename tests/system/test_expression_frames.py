"""Frames given as expressions: against those of a model, by differences, and in use."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control import FrameTask, laws

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


def plank():
    """A plank in a plane, `q = (x, z, angle)`, 2 m long, 3 kg, with a foot at each end."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    kinetic = 1.5 * ca.sumsqr(v[:2]) + 0.5 * v[2] ** 2
    system = mb.from_lagrangian(q, v, kinetic=kinetic, potential=3 * 9.81 * q[1], name="plank")
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
    u = law.function(place, rate, law.ref(tip_position=goal), [])[0]
    a = mb.forward_dynamics(arm)(place, rate, u)[0].full().ravel()

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
    with pytest.raises(err.UnsupportedFeatureError, match="'left' is given as an expression"):
        FrameTask("left").components(system)
    with pytest.raises(err.UnsupportedFeatureError, match="'left' is given as an expression"):
        mb.control.InverseDynamicsQP(
            mb.from_equations(
                q, ca.SX.sym("v", 3), M=np.eye(3), h=np.zeros(3), B=np.eye(3)
            ).with_frame("left", q, q),
            tasks=[mb.control.PostureTask()],
            contacts=[mb.Contact("left")],
        )

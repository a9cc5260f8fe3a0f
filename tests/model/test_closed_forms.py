"""Mechanisms whose equations stand in textbooks."""

import casadi as ca
import numpy as np
from model_mechanisms import TOP, Numbers, tree_of

from mbcasadi import model

ROUNDING = 1e-13
G = 9.81

DOUBLE_PENDULUM = """
<mujoco><worldbody>
  <body><joint axis="0 1 0"/><inertial pos="0 0 -0.7" mass="2" diaginertia="1e-9 1e-9 1e-9"/>
    <body pos="0 0 -0.7"><joint axis="0 1 0"/>
      <inertial pos="0 0 -0.4" mass="3" diaginertia="1e-9 1e-9 1e-9"/></body></body>
</worldbody></mujoco>
"""

POINT_INERTIA = 1e-9  # kg m²: what the model above must carry instead of point masses

CART_POLE = """
<mujoco><worldbody>
  <body><joint type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1.5" diaginertia="1 1 1"/>
    <body><joint axis="0 1 0"/><inertial pos="0 0 .5" mass=".3" diaginertia=".02 .02 .01"/></body>
  </body>
</worldbody></mujoco>
"""


def test_double_pendulum_has_the_textbook_equations():
    robot = Numbers(tree_of(DOUBLE_PENDULUM))
    l1, l2, m1, m2 = 0.7, 0.4, 2.0, 3.0
    for q, v in [model.random_state(robot.tree, np.random.default_rng(s)) for s in range(5)]:
        c2, s2 = np.cos(q[1]), np.sin(q[1])
        m22 = m2 * l2**2
        m12 = m22 + m2 * l1 * l2 * c2
        M = np.array([[(m1 + m2) * l1**2 + 2 * m12 - m22, m12], [m12, m22]])
        M += POINT_INERTIA * np.array([[2.0, 1.0], [1.0, 1.0]])
        bend = m2 * l1 * l2 * s2
        swing2 = m2 * l2 * G * np.sin(q[0] + q[1])
        h = np.array(
            [
                -bend * (2 * v[0] * v[1] + v[1] ** 2) + (m1 + m2) * l1 * G * np.sin(q[0]) + swing2,
                bend * v[0] ** 2 + swing2,
            ]
        )
        np.testing.assert_allclose(robot.M(q), M, atol=ROUNDING)
        np.testing.assert_allclose(robot.h(q, v), h, atol=100 * ROUNDING)


def test_cart_pole_has_the_textbook_equations():
    robot = Numbers(tree_of(CART_POLE))
    mc, mp, length, inertia = 1.5, 0.3, 0.5, 0.02
    for q, v in [model.random_state(robot.tree, np.random.default_rng(s)) for s in range(5)]:
        c, s = np.cos(q[1]), np.sin(q[1])
        M = np.array([[mc + mp, mp * length * c], [mp * length * c, inertia + mp * length**2]])
        h = np.array([-mp * length * s * v[1] ** 2, -mp * G * length * s])
        np.testing.assert_allclose(robot.M(q), M, atol=ROUNDING)
        np.testing.assert_allclose(robot.h(q, v), h, atol=ROUNDING)


def test_top_has_the_equations_of_euler():
    """`J ω̇ + ω × J ω = s × Rᵀ g`, in body axes about the fixed point."""
    tree = tree_of(TOP)
    robot = Numbers(tree)
    body = tree.bodies[1]
    c = body.com
    J = body.inertia + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
    frame = next(f for f in tree.frames if f.body == 1)
    R_fun = robot.of(model.frame_pose(tree, frame, robot.q)[1], robot.q)
    for q, v in [model.random_state(tree, np.random.default_rng(s)) for s in range(5)]:
        weight = body.mass * R_fun(q).T @ np.array([0.0, 0.0, -G])
        np.testing.assert_allclose(robot.M(q), J, atol=ROUNDING)
        h = np.cross(v, J @ v) - np.cross(c, weight)
        np.testing.assert_allclose(robot.h(q, v), h, atol=10 * ROUNDING)


def test_symmetric_top_precesses_at_the_steady_rate():
    """A fast top at inclination θ precesses at Ω with `J₁ Ω² cosθ - J₃ ω₃ Ω + m g l = 0`."""
    spec = TOP.replace('pos="0.1 0 0.4"', 'pos="0 0 0.4"')
    spec = spec.replace('fullinertia=".3 .4 .5 .01 .02 .03"', 'diaginertia=".3 .3 .5"')
    robot = Numbers(tree_of(spec))
    J1, J3, spin, theta, weight = 0.3 + 2 * 0.4**2, 0.5, 40.0, 0.6, 2 * G * 0.4
    roots = np.roots([J1 * np.cos(theta), -J3 * spin, weight])
    rate = roots.real.min()
    q = np.array([np.cos(theta / 2), np.sin(theta / 2), 0.0, 0.0])
    # Precession about the vertical, in body axes, plus spin about the own axis.
    v = rate * np.array([0.0, np.sin(theta), np.cos(theta)])
    v[2] = spin
    a = np.linalg.solve(robot.M(q), -robot.h(q, v))
    # In body axes the precession vector turns backwards with the spin relative to it.
    own_spin = np.array([0.0, 0.0, spin - rate * np.cos(theta)])
    expected = np.cross(rate * np.array([0.0, np.sin(theta), np.cos(theta)]), own_spin)
    np.testing.assert_allclose(a, expected, atol=1e-10 * spin)


def test_free_body_falls_and_tumbles_by_itself():
    spec = """<mujoco><worldbody><body><freejoint/>
      <inertial pos=".1 .2 .3" mass="2" fullinertia=".3 .4 .5 .01 .02 .03"/></body>
      </worldbody></mujoco>"""
    tree = tree_of(spec)
    robot = Numbers(tree)
    body = tree.bodies[1]
    frame = next(f for f in tree.frames if f.body == 1)
    R_fun = robot.of(model.frame_pose(tree, frame, robot.q)[1], robot.q)
    for q, v in [model.random_state(tree, np.random.default_rng(s)) for s in range(5)]:
        a = np.linalg.solve(robot.M(q), -robot.h(q, v))
        R, w, dw = R_fun(q), v[3:], a[3:]
        spun = np.cross(w, np.cross(w, body.com)) + np.cross(dw, body.com)
        np.testing.assert_allclose(a[:3] + R @ spun, [0.0, 0.0, -G], atol=1e-11)
        tumble = body.inertia @ dw + np.cross(w, body.inertia @ w)
        np.testing.assert_allclose(tumble, np.zeros(3), atol=1e-11)


def test_expressions_of_a_planar_pair_are_as_short_as_by_hand():
    """Masses on a plane and parallel axes leave one sine and one cosine in M."""
    tree = tree_of(DOUBLE_PENDULUM)
    q = ca.SX.sym("q", tree.nq)
    f = ca.Function("M", [q], [model.mass_matrix(tree, q)], {"cse": True})
    operations = [f.instruction_id(k) for k in range(f.n_instructions())]
    trigonometric = {ca.OP_SIN, ca.OP_COS}
    assert sum(o in trigonometric for o in operations) <= 2
    assert len(operations) <= 30

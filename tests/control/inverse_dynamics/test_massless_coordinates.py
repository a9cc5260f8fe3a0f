"""Massless coordinates and Euler parameters: M is singular, and definite along the free motion.

The judge is the KKT system of the motion in NumPy, with the control that came out.
"""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.control.laws import computed_torque, within_limits
from mbcasadi.description.status import Status

ACCELERATION = 1e-9  # relative; condition of the KKT system up to 1e6


def slider_crank(length, limit=np.inf):
    """Return a slider-crank of angles a, b and position x; the rod has no inertia."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    a, b, x = ca.vertsplit(q)
    across = length * (ca.sin(a) + 2 * ca.sin(b))
    phi = ca.vertcat(length * (ca.cos(a) + 2 * ca.cos(b)) - x, across, 3 * across)
    kinetic = 0.7 * (length * v[0]) ** 2 + 0.4 * v[2] ** 2
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=6.0 * length * ca.sin(a), B=[[1], [0], [0]], phi=phi,
        ctrl_range=[[-limit, limit]],
    )  # fmt: skip


def spinning_body():
    """Return a rigid body in four Euler parameters with a torque about each axis."""
    q, v = ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    e0, e1, e2, e3 = ca.vertsplit(q)
    G = ca.vertcat(
        ca.horzcat(-e1, e0, e3, -e2), ca.horzcat(-e2, -e3, e0, e1), ca.horzcat(-e3, e2, -e1, e0)
    )
    omega = 2 * G @ v
    kinetic = omega.T @ ca.diag([0.1, 0.2, 0.25]) @ omega / 2
    return mb.from_lagrangian(q, v, kinetic=kinetic, B=2 * G.T, phi=ca.sumsqr(q) - 1)


def states(name, system, length):
    if name == "spinning_body":
        q = np.array([0.5, 0.5, -0.5, 0.5])
        return q, np.array([0.3, -0.3, 0.1, 0.1]) - q * (q @ [0.3, -0.3, 0.1, 0.1])
    a = 0.7
    b = -np.arcsin(np.sin(a) / 2)
    q = np.array([a, b, length * (np.cos(a) + 2 * np.cos(b))])
    v = np.linalg.svd(np.array(system.constraint_jacobian(q)))[2][-1]
    return q, v / v[0]


def motion(system, q, v, u):
    """Return the acceleration that the equations of motion give, by a pseudo-inverse."""
    M, A = np.array(system.mass_matrix(q)), np.array(system.constraint_jacobian(q))
    force = np.array(system.actuation(q)) @ u - np.array(system.bias_force(q, v)).ravel()
    scale = np.abs(A).max()
    K = np.block([[M / np.abs(M).max(), A.T / scale], [A / scale, np.zeros((len(A),) * 2)]])
    c = np.array(system.constraint_bias(q, v)).ravel()
    right = np.concatenate([force / np.abs(M).max(), -c / scale])
    return (np.linalg.pinv(K, rcond=1e-14) @ right)[: len(q)]


@pytest.mark.parametrize(
    ("name", "length"),
    [("slider_crank", 1.0), ("slider_crank", 1e-3), ("slider_crank", 1e3), ("spinning_body", 1.0)],
)
def test_the_acceleration_is_that_of_the_equations_of_motion(name, length):
    system = spinning_body() if name == "spinning_body" else slider_crank(length)
    assert system.semidefinite
    controller = InverseDynamicsQP(system, [PostureTask(kp=100.0)])
    q, v = states(name, system, length)
    ref = controller.reference_at(q)
    ref[0] += 0.1
    solution = controller.solve(q, v, ref)
    assert solution.solved, solution.explain()
    size = np.array([1.0, 1.0, length]) if name == "slider_crank" else 1.0
    expected = motion(system, q, v, solution.u) / size
    np.testing.assert_allclose(
        solution.a / size, expected, atol=ACCELERATION * np.abs(expected).max()
    )
    assert np.abs(expected).max() > 1.0  # and not because nothing moves


def test_where_the_mask_leaves_the_motion_undetermined_the_status_says_so():
    """Without its loop the massless rod has no equation of motion."""
    system = slider_crank(1.0)
    controller = InverseDynamicsQP(system, [PostureTask(kp=100.0)])
    q, v = states("slider_crank", system, 1.0)
    for mask, status in (([1, 1, 1], 0), ([1, 0, 1], 0), ([0, 0, 0], 4)):
        assert controller.solve(q, v, mask=mask).status == status


def test_a_law_within_limits_moves_a_massless_rod():
    system = slider_crank(1.0, limit=100.0)
    law = within_limits(computed_torque(system, PostureTask(kp=400.0)))
    q, v = states("slider_crank", system, 1.0)
    saturated = 0
    for shift in (0.0, 0.01, 0.5):
        ref = law.reference(posture_q=q + shift * np.eye(3)[0])
        u, _, status, *_ = law.function(q=q, v=v, ref=ref, z=law.controller.z0).values()
        assert int(status) in (Status.SOLVED, Status.SATURATED)
        assert abs(float(u)) <= 100.0
        saturated += int(status) == Status.SATURATED
    assert 0 < saturated < 3

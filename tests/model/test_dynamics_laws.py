"""Laws that M and h obey whatever the mechanism: energy, power, symmetry, sparsity."""

import casadi as ca
import numpy as np
import pytest
from model_mechanisms import EVERY_JOINT, MECHANISMS, Numbers, tree_of

from mbcasadi import model

ROUNDING = 1e-12
DIFFERENCE = 3e-8  # central differences with steps of 1e-5: step² times third derivatives
STATES = 4


@pytest.fixture(scope="module", params=sorted(MECHANISMS))
def robot(request):
    return Numbers(tree_of(MECHANISMS[request.param]))


def states(robot):
    rng = np.random.default_rng(7)
    return [model.random_state(robot.tree, rng) for _ in range(STATES)]


def potential(robot):
    """Return `-Σ m gᵀ p` of the centres of mass, from the poses of the bodies alone."""
    tree, total = robot.tree, ca.SX(0)
    for frame in tree.frames:
        if frame.kind == "body":
            body = tree.bodies[frame.body]
            p, R = model.frame_pose(tree, frame, robot.q)
            total -= body.mass * ca.dot(ca.SX(ca.DM(tree.gravity)), p + R @ ca.DM(body.com))
    return robot.of(total, robot.q)


def test_mass_matrix_is_symmetric_and_positive_definite(robot):
    for q, _ in states(robot):
        M = robot.M(q)
        assert np.array_equal(M, M.T)
        assert np.linalg.eigvalsh(M).min() > 0.0


def test_mass_matrix_is_the_sum_over_bodies(robot):
    """`M = Σ m Jᵀ J + J_ωᵀ I J_ω + armature`, with the Jacobians of the bodies."""
    tree = robot.tree
    total = np.diag(tree.armature)
    bodies = []
    for frame in tree.frames:
        if frame.kind == "body":
            J = model.frame_jacobian(tree, frame, robot.q)
            _, R = model.frame_pose(tree, frame, robot.q)
            bodies.append((tree.bodies[frame.body], robot.of(J, robot.q), robot.of(R, robot.q)))
    for q, _ in states(robot):
        M = total.copy()
        for body, J_fun, R_fun in bodies:
            J, R = J_fun(q).reshape(6, tree.nv), R_fun(q)
            arm = R @ body.com
            J_com = J[:3] + np.cross(J[3:].T, arm).T
            M += body.mass * J_com.T @ J_com + J[3:].T @ (R @ body.inertia @ R.T) @ J[3:]
        np.testing.assert_allclose(robot.M(q), M, rtol=ROUNDING, atol=ROUNDING * abs(M).max())


def test_gravity_force_is_the_gradient_of_the_potential(robot):
    V = potential(robot)
    for q, _ in states(robot):
        gradient = [robot.along(V, q, unit)[0] for unit in np.eye(robot.tree.nv)]
        h = robot.h(q, np.zeros(robot.tree.nv))
        np.testing.assert_allclose(h, gradient, atol=DIFFERENCE * max(1.0, abs(h).max()))


def test_power_of_the_applied_force_is_the_rate_of_energy(robot):
    V = potential(robot)
    rng = np.random.default_rng(3)
    step = 1e-5
    for q, v in states(robot):
        f = rng.standard_normal(robot.tree.nv)
        a = np.linalg.solve(robot.M(q), f - robot.h(q, v))

        def energy(t, q=q, v=v, a=a):
            q_t, v_t = robot.integrate(q, t * v), v + t * a
            return 0.5 * v_t @ robot.M(q_t) @ v_t + V(q_t)[0]

        rate = (energy(step) - energy(-step)) / (2 * step)
        assert rate == pytest.approx(f @ v, abs=DIFFERENCE * (1.0 + abs(energy(0.0)) + abs(a @ a)))


def test_coriolis_force_does_the_work_of_the_changing_inertia(robot):
    """`vᵀ (Ṁ - 2C) v = 0`."""
    for q, v in states(robot):
        coriolis = robot.h(q, v) - robot.h(q, 0.0 * v)
        Mdot = robot.along(robot.M, q, v)
        scale = abs(v @ Mdot @ v) + abs(coriolis).max()
        assert v @ Mdot @ v == pytest.approx(2.0 * v @ coriolis, abs=DIFFERENCE * scale)
        assert scale > 0.0


def test_coriolis_force_is_quadratic_in_the_velocity(robot):
    for q, v in states(robot):
        gravity = robot.h(q, 0.0 * v)
        once, thrice = robot.h(q, v) - gravity, robot.h(q, 3.0 * v) - gravity
        np.testing.assert_allclose(thrice, 9.0 * once, atol=ROUNDING * abs(thrice).max() * 10)


def test_joints_on_different_branches_share_no_entry():
    tree = tree_of(EVERY_JOINT)
    q = ca.SX.sym("q", tree.nq)
    M = model.mass_matrix(tree, q)
    dof = {joint.name: joint.dof for joint in tree.joints}
    filled = set(zip(*M.sparsity().get_triplet(), strict=True))
    assert (dof["arm_a"], dof["knob"]) in filled
    assert (dof["hip"], dof["knee"]) in filled
    for one in ("hip", "knee"):
        for other in ("arm_a", "arm_b", "arm_c", "knob", "mast"):
            assert (dof[one], dof[other]) not in filled
    assert (0, dof["mast"]) not in filled
    assert M.sparsity() == M.T.sparsity()


def test_derivatives_of_bias_force_agree_with_differences(robot):
    tree, q, v = robot.tree, robot.q, robot.v
    dv = ca.SX.sym("dv", tree.nv)
    moved = model.bias_force(tree, model.integrate(tree, q, dv), v)
    slope = robot.of(ca.jacobian(moved, dv), q, v, dv)
    for q0, v0 in states(robot)[:2]:
        exact = slope(q0, v0, np.zeros(tree.nv))
        for k, unit in enumerate(np.eye(tree.nv)):
            found = robot.along(lambda x, v0=v0: robot.h(x, v0), q0, unit)
            np.testing.assert_allclose(
                exact[:, k], found, atol=DIFFERENCE * max(1.0, abs(exact).max())
            )


def test_inverse_dynamics_is_inertia_times_acceleration_plus_bias(robot):
    a = ca.SX.sym("a", robot.tree.nv)
    inverse = robot.of(model.inverse_dynamics(robot.tree, robot.q, robot.v, a), robot.q, robot.v, a)
    rng = np.random.default_rng(9)
    for q, v in states(robot):
        given = rng.standard_normal(robot.tree.nv)
        expected = robot.M(q) @ given + robot.h(q, v)
        scale = max(1.0, abs(expected).max())
        np.testing.assert_allclose(inverse(q, v, given), expected, atol=ROUNDING * scale)

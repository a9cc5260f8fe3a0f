"""Coriolis matrix: its two laws, Christoffel symbols, a sum over particles."""

import casadi as ca
import numpy as np
import pytest
from model_mechanisms import EVERY_JOINT, MECHANISMS, NEARLY_PARALLEL, OWN_MODELS, tree_of
from support.hard_cases import JOINTS, TENDONS
from support.random_models import random_mjcf

from mbcasadi import mjcf, model
from mbcasadi.description import Actuator

ROUNDING = 1e-13  # relative to the largest entry
STATES = 3
SOURCES = {
    **MECHANISMS,
    **{name: JOINTS[name] for name in ("several joints on one body", "ball and free springs")},
    "tendon armature": TENDONS["fixed tendons with spring, dead band, damper and armature"],
    "random 3": random_mjcf(3),
    "quadruped": OWN_MODELS / "quadruped.xml",
    "humanoid": OWN_MODELS / "humanoid.xml",
}


def symbols(tree):
    return ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)


def along(expression, tree, q, v):
    """Return the rate of an expression of q along `dq/dt = N v`."""
    return ca.jtimes(expression, q, model.velocity_map(tree, q) @ v)


def states(tree, seed=5):
    rng = np.random.default_rng(seed)
    return [model.random_state(tree, rng) for _ in range(STATES)]


def assert_equal_at_states(tree, one, two, q, v):
    """Assert that two expressions agree to rounding, and that they are not both zero."""
    f = ca.Function("f", [q, v], [one, two])
    for state in states(tree):
        found, expected = (np.array(x) for x in f(*state))
        size = abs(expected).max()
        assert size > 0.0
        np.testing.assert_allclose(found, expected, atol=ROUNDING * size)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_bias_force_is_coriolis_matrix_times_velocity_plus_gravity(name):
    tree = tree_of(SOURCES[name])
    q, v = symbols(tree)
    found = model.coriolis_matrix(tree, q, v) @ v + model.gravity_force(tree, q)
    assert_equal_at_states(tree, found, model.bias_force(tree, q, v), q, v)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_coriolis_matrix_and_its_transpose_are_the_rate_of_the_inertia(name):
    data = mjcf.read(SOURCES[name])
    tree = data.tree
    q, v = symbols(tree)
    C = model.coriolis_matrix(tree, q, v)
    Mdot = along(model.mass_matrix(tree, q, data.actuators), tree, q, v)
    if name == "top":  # one body on a ball joint, in its own axes: constant
        assert ca.DM(Mdot.sparsity(), 1).nnz() == 0 or ca.symvar(Mdot) == []
        f = ca.Function("f", [q, v], [C + C.T])
        assert max(abs(np.array(f(*state))).max() for state in states(tree)) < ROUNDING
        return
    assert_equal_at_states(tree, C + C.T, Mdot, q, v)


def test_hinges_and_slides_give_the_christoffel_symbols_of_the_inertia():
    for source in (NEARLY_PARALLEL, JOINTS["joint ref and springref"]):
        tree = tree_of(source)
        q, v = symbols(tree)
        M = ca.densify(model.mass_matrix(tree, q))
        n = tree.nv
        J = ca.jacobian(ca.vec(M), q)  # rows i + n j, columns k: dM_ij/dq_k
        slope = [ca.reshape(J[:, k], n, n) for k in range(n)]
        first = ca.horzcat(*[slope[j] @ v for j in range(n)])  # sum over k of dM_ik/dq_j v_k
        rate = sum((slope[k] * v[k] for k in range(n)), ca.SX(n, n))
        expected = (rate + first - first.T) / 2
        assert_equal_at_states(tree, model.coriolis_matrix(tree, q, v), expected, q, v)


def test_it_is_the_sum_over_particles_of_jacobians_and_their_rates():
    """`C = Σ m Jᵀ J̇` with Jacobians from positions; a body is seven particles on its axes."""
    tree = tree_of(EVERY_JOINT)
    q, v = symbols(tree)
    N, total = model.velocity_map(tree, q), ca.SX(tree.nv, tree.nv)
    for frame in (frame for frame in tree.frames if frame.kind == "body" and frame.body):
        body = tree.bodies[frame.body]
        p, R = model.frame_pose(tree, frame, q)
        for mass, point in particles(body):
            J = ca.jacobian(p + R @ point, q) @ N
            total += mass * J.T @ along(J, tree, q, v)
    assert_equal_at_states(tree, model.coriolis_matrix(tree, q, v), total, q, v)


def particles(body):
    """Return masses (some may be negative) and places that have the moments of a body."""
    moments, axes = np.linalg.eigh(0.5 * np.trace(body.inertia) * np.eye(3) - body.inertia)
    arm = 0.1
    for moment, axis in zip(moments, axes.T, strict=True):
        for sign in (-1.0, 1.0):
            yield moment / (2.0 * arm**2), body.com + sign * arm * axis
    yield body.mass - moments.sum() / arm**2, body.com


@pytest.mark.parametrize("name", ["top", "nearly_parallel", "free and ball joints on two trees"])
def test_two_velocities_differ_in_it_by_their_bracket(name):
    """`C(x) y - C(y) x = M [x, y]`: no torsion; the bracket is zero but for rotations in space."""
    tree = tree_of({**SOURCES, **JOINTS}[name])
    q, x = symbols(tree)
    y = ca.SX.sym("y", tree.nv)
    N = model.velocity_map(tree, q)
    between = ca.jtimes(N @ y, q, N @ x) - ca.jtimes(N @ x, q, N @ y)
    bracket = (N.T @ between) / ca.sum1(N**2).T  # columns of N are orthogonal
    crossed = model.coriolis_matrix(tree, q, x) @ y - model.coriolis_matrix(tree, q, y) @ x
    f = ca.Function("f", [q, x, y], [crossed, model.mass_matrix(tree, q) @ bracket, bracket])
    for state in states(tree):
        other = np.random.default_rng(8).standard_normal(tree.nv)
        found, expected, lie = (np.array(value) for value in f(*state, other))
        assert (np.abs(lie).max() > 0.1) == (name != "nearly_parallel")
        size = 1.0 + abs(expected).max()
        np.testing.assert_allclose(found, expected, atol=100 * ROUNDING * size)


def test_it_is_sparse_like_the_tree():
    tree = tree_of(EVERY_JOINT)
    q, v = symbols(tree)
    C = model.coriolis_matrix(tree, q, v).sparsity()
    M = model.mass_matrix(tree, q).sparsity()
    assert (C + M) == M
    # the linear velocity of a free joint is in axes that do not move
    assert all(C.get_col()[k] > 2 for k in range(C.nnz()))


def test_a_rotor_on_a_moment_that_turns_is_in_the_inertia_alone():
    """MuJoCo's bias force has no part for it, so `h = C v + g` is kept and the rate differs."""
    tree = tree_of(EVERY_JOINT)
    site = next(i for i, frame in enumerate(tree.frames) if frame.name == "on_arm")
    none = (0.0, 0.0, 0.0)
    rotor = Actuator("rotor", "site", site, np.arange(1.0, 7.0), none, none, armature=0.2)
    q, v = symbols(tree)
    C = model.coriolis_matrix(tree, q, v)
    bare, driven = (
        along(model.mass_matrix(tree, q, actuators), tree, q, v) for actuators in ((), (rotor,))
    )
    f = ca.Function("f", [q, v], [C + C.T - bare, driven - bare])
    for state in states(tree):
        off, rotor_rate = (abs(np.array(x)).max() for x in f(*state))
        assert off < 1e-12
        assert rotor_rate > 1e-2

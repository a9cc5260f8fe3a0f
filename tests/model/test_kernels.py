"""Small mechanisms against MuJoCo, the number of operations of M, h and J, and their C."""

import casadi as ca
import numpy as np
import pytest
from model_mechanisms import EVERY_JOINT, MECHANISMS, OWN_MODELS, Numbers
from support.agreement import assert_agrees
from support.compiled import compiled
from support.corpora import robot

from mbcasadi import mjcf, model

STATES = 5

# Operations of a published 100-line spatial-algebra generator, inputs and outputs included.
PLAIN_GENERATOR = {
    "rs__panda__robot": (606, 878),
    "men__unitree_go2__go2": (1434, 1932),
    "men__unitree_g1__g1": (6896, 5220),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_of_these_tests_agree_with_mujoco(name):
    """Those of `support.hard_cases`, ours and others' models: `tests/system`."""
    assert_agrees(name, MECHANISMS[name])


@pytest.mark.parametrize("name", sorted(PLAIN_GENERATOR))
def test_operations_stay_below_those_of_a_plain_generator(name):
    tree = mjcf.read(robot(name)).tree
    q, v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
    M = ca.Function("M", [q], [model.mass_matrix(tree, q)], {"cse": True})
    h = ca.Function("h", [q, v], [model.bias_force(tree, q, v)], {"cse": True})
    for f, limit in zip((M, h), PLAIN_GENERATOR[name], strict=True):
        assert f.n_instructions() < limit


def test_kernels_share_their_kinematics():
    tree = mjcf.read(OWN_MODELS / "quadruped.xml").tree
    q, v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
    feet = [f for f in tree.frames if f.name in ("FL", "FR", "RL", "RR")]
    parts = [model.mass_matrix(tree, q), model.bias_force(tree, q, v)]
    parts += [model.frame_jacobian(tree, f, q)[:3, :] for f in feet]
    parts += [model.frame_bias(tree, f, q, v)[:3] for f in feet]
    joint = ca.Function("joint", [q, v], parts, {"cse": True})
    alone = [ca.Function("one", [q, v], [part], {"cse": True}) for part in parts]
    shared_at_least = 0.2  # trigonometry, velocities and accelerations of four legs
    total = sum(f.n_instructions() for f in alone)
    assert joint.n_instructions() < (1.0 - shared_at_least) * total


def test_generated_c_gives_the_same_numbers(tmp_path):
    robot = Numbers(mjcf.read(EVERY_JOINT).tree)
    tree, q, v = robot.tree, robot.q, robot.v
    a = ca.SX.sym("a", tree.nv)
    outputs = [model.mass_matrix(tree, q), model.bias_force(tree, q, v)]
    outputs += [model.coriolis_matrix(tree, q, v), model.potential_energy(tree, q)]
    outputs += model.inverse_dynamics_derivatives(tree, q, v, a)
    f = ca.Function("kernels", [q, v, a], outputs, {"cse": True})
    loaded = compiled(f, tmp_path)
    for seed in range(STATES):
        rng = np.random.default_rng(seed)
        state = *model.random_state(tree, rng), rng.standard_normal(tree.nv)
        for found, expected in zip(loaded(*state), f(*state), strict=True):
            scale = float(ca.norm_inf(ca.vec(expected)))
            np.testing.assert_allclose(np.array(found), np.array(expected), atol=1e-13 * scale)


def test_floating_point_of_expressions_does_not_depend_on_build_order():
    tree = mjcf.read(EVERY_JOINT).tree
    q = ca.SX.sym("q", tree.nq)
    one = ca.Function("M", [q], [model.mass_matrix(tree, q)])
    two = ca.Function("M", [q], [model.mass_matrix(tree, q)])
    assert one.serialize() == two.serialize()

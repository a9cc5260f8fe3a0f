"""Centre of mass, of a tree and of what a free joint carries, against MuJoCo's sums over bodies."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from model_mechanisms import EVERY_JOINT, Numbers, tree_of

from mbcasadi import model, models
from mbcasadi.errors import ProblemError

ROUNDING = 1e-12  # m and m/s, for sizes of one


def test_position_and_velocity_are_those_of_mujocos_subtree():
    xml = EVERY_JOINT.replace("<freejoint/>", '<joint type="free" armature=".3"/>')
    robot = Numbers(tree_of(xml))
    tree, q, v = robot.tree, robot.q, robot.v
    joint = tree.joints[0]
    armature = np.asarray(tree.armature)
    M = model.mass_matrix(tree, q)[joint.dof : joint.dof + 3, :]
    base = next(f for f in tree.frames if (f.kind, f.name) == ("body", "base"))
    p, R = model.frame_pose(tree, base, q)
    plant = mujoco.MjModel.from_xml_string(xml)
    body = plant.body("base").id
    mass = float(plant.body_subtreemass[body])
    center = robot.of(p - model.center_of_mass_arm(M, R, joint, mass), q)
    velocity = robot.of(model.center_of_mass_velocity(M, v, joint, mass, armature), q, v)
    data = mujoco.MjData(plant)
    for seed in range(5):
        data.qpos, data.qvel = model.random_state(tree, np.random.default_rng(seed))
        mujoco.mj_forward(plant, data)
        mujoco.mj_subtreeVel(plant, data)
        state = data.qpos, data.qvel
        np.testing.assert_allclose(center(state[0]).ravel(), data.subtree_com[body], atol=ROUNDING)
        np.testing.assert_allclose(
            velocity(*state).ravel(), data.subtree_linvel[body], atol=10 * ROUNDING
        )
        assert np.linalg.norm(data.subtree_linvel[body]) > 0.1


def moving_center(plant, data):
    """Return the centre of mass of the bodies that are not fixed to the world, and its Jacobian."""
    moving = [i for i in range(plant.nbody) if plant.body_weldid[i]]
    mass = plant.body_mass[moving]
    J, jacobian = np.zeros((3, plant.nv)), np.zeros((3, plant.nv))
    for i, m in zip(moving, mass, strict=True):
        mujoco.mj_jacBodyCom(plant, data, jacobian, None, i)
        J += m * jacobian
    return mass @ data.xipos[moving] / mass.sum(), J / mass.sum()


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "arm_gripper", "five_bar", None])
def test_center_jacobian_and_bias_of_a_tree_are_mujocos(name):
    xml = EVERY_JOINT if name is None else models.path(name).read_text()
    robot = Numbers(tree_of(xml))
    tree = robot.tree
    function, rest = model.center_of_mass_fun(tree, ca.SX.sym("q", tree.nq)), np.zeros(tree.nv)
    plant = mujoco.MjModel.from_xml_string(xml)
    data, step = mujoco.MjData(plant), 1e-6  # s
    for seed in range(3):
        data.qpos, data.qvel = model.random_state(tree, np.random.default_rng(seed))
        mujoco.mj_kinematics(plant, data)
        mujoco.mj_comPos(plant, data)
        p, J = moving_center(plant, data)
        center, jacobian, bias = (np.array(x) for x in function(data.qpos, data.qvel))
        np.testing.assert_allclose(center.ravel(), p, atol=ROUNDING)
        np.testing.assert_allclose(jacobian, J, atol=10 * ROUNDING)
        rates = []
        for sign in (1, -1):
            other = data.qpos.copy()
            mujoco.mj_integratePos(plant, other, data.qvel, sign * step)
            rates.append(np.array(function(other, rest)[1]) @ data.qvel)
        by_differences = (rates[0] - rates[1]) / (2 * step)
        size = 1 + np.abs(by_differences).max()
        # central differences: step² of the third derivative, and rounding over the step
        np.testing.assert_allclose(bias.ravel(), by_differences.ravel(), atol=1e-7 * size)
        assert np.abs(by_differences).max() > 1e-3


def test_bodies_without_mass_have_no_center():
    xml = (
        "<mujoco><worldbody><body><joint/>"
        "<inertial pos='0 0 0' mass='1e-12' diaginertia='1e-12 1e-12 1e-12'/>"
        "</body></worldbody></mujoco>"
    )
    tree = tree_of(xml)
    for body in tree.bodies:
        object.__setattr__(body, "mass", 0.0)
    with pytest.raises(ProblemError, match="no centre of mass"):
        model.center_of_mass(tree, Numbers(tree).q)

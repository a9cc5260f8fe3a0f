"""Centre of mass of all that a free joint carries, against MuJoCo's sums over bodies."""

import mujoco
import numpy as np
from model_mechanisms import EVERY_JOINT, Numbers, tree_of

from mbcasadi import model

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

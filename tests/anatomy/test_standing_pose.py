"""Poses in which robots stand: on level feet, legs bent, the centre of mass over them.

Judged by MuJoCo: which corners of soles touch, where the centre of mass is, how legs move feet.
"""

import mujoco
import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.spatial import ConvexHull

import mbcasadi as mb
from mbcasadi.anatomy.standing_pose import BENT, standing_pose


def stands(name, q):
    """Return the model's pose, and the state of MuJoCo in it, pressed 0.1 mm into the floor."""
    path = mb.models.path(name)
    system = mb.read_mjcf(path)
    pose = standing_pose(system, mb.describe(system, q), q)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos = pose
    data.qpos[2] -= 1e-4
    mujoco.mj_forward(model, data)
    return pose, model, data


def name_of(model, geom):
    return model.geom(geom).name or f"geom{geom}"


def movable(model, data, leg, foot):
    """Return the least singular value of a foot's Jacobian by the joints of its leg, m."""
    J = np.zeros((3, model.nv))
    names = [name_of(model, geom) for geom in range(model.ngeom)]
    mujoco.mj_jacGeom(model, data, J, None, names.index(foot))
    dofs = [int(model.joint(name).dofadr[0]) for name in leg.joints]
    return np.linalg.svd(J[:, dofs], compute_uv=False)[-1]


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_straight_legs_are_bent_and_all_points_of_the_feet_touch_at_once(name):
    system = mb.read_mjcf(mb.models.path(name))
    q = np.array(next(iter(system.tree.keyframes.values()))).ravel()
    q[7:], q[2] = 0.0, 3.0  # straight, in the air
    pose, model, data = stands(name, q)
    robot = mb.describe(system, q)
    geoms = [geom for foot in robot.feet for geom in foot.geoms]
    touching = [name_of(model, max(contact.geom)) for contact in data.contact]
    assert set(touching) == set(geoms)
    assert len(touching) == len(geoms)
    hull = ConvexHull([contact.pos[:2] for contact in data.contact]).equations
    assert (hull[:, :2] @ data.subtree_com[0, :2] + hull[:, 2] < -0.01).all()
    for leg in robot.limbs_of("leg"):
        assert movable(model, data, leg, leg.foot.geoms[0]) > 0.9 * BENT * leg.length
    np.testing.assert_allclose(pose[3:7], q[3:7], atol=0.03)  # the base is level


def test_a_base_can_go_down_from_the_pose_of_a_squat_while_feet_stay_flat():
    """Feet that reach far ahead of their ankles move by these alone, with straight legs too."""
    spec = mujoco.MjSpec.from_file(str(mb.models.path("humanoid")))
    feet = mb.describe(mb.read_mjcf(spec)).feet
    names = {name for foot in feet for name in foot.geoms}
    for geom in spec.geoms:
        geom.pos[0] += 0.1 * ((geom.name or f"geom{geom.id}") in names)
    system = mb.read_mjcf(spec)
    q = np.array(next(iter(system.tree.keyframes.values()))).ravel()
    q[7:], q[2] = 0.0, 3.0
    robot = mb.describe(system, q)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos = standing_pose(system, robot, q, can_squat=True)
    mujoco.mj_forward(model, data)
    names = [name_of(model, geom) for geom in range(model.ngeom)]
    for leg in robot.limbs_of("leg"):
        J, turns = np.zeros((2, 3, model.nv))
        mujoco.mj_jacGeom(model, data, J, turns, names.index(leg.foot.geoms[0]))
        dofs = [int(model.joint(name).dofadr[0]) for name in leg.joints]
        flat = null_space(turns[:, dofs], rcond=1e-6)  # joint rates that do not turn the foot
        assert np.linalg.norm(J[2, dofs] @ flat) > 0.9 * BENT * leg.length


def test_a_pose_that_stands_is_kept_but_for_its_height():
    system = mb.read_mjcf(mb.models.path("quadruped"))
    q = np.array(system.tree.keyframes["stand"]).ravel()
    q[2] += 0.2
    pose, _, _ = stands("quadruped", q)
    np.testing.assert_array_equal(np.delete(pose, 2), np.delete(q, 2))
    assert pose[2] < q[2] - 0.19


def test_what_has_no_feet_or_no_free_base_keeps_its_pose():
    for name in ("quadrotor", "scara", "planar_biped"):
        system = mb.read_mjcf(mb.models.path(name))
        q = np.array(system.tree.q0).ravel()
        np.testing.assert_array_equal(standing_pose(system, mb.describe(system), q), q)


def test_an_arch_between_heel_and_toe_does_not_tilt_a_foot():
    text = mb.models.path("humanoid").read_text()
    for side in ("left", "right"):
        site = f'<site name="{side}_foot" '
        text = text.replace(site, f'<geom class="sole" pos="-.02 0 -.0483"/>{site}')
    model = mujoco.MjModel.from_xml_string(text)
    system, data = mb.read_mjcf(model), mujoco.MjData(model)
    q = np.array(next(iter(system.tree.keyframes.values()))).ravel()
    q[7:], q[2] = 0.0, 3.0
    robot = mb.describe(system, q)
    assert [len(foot.points) for foot in robot.feet] == [5, 5], "the arch is none of a foot"
    data.qpos = standing_pose(system, robot, q)
    data.qpos[2] -= 1e-4
    mujoco.mj_forward(model, data)
    assert len(data.contact) == 8, "the corners of both soles"


def test_folded_legs_unfold():
    """A leg whose knee is at its stop cannot give way to a step: a trot bounces on it."""
    system = mb.read_mjcf(mb.models.path("quadruped"))
    q = np.array(next(iter(system.tree.keyframes.values()))).ravel()
    legs = mb.describe(system, q).limbs_of("leg")
    q[7:] = np.tile([0.0, 1.35, -2.7], 4)
    pose, _, data = stands("quadruped", q)
    assert data.qpos[2] > 0.45 * legs[0].length
    assert data.ncon == 4
    np.testing.assert_allclose(pose[3:7], q[3:7], atol=0.01)  # the base is level

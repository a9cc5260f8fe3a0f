"""The walking planner with flat feet: each corner of a sole is a contact of the gait."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask

CORNERS = tuple(f"{side}_foot_{i}" for side in ("left", "right") for i in range(1, 5))
PERIOD, DUTY = 0.6, 0.6
SWING = (0.38, 0.45, 0.55)  # s; the left foot is in the air
RIGID = 1e-9  # m
WEIGHTS = [50, 50, 50, 100, 100, 300, 0.2, 0.2, 0.5, 2, 2, 2]


@pytest.fixture(scope="module")
def walker():
    """Return law, planner and stance of our humanoid on the corners of its soles."""
    system = mb.read_mjcf(models.path("humanoid"))
    stand = np.array(system.tree.keyframes["stand"]).ravel()
    corners = [mb.Contact(name, friction=0.6, sides=4) for name in CORNERS]
    body = mpc.single_rigid_body(system, corners, stand)
    predictive = mpc.single_rigid_body_mpc(body, 2, WEIGHTS, 1e-5, period=0.03)
    tasks = [FrameTask("pelvis", kind="body", name="trunk")]
    tasks += [FrameTask(name, orientation="") for name in CORNERS]
    law = InverseDynamicsQP(
        system,
        [*tasks, PostureTask(weight=0.1)],
        corners,
        internal_forces="wrench",
        force_weight=1e-3,
        force_reference=True,
        period=0.002,
    )
    gait = mpc.Gait(PERIOD, DUTY, (0.0,) * 4 + (0.5,) * 4)
    return law, mpc.walking_planner(law, predictive, gait, stand), stand


def outputs(walker, t: float, command=(0.4, 0.0, 0.0)):
    law, planner, stand = walker
    v = np.zeros(law.system.nv)
    v[0] = 0.3
    return planner.function(q=stand, v=v, command=command, u=planner.u0, t=t, z=planner.z0)


@pytest.mark.parametrize("t", SWING)
def test_the_corners_of_a_sole_swing_as_one_body(walker, t):
    """Their distances stay those of the stance, and they have moved ahead and up."""
    law, _, stand = walker
    ref = np.array(outputs(walker, t)["ref"]).ravel()
    places = [
        np.array([ref[law.reference_slices[f"{name}.position"]] for name in CORNERS[:4]]),
        np.array(
            [np.array(law.system.frame(n, "site").pose(stand)[0]).ravel() for n in CORNERS[:4]]
        ),
    ]
    swinging, standing = (p[:, None] - p[None] for p in places)
    assert np.min((places[0] - places[1])[:, 2]) > RIGID
    np.testing.assert_allclose(swinging, standing, atol=RIGID)


def test_a_sole_is_on_or_off_with_all_its_corners(walker):
    for t, on in ((0.1, [1, 0]), (0.33, [1, 1]), (SWING[1], [0, 1])):
        mask = np.array(outputs(walker, t)["mask"]).ravel()[:8]
        np.testing.assert_array_equal(mask, np.repeat(on, 4))


def test_tasks_that_the_planner_does_not_compute_hold_the_stance(walker):
    """No zeros: the posture has the angles of the pose, quaternions have length one."""
    law, _, stand = walker
    ref = np.array(outputs(walker, SWING[0])["ref"]).ravel()
    names = law.tasks[-1].components(law.system)
    place = {joint.name: joint.qpos for joint in law.system.tree.joints}
    wanted = stand[[place[name] for name in names]]
    assert np.any(wanted != 0)
    np.testing.assert_array_equal(ref[law.reference_slices["posture.q"]], wanted)
    assert np.linalg.norm(ref[law.reference_slices["trunk.quaternion"]]) == pytest.approx(1.0)

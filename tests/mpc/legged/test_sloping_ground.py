"""A walk on a slope is the walk on level ground, turned: gravity, contacts and robot together."""

from pathlib import Path

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.control import ComTask, FrameTask, InverseDynamicsQP
from mbcasadi.errors import ProblemError
from mbcasadi.mpc import trot

FEET = ("FL", "FR", "RL", "RR")
TURN = Rotation.from_rotvec([0.15, -0.2, 0.0])  # of the world
LEAN = (1.2, -0.8, -9.6)  # m/s², so that gravity leans on the level ground as well
WEIGHTS, PERIOD, HORIZON = np.ones(12), 0.03, 4
GAIT = trot(0.48, 0.55, start=0.3)
TIMES = (0.1, 0.62, 0.75, 0.9)  # s; standing, and in both swings
ROUNDING = 1e-9
GOAL_YAW, AHEAD = 14, 0.07  # place in z, and rad by which the desired yaw is ahead
VECTORS = ("position", "velocity", "acceleration", "angular_velocity", "angular_acceleration")


class Walk:
    """Law and planner of the quadruped on ground with a normal, its model's gravity given."""

    def __init__(self, gravity, normal, stepping):
        model = mujoco.MjModel.from_xml_path(str(Path(models.path("quadruped"))))
        model.opt.gravity = gravity
        self.system = mb.read_mjcf(model)
        feet = [mb.Contact(name, normal=normal, friction=0.6, sides=4) for name in FEET]
        q0 = self.pose(np.array(self.system.tree.keyframes["stand"]).ravel(), normal)
        self.body = mpc.single_rigid_body(self.system, feet, q0)
        law = mpc.single_rigid_body_mpc(self.body, HORIZON, WEIGHTS, 1e-5, period=PERIOD)
        tasks = [FrameTask("trunk", kind="body"), FrameTask("trunk", kind="body", name="head")]
        tasks += [ComTask(), *(FrameTask(name, orientation="") for name in FEET)]
        self.law = InverseDynamicsQP(
            self.system, tasks, feet, force_weight=1e-3, force_reference=True, period=0.002
        )
        self.planner = mpc.walking_planner(self.law, law, GAIT, q0, stepping=stepping)

    @staticmethod
    def pose(q, normal):
        """Return a pose of the level ground, turned with the world for another normal."""
        return q if normal[2] == 1 else turned_pose(q)

    def outputs(self, q, v, t, measured, force):
        z = self.planner.z0.copy()
        z[GOAL_YAW] += AHEAD
        inputs = {"q": q, "v": v, "t": t, "command": [0.3, 0.1, 0.2], "z": z}
        f = self.planner.function
        inputs["u"] = force.ravel()
        if "f_measured" in f.name_in():
            inputs["f_measured"] = measured
        return {name: np.array(value).ravel() for name, value in f(**inputs).items()}


def axes_of(normal):
    """Return (3, 3) the axes of the ground as columns: the world's x along the slope is first."""
    x = np.array([1.0, 0.0, 0.0]) - normal[0] * normal
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(normal, x), normal])


def turned_pose(q):
    """Return a pose that is turned with the world."""
    out, quat = np.array(q), TURN * Rotation.from_quat(q[[4, 5, 6, 3]])
    out[:3], out[3:7] = TURN.apply(q[:3]), quat.as_quat()[[3, 0, 1, 2]]
    return out


def turned_speed(v):
    """Return the speed; the angular one is in axes of the trunk."""
    out = np.array(v)
    out[:3] = TURN.apply(v[:3])
    return out


TOUCH_DOWN = pytest.param("by touch-down", marks=pytest.mark.long)


@pytest.fixture(scope="module", params=["by the schedule", TOUCH_DOWN])
def walks(request):
    stepping = mpc.SwingParameters()
    if request.param != "by the schedule":
        stepping = mpc.SwingParameters(touch_down=mpc.TouchDown())
    normal = tuple(TURN.apply([0.0, 0.0, 1.0]))
    return Walk(LEAN, (0.0, 0.0, 1.0), stepping), Walk(TURN.apply(LEAN), normal, stepping)


@pytest.mark.every(2)
def test_the_body_is_the_same_in_axes_of_the_ground(walks):
    level, sloping = walks
    assert sloping.body.mass == pytest.approx(level.body.mass)
    np.testing.assert_allclose(sloping.body.inertia, level.body.inertia, atol=ROUNDING)
    assert np.linalg.norm(sloping.body.gravity) == pytest.approx(np.linalg.norm(LEAN))
    assert sloping.body.gravity[2] == pytest.approx(LEAN[2])


@pytest.mark.parametrize("t", TIMES)
def test_references_turn_with_the_world(walks, t):
    """The axes along the slope are chosen by the contact: yaw and z0 differ, the walk does not."""
    level, sloping = walks
    rng = np.random.default_rng(int(100 * t))
    stand = np.array(level.system.tree.keyframes["stand"]).ravel()
    q = np.array(level.system.integrate(stand, 0.02 * rng.standard_normal(18))).ravel()
    v, measured = 0.2 * rng.standard_normal(18), np.tile([30.0, 1.0, -2.0], 4)
    force = rng.uniform(-10, 40, (4, 3))
    plain = level.outputs(q, v, t, measured, force)
    on_slope = TURN.apply(force) @ axes_of(TURN.apply([0.0, 0.0, 1.0]))
    output = sloping.outputs(turned_pose(q), turned_speed(v), t, measured, on_slope)
    np.testing.assert_array_equal(output["mask"], plain["mask"])
    np.testing.assert_array_equal(output["outer_mask"], plain["outer_mask"])
    compared = 0
    for name, place in level.law.reference_slices.items():
        here, there = plain["ref"][place], output["ref"][place]
        quantity = name.rpartition(".")[2]
        if quantity in VECTORS and not name.startswith("force"):
            np.testing.assert_allclose(there, TURN.apply(here), atol=1e-8, err_msg=name)
            compared += 1
        elif quantity == "quaternion":
            first, second = (Rotation.from_quat(each[[1, 2, 3, 0]]) for each in (here, there))
            assert (second.inv() * TURN * first).magnitude() < 1e-8, name
            compared += 1
    assert compared > 20
    assert 0 < t < 0.3 or plain["mask"].min() == 0


def test_the_forces_of_the_mpc_are_those_of_the_contacts(walks):
    """Weight carried along the normal and the tangents: no acceleration is left in the world."""
    _, sloping = walks
    stand = turned_pose(np.array(sloping.system.tree.keyframes["stand"]).ravel())
    f = sloping.planner.function
    inputs = {"q": stand, "v": np.zeros(18), "t": 0.1, "command": np.zeros(3)}
    inputs |= {"u": sloping.planner.u0, "z": sloping.planner.z0}
    if "f_measured" in f.name_in():
        inputs["f_measured"] = np.tile([30.0, 0.0, 0.0], 4)
    ref = np.array(f(**inputs)["ref"]).ravel()
    force = ref[sloping.law.reference_slices["force"]].reshape(4, 3)
    normal = TURN.apply([0.0, 0.0, 1.0])
    weight = -sloping.body.mass * TURN.apply(LEAN)
    assert force[:, 0].sum() == pytest.approx(weight @ normal)
    np.testing.assert_allclose(ref[sloping.law.reference_slices["com.acceleration"]], 0, atol=1e-9)
    held = ref[sloping.law.reference_slices["trunk.position"]]
    np.testing.assert_allclose(held, stand[:3], atol=ROUNDING)


def test_feet_on_different_planes_are_refused(walks):
    level, _ = walks
    feet = [mb.Contact(name, normal=(0.1 * k, 0, 1)) for k, name in enumerate(FEET)]
    with pytest.raises(ProblemError, match="is a plane"):
        mpc.single_rigid_body(level.system, feet, np.array(level.system.tree.q0))

"""Go2 and Spot stand, move their trunk and lift a foot: the law, its references, what happened."""

from dataclasses import dataclass
from functools import cache

import numpy as np

import mbcasadi as mb
from mbcasadi.control import (
    DisturbanceObserver,
    FrameTask,
    InverseDynamicsQP,
    JointLimits,
    PostureTask,
)
from mbcasadi.mpc import CaptureStep, capture_step
from robots import models
from robots.ground import FLOOR, Array, Ground, on_ground, standing_pose
from robots.references import Reference, displace, smooth, swings

PERIOD = 0.002  # s
SHIFTED, LIFTED, LOWERED, BACK = 1.0, 1.5, 3.0, 0.5  # s; back after it stands again
SWAY, SWAY_RATE, TILT = 0.03, 0.5, 0.1  # m, Hz, rad
HEIGHT = 0.06  # m, of a lifted foot
"""The lifted foot is the first; the trunk moves towards the middle of the others."""
SHARE = 0.7  # of the way


@dataclass(frozen=True)
class Quadruped:
    """A robot of the folder.

    Attributes:
        file: of its model.
        trunk: its body.
        feet: geoms, or () for all that touch the floor.
        pose: a keyframe, or angles of joints whose names contain these words, rad.
    """

    file: str
    trunk: str
    feet: tuple[str, ...] = ()
    pose: str | tuple[tuple[str, float], ...] = "home"

    def initial(self, tree) -> Array:
        """Return its pose (nq,), anywhere."""
        if isinstance(self.pose, str):
            return np.array(tree.keyframes[self.pose], dtype=float)
        q = np.array(tree.q0, dtype=float)
        for joint in tree.joints:
            for word, angle in self.pose:
                if word in joint.name:
                    q[joint.qpos] = angle
        return q


GO2 = Quadruped("men__unitree_go2__go2", "base", ("FL", "FR", "RL", "RR"))
SPOT = Quadruped("men__boston_dynamics_spot__spot", "body", ("FL", "FR", "HL", "HR"))
SOFT = {
    "ANYmal C, MJX": Quadruped("men__anybotics_anymal_c__anymal_c_mjx", "base", pose="standing"),
    "Barkour v0, MJX": Quadruped("men__google_barkour_v0__barkour_v0_mjx", "chassis"),
    "Barkour vB, MJX": Quadruped(
        "men__google_barkour_vb__barkour_vb_mjx", "torso", pose=(("hip", 0.5), ("knee", 1.0))
    ),
}
"""Their feet have solimp="0.015 1 0.031"."""


@dataclass(frozen=True)
class Stand:
    """A robot on a floor with its law, and the pose that it starts from."""

    law: InverseDynamicsQP
    model: object
    q0: Array
    places: Array
    ground: Ground


@cache
def standing(quadruped: Quadruped, ground: Ground, observer: bool = True) -> Stand:
    """Return a quadruped on its feet."""
    model = on_ground(models.path(quadruped.file), ground, quadruped.feet)
    system = mb.read_mjcf(model)
    found = [
        c
        for c in mb.contacts_of(system, ground=FLOOR)
        if not quadruped.feet or c.geom2 in quadruped.feet
    ]
    feet = [contact.geom2 for contact in found]
    q0 = standing_pose(system, quadruped.initial(system.tree), ground, found)
    tasks = [FrameTask(quadruped.trunk, kind="body", name="trunk", kp=100.0, weight=100.0)]
    tasks += [FrameTask(foot, kind="geom", orientation="", kp=400.0) for foot in feet]
    tasks += [PostureTask(kp=50.0, weight=1e-3)]
    law = InverseDynamicsQP(
        system,
        tasks,
        [contact.as_contact(sides=8) for contact in found],
        joint_limits=JointLimits(),
        observer=DisturbanceObserver(bandwidth=5.0) if observer else None,
        contact_damping=20.0,
        period=PERIOD,
        delay=1,
    )
    places = np.array([np.array(system.frame(f, "geom").pose(q0)[0]).ravel() for f in feet])
    return Stand(law, model, q0, places, ground)


def stands(stand: Stand) -> Reference:
    """Return the reference that holds the pose."""
    rest = stand.law.reference_at(stand.q0)
    return lambda _: rest


def moves(stand: Stand) -> Reference:
    """Return the reference of a trunk that sways and comes back, from 0.5 to 2.5 s."""
    way = SWAY * (stand.ground.rotation @ np.array([0.5, 0.5, -0.5]))
    return swings(stand.law, stand.q0, "trunk", way, SWAY_RATE, 2.5)


def lifts(stand: Stand, lowered: float = LOWERED) -> tuple[Reference, Reference]:
    """Return reference and mask: the trunk moves off one foot, the foot rises, and comes back.

    `lowered` is the time at which the foot stands again, s.
    """
    rest, foot = stand.law.reference_at(stand.q0), stand.law.tasks[1].name
    R = stand.ground.rotation
    level = stand.places @ R
    centre = np.array(stand.law.system.center_of_mass(stand.q0, np.zeros(stand.law.system.nv))[0])
    way = SHARE * (level[1:].mean(axis=0) - R.T @ centre.ravel())
    way[2] = 0.0

    def reference(t: float) -> Array:
        ref = rest.copy()
        for start, sign in ((0.0, 1.0), (lowered + BACK, -1.0)):
            displace(ref, stand.law, "trunk", sign * (R @ way), smooth(t, start, start + SHIFTED))
        for start, sign in ((SHIFTED, 1.0), (lowered - 0.5, -1.0)):
            up = sign * (R @ np.array([0, 0, HEIGHT]))
            displace(ref, stand.law, foot, up, smooth(t, start, start + LIFTED - SHIFTED))
        return ref

    def mask(t: float) -> Array:
        on = np.ones(len(stand.law.mask_names))
        on[0] = not SHIFTED <= t < lowered
        return on

    return reference, mask


def catches(stand: Stand) -> CaptureStep:
    """Return the reaction that puts the foot down where the robot would fall."""
    return capture_step(stand.law, [task.name for task in stand.law.tasks[1:5]])

"""Robots that stand, and when they have fallen.

A mechanism stands where something below a floating base that its actuators move touches the ground
at the start, and the base itself does not. The bodies that touch are its feet, with all that hang
on them. It has fallen where its centre of mass is below a share of its first height, or its base
leans by more than an angle.
"""

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.validation.closed_loop import Recording

Array = NDArray[np.float64]

SAMPLES = 500  # instants of a run at which its poses are looked at
LANDING = 0.1  # s after which feet that did not touch at the start have to touch


class Poses:
    """The plant at instants of a run, and what touches the ground there."""

    def __init__(self, recording: Recording, model: mujoco.MjModel) -> None:
        self.model, self.recording = model, recording
        self.data = mujoco.MjData(model)
        last = recording.ticks - 1
        self.ticks = np.unique(np.linspace(0, last, min(last + 1, SAMPLES)).round().astype(int))
        gravity = np.array(model.opt.gravity)
        size = float(np.linalg.norm(gravity))
        self.up = -gravity / size if size > 0 else np.array([0.0, 0.0, 1.0])

    def take(self, tick: int) -> mujoco.MjData:
        """Return the plant as it was at a tick, with its contacts."""
        self.data.qpos = self.recording.q[tick]
        if self.recording.mocap.size:
            mocap = self.recording.mocap[tick].reshape(self.model.nmocap, 7)
            self.data.mocap_pos, self.data.mocap_quat = mocap[:, :3], mocap[:, 3:]
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        mujoco.mj_collision(self.model, self.data)
        return self.data

    def grounded(self) -> tuple[set[int], list[float]]:
        """Return the bodies that touch the ground in the pose that was taken, and the heights."""
        bodies, heights = set(), []
        for i in range(self.data.ncon):
            contact = self.data.contact[i]
            pair = self.model.geom_bodyid[list(contact.geom)] if min(contact.geom) >= 0 else ()
            welded = [int(self.model.body_weldid[body]) for body in pair]
            if contact.dist <= 0 and welded.count(0) == 1:
                bodies.add(int(pair[1 - welded.index(0)]))
                heights.append(float(self.up @ contact.pos))
        return bodies, heights


def driven_bases(poses: Poses) -> list[int]:
    """Return the bodies with a free joint below which an actuator acts; others are objects."""
    model, data = poses.model, poses.take(0)
    mujoco.mj_tendon(model, data)
    mujoco.mj_transmission(model, data)
    driven = {int(model.body_rootid[body]) for body in model.dof_bodyid[data.moment_colind]}
    free = model.jnt_bodyid[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE]
    return [int(body) for body in free if int(body) in driven]


class Standing(NamedTuple):
    """A base that stands at the start of a run.

    Attributes:
        body: of the base.
        root: the first body of its tree.
        feet: bodies that may touch the ground.
        up: (3,) against gravity.
        upright: (3,) the same in axes of the base at the start.
        ground: height of the ground, m.
        begin: height of the centre of mass above it at the start, m.
    """

    body: int
    root: int
    feet: frozenset[int]
    up: Array
    upright: Array
    ground: float
    begin: float

    def height(self, data: mujoco.MjData) -> float:
        """Return the height of the centre of mass, of that at the start."""
        return (float(self.up @ data.subtree_com[self.body]) - self.ground) / self.begin

    def tilt(self, data: mujoco.MjData) -> float:
        """Return by how much the base leans from its first attitude, rad."""
        lean = self.up @ data.xmat[self.body].reshape(3, 3) @ self.upright
        return float(np.arccos(np.clip(lean, -1.0, 1.0)))


def standing_bases(poses: Poses) -> list[Standing]:
    """Return the bases that stand at the start of a run."""
    return [base for k in driven_bases(poses) if (base := _standing(poses, k)) is not None]


def _standing(poses: Poses, base: int) -> Standing | None:
    """Return how a base stands at the start; None where it does not."""
    model, feet, ground = poses.model, set[int](), list[float]()
    for tick in np.flatnonzero(poses.recording.t <= poses.recording.t[0] + LANDING):
        poses.take(int(tick))
        touching, heights = poses.grounded()
        own = {body for body in touching if model.body_rootid[body] == model.body_rootid[base]}
        if own and not ground:
            ground = heights
        feet |= own
    if not feet or base in feet:
        return None
    data, low = poses.take(0), min(ground)
    return Standing(
        body=base,
        root=int(model.body_rootid[base]),
        feet=frozenset(_with_subtrees(model, feet)),
        up=poses.up,
        upright=data.xmat[base].reshape(3, 3).T @ poses.up,
        ground=low,
        begin=float(poses.up @ data.subtree_com[base]) - low,
    )


def _with_subtrees(model: mujoco.MjModel, bodies: set[int]) -> set[int]:
    """Return these bodies and all below them; parents come before children in a model."""
    below = set(bodies)
    for body in range(1, model.nbody):
        if int(model.body_parentid[body]) in below:
            below.add(body)
    return below


class Upright(NamedTuple):
    """What a robot that stands has to keep.

    Attributes:
        bases: that stand.
        height: least height of a centre of mass, of the first.
        tilt: largest lean of a base, rad.
    """

    bases: tuple[Standing, ...]
    height: float
    tilt: float

    def is_lost(self, data: mujoco.MjData) -> bool:
        """Return whether a robot has fallen; positions and centres of mass are those of data."""
        return any(
            base.height(data) < self.height or base.tilt(data) > self.tilt for base in self.bases
        )

    def first_lost(self, recording: Recording, model: mujoco.MjModel) -> int | None:
        """Return the tick at which a robot has fallen; None where it stands to the end."""
        poses = Poses(recording, model)
        ticks = range(recording.ticks) if self.bases else ()
        return next((tick for tick in ticks if self.is_lost(poses.take(tick))), None)

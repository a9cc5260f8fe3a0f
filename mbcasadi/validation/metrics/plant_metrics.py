"""What a motion of the plant says by itself: whether a robot still stands, whether stops are kept.

These metrics need no reference and no word of the controller, so they judge any of them. A
mechanism stands where something below a floating base that its actuators move touches the ground
at the start, and the base itself does not. The bodies that touch are its feet, with all that hang
on them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.metric import Metric, named
from mbcasadi.validation.metrics.tracking_metrics import TrackingStatistics

Array = NDArray[np.float64]

HEIGHT, TILT, BODY_CONTACT = "plant.height", "plant.tilt", "plant.body_contact"
JOINT_BEYOND = "plant.joint_beyond"
SAMPLES = 500  # instants of a run at which its poses are looked at
LANDING = 0.1  # s after which feet that did not touch at the start have to touch


def plant_metrics(
    recording: Recording, model: mujoco.MjModel, tracking: Sequence[TrackingStatistics]
) -> Iterator[Metric]:
    """Yield the metrics of the plant alone.

    Those of standing are left out where a target moves: the run is then judged by its error.

    Args:
        recording: of the run.
        model: of the plant.
        tracking: the components of the controller's tasks; none below an outer law.
    """
    yield from named({JOINT_BEYOND: _beyond_stops(recording, model)})
    if any(row.moves for row in tracking):
        return
    poses = Poses(recording, model)
    standing = [base for k in driven_bases(poses) if (base := _standing(poses, k)) is not None]
    if not standing:
        return
    histories = [_history(poses, base) for base in standing]
    values = {
        HEIGHT: min(each.height.min() for each in histories),
        TILT: max(each.tilt.max() for each in histories),
        BODY_CONTACT: max(each.lies.mean() for each in histories),
    }
    yield from named(values)


def _beyond_stops(recording: Recording, model: mujoco.MjModel) -> float | None:
    """Return by how much a joint exceeds its range at most, of the range; None without ranges."""
    scalar = (model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE) | (
        model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
    )
    limited = np.flatnonzero(scalar & (model.jnt_limited > 0))
    low, high = model.jnt_range[limited].T
    q = recording.q[:, model.jnt_qposadr[limited]]
    if not q.size:
        return None
    return max(0.0, float((np.maximum(low - q, q - high) / (high - low)).max()))


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


class _Standing(NamedTuple):
    """A base that stands: its body, the ground's height, and which bodies may touch it."""

    body: int
    ground: float
    feet: frozenset[int]


def _standing(poses: Poses, base: int) -> _Standing | None:
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
    return _Standing(base, min(ground), frozenset(_with_subtrees(model, feet)))


def _with_subtrees(model: mujoco.MjModel, bodies: set[int]) -> set[int]:
    """Return these bodies and all below them; parents come before children in a model."""
    below = set(bodies)
    for body in range(1, model.nbody):
        if int(model.body_parentid[body]) in below:
            below.add(body)
    return below


class _History(NamedTuple):
    """Of a base: height, of the first; tilt, rad; whether more than feet touch the ground."""

    height: Array
    tilt: Array
    lies: Array


def _history(poses: Poses, base: _Standing) -> _History:
    """Return how a base moved."""
    model, body = poses.model, base.body
    first = poses.take(0)
    upright = first.xmat[body].reshape(3, 3).T @ poses.up
    begin = float(poses.up @ first.subtree_com[body]) - base.ground
    height, tilt, lies = [], [], []
    for tick in poses.ticks:
        data = poses.take(int(tick))
        touching, _ = poses.grounded()
        own = {k for k in touching if model.body_rootid[k] == model.body_rootid[body]}
        height.append((float(poses.up @ data.subtree_com[body]) - base.ground) / begin)
        lean = poses.up @ data.xmat[body].reshape(3, 3) @ upright
        tilt.append(np.arccos(np.clip(lean, -1.0, 1.0)))
        lies.append(float(bool(own - base.feet)))
    return _History(np.array(height), np.array(tilt), np.array(lies))

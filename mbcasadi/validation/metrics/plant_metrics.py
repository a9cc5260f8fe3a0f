"""What a motion of the plant says by itself: whether a robot still stands, whether stops are kept.

These metrics need no reference and no word of the controller, so they judge any of them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.metric import Metric, named
from mbcasadi.validation.metrics.standing import Poses, Standing, standing_bases
from mbcasadi.validation.metrics.tracking_metrics import TrackingStatistics

Array = NDArray[np.float64]

HEIGHT, TILT, BODY_CONTACT = "plant.height", "plant.tilt", "plant.body_contact"
JOINT_BEYOND = "plant.joint_beyond"


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
    histories = [_history(poses, base) for base in standing_bases(poses)]
    if not histories:
        return
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


class _History(NamedTuple):
    """Of a base: height, of the first; tilt, rad; whether more than feet touch the ground."""

    height: Array
    tilt: Array
    lies: Array


def _history(poses: Poses, base: Standing) -> _History:
    """Return how a base moved."""
    height, tilt, lies = [], [], []
    for tick in poses.ticks:
        data = poses.take(int(tick))
        touching, _ = poses.grounded()
        own = {k for k in touching if poses.model.body_rootid[k] == base.root}
        height.append(base.height(data))
        tilt.append(base.tilt(data))
        lies.append(float(bool(own - base.feet)))
    return _History(np.array(height), np.array(tilt), np.array(lies))

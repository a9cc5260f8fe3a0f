"""Whether a robot goes and turns as a command above its controller says.

Walking planners are commanded speeds c along x and y of the base, m/s, and its turn, rad/s. With
the heading psi of the base, its way in its own axes is `∫ R(psi)ᵀ dp`, the commanded one `∫ c dt`:
what is judged is the gap of both at the end, so that lags of a gait and its swaying average out,
and a robot that stands still does not.
"""

from collections.abc import Iterator

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.metric import Metric, named
from mbcasadi.validation.metrics.standing import Poses, driven_bases

Array = NDArray[np.float64]

WAY, HEADING = "command.way_share", "command.heading"


def command_metrics(
    recording: Recording, model: mujoco.MjModel, speeds: Array | None
) -> Iterator[Metric]:
    """Yield how far a base is from where a command leads; nothing without a base that floats.

    Args:
        recording: of the run.
        model: of the plant.
        speeds: (nt, 3) that are commanded at each tick; None where none are.
    """
    if speeds is None or recording.ticks < 2:
        return
    bases = driven_bases(Poses(recording, model))
    if len(bases) != 1:
        return
    place = int(model.jnt_qposadr[model.body_jntadr[bases[0]]])
    p, quat = recording.q[:, place : place + 2], recording.q[:, place + 3 : place + 7]
    w, x, y, z = quat.T
    heading = np.unwrap(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y**2 + z**2)))
    c, s, steps = np.cos(heading[:-1]), np.sin(heading[:-1]), np.diff(p, axis=0)
    ahead, left = c * steps[:, 0] + s * steps[:, 1], c * steps[:, 1] - s * steps[:, 0]
    way = np.array([ahead.sum(), left.sum()])
    ordered = speeds[:-1] * np.diff(recording.t)[:, None]
    length = float(np.linalg.norm(ordered[:, :2], axis=1).sum())
    gap = float(np.linalg.norm(way - ordered[:, :2].sum(axis=0)))
    turned = float(heading[-1] - heading[0] - ordered[:, 2].sum())
    yield from named({WAY: gap / length if length > 0 else None, HEADING: abs(turned)})

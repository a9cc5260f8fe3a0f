"""How far an estimator in the loop was from the plant's own motion."""

from collections.abc import Iterator

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.metric import Metric, named

Array = NDArray[np.float64]

BOUND = 3.0
"""Standard deviations inside which an error is to stay."""


def estimate_metrics(
    recording: Recording, model: mujoco.MjModel, settle: float
) -> Iterator[Metric]:
    """Yield errors of the estimate, for a run with an estimator.

    Args:
        recording: of the closed loop.
        model: of the plant.
        settle: s at the start that are left out.
    """
    monitor = recording.monitor
    if "estimate_q" not in monitor:
        return
    late = recording.t >= min(settle, recording.t[-1])
    error, deviation = monitor["estimate_error"][late], monitor["estimate_deviation"][late]
    inside = np.abs(error) <= BOUND * deviation + TINY
    yield from named(
        {
            "estimate.within": float(inside.mean(axis=0).min(initial=1.0)),
            "estimate.doubted": float((monitor["estimate_status"][late] != 0).mean()),
            "estimate.nees": float(monitor["estimate_nees"][late].mean()),
        }
    )
    free = model.njnt > 0 and model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    if not free:
        rate = monitor["estimate_v"][late] - recording.v[late]
        yield from named({"estimate.rate": float(np.sqrt((rate**2).mean(axis=0)).max())})
        return
    from scipy.spatial.transform import Rotation  # heavy, and needed for estimated bases only

    q, v = recording.q[late], recording.v[late]
    q_hat, v_hat = monitor["estimate_q"][late], monitor["estimate_v"][late]
    R, R_hat = (Rotation.from_quat(x[:, 3:7], scalar_first=True) for x in (q, q_hat))
    gap = R_hat.inv().apply(v_hat[:, :3]) - R.inv().apply(v[:, :3])
    up = [turn.inv().apply([0.0, 0.0, 1.0]) for turn in (R, R_hat)]
    tilt = np.arcsin(np.clip(np.linalg.norm(np.cross(*up), axis=1), 0, 1))
    way = float(np.linalg.norm(np.diff(q[:, :2], axis=0), axis=1).sum())
    moved = [x[-1, :2] - x[0, :2] for x in (q, q_hat)]
    yield from named(
        {
            "estimate.velocity": float(np.sqrt((gap**2).sum(axis=1).mean())),
            "estimate.tilt": float(tilt.max()),
            "estimate.tilt_rms": float(np.sqrt((tilt**2).mean())),
            "estimate.drift": float(np.linalg.norm(moved[1] - moved[0])) / way
            if way > LEAST_WAY
            else None,
        }
    )


TINY = 1e-12
"""Error below which no deviation is asked for: of coordinates that are exact."""

LEAST_WAY = 0.5
"""m, below which a drift has no share of the way."""

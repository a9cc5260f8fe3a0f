"""How well loops stay closed, and how well our dynamics agree with MuJoCo's along a run."""

from collections.abc import Iterator

import mujoco
import numpy as np

from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.comparison import Comparison
from mbcasadi.validation.metrics.metric import Metric
from mbcasadi.validation.metrics.unit_scales import unit_scale


def closure_metrics(
    recording: Recording, comparison: Comparison | None, model: mujoco.MjModel
) -> Iterator[Metric]:
    """Yield gaps and residuals in MuJoCo, and with a comparison also of our equations.

    Nothing is yielded where no equality constraint exerts a force.

    Args:
        recording, comparison: of the run.
        model: of the plant, for its extent.
    """
    if not recording.equality_force.any():
        return
    gap = float(recording.closure.max())
    yield Metric("closure.plant", gap, "m", "worst gap in MuJoCo")
    share = gap / unit_scale(model, "m")
    yield Metric("closure.share", share, "", "worst gap, of the extent of the model")
    yield Metric("closure.rows", float(recording.residual.max()), "m or rad", "worst row in MuJoCo")
    if comparison is None:
        return
    drift = float(comparison.drift.max())
    yield Metric("closure.model", drift, "m or rad", "worst |phi| of our equations, same states")
    for name, quantity, error in (
        ("force", "constraint force", comparison.force_error),
        ("a", "acceleration", comparison.acceleration_error),
    ):
        text = f"relative difference of our {quantity} and MuJoCo's"
        yield Metric(f"agreement.{name}_median", float(np.median(error)), "", f"median {text}")
        yield Metric(f"agreement.{name}_max", float(error.max()), "", f"largest {text}")

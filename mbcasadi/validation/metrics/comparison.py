"""Our equations against MuJoCo's forces and accelerations, at the states that a run visited.

`M a + h = f + f_passive + Aᵀ lam`: forces of MuJoCo's motors, contacts, limits and dry friction,
and a disturbance, are the applied force `f`, so that only the equality constraints are compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import casadi as ca
import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.plant.static_gaps import static_gap
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.metric import Metric, named, unit_scale

Array = NDArray[np.float64]

MOST_STATES = 2000  # of one comparison; of a longer run every second, third, ... state is taken
# A force below this share of the run's largest is compared to that share, not to itself.
FLOOR = 1e-3


@summarised
@dataclass(frozen=True)
class Comparison:
    """Our dynamics and MuJoCo's at the same states.

    Attributes:
        t: (n,) s.
        drift: (n,) largest |phi| of our constraint equations at the plant's states.
        force, mujoco_force: (n, nv) constraint force of the equalities, by our equations and in
            MuJoCo.
        force_error, acceleration_error: (n,) relative differences.
    """

    t: Array
    drift: Array
    force: Array
    mujoco_force: Array
    force_error: Array
    acceleration_error: Array


def relative_difference(values: Array, reference: Array) -> Array:
    """Return `‖values - reference‖ / max(‖reference‖, FLOOR · largest)` for each row.

    All entries are in one unit: see `compare_run`.
    """
    size = np.linalg.norm(reference, axis=1)
    scale = np.maximum(size, FLOOR * size.max(initial=0.0))
    difference = np.linalg.norm(values - reference, axis=1)
    return np.where(scale > 0, difference / np.where(scale > 0, scale, 1.0), 0.0)


def compare_run(
    system: System,
    dynamics: ca.Function,
    recording: Recording,
    mask: Array | None = None,
    p: Array | None = None,
) -> Comparison:
    """Compare at the states of a recording.

    Args:
        system: the model as our equations see it, without the plant's parameter errors.
        dynamics: (q, v, f, [p], [mask]) → (a, f_c, lam), of `dynamics.forward_dynamics`.
        recording: a closed loop.
        mask: (nt, nc) active rows at each tick; all rows where None.
        p: (nt, np) parameters of the system at each tick, where it has some.
    """
    stride = max(1, -(-recording.ticks // MOST_STATES))
    q, v = recording.q[::stride], recording.v[::stride]
    applied = recording.actuator_force + recording.other_force + recording.disturbance
    at_p = [] if p is None else [p[::stride]]
    inputs = [q, v, applied[::stride], *at_p] + ([] if mask is None else [mask[::stride]])
    a, force = evaluate_rows(dynamics, *inputs)[:2]
    mujoco_force = recording.equality_force[::stride]
    (phi,) = evaluate_rows(system.constraint, q, *at_p)
    phi = phi if mask is None else phi * mask[::stride]
    size = system.scales.coordinates  # forces as torques, accelerations as those of angles
    return Comparison(
        t=recording.t[::stride],
        drift=np.abs(phi).max(axis=1, initial=0.0),
        force=force,
        mujoco_force=mujoco_force,
        force_error=relative_difference(force * size, mujoco_force * size),
        acceleration_error=relative_difference(a / size, recording.a[::stride] / size),
    )


def evaluate_rows(function: ca.Function, *rows: Array) -> list[Array]:
    """Evaluate a Function of column vectors at n points: (n, size) in, (n, size) out."""
    outputs = function.call([ca.DM(r.T) for r in rows])
    return [np.array(output).T.reshape(len(rows[0]), -1) for output in outputs]


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
    gap = recording.closure.max()
    share = gap / unit_scale(model, "m")
    rows = recording.residual.max()
    yield from named({"closure.plant": gap, "closure.share": share, "closure.rows": rows})
    static = static_gap(model, recording.q[0]) / unit_scale(model, "m")
    yield from named({"closure.static_share": static})
    if comparison is None:
        return
    force, a = comparison.force_error, comparison.acceleration_error
    values = {
        "closure.model": comparison.drift.max(),
        "agreement.force_median": np.median(force),
        "agreement.force_max": force.max(),
        "agreement.a_median": np.median(a),
        "agreement.a_max": a.max(),
    }
    yield from named(values)

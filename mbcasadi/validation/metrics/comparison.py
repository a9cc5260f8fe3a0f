"""Our equations against MuJoCo's forces and accelerations, at the states that a run visited.

`M a + h = f + f_passive + Aᵀ lam`: what MuJoCo's motors, contacts, limits and dry friction do,
and what a disturbance does, enters as the applied force `f`, so that the equality constraints
alone are compared.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.system import System
from mbcasadi.validation.closed_loop.recording import Recording

Array = NDArray[np.float64]

MOST_STATES = 2000  # states of one comparison; a longer run is thinned
# A force below this share of the run's largest is compared to that share, not to itself.
FLOOR = 1e-3


@dataclass(frozen=True)
class Comparison:
    """Our dynamics beside MuJoCo's.

    Attributes:
        t: (n,) s.
        drift: (n,) largest |phi| of our constraint equations at the plant's states.
        force_ours, force_theirs: (n, nv) constraint force of the equalities.
        force_error, acceleration_error: (n,) relative differences.
    """

    t: Array
    drift: Array
    force_ours: Array
    force_theirs: Array
    force_error: Array
    acceleration_error: Array


def relative_difference(ours: Array, theirs: Array) -> Array:
    """Return `‖ours - theirs‖ / max(‖theirs‖, FLOOR · largest)` for each row."""
    size = np.linalg.norm(theirs, axis=1)
    scale = np.maximum(size, FLOOR * size.max(initial=0.0))
    difference = np.linalg.norm(ours - theirs, axis=1)
    return np.where(scale > 0, difference / np.where(scale > 0, scale, 1.0), 0.0)


def compare_run(
    system: System, dynamics: ca.Function, recording: Recording, mask: Array | None = None
) -> Comparison:
    """Compare at the states of a recording.

    Args:
        system: the model as our equations see it, without the plant's parameter errors.
        dynamics: (q, v, f, [mask]) → (a, f_c, lam), e.g. of `mbcasadi.dynamics.forward_dynamics`.
        recording: a closed loop.
        mask: (nt, nc) rows that hold at each tick; None where all do.
    """
    thin = max(1, -(-recording.ticks // MOST_STATES))
    q, v = recording.q[::thin], recording.v[::thin]
    applied = recording.actuator_force + recording.other_force + recording.disturbance
    given = [q, v, applied[::thin]] + ([] if mask is None else [mask[::thin]])
    a, force = in_columns(dynamics, *given)[:2]
    theirs = recording.equality_force[::thin]
    (phi,) = in_columns(system.constraint, q)
    phi = phi if mask is None else phi * mask[::thin]
    return Comparison(
        t=recording.t[::thin],
        drift=np.abs(phi).max(axis=1, initial=0.0),
        force_ours=force,
        force_theirs=theirs,
        force_error=relative_difference(force, theirs),
        acceleration_error=relative_difference(a, recording.a[::thin]),
    )


def in_columns(function: ca.Function, *rows: Array) -> list[Array]:
    """Evaluate a Function of column vectors at many points: rows in, rows out."""
    results = function.call([ca.DM(r.T) for r in rows])
    return [np.array(result).T.reshape(len(rows[0]), -1) for result in results]

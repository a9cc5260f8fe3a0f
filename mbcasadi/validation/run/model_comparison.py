"""Our dynamics beside a run in MuJoCo, where the model has equality constraints."""

from collections.abc import Callable

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.plant import Plant, Source
from mbcasadi.system import System, read_mjcf
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics.comparison import Comparison, compare_run
from mbcasadi.validation.metrics.softness import Softness, softness_sweep

Array = NDArray[np.float64]

SOFT_RANK_TOL = 1e-3  # gaps of soft loops, as a share of the links' lengths


def beside_ours(
    model: Source,
    make_plant: Callable[[], Plant],
    recording: Recording,
    notes: list[str],
    *,
    softness: bool,
    switched: bool,
) -> tuple[Comparison | None, Softness | None]:
    """Compare a run with our dynamics; what cannot be compared goes to the notes.

    Where the plant's constraints were switched, our rows are on where MuJoCo's were.

    Args:
        model: as our equations see it, without the plant's parameter errors.
        make_plant: a new plant, as the run had it.
        recording: the run.
        notes: sentences for the reader; one is added where something is left out.
        softness: sweep `solimp` too.
        switched: the run switched equality constraints.
    """
    try:
        system = read_mjcf(model, switchable=switched)
        if not system.nc:
            return None, None
        dynamics = dynamics_of(system)
    except UnsupportedFeatureError as error:
        notes.append(f"Our dynamics were not compared: {error}")
        return None, None
    mask = rows_on(system, recording) if switched else None
    comparison = compare_run(system, dynamics, recording, mask)
    if softness and switched:
        notes.append("Softness was not swept: the plant's constraints were switched.")
    sweep = softness_sweep(make_plant, dynamics, recording) if softness and not switched else None
    return comparison, sweep


def rows_on(system: System, recording: Recording) -> Array:
    """Return (nt, nc): which of our rows MuJoCo enforced, equality by equality."""
    sizes = [equality.size for equality in system.equalities]
    return np.repeat(recording.equality_on, sizes, axis=1)


def dynamics_of(system: System) -> ca.Function:
    """Return the forward dynamics (q, v, f, [mask]) → (a, f_c, lam) that MuJoCo is compared with.

    Soft loops stand open by a little, and rows that repeat each other on the manifold are only
    nearly dependent there. What differs by less than `SOFT_RANK_TOL` counts as the same row: with
    a finer rule, Bennett's linkage would be locked by the micrometres that its loop is open.
    """
    from mbcasadi.dynamics import forward_dynamics

    return forward_dynamics(system, formulation="projection", rank_tol=SOFT_RANK_TOL)

"""Our dynamics against a run in MuJoCo, where the model has equality constraints."""

from functools import lru_cache
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.dynamics import Treatment, forward_dynamics
from mbcasadi.errors import UnknownNameError, UnsupportedFeatureError
from mbcasadi.mjcf import load
from mbcasadi.system import System, read_mjcf
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.closed_loop.columns import FREE_Q
from mbcasadi.validation.metrics import Comparison, Softness, compare_run, softness_sweep
from mbcasadi.validation.run.model_bytes import model_bytes, model_of_bytes
from mbcasadi.validation.run.preparation import PlantFactory

Array = NDArray[np.float64]

MOVED = (
    "Mocap bodies count as at rest where they are at each tick, in MuJoCo and in our equations: "
    "constraint forces differ while they move."
)

KEPT = 4
"""Models whose equations are kept for the next run of them."""

SOFT_RANK_TOL = 1e-3  # gaps of soft loops, as a share of the links' lengths


class ModelComparison(NamedTuple):
    """A comparison and a softness sweep, None where not made, and notes on why."""

    comparison: Comparison | None = None
    softness: Softness | None = None
    notes: tuple[str, ...] = ()


def compare_with_model(
    plants: PlantFactory,
    recording: Recording,
    *,
    softness: bool,
    switched: bool,
    moved: tuple[str, ...] = (),
) -> ModelComparison:
    """Compare a run with our dynamics of the same model, without parameter errors.

    Where the plant's constraints were switched, our rows are active where MuJoCo's were. Poses of
    mocap bodies that moved are parameters of our equations.

    Args:
        plants: of the run.
        recording: the run.
        softness: sweep `solimp` too.
        switched: the run switched equality constraints.
        moved: names of the mocap bodies that it moved.
    """
    poses = [f"mocap:{body}:{part}" for body in moved for part in ("pos", "quat")]
    try:
        content = model_bytes(load(plants.model)[0])
        system, dynamics = _equations_of(content, switched, tuple(poses))
        if dynamics is None:
            return ModelComparison()
    except (UnsupportedFeatureError, UnknownNameError) as error:
        return ModelComparison(notes=(f"Our dynamics were not compared: {error}",))
    mask = active_rows(system, recording) if switched else None
    p = poses_of(recording, moved) if moved else None
    comparison = compare_run(system, dynamics, recording, mask, p)
    notes: tuple[str, ...] = (MOVED,) if moved else ()
    if softness and (switched or moved):
        reason = "constraints were switched" if switched else "mocap bodies moved"
        notes += (f"Softness was not swept: the plant's {reason}.",)
        return ModelComparison(comparison, notes=notes)
    sweep = softness_sweep(plants.make, system, dynamics, recording) if softness else None
    return ModelComparison(comparison, sweep, notes)


@lru_cache(maxsize=KEPT)
def _equations_of(
    content: bytes, switched: bool, poses: tuple[str, ...]
) -> tuple[System, ca.Function | None]:
    """Return our system of a model, and its dynamics; None without equality constraints."""
    system = read_mjcf(model_of_bytes(content), switchable=switched, parameters=poses)
    return system, comparison_dynamics(system) if system.nc else None


def active_rows(system: System, recording: Recording) -> Array:
    """Return (nt, nc): 1 for each of our rows that MuJoCo enforced, equality by equality."""
    sizes = [equality.size for equality in system.equalities]
    return np.repeat(recording.equality_active, sizes, axis=1)


def poses_of(recording: Recording, bodies: tuple[str, ...]) -> Array:
    """Return (nt, 7 n) the recorded poses of mocap bodies."""
    names = recording.columns["mocap"].names
    places = [names.index(f"{body}.{entry}") for body in bodies for entry in FREE_Q]
    return recording.mocap[:, places]


def comparison_dynamics(system: System) -> ca.Function:
    """Return the forward dynamics (q, v, f, [p], [mask]) → (a, f_c, lam) to compare MuJoCo with.

    Soft loops are slightly open, and rows that are dependent on the manifold are only nearly
    dependent there. Rows that differ by less than `SOFT_RANK_TOL` count as dependent: with a finer
    tolerance, Bennett's linkage would be locked by the micrometres that its loop is open.
    """
    treatment = Treatment(rank_tol=SOFT_RANK_TOL)
    return forward_dynamics(system, "projection", treatment=treatment, derivatives=False)

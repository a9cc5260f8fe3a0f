"""The part of a disagreement that comes from the softness of MuJoCo's constraints.

MuJoCo regularises each equality row by `R = (1 - d) / d · diagApprox`, `d` the impedance of
`solimp`. With `s = (1 - d) / d` its solution is a smooth function of s, and s = 0 is the rigid
limit, which `d <= 0.9999` excludes. So the difference to our rigid equations is measured at
several s, at states with closed loops, and extrapolated to s = 0: what remains there has another
cause. `solref` does not enter: it acts on the gap of a loop, which is zero at these states. It
determines how far the loops open during a run, so the run is repeated with several time constants
of `solref`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import SimulationError
from mbcasadi.plant import Plant, soften
from mbcasadi.system import System
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.comparison import FLOOR, evaluate_rows

Array = NDArray[np.float64]

IMPEDANCES = (0.9, 0.99, 0.999, 0.9999)
TIME_CONSTANTS = (2, 5, 10, 20)
"""Of `solref`, in time steps of the plant; MuJoCo's minimum is two."""

MOST_STATES = 100
# A smaller relative difference is the rounding of both sides and needs no explanation.
SMALLEST_DIFFERENCE = 1e-9


@dataclass(frozen=True)
class Softness:
    """The difference between our constraint force and MuJoCo's, against softness.

    Attributes:
        impedances: (k,) of `solimp`.
        errors: (k,) median relative difference with each.
        own: median relative difference with the model's own `solref` and `solimp`.
        rigid: median relative difference, extrapolated to rigid constraints.
        states: number of states.
        gaps: (time constant of `solref`, s; worst equality residual of the run) pairs.
    """

    impedances: tuple[float, ...]
    errors: tuple[float, ...]
    own: float
    rigid: float
    states: int
    gaps: tuple[tuple[float, float], ...] = ()

    @property
    def explained_share(self) -> float:
        """Share of the difference that softness explains, 0 to 1."""
        return 1.0 if self.own < SMALLEST_DIFFERENCE else max(0.0, 1.0 - self.rigid / self.own)

    @property
    def sentence(self) -> str:
        """The result as one sentence."""
        return (
            f"Softness explains {100 * self.explained_share:.2f} % of the difference in constraint "
            f"force: {self.own:.2g} with the plant's own solref and solimp, {self.rigid:.2g} "
            f"extrapolated to rigid constraints (median of {self.states} states with closed loops)."
        )


def softness_sweep(
    make_plant: Callable[[], Plant], system: System, dynamics: ca.Function, recording: Recording
) -> Softness:
    """Evaluate the visited states in plants of different softness.

    Forces count as torques, so that the medians have no unit: see `compare_run`.

    Args:
        make_plant: returns a new plant, as in the run.
        system: the model as our equations see it.
        dynamics: (q, v, f) → (a, f_c, lam) of its rigid constraints.
        recording: the run whose states and controls are used.
    """
    ticks = np.linspace(0, recording.ticks - 1, min(MOST_STATES, recording.ticks)).astype(int)
    size = system.scales.coordinates
    own, scale = _differences(make_plant(), size, dynamics, recording, ticks)
    rows = []
    for impedance in IMPEDANCES:
        plant = make_plant()
        soften(plant.model, 2 * plant.timestep, impedance)
        rows.append(_differences(plant, size, dynamics, recording, ticks)[0])
    s = np.array([(1 - d) / d for d in IMPEDANCES[-3:]])
    rigid = extrapolate_to_zero(s, np.array(rows[-3:]))
    return Softness(
        impedances=IMPEDANCES,
        errors=tuple(_median(row, scale) for row in rows),
        own=_median(own, scale),
        rigid=_median(rigid, scale),
        states=len(scale),
    )


def solref_sweep(
    make_plant: Callable[[], Plant], run: Callable[[Plant], Recording]
) -> tuple[tuple[float, float], ...]:
    """Return (time constant of `solref`, s; worst equality residual) of repeated runs.

    Args:
        make_plant: returns a new plant, as in the run.
        run: the closed loop with a given plant.
    """
    gaps = []
    for steps in TIME_CONSTANTS:
        plant = make_plant()
        plant.model.eq_solref[:] = (steps * plant.timestep, 1.0)
        gaps.append((steps * plant.timestep, float(run(plant).residual.max())))
    return tuple(gaps)


def extrapolate_to_zero(s: Array, values: Array) -> Array:
    """Return the value at s = 0 of the polynomial through `values` (k, ...) at `s` (k,)."""
    total = np.zeros(values.shape[1:])
    for i in range(len(s)):
        others = np.delete(s, i)
        total += values[i] * np.prod(others / (others - s[i]))
    return total


def _differences(
    plant: Plant,
    size: Array,
    dynamics: ca.Function,
    recording: Recording,
    ticks: NDArray[np.int64],
) -> tuple[Array, Array]:
    """Return (n, nv) `f_c` by our equations minus MuJoCo's, and (n,) the norm of MuJoCo's.

    Args:
        plant: MuJoCo's, with some softness.
        size: (nv,) of the coordinates; forces times it are torques.
        dynamics: (q, v, f) → (a, f_c, lam) of rigid constraints.
        recording: the run.
        ticks: (n,) of the run that count.
    """
    states, mujoco_force = [], []
    for k in ticks:
        try:
            act = recording.act[k] if recording.act.size else None
            plant.reset(recording.q[k], recording.v[k], act)
            measured = plant.measure(recording.u_applied[k])
        except SimulationError as error:
            raise SimulationError(f"softness sweep, state {k} of the run: {error}") from error
        other = measured.constraint_force - measured.equality_force
        states.append((measured.q, measured.v, measured.actuator_force + other))
        mujoco_force.append(measured.equality_force)
    inputs = (np.array(rows) for rows in zip(*states, strict=True))
    force, reference = size * evaluate_rows(dynamics, *inputs)[1], size * np.array(mujoco_force)
    return force - reference, np.linalg.norm(reference, axis=1)


def _median(difference: Array, scale: Array) -> float:
    floor = max(FLOOR * float(scale.max(initial=0.0)), np.finfo(float).tiny)
    return float(np.median(np.linalg.norm(difference, axis=1) / np.maximum(scale, floor)))

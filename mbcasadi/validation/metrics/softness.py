"""Which part of a disagreement comes from the softness of MuJoCo's constraints.

MuJoCo regularises each equality row by `R = (1 - d) / d · diagApprox`, `d` the impedance of
`solimp`. With `s = (1 - d) / d` its answer is a smooth function of s, and s = 0 is the rigid
limit, which `d <= 0.9999` keeps out of reach. So the difference to our rigid equations is
measured at several s, at states with closed loops, and extrapolated to s = 0: what is left there
has another reason. `solref` has no part in that: it acts on the gap of a loop, which is zero at
these states. Its part is how far the loops open during a run, so the run is repeated with several
time constants of `solref`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import SimulationError
from mbcasadi.plant import Plant, soften
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics.comparison import FLOOR, in_columns

Array = NDArray[np.float64]

IMPEDANCES = (0.9, 0.99, 0.999, 0.9999)
TIME_CONSTANTS = (2, 5, 10, 20)
"""Of `solref`, in time steps of the plant; MuJoCo takes at least two."""

MOST_STATES = 100
# Below this relative difference there is nothing to explain: it is the rounding of both.
NOTHING = 1e-9


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
    def explained(self) -> float:
        """Share of the difference that softness explains, 0 to 1."""
        return 1.0 if self.own < NOTHING else max(0.0, 1.0 - self.rigid / self.own)

    @property
    def sentence(self) -> str:
        """The finding in words."""
        return (
            f"Softness explains {100 * self.explained:.2f} % of the difference in constraint "
            f"force: {self.own:.2g} with the plant's own solref and solimp, {self.rigid:.2g} "
            f"extrapolated to rigid constraints (median of {self.states} states with closed loops)."
        )


def softness_sweep(
    make_plant: Callable[[], Plant], dynamics: ca.Function, recording: Recording
) -> Softness:
    """Repeat the visited states in plants of different softness.

    Args:
        make_plant: a new plant, as the run had it.
        dynamics: (q, v, f) → (a, f_c, lam) of rigid constraints.
        recording: the run whose states and controls are used.
    """
    chosen = np.linspace(0, recording.ticks - 1, min(MOST_STATES, recording.ticks)).astype(int)
    own_plant = make_plant()
    own, scale = _differences(own_plant, dynamics, recording, chosen)
    rows = []
    for impedance in IMPEDANCES:
        plant = make_plant()
        soften(plant.model, 2 * plant.timestep, impedance)
        rows.append(_differences(plant, dynamics, recording, chosen)[0])
    rigid = extrapolated(np.array([(1 - d) / d for d in IMPEDANCES[-3:]]), np.array(rows[-3:]))
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
    """Repeat the run with other time constants of `solref`; return them with the worst residual.

    Args:
        make_plant: a new plant, as the run had it.
        run: the closed loop with that plant.
    """
    found = []
    for steps in TIME_CONSTANTS:
        plant = make_plant()
        plant.model.eq_solref[:] = (steps * plant.timestep, 1.0)
        found.append((steps * plant.timestep, float(run(plant).residual.max())))
    return tuple(found)


def extrapolated(s: Array, values: Array) -> Array:
    """Return the value at s = 0 of the polynomial through `values` (k, ...) at `s` (k,)."""
    total = np.zeros(values.shape[1:])
    for i in range(len(s)):
        others = np.delete(s, i)
        total += values[i] * np.prod(others / (others - s[i]))
    return total


def _differences(
    plant: Plant, dynamics: ca.Function, recording: Recording, chosen: NDArray[np.int64]
) -> tuple[Array, Array]:
    """Return (n, nv) `f_c` of ours minus MuJoCo's, and (n,) the size of MuJoCo's."""
    states, theirs = [], []
    for k in chosen:
        try:
            act = recording.act[k] if recording.act.size else None
            plant.reset(recording.q[k], recording.v[k], act)
            measured = plant.measure(recording.u_applied[k])
        except SimulationError as error:
            raise SimulationError(f"softness sweep, state {k} of the run: {error}") from error
        other = measured.constraint_force - measured.equality_force
        states.append((measured.q, measured.v, measured.actuator_force + other))
        theirs.append(measured.equality_force)
    ours = in_columns(dynamics, *(np.array(rows) for rows in zip(*states, strict=True)))[1]
    return ours - np.array(theirs), np.linalg.norm(theirs, axis=1)


def _median(difference: Array, scale: Array) -> float:
    floor = max(FLOOR * float(scale.max(initial=0.0)), NOTHING)
    return float(np.median(np.linalg.norm(difference, axis=1) / np.maximum(scale, floor)))

"""Readings of our rigid motion beside those of MuJoCo's soft constraints.

`System.sensor` is exact under MuJoCo's own acceleration and forces. A prediction has neither: it
takes the motion of rigid constraints, and what is left of the difference is the softness of the
model's `solref` and `solimp`. At closed states, so that no constraint is violated at the start.
"""

from typing import Any, NamedTuple

import mujoco
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.description.sensors import SENSED_ACCELERATIONS
from mbcasadi.dynamics import predicted_readings
from mbcasadi.errors import SimulationError, UnsupportedFeatureError
from mbcasadi.plant import Plant
from mbcasadi.shapes import require_whole
from mbcasadi.system import System
from mbcasadi.system.sensor_functions import usable_sensors
from mbcasadi.validation.agreement.derived_quantities import instant_copy
from mbcasadi.validation.agreement.manifold import Array
from mbcasadi.validation.agreement.sizes import measure_sizes


class SensorGap(NamedTuple):
    """How far the rigid reading of a sensor is from MuJoCo's.

    Attributes:
        sensor: its name.
        kind: MJCF's name of its element.
        gap: largest difference over all states, in the unit of the sensor.
        reading: MuJoCo's largest reading.
    """

    sensor: str
    kind: str
    gap: float
    reading: float

    @property
    def relative(self) -> float:
        """The difference over the reading; NaN where all readings are zero."""
        return self.gap / self.reading if self.reading else float("nan")


@checked
def sensor_gaps(
    system: System, model: mujoco.MjModel, states: int = 5, seed: int = 0
) -> list[SensorGap]:
    """Compare predicted readings with MuJoCo's, without contacts, limits and dry friction.

    Args:
        system: read from the same model.
        model: the compiled model; it is not changed.
        states: number of random closed states, at u = 0.
        seed: of the random states.

    Returns:
        One entry for each sensor that reads accelerations or forces between bodies.

    Raises:
        UnsupportedFeatureError: the dynamics of the system are refused.
        SimulationError: MuJoCo finds no closed state.
    """
    require_whole(1, states=states)
    require_whole(0, seed=seed)
    sensors = usable_sensors(system.sensors, system.coverage)
    chosen = [sensor for sensor in sensors if sensor.kind in SENSED_ACCELERATIONS]
    if not chosen:
        return []
    predicted = predicted_readings(system, [s.name for s in chosen], derivatives=False)
    plant, rng = Plant(instant_copy(model)), np.random.default_rng(seed)
    sizes = measure_sizes(plant.model)
    ours, theirs = [], []
    for _ in range(states):
        speed = sizes.rate * sizes.coordinates * rng.normal(size=system.nv)
        _close(plant, sizes.coordinates, speed, rng)
        measured = plant.measure(np.zeros(system.nu))
        inputs: dict[str, Any] = {  # CasADi's stubs mix no kinds
            "q": measured.q,
            "v": measured.v,
            "f": np.zeros(system.nv),
            "u": measured.u,
            "act": measured.act,
            "wrenches": plant.applied_wrenches,
            "t": measured.time,
            "mask": system.mask,
        }
        outputs = predicted.call([inputs[name] for name in predicted.name_in()])
        ours.append(np.array(outputs[0]).ravel())
        theirs.append(np.concatenate([plant.sensor(s.name) for s in chosen]))
    rows = np.cumsum([0, *(sensor.size for sensor in chosen)])
    gap, reading = np.abs(np.subtract(ours, theirs)).max(axis=0), np.abs(theirs).max(axis=0)
    return [
        SensorGap(s.name, s.kind, float(gap[i:k].max()), float(reading[i:k].max()))
        for s, i, k in zip(chosen, rows[:-1], rows[1:], strict=True)
    ]


def rigid_gaps(system: System, model: mujoco.MjModel, states: int, seed: int) -> list[SensorGap]:
    """Return `sensor_gaps` of a system with constraints, or none where they cannot be measured.

    Args:
        system, model, states, seed: as in `sensor_gaps`.
    """
    if not system.nc:
        return []
    try:
        return sensor_gaps(system, model, states, seed)
    except (UnsupportedFeatureError, SimulationError):
        return []  # the table of the comparison names the refused member


TRIES = 20
"""Random poses that may lie too far from a closed one, before we give up."""


def _close(plant: Plant, size: Array, v: Array, rng: np.random.Generator) -> None:
    """Move the plant to a closed state near a random one; nearer to `qpos0` with each try.

    Raises:
        SimulationError: there is none.
    """
    for attempt in range(TRIES):
        try:
            plant.reset(plant.integrate(None, size * rng.normal(size=plant.nv) / (1 + attempt)), v)
        except SimulationError:
            if attempt == TRIES - 1:
                raise
        else:
            return

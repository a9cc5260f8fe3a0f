"""Readings of sensors: MuJoCo's `sensordata`, and ours under MuJoCo's acceleration and forces.

Each body is pushed at random: what a sensor counts as external must be what MuJoCo counts.
"""

import copy
from dataclasses import dataclass, field

import mujoco
import numpy as np

from mbcasadi.description import Sensor
from mbcasadi.description.sensors import SENSED_SOLVER
from mbcasadi.plant import external_wrenches, solver_readings
from mbcasadi.system import System
from mbcasadi.system.sensor_functions import usable_sensors
from mbcasadi.validation.agreement.manifold import Array, smooth_copy
from mbcasadi.validation.agreement.references import Reference, Value
from mbcasadi.validation.agreement.samples import Sample

DIMENSIONS = {
    **dict.fromkeys(("framepos", "subtreecom"), (1, 0, 0, "m")),
    **dict.fromkeys(("framelinvel", "velocimeter", "subtreelinvel"), (1, 1, 0, "m/s")),
    **dict.fromkeys(("framelinacc", "accelerometer"), (1, 2, 0, "m/s²")),
    **dict.fromkeys(("frameangvel", "gyro", "ballangvel"), (0, 1, 0, "rad/s")),
    "frameangacc": (0, 2, 0, "rad/s²"),
    "force": (1, 2, 1, "N"),
    "torque": (2, 2, 1, "N m"),
    "subtreeangmom": (2, 1, 1, "kg m²/s"),
    **dict.fromkeys(("e_potential", "e_kinetic"), (2, 2, 1, "J")),
    **dict.fromkeys(("framequat", "ballquat"), (0, 0, 0, "1")),
    **dict.fromkeys(("framexaxis", "frameyaxis", "framezaxis"), (0, 0, 0, "1")),
}

"""Powers of length, rate and mass in the unit of each kind, and the unit; others have their own."""


@dataclass
class Readings:
    """MuJoCo's and our readings at the sample that was asked for last.

    Attributes:
        system: ours.
        model: MuJoCo's, whose sensors have no memory.
        whole: the same with contacts, limits and friction, which some sensors read.
        solver_rows: row of these sensors in `sensordata`, and in our column.
    """

    system: System
    model: mujoco.MjModel
    whole: mujoco.MjModel
    solver_rows: tuple[tuple[int, int], ...] = ()
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    _of: Sample | None = None
    _values: tuple[Array, Array] = (np.zeros(0), np.zeros(0))

    def at(self, s: Sample) -> tuple[Array, Array]:
        """Return `sensordata`, and our column of the system's sensors."""
        if self._of is not s:
            self._of, self._values = s, self._evaluate(s)
        return self._values

    def _evaluate(self, s: Sample) -> tuple[Array, Array]:
        model, data = self.model, mujoco.MjData(self.model)
        data.qpos, data.qvel, data.ctrl, data.act = s.q, s.v, s.u, s.act
        data.time = float(self._rng.random())
        size = float(model.body_subtreemass[0]) * s.sizes.length * s.sizes.rate**2
        push = self._rng.normal(size=(model.nbody, 6)) * size
        data.xfrc_applied = push * np.repeat([1.0, s.sizes.length], 3)
        data.xfrc_applied[0] = 0.0
        mujoco.mj_forward(model, data)
        theirs, ours = np.array(data.sensordata), self._ours(data)
        if self.solver_rows:
            whole = mujoco.MjData(self.whole)
            whole.qpos, whole.qvel, whole.ctrl, whole.act = s.q, s.v, s.u, s.act
            mujoco.mj_forward(self.whole, whole)
            rows = [row for row, _ in self.solver_rows]
            theirs[rows] = whole.sensordata[rows]
            own = [column for _, column in self.solver_rows]
            ours[own] = self._ours(whole, self.whole)[own]
        return theirs, ours

    def _ours(self, data: mujoco.MjData, of: mujoco.MjModel | None = None) -> Array:
        model = self.model if of is None else of
        inputs = {
            "q": data.qpos,
            "v": data.qvel,
            "a": data.qacc,
            "u": data.ctrl,
            "act": data.act,
            "wrenches": external_wrenches(model, data),
            "solver": solver_readings(model, data),
            "t": data.time,
        }
        readings = self.system.sensor_data
        y = readings(*(inputs[name] for name in readings.name_in()))
        return np.asarray(y.full().ravel())


def comparisons(system: System, model: mujoco.MjModel) -> list[tuple[Reference, Value]]:
    """Return MuJoCo's side of each sensor that has a Function, and ours."""
    sensors = usable_sensors(system.sensors, system.coverage)
    if not sensors:
        return []
    starts = np.cumsum([0, *(sensor.size for sensor in sensors)]).tolist()
    rows = [
        (sensor.address, first)
        for sensor, first in zip(sensors, starts[:-1], strict=True)
        if sensor.kind in SENSED_SOLVER
    ]
    whole = copy.copy(model)
    whole.sensor_history[:] = 0
    readings, pairs, first = Readings(system, instant_copy(model), whole, tuple(rows)), [], 0
    for sensor in sensors:
        pairs.append((_reference(sensor, readings), _value(readings, first, sensor.size)))
        first += sensor.size
    return pairs


def instant_copy(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy without forces of the solver beside equalities, its sensors without memory."""
    instant = smooth_copy(model)
    instant.sensor_history[:] = 0
    return instant


def _value(readings: Readings, first: int, count: int) -> Value:
    return lambda s: readings.at(s)[1][first : first + count]


def _reference(sensor: Sensor, readings: Readings) -> Reference:
    rows = slice(sensor.address, sensor.address + sensor.size)

    def value(s: Sample) -> Array:
        return readings.at(s)[0][rows]

    def size(s: Sample) -> Array:
        return np.full(sensor.size, _size(sensor, s, value(s)))

    unit = DIMENSIONS[sensor.kind][3] if sensor.kind in DIMENSIONS else "of the sensor"
    return Reference(f"sensor '{sensor.name}': {sensor.kind}", unit, value, size)


def _size(sensor: Sensor, s: Sample, reading: Array) -> float:
    """Return the natural size of a reading; its own where the kind has none, or it is more."""
    own = float(np.abs(reading).max())
    if sensor.kind not in DIMENSIONS:
        return own or 1.0
    length, rate, mass, _ = DIMENSIONS[sensor.kind]
    total = float(s.model.body_subtreemass[0]) or 1.0
    return max(own, s.sizes.length**length * s.sizes.rate**rate * total**mass)

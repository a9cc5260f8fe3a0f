"""Quantities that need more than a state: readings of sensors, tendons' wrenches, the regressor.

Each body is pushed at random under its sensors: what they count as external must be what MuJoCo
counts. Spatial tendons are compared with MuJoCo's `cfrc_ext` without forces of the solver. The
regressor stands beside MuJoCo's equations: `Y θ + y_0 = M a + h - f_passive`.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import mujoco
import numpy as np

from mbcasadi.description import Sensor, SpatialTendon
from mbcasadi.description.sensors import SENSED_SOLVER
from mbcasadi.dynamics import linear_parameters, regressor, tendon_wrenches
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.mjcf.compat import counts_spatial_tendons
from mbcasadi.plant import external_wrenches, solver_readings
from mbcasadi.system import System
from mbcasadi.system.sensor_functions import usable_sensors
from mbcasadi.validation.agreement.manifold import Array, inertia, smooth_copy
from mbcasadi.validation.agreement.mujoco_values import MujocoSample
from mbcasadi.validation.agreement.quantities import FORCE, Quantity, Value, size_of_force

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

REGRESSOR_SHARE = 1.0
"""Smallest value that an error is relative to, over the natural size: the terms have that size, and
where they cancel their sum has the rounding errors of the terms."""

Pair = tuple[Quantity, Value]
"""MuJoCo's side of a quantity, and ours as a function of a sample."""


def derived_quantities(system: System, model: mujoco.MjModel) -> list[Pair]:
    """Return both sides of the quantities that a system has."""
    return [*_of_regressor(system), *_of_sensors(system, model), *_of_tendons(system)]


def instant_copy(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy without forces of the solver beside equalities, its sensors without memory."""
    instant = smooth_copy(model)
    instant.sensor_history[:] = 0
    return instant


def call_by_name(function: ca.Function, values: Mapping[str, Any]) -> Array:
    """Return a Function's first output, its inputs taken by their names."""
    return np.array(function.call([ca.DM(values[name]) for name in function.name_in()])[0])


def _of_sensors(system: System, model: mujoco.MjModel) -> list[Pair]:
    """Return both sides of each sensor that has a Function."""
    sensors, pairs, first = usable_sensors(system.sensors, system.coverage), [], 0
    whole = copy.copy(model)
    whole.sensor_history[:] = 0
    readings = _Readings(system, instant_copy(model), whole)
    for sensor in sensors:
        rows = slice(sensor.address, sensor.address + sensor.size)
        own_rows = slice(first, first + sensor.size)
        if sensor.kind in SENSED_SOLVER:
            readings.solver_rows.append((sensor.address, first))
        pairs.append(_of_sensor(sensor, readings, rows, own_rows))
        first += sensor.size
    return pairs


def _of_sensor(sensor: Sensor, readings: "_Readings", rows: slice, own_rows: slice) -> Pair:
    def theirs(s: MujocoSample) -> Array:
        return readings.at(s)[0][rows]

    unit = DIMENSIONS[sensor.kind][3] if sensor.kind in DIMENSIONS else "of the sensor"
    quantity = Quantity(
        f"sensor '{sensor.name}': {sensor.kind}",
        unit,
        theirs,
        lambda s: np.full(sensor.size, _size_of_reading(sensor, s, theirs(s))),
    )
    return quantity, lambda s: readings.at(s)[1][own_rows]


def _size_of_reading(sensor: Sensor, s: MujocoSample, reading: Array) -> float:
    """Return the natural size of a reading; its own where the kind has none, or it is more."""
    own = float(np.abs(reading).max())
    if sensor.kind not in DIMENSIONS:
        return own or 1.0
    length, rate, mass, _ = DIMENSIONS[sensor.kind]
    return max(own, s.sizes.length**length * s.sizes.rate**rate * _total_mass(s) ** mass)


def _total_mass(s: MujocoSample) -> float:
    return float(s.model.body_subtreemass[0]) or 1.0


@dataclass
class _Readings:
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
    solver_rows: list[tuple[int, int]] = field(default_factory=list)
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    _of: MujocoSample | None = None
    _values: tuple[Array, Array] = (np.zeros(0), np.zeros(0))

    def at(self, s: MujocoSample) -> tuple[Array, Array]:
        """Return `sensordata`, and our column of the system's sensors."""
        if self._of is not s:
            self._of, self._values = s, self._evaluate(s)
        return self._values

    def _evaluate(self, s: MujocoSample) -> tuple[Array, Array]:
        model, data = self.model, mujoco.MjData(self.model)
        data.time = float(self._rng.random())
        size = float(model.body_subtreemass[0]) * s.sizes.length * s.sizes.rate**2
        push = self._rng.normal(size=(model.nbody, 6)) * size
        data.xfrc_applied = push * np.repeat([1.0, s.sizes.length], 3)
        data.xfrc_applied[0] = 0.0
        theirs, ours = self._both(model, data, s)
        if self.solver_rows:
            rows, own = map(list, zip(*self.solver_rows, strict=True))
            solved = self._both(self.whole, mujoco.MjData(self.whole), s)
            theirs[rows], ours[own] = solved[0][rows], solved[1][own]
        return theirs, ours

    def _both(
        self, model: mujoco.MjModel, data: mujoco.MjData, s: MujocoSample
    ) -> tuple[Array, Array]:
        data.qpos, data.qvel, data.ctrl, data.act = s.q, s.v, s.u, s.act
        mujoco.mj_forward(model, data)
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
        return np.array(data.sensordata), call_by_name(self.system.sensor_data, inputs).ravel()


def _of_tendons(system: System) -> list[Pair]:
    """Return both sides of `tendon_wrenches`, where a model has spatial tendons.

    There is none where the forces of the model are refused, and before MuJoCo 3.14.
    """
    tendons = () if system.tree is None else system.tree.tendons
    if not counts_spatial_tendons() or not any(isinstance(t, SpatialTendon) for t in tendons):
        return []
    try:
        ours = tendon_wrenches(system)
    except UnsupportedFeatureError:
        return []  # the refused member has an entry of its own

    def value(s: MujocoSample) -> Array:
        inputs = {"q": s.q, "v": s.v, "a": s.data.qacc, "u": s.u, "act": s.act}
        return call_by_name(ours, inputs)

    return [(Quantity("tendon_wrenches", FORCE, _tendon_wrenches, _size_of_wrenches), value)]


def _tendon_wrenches(s: MujocoSample) -> Array:
    """Return MuJoCo's wrenches at its own acceleration; a sample has no forces on bodies."""
    data: mujoco.MjData = copy.copy(s.data)
    data.efc_force[:] = 0.0
    return external_wrenches(s.model, data)


def _size_of_wrenches(s: MujocoSample) -> Array:
    """Return the natural size of forces above that of moments, or the largest where it is more."""
    length, wrenches = s.sizes.length, _tendon_wrenches(s)
    forces, moments = np.abs(wrenches[:3]).max(), np.abs(wrenches[3:]).max()
    size = max(_total_mass(s) * length * s.sizes.rate**2, float(forces), float(moments) / length)
    return np.repeat([size, size * length], 3)[:, None] * np.ones_like(wrenches)


def _of_regressor(system: System) -> list[Pair]:
    """Return both sides of the regressor; members that it lacks have their own entries."""
    members = ("mass_matrix", "bias_force", "passive_force")
    if system.tree is None or any(map(system.coverage.refusal, members)):
        return []
    # of bodies that meet a medium as their inertia boxes nothing is linear
    boxes = system.tree.fluid is not None and bool(system.tree.fluid.boxes)
    chosen = ("joint:*",) if boxes else ("*",)
    Y_of, theta = regressor(system, chosen), linear_parameters(system, chosen).values

    def acceleration(s: MujocoSample) -> Array:
        return np.asarray(s.sizes.rate**2 * s.dv)

    def theirs(s: MujocoSample) -> Array:
        inertial: Array = inertia(s.model, s.data) @ acceleration(s)
        return np.asarray(inertial + s.data.qfrc_bias - s.data.qfrc_passive)

    def ours(s: MujocoSample) -> Array:
        Y, rest = (x.full() for x in Y_of(s.q, s.v, acceleration(s)))
        return np.asarray(Y @ theta + rest.ravel())

    return [(Quantity("regressor", FORCE, theirs, size_of_force, share=REGRESSOR_SHARE), ours)]

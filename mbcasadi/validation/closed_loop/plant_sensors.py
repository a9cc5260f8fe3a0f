"""MuJoCo's readings as an estimator gets them: spoilt, at their own rates, late, or not at all."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.estimation import EstimatorSensor
from mbcasadi.plant import Plant
from mbcasadi.shapes import require_numbers, require_whole

Array = NDArray[np.float64]

OF_IMU, OF_MODEL, TURNED = ("gyro", "accelerometer"), "sensor", "frame_rotation"
OF_FRAMES = ("height", "yaw", "magnetometer", "frame_position", TURNED)
"""Kinds of sensors of an estimator."""


@dataclass(frozen=True)
class SensorErrors:
    """How a sensor of the plant departs from what it measures.

    Attributes:
        noise: standard deviation of a sample, or density of the white noise where the estimator's
            sensor has one; None for what the estimator expects.
        bias: standard deviation of a constant offset, drawn at the start.
        walk: density of the rate at which the offset walks, unit/s/√Hz.
        quantum: readings are rounded to multiples of it; 0 for none.
        delay: ticks by which readings are late; told to an estimator that has an age for them.
        missing: share of the samples that get lost.
        every: ticks from one sample to the next.

    Raises:
        ProblemError: a negative number, a share above 1, ticks that are no whole number.
    """

    noise: float | None = None
    bias: float = 0.0
    walk: float = 0.0
    quantum: float = 0.0
    delay: int = 0
    missing: float = 0.0
    every: int = 1

    def __post_init__(self) -> None:
        require_fields(self)
        require_whole(0, delay=self.delay)
        require_whole(1, every=self.every)
        numbers = {"bias": self.bias, "walk": self.walk, "quantum": self.quantum}
        numbers |= {"missing": self.missing, "noise": self.noise or 0.0}
        require_numbers(**numbers)
        if self.missing > 1:
            raise ProblemError(f"missing = {self.missing}; expected a share, at most 1")

    @checked
    def scaled(self, factor: float, expected: float) -> "SensorErrors":
        """Return the errors with noise, offset and walk times a factor.

        Args:
            factor: at least 0.
            expected: noise where none is given.
        """
        noise = expected if self.noise is None else self.noise
        bias, walk = factor * self.bias, factor * self.walk
        return replace(self, noise=factor * noise, bias=bias, walk=walk)


class PlantSensors:
    """The sensors of an estimator during a run.

    Args:
        sensors: of the estimator.
        errors: of each, by name.
        late: entries of `valid` that have an age; of others the first sample stands for those
            before it.
        imu: names of the plant's sensors, by frame and kind.
        rng: of the errors.
    """

    def __init__(
        self,
        sensors: Sequence[EstimatorSensor],
        errors: Mapping[str, SensorErrors],
        late: Sequence[int],
        imu: Mapping[str, Mapping[str, str]],
        rng: np.random.Generator,
    ) -> None:
        self._sensors, self._errors, self._late = sensors, errors, late
        self._imu, self._rng = imu, rng
        self._offset = {
            s.name: errors[s.name].bias * rng.standard_normal(_size(s)) for s in sensors
        }
        self._under_way = {s.name: deque[tuple[int, float, Array]]() for s in sensors}
        self._tick, self._time = 0, 0.0

    def samples(
        self, plant: Plant, period: float, sizes: Mapping[str, int]
    ) -> tuple[Array, Array, Array]:
        """Return y, NaN without a sample, valid, and the age of what is valid, s.

        Args:
            plant: at the state of the tick.
            period: s since the last tick.
            sizes: of y and valid.
        """
        if any(sensor.kind in (OF_MODEL, *OF_FRAMES) for sensor in self._sensors):
            plant.measure(plant.data.ctrl)  # readings at this state, not before the last step
        y, valid = np.full(sizes["y"], np.nan), np.ones(sizes["valid"])
        age = np.zeros(sizes["valid"])
        for sensor in self._sensors:
            sample = self._arriving(sensor, plant, period)
            if sample is None:
                valid[sensor.valid] = 0.0
                continue
            y[list(sensor.rows)] = sample[1]
            age[sensor.valid] = self._time - sample[0]
        self._tick, self._time = self._tick + 1, self._time + period
        return y, valid, age

    def _arriving(
        self, sensor: EstimatorSensor, plant: Plant, period: float
    ) -> tuple[float, Array] | None:
        """Return the time, s, and the value of the sample that arrives now; None for none."""
        way, timing = self._under_way[sensor.name], self._errors[sensor.name]
        if sensor.kind == TURNED:  # comes with its position
            timing = self._errors[next(s.name for s in self._sensors if s.valid == sensor.valid)]
        if self._tick % timing.every == 0:
            value = self._reading(sensor, plant, period)
            if self._tick == 0 and sensor.valid not in self._late:
                before = range(-timing.delay, 0)
                way.extend((k, self._time, value) for k in before if k % timing.every == 0)
            way.append((self._tick, self._time, value))
        if not way or way[0][0] + timing.delay > self._tick:
            return None
        _, time, value = way.popleft()
        lost = self._rng.random() < timing.missing
        return time, np.full(len(sensor.rows), np.nan) if lost else value

    def _reading(self, sensor: EstimatorSensor, plant: Plant, period: float) -> Array:
        """Return what a sensor reads, spoilt."""
        errors, rng, size = self._errors[sensor.name], self._rng, _size(sensor)
        self._offset[sensor.name] = self._offset[sensor.name] + (
            errors.walk * np.sqrt(period) * rng.standard_normal(size)
        )
        noise = sensor.noise if errors.noise is None else errors.noise
        noise = noise / np.sqrt(period) if sensor.density else noise
        wrong, value = self._offset[sensor.name], self._true(sensor, plant)
        wrong = wrong + noise * rng.standard_normal(size)
        value = _turned(value, wrong) if sensor.kind == TURNED else value + wrong
        return errors.quantum * np.round(value / errors.quantum) if errors.quantum else value

    def _true(self, sensor: EstimatorSensor, plant: Plant) -> Array:
        if sensor.kind in OF_IMU:
            return plant.mean_sensor(self._imu[sensor.target][sensor.kind])
        if sensor.kind in ("position", "rate"):
            joint = plant.model.joint(sensor.target)
            place = int(joint.qposadr[0] if sensor.kind == "position" else joint.dofadr[0])
            return (plant.q if sensor.kind == "position" else plant.v)[place : place + 1]
        return _of_frame(sensor, plant) if sensor.kind in OF_FRAMES else plant.sensor(sensor.target)


def _size(sensor: EstimatorSensor) -> int:
    """Return the number of errors of a sample: three of a rotation."""
    return 3 if sensor.kind == TURNED else len(sensor.rows)


def _turned(R: Array, wrong: Array) -> Array:
    """Return the quaternion of a rotation R (3, 3), turned by a vector, rad, world axes."""
    from scipy.spatial.transform import Rotation  # heavy, and needed for poses only

    turned = Rotation.from_rotvec(wrong) * Rotation.from_matrix(R)
    return np.asarray(turned.as_quat(scalar_first=True))


def _of_frame(sensor: EstimatorSensor, plant: Plant) -> Array:
    """Return what a fix measures; a rotation as a matrix (3, 3)."""
    p = plant.frame_position(sensor.target, sensor.frame_kind)
    R = plant.frame_rotation(sensor.target, sensor.frame_kind)
    match sensor.kind:
        case "height":
            return p[2:]
        case "yaw":
            return np.arctan2(R[1:2, 0], R[:1, 0])
        case "magnetometer":
            return np.asarray(R.T @ plant.model.opt.magnetic)
        case "frame_position":
            return p
        case _:
            return R

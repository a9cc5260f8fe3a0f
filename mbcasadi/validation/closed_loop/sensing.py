"""A closed loop whose controller gets the state that an estimator makes of sensors.

MuJoCo's own sensors are read, spoilt as real ones are, and handed to the generated C of the
estimator; its q and v take the place of the plant's in the controller and in what is above it.
"""

import tempfile
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.codegen import export_c
from mbcasadi.codegen.compiler import process_folder
from mbcasadi.description import Controller, Signal
from mbcasadi.estimation import Estimator, EstimatorSensor
from mbcasadi.estimation.estimate_front import BLIND, RESTARTED
from mbcasadi.plant import Plant, Source
from mbcasadi.plant.imu import with_imu
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import require_name, require_positive, require_whole
from mbcasadi.short_text import summarised
from mbcasadi.validation.closed_loop.columns import Columns
from mbcasadi.validation.closed_loop.compiled_law import FAST_FLAGS, Caller
from mbcasadi.validation.closed_loop.plant_sensors import OF_IMU, PlantSensors, SensorErrors

Array = NDArray[np.float64]

ESTIMATE = tuple(
    f"estimate_{name}"
    for name in ("q", "v", "error", "deviation", "status", "residual", "y", "mask", "age", "nees")
)
"""Names of the estimate among the monitored outputs of a recording."""


NO_MORE_ERRORS = SensorErrors()
"""The noise that the estimator expects, and nothing else."""


@readable_fields
@summarised
@dataclass(frozen=True)
class Sensing:
    """An estimator in the loop, and the errors of the plant's sensors.

    Attributes:
        estimator: of `mbcasadi.estimation`, of the same model.
        errors: by the name or the kind of a sensor ("gyro", "accelerometer", "position", "rate",
            "height", "yaw", "magnetometer", "frame_position", "frame_rotation"); noise as the
            estimator expects for the others. The rotation of a pose comes with its position.
        seed: of noise, offsets and lost samples; each case of a campaign has its own.
        on_force: N, the measured normal force of a contact from which on the estimator takes it to
            stand, beside the controller's mask: feet with force sensors. None for feet without.
        blind: s without the estimator's input after which the law gets NaN, and gives its safe
            output, as the C of `with_estimator` does; None: it gets what the estimator predicts.

    Raises:
        UnknownNameError: errors of no sensor; the message lists the valid names.
    """

    estimator: Estimator
    errors: Mapping[str, SensorErrors] = field(default_factory=dict)
    seed: int = 0
    on_force: float | None = None
    blind: float | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        require_whole(0, seed=self.seed)
        require_positive(blind=1.0 if self.blind is None else self.blind)
        require_positive(on_force=1.0 if self.on_force is None else self.on_force)
        sensors = self.estimator.sensors
        known = [*dict.fromkeys(s.kind for s in sensors), *(s.name for s in sensors)]
        for name in self.errors:
            require_name("sensor of the estimator", name, known)

    def _summary(self) -> dict[str, object]:
        return {
            "estimator": self.estimator.name,
            "errors": list(self.errors),
            "seed": self.seed,
            "on_force": self.on_force,
        }

    @checked
    def errors_of(self, sensor: EstimatorSensor) -> SensorErrors:
        """Return the errors of a sensor."""
        return self.errors.get(sensor.name, self.errors.get(sensor.kind, NO_MORE_ERRORS))

    @checked
    def of_case(self, seed: int, noise: float = 1.0) -> "Sensing":
        """Return the same estimator with other errors of its sensors.

        Args:
            seed: of noise, offsets and lost samples.
            noise: factor on noise, offsets and walks; what the estimator expects stays.
        """
        if noise == 1.0:
            return replace(self, seed=seed)
        sensors = self.estimator.sensors
        errors = {s.name: self.errors_of(s).scaled(noise, s.noise) for s in sensors}
        return replace(self, seed=seed, errors=errors)


def model_with_sensors(sensing: Sensing, source: Source) -> Source:
    """Return the model of the plant with the IMU of the estimator.

    Raises:
        ProblemError: see `with_imu`.
    """
    frames = {s.target: s.frame_kind for s in sensing.estimator.sensors if s.kind in OF_IMU}
    for frame, kind in frames.items():
        source = with_imu(source, frame, kind).model
    return source


class RunningEstimator:
    """An estimator during a run.

    Attributes:
        columns: of what it adds to a recording.
    """

    def __init__(self, sensing: Sensing, call: Caller, model: Source) -> None:
        self.sensing, self._call = sensing, call
        estimator = sensing.estimator
        frames = {s.target: s.frame_kind for s in estimator.sensors if s.kind in OF_IMU}
        self._imu = {name: with_imu(model, name, kind).names for name, kind in frames.items()}
        self.columns = _columns(estimator)

    def of_case(self, seed: int, noise: float) -> "RunningEstimator":
        """Return the estimator in front of sensors as `Sensing.of_case` has them."""
        other = copy(self)
        other.sensing = self.sensing.of_case(seed, noise)
        return other

    def reset(self) -> None:
        """Return to the start, with offsets drawn anew."""
        estimator = self.sensing.estimator
        errors = {s.name: self.sensing.errors_of(s) for s in estimator.sensors}
        late = self._late()
        self._z, self._unsure = estimator.z0, 0.0
        rng = np.random.default_rng(self.sensing.seed)
        self._sensors = PlantSensors(estimator.sensors, errors, late, self._imu, rng)

    def __call__(self, plant: Plant, mask: Mapping[str, float], period: float) -> dict[str, Array]:
        """Return q and v of the estimate, and what a recording keeps of it.

        Args:
            plant: at the state of the tick.
            mask: of the contacts by name, 1 for those that are left out.
            period: s since the last tick.
        """
        estimator = self.sensing.estimator
        sizes = {s.name: len(s.components) for s in estimator.inputs}
        y, valid, age = self._sensors.samples(plant, period, sizes)
        contacts = self._components("mask")
        values = {"y": y, "valid": valid, "age": age[self._late()]}
        values |= {"dt": np.array([period]), "z": self._z}
        values["mask"] = np.array([mask.get(name, 1.0) for name in contacts])
        values |= {"u": np.array(plant.data.ctrl), "f": np.zeros(plant.nv)}
        values["p"] = np.array(estimator.parameters)
        outputs = self._call(values)
        self._z = outputs["z_next"]
        self._count(int(outputs["status"][0]), period)
        side = round(np.sqrt(outputs["covariance"].size))
        count = len(estimator.covered)
        P = outputs["covariance"].reshape(side, side)[:count, :count]
        error = self._error(plant, outputs["q"], outputs["v"])
        deviation = np.sqrt(np.maximum(np.diag(P), 0.0))
        kept = (
            outputs["q"], outputs["v"], error, deviation, outputs["status"], outputs["residual"],
            y, values["mask"], values["age"], np.array([squared_error(error, deviation, P)]),
        )  # fmt: skip
        return dict(zip(ESTIMATE, kept, strict=True))

    @property
    def is_blind(self) -> bool:
        """Whether the law is not to use the estimate."""
        return self.sensing.blind is not None and self._unsure > self.sensing.blind

    def _count(self, status: int, period: float) -> None:
        """Count for how long the estimator has worked without its input."""
        longest, step = 2 * (self.sensing.blind or 0.0), period if status == BLIND else -period
        counted = min(max(self._unsure + step, 0.0), longest)
        self._unsure = longest if status == RESTARTED else counted

    def _error(self, plant: Plant, q: Array, v: Array) -> Array:
        """Return the errors of the estimate of which it knows the covariance."""
        both = np.concatenate([plant.difference(plant.q, q), v - plant.v])
        return np.asarray(both[list(self.sensing.estimator.covered)])

    def _late(self) -> list[int]:
        """Return the entries of `valid` of sensors whose age the estimator knows."""
        return [self._components("valid").index(name) for name in self._components("age")]

    def _components(self, name: str) -> tuple[str, ...]:
        """Return the names of an input of the estimator; none without it."""
        return next((s.components for s in self.sensing.estimator.inputs if s.name == name), ())


def squared_error(error: Array, deviation: Array, P: Array) -> float:
    """Return the squared error of an estimate by its covariance, eᵀ P⁺ e / rank: 1 in the mean.

    Args:
        error: (n,) e.
        deviation: (n,) roots of the variances; rows without one are left out.
        P: (n, n).
    """
    kept = deviation > 0
    scaled = error[kept] / deviation[kept]
    w, U = np.linalg.eigh(P[np.ix_(kept, kept)] / np.outer(deviation[kept], deviation[kept]))
    along = w > LEAST_SHARE
    squares = (U.T @ scaled)[along] ** 2 / w[along]
    return float(squares.mean()) if squares.size else 0.0


LEAST_SHARE = 1e-9
"""Variance along a direction, of those of the coordinates, below which loops leave none."""


def loaded_estimator(
    sensing: Sensing | None,
    model: Source,
    compiled: ca.Function | None = None,
    *,
    few: bool = False,
) -> RunningEstimator | None:
    """Return the estimator, for runs of a model in this process: as C, or for few ticks not.

    Args:
        sensing: the estimator and its sensors; None for none.
        model: of the plants.
        compiled: its C, where that is loaded already.
        few: run its Function in Python.

    Raises:
        ExportError: the C could not be generated or built.
    """
    if sensing is None:
        return None
    function = compiled or sensing.estimator.function
    if compiled is None and not few:
        folder = Path(tempfile.mkdtemp(dir=process_folder()))
        function = export_c(function, folder / "estimator").load(flags=FAST_FLAGS)
    return RunningEstimator(sensing, Caller(function), model)


def contact_mask(
    controller: Controller, mask: Array, forces: Array, on_force: float | None
) -> dict[str, float]:
    """Return contact → whether it stands, by the controller's mask and by measured forces.

    Args:
        controller: with its contacts, the first entries of its mask.
        mask: of the tick before; () at the first.
        forces: (3 nc,) measured, n t1 t2 of each contact, N; () for none.
        on_force: N; None where forces are not measured.
    """
    stands = {}
    for k, contact in enumerate(controller.contacts):
        on = float(mask[k]) if k < len(mask) else 1.0
        if on_force is not None and 3 * k < len(forces):
            on *= float(forces[3 * k] >= on_force)
        stands[contact.frame] = on
    return stands


def _columns(estimator: Estimator) -> dict[str, Columns]:
    signals = {s.name: s for s in estimator.outputs}
    q, v, residual = (signals[name] for name in ("q", "v", "residual"))
    inputs = {s.name: s for s in estimator.inputs}
    y, mask, age = (inputs.get(name, Signal(name, (), ())) for name in ("y", "mask", "age"))
    count = len(estimator.covered)
    errors = Columns(estimator.deviation.components[:count], estimator.deviation.units[:count])
    columns = {
        "q": Columns(q.components, q.units),
        "v": Columns(v.components, v.units),
        "error": errors,
        "deviation": errors,
        "status": Columns(("status",), ("",)),
        "residual": Columns(residual.components, ("",) * len(residual.components)),
        "y": Columns(y.components, y.units),
        "mask": Columns(mask.components, mask.units),
        "age": Columns(age.components, age.units),
        "nees": Columns(("nees",), ("",)),
    }
    return {f"monitor.estimate_{name}": column for name, column in columns.items()}

"""State estimation as TOML: what measures the robot, and how its sensors are wrong in the plant."""

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ProblemError
from mbcasadi.estimation import (
    Channel,
    Encoders,
    Estimator,
    FilterOptions,
    FirstEstimate,
    Fix,
    Footing,
    Imu,
    Measured,
    PassiveJoint,
    UnknownForce,
    base_estimator,
    encoder_noise,
    manifold_filter,
)
from mbcasadi.estimation.with_estimator import BLIND_TIME
from mbcasadi.system import System
from mbcasadi.validation.closed_loop import Sensing, SensorErrors
from mbcasadi.validation.spec.tables import TABLE, Positive, StrictTable, Table, fields_of

Array = NDArray[np.float64]


def _encoders(*, bits: int | None = None, **own: Any) -> Encoders:
    """Return encoders whose noise is that of so many bits.

    Raises:
        ProblemError: both bits and noise.
    """
    if bits is not None and "noise" in own:
        raise ProblemError("encoders: give bits or noise, not both")
    return Encoders(**own | ({} if bits is None else {"noise": encoder_noise(bits)}))


def _errors(*, bits: int | None = None, **own: Any) -> SensorErrors:
    """Return errors of which the quantum is that of so many bits, instead of noise.

    Raises:
        ProblemError: both bits and quantum.
    """
    if bits is not None and "quantum" in own:
        raise ProblemError("errors: give bits or quantum, not both")
    rounded = {} if bits is None else {"quantum": 2 * np.pi / 2.0**bits, "noise": 0.0}
    return SensorErrors(**rounded | own)


def _bits(otherwise: str) -> tuple[Any, None]:
    text = f"Of an encoder's turn, in place of {otherwise}."
    return Annotated[int | None, Field(ge=1, le=64, description=text)], None


Errors = dict[
    str, Annotated[SensorErrors, Table(_errors, **fields_of(SensorErrors), bits=_bits("quantum"))]
]


class LogTable(StrictTable):
    """A robot's log: its times, and which of its channels is which measurement."""

    time: Annotated[str, Field(description="Column or array of times; MCAP has its own.")] = "t"
    unit: Annotated[Positive, Field(description="Of the times, s: 1e-9 for nanoseconds.")] = 1.0
    period: Annotated[
        Positive | None, Field(description="s from tick to tick; by default the log's own times.")
    ] = None
    channels: Annotated[
        dict[str, str | Annotated[Channel, TABLE]],
        Field(description="By component of the estimator's inputs; see `logged_inputs`."),
    ] = Field(default={})


class Estimation(StrictTable):
    """The state by an estimator, in validation and in the exported C."""

    type: str
    log: Annotated[LogTable, Field(description="What `mbcasadi estimate` reads.")] = LogTable()
    blind: Annotated[
        Positive,
        Field(description="s without its input after which the law gives its safe output."),
    ] = BLIND_TIME
    errors: Annotated[
        Errors, Field(description="Of the plant's sensors, by their name or kind.")
    ] = Field(default={})
    seed: Annotated[int, Field(ge=0, description="Of their noise.")] = 0
    on_force: Annotated[
        Positive | None,
        Field(description="N, measured normal force from which on a contact stands."),
    ] = None

    def sensing(self, estimator: Estimator) -> Sensing:
        """Return the estimator with the errors of the plant's sensors.

        Raises:
            UnknownNameError: errors of no sensor.
        """
        return Sensing(estimator, self.errors, self.seed, self.on_force, self.blind)


class BaseEstimation(Estimation):
    """The base of a robot that walks, from an IMU, encoders and contacts; see `base_estimator`."""

    type: Literal["base"]
    imu: Annotated[Imu, TABLE]
    encoders: Annotated[Encoders, Table(_encoders, **fields_of(Encoders), bits=_bits("noise"))] = (
        Field(default_factory=Encoders)
    )
    passive: Annotated[
        tuple[Annotated[PassiveJoint, TABLE], ...],
        Field(description="Joints without an encoder that loops leave free."),
    ] = ()
    fix: Annotated[
        tuple[Annotated[Fix, TABLE], ...], Field(description="What sees where the robot is.")
    ] = ()
    footing: Annotated[Annotated[Footing, TABLE] | None, Field(description="Of its feet.")] = None
    first: Annotated[
        Annotated[FirstEstimate, TABLE] | None, Field(description="Errors at the start.")
    ] = None

    def estimator(self, system: System, law: Controller, q0: Array) -> Estimator:
        """Return the estimator of the law's contacts."""
        return base_estimator(
            system,
            law.contacts,
            imu=self.imu,
            encoders=self.encoders,
            passive=self.passive,
            fixes=self.fix,
            footing=self.footing,
            start=self.first,
            q0=q0,
            period=law.period,
            name=f"{law.name}_estimator",
        )


class ManifoldEstimation(Estimation):
    """Any mechanism on its constraints, from any of its sensors; see `manifold_filter`."""

    type: Literal["manifold"]
    sensor: Annotated[
        tuple[Annotated[Measured, TABLE], ...], Field(min_length=1, description="What is measured.")
    ]
    force_noise: Annotated[
        Positive | tuple[float, ...],
        Field(description="Density of the force that the model lacks, N/√Hz or N m/√Hz."),
    ]
    disturbance: Annotated[
        tuple[Annotated[UnknownForce, TABLE], ...], Field(description="Forces to estimate.")
    ] = ()
    options: Annotated[
        Annotated[FilterOptions, TABLE] | None, Field(description="Of start and corrections.")
    ] = None

    def estimator(self, system: System, law: Controller, q0: Array) -> Estimator:
        """Return the filter."""
        return manifold_filter(
            system,
            self.sensor,
            force_noise=self.force_noise,
            disturbances=self.disturbance,
            options=self.options,
            q0=q0,
            period=law.period,
            name=f"{law.name}_estimator",
        )


AnyEstimation = Annotated[BaseEstimation | ManifoldEstimation, Field(discriminator="type")]


def sensing_of(
    table: BaseEstimation | ManifoldEstimation,
    system: System,
    law: Controller | HasController,
    q0: Array,
) -> Sensing:
    """Return the estimator of a file with the errors of its sensors.

    Raises:
        ProblemError, UnknownNameError: as the estimator's function, and errors of no sensor.
    """
    data = law if isinstance(law, Controller) else law.controller
    return table.sensing(table.estimator(system, data, q0))

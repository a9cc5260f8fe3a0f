"""Regulators near an equilibrium as TOML: LQR, LQG and pole placement."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi.control.regulators import encoders, kalman, lqg, lqr, lqr_gain, pole_placement
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.validation.spec.contact_tables import NotNegative, Positive
from mbcasadi.validation.spec.experiment import Experiment, override_limits
from mbcasadi.validation.spec.operating_point import (
    LinearSpec,
    StateWeight,
    experiment,
    linear_system,
    state_weight,
)

Array = NDArray[np.float64]
Delay = Annotated[
    int, Field(ge=0, description="ticks from a measurement to the moment its control acts")
]


class Cost(LinearSpec):
    """The cost of a linear-quadratic regulator."""

    Q: StateWeight = StateWeight()
    R: Annotated[
        Positive | tuple[Positive, ...], Field(description="of the control, or of each control")
    ] = 1.0
    integral: Annotated[
        dict[str, Positive],
        Field(default_factory=dict, description="Weight of the integral of a coordinate's error."),
    ]
    delay: Delay = 0


@summarised
class LqrSpec(Cost):
    """`lqr`: the regulator of least cost."""

    type: Literal["lqr"]


@summarised
class LqgSpec(Cost):
    """`lqg`: the same regulator of the estimate of a Kalman filter."""

    type: Literal["lqg"]
    measured: Annotated[tuple[str, ...], Field(min_length=1, description="Joints with encoders.")]
    measured_speeds: tuple[str, ...] = ()
    process_noise: Annotated[
        StateWeight, Field(description="Intensity of the noise in the rates of (δq, δv), W.")
    ] = StateWeight(position=1e-6, velocity=1.0)
    measurement_noise: Annotated[
        Positive | tuple[Positive, ...], Field(description="Variance of each measurement, V.")
    ] = 1e-6


@summarised
class PolePlacementSpec(LinearSpec):
    """`pole_placement`: the closed loop has these poles."""

    type: Literal["pole_placement"]
    poles: Annotated[
        tuple[float | tuple[float, NotNegative], ...],
        Field(description="1/s; [real, imaginary] is a pair of conjugates."),
    ]


def build_lqr(spec: LqrSpec, system: System, q0: Array) -> Experiment:
    """Return the regulator."""
    linear = linear_system(spec, system, q0)
    law = lqr(
        linear,
        state_weight(spec.Q, system),
        spec.R,
        integral=spec.integral or None,
        delay=spec.delay,
        track_reference=bool(spec.reference),
        ctrl_limits=override_limits(system, system.limits.ctrl, spec.limits.ctrl),
        period=spec.period,
        name=spec.name,
    )
    return experiment(spec, law, linear, q0)


def build_lqg(spec: LqgSpec, system: System, q0: Array) -> Experiment:
    """Return the regulator with its filter."""
    linear = linear_system(spec, system, q0)
    gain = lqr_gain(
        linear,
        state_weight(spec.Q, system),
        spec.R,
        integral=spec.integral or None,
        period=spec.period,
    )
    estimator = kalman(
        linear,
        encoders(system, spec.measured, spec.measured_speeds),
        state_weight(spec.process_noise, system),
        spec.measurement_noise,
        period=spec.period,
    )
    law = lqg(
        estimator,
        gain.K,
        integral=list(spec.integral),
        delay=spec.delay,
        ctrl_limits=override_limits(system, system.limits.ctrl, spec.limits.ctrl),
        name=spec.name,
    )
    return experiment(spec, law, linear, q0)


def build_pole_placement(spec: PolePlacementSpec, system: System, q0: Array) -> Experiment:
    """Return the regulator with the given poles."""
    linear = linear_system(spec, system, q0)
    poles: list[complex] = []
    for pole in spec.poles:
        if isinstance(pole, tuple):
            poles += [complex(*pole), complex(*pole).conjugate()]
        else:
            poles.append(pole)
    law = pole_placement(
        linear,
        poles,
        track_reference=bool(spec.reference),
        ctrl_limits=override_limits(system, system.limits.ctrl, spec.limits.ctrl),
        period=spec.period,
        name=spec.name,
    )
    return experiment(spec, law, linear, q0)

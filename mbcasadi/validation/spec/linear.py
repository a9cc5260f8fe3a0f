"""Regulators and linear MPC near an equilibrium as TOML; the real-time iteration beside them."""

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi.control import ControlLaw
from mbcasadi.control.regulators import (
    Linearization,
    encoders,
    equilibrium,
    kalman,
    linearize,
    lqg,
    lqr,
    lqr_gain,
    pole_placement,
)
from mbcasadi.mpc import (
    StepOptions,
    deviation_output,
    linear_mpc,
    offset_free_mpc,
    optimal_control_problem,
    real_time_iteration,
)
from mbcasadi.mpc.linear.prediction_model import Output
from mbcasadi.shapes import column, require_name
from mbcasadi.system import System
from mbcasadi.system.coordinates import rate_names
from mbcasadi.validation.spec.common import (
    ControlLimits,
    Motion,
    Ranges,
    Spec,
    Start,
    ranges_of,
    usual_options,
)
from mbcasadi.validation.spec.experiment import Experiment
from mbcasadi.validation.spec.motion import constant_function, slot_motion
from mbcasadi.validation.spec.tables import (
    Names,
    NotNegative,
    Positive,
    StrictTable,
    Table,
    fields_of,
)

Array = NDArray[np.float64]
Weights = NotNegative | tuple[NotNegative, ...] | dict[str, NotNegative]
PerControl = Positive | tuple[Positive, ...]
STEP = fields_of(StepOptions, but=("metric", "baumgarte", "formulation_options"))


class StateWeight(StrictTable):
    """Weights of deviations: one number, one for each of v, or by name, zero elsewhere."""

    position: Annotated[Weights, Field(description="of δq, 1/rad² or 1/m²")] = 1.0
    velocity: Annotated[Weights, Field(description="of δv")] = 0.1

    def vector(self, system: System) -> Array:
        """Return (2 nv,) weights of (δq, δv).

        Raises:
            UnknownNameError: no such coordinate.
            ShapeError: not one number for each.
        """
        return np.concatenate([_weights(label, value, system) for label, value in self])


def _weights(label: str, value: Weights, system: System) -> Array:
    names = rate_names(system)
    if isinstance(value, dict):
        for name in value:
            require_name("coordinate", name, names)
        return np.array([value.get(name, 0.0) for name in names])
    if isinstance(value, tuple):
        return column(label, value, system.nv)
    return np.full(system.nv, value)


class Equilibrium(Start):
    """Where the model is linearised: the pose that can be held at rest, nearest to this one.

    By default that is the one nearest to the start.
    """

    held: Annotated[Names, Field(description="Coordinates that keep their value.")] = ()


class LinearSpec(Spec):
    """What controllers have that are made near an equilibrium."""

    equilibrium: Equilibrium = Equilibrium()
    limits: ControlLimits = ControlLimits()
    reference: Motion = Field(default={})


class Cost(Spec):
    """A quadratic cost, and the delay that the controller expects."""

    Q: StateWeight = StateWeight()
    R: Annotated[PerControl, Field(description="of the control, or of each control")] = 1.0
    delay: Annotated[int, Field(ge=0, description="ticks from a measurement to its control")] = 0


class LqrSpec(Cost, LinearSpec):
    """The regulator of least cost."""

    integral: Annotated[
        dict[str, Positive], Field(description="Weight of the integral of a coordinate's error.")
    ] = Field(default={})


class LqgSpec(LqrSpec):
    """The same regulator of the estimate of a Kalman filter."""

    measured: Annotated[Names, Field(min_length=1, description="Joints with encoders.")]
    measured_speeds: Names = ()
    process_noise: Annotated[
        StateWeight, Field(description="Intensity of the noise in the rates of (δq, δv), W.")
    ] = StateWeight(position=1e-6, velocity=1.0)
    measurement_noise: Annotated[
        PerControl, Field(description="Variance of each measurement, V.")
    ] = 1e-6


class PolePlacementSpec(LinearSpec):
    """The closed loop has these poles."""

    poles: Annotated[
        tuple[float | tuple[float, NotNegative], ...],
        Field(description="1/s; [real, imaginary] is a pair of conjugates."),
    ]


class OutputRow(StrictTable):
    """Bounds of the deviation of a coordinate or of its rate, soft where it has a penalty."""

    coordinate: str
    of: Literal["position", "velocity"] = "position"
    lower: float = -np.inf
    upper: float = np.inf
    linear_penalty: NotNegative = 0.0
    quadratic_penalty: NotNegative = 0.0


class MpcLimits(ControlLimits):
    """Limits of controls, and of their change from sample to sample."""

    change: Ranges = Field(default={})


class PredictiveSpec(Cost):
    """What both kinds of MPC have."""

    period: Annotated[Positive, Field(description="Sample time, s.")] = 0.01
    horizon: Annotated[int, Field(ge=1, description="number of samples")] = 20
    S: Annotated[PerControl | None, Field(description="Weight of the change of u.")] = None
    limits: MpcLimits = MpcLimits()


class LinearMpcSpec(PredictiveSpec, LinearSpec):
    """`linear_mpc` near an equilibrium; `offset_free_mpc` where coordinates are tracked."""

    limits: MpcLimits = MpcLimits()
    output: tuple[OutputRow, ...] = ()
    tracked: Annotated[
        Names, Field(description="Coordinates without a steady error: offset-free MPC.")
    ] = ()
    blocks: Annotated[
        tuple[int, ...] | None, Field(description="Lengths of the moves; they add up to horizon.")
    ] = None
    terminal_set: bool = False


class RealTimeIterationSpec(PredictiveSpec):
    """`real_time_iteration` of a problem with setpoint; it starts from the pose at rest."""

    Q_end: StateWeight | None = Field(None, description="Weight at the end; Q's by default.")
    setpoint: Annotated[Start, Field(description="Pose to reach; the start by default.")] = Start()
    joints: Annotated[
        dict[str, float], Field(description="Joints of the setpoint elsewhere, rad, m.")
    ] = Field(default={})
    shift: Annotated[bool, Field(description="Shift the guess by one interval each tick.")] = True
    step: Annotated[StepOptions, Table(StepOptions, **STEP)] = StepOptions()


def build_lqr(spec: LqrSpec, system: System, q0: Array) -> Experiment:
    """Return the regulator."""
    linear, options = linear_system(spec, system, q0), usual_options(spec, system)
    law = lqr(
        linear,
        spec.Q.vector(system),
        spec.R,
        integral=spec.integral or None,
        delay=spec.delay,
        track_reference=bool(spec.reference),
        **options,
    )
    return experiment(spec, law, linear, q0)


def build_lqg(spec: LqgSpec, system: System, q0: Array) -> Experiment:
    """Return the regulator with its filter."""
    linear, options = linear_system(spec, system, q0), usual_options(spec, system)
    period = options.pop("period")
    Q, W = spec.Q.vector(system), spec.process_noise.vector(system)
    gain = lqr_gain(linear, Q, spec.R, integral=spec.integral or None, period=period)
    output = encoders(system, spec.measured, spec.measured_speeds)
    estimator = kalman(linear, output, W, spec.measurement_noise, period=period)
    law = lqg(estimator, gain.K, integral=list(spec.integral), delay=spec.delay, **options)
    return experiment(spec, law, linear, q0)


def build_pole_placement(spec: PolePlacementSpec, system: System, q0: Array) -> Experiment:
    """Return the regulator with the given poles."""
    linear = linear_system(spec, system, q0)
    poles: list[complex] = []
    for pole in spec.poles:
        pair = isinstance(pole, tuple)
        poles += [complex(*pole), complex(*pole).conjugate()] if pair else [pole]  # type: ignore
    options = usual_options(spec, system)
    law = pole_placement(linear, poles, track_reference=bool(spec.reference), **options)
    return experiment(spec, law, linear, q0)


def build_linear_mpc(spec: LinearMpcSpec, system: System, q0: Array) -> Experiment:
    """Return the linear MPC, offset-free where coordinates are tracked."""
    linear, Q = linear_system(spec, system, q0), spec.Q.vector(system)
    options = _mpc_options(spec, system) | {
        "outputs": [_output(row, linear) for row in spec.output],
        "blocks": spec.blocks,
        "delay": spec.delay,
    }
    if spec.tracked:
        rows = np.array([_unit_row(name, "position", system) for name in spec.tracked])
        law = offset_free_mpc(linear, spec.horizon, Q, spec.R, tracked=rows, **options)
    else:
        options["terminal_set"] = spec.terminal_set
        law = linear_mpc(linear, spec.horizon, Q, spec.R, **options)
    return experiment(spec, law, linear, q0)


def build_real_time_iteration(spec: RealTimeIterationSpec, system: System, q0: Array) -> Experiment:
    """Return the real-time iteration, with its setpoint as a constant reference."""
    options = _mpc_options(spec, system)
    ocp = optimal_control_problem(
        system,
        spec.horizon,
        options["period"],
        Q=spec.Q.vector(system),
        R=np.broadcast_to(spec.R, system.nu),
        Q_end=(spec.Q_end or spec.Q).vector(system),
        S=options["S"],
        du_bounds=options["du_bounds"],
        u_bounds=options["ctrl_limits"],
        name=f"{spec.name}_ocp",
        step=spec.step,
    )
    rti = real_time_iteration(ocp, delay=spec.delay, shift=spec.shift, name=spec.name)
    return Experiment(rti, q0, constant_function(rti.reference_at(_setpoint(spec, system, q0))))


def _setpoint(spec: RealTimeIterationSpec, system: System, q0: Array) -> Array:
    """Return the pose to reach.

    Raises:
        UnknownNameError: no such hinge or slide.
    """
    pose = spec.setpoint.configuration(system, q0)
    assert system.tree is not None
    places = {j.name: j.qpos for j in system.tree.joints if j.kind in ("hinge", "slide")}
    for name, value in spec.joints.items():
        require_name("hinge or slide", name, list(places))
        pose[places[name]] = value
    return pose


def _mpc_options(spec: PredictiveSpec, system: System) -> dict[str, Any]:
    """Return name, period, weight of changes and bounds as options."""
    every, change = np.tile([-np.inf, np.inf], (system.nu, 1)), spec.limits.change
    return usual_options(spec, system) | {
        "S": None if spec.S is None else np.broadcast_to(spec.S, system.nu),
        "du_bounds": ranges_of(system, every, change) if change else None,
    }


def _output(row: OutputRow, linear: Linearization) -> Output:
    """Return a bounded row of the deviations."""
    unit = _unit_row(row.coordinate, row.of, linear.system)
    bounds = row.options_of(deviation_output)
    return deviation_output(linear, f"{row.coordinate}_{row.of}", unit, **bounds)


def _unit_row(name: str, of: str, system: System) -> Array:
    """Return (2 nv,) the row that takes δq or δv of one coordinate.

    Raises:
        UnknownNameError: no such coordinate.
    """
    names = rate_names(system)
    require_name("coordinate", name, names)
    row = np.zeros(2 * system.nv)
    row[names.index(name) + (system.nv if of == "velocity" else 0)] = 1.0
    return row


def linear_system(spec: LinearSpec, system: System, q0: Array) -> Linearization:
    """Return the linear system at the equilibrium nearest to the start."""
    pose = spec.equilibrium.configuration(system, q0)
    return linearize(system, equilibrium(system, pose, held=spec.equilibrium.held))


def experiment(spec: LinearSpec, law: ControlLaw, linear: Linearization, q0: Array) -> Experiment:
    """Return a law that holds a setpoint with its motion.

    It starts at the start of the file, or at the equilibrium where it has none.
    """
    start = law.nominal_reference
    ref = np.zeros(0) if start is None or not law.nref else start
    reference = slot_motion(law.slots, ref, spec.reference, linear.system)
    return Experiment(law, linear.q if spec.start == Start() else q0, reference)

"""Regulators and linear MPC near an equilibrium as TOML; the real-time iteration beside them."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi import mpc
from mbcasadi.control import ControlLaw
from mbcasadi.control.regulators import (
    Linearization,
    encoders,
    equilibrium,
    linearize,
    lqr,
    lqr_gain,
    pole_placement,
)
from mbcasadi.estimation import kalman, lqg
from mbcasadi.mpc import (
    LinearOptions,
    Output,
    StepOptions,
    deviation_output,
    linear_mpc,
    offset_free_mpc,
    real_time_iteration,
)
from mbcasadi.shapes import column, require_name
from mbcasadi.system import System
from mbcasadi.system.coordinates import rate_names
from mbcasadi.validation.spec.common import (
    ControlLimits,
    Motion,
    Ranges,
    Spec,
    Start,
    options_for,
    ranges_of,
)
from mbcasadi.validation.spec.controller_kind import Kind
from mbcasadi.validation.spec.experiment import Experiment
from mbcasadi.validation.spec.motion import constant_function, slot_motion
from mbcasadi.validation.spec.tables import (
    Names,
    NotNegative,
    Positive,
    StrictTable,
    Table,
    fields_of,
    new_table,
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


class CostTable(Spec):
    """A quadratic cost."""

    Q: StateWeight = StateWeight()
    R: Annotated[PerControl, Field(description="of the control, or of each control")] = 1.0


class CostSpec(CostTable, LinearSpec):
    """A quadratic cost near an equilibrium."""


LqrSpec = new_table("LqrSpec", CostSpec, **fields_of(lqr, ("integral", "delay")))
LqgSpec = new_table(
    "LqgSpec",
    LqrSpec,
    measured=(Annotated[Names, Field(min_length=1, description="Joints with encoders.")], ...),
    measured_speeds=(Names, ()),
    process_noise=(
        Annotated[StateWeight, Field(description="Intensity of the rates' noise, W.")],
        StateWeight(position=1e-6, velocity=1.0),
    ),
    measurement_noise=(
        Annotated[PerControl, Field(description="Variance of each measurement, V.")],
        1e-6,
    ),
)
Pole = float | tuple[float, NotNegative]
POLES = Annotated[
    tuple[Pole, ...], Field(description="1/s; [real, imaginary] is a pair of conjugates.")
]
PolePlacementSpec = new_table("PolePlacementSpec", LinearSpec, poles=(POLES, ...))


BOUNDS = fields_of(deviation_output, but=("linear", "name", "row"))
OutputRow = new_table(
    "OutputRow",
    StrictTable,
    coordinate=(str, ...),
    of=(Literal["position", "velocity"], "position"),
    **BOUNDS,
)


class MpcLimits(ControlLimits):
    """Limits of controls, and of their change from sample to sample."""

    change: Ranges = Field(default={})


class PredictiveSpec(CostTable):
    """What both kinds of MPC have."""

    period: Annotated[Positive, Field(description="Sample time, s.")] = 0.01
    horizon: Annotated[int, Field(ge=1, description="number of samples")] = 20
    S: Annotated[PerControl | None, Field(description="Weight of the change of u.")] = None
    limits: MpcLimits = MpcLimits()


class PredictiveLinearSpec(PredictiveSpec, LinearSpec):
    """`linear_mpc` near an equilibrium; `offset_free_mpc` where coordinates are tracked."""

    limits: MpcLimits = MpcLimits()


TRACKED = Annotated[Names, Field(description="without a steady error: offset-free MPC")]
LinearMpcSpec = new_table(
    "LinearMpcSpec",
    PredictiveLinearSpec,
    output=(tuple[OutputRow, ...], ()),  # type: ignore[valid-type]
    tracked=(TRACKED, ()),
    **fields_of(LinearOptions, ("blocks", "delay", "terminal_set")),
)


class SetpointSpec(PredictiveSpec):
    """`real_time_iteration` of a problem with setpoint; it starts from the pose at rest."""

    Q_end: StateWeight | None = Field(
        default=None, description="Weight at the end; Q's by default."
    )
    setpoint: Annotated[Start, Field(description="Pose to reach; the start by default.")] = Start()
    joints: Annotated[
        dict[str, float], Field(description="Joints of the setpoint elsewhere, rad, m.")
    ] = Field(default={})
    step: Annotated[StepOptions, Table(StepOptions, **STEP)] = StepOptions()


RealTimeIterationSpec = new_table(
    "RealTimeIterationSpec",
    SetpointSpec,
    **fields_of(real_time_iteration, ("delay", "shift", "line_search")),
)


def build_lqr(spec: Any, system: System, q0: Array) -> Experiment:
    """Return the regulator."""
    linear = linear_system(spec, system, q0)
    return experiment(spec, lqr(linear, **_options(lqr, spec, system)), linear, q0)


def build_lqg(spec: Any, system: System, q0: Array) -> Experiment:
    """Return the regulator with its filter."""
    linear = linear_system(spec, system, q0)
    gain = lqr_gain(linear, **_options(lqr_gain, spec, system))
    output = encoders(system, spec.measured, spec.measured_speeds)
    noise = {"W": spec.process_noise.vector(system), "V": spec.measurement_noise}
    estimator = kalman(linear, output, period=spec.period, **noise)
    options = _options(lqg, spec, system, integral=list(spec.integral or ()))
    return experiment(spec, lqg(estimator, gain.K, **options), linear, q0)


def build_pole_placement(spec: Any, system: System, q0: Array) -> Experiment:
    """Return the regulator with the given poles."""
    linear = linear_system(spec, system, q0)
    poles: list[complex] = []
    for pole in spec.poles:
        pair = isinstance(pole, tuple)
        poles += [complex(*pole), complex(*pole).conjugate()] if pair else [pole]
    options = _options(pole_placement, spec, system, poles=poles)
    return experiment(spec, pole_placement(linear, **options), linear, q0)


def build_linear_mpc(spec: Any, system: System, q0: Array) -> Experiment:
    """Return the linear MPC, offset-free where coordinates are tracked."""
    linear = linear_system(spec, system, q0)
    rows = [_unit_row(name, "position", system) for name in spec.tracked]
    outputs = [_output(row, linear) for row in spec.output]
    options = LinearOptions(**_options(LinearOptions, spec, system, outputs=outputs))
    law = offset_free_mpc(linear, options, np.array(rows)) if rows else linear_mpc(linear, options)
    return experiment(spec, law, linear, q0)


def build_real_time_iteration(spec: Any, system: System, q0: Array) -> Experiment:
    """Return the real-time iteration, with its setpoint as a constant reference."""
    known = _options(LinearOptions, spec, system)
    end, R = (spec.Q_end or spec.Q).vector(system), np.broadcast_to(spec.R, system.nu)
    parts = [
        mpc.Cost(Q=known["Q"], R=R, Q_end=end, S=known["S"]),
        mpc.StageBounds(u=known["u_bounds"], du=known["du_bounds"]),
    ]
    ocp = mpc.optimal_control_problem(
        system, spec.horizon, spec.period, parts, step=spec.step, name=f"{spec.name}_ocp"
    )
    rti = real_time_iteration(ocp, **options_for(real_time_iteration, spec, system))
    return Experiment(rti, q0, constant_function(rti.reference_at(_setpoint(spec, system, q0))))


def _options(make: Callable[..., object], spec: Any, system: System, **own: Any) -> dict[str, Any]:
    """Return what a function takes of the file, with weights and bounds of named entries."""
    known: dict[str, Any] = {"track_reference": bool(getattr(spec, "reference", None))}
    if isinstance(spec, CostTable):
        known |= {"Q": spec.Q.vector(system), "R": spec.R}
    if isinstance(spec, PredictiveSpec):
        every, change = np.tile([-np.inf, np.inf], (system.nu, 1)), spec.limits.change
        known["S"] = None if spec.S is None else np.broadcast_to(spec.S, system.nu)
        known["du_bounds"] = ranges_of(system, every, change) if change else None
        known["horizon"] = spec.horizon
    return options_for(make, spec, system, **(known | own))


def _setpoint(spec: SetpointSpec, system: System, q0: Array) -> Array:
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


def _output(row: Any, linear: Linearization) -> Output:
    """Return a bounded row of the deviations."""
    unit = _unit_row(row.coordinate, row.of, linear.system)
    bounds = {name: value for name, value in row.given.items() if name in BOUNDS}
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


KINDS = {
    "lqr": Kind(LqrSpec, build_lqr),
    "lqg": Kind(LqgSpec, build_lqg),
    "pole_placement": Kind(PolePlacementSpec, build_pole_placement),
    "linear_mpc": Kind(LinearMpcSpec, build_linear_mpc),
    "real_time_iteration": Kind(RealTimeIterationSpec, build_real_time_iteration),
}

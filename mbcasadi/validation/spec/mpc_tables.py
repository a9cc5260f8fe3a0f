"""Model predictive control as TOML: linear MPC, and the real-time iteration."""

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi.control.regulators import Linearization
from mbcasadi.mpc import (
    Cost,
    LinearOptions,
    Output,
    StageBounds,
    StepOptions,
    deviation_output,
    linear_mpc,
    offset_free_mpc,
    optimal_control_problem,
    real_time_iteration,
)
from mbcasadi.shapes import require_name
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.coordinates import rate_names
from mbcasadi.validation.spec.common import ControlLimits, Spec, Start, ranges
from mbcasadi.validation.spec.contact_tables import NotNegative, Positive
from mbcasadi.validation.spec.experiment import Experiment, override_limits, start_configuration
from mbcasadi.validation.spec.motion import constant_function
from mbcasadi.validation.spec.operating_point import (
    LinearSpec,
    StateWeight,
    experiment,
    linear_system,
    state_weight,
)
from mbcasadi.validation.spec.regulators import Delay
from mbcasadi.validation.spec.tables import StrictTable

Array = NDArray[np.float64]
Horizon = Annotated[int, Field(ge=1, description="number of samples")]
Controls = Annotated[
    Positive | tuple[Positive, ...], Field(description="of the control, or of each control")
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
    """Limits of controls, and of their change."""

    change: Annotated[
        dict[str, tuple[float, float]],
        Field(default_factory=ranges, description="Change of u from sample to sample."),
    ]


class PredictiveSpec(Spec):
    """What both kinds of MPC have."""

    period: Annotated[Positive, Field(description="Sample time, s.")] = 0.01
    horizon: Horizon = 20
    Q: StateWeight = StateWeight()
    R: Controls = 1.0
    S: Annotated[Controls | None, Field(description="Weight of the change of u.")] = None
    delay: Delay = 0
    limits: Annotated[MpcLimits, Field(default_factory=MpcLimits)]


@summarised
class LinearMpcSpec(PredictiveSpec, LinearSpec):
    """`linear_mpc` near an equilibrium; `offset_free_mpc` where coordinates are tracked."""

    type: Literal["linear_mpc"]
    limits: Annotated[MpcLimits, Field(default_factory=MpcLimits)]
    output: tuple[OutputRow, ...] = ()
    tracked: Annotated[
        tuple[str, ...], Field(description="Coordinates without a steady error: offset-free MPC.")
    ] = ()
    blocks: Annotated[
        tuple[int, ...] | None, Field(description="Lengths of the moves; they add up to horizon.")
    ] = None
    terminal_set: bool = False


class Integrator(StrictTable):
    """The step of the prediction, as `StepOptions`."""

    order: Annotated[int, Field(ge=1, le=4)] = 4
    substeps: Annotated[int, Field(ge=1)] = 1
    newton: Annotated[int, Field(ge=0)] = 2


@summarised
class RealTimeIterationSpec(PredictiveSpec):
    """`real_time_iteration` of a problem with setpoint; it starts from the pose at rest."""

    type: Literal["real_time_iteration"]
    Q_end: Annotated[StateWeight | None, Field(description="Weight at the end; Q by default.")] = (
        None
    )
    setpoint: Annotated[Start, Field(description="Pose to reach; the start by default.")] = Start()
    joints: Annotated[
        dict[str, float],
        Field(
            default_factory=dict, description="Joints of the setpoint with another value, rad, m."
        ),
    ]
    shift: Annotated[bool, Field(description="Shift the guess by one interval each tick.")] = True
    step: Integrator = Integrator()


def build_linear_mpc(spec: LinearMpcSpec, system: System, q0: Array) -> Experiment:
    """Return the linear MPC, offset-free where coordinates are tracked."""
    linear = linear_system(spec, system, q0)
    options: dict[str, Any] = _controls(spec, system) | {
        "outputs": [_output(row, linear) for row in spec.output],
        "blocks": spec.blocks,
        "delay": spec.delay,
        "name": spec.name,
    }
    Q = state_weight(spec.Q, system)
    if not spec.tracked:
        options["terminal_set"] = spec.terminal_set
        law = linear_mpc(linear, LinearOptions(spec.horizon, Q, spec.R, **options))
    else:
        rows = [_unit_row(name, "position", system) for name in spec.tracked]
        chosen = LinearOptions(spec.horizon, Q, spec.R, **options)
        law = offset_free_mpc(linear, chosen, np.array(rows))
    return experiment(spec, law, linear, q0)


def build_real_time_iteration(spec: RealTimeIterationSpec, system: System, q0: Array) -> Experiment:
    """Return the real-time iteration, with its setpoint as a constant reference."""
    Q, options = state_weight(spec.Q, system), _controls(spec, system)
    ocp = optimal_control_problem(
        system,
        spec.horizon,
        options.pop("period"),
        [
            Cost(
                Q=Q,
                R=np.broadcast_to(spec.R, system.nu),
                Q_end=Q if spec.Q_end is None else state_weight(spec.Q_end, system),
                S=options["S"],
            ),
            StageBounds(u=options["u_bounds"], du=options["du_bounds"]),
        ],
        name=f"{spec.name}_ocp",
        step=StepOptions(**spec.step.model_dump()),
    )
    rti = real_time_iteration(ocp, delay=spec.delay, shift=spec.shift, name=spec.name)
    return Experiment(rti, q0, constant_function(rti.reference_at(_setpoint(spec, system, q0))))


def _setpoint(spec: RealTimeIterationSpec, system: System, q0: Array) -> Array:
    """Return the pose to reach.

    Raises:
        UnknownNameError: no such hinge or slide.
    """
    pose = q0.copy() if spec.setpoint == Start() else start_configuration(spec.setpoint, system)
    assert system.tree is not None
    places = {j.name: j.qpos for j in system.tree.joints if j.kind in ("hinge", "slide")}
    for name, value in spec.joints.items():
        require_name("hinge or slide", name, list(places))
        pose[places[name]] = value
    return pose


def _controls(spec: LinearMpcSpec | RealTimeIterationSpec, system: System) -> dict[str, Any]:
    """Return period, weight of changes and bounds as options."""
    every = np.tile([-np.inf, np.inf], (system.nu, 1))
    change = spec.limits.change
    return {
        "period": spec.period,
        "S": None if spec.S is None else np.broadcast_to(spec.S, system.nu),
        "du_bounds": override_limits(system, every, change) if change else None,
        "u_bounds": override_limits(system, system.limits.ctrl, spec.limits.ctrl),
    }


def _output(row: OutputRow, linear: Linearization) -> Output:
    """Return a bounded row of the deviations."""
    unit = _unit_row(row.coordinate, row.of, linear.system)
    bounds = row.model_dump(exclude={"coordinate", "of"})
    lower, upper = bounds.pop("lower"), bounds.pop("upper")
    return deviation_output(linear, f"{row.coordinate}_{row.of}", unit, lower, upper, **bounds)


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

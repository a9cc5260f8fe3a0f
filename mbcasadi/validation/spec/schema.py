"""The tables of a controller's TOML file.

Example:
    type = "inverse_dynamics_qp"
    period = 0.001                      # s

    [start]
    keyframe = "stand"                  # the authored pose by default

    [[task]]
    type = "frame"                      # or another one of `task_tables`
    frame = "trunk"
    kp = 200.0
    [task.reference]                    # added to where the frame is at the start
    z = { amplitude = 40, unit = "mm", frequency = 0.5, ramp = 1.0 }

    [[contact]]
    frame = "FL"
    friction = 0.6

    [[contact]]                         # of the model's geometry, with its friction
    frame = "FR on floor"
    kind = "contact"

    [[mask]]                            # switch rows while the same controller runs
    at = 4.0
    off = ["FL"]

    [limits.ctrl]                       # the model's by default
    FL_hip = [-20.0, 20.0]

    [limits.joint]                      # those with a range in the model
    velocity = 6.0                      # rad/s

    [[limits.soft]]                     # may be violated at a price
    limits = "joints"

    [limits.loop]                       # forces of equality constraints, by name
    pin = [-50.0, 50.0]                 # of each row, or a pair for each

    [sharing]                           # of loads that the motion does not determine
    kind = "free"

    [[part]]                            # any part of `mbcasadi.control` by its name
    type = "half_space"
    frame = "FL"
    offset = 0.1                        # m
    braking = 20.0                      # m/s²

    [options]                           # of InverseDynamicsQP
    torque_weight = 1e-6

    [supervision]                       # of the exported C, see the guide on supervision
    stale_after = 5                     # ticks
    rate = 2000.0                       # N m/s
    [supervision.inputs.q]
    jump = 0.02                         # rad in one tick

    [validation]
    duration = 6.0
    delay = 1
    perturb = { mass = 0.1 }

    [[validation.push]]                 # a force from outside on a body
    body = "trunk"
    force = [0.0, 50.0, 0.0]            # N, world axes, at its centre of mass
    start = 2.0                         # s
    stop = 2.2                          # s
"""

from typing import Annotated, Literal

from pydantic import Field

from mbcasadi import control
from mbcasadi.control import (
    DisturbanceObserver,
    ForceFeedback,
    FrictionLoss,
    LoadRamp,
    LoadSharing,
    RigidSprings,
)
from mbcasadi.short_text import summarised
from mbcasadi.validation.spec.common import Spec
from mbcasadi.validation.spec.contact_tables import (
    LoopForce,
    NotNegative,
    PointContact,
    Positive,
)
from mbcasadi.validation.spec.limit_tables import Limits
from mbcasadi.validation.spec.tables import TABLE, OneOf, StrictTable, by_type
from mbcasadi.validation.spec.task_tables import AnyTask

AnyPart = Annotated[control.Part, OneOf(by_type(control, control.Part))]
"""Any part of `mbcasadi.control`, by its name: `type = "half_space"` is a `HalfSpace`."""

Tunable = Literal["gains", "weights", "friction", "forces", "normals", "limits", "prices"]
ServoPlant = Literal[
    "model", "continuous", "euler", "rk4", "implicit", "implicitfast", "discrete", "start"
]


class MaskSwitch(StrictTable):
    """From the time `at` on, these rows are on or off."""

    at: NotNegative
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()


class Options(StrictTable):
    """Options of `InverseDynamicsQP`, its own defaults where None."""

    torque_weight: Positive | tuple[Positive, ...] | None = None
    torque_rate_weight: NotNegative | tuple[NotNegative, ...] | None = None
    levels: tuple[tuple[str, ...], ...] | None = None
    level_damping: Positive | None = None
    internal_force_weight: Positive | None = None
    force_weight: NotNegative | tuple[NotNegative, ...] | None = None
    stabilisation: NotNegative | None = None
    contact_damping: NotNegative | None = None
    bound_errors: bool | None = None
    internal_forces: Literal["body", "none", "wrench"] | None = None
    fallback: Literal["safe", "hold", "zero"] | None = None
    servo_plant: ServoPlant | None = None
    servo_timestep: Positive | None = None
    delay: Annotated[int, Field(ge=0)] | None = None
    tunable: tuple[Tunable, ...] | None = None
    rank_tol: Positive | None = None
    tolerance: Positive | None = None


@summarised
class InverseDynamicsSpec(Spec):
    """Inverse dynamics of tasks as a QP, `InverseDynamicsQP`."""

    type: Literal["inverse_dynamics_qp"]
    task: Annotated[tuple[AnyTask, ...], Field(min_length=1)]
    contact: tuple[PointContact, ...] = ()
    loop_force: tuple[LoopForce, ...] = ()
    mask: tuple[MaskSwitch, ...] = ()
    limits: Annotated[Limits, Field(default_factory=lambda: Limits(ctrl={}, force={}, loop={}))]
    sharing: Annotated[LoadSharing, TABLE] | None = None
    observer: Annotated[DisturbanceObserver, TABLE] | None = None
    force_feedback: Annotated[ForceFeedback, TABLE] | None = None
    friction_loss: Annotated[FrictionLoss, TABLE] | None = None
    rigid_springs: Annotated[RigidSprings, TABLE] | None = None
    load_ramp: Annotated[LoadRamp, TABLE] | None = None
    part: tuple[AnyPart, ...] = ()
    options: Options = Options()

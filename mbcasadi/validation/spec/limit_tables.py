"""The `[limits]` and `[sharing]` tables of a controller's TOML file."""

from typing import Annotated, Literal

from pydantic import Field

from mbcasadi.validation.spec.contact_tables import NotNegative, Positive
from mbcasadi.validation.spec.signals import StrictTable
from mbcasadi.validation.spec.task_tables import Gain

Range = tuple[float, float]


class Joints(StrictTable):
    """Limits of joints, as `JointLimits`; those with a range in the model unless named."""

    joints: tuple[str, ...] | None = None
    velocity: Gain | None = None
    acceleration: Gain | None = None
    braking: Gain | None = None
    margin: Gain = 0.0
    reserve: NotNegative | None = None


class Soft(StrictTable):
    """Limits that may be violated at a price, as `SoftLimit`."""

    limits: str
    price: Positive | None = None
    linear: NotNegative = 0.0


class Distances(StrictTable):
    """Distances between geoms, as `DistanceLimits`."""

    braking: Positive
    margin: NotNegative = 0.0
    reserve: NotNegative | None = None
    bodies: tuple[str, ...] | None = None
    pairs: tuple[str, ...] | None = None
    nearest: int = Field(default=8, ge=1)
    smoothing: Positive = 5e-3


class Sharing(StrictTable):
    """How constraints share loads, as `LoadSharing`."""

    kind: Literal["free", "least"] = "free"
    rows: Literal["loops", "all"] = "loops"
    stiffness: dict[str, Gain] | None = None
    preload: dict[str, float | tuple[float, ...]] | None = None


class Actuators(StrictTable):
    """Limits of actuators beside the model's ranges, as `ActuatorLimits`; all unless named."""

    actuators: tuple[str, ...] | None = None
    rate: Gain | None = None
    stall_force: Gain | None = None
    no_load_speed: Gain | None = None
    power: Gain | None = None


class Limits(StrictTable):
    """Limits by the actuator's name, in place of the model's: `crank = [-1.0, 1.0]`."""

    ctrl: Annotated[dict[str, Range], Field(default_factory=dict)]
    force: Annotated[dict[str, Range], Field(default_factory=dict)]
    joint: Joints | None = None
    distance: Distances | None = None
    actuator: Actuators | None = None
    soft: tuple[Soft, ...] = ()
    loop: Annotated[dict[str, Range | tuple[Range, ...]], Field(default_factory=dict)]

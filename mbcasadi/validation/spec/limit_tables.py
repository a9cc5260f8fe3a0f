"""The `[limits]` table of a controller's TOML file."""

from typing import Annotated

from pydantic import Field

from mbcasadi.control import ActuatorLimits, DistanceLimits, JointLimits, SoftLimit
from mbcasadi.validation.spec.tables import TABLE, StrictTable

Range = tuple[float, float]


class Limits(StrictTable):
    """Limits by the actuator's name, in place of the model's: `crank = [-1.0, 1.0]`."""

    ctrl: Annotated[dict[str, Range], Field(default_factory=dict)]
    force: Annotated[dict[str, Range], Field(default_factory=dict)]
    joint: Annotated[JointLimits, TABLE] | None = None
    distance: Annotated[DistanceLimits, TABLE] | None = None
    actuator: Annotated[ActuatorLimits, TABLE] | None = None
    soft: tuple[Annotated[SoftLimit, TABLE], ...] = ()
    loop: Annotated[dict[str, Range | tuple[Range, ...]], Field(default_factory=dict)]

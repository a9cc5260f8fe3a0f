"""The `[supervision]` table of a controller's TOML file."""

from typing import Annotated

from pydantic import Field

from mbcasadi.codegen import InputLimits, Supervision
from mbcasadi.validation.spec.contact_tables import NotNegative
from mbcasadi.validation.spec.signals import StrictTable

Numbers = Annotated[
    float | tuple[float, ...] | dict[str, float],
    Field(description="For all components, one for each, or some by name."),
]
Ticks = Annotated[int, Field(ge=1)]
INFINITE = float("inf")


class InputLimitsTable(StrictTable):
    """Plausible values of one input, as `InputLimits`."""

    lower: Numbers | None = None
    upper: Numbers | None = None
    jump: Numbers | None = None

    def limits(self) -> InputLimits:
        """Return the limits."""
        return InputLimits(
            -INFINITE if self.lower is None else self.lower,
            INFINITE if self.upper is None else self.upper,
            INFINITE if self.jump is None else self.jump,
        )


class SupervisionTable(StrictTable):
    """What an export does around its controller, as `Supervision`."""

    inputs: Annotated[dict[str, InputLimitsTable], Field(default_factory=dict)]
    stale_after: Annotated[int, Field(ge=0)] | None = None
    rate: Numbers | None = None
    trip_after: Ticks | None = None
    recover_after: Ticks | None = None
    fade_time: NotNegative = 0.1

    def supervision(self) -> Supervision:
        """Return the supervision."""
        return Supervision(
            inputs={name: table.limits() for name, table in self.inputs.items()},
            stale_after=self.stale_after,
            rate=INFINITE if self.rate is None else self.rate,
            trip_after=self.trip_after,
            recover_after=self.recover_after,
            fade_time=self.fade_time,
        )

"""Task of the distance between two frames."""

from dataclasses import dataclass
from typing import final

import casadi as ca

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.tasks.output_task import OutputTask, output_fun
from mbcasadi.control.tasks.task import Gain
from mbcasadi.system import System


@final
@dataclass(frozen=True)
class DistanceTask(OutputTask):
    """The origins of two frames keep a distance, whatever the direction between them.

    Where both origins meet the distance has no derivative: its Jacobian is zero there.

    Attributes:
        frame, other: names of the frames.
        kind, other_kind: "site", "body" or "geom"; the body "world" has its origin in the world's.
        kp, kd: gains, 1/s² and 1/s; kd is critical unless given.
        weight: of the squared acceleration error.
        name: prefix of the reference's slices; "<frame>_<other>" unless given.
    """

    frame: str
    other: str
    kind: str = "site"
    other_kind: str = "site"
    kp: Gain = 100.0
    kd: Gain | None = None
    weight: Gain = 1.0
    name: str = ""

    def __post_init__(self) -> None:
        require_fields(self)
        object.__setattr__(self, "name", self.name or f"{self.frame}_{self.other}")

    @checked
    def components(self, system: System) -> tuple[str, ...]:
        """Return the one row."""
        system.frame(self.frame, self.kind)
        system.frame(self.other, self.other_kind)
        return ("distance",)

    @checked
    def units(self, system: System) -> tuple[str, ...]:  # noqa: ARG002  # the interface's
        """Return m."""
        return ("m",)

    @checked
    def output(self, system: System) -> ca.Function:
        """Return (q, v) → (y, J, bias) of the distance."""
        key = f"distance.{self.kind}.{self.frame}.{self.other_kind}.{self.other}"
        return system.cached_function(key, lambda: output_fun(system, self._distance(system)))

    def _distance(self, system: System) -> ca.Function:
        """Return (q) → (y)."""
        q = ca.SX.sym("q", system.nq)
        ends = (system.frame(self.frame, self.kind), system.frame(self.other, self.other_kind))
        square = ca.sumsqr(ends[0].pose(q)[0] - ends[1].pose(q)[0])
        apart = square > 0
        y = apart * ca.sqrt(ca.if_else(apart, square, 1))
        return ca.Function("distance", [q], [y], ["q"], ["y"])

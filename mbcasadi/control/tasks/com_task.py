"""Task of the centre of mass of all bodies that can move."""

from dataclasses import dataclass
from typing import final

import casadi as ca

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.tasks.axes import AXES, require_axes
from mbcasadi.control.tasks.output_task import OutputTask
from mbcasadi.control.tasks.task import Gain, require_bodies
from mbcasadi.system import System


@final
@dataclass(frozen=True)
class ComTask(OutputTask):
    """The centre of mass follows a position, world axes.

    Attributes:
        axes: world axes along which it is controlled.
        kp, kd: gains, 1/s² and 1/s, a number or one for each axis; kd is critical unless given.
        weight: of the squared acceleration error, a number or one for each axis.
        name: prefix of the reference's slices.
    """

    axes: str = AXES
    kp: Gain = 100.0
    kd: Gain | None = None
    weight: Gain = 1.0
    name: str = "com"

    def __post_init__(self) -> None:
        require_fields(self)
        require_axes(f"{self.name}: axes", self.axes)

    @checked
    def components(self, system: System) -> tuple[str, ...]:
        """Return the axes."""
        require_bodies(self, system)
        return tuple(self.axes)

    @checked
    def units(self, system: System) -> tuple[str, ...]:  # noqa: ARG002  # the interface's
        """Return m for each axis."""
        return ("m",) * len(self.axes)

    @checked
    def output(self, system: System) -> ca.Function:
        """Return (q, v) → (y, J, bias) of the chosen axes."""
        require_bodies(self, system)
        return system.cached_function(f"com.{self.axes}", lambda: self._output(system))

    def _output(self, system: System) -> ca.Function:
        q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
        rows = [AXES.index(axis) for axis in self.axes]
        outputs = [part[rows, :] for part in system.center_of_mass(q, v)]
        return ca.Function("com", [q, v], outputs, ["q", "v"], ["y", "J", "bias"])

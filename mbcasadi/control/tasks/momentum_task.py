"""Task of the momentum of all bodies that can move, about their centre of mass."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.tasks.axes import AXES, require_axes
from mbcasadi.control.tasks.task import (
    Array,
    Gain,
    Residual,
    Slot,
    Task,
    require_bodies,
    require_state,
)
from mbcasadi.errors import ProblemError
from mbcasadi.system import System


@final
@dataclass(frozen=True)
class MomentumTask(Task):
    """Linear and angular momentum follow a reference, world axes.

    The rate of the momentum is the sum of all external forces, and of their moments about the
    centre of mass. It is what a controller of balance sets,

        d(momentum)/dt = rate_ref + kp (momentum_ref - momentum),

    and there is no position behind it: the law has no kd.

    Attributes:
        linear: axes of the linear momentum, "" for none.
        angular: axes of the angular momentum about the centre of mass, "" for none.
        kp: gain, 1/s, a number or one for each row.
        weight: of the squared error of the rate, in N and N m, a number or one for each row.
        name: prefix of the reference's slices.
    """

    linear: str = AXES
    angular: str = AXES
    kp: Gain = 10.0
    weight: Gain = 1.0
    name: str = "momentum"

    kd = 0.0

    def __post_init__(self) -> None:
        require_fields(self)
        require_axes(f"{self.name}: linear", self.linear, least=0)
        require_axes(f"{self.name}: angular", self.angular, least=0)
        if not self.linear + self.angular:
            raise ProblemError(f"{self.name}: neither linear nor angular momentum is controlled")

    @checked
    def components(self, system: System) -> tuple[str, ...]:
        """Return x, y, z of the linear momentum, then rx, ry, rz of the angular one."""
        require_bodies(self, system)
        return tuple(self.linear) + tuple(f"r{axis}" for axis in self.angular)

    @checked
    def units(self, system: System) -> tuple[str, ...]:  # noqa: ARG002  # the interface's
        """Return kg m/s for linear, kg m²/s for angular momentum."""
        return ("kg m/s",) * len(self.linear) + ("kg m²/s",) * len(self.angular)

    @checked
    def slots(self, system: System) -> tuple[Slot, ...]:
        """Return the slices of the momentum and of its rate."""
        rows = self.components(system)
        forces = ("N",) * len(self.linear) + ("N m",) * len(self.angular)
        return (
            Slot(f"{self.name}.momentum", rows, self.units(system)),
            Slot(f"{self.name}.rate", rows, forces),
        )

    @checked
    def residual(self, system: System, q: ca.SX, v: ca.SX, ref: Mapping[str, ca.SX]) -> Residual:
        """Return the chosen rows of the momentum's error, matrix and bias.

        Args:
            system, q, v, ref: as in `Task.residual`.
        """
        require_state(self, system, q, v, ref)
        rows = [AXES.index(a) for a in self.linear] + [3 + AXES.index(a) for a in self.angular]
        momentum, J, bias = (part[rows, :] for part in system.momentum(q, v))
        target, rate = ref["momentum"], ref["rate"]
        return Residual(
            J=J, c=bias, error=target - momentum, target=target, v_ref=target, a_ref=rate
        )

    @checked
    def hold_reference(self, system: System, q: Array) -> dict[str, Array]:  # noqa: ARG002
        """Return zero momentum, at rest."""
        rest = np.zeros(len(self.components(system)))
        return {"momentum": rest, "rate": rest}

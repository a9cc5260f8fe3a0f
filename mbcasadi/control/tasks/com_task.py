"""Task of the centre of mass of all bodies that can move."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.tasks.task import Array, Gain, Residual, Slot, Task, require_state
from mbcasadi.errors import ProblemError
from mbcasadi.model import center_of_mass_fun
from mbcasadi.shapes import column
from mbcasadi.system import System

AXES = "xyz"


@dataclass(frozen=True)
class ComTask(Task):
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
        if (
            not self.axes
            or len(set(self.axes)) != len(self.axes)
            or not set(self.axes) <= set(AXES)
        ):
            raise ProblemError(
                f"{self.name}: axes={self.axes!r}; expected letters of 'xyz', each once"
            )

    @checked
    def components(self, system: System) -> tuple[str, ...]:
        """Return the axes."""
        self._center_of_mass(system)
        return tuple(self.axes)

    @checked
    def units(self, system: System) -> tuple[str, ...]:  # noqa: ARG002  # the interface's
        """Return m for each axis."""
        return ("m",) * len(self.axes)

    @checked
    def slots(self, system: System) -> tuple[Slot, ...]:
        """Return the slices of the position, of its rate and of its acceleration."""
        rows = self.components(system)
        units = {"position": "m", "velocity": "m/s", "acceleration": "m/s²"}
        return tuple(
            Slot(f"{self.name}.{quantity}", rows, (unit,) * len(rows))
            for quantity, unit in units.items()
        )

    @checked
    def residual(self, system: System, q: ca.SX, v: ca.SX, ref: Mapping[str, ca.SX]) -> Residual:
        """Return the chosen rows of the error, the Jacobian and the bias."""
        require_state(self, system, q, v, ref)
        p, J, bias = self._center_of_mass(system)(q, v)
        rows, target = self._rows, ref["position"]
        return Residual(
            J=J[rows, :],
            c=bias[rows],
            error=target - p[rows],
            target=target,
            v_ref=ref["velocity"],
            a_ref=ref["acceleration"],
        )

    @checked
    def hold_reference(self, system: System, q: Array) -> dict[str, Array]:
        """Return the present position, at rest."""
        pose = column("q", q, system.nq)
        p = self._center_of_mass(system)(pose, np.zeros(system.nv))[0]
        rest, position = np.zeros(len(self.axes)), np.array(p).ravel()[self._rows]
        return {"position": position, "velocity": rest, "acceleration": rest}

    @property
    def _rows(self) -> list[int]:
        return [AXES.index(axis) for axis in self.axes]

    def _center_of_mass(self, system: System) -> ca.Function:
        """Return (q, v) → (p, J, bias)."""
        tree = system.tree
        if tree is None:
            raise ProblemError(
                f"{self.name}: '{system.name}' is given by equations and has no bodies; expected a "
                "system read from a model, or a FrameTask of a frame at the centre of mass, "
                "given with System.with_frame"
            )
        return system.cached_function("center_of_mass", lambda: center_of_mass_fun(tree))

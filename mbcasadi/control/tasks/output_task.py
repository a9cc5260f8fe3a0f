"""Tasks of a smooth function of the configuration: an output that follows its reference."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tasks.task import Array, Residual, Slot, Task, require_state
from mbcasadi.shapes import column
from mbcasadi.system import System
from mbcasadi.system.coordinates import per

QUANTITIES = ("position", "velocity", "acceleration")


class OutputTask(Task):
    """An output y(q) follows a position, with its velocity and acceleration fed forward.

    A concrete task gives the names and units of its rows and one Function; its reference has the
    slices `<name>.position`, `<name>.velocity` and `<name>.acceleration`.
    """

    @abstractmethod
    def output(self, system: System) -> ca.Function:
        """Return (q, v) → (y, J, bias): (k,), `dy/dt = J v` (k, nv), `bias = J̇ v` (k,)."""

    @checked
    @final
    def slots(self, system: System) -> tuple[Slot, ...]:
        """Return the slices of the output, of its rate and of its acceleration."""
        rows, units = self.components(system), self.units(system)
        by_rate = [units, *(tuple(per(unit, time) for unit in units) for time in ("s", "s²"))]
        return tuple(
            Slot(f"{self.name}.{quantity}", rows, of_rows)
            for quantity, of_rows in zip(QUANTITIES, by_rate, strict=True)
        )

    @checked
    @final
    def residual(self, system: System, q: ca.SX, v: ca.SX, ref: Mapping[str, ca.SX]) -> Residual:
        """Return the output's error, Jacobian and bias.

        Args:
            system, q, v, ref: as in `Task.residual`.
        """
        require_state(self, system, q, v, ref)
        y, J, bias = self.output(system)(q, v)
        target, v_ref, a_ref = (ref[quantity] for quantity in QUANTITIES)
        return Residual(J=J, c=bias, error=target - y, target=target, v_ref=v_ref, a_ref=a_ref)

    @checked
    @final
    def hold_reference(self, system: System, q: Array) -> dict[str, Array]:
        """Return the present output, at rest."""
        y = self.output(system)(column("q", q, system.nq), np.zeros(system.nv))[0]
        present = np.array(y).ravel()
        return dict(zip(QUANTITIES, (present, 0 * present, 0 * present), strict=True))


def output_fun(system: System, y: ca.Function) -> ca.Function:
    """Return (q, v) → (y, J, bias) of a Function (q) → (y): `J = ∂y/∂q N`, `bias = J̇ v`."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    N, value = system.velocity_map(q), y(q)
    J = ca.jacobian(value, q) @ N
    bias = ca.jtimes(J @ v, q, N @ v)
    outputs = [ca.densify(value), J, ca.densify(bias)]
    return ca.Function("output", [q, v], outputs, ["q", "v"], ["y", "J", "bias"])

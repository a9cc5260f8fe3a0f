"""The matrices of a linear system with the names of its states, inputs and outputs."""

from dataclasses import dataclass
from typing import Any

from mbcasadi.control.law_interface.pivots import leading_rows
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.extras import optional_module
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.coordinates import rate_names
from mbcasadi.system.pulling_inputs import activation_names


@summarised
@dataclass(frozen=True, eq=False)
class NamedMatrices:
    """`dx/dt = A x + B δu, δy = C x + D δu`, or `x_next = …` where there is a period.

    Attributes:
        A, B, C, D: (nx, nx), (nx, nu), (ny, nx), (ny, nu).
        states: `xi[crank]`, `eta[crank]`, `act[motor]`: each free direction by the coordinate that
            it is nearest to.
        inputs, outputs: names.
        period: s; None for a continuous system.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    period: float | None = None

    def _summary(self) -> dict[str, object]:
        return {"states": self.states, "inputs": self.inputs, "outputs": self.outputs}

    def to_ss(self) -> Any:
        """Return a `control.StateSpace` with these names, dots replaced by `_`.

        Raises:
            MissingExtraError: python-control is not installed.
        """
        control = optional_module("control", "control", "to_ss")
        names = {
            key: [name.replace(".", "_") for name in getattr(self, key)]
            for key in ("states", "inputs", "outputs")
        }
        return control.ss(self.A, self.B, self.C, self.D, dt=self.period or 0, **names)


def state_names(system: System, Z_q: Array, Z_v: Array) -> tuple[str, ...]:
    """Return the names of x: of ξ and η by the coordinates that lead their bases, and of α."""
    names, size = rate_names(system), system.scales.coordinates[:, None]
    leading = [(kind, leading_rows(Z / size)) for kind, Z in (("xi", Z_q), ("eta", Z_v))]
    free = [f"{kind}[{names[row]}]" for kind, rows in leading for row in rows]
    return (*free, *(f"act[{name}]" for name in activation_names(system)))


def input_names(system: System) -> tuple[str, ...]:
    """Return the names of δu."""
    return tuple(f"u[{name}]" for name in system.actuator_names)

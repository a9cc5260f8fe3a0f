"""Task of any smooth function of the configuration, given as a CasADi Function."""

from dataclasses import dataclass
from typing import final

import casadi as ca

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.tasks.output_task import OutputTask, output_fun
from mbcasadi.control.tasks.task import Gain
from mbcasadi.errors import ProblemError
from mbcasadi.system import System


@final
@dataclass(frozen=True)
class FunctionTask(OutputTask):
    """An output y(q) of your own follows a position; its derivatives are taken from it.

    Attributes:
        function: (q) → (y): (nq,) → (k,), of symbols that can be expanded (SX); a quaternion in q
            is a unit one.
        name: prefix of the reference's slices.
        labels: (k,) names of the rows; y0, y1, … unless given.
        row_units: (k,) units, for reports; none unless given.
        kp, kd: gains, 1/s² and 1/s, a number or one for each row; kd is critical unless given.
        weight: of the squared acceleration error, a number or one for each row.
    """

    function: ca.Function
    name: str
    labels: tuple[str, ...] = ()
    row_units: tuple[str, ...] = ()
    kp: Gain = 100.0
    kd: Gain | None = None
    weight: Gain = 1.0

    def __post_init__(self) -> None:
        require_fields(self)
        f, k = self.function, self.function.numel_out(0) if self.function.n_out() else 0
        if f.n_in() != 1 or f.n_out() != 1 or f.size2_in(0) != 1 or f.size2_out(0) != 1 or not k:
            raise ProblemError(f"{self.name}: the function is {f}; expected (q) → (y), two columns")
        for label, given in (("labels", self.labels), ("row_units", self.row_units)):
            if given and len(given) != k:
                raise ProblemError(f"{self.name}: {label} has {len(given)} names, expected {k}")
        object.__setattr__(self, "labels", self.labels or tuple(f"y{i}" for i in range(k)))
        object.__setattr__(self, "row_units", self.row_units or ("",) * k)

    @checked
    def components(self, system: System) -> tuple[str, ...]:
        """Return the names of the rows."""
        if self.function.numel_in(0) != system.nq:
            raise ProblemError(
                f"{self.name}: the function takes {self.function.numel_in(0)} coordinates, "
                f"'{system.name}' has nq = {system.nq}"
            )
        return self.labels

    @checked
    def units(self, system: System) -> tuple[str, ...]:  # noqa: ARG002  # the interface's
        """Return the units of the rows."""
        return self.row_units

    @checked
    def output(self, system: System) -> ca.Function:
        """Return (q, v) → (y, J, bias)."""
        self.components(system)
        return output_fun(system, self.function)

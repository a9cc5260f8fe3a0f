"""Options of the equations of motion and of a step on the constraint manifold."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.description import Baumgarte
from mbcasadi.dynamics import forward_dynamics
from mbcasadi.dynamics.formulations import DEFAULT, FormulationOptions, option_names
from mbcasadi.dynamics.terms import Treatment
from mbcasadi.errors import ProblemError
from mbcasadi.linalg import RANK_TOL
from mbcasadi.mpc.integrators.tableaus import TABLEAUS
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import require_name
from mbcasadi.short_text import summarised
from mbcasadi.system import System


@summarised
@readable_fields
@dataclass(frozen=True, kw_only=True)
class DynamicsOptions:
    """How the acceleration of a mechanism is computed: the options of `forward_dynamics`.

    Attributes:
        formulation: one of `FORMULATIONS`; all of them give the same motion.
        row_scale, rank_tol, pivot: drop rule; see `Treatment`.
        metric: (nv, nv) weight of velocities, or None.
        baumgarte: stabilisation of drift, or None.
        formulation_options: the formulation's own options by name.

    Raises:
        UnknownNameError: no such formulation or option; the message lists the names.
        ProblemError: a number of the drop rule is out of range.
    """

    formulation: str = DEFAULT
    row_scale: float | None = None
    rank_tol: float = RANK_TOL
    pivot: bool = True
    metric: ArrayLike | None = None
    baumgarte: Baumgarte | None = None
    formulation_options: FormulationOptions = field(default_factory=FormulationOptions)

    def __post_init__(self) -> None:
        require_fields(self)
        valid = option_names(self.formulation)
        for name in self.formulation_options:
            require_name(f"option of formulation '{self.formulation}'", name, valid)
        _ = self.treatment  # checks its numbers

    @property
    def treatment(self) -> Treatment:
        """How the rows of the constraints are treated along the motion."""
        return Treatment(self.row_scale, self.rank_tol, self.pivot, self.baumgarte)

    @property
    def is_default(self) -> bool:
        """Whether only the treatment of rows may differ from the default."""
        has_other_options = self.formulation_options or self.metric is not None
        return self.formulation == DEFAULT and not has_other_options

    @checked
    def acceleration_fun(self, system: System, *, derivatives: bool = True) -> ca.Function:
        """Return `forward_dynamics` of the system with these options.

        Args:
            system: the mechanism.
            derivatives: build the implicit derivatives of `forward_dynamics`.
        """
        return forward_dynamics(
            system,
            self.formulation,
            treatment=self.treatment,
            metric=self.metric,
            derivatives=derivatives,
            **self.formulation_options,
        )


@summarised
@readable_fields
@dataclass(frozen=True, kw_only=True)
class StepOptions(DynamicsOptions):
    """Options of a step on the constraint manifold, and of the dynamics inside it.

    Attributes:
        order: 1 to 4, of the explicit Runge-Kutta method.
        substeps: number of equal steps in a period.
        newton: number of Newton steps back onto positions, 0 for none; velocities are projected
            where it is not zero. With two of them the gap of a four-bar stays below 1e-10 m in
            steps that turn no joint by more than half a radian.

    Raises:
        UnknownNameError: no such order.
        ProblemError: an invalid number of steps.
    """

    order: int = 4
    substeps: int = 1
    newton: int = 2

    def __post_init__(self) -> None:
        require_fields(self)
        super().__post_init__()
        if self.order not in TABLEAUS:
            require_name("order", str(self.order), [str(order) for order in TABLEAUS])
        numbers: Mapping[str, float] = {"substeps": self.substeps, "newton": self.newton}
        whole = all(float(number).is_integer() for number in numbers.values())
        if not whole or self.substeps < 1 or self.newton < 0:
            raise ProblemError(
                f"substeps = {self.substeps}, newton = {self.newton}; expected whole numbers, at "
                "least 1 and 0"
            )


DEFAULT_DYNAMICS = DynamicsOptions()
"""Dynamics in the default formulation with the default drop rule."""

DEFAULT_STEP = StepOptions()
"""One Runge-Kutta step of order 4 a period, with two Newton steps back onto the manifold."""

"""Options of a simulation in three groups: its start, its steps, and its equations."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.description import Baumgarte
from mbcasadi.dynamics import FormulationOptions, Treatment
from mbcasadi.errors import ProblemError
from mbcasadi.linalg import RANK_TOL
from mbcasadi.progress import Progress
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import require_name

PROJECTIONS = ("stage", "step", "none")


@readable_fields
@dataclass(frozen=True, eq=False)
class InitialConditions:
    """What a motion starts from besides q0 and v0.

    Attributes:
        t0: s, time of the start.
        act: (na,) activations, zero by default.
        mask: (nc,) rows that are active at the start, one or zero; the system's own by default.
        assemble: whether q0 and v0 are moved onto the manifold. Without it, projection refuses a
            start with a residual above `initial_state.START_GAP`, and `project="none"` takes it
            as it is.

    Raises:
        ProblemError: t0 is not finite.
    """

    t0: float = 0.0
    act: ArrayLike | None = None
    mask: ArrayLike | None = None
    assemble: bool = True

    def __post_init__(self) -> None:
        require_fields(self)
        if not np.isfinite(self.t0):
            raise ProblemError(f"t0 is {self.t0} s; expected a finite number")


@dataclass(frozen=True)
class IntegrationOptions:
    """How steps are taken.

    Attributes:
        project: "stage", at every stage of a step; "step", after each step only
            [A05, section 6], which loses accuracy and takes tiny steps near singular poses;
            "none", which drifts.
        max_step: s, longest step.
        max_steps: accepted and rejected steps of one run.
        progress: called with a text and a share from 0 to 1.

    Raises:
        UnknownNameError: no such projection; the message lists the names.
        ProblemError: a limit is not above zero.
    """

    project: str = "stage"
    max_step: float = np.inf
    max_steps: int = 1_000_000
    progress: Progress | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        require_name("project", self.project, PROJECTIONS)
        for name in ("max_step", "max_steps"):
            value = getattr(self, name)
            if not value > 0:
                raise ProblemError(f"{name} is {value}; expected a number above 0")


@dataclass(frozen=True)
class EquationOptions:
    """How the equations of motion are written, and when a constraint row counts as dependent.

    Attributes:
        row_scale, rank_tol: drop rule; see `Treatment`.
        baumgarte: stabilisation of drift; for use with `project="none"`.
        formulation_options: the formulation's own options by name.

    Raises:
        ProblemError: a number of the drop rule is out of range, or `baumgarte` is of another type.
    """

    row_scale: float | None = None
    rank_tol: float = RANK_TOL
    baumgarte: Baumgarte | None = None
    formulation_options: FormulationOptions = field(default_factory=FormulationOptions)

    @property
    def treatment(self) -> Treatment:
        """How the rows of the constraints are treated."""
        return Treatment(self.row_scale, self.rank_tol, baumgarte=self.baumgarte)

    @property
    def key(self) -> str:
        """A text that is the same for equal options only."""
        return f"{self.treatment.key} {dict(self.formulation_options)!r}"

    def __post_init__(self) -> None:
        require_fields(self)
        _ = self.treatment  # checks its numbers

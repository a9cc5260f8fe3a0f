"""How constraints share loads that the motion does not determine; see `shared_loads.py`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import require_choice

KINDS = ("free", "least")
ROWS = ("loops", "all")


@final
@readable_fields
@dataclass(frozen=True)
class LoadSharing:
    """How constraints share loads that the motion does not determine.

    Attributes:
        kind: "free": the least loads where limits allow, an unknown of the QP where they do not;
            "least": the least loads always.
        rows: "loops": loads of equality constraints; "all": those of contacts as well, on different
            bodies too.
        stiffness: of the rows of each equality constraint by its name, N/m, N m/rad or relative;
            loads are shared by least `Σ lam²/stiffness`. None for the mechanism's own units.
        preload: forces lam_0 by the name of the equality constraint, zero for others: what the
            undetermined part is, at least cost.
    """

    kind: str = "free"
    rows: str = "loops"
    stiffness: Mapping[str, ArrayLike] | None = None
    preload: Mapping[str, ArrayLike] | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        require_choice("kind", self.kind, KINDS)
        require_choice("rows", self.rows, ROWS)
        if self.rows == "all" and (self.stiffness is not None or self.preload is not None):
            raise ProblemError(
                'rows="all" with a stiffness or a preload; expected rows="loops": contacts share '
                "by least squares of their forces"
            )

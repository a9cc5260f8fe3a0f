"""What every control law has besides its own gains: period, limits of u, drop rule, name."""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import number, require_identifier, require_positive

PERIOD = 1e-3  # s

LAW_RANK_TOL = 1e-6
"""Rows of A that are weaker than this, relative to their usual length, are dropped."""


@readable_fields
@dataclass(frozen=True, eq=False)
class LawOptions:
    """Options that all control laws and regulators share.

    Attributes:
        period: sample time, s; 1 ms by default, of `lqg` and `within_limits` that of the filter or
            the law, which no other can replace.
        ctrl_limits: (nu, 2) limits of u instead of the model's.
        rank_tol: relative length below which rows of A are dropped, and those of the matrices that
            a law inverts along null(A): of accelerations (`J P`, `B_θ`, `A_s G B`) and of forces
            (`P B`). 1e-6 by default, of `within_limits` that of `InverseDynamicsQP`, and of
            `lti_inverse_dynamics` 1e-10.
        name: a C identifier; that of the function that makes the law by default.

    Raises:
        ProblemError: a period that is not positive, a tolerance that is no share, or a name that
            is no C identifier.
    """

    period: float | None = None
    ctrl_limits: ArrayLike | None = None
    rank_tol: float | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        if self.period is not None:
            require_positive(period=self.period)
        if self.rank_tol is not None:
            require_rank_tol(self.rank_tol)
        if self.name is not None:
            require_identifier("name", self.name)

    @property
    def sample_time(self) -> float:
        """The period, 1 ms where none is given, s."""
        return PERIOD if self.period is None else float(self.period)

    @property
    def tolerance(self) -> float:
        """The tolerance of ranks, `LAW_RANK_TOL` where none is given."""
        return LAW_RANK_TOL if self.rank_tol is None else float(self.rank_tol)


LAW_OPTIONS = LawOptions()
"""What laws have unless another record is given."""


def require_period(options: LawOptions, own: float, source: str) -> None:
    """Raise `ProblemError` where another period is given than that of a law's source, s."""
    if options.period not in (None, own):
        raise ProblemError(
            f"period = {options.period} s, and {source} has one of {own} s; expected none in the "
            "options"
        )


def require_rank_tol(rank_tol: float) -> None:
    """Raise `ProblemError` unless a tolerance is a share, at least zero and below one."""
    if not 0 <= number("rank_tol", rank_tol) < 1:
        raise ProblemError(
            f"rank_tol = {rank_tol}; expected the share of a length that counts as zero, at least "
            "0 and below 1"
        )

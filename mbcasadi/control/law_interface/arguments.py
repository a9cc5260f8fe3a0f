"""Checks that all laws make of their arguments, before these are used."""

from mbcasadi.errors import ProblemError
from mbcasadi.shapes import number, require_numbers


def require_law_arguments(rank_tol: float, **not_negative: float) -> None:
    """Raise `ProblemError` for a number that no law can use.

    Args:
        rank_tol: a share, at least zero and below one.
        not_negative: finite numbers by name, such as a damping.
    """
    if not 0 <= number("rank_tol", rank_tol) < 1:
        raise ProblemError(
            f"rank_tol = {rank_tol}; expected the share of a length that counts as zero, at least "
            "0 and below 1"
        )
    require_numbers(**not_negative)

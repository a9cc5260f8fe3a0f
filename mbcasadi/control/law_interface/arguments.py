"""Checks that all laws make of their arguments, before these are used."""

from mbcasadi.errors import ProblemError
from mbcasadi.shapes import number, require_kind, require_numbers
from mbcasadi.system import System

SYSTEM_ADVICE = "read_mjcf, from_lagrangian or from_equations makes one"


def require_system(system: object) -> None:
    """Raise `ProblemError` unless the mechanism is a `System`."""
    require_kind("system", system, System, SYSTEM_ADVICE)


def require_law_arguments(system: object, rank_tol: float, **not_negative: float) -> None:
    """Raise `ProblemError` for a system or a number that no law can use.

    Args:
        system: the mechanism.
        rank_tol: a share, at least zero and below one.
        not_negative: finite numbers by name, such as a damping.
    """
    require_system(system)
    if not 0 <= number("rank_tol", rank_tol) < 1:
        raise ProblemError(
            f"rank_tol = {rank_tol}; expected the share of a length that counts as zero, at least "
            "0 and below 1"
        )
    require_numbers(**not_negative)

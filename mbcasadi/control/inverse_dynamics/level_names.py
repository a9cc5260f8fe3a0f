"""Which task is in which level, checked where it is given."""

from collections.abc import Sequence

from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_name

LEVEL_DAMPING = 1e-2
"""Share of its usual strength below which a direction of a level is damped."""


def require_levels(names: Sequence[str], levels: Sequence[Sequence[str]], damping: float) -> None:
    """Raise unless the levels, where there are any, hold each task once.

    Args:
        names: of the tasks.
        levels: names of tasks, level by level.
        damping: share of the usual strength.

    Raises:
        UnknownNameError: there is no such task.
        ProblemError: a task in no level or in two, an empty level, a damping of one or more.
    """
    if not levels:
        return
    members = [name for level in levels for name in level]
    for member in members:
        require_name("task of a level", member, list(names))
    if sorted(members) != sorted(names) or not all(levels):
        raise ProblemError(
            f"levels = {[list(level) for level in levels]}; expected each task once, in levels "
            f"that are not empty: {', '.join(names)}"
        )
    if damping >= 1:
        raise ProblemError(
            f"level_damping = {damping:g}; expected less than 1, the usual strength of a task"
        )

"""Axes of a task by their letters."""

from mbcasadi.errors import ProblemError

AXES = "xyz"


def require_axes(label: str, axes: str, *, least: int = 1) -> None:
    """Raise `ProblemError` unless `axes` holds letters of "xyz", each once.

    Args:
        label: of the argument, for the message.
        axes: what was given.
        least: number of axes there have to be.
    """
    if len(axes) < least or len(set(axes)) != len(axes) or not set(axes) <= set(AXES):
        raise ProblemError(f"{label}={axes!r}; expected letters of 'xyz', each once")

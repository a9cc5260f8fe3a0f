"""What a user adds to an optimal control problem, and what it adds to a stage, as data."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.qp.rows import Bounded
from mbcasadi.short_text import summarised


@summarised
@dataclass(frozen=True)
class Terms:
    """What a part adds to the stages of a problem.

    Attributes:
        running: residuals r of `½ ‖r‖²` per second, of all samples but the last.
        changes: residuals of each interval, which do not count by its length.
        ending: residuals of the last sample.
        rows: bounded values.
        given: bounds (lower, upper) of rows, by their place in `rows`, at the given state.
        x_bounds, u_bounds: (nx, 2), (nu, 2) bounds of the state from the second sample on, and of
            the control; None for none.
        du_bounds: (nu, 2) of the changes of the control; None for none.
    """

    running: Sequence[ca.SX] = ()
    changes: Sequence[ca.SX] = ()
    ending: Sequence[ca.SX] = ()
    rows: Sequence[Bounded] = ()
    given: dict[int, tuple[float, float]] = field(default_factory=dict)
    x_bounds: Array | None = None
    u_bounds: Array | None = None
    du_bounds: Array | None = None


class StagePart(ABC):
    """A part of optimal control problems alone."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "terms" in vars(cls):
            cls.terms = checked(cls.terms)  # type: ignore[method-assign]

    @property
    def has_setpoint(self) -> bool:
        """Whether it reads a setpoint of q, v and u."""
        return False

    @property
    def has_changes(self) -> bool:
        """Whether it reads the control of the interval before."""
        return False

    @abstractmethod
    def terms(self, stage: Stage) -> Terms:
        """Return what it adds to a stage.

        Raises:
            ProblemError, ShapeError: it does not fit the mechanism.
        """


FREE = (-np.inf, np.inf)
"""Bounds of a row at the given state, which no plan can change."""

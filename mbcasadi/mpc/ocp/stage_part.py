"""What a user adds to an optimal control problem, and what it adds to a stage, as data."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tasks.task import Slot
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.qp.rows import Bounded
from mbcasadi.short_text import summarised
from mbcasadi.system import System


@summarised
@dataclass(frozen=True)
class StageTerms:
    """What a part adds to the stages of a problem.

    Attributes:
        running: residuals r of `½ ‖r‖²` per second, of all samples but the last.
        changes: residuals of each interval, which do not count by its length.
        ending: residuals of the last sample.
        rows: bounded values.
        given: bounds (lower, upper) of rows, by their place in `rows`, at the given state.
        slopes: derivatives (n, 2 nv) of rows of q and v alone along `(q ⊕ δq, v + δv)`, by their
            place in `rows`, where a formula is shorter than differentiation.
        x_bounds, u_bounds: (nx, 2), (nu, 2) bounds of the state from the second sample on, and of
            the control; None for none.
        du_bounds: (nu, 2) of the changes of the control; None for none.
        a: (nv,) acceleration by which a sample leads to the next one; None for the integrator's.
        nominal: slices of p with other nominal values than zero, by name.
        usual: slices of p at which rows have their size, where the nominal ones make them zero.
        landing_rows: a row of the mask for each contact that lands.
    """

    running: Sequence[ca.SX] = ()
    changes: Sequence[ca.SX] = ()
    ending: Sequence[ca.SX] = ()
    rows: Sequence[Bounded] = ()
    given: dict[int, tuple[float, float]] = field(default_factory=dict)
    slopes: Mapping[int, ca.SX] = field(default_factory=dict)
    x_bounds: Array | None = None
    u_bounds: Array | None = None
    du_bounds: Array | None = None
    a: ca.SX | None = None
    nominal: Mapping[str, Array] = field(default_factory=dict)
    usual: Mapping[str, Array] = field(default_factory=dict)
    landing_rows: tuple[int, ...] = ()


class StagePart(ABC):
    """A part of optimal control problems alone."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("slots", "unknowns", "terms"):
            if name in vars(cls):
                setattr(cls, name, checked(vars(cls)[name]))

    @property
    def has_setpoint(self) -> bool:
        """Whether it reads a setpoint of q, v and u."""
        return False

    @property
    def has_changes(self) -> bool:
        """Whether it reads the control of the interval before."""
        return False

    @property
    def has_forces(self) -> bool:
        """Whether it states the motion and the ranges of actuators by unknowns of its own."""
        return False

    @property
    def disturbs(self) -> bool:
        """Whether it adds a force to the motion, the slice `disturbance` of p."""
        return False

    def slots(self, system: System) -> tuple[Slot, ...]:  # noqa: ARG002  # of a part that has some
        """Return slices of p that it reads, beside those of the setpoint and the mechanism."""
        return ()

    def unknowns(self, system: System) -> tuple[str, ...]:  # noqa: ARG002  # as above
        """Return names of unknowns of a stage behind u."""
        return ()

    @abstractmethod
    def terms(self, stage: Stage) -> StageTerms:
        """Return what it adds to a stage.

        Raises:
            ProblemError, ShapeError: it does not fit the mechanism.
        """


FREE = (-np.inf, np.inf)
"""Bounds of a row at the given state, which no plan can change."""

"""What a user adds to a controller, and what it is made of once the mechanism is known.

A part says as data what it adds, so that what reads it need not know that it exists: entries of the
reference, of `tuning` and of z, further inputs, rows that it holds, and functions. Of all parts,
whatever their order, `state` comes first, then `forces`, then `rows` and `carry`; behind the solver
`moved`, `flags`, `safe` and `remember`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.description import Signal, TuningParameter
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.qp.rows import Bounded, Row, Rows, Sizes
from mbcasadi.short_text import summarised
from mbcasadi.system.actuator_model import ActuatorModel

Array = NDArray[np.float64]
Values = Mapping[str, ca.SX]


@dataclass(frozen=True)
class Outcome:
    """A tick behind its solver.

    Attributes:
        known: what the part carried over and found since, by name.
        valid: whether all inputs are.
        measured: whether those of the measurement are.
        solved: whether the tick has a solution.
        p: (nu,) actuator forces of the solution, of any content where there is none.
        a: (nv,) acceleration of the solution, likewise.
        u: (nu,) control that the tick gives.
        active: (m,) active set of the rows.
        about: what the rows are.
        acting: of each weighed force, itself and the actuators that can act on it, by kind and
            name.
        actuators: at the measured state.
        coordinates: (nv,) √ of each coordinate's inertia.
        strength: largest `(aᵀ M a)^½` that actuators and gravity can give.
    """

    known: Values
    valid: ca.SX
    measured: ca.SX
    solved: ca.SX
    p: ca.SX
    a: ca.SX
    u: ca.SX
    active: ca.SX
    about: tuple[Row, ...]
    acting: tuple[frozenset[tuple[str, str]], ...]
    actuators: ActuatorModel
    coordinates: Array
    strength: float

    @property
    def unlimited(self) -> ActuatorModel:
        """Actuators whose force follows from the control alone."""
        wide = UNBOUNDED * ca.SX.ones(self.actuators.gain.numel())
        return replace(self.actuators, lower=-wide, upper=wide)


class FollowedCoordinate(NamedTuple):
    """A limited coordinate: its index in v, the acceleration that tasks may require, its range.

    The acceleration is NaN for any.
    """

    dof: int
    acceleration: float
    range: float


@summarised
@dataclass(frozen=True)
class Bound:
    """What a part adds to the controllers of one design.

    Attributes:
        name: of the part, unique among those of a controller.
        inputs: further inputs.
        tuning: entries of `tuning`.
        ordered: pairs of them, the lower one first.
        memory: names of entries of z.
        outputs: further ones, each the next of its first entries of z.
        positions: those of its rows that keep a position, in their order.
        planned: indices in v of accelerations of the ticks before that it reads.
        followed: of limited coordinates, what tasks may require of them.
        held: (k, nv) constant rows S of `S a + bias = 0` that it holds.
        held_bias: their bias (k,).
        notes: for the report and the README of the exported C.
        doubts: warnings of what is built all the same.
        state: the instant with the state predicted or corrected.
        forces: the instant with changed forces, ranges or references.
        rows: inequalities.
        path: of limits of q and v, what optimal control bounds at its samples in place of `rows`,
            which lower them to accelerations.
        lost: whether a limit cannot be kept any more, whatever the solver finds.
        carry: numbers by name that the functions behind the solver need.
        judge: further ones, from the rows of all tasks in the problem and the floors of each.
        moved: numbers by name from what is carried, the acceleration and the tasks' misses.
        flags: bits of `flags`.
        safe: the safe output within the part's limits.
        remember: its entries of z at the next tick.
    """

    name: str
    inputs: tuple[Signal, ...] = ()
    tuning: tuple[TuningParameter, ...] = ()
    ordered: tuple[tuple[str, str], ...] = ()
    memory: tuple[str, ...] = ()
    outputs: tuple[Signal, ...] = ()
    positions: tuple[Row, ...] = ()
    planned: tuple[int, ...] = ()
    followed: tuple[FollowedCoordinate, ...] = ()
    held: Array | None = None
    held_bias: Callable[[Instant], ca.SX] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    doubts: Sequence[str] = ()
    state: Callable[[Instant], Instant] | None = None
    forces: Callable[[Instant], Instant] | None = None
    rows: Callable[[Instant, Sizes], Sequence[Rows]] | None = None
    path: Callable[[Instant], Sequence[Bounded]] | None = None
    lost: Callable[[Instant], ca.SX] | None = None
    carry: Callable[[Instant], Values] | None = None
    judge: Callable[[Any, Array], Values] | None = None
    moved: Callable[[Values, ca.SX, ca.SX], Values] | None = None
    flags: Callable[[Outcome], ca.SX] | None = None
    safe: Callable[[Outcome], ca.SX] | None = None
    remember: Callable[[Outcome], ca.SX] | None = None


class Part(ABC):
    """What a user adds to a controller."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "bind" in vars(cls):
            cls.bind = checked(cls.bind)  # type: ignore[method-assign]

    @abstractmethod
    def bind(self, design: Design) -> Bound:
        """Return what it adds to the controllers of a design.

        Raises:
            ProblemError, UnknownNameError: it does not fit the mechanism or the other parts.
        """

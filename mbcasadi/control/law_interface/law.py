"""A control law as data: its safe inputs, its command and its description."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.fallback import Core
from mbcasadi.control.tasks.reference import fill_reference, slot_slices
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Controller
from mbcasadi.system import System

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LawInputs:
    """Safe inputs of a law: finite, quaternions unit.

    Attributes:
        q, v: (nq,), (nv,) closed by `system/closing.py`, or as measured where a law's equations do
            not depend on the rank of the constraints.
        ref: slice of the reference by its slot's name.
        z: state by its name.
        rows: (nc,) one for each constraint row that is on, else zero; all ones without a mask.
        f_c: (nv,) measured constraint force, zero where the law does not use one.
        tuning: entries of the input `tuning` by name, inside their bounds.
        gap: scaled residual of the rows that closing has left.
    """

    q: ca.SX
    v: ca.SX
    ref: Mapping[str, ca.SX]
    z: Mapping[str, ca.SX]
    rows: ca.SX
    f_c: ca.SX
    tuning: Mapping[str, ca.SX] = field(default_factory=dict)
    gap: ca.SX = field(default_factory=lambda: ca.SX(0))


@dataclass(frozen=True)
class Command:
    """What a law commands at one state.

    Attributes:
        u: (nu,) control, before limits.
        a: (nv,) desired acceleration, for the QP that finds the closest feasible control.
        f_c: (nv,) desired constraint force, zero where the law sets none.
        z_next: next state by its name; states that are left out keep their value.
        residual: (k,) parts that are not attained, by name; zero where the law holds.
        attainable: one where the law's own test holds.
        gated: one where a measurement was rejected.
        trusted: zero where the measurement counts as bad input; the state goes on.
        solvable: one where its equations have one solution; else the status is 4 and u is the
            safe output.
        error, target: (ny,) tracking error and desired value, for reports.
    """

    u: ca.SX
    a: ca.SX
    f_c: ca.SX | None = None
    z_next: Mapping[str, ca.SX] = field(default_factory=dict)
    residual: Mapping[str, ca.SX] = field(default_factory=dict)
    attainable: ca.SX = field(default_factory=lambda: ca.SX(1))
    gated: ca.SX = field(default_factory=lambda: ca.SX(0))
    trusted: ca.SX = field(default_factory=lambda: ca.SX(1))
    solvable: ca.SX = field(default_factory=lambda: ca.SX(1))
    error: ca.SX | None = None
    target: ca.SX | None = None


@dataclass(frozen=True)
class Law:
    """A control law as data; `export_c` and `validate` take it as it is.

    Attributes:
        system: the mechanism that it was made for.
        controller: the law as a `Controller`.
        slots: the slices of the reference, in order.
        core: the equations without the safe output; see `with_fallback`.
        desired: (q, v, [f_c], ref, [mask], z) → (a, f_c, z_next): acceleration and constraint
            force that the law commands, before limits.
    """

    system: System
    controller: Controller
    slots: tuple[Slot, ...]
    core: Core
    desired: ca.Function

    @property
    def function(self) -> ca.Function:
        """The law as one named Function."""
        return self.controller.function

    @property
    def reference(self) -> dict[str, slice]:
        """Slice of the reference by its slot's name."""
        return slot_slices(self.slots)

    @checked
    def ref(self, **values: ArrayLike) -> Array:
        """Return the reference with these slices, zero elsewhere; dots are written as `_`.

        Raises:
            UnknownNameError: no such slice; the message lists those there are.
            ShapeError: a slice of a wrong size.
        """
        return fill_reference(self.slots, values)

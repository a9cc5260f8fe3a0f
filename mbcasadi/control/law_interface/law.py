"""A control law as data: its safe inputs, its command and its description."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.law_interface.control_law import ControlLaw
from mbcasadi.control.law_interface.control_solution import ControlSolution, solve_by_name
from mbcasadi.control.law_interface.fallback import Core
from mbcasadi.control.tasks.moving import Moving
from mbcasadi.control.tasks.reference import (
    Hold,
    Slices,
    Values,
    fill_reference,
    hold_by_task,
    merged,
)
from mbcasadi.control.tasks.task import Slot, Task, tracked_rows
from mbcasadi.description import TuningParameter
from mbcasadi.errors import ProblemError
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.coordinates import initial_pose, pose_inputs, pose_of, start_pose

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
        act: (na,) activation states, of laws that know them.
    """

    q: ca.SX
    v: ca.SX
    ref: Mapping[str, ca.SX]
    z: Mapping[str, ca.SX]
    rows: ca.SX
    f_c: ca.SX
    tuning: Mapping[str, ca.SX] = field(default_factory=dict)
    gap: ca.SX = field(default_factory=lambda: ca.SX(0))
    act: ca.SX = field(default_factory=lambda: ca.SX(0, 1))


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


@summarised
@readable_fields
@dataclass(frozen=True)
class LawInterface:
    """What a law reads and remembers beside q and v, and what reports show of it.

    Attributes:
        slots: slices of the reference.
        hold: from a pose (nq,) to the slices that hold it at rest, those that are left out zero;
            None where the reference holds no pose.
        default: slices of the reference that the law has where none is given; see `Law.default`.
        tracked: (name, unit) of each entry of `Command.error`.
        states: initial value of each state, by name.
        tuning: numbers that may change between ticks; `LawInputs.tuning` has them by name.
        measures_force: the law takes the measured constraint force `f_c`.
        knows_activations: the law takes the activation states, where the system has them.
        closes_state: the equations get the state on the constraint manifold, not the measured one;
            a state that is too far from it is bad input. Without it, nothing that they compute
            for u may depend on the rank of the constraints.
        notes: remarks for the report and for the README of the exported C.
    """

    slots: Sequence[Slot] = ()
    hold: Hold | None = None
    default: Slices | None = None
    tracked: Sequence[tuple[str, str]] = ()
    states: Mapping[str, ArrayLike] = field(default_factory=dict)
    tuning: Sequence[TuningParameter] = ()
    measures_force: bool = False
    knows_activations: bool = False
    closes_state: bool = True
    notes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_fields(self)


def interface_of_task(task: Task, system: System, law: str) -> LawInterface:
    """Return the interface of a law, named in its notes, which follows a task."""
    return LawInterface(
        slots=task.slots(system),
        hold=hold_by_task(task, system),
        tracked=tracked_rows(task, system),
        notes={"law": law, "task": task.name},
    )


@final
@summarised
@dataclass(frozen=True)
class Law(ControlLaw):
    """A control law as data; `export_c` and `validate` take it as it is.

    Attributes:
        system: the mechanism that it was made for.
        controller: the law as a `Controller`.
        slots: the slices of the reference, in order.
        core: the equations without the safe output; see `with_fallback`.
        make_desired: builds `desired`, which few users of a law need.
        hold: from a pose to the slices that hold it at rest; None where the law has none.
        default: (nref,) reference of `reference()` and `solve`; None: the initial pose in
            `reference()`, the measured one in `solve`, by `hold`; zero without it.
    """

    system: System
    core: Core
    make_desired: Callable[[], ca.Function]
    hold: Hold | None = None
    default: Array | None = None

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.controller.name,
            "system": self.system.name,
            "reference": {slot.name: slot.size for slot in self.slots},
            "period": self.period,
        }

    @cached_property
    def desired(self) -> ca.Function:
        """(q, v, [f_c], ref, [mask], z) → (a, f_c, z_next): what is commanded, before limits.

        The acceleration a and the constraint force f_c. Built when it is first used.
        """
        return self.make_desired()

    @property
    def nominal_reference(self) -> Array | None:
        """Reference (nref,) of the equilibrium of a regulator; None for other laws."""
        return self.default

    def example_inputs(self) -> dict[str, Array]:
        """Return a keyframe or the initial pose, and the reference that holds it."""
        pose = start_pose(self.system)
        ref = self._default_at(pose)
        inputs = pose_inputs(self.system, pose)
        return inputs if ref is None else inputs | {"ref": ref}

    @checked
    def reference(self, values: Values | None = None, /, **slices: ArrayLike | Moving) -> Array:
        """Return the reference with these slices, the default elsewhere; see `default`.

        Args:
            values: by name, `{"posture.q": [0.1, 0.2]}`.
            slices: the same as keywords, with `_` for dots: `posture_q=[0.1, 0.2]`.

        A `Pose`, or a sample of a motion, goes by the name of its task: `hand=pose`.

        Raises:
            UnknownNameError: no such slice; the message lists those there are.
            ShapeError: a slice of a wrong size.
            ProblemError: a pose for what has none.
        """
        default = self.default
        if default is None and self.hold is not None:
            default = fill_reference(self.slots, self.hold(initial_pose(self.system)))
        return fill_reference(self.slots, merged(values, slices), default)

    @checked
    def reference_at(self, q: ArrayLike, values: Values | None = None) -> Array:
        """Return the reference that holds the pose q at rest, with these slices changed.

        Args:
            q: (nq,) pose.
            values: slices with another value, by name.

        Raises:
            ProblemError: no reference, or none that holds a pose.
            UnknownNameError, ShapeError: as in `reference`.
        """
        pose, name = pose_of(self.system, "q", q), self.controller.name
        if not self.nref:
            raise ProblemError(f"'{name}' has no reference: it holds the state it was made for")
        if self.hold is None:
            raise ProblemError(
                f"'{name}' has no reference that holds a pose; give the slices to reference(): "
                f"{', '.join(self.reference_slices)}"
            )
        return fill_reference(self.slots, values or {}, fill_reference(self.slots, self.hold(pose)))

    @checked
    def solve(
        self,
        q: ArrayLike,
        v: ArrayLike,
        ref: ArrayLike | None = None,
        *,
        z: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        f_c: ArrayLike | None = None,
        tuning: Mapping[str, float] | None = None,
        p: ArrayLike | None = None,
    ) -> ControlSolution:
        """Return the law's output at a state.

        Args:
            q, v: (nq,), (nv,) state.
            ref: (nref,) reference; by default `default`, or rest at q.
            z: (nz,) state of the law; default: `z0`.
            mask: one for each constraint that is on, where the system has a mask; default: all on.
            f_c: (nv,) measured constraint force, N or N m, where the law uses one.
            tuning: entries of the input `tuning` by name; the others have their defaults.
            p: (np,) physical parameters, `system.parameter_values({...})`; default: the model's.

        Raises:
            ProblemError: an input that the law does not have, or one that is missing.
            UnknownNameError: no such entry of `tuning`.
            ShapeError: a wrong shape. NaN and infinity do not raise: they give status 3.
        """
        inputs = {"q": q, "v": v, "ref": ref, "z": z, "mask": mask, "f_c": f_c, "p": p}
        if ref is None:
            inputs["ref"] = self._default_at(pose_of(self.system, "q", q, finite=False))
        return solve_by_name(self.controller, inputs, tuning)

    def _default_at(self, q: Array) -> Array | None:
        """Return the reference of a tick that is given none; None where there is no default."""
        if self.default is not None or not self.nref:
            return np.zeros(self.nref) if self.default is None else self.default
        if self.hold is None:
            return None
        held = self.hold(q) if np.all(np.isfinite(q)) else {}
        return fill_reference(self.slots, held)

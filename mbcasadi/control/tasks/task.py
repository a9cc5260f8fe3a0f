"""Tasks: desired motions, as accelerations.

Every task is `J a + c = a_des` in the least-squares sense, with a weight on each row. A concrete
task gives its residual: the error, its Jacobian J and its bias `c = J̇ v`. The desired acceleration
is the same PD law for all,

    a_des = a_ref + kd (v_ref - J v) + kp error,

where `error` leads from the present value to the desired one. References are named slices of the
controller's input `ref`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column, real_array, require_kind, require_shape
from mbcasadi.short_text import summarised
from mbcasadi.system import System

Array = NDArray[np.float64]
Gain = float | Sequence[float]

HEAVIER = 10.0
"""Factor of the weights from which on a task counts as heavier: it takes 10/11 of a conflict."""


@summarised
@dataclass(frozen=True)
class Slot:
    """One named slice of the reference.

    Attributes:
        name: `<task>.<quantity>`.
        components: one name for each entry.
        units: one unit for each entry.
    """

    name: str
    components: tuple[str, ...]
    units: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.components)


@summarised
@dataclass(frozen=True)
class Residual:
    """The residual of a task at one state.

    Attributes:
        J: (k, nv) Jacobian of the task's rate.
        c: (k,) bias `J̇ v`.
        error: (k,) from the present value to the desired one; rotations as vectors, rad.
        target: (k,) the desired value; rotations as vectors, rad.
        v_ref, a_ref: (k,) reference of the task's rate and of its acceleration.
    """

    J: ca.SX
    c: ca.SX
    error: ca.SX
    target: ca.SX
    v_ref: ca.SX
    a_ref: ca.SX


@summarised
@dataclass(frozen=True)
class TaskRows:
    """A task at one state.

    Attributes:
        J: (k, nv) Jacobian.
        c: (k,) bias `J̇ v`.
        a_des: (k,) desired acceleration.
        error: (k,) from the present value to the desired one; rotations as vectors, rad.
        target: (k,) the desired value; rotations as vectors, rad.
        a_ref: (k,) the part of a_des that the reference gives.
        feedback: (k, 2) `kp error` and `kd (v_ref - J v)`, what of a_des the reference does not
            give.
    """

    J: ca.SX
    c: ca.SX
    a_des: ca.SX
    error: ca.SX
    target: ca.SX
    a_ref: ca.SX
    feedback: ca.SX


@dataclass(frozen=True)
class Gains:
    """`a_des = a_ref + kd rate_error + kp error`, rows of a task.

    Attributes:
        kp: (k,) stiffness, 1/s².
        kd: (k,) damping, 1/s.
        weight: (k,) weight of the squared acceleration error.
    """

    kp: Array
    kd: Array
    weight: Array


class Task(ABC):
    """`J a + c = a_des`, weighted. A concrete task gives the abstract methods."""

    name: str
    kp: Gain
    kd: Gain | None
    weight: Gain

    @abstractmethod
    def components(self, system: System) -> tuple[str, ...]:
        """Return a name for each row; raises if the task does not fit the system."""

    @abstractmethod
    def units(self, system: System) -> tuple[str, ...]:
        """Return the unit of each row's error."""

    @abstractmethod
    def slots(self, system: System) -> tuple[Slot, ...]:
        """Return the slices of the reference that the task reads."""

    @abstractmethod
    def residual(self, system: System, q: ca.SX, v: ca.SX, ref: Mapping[str, ca.SX]) -> Residual:
        """Return error, Jacobian and bias at (q, v) for the task's slices `ref` of the reference.

        Args:
            system: the mechanism.
            q, v: (nq,), (nv,) state.
            ref: the task's slices by their names without the task's.
        """

    @checked
    @final
    def rows(
        self, system: System, q: ca.SX, v: ca.SX, ref: Mapping[str, ca.SX], gains: Gains
    ) -> TaskRows:
        """Return `J a + c = a_des` at (q, v), `a_des = a_ref + kd (v_ref - J v) + kp error`.

        Args:
            system: the mechanism.
            q, v: (nq,), (nv,) state.
            ref: the task's slices by their names without the task's.
            gains: from `gains_of`.
        """
        r = self.residual(system, q, v, ref)
        kp, kd = (_gain_column(n, getattr(gains, n), r.error.numel()) for n in ("kp", "kd"))
        of_error, of_rate = kp * r.error, kd * (r.v_ref - r.J @ v)
        a_des, feedback = r.a_ref + of_rate + of_error, ca.horzcat(of_error, of_rate)
        return TaskRows(ca.sparsify(r.J), r.c, a_des, r.error, r.target, r.a_ref, feedback)

    @abstractmethod
    def hold_reference(self, system: System, q: Array) -> dict[str, Array]:
        """Return the slices of a reference that holds the configuration q, at rest."""


def _gain_column(name: str, gain: Array | ca.SX, count: int) -> Array | ca.SX:
    """Return gains that are one for each row, (count,); tuned ones are expressions."""
    if isinstance(gain, ca.SX):
        require_shape(name, gain, (count, 1))
        return gain
    return column(name, gain, count)


def require_state(task: Task, system: System, q: ca.SX, v: ca.SX, ref: Mapping[str, ca.SX]) -> None:
    """Raise unless a state and a reference are those of a task on a system.

    Raises:
        ShapeError: q, v or a slice has a wrong shape.
        ProblemError: the reference lacks a slice of the task.
    """
    require_shape("q", q, (system.nq, 1), "(nq, 1)")
    require_shape("v", v, (system.nv, 1), "(nv, 1)")
    slots = {slot.name.removeprefix(f"{task.name}."): slot for slot in task.slots(system)}
    for name, slot in slots.items():
        if name not in ref:
            raise ProblemError(
                f"the reference of '{task.name}' has no '{name}'; expected {', '.join(slots)}"
            )
        require_shape(f"'{name}' of the reference of '{task.name}'", ref[name], (slot.size, 1))


def require_bodies(task: Task, system: System) -> None:
    """Raise `ProblemError` for a system that is given by equations: it has no bodies."""
    if system.tree is None:
        raise ProblemError(
            f"{task.name}: '{system.name}' is given by equations and has no bodies; expected a "
            "system read from a model, a FunctionTask of an output of your own, or a FrameTask of "
            "a frame that is given with System.with_frame"
        )


TASK_ADVICE = "PostureTask, FrameTask, another task of mbcasadi.control, or one of your own"


def require_task(name: str, task: object) -> None:
    """Raise `ProblemError` unless an argument is a task."""
    require_kind(name, task, Task, TASK_ADVICE)


def gains_of(task: Task, system: System) -> Gains:
    """Return the gains of each row; kd is critical (`2 √kp`) unless given.

    Raises:
        ProblemError: negative or non-finite gains or weights, or a wrong number of them.
    """
    rows = task.components(system)
    kp = per_row(task.name, "kp", task.kp, rows)
    kd = 2 * np.sqrt(kp) if task.kd is None else per_row(task.name, "kd", task.kd, rows)
    return Gains(kp, kd, per_row(task.name, "weight", task.weight, rows))


def own_slices(task: Task, system: System, ref: Mapping[str, ca.SX]) -> dict[str, ca.SX]:
    """Return the task's slices of `ref` under its own names for them, zero where it has none."""
    return {
        slot.name.removeprefix(f"{task.name}."): ref.get(slot.name, ca.SX.zeros(slot.size))
        for slot in task.slots(system)
    }


def tracked_rows(task: Task, system: System) -> tuple[tuple[str, str], ...]:
    """Return name and unit of each row's error."""
    named = (f"{task.name}.{row}" for row in task.components(system))
    return tuple(zip(named, task.units(system), strict=True))


def per_row(owner: str, label: str, value: Gain, rows: Sequence[str]) -> Array:
    """Return `value` as one non-negative number for each row, (k,).

    Args:
        owner: name of the task or law, for messages.
        label: name of the option, for messages.
        value: a number, or one for each row.
        rows: names of the k rows.

    Raises:
        ProblemError: a wrong number of values, or one that is negative or not finite.
    """
    array = real_array(f"{owner}: {label}", value)
    if array.shape not in {(), (len(rows),)}:
        raise ProblemError(
            f"{owner}: {label} has shape {array.shape}, expected a number or ({len(rows)},), "
            f"one for each of {', '.join(rows)}"
        )
    full = np.broadcast_to(array, (len(rows),)).copy()
    if not np.all(np.isfinite(full)) or np.any(full < 0):
        raise ProblemError(f"{owner}: {label} = {value}; expected finite numbers, none negative")
    return full

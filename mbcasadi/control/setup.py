"""The options of an inverse-dynamics controller, checked once."""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.control.actuation import Ranges
from mbcasadi.control.cones import MIN_SIDES
from mbcasadi.control.grips import Grip, grips_of
from mbcasadi.control.tasks import Gains, Slot, Task, gains_of
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.system import System

Array = NDArray[np.float64]

FALLBACKS = ("zero", "hold")
INTERNAL_FORCES = ("body", "none")
FORCE_AXES = ("n", "t1", "t2")


@dataclass(frozen=True)
class Setup:
    """A checked description of the controller; see `InverseDynamicsQP` for the options.

    Attributes:
        gains: one for each task.
        grips: the contacts by body.
        contact_names, equality_names: unique; together they name the mask.
        equality_sizes: rows of each equality constraint.
        slots: slices of the reference, in order.
        reference: slice of each slot's name.
        torque_slice: where `ref` holds actuator forces, or None.
        force_slice: where `ref` holds contact forces, or None.
        ranges: of controls and actuator forces.
        internal: whether bodies with several contacts get internal forces.
        fallback: "zero", "hold" or "law".
        law: the author's own fallback, or None.
    """

    system: System
    tasks: tuple[Task, ...]
    gains: tuple[Gains, ...]
    contacts: tuple[Contact, ...]
    grips: tuple[Grip, ...]
    contact_names: tuple[str, ...]
    equality_names: tuple[str, ...]
    equality_sizes: tuple[int, ...]
    slots: tuple[Slot, ...]
    reference: dict[str, slice]
    torque_slice: slice | None
    force_slice: slice | None
    ranges: Ranges
    internal: bool
    torque_weight: float
    internal_force_weight: float
    force_weight: float
    stabilisation: float
    contact_damping: float
    rank_tol: float
    tolerance: float
    period: float
    fallback: str
    law: ca.Function | None

    @property
    def nref(self) -> int:
        """Size of the reference."""
        return sum(slot.size for slot in self.slots)

    @property
    def mask_names(self) -> tuple[str, ...]:
        """Name of each entry of the mask."""
        return self.contact_names + self.equality_names


def require_tasks(tasks: Sequence[Task], system: System) -> tuple[Gains, ...]:
    """Return the gains of all tasks.

    Raises:
        ProblemError: no task, two with one name, or nothing with a positive weight.
    """
    if not tasks:
        raise ProblemError("no tasks; expected at least one, such as PostureTask()")
    names = [task.name for task in tasks]
    if len(set(names)) != len(names):
        raise ProblemError(f"tasks are named {', '.join(names)}; expected different names")
    gains = tuple(gains_of(task, system) for task in tasks)
    if not any(np.any(each.weight > 0) for each in gains):
        raise ProblemError("all task weights are zero; expected at least one that is positive")
    return gains


def require_contacts(contacts: Sequence[Contact], system: System) -> tuple[Grip, ...]:
    """Return the contacts by body.

    Raises:
        ProblemError: friction, sides, normal or force limits that define no cone.
    """
    for contact in contacts:
        label = f"contact {contact.frame!r}"
        normal = np.asarray(contact.normal, dtype=float)
        length = float(np.linalg.norm(normal)) if normal.shape == (3,) else 0.0
        if not np.isfinite(length) or length == 0:
            raise ProblemError(
                f"{label}: normal {contact.normal}; expected three numbers, not zero"
            )
        if not (np.isfinite(contact.friction) and contact.friction > 0):
            raise ProblemError(f"{label}: friction {contact.friction}; expected a positive number")
        if contact.sides < MIN_SIDES:
            raise ProblemError(f"{label}: {contact.sides} sides; expected at least {MIN_SIDES}")
        highest = np.inf if contact.max_force is None else contact.max_force
        if not 0 <= contact.min_force <= highest or not np.isfinite(contact.min_force):
            raise ProblemError(
                f"{label}: normal force from {contact.min_force} to {contact.max_force} N; "
                "expected 0 <= min_force <= max_force"
            )
    return grips_of(system, contacts)


def force_slot(contacts: Sequence[Contact], force_weight: float) -> Slot:
    """Return the slice of the reference that holds contact forces.

    Raises:
        ProblemError: no contacts, or no `force_weight`, without which the reference has no effect.
    """
    if not contacts or force_weight == 0:
        raise ProblemError(
            f"a reference of {len(contacts)} contact forces with force_weight = {force_weight}; "
            "expected contacts and a positive weight"
        )
    names = unique([contact.frame for contact in contacts])
    components = tuple(f"{name}.{axis}" for name in names for axis in FORCE_AXES)
    return Slot("force", components, ("N",) * len(components))


def require_ranges(
    system: System, ctrl_limits: ArrayLike | None, force_limits: ArrayLike | None
) -> Ranges:
    """Return the ranges of controls and actuator forces, the model's unless given.

    Raises:
        ShapeError: not (nu, 2), or NaN.
        ProblemError: a lower limit above its upper limit.
    """
    given = {"ctrl_limits": ctrl_limits, "force_limits": force_limits}
    model = {"ctrl_limits": system.limits.ctrl, "force_limits": system.limits.force}
    ranges = {}
    for label, limits in given.items():
        array = np.asarray(model[label] if limits is None else limits, dtype=float)
        if array.shape != (system.nu, 2) or np.any(np.isnan(array)):
            raise ShapeError(
                f"{label} has shape {array.shape}, expected ({system.nu}, 2), one (low, high) for "
                "each actuator, without NaN"
            )
        for name, (low, high) in zip(system.actuator_names, array, strict=True):
            if low > high:
                raise ProblemError(
                    f"{label} of actuator '{name}': {low} is above {high}; expected low <= high"
                )
        ranges[label] = array.copy()
    return Ranges(ranges["ctrl_limits"], ranges["force_limits"])


def require_numbers(**numbers: float) -> None:
    """Raise `ProblemError` for a number that is not finite and not negative."""
    for name, value in numbers.items():
        if not np.isfinite(value) or value < 0:
            raise ProblemError(f"{name} = {value}; expected a finite number, not negative")


def require_choice(name: str, value: str, valid: Sequence[str]) -> None:
    """Raise `ProblemError` unless an option has one of its values."""
    if value not in valid:
        listed = ", ".join(repr(each) for each in valid)
        raise ProblemError(f"{name} = {value!r}; expected one of {listed}")


def require_positive(**numbers: float) -> None:
    """Raise `ProblemError` for a number that is not finite and positive."""
    for name, value in numbers.items():
        if not np.isfinite(value) or value <= 0:
            raise ProblemError(f"{name} = {value}; expected a finite, positive number")


def require_law(law: ca.Function | None, sizes: dict[str, int], nu: int) -> None:
    """Raise `ProblemError` unless a fallback law takes (q, v, ref, mask) and returns u."""
    if law is None:
        return
    found = tuple(law.size1_in(i) * law.size2_in(i) for i in range(law.n_in()))
    wanted = tuple(sizes[name] for name in ("q", "v", "ref", "mask"))
    if found != wanted or law.n_out() < 1 or law.numel_out(0) != nu:
        raise ProblemError(
            f"fallback law {law}; expected (q[{wanted[0]}], v[{wanted[1]}], ref[{wanted[2]}], "
            f"mask[{wanted[3]}]) -> (u[{nu}])"
        )


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, repeated ones with a count: foot, then foot_2."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return tuple(result)


def equality_groups(system: System) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return name and number of rows of each equality constraint."""
    sizes = tuple(equality.size for equality in system.equalities)
    single = system.nc - sum(sizes)
    names = [equality.name for equality in system.equalities]
    return unique([*names, *system.constraint_names[system.nc - single :]]), sizes + (1,) * single


def lay_out(slots: Sequence[Slot]) -> dict[str, slice]:
    """Return the slice of each slot."""
    reference, first = {}, 0
    for slot in slots:
        reference[slot.name] = slice(first, first + slot.size)
        first += slot.size
    return reference


def require_system(system: System) -> None:
    """Raise for systems that inverse dynamics does not support."""
    if system.nu == 0:
        raise ProblemError(f"'{system.name}' has no actuators; expected at least one")
    if system.timed:
        raise ProblemError(
            f"'{system.name}' has constraints that depend on time; the controller has no clock. "
            "Make the moving quantity a task"
        )

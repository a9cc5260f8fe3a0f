"""Numbers of a controller that may change between ticks: entries of its input `tuning`.

What an option `tunable` names becomes an input, with the tasks' and contacts' values as defaults:

- "gains": `<task>.kp.<row>`, `<task>.kd.<row>`;
- "weights": `<task>.weight.<row>`;
- "friction": `<contact>.friction`;
- "forces": `<contact>.min_force`, `<contact>.max_force`, N;
- "normals": `<contact>.normal.x`, `.y`, `.z`, of any length from ½ on;
- "limits": of joints, actuator forces and distances, see `control/limits/`;
- "prices": `<limits>.price` and `<limits>.linear` of soft limits (`soft_limits.py`).

Everything else is a constant of the C, which is shorter and faster.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from mbcasadi.contacts.friction_cone import contact_axes
from mbcasadi.control.tasks.task import Gains, Task
from mbcasadi.description import Contact, TuningParameter
from mbcasadi.model import geometry
from mbcasadi.system import System

TUNABLE = ("gains", "weights", "friction", "forces", "normals", "limits", "prices")

LEAST_FRICTION = 1e-3
"""Least tuned coefficient: at zero a cone has no inside."""

NO_LIMIT = 1e9
"""N, a normal force beyond all loads."""

LEAST_NORMAL2 = 0.25
"""Squared length of a tuned normal from which it has a direction."""


@dataclass(frozen=True)
class ContactValues:
    """What of a contact may be tuned, as numbers or expressions.

    Attributes:
        axes: (3, 3) rows n, t1, t2 in world axes; of no use where the normal turns with geoms.
        friction: Coulomb coefficient mu.
        min_force, max_force: of the normal force, N; None for no row.
    """

    axes: ca.DM | ca.SX
    friction: float | ca.SX
    min_force: float | ca.SX
    max_force: float | ca.SX | None

    @property
    def has_range(self) -> bool:
        """Whether the normal force has a row of its own."""
        is_tuned = isinstance(self.min_force, ca.SX)
        return is_tuned or float(self.min_force) > 0 or self.max_force is not None


@dataclass(frozen=True)
class Tuned:
    """Gains of the tasks and values of the contacts at a tick.

    Attributes:
        gains: of each task.
        contacts: of each contact.
        valid: whether normals have a direction and force limits are in order.
    """

    gains: tuple[Gains, ...]
    contacts: tuple[ContactValues, ...]
    valid: ca.SX


def tuning_parameters(
    tunable: Sequence[str],
    system: System,
    tasks: Sequence[tuple[Task, Gains]],
    contacts: Sequence[tuple[str, Contact]],
) -> tuple[TuningParameter, ...]:
    """Return the entries of the input.

    Args:
        tunable: of `TUNABLE`.
        system: the mechanism.
        tasks: with their gains.
        contacts: with their names.
    """
    parameters: list[TuningParameter] = []
    for task, gains in tasks:
        for key in ("kp", "kd", "weight"):
            if ("weights" if key == "weight" else "gains") in tunable:
                parameters += _by_row(task, system, key, getattr(gains, key))
    for name, contact in contacts:
        parameters += _of_contact(name, contact, tunable)
    return tuple(parameters)


def _by_row(
    task: Task, system: System, key: str, values: Sequence[float]
) -> Iterator[TuningParameter]:
    unit = {"kp": "1/s²", "kd": "1/s", "weight": ""}[key]
    for row, value in zip(task.components(system), values, strict=True):
        yield TuningParameter(f"{task.name}.{key}.{row}", float(value), unit=unit)


def _of_contact(name: str, contact: Contact, tunable: Sequence[str]) -> Iterator[TuningParameter]:
    if "friction" in tunable:
        yield TuningParameter(f"{name}.friction", contact.friction, LEAST_FRICTION)
    if "forces" in tunable:
        highest = NO_LIMIT if contact.max_force is None else contact.max_force
        yield TuningParameter(f"{name}.min_force", contact.min_force, unit="N")
        yield TuningParameter(f"{name}.max_force", highest, unit="N")
    if "normals" in tunable and contact.geoms is None:
        normal = np.asarray(contact.normal, dtype=float)
        for axis, value in zip("xyz", normal / np.linalg.norm(normal), strict=True):
            yield TuningParameter(f"{name}.normal.{axis}", float(value), -np.inf)


def tuned_values(
    entries: Mapping[str, ca.SX],
    system: System,
    tasks: Sequence[tuple[Task, Gains]],
    contacts: Sequence[tuple[str, Contact]],
) -> Tuned:
    """Return gains and contacts, constant but for the entries.

    Args:
        entries: of the input `tuning`, by name.
        system: the mechanism.
        tasks: with their default gains.
        contacts: with their names.
    """
    valid = [ca.SX(1)]
    all_gains = []
    for task, gains in tasks:
        changes: dict[str, Any] = {}
        for key in ("kp", "kd", "weight"):
            names = [f"{task.name}.{key}.{row}" for row in task.components(system)]
            if names and names[0] in entries:
                changes[key] = ca.vertcat(*(entries[name] for name in names))
        all_gains.append(replace(gains, **changes))
    values = []
    for name, contact in contacts:
        axes: ca.DM | ca.SX = ca.DM(contact_axes(np.asarray(contact.normal, dtype=float)))
        if f"{name}.normal.x" in entries:
            normal = ca.vertcat(*(entries[f"{name}.normal.{axis}"] for axis in "xyz"))
            axes = geometry.axes_of_normal(normal)
            valid.append(ca.sumsqr(normal) >= LEAST_NORMAL2)
        value = ContactValues(
            axes=axes,
            friction=entries.get(f"{name}.friction", contact.friction),
            min_force=entries.get(f"{name}.min_force", contact.min_force),
            max_force=entries.get(f"{name}.max_force", contact.max_force),
        )
        if f"{name}.min_force" in entries:
            valid.append(entries[f"{name}.min_force"] <= entries[f"{name}.max_force"])
        values.append(value)
    return Tuned(tuple(all_gains), tuple(values), ca.mmin(ca.vertcat(*valid)))

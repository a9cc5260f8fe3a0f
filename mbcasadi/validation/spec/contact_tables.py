"""The `[[contact]]` and `[[loop_force]]` tables of a controller's TOML file."""

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.system import System, contacts_of
from mbcasadi.system.missing_ground import require_contact_name
from mbcasadi.validation.spec.tables import StrictTable
from mbcasadi.validation.spec.task_tables import FrameKind

Array = NDArray[np.float64]
Vector3 = tuple[float, float, float]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
DEFAULT_FRICTION = 0.7


class PointContact(StrictTable):
    """A point contact with its friction cone, with the world or with another body.

    With `kind = "contact"` the frame is a contact of the model's geometry, `FL on floor`, or all
    points of a pair, `sole on floor`; normal and friction are then the geometry's by default.
    `force` (n, t1, t2), N, is the reference of each, weighed by `force_weight`.
    """

    frame: str
    kind: FrameKind | Literal["contact"] = "site"
    normal: Vector3 = (0.0, 0.0, 1.0)
    friction: Positive = DEFAULT_FRICTION
    sides: Annotated[int, Field(ge=3, le=360)] = 8
    max_force: Positive | None = None
    min_force: NotNegative = 0.0
    cone: Literal["inner", "outer", "quadratic"] = "inner"
    other: str = ""
    other_kind: FrameKind = "body"
    adhesion: NotNegative = 0.0
    slides: bool = False
    force: Vector3 | None = None
    slide_speed: Positive = 0.01
    slide_task: str = ""


class LoopForce(StrictTable):
    """The force of an equality constraint in the cost, as `LoopForceWeights`.

    `weight` and `force`, N or N m, the reference, are one number for all rows or one for each.
    """

    constraint: str
    weight: Positive | tuple[NotNegative, ...]
    force: float | tuple[float, ...] | None = None


def contacts_of_table(table: PointContact, system: System, q0: Array) -> list[Contact]:
    """Return the contacts of a table.

    Args:
        table: of the file.
        system: the model.
        q0: (nq,) start, at which corners and rims are chosen.

    Raises:
        UnknownNameError: the geometry has no such contact; the message lists the valid names.
        ProblemError: a normal for a contact of the geometry, which has its own.
    """
    if table.kind != "contact":
        return [Contact(**table.model_dump(exclude={"force"}))]
    if table.other or table.adhesion:
        raise ProblemError(
            f"contact {table.frame!r}: other or adhesion for a contact of the geometry, which is "
            'between two geoms; expected kind = "site", "body" or "geom"'
        )
    if "normal" in table.model_fields_set:
        raise ProblemError(
            f"contact {table.frame!r}: normal = {table.normal}; expected none, as a contact of the "
            "geometry has the normal of its plane"
        )
    found = contacts_of(system, q=q0)
    pairs = [f"{contact.geom2} on {contact.geom1}" for contact in found]
    names = [*dict.fromkeys([*pairs, *(contact.name for contact in found)])]
    assert system.tree is not None  # `contacts_of` requires one
    require_contact_name(system.tree, table.frame, names)
    friction = table.friction if "friction" in table.model_fields_set else None
    return [
        replace(
            contact.as_contact(
                friction=friction,
                sides=table.sides,
                max_force=table.max_force,
                min_force=table.min_force,
                cone=table.cone,
            ),
            slides=table.slides,
            slide_speed=table.slide_speed,
            slide_task=table.slide_task,
        )
        for contact, pair in zip(found, pairs, strict=True)
        if table.frame in (contact.name, pair)
    ]

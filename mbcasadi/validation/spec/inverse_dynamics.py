"""Inverse dynamics as TOML: tasks, contacts, limits, parts, and the options of the controller."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi import control
from mbcasadi.annotations import hints_of, parts_of
from mbcasadi.contacts.friction_cone import CONES
from mbcasadi.control import InverseDynamicsQP, Task
from mbcasadi.control.inverse_dynamics.options import INTERNAL_FORCES
from mbcasadi.control.inverse_dynamics.parts.servos import SERVO_PLANTS
from mbcasadi.control.safe_output.safe_output import FALLBACKS
from mbcasadi.control.tick.tuning import TUNABLE
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.system import GeometryContact, System, contacts_of
from mbcasadi.system.cylinder_soles import on_rim
from mbcasadi.system.missing_ground import require_contact_name
from mbcasadi.validation.spec import plugins
from mbcasadi.validation.spec.common import (
    ControlLimits,
    MaskSwitch,
    Motion,
    Ranges,
    Spec,
    options_for,
    ranges_of,
)
from mbcasadi.validation.spec.controller_kind import Kind
from mbcasadi.validation.spec.experiment import Experiment
from mbcasadi.validation.spec.motion import mask_schedule, task_motion, time_function
from mbcasadi.validation.spec.signals import Component
from mbcasadi.validation.spec.tables import (
    TABLE,
    NotNegative,
    OneOf,
    Positive,
    Range,
    StrictTable,
    Table,
    by_type,
    fields_of,
    new_table,
)

Array = NDArray[np.float64]
Vector3 = tuple[float, float, float]
ZERO = (0.0, 0.0, 0.0)


class Moved(NamedTuple):
    """A task of the file, and the motion that is added to where it starts."""

    task: Task
    reference: dict[str, Component]

    @classmethod
    def of(
        cls, kind: Callable[..., Task], /, reference: Mapping[str, Component] = {}, **own: Any
    ) -> "Moved":
        """Return a task with its own options."""
        return cls(kind(**own), dict(reference))


AnyTask = Annotated[
    Moved,
    OneOf(
        by_type(control, Task, "Task"),
        make=Moved.of,
        plugins=(plugins.TASKS, Task),
        reference=(Motion, {}),
    ),
]
AnyPart = Annotated[control.Part, OneOf(by_type(control, control.Part))]
"""Any part of `mbcasadi.control`, by its name: `type = "half_space"` is a `HalfSpace`."""


class Touch(NamedTuple):
    """A contact of the file, and the reference (n, t1, t2) of its force, N.

    With `kind = "contact"` the frame is a contact of the model's geometry, `FL on floor`, or all
    points of a pair, `sole on floor`; normal and friction are then the geometry's by default.
    """

    options: dict[str, Any]
    force: Vector3 | None

    @classmethod
    def of(cls, force: Vector3 | None = None, **options: Any) -> "Touch":
        """Return a contact with the options of the file."""
        return cls(options, force)

    def contacts(self, system: System, q0: Array) -> list[Contact]:
        """Return the contacts; corners and rims of geoms are those at the start q0 (nq,).

        Raises:
            UnknownNameError: the geometry has no such contact; the message lists the valid names.
            ProblemError: a normal for a contact of the geometry, which has its own.
        """
        if self.options.get("kind") != "contact":
            return [Contact(**self.options)]
        options = {key: value for key, value in self.options.items() if key != "kind"}
        frame = options.pop("frame")
        if options.get("other") or options.get("adhesion"):
            raise ProblemError(
                f"contact {frame!r}: other or adhesion for a contact of the geometry, which is "
                'between two geoms; expected kind = "site", "body" or "geom"'
            )
        if "normal" in options:
            raise ProblemError(
                f"contact {frame!r}: normal = {options['normal']}; expected none, as a contact of "
                "the geometry has the normal of its plane"
            )
        found = _geometry(system, tuple(q0))
        of_rim = on_rim(found, frame)
        if of_rim is not None:
            found = [of_rim]  # of a capsule, or of a cylinder that is no sole at q0
        names = [*dict.fromkeys([*map(_pair, found), *(contact.name for contact in found)])]
        assert system.tree is not None  # `contacts_of` requires one
        require_contact_name(system.tree, frame, names)
        friction = options.pop("friction", None)
        return [
            replace(contact.as_contact(friction=friction), **options)
            for contact in found
            if frame in (contact.name, _pair(contact))
        ]


@lru_cache(maxsize=1)
def _geometry(system: System, q0: tuple[float, ...]) -> Sequence[GeometryContact]:
    """Return the contacts of a model, which all contacts of a file are among."""
    return contacts_of(system, q=q0)


def _pair(contact: GeometryContact) -> str:
    return f"{contact.geom2} on {contact.geom1}"


AnyContact = Annotated[
    Touch,
    Table(
        Touch.of,
        **fields_of(Contact, but=("place",), choices={"cone": CONES}),
        force=(Vector3 | None, Field(None, description="N, reference (n, t1, t2)")),
    ),
]


class LoopForce(StrictTable):
    """The force of an equality constraint in the cost, as `LoopForceWeights`.

    `weight` and `force`, N or N m, the reference, are one number for all rows or one for each.
    """

    constraint: str
    weight: Positive | tuple[NotNegative, ...]
    force: float | tuple[float, ...] | None = None


class LimitTables(ControlLimits):
    """Limits of controls and forces by the actuator's name, and of what moves."""

    force: Ranges = Field(default={})
    joint: Annotated[control.JointLimits, TABLE] | None = None
    distance: Annotated[control.DistanceLimits, TABLE] | None = None
    actuator: Annotated[control.ActuatorLimits, TABLE] | None = None
    soft: tuple[Annotated[control.SoftLimit, TABLE], ...] = ()
    loop: dict[str, Range | tuple[Range, ...]] = Field(default={})


OF_LIMITS = ("joint_limits", "distance_limits", "actuator_limits", "ctrl_limits", "force_limits")
OF_LOOPS = ("loop_force_limits", "loop_force_weights")
UNDER_OTHER_NAMES = ("system", "tasks", "contacts", "soft", "parts", "name", "period")
REFERENCES = ("force_reference", "torque_reference")
ELSEWHERE = (*OF_LIMITS, *OF_LOOPS, *UNDER_OTHER_NAMES, *REFERENCES)
"""Arguments of `InverseDynamicsQP` that a file has under other names, or that follow from it."""

CHOICES = {
    "fallback": FALLBACKS,
    "internal_forces": INTERNAL_FORCES,
    "servo_plant": SERVO_PLANTS,
    "tunable": TUNABLE,
}
ARGUMENTS = fields_of(InverseDynamicsQP, but=ELSEWHERE, choices=CHOICES)
OF_A_TABLE = {
    name
    for name, hint in hints_of(InverseDynamicsQP.__init__).items()
    if any(map(is_dataclass, parts_of(hint)))
}
OPTIONS = Table(dict, **{k: v for k, v in ARGUMENTS.items() if k not in OF_A_TABLE})
Options = Annotated[dict[str, Any], OPTIONS]


QP_TABLES: dict[str, Any] = {
    "task": (Annotated[tuple[AnyTask, ...], Field(min_length=1)], ...),
    "loop_force": (tuple[LoopForce, ...], ()),
    "limits": (LimitTables, LimitTables()),
    "part": (tuple[AnyPart, ...], ()),
    "options": (Options, Field(default={})),
} | {k: v for k, v in ARGUMENTS.items() if k in OF_A_TABLE}
"""What makes the law, contacts apart; with `[observer]`, `[sharing]` and so on."""

InverseDynamicsSpec = new_table(
    "InverseDynamicsSpec",
    Spec,
    **QP_TABLES,
    contact=(tuple[AnyContact, ...], ()),
    mask=(tuple[MaskSwitch, ...], ()),
)
"""Inverse dynamics of tasks as a QP, `InverseDynamicsQP`."""


def inverse_dynamics_qp(
    spec: Any, system: System, contacts: Sequence[Contact], *, force_reference: bool
) -> InverseDynamicsQP:
    """Return the law of the tables `QP_TABLES` with these contacts."""
    limits, tasks = spec.limits, [each.task for each in spec.task]
    weights = {each.constraint: each.weight for each in spec.loop_force}
    options = options_for(InverseDynamicsQP, spec, system) | spec.options
    return InverseDynamicsQP(
        system,
        tasks=tasks,
        contacts=contacts,
        force_reference=force_reference,
        force_limits=ranges_of(system, system.limits.force, limits.force) if limits.force else None,
        joint_limits=limits.joint,
        distance_limits=limits.distance,
        actuator_limits=limits.actuator,
        loop_force_limits=control.LoopForceLimits(dict(limits.loop)) if limits.loop else None,
        loop_force_weights=control.LoopForceWeights(weights) if weights else None,
        soft=limits.soft,
        parts=spec.part,
        **options,
    )


def build_inverse_dynamics(spec: Any, system: System, q0: Array) -> Experiment:
    """Return the controller and its motion; see `experiment_for_system`."""
    found = [(touch, touch.contacts(system, q0)) for touch in spec.contact]
    contacts = [contact for _, own in found for contact in own]
    has_force = any(each.force is not None for each in [*spec.contact, *spec.loop_force])
    controller = inverse_dynamics_qp(spec, system, contacts, force_reference=has_force)
    t = ca.SX.sym("t")
    ref, places = ca.SX.zeros(controller.nref), controller.reference_slices
    for task, components in spec.task:
        for quantity, value in task_motion(task, system, q0, components, t).items():
            ref[places[f"{task.name}.{quantity}"]] = value
    if "force" in places:
        desired = [touch.force or ZERO for touch, own in found for _ in own]
        ref[places["force"]] = ca.DM(np.array(desired).ravel())
    if "loop_force" in places:
        ref[places["loop_force"]] = ca.DM(loop_forces(spec.loop_force, controller))
    return Experiment(
        controller=controller,
        q0=q0,
        reference=time_function(ref, t),
        mask=mask_schedule(controller.mask_names, spec.mask),
    )


def loop_forces(tables: Sequence[LoopForce], controller: InverseDynamicsQP) -> Array:
    """Return the reference of each loop force that a controller weighs.

    Raises:
        ProblemError: as many numbers as the constraint has no rows.
    """
    names = controller.mask_names[len(controller.contacts) :]
    sizes, desired = dict(zip(names, controller.equality_sizes, strict=True)), {}
    for table in tables:
        force = np.asarray(0.0 if table.force is None else table.force)
        size = sizes[table.constraint]
        if force.shape not in {(), (size,)}:
            raise ProblemError(
                f"force of '{table.constraint}' = {force.tolist()}; expected one number, or {size}"
            )
        desired[table.constraint] = np.broadcast_to(force, (size,))
    loops = [each for each in controller.weighed_forces if each.owner[0] == "loop"]
    return np.array([desired[each.owner[1]][each.row] for each in loops])


KINDS = {"inverse_dynamics_qp": Kind(InverseDynamicsSpec, build_inverse_dynamics)}

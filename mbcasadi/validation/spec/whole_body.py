"""Whole-body MPC as TOML: a plan of joints and forces, and the inverse dynamics that follows it.

Keys at the top are the arguments of `whole_body_mpc`.
"""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi import control, mpc
from mbcasadi.control import Task
from mbcasadi.errors import ProblemError
from mbcasadi.mpc import whole_body_mpc
from mbcasadi.mpc.ocp.stage_part import StagePart
from mbcasadi.mpc.whole_body.whole_body_mpc import TICKS
from mbcasadi.system import System
from mbcasadi.validation.spec import plugins
from mbcasadi.validation.spec.common import Identifier, Spec
from mbcasadi.validation.spec.controller_kind import Kind
from mbcasadi.validation.spec.experiment import Experiment, Outer
from mbcasadi.validation.spec.inverse_dynamics import QP_TABLES, AnyContact, inverse_dynamics_qp
from mbcasadi.validation.spec.signals import Component, command_of
from mbcasadi.validation.spec.tables import (
    OneOf,
    Positive,
    StrictTable,
    by_type,
    fields_of,
    new_table,
)

Array = NDArray[np.float64]

STAGE_PARTS: dict[str, type] = {
    "cost": mpc.Cost,
    "actuator_force_cost": mpc.ActuatorForceCost,
    "stage_bounds": mpc.StageBounds,
    "contact_schedule": mpc.ContactSchedule,
    "joint_ranges": mpc.JointRanges,
}
"""Those that know no contacts; `whole_body_mpc` adds cones, landings and a disturbance itself."""

AnyStagePart = Annotated[
    StagePart | control.Part, OneOf(STAGE_PARTS | by_type(control, control.Part))
]
"""A part of an optimal control problem, by its name: `type = "joint_limits"` is `JointLimits`."""

AnyCostTask = Annotated[Task, OneOf(by_type(control, Task, "Task"), plugins=(plugins.TASKS, Task))]

LawBelow = new_table(
    "LawBelow",
    StrictTable,
    **QP_TABLES,
    name=(Identifier, "law"),
    period=(Annotated[Positive, Field(description="Sample time, s.")] | None, None),
)
"""The inverse dynamics that follows the plan, in place of the default one."""

ELSEWHERE = ("system", "period", "parts", "q0", "law", "tasks", "name")
ARGUMENTS = fields_of(whole_body_mpc, but=ELSEWHERE)

WholeBodySpec = new_table(
    "WholeBodySpec",
    Spec,
    period=(
        Annotated[Positive, Field(description="Of a plan, and length of an interval, s.")],
        ...,
    ),
    contact=(Annotated[tuple[AnyContact, ...], Field(min_length=1)], ...),
    task=(tuple[AnyCostTask, ...], ()),
    part=(tuple[AnyStagePart, ...], ()),
    law=(LawBelow | None, None),
    command=(
        Annotated[
            tuple[Component, ...],
            Field(
                min_length=3,
                description="Speed along x and y, m/s; turn, rad/s; heights of uneven ground, m.",
            ),
        ],
        (0.0, 0.0, 0.0),
    ),
    **ARGUMENTS,
)
"""A robot with a free base moves by MPC of all its joints."""


def build_whole_body(spec: Any, system: System, q0: Array) -> Experiment:
    """Return the inverse dynamics with the plan above it; the robot stands at q0.

    Raises:
        ProblemError, UnknownNameError: as `whole_body_mpc`; a command of another size.
    """
    for touch in spec.contact:
        if touch.force is not None:
            raise ProblemError(
                f"contact {touch.options['frame']!r}: force = {list(touch.force)}; expected none, "
                "as the plan has the forces"
            )
    feet = [contact for touch in spec.contact for contact in touch.contacts(system, q0)]
    law = None
    if spec.law is not None:
        period = spec.law.period or spec.period / TICKS
        table = spec.law.model_copy(update={"period": period})
        law = inverse_dynamics_qp(table, system, feet, force_reference=True)
    own = {name: value for name, value in spec.given.items() if name in ARGUMENTS}
    horizon = own.pop("horizon")
    parts = [*feet, *spec.task, *spec.part]
    whole = whole_body_mpc(
        system, horizon, spec.period, parts, q0=q0, law=law, name=spec.name, **own
    )
    size = whole.references.numel_in("command")
    if len(spec.command) != size:
        raise ProblemError(f"command has {len(spec.command)} entries; expected {size}")
    outer = Outer(whole.plan, whole, command_of(spec.command))
    return Experiment(whole.law, q0, None, outer=outer)


KINDS = {"whole_body_mpc": Kind(WholeBodySpec, build_whole_body)}

"""Walking as TOML: inverse dynamics, an MPC of a rigid body above it, and the walking planner."""

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi.control import FrameTask, InverseDynamicsQP
from mbcasadi.mpc import (
    Gait,
    SwingParameters,
    single_rigid_body,
    single_rigid_body_mpc,
    walking_planner,
)
from mbcasadi.system import System
from mbcasadi.validation.spec.controller_kind import Kind
from mbcasadi.validation.spec.experiment import Experiment, Outer
from mbcasadi.validation.spec.inverse_dynamics import (
    OPTIONS,
    ZERO,
    AnyContact,
    InverseDynamicsSpec,
    Moved,
    build_inverse_dynamics,
)
from mbcasadi.validation.spec.signals import Component, command_of
from mbcasadi.validation.spec.tables import (
    TABLE,
    NotNegative,
    Positive,
    StrictTable,
    Table,
    fields_of,
    new_table,
)

Array = NDArray[np.float64]
PITCH_AND_HEIGHT = (50.0, 50.0, 50.0, 100.0, 100.0, 300.0, 0.2, 0.2, 0.5, 2.0, 2.0, 2.0)
"""Default weights of rpy, p, ω, v of the MPC."""

Gain = float | tuple[float, ...]

DUTY, KP = 0.55, 400.0  # share of a stride on the ground; 1/s², of the feet's tasks
GAIT = fields_of(Gait) | {"duty": (float, Field(DUTY, description="share on the ground"))}
FEET = fields_of(FrameTask, ("kp", "kd", "weight")) | {"kp": (Gain, Field(KP, description="1/s²"))}


def _gait(**options: Any) -> Gait:
    return Gait(**({"duty": DUTY} | options))


class BodyMpc(StrictTable):
    """The MPC of the ground's forces, as `single_rigid_body_mpc`."""

    period: Annotated[Positive, Field(description="s, a multiple of the law's")] = 0.03
    horizon: Annotated[int, Field(ge=1)] = 10
    Q: Annotated[
        tuple[NotNegative, ...],
        Field(min_length=12, max_length=12, description="of rpy, p, ω, v"),
    ] = PITCH_AND_HEIGHT
    rho: Annotated[Positive, Field(description="of forces, 1/N²")] = 1e-5
    delay: Annotated[int, Field(ge=0, description="of its own ticks")] = 1


WalkingSpec = new_table(
    "WalkingSpec",
    InverseDynamicsSpec,
    contact=(Annotated[tuple[AnyContact, ...], Field(min_length=1)], ...),
    trunk=(Annotated[str, Field(description="Name of the trunk's task.")], "trunk"),
    command=(
        Annotated[
            tuple[Component, Component, Component],
            Field(description="Speed along x and y, m/s; turn, rad/s."),
        ],
        (0.0, 0.0, 0.0),
    ),
    gait=(Annotated[Gait, Table(_gait, **GAIT)], ...),
    mpc=(BodyMpc, BodyMpc()),
    swing=(Annotated[SwingParameters, TABLE], SwingParameters()),
    feet=(Annotated[dict[str, Any], Table(dict, **FEET)], {}),
    options=(Annotated[dict[str, Any], OPTIONS], {"force_weight": 1e-3, "contact_damping": 20.0}),
)
"""A legged robot walks; `task` has that of the trunk, tasks of the feet are added."""


def build_walking(spec: Any, system: System, q0: Array) -> Experiment:
    """Return the inverse dynamics with the laws above it.

    Raises:
        ProblemError, UnknownNameError: as `single_rigid_body` and `walking_planner`.
    """
    made = build_inverse_dynamics(_with_feet(spec), system, q0)
    law, table = made.controller, spec.mpc
    assert isinstance(law, InverseDynamicsQP)
    body = single_rigid_body(system, law.contacts, q0)
    mpc = single_rigid_body_mpc(
        body, table.horizon, table.Q, table.rho, period=table.period, name=f"{spec.name}_mpc"
    )
    planner = walking_planner(
        law,
        mpc,
        spec.gait,
        q0,
        trunk=spec.trunk,
        stepping=spec.swing,
        delay=table.delay,
        name=f"{spec.name}_planner",
    )
    outer = Outer(mpc, planner, command_of(spec.command))
    return replace(made, reference=None, mask=None, outer=outer)


def _with_feet(spec: Any) -> Any:
    """Return the spec with a task for each foot, and contacts whose forces have a reference."""
    gains = {"kp": KP} | spec.feet
    tasks = [
        Moved.of(FrameTask, frame=touch.options["frame"], kind=kind, orientation="", **gains)
        for touch in spec.contact
        if (kind := touch.options.get("kind", "site")) != "contact"
    ]
    feet = tuple(touch._replace(force=touch.force or ZERO) for touch in spec.contact)
    return spec.model_copy(update={"task": (*spec.task, *tasks), "contact": feet})


KINDS = {"walking": Kind(WalkingSpec, build_walking)}

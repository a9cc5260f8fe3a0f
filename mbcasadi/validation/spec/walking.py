"""Walking as TOML: inverse dynamics, an MPC of a rigid body above it, and the walking planner."""

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi.control import InverseDynamicsQP
from mbcasadi.mpc import (
    Gait,
    SwingParameters,
    single_rigid_body,
    single_rigid_body_mpc,
    walking_planner,
)
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.validation.spec.contact_tables import NotNegative, PointContact, Positive
from mbcasadi.validation.spec.experiment import Experiment, Outer
from mbcasadi.validation.spec.inverse_dynamics import build_inverse_dynamics
from mbcasadi.validation.spec.schema import InverseDynamicsSpec, Options
from mbcasadi.validation.spec.tables import TABLE, StrictTable
from mbcasadi.validation.spec.task_tables import FramePose, Gain

Array = NDArray[np.float64]
PITCH_AND_HEIGHT = (50.0, 50.0, 50.0, 100.0, 100.0, 300.0, 0.2, 0.2, 0.5, 2.0, 2.0, 2.0)
"""Default weights of rpy, p, ω, v of the MPC."""


class GaitTable(StrictTable):
    """When feet are on the ground, as `Gait`."""

    period: Annotated[Positive, Field(description="of a stride, s")]
    duty: Annotated[float, Field(gt=0, le=1, description="share of it on the ground")] = 0.55
    offsets: Annotated[
        tuple[float, ...], Field(description="of each foot, in the order of the contacts")
    ]
    start: Annotated[NotNegative, Field(description="All feet stand before, s.")] = 0.0


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


class Feet(StrictTable):
    """The tasks of the feet, one for each contact."""

    kp: Annotated[Gain, Field(description="1/s²")] = 400.0
    kd: Gain | None = None
    weight: Gain = 1.0


@summarised
class WalkingSpec(InverseDynamicsSpec):
    """A legged robot walks; `task` has that of the trunk, tasks of the feet are added."""

    type: Literal["walking"]  # type: ignore[assignment]
    contact: Annotated[tuple[PointContact, ...], Field(min_length=1)]
    trunk: Annotated[str, Field(description="Name of the trunk's task.")] = "trunk"
    command: Annotated[
        tuple[float, float, float], Field(description="Speed along x and y, m/s; turn, rad/s.")
    ] = (0.0, 0.0, 0.0)
    gait: GaitTable
    mpc: BodyMpc = BodyMpc()
    swing: Annotated[SwingParameters, TABLE] = SwingParameters()
    feet: Feet = Feet()
    options: Options = Options(force_weight=1e-3, contact_damping=20.0)


def build_walking(spec: WalkingSpec, system: System, q0: Array) -> Experiment:
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
        Gait(**spec.gait.model_dump()),
        q0,
        trunk=spec.trunk,
        stepping=spec.swing,
        delay=table.delay,
        name=f"{spec.name}_planner",
    )
    return replace(made, reference=None, mask=None, outer=Outer(mpc, planner, spec.command))


def _with_feet(spec: WalkingSpec) -> WalkingSpec:
    """Return the spec with a task for each foot, and contacts whose forces have a reference."""
    tasks = tuple(
        FramePose(type="frame", frame=contact.frame, kind=contact.kind, orientation="", **gains)
        for contact in spec.contact
        if contact.kind != "contact"
        for gains in [spec.feet.model_dump()]
    )
    feet = tuple(
        contact.model_copy(update={"force": contact.force or (0.0, 0.0, 0.0)})
        for contact in spec.contact
    )
    return spec.model_copy(update={"task": (*spec.task, *tasks), "contact": feet})

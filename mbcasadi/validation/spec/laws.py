"""The control laws of `control.laws` as TOML: one table for each way to say what they track."""

import inspect
from typing import Annotated, Any, Literal

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi.control import laws
from mbcasadi.control.laws import ForceGains, Law
from mbcasadi.shapes import require_name
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.validation.spec.common import ControlLimits, Motion, Spec
from mbcasadi.validation.spec.contact_tables import NotNegative, Positive
from mbcasadi.validation.spec.experiment import Experiment, override_limits
from mbcasadi.validation.spec.motion import task_motion, time_function
from mbcasadi.validation.spec.slot_motion import slot_motion
from mbcasadi.validation.spec.tables import TABLE, StrictTable
from mbcasadi.validation.spec.task_tables import AnyTask, Gain, make_task

Array = NDArray[np.float64]


class WithinLimits(StrictTable):
    """The nearest control within the limits, as `within_limits`."""

    torque_weight: Positive = 1e-6
    kinetic_weight: Positive | None = None


class LawSpec(Spec):
    """What all laws have."""

    limits: Annotated[ControlLimits, Field(default_factory=ControlLimits)]
    within_limits: WithinLimits | None = None
    rank_tol: Positive | None = None


@summarised
class TaskLaw(LawSpec):
    """A law of one task."""

    type: Literal[
        "computed_torque", "qr_inverse_dynamics", "gravity_compensated_pd", "impedance_control"
    ]
    task: AnyTask
    stiffness: Annotated[
        Gain | None, Field(description="N/m or N m/rad; of the last two types")
    ] = None
    damping: Annotated[
        Gain | None,
        Field(description="N s/m or N m s/rad; of the first two types 1/s, of free motions"),
    ] = None
    inertia: Annotated[Gain | None, Field(description="kg or kg m², of impedance_control")] = None
    joint_damping: Annotated[NotNegative | None, Field(description="1/s")] = None


class CoordinateLaw(LawSpec):
    """What laws of independent coordinates have; chosen by the law unless named."""

    joints: tuple[str, ...] | None = None
    kp: Gain | None = None
    kd: Gain | None = None
    reference: Motion


@summarised
class MotionLaw(CoordinateLaw):
    """A law that tracks independent coordinates."""

    type: Literal["projected_inverse_dynamics", "passive_joint_control", "quasi_velocity_tracking"]
    damping: Annotated[NotNegative | None, Field(description="1/s, of free motions")] = None
    least: Literal["quasi_force", "force"] | None = None
    allow_free: bool | None = None


@summarised
class ForceLaw(CoordinateLaw):
    """A law that tracks independent coordinates and constraint forces."""

    type: Literal["hybrid_motion_force_control", "quasi_velocity_force"]
    rows: tuple[str, ...] | None = None
    force: Annotated[ForceGains, TABLE] = ForceGains()
    damping: Annotated[NotNegative | None, Field(description="1/s, of free motions")] = None
    least: Literal["quasi_force", "force"] | None = None
    allow_free: bool | None = None


@summarised
class ConstraintForceLaw(LawSpec):
    """`constraint_force_control`: forces of constraints alone."""

    type: Literal["constraint_force_control"]
    rows: tuple[str, ...] | None = None
    force: Annotated[ForceGains, TABLE] = ForceGains()
    reference: Motion


@summarised
class DependentLaw(LawSpec):
    """A law that tracks all coordinates, dependent ones too."""

    type: Literal["dependent_tracking", "dependent_regulation"]
    kp: Gain | None = None
    kd: Gain
    sigma: Positive | None = None
    rest_speed: Positive | None = None
    virtual_mass: Positive | None = None
    reference: Motion


@summarised
class ServoLaw(LawSpec):
    """`servo_control` of joints whose positions are prescribed."""

    type: Literal["servo_control"]
    joints: Annotated[tuple[str, ...], Field(min_length=1)]
    form: Literal["least_norm", "figures"] = "least_norm"
    reference: Motion


OWN = {"limits", "within_limits", "start", "validation", "type", "reference", "task", "joints"}
"""Fields of the tables that are no options of the laws."""


def build_law(spec: LawSpec, system: System, q0: Array) -> Experiment:
    """Return one of the laws with its motion.

    Raises:
        UnknownNameError: no such joint, row or entry of the reference.
        ProblemError: an option that the type does not have, or what the law refuses.
    """
    if isinstance(spec, TaskLaw):
        task = make_task(spec.task)
        law = _finished(spec, getattr(laws, spec.type)(system, task, **_options(spec, system)))
        t = ca.SX.sym("t")
        ref = ca.SX(ca.DM(law.reference_at(q0)))
        components = {str(key): terms for key, terms in spec.task.reference.items()}
        for quantity, value in task_motion(task, system, q0, components, t).items():
            name = f"{task.name}.{quantity}"
            if name in law.reference_slices:
                ref[law.reference_slices[name]] = value
        return Experiment(law, q0, time_function(ref, t))
    law = _finished(spec, _make(spec, system))
    if isinstance(spec, ServoLaw):
        assert system.tree is not None
        places = {joint.name: joint.qpos for joint in system.tree.joints}
        start = law.reference(y=[q0[places[name]] for name in spec.joints])
    else:
        start = law.reference_at(q0) if law.hold is not None else law.reference()
    components = dict(getattr(spec, "reference", {}))
    return Experiment(law, q0, slot_motion(law.slots, start, components, system))


def _make(spec: LawSpec, system: System) -> Law:
    """Return a law of coordinates, of forces, or of servo rows."""
    options = _options(spec, system)
    if isinstance(spec, ServoLaw):
        return laws.servo_control(system, _servo_rows(spec, system), **options)
    if isinstance(spec, (ForceLaw, ConstraintForceLaw)):
        options["gains"] = spec.force
        del options["force"]
    if isinstance(spec, CoordinateLaw) and spec.joints is not None:
        options["coordinates"] = laws.joint_coordinates(system, spec.joints)
    law: Law = getattr(laws, spec.type)(system, **options)
    return law


def _servo_rows(spec: ServoLaw, system: System) -> laws.ServoRows:
    """Return the rows `q_joint = y` of named joints."""
    theta = laws.joint_coordinates(system, spec.joints).theta
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    y = ca.vertcat(*(ca.SX.sym(name) for name in spec.joints))
    return laws.servo_rows(system, q, v, phi=theta(q) - y, y=y, names=spec.joints)


def _options(spec: LawSpec, system: System) -> dict[str, Any]:
    """Return the options of a law that the file gives, the law's own defaults elsewhere.

    Raises:
        UnknownNameError: the type has no such option.
    """
    options = spec.model_dump(exclude=OWN, exclude_none=True)
    known = [*inspect.signature(getattr(laws, spec.type)).parameters]
    for option in options:
        require_name(f"option of {spec.type}", option, known, also=("force",))
    options["ctrl_limits"] = override_limits(system, system.limits.ctrl, spec.limits.ctrl)
    return options


def _finished(spec: LawSpec, law: Law) -> Law:
    """Return the law, within its limits where the file says so."""
    if spec.within_limits is None:
        return law
    return laws.within_limits(law, **spec.within_limits.model_dump(exclude_none=True))

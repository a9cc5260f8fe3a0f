"""The control laws of `control.laws` as TOML: their signatures are the tables."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi.control import laws
from mbcasadi.control.laws import DryFriction, ForceGains, Law, LawOptions
from mbcasadi.control.laws.quasi_velocity_motion import LEAST
from mbcasadi.control.laws.servo import FORMS
from mbcasadi.errors import ProblemError
from mbcasadi.system import System
from mbcasadi.validation.spec.common import ControlLimits, Motion, Spec, options_for
from mbcasadi.validation.spec.controller_kind import Kind
from mbcasadi.validation.spec.experiment import Experiment
from mbcasadi.validation.spec.inverse_dynamics import AnyTask
from mbcasadi.validation.spec.motion import slot_motion, task_motion, time_function
from mbcasadi.validation.spec.tables import Names, Table, fields_of, new_table

Array = NDArray[np.float64]
LAWS = (
    "computed_torque",
    "qr_inverse_dynamics",
    "gravity_compensated_pd",
    "impedance_control",
    "projected_inverse_dynamics",
    "passive_joint_control",
    "quasi_velocity_tracking",
    "hybrid_motion_force_control",
    "quasi_velocity_force",
    "constraint_force_control",
    "dependent_tracking",
    "dependent_regulation",
    "servo_control",
)
LOOP = fields_of(ForceGains, but=("rows",))
KEYS: dict[str, tuple[str, Any]] = {
    "task": ("task", (AnyTask, ...)),
    "coordinates": ("joints", (Names | None, None)),  # chosen by the law unless named
    "gains": ("force", (Annotated[ForceGains, Table(**LOOP)], ForceGains())),
    "servo": ("joints", (Annotated[Names, Field(min_length=1)], ...)),
}
"""Arguments that a file has in its own way: the key, with its type and default."""

FLAT: dict[str, dict[str, Any]] = {
    "options": fields_of(LawOptions, ("rank_tol",)),  # the others are keys of all controllers
    "friction": fields_of(DryFriction),
    "gains": fields_of(ForceGains, ("rows",)),
}
"""Arguments that are records, and their fields that are keys of the law's own table."""

OTHER = (*KEYS, *FLAT, "system")
OF_ALL = ("name", "period")
"""Keys of all files that a function may take as well."""

WITHIN = fields_of(laws.within_limits, ("torque_weight", "kinetic_weight"))


class LawSpec(Spec):
    """What all laws have."""

    limits: ControlLimits = ControlLimits()
    within_limits: Annotated[dict[str, Any], Table(dict, **WITHIN)] | None = None


def table_of_law(kind: str, law: Callable[..., Law] | None = None) -> type[Spec]:
    """Return the table of a law, one of ours by default: its arguments, and what it tracks."""
    law = law or getattr(laws, kind)
    own = dict(KEYS[name] for name in inspect.signature(law).parameters if name in KEYS)
    if "task" not in own:
        own["reference"] = (Motion, {})
    own |= fields_of(law, but=(*OTHER, *OF_ALL), choices={"least": LEAST, "form": FORMS})
    for name in FLAT.keys() & inspect.signature(law).parameters:
        own |= FLAT[name]
    return new_table(kind, LawSpec, **own)


def build_law(
    spec: Any, system: System, q0: Array, make: Callable[..., Law] | None = None
) -> Experiment:
    """Return one of the laws with its motion; `make` is the function of a law that is not ours.

    Raises:
        UnknownNameError: no such joint, row or entry of the reference.
        ProblemError: what the law refuses.
    """
    law = _law(spec, system, make or getattr(laws, spec.type))
    if hasattr(spec, "task"):
        t = ca.SX.sym("t")
        ref = ca.SX(ca.DM(law.reference_at(q0)))
        task, components = spec.task
        for quantity, value in task_motion(task, system, q0, components, t).items():
            name = f"{task.name}.{quantity}"
            if name in law.reference_slices:
                ref[law.reference_slices[name]] = value
        return Experiment(law, q0, time_function(ref, t))
    if spec.type == "servo_control":
        assert system.tree is not None
        places = {joint.name: joint.qpos for joint in system.tree.joints}
        start = law.reference(y=[q0[places[name]] for name in spec.joints])
    else:
        start = law.reference_at(q0) if law.hold is not None else law.reference()
    return Experiment(law, q0, slot_motion(law.slots, start, spec.reference, system))


def _law(spec: Any, system: System, make: Callable[..., Law]) -> Law:
    """Return the law, within its limits where the file says so.

    Raises:
        ProblemError: what was made is no law.
    """
    takes = inspect.signature(make).parameters
    own: dict[str, Any] = {}
    if "task" in takes:
        own["task"] = spec.task.task
    if "gains" in takes:
        own["gains"] = replace(spec.force, rows=spec.rows)
    if "friction" in takes:
        own["friction"] = DryFriction(
            **{k: spec.given[k] for k in FLAT["friction"] if k in spec.given}
        )
    if "coordinates" in takes and spec.joints is not None:
        own["coordinates"] = laws.joint_coordinates(system, spec.joints)
    if "servo" in takes:
        own["servo"] = _servo_rows(spec.joints, system)
    law = make(system, **options_for(make, spec, system, **own))
    if not isinstance(law, Law):
        raise ProblemError(f"{spec.type!r} returned {type(law).__name__}; expected a laws.Law")
    return law if spec.within_limits is None else laws.within_limits(law, **spec.within_limits)


def _servo_rows(joints: Names, system: System) -> laws.ServoRows:
    """Return the rows `q_joint = y` of named joints."""
    theta = laws.joint_coordinates(system, joints).theta
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    y = ca.vertcat(*(ca.SX.sym(name) for name in joints))
    return laws.servo_rows(system, q, v, phi=theta(q) - y, y=y, names=joints)


KINDS = {name: Kind(table_of_law(name), build_law) for name in LAWS}

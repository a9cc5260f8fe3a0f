"""From the tables of an inverse-dynamics QP to the controller."""

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control import InverseDynamicsQP, LoopForceLimits, LoopForceWeights
from mbcasadi.errors import ProblemError
from mbcasadi.system import System
from mbcasadi.validation.spec.contact_tables import LoopForce, contacts_of_table
from mbcasadi.validation.spec.experiment import Experiment, override_limits
from mbcasadi.validation.spec.motion import mask_schedule, task_motion, time_function
from mbcasadi.validation.spec.schema import InverseDynamicsSpec
from mbcasadi.validation.spec.signals import Component
from mbcasadi.validation.spec.task_tables import make_task

Array = NDArray[np.float64]


def build_inverse_dynamics(spec: InverseDynamicsSpec, system: System, q0: Array) -> Experiment:
    """Return the controller and its motion; see `experiment_for_system`."""
    tasks = [make_task(table) for table in spec.task]
    found = [(table, contacts_of_table(table, system, q0)) for table in spec.contact]
    desired = [(table.force or (0.0, 0.0, 0.0)) for table, own in found for _ in own]
    controller = InverseDynamicsQP(
        system,
        tasks=tasks,
        contacts=[contact for _, own in found for contact in own],
        force_reference=any(table.force is not None for table in spec.contact)
        or any(table.force is not None for table in spec.loop_force),
        period=spec.period,
        name=spec.name,
        ctrl_limits=override_limits(system, system.limits.ctrl, spec.limits.ctrl),
        force_limits=override_limits(system, system.limits.force, spec.limits.force)
        if spec.limits.force
        else None,
        observer=spec.observer,
        friction_loss=spec.friction_loss,
        rigid_springs=spec.rigid_springs,
        load_ramp=spec.load_ramp,
        force_feedback=spec.force_feedback,
        joint_limits=spec.limits.joint,
        distance_limits=spec.limits.distance,
        loop_force_limits=LoopForceLimits(dict(spec.limits.loop)) if spec.limits.loop else None,
        loop_force_weights=LoopForceWeights({x.constraint: x.weight for x in spec.loop_force})
        if spec.loop_force
        else None,
        sharing=spec.sharing,
        soft=spec.limits.soft,
        actuator_limits=spec.limits.actuator,
        parts=spec.part,
        **spec.options.model_dump(exclude_none=True),
    )
    t = ca.SX.sym("t")
    ref = ca.SX.zeros(controller.nref)
    for table, task in zip(spec.task, tasks, strict=True):
        components: dict[str, Component] = {str(k): terms for k, terms in table.reference.items()}
        motion = task_motion(task, system, q0, components, t)
        for quantity, value in motion.items():
            ref[controller.reference_slices[f"{task.name}.{quantity}"]] = value
    if "force" in controller.reference_slices:
        ref[controller.reference_slices["force"]] = ca.DM(np.array(desired).ravel())
    if "loop_force" in controller.reference_slices:
        ref[controller.reference_slices["loop_force"]] = ca.DM(
            loop_forces(spec.loop_force, controller)
        )
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

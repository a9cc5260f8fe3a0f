"""From a spec and a model to a controller and the motion that it is asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.shapes import column, require_name
from mbcasadi.system import System, read_mjcf
from mbcasadi.validation.spec.motion import mask_schedule, sampled, task_motion
from mbcasadi.validation.spec.schema import FramePose, Posture, Range, Spec, Start
from mbcasadi.validation.spec.signals import Component

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Experiment:
    """A controller and what it is asked to do.

    Attributes:
        controller: built for the model.
        q0: (nq,) start.
        reference: (t) → (nref,).
        mask: (t) → (nmask,), or None where nothing is switched.
    """

    controller: InverseDynamicsQP
    q0: Array
    reference: Callable[[float], Array]
    mask: Callable[[float], Array] | None


def experiment(spec: Spec, model: Path) -> Experiment:
    """Build the controller of a spec for a model, from a start that meets its constraints.

    Raises:
        ModelError: the model cannot be read.
        SimulationError: no closed state is near the start.
        UnknownNameError, ProblemError: see `build`.
    """
    system = read_mjcf(model)
    plant = Plant(model)
    plant.reset(start_pose(spec.start, system))
    return build(spec, system, plant.q)


def build(spec: Spec, system: System, q0: Array) -> Experiment:
    """Build the controller of a spec for a system that was read from a model.

    Args:
        spec: the controller and its motion.
        system: the model.
        q0: (nq,) start, on the constraints' manifold.

    Raises:
        UnknownNameError: the model lacks a frame, joint, actuator, key frame or mask entry.
        ProblemError: the problem contradicts itself.
    """
    tasks = [task_of(given) for given in spec.task]
    controller = InverseDynamicsQP(
        system,
        tasks=tasks,
        contacts=[Contact(**contact.model_dump()) for contact in spec.contact],
        period=spec.period,
        name=spec.name,
        ctrl_limits=limits_of(system, system.limits.ctrl, spec.limits.ctrl),
        force_limits=limits_of(system, system.limits.force, spec.limits.force),
        **spec.options.model_dump(exclude_none=True),
    )
    t = ca.SX.sym("t")
    ref = ca.SX.zeros(controller.nref)
    for given, task in zip(spec.task, tasks, strict=True):
        wanted: dict[str, Component] = {str(key): terms for key, terms in given.reference.items()}
        motion = task_motion(task, system, q0, wanted, t)
        for quantity, value in motion.items():
            ref[controller.reference[f"{task.name}.{quantity}"]] = value
    return Experiment(
        controller=controller,
        q0=q0,
        reference=sampled(ref, t),
        mask=mask_schedule(controller.mask_names, spec.mask),
    )


def start_pose(start: Start, system: System) -> Array:
    """Return the configuration at the start.

    Raises:
        ProblemError: both a key frame and q are given.
        UnknownNameError: the model has no such key frame.
        ShapeError: q has another size.
    """
    assert system.tree is not None  # `read_mjcf` always gives one
    if start.keyframe is not None and start.q is not None:
        raise ProblemError("start: give keyframe or q, not both")
    if start.q is not None:
        return column("start.q", start.q, system.nq)
    if start.keyframe is not None:
        require_name("key frame", start.keyframe, list(system.tree.keyframes))
        return np.array(system.tree.keyframes[start.keyframe], dtype=float)
    return np.array(system.tree.q0, dtype=float)


def task_of(given: Posture | FramePose) -> PostureTask | FrameTask:
    """Return the task that a table describes."""
    fields = given.model_dump(exclude={"type", "reference"})
    return PostureTask(**fields) if isinstance(given, Posture) else FrameTask(**fields)


def limits_of(system: System, own: Array, given: dict[str, Range]) -> Array:
    """Return the model's limits (nu, 2), those that are given replaced.

    Raises:
        UnknownNameError: the model has no such actuator.
    """
    limits = np.array(own, dtype=float)
    for name, ends in given.items():
        require_name("actuator", name, system.actuator_names)
        limits[system.actuator_names.index(name)] = ends
    return limits

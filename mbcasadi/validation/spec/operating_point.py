"""What regulators and linear MPC share: the equilibrium, and weights of coordinates by name."""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mbcasadi.control import ControlLaw
from mbcasadi.control.regulators import Linearization, equilibrium, linearize
from mbcasadi.shapes import column, require_name
from mbcasadi.system import System
from mbcasadi.system.coordinates import rate_names
from mbcasadi.validation.spec.common import ControlLimits, Motion, Spec, Start
from mbcasadi.validation.spec.contact_tables import NotNegative
from mbcasadi.validation.spec.experiment import Experiment, start_configuration
from mbcasadi.validation.spec.slot_motion import slot_motion
from mbcasadi.validation.spec.tables import StrictTable

Array = NDArray[np.float64]
Weights = NotNegative | tuple[NotNegative, ...] | dict[str, NotNegative]


class StateWeight(StrictTable):
    """Weights of deviations: one number, one for each of v, or by name, zero elsewhere."""

    position: Annotated[Weights, Field(description="of δq, 1/rad² or 1/m²")] = 1.0
    velocity: Annotated[Weights, Field(description="of δv")] = 0.1


class Equilibrium(Start):
    """Where the model is linearised: the pose that can be held at rest, nearest to this one.

    By default that is the one nearest to the start.
    """

    held: Annotated[tuple[str, ...], Field(description="Coordinates that keep their value.")] = ()


class LinearSpec(Spec):
    """What controllers have that are made near an equilibrium."""

    equilibrium: Equilibrium = Equilibrium()
    limits: Annotated[ControlLimits, Field(default_factory=ControlLimits)]
    reference: Motion


def linear_system(spec: LinearSpec, system: System, q0: Array) -> Linearization:
    """Return the linear system at the equilibrium nearest to the start."""
    near = spec.equilibrium
    pose = q0 if near.keyframe is None and near.q is None else start_configuration(near, system)
    return linearize(system, equilibrium(system, pose, held=near.held))


def start_of_run(spec: LinearSpec, linear: Linearization, q0: Array) -> Array:
    """Return the start of the file, or the equilibrium where it has none."""
    return linear.q if spec.start == Start() else q0


def state_weight(weight: StateWeight, system: System) -> Array:
    """Return (2 nv,) weights of (δq, δv).

    Raises:
        UnknownNameError: no such coordinate.
        ShapeError: not one number for each.
    """
    parts = [_weights(label, value, system) for label, value in weight]
    return np.concatenate(parts)


def _weights(label: str, value: Weights, system: System) -> Array:
    names = rate_names(system)
    if isinstance(value, dict):
        for name in value:
            require_name("coordinate", name, names)
        return np.array([value.get(name, 0.0) for name in names])
    if isinstance(value, tuple):
        return column(label, value, system.nv)
    return np.full(system.nv, value)


def experiment(spec: LinearSpec, law: ControlLaw, linear: Linearization, q0: Array) -> Experiment:
    """Return a law that holds a setpoint with its motion."""
    start = law.nominal_reference
    ref = np.zeros(0) if start is None or not law.nref else start
    reference = slot_motion(law.slots, ref, spec.reference, linear.system)
    return Experiment(law, start_of_run(spec, linear, q0), reference)

"""From a spec and a model to a controller and its reference motion."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.plant import Plant
from mbcasadi.shapes import column
from mbcasadi.system import System, read_mjcf
from mbcasadi.validation.spec import laws, mpc_tables, regulators
from mbcasadi.validation.spec.common import Spec
from mbcasadi.validation.spec.experiment import Experiment, start_configuration
from mbcasadi.validation.spec.inverse_dynamics import build_inverse_dynamics
from mbcasadi.validation.spec.own_controller import OwnSpec, build_own
from mbcasadi.validation.spec.schema import InverseDynamicsSpec
from mbcasadi.validation.spec.walking import WalkingSpec, build_walking

Array = NDArray[np.float64]

BUILDERS: dict[type[Spec], Callable[[Any, System, Array], Experiment]] = {
    WalkingSpec: build_walking,  # before the type that it extends
    InverseDynamicsSpec: build_inverse_dynamics,
    laws.LawSpec: laws.build_law,
    regulators.LqrSpec: regulators.build_lqr,
    regulators.LqgSpec: regulators.build_lqg,
    regulators.PolePlacementSpec: regulators.build_pole_placement,
    mpc_tables.LinearMpcSpec: mpc_tables.build_linear_mpc,
    mpc_tables.RealTimeIterationSpec: mpc_tables.build_real_time_iteration,
    OwnSpec: build_own,
}


@checked
def build_experiment(spec: Spec, model: str | Path) -> Experiment:
    """Build the controller of a spec for a model, from a start on its constraints.

    Args:
        spec: the controller and its motion, of `read_spec`.
        model: MJCF or URDF file.

    Raises:
        ModelError: the model cannot be read.
        SimulationError: no closed state is near the start.
        UnknownNameError, ProblemError: see `experiment_for_system`.
    """
    system = read_mjcf(model)
    plant = Plant(model)
    plant.reset(start_configuration(spec.start, system))
    return experiment_for_system(spec, system, plant.q)


@checked
def experiment_for_system(spec: Spec, system: System, q0: Array) -> Experiment:
    """Build the controller of a spec for a system that was read from a model.

    Args:
        spec: the controller and its motion.
        system: the model.
        q0: (nq,) start, on the constraints' manifold.

    Raises:
        UnknownNameError: the model lacks a frame, joint, actuator, key frame or mask entry.
        ProblemError: the problem contradicts itself.
    """
    q0 = column("q0", q0, system.nq)
    build = next(build for kind, build in BUILDERS.items() if isinstance(spec, kind))
    return build(spec, system, q0)

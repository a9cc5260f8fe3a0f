"""The types of controllers: the table of each one, and what makes it."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control import sequence
from mbcasadi.control.inverse_dynamics.controller import built_when_needed
from mbcasadi.plant import Plant
from mbcasadi.shapes import column
from mbcasadi.system import System, read_mjcf
from mbcasadi.unknown_names import unknown_name
from mbcasadi.validation.run import fitted_to_trial
from mbcasadi.validation.spec import laws, linear
from mbcasadi.validation.spec.common import Spec
from mbcasadi.validation.spec.estimation import sensing_of
from mbcasadi.validation.spec.experiment import Experiment
from mbcasadi.validation.spec.inverse_dynamics import InverseDynamicsSpec, build_inverse_dynamics
from mbcasadi.validation.spec.own import OwnSpec, build_own
from mbcasadi.validation.spec.plugin_kinds import Kind, plugin_kind
from mbcasadi.validation.spec.tables import new_table
from mbcasadi.validation.spec.walking import WalkingSpec, build_walking
from mbcasadi.validation.spec.whole_body import WholeBodySpec, build_whole_body

Array = NDArray[np.float64]


KINDS: dict[str, Kind] = {
    "inverse_dynamics_qp": Kind(InverseDynamicsSpec, build_inverse_dynamics),
    **{law: Kind(laws.table_of_law(law), laws.build_law) for law in laws.LAWS},
    "lqr": Kind(linear.LqrSpec, linear.build_lqr),
    "lqg": Kind(linear.LqgSpec, linear.build_lqg),
    "pole_placement": Kind(linear.PolePlacementSpec, linear.build_pole_placement),
    "linear_mpc": Kind(linear.LinearMpcSpec, linear.build_linear_mpc),
    "real_time_iteration": Kind(linear.RealTimeIterationSpec, linear.build_real_time_iteration),
    "walking": Kind(WalkingSpec, build_walking),
    "whole_body_mpc": Kind(WholeBodySpec, build_whole_body),
    "own": Kind(OwnSpec, build_own),
}
TYPES: dict[str, Any] = {
    name: new_table(kind.table.__name__, kind.table, type=(Literal[name], ...))
    for name, kind in KINDS.items()
}
"""The tables of each type of controller, by the `type` of the file."""


def kind_of(name: str) -> Kind | None:
    """Return a type of controller, of mbcasadi or of a package; None where there is none.

    Raises:
        ProblemError: see `plugin_kind`.
    """
    return KINDS.get(name) or plugin_kind(name)


def table_of_type(name: str) -> Any:
    """Return the table of a type of controller, as in `TYPES`; None where there is none.

    Raises:
        ProblemError: see `plugin_kind`.
    """
    if name in TYPES:
        return TYPES[name]
    kind = plugin_kind(name)
    return kind and new_table(kind.table.__name__, kind.table, type=(Literal[name], ...))


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
    source = spec.model(model)
    system = read_mjcf(source)
    plant = Plant(source)
    plant.reset(spec.start.configuration(system))
    return experiment_for_system(spec, system, plant.q)


@checked
def build_exported(spec: Spec, model: str | Path) -> Experiment:
    """Build the controller of a spec as its trial runs it: for the trial's delay and plant.

    Args:
        spec, model: as in `build_experiment`.

    Raises:
        MbcasadiError: as `build_experiment`.
    """
    with built_when_needed():
        experiment = build_experiment(spec, model)
    fitted = fitted_to_trial(experiment.controller, spec.model(model), spec.trial)
    return replace(experiment, controller=fitted)


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
    kind = kind_of(spec.type)
    if kind is None:
        raise unknown_name("type of controller", spec.type, TYPES)
    experiment = kind.build(spec, system, q0)
    if spec.sequence is not None:
        modes, transitions = spec.sequence.mode, spec.sequence.transition
        whole = sequence(experiment.controller, modes, transitions, name=spec.name)
        experiment = replace(experiment, controller=whole)
    if spec.estimation is None:
        return experiment
    sensors = sensing_of(spec.estimation, system, experiment.controller, experiment.q0)
    return replace(experiment, sensors=sensors, delay=spec.trial.delay)

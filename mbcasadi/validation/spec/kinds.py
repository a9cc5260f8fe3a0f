"""The types of controllers: the table of each one, and what makes it."""

from dataclasses import replace
from functools import cache
from importlib import import_module
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
from mbcasadi.validation.spec.common import Spec
from mbcasadi.validation.spec.controller_kind import Kind
from mbcasadi.validation.spec.estimation import sensing_of
from mbcasadi.validation.spec.experiment import Experiment
from mbcasadi.validation.spec.tables import new_table

Array = NDArray[np.float64]


TYPES = {
    "inverse_dynamics_qp": "inverse_dynamics",
    "computed_torque": "laws",
    "qr_inverse_dynamics": "laws",
    "gravity_compensated_pd": "laws",
    "impedance_control": "laws",
    "projected_inverse_dynamics": "laws",
    "passive_joint_control": "laws",
    "quasi_velocity_tracking": "laws",
    "hybrid_motion_force_control": "laws",
    "quasi_velocity_force": "laws",
    "constraint_force_control": "laws",
    "dependent_tracking": "laws",
    "dependent_regulation": "laws",
    "servo_control": "laws",
    "lqr": "linear",
    "lqg": "linear",
    "pole_placement": "linear",
    "linear_mpc": "linear",
    "real_time_iteration": "linear",
    "walking": "walking",
    "whole_body_mpc": "whole_body",
    "own": "own",
}
"""By the `type` of a file: the module in whose `KINDS` it is, imported for files of this type."""


def kind_of(name: str) -> Kind | None:
    """Return a type of controller, of mbcasadi or of a package; None where there is none.

    Raises:
        ProblemError: see `plugin_kind`.
    """
    if name in TYPES:
        kinds: dict[str, Kind] = import_module(f"{__package__}.{TYPES[name]}").KINDS
        return kinds[name]
    from mbcasadi.validation.spec.plugin_kinds import plugin_kind  # only now: it imports all laws

    return plugin_kind(name)


def table_of_type(name: str) -> Any:
    """Return the table of a type of controller, with the key `type`; None where there is none.

    Raises:
        ProblemError: see `plugin_kind`.
    """
    kind = kind_of(name)
    return kind and _table(kind.table, name)


@cache
def _table(table: type[Spec], name: str) -> type[Spec]:
    return new_table(table.__name__, table, type=(Literal[name], ...))


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

"""Inputs at the start of an experiment, for the example programs of its exported laws."""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description.controller import HasController
from mbcasadi.validation.closed_loop.outer_law import OUTER
from mbcasadi.validation.spec.experiment import Experiment, Exportable

Array = NDArray[np.float64]
Inputs = dict[str, Array]


@checked
def example_inputs(experiment: Experiment) -> dict[str, Inputs]:
    """Return the inputs of each of the experiment's laws at its start, at rest.

    The reference and the mask are those of t = 0; without a mask all entries are on, as in the
    closed loop. Below an outer law both come from its planner. Inputs that are not returned have
    their defaults.

    Args:
        experiment: the controller and its start.

    Returns:
        The inputs by name, by the key of the law in `experiment.all_laws`.
    """
    laws = experiment.all_laws
    if experiment.outer is None:
        return {"": _inputs_of_function(laws[""], _start(experiment))}
    planner = experiment.outer.planner
    of_planner = {
        "q": experiment.q0,
        "command": np.array(experiment.outer.command, dtype=float),
        "u": planner.u0,
        "z": planner.z0,
    }
    plan = {k: np.array(v, dtype=float) for k, v in planner.function(**of_planner).items()}
    above = {name.removeprefix(OUTER): v for name, v in plan.items() if name.startswith(OUTER)}
    below = {"q": experiment.q0, "ref": plan["ref"], "mask": plan["mask"]}
    known = {"": below, "_mpc": above, "_planner": of_planner}
    return {suffix: _inputs_of_function(law, known[suffix]) for suffix, law in laws.items()}


def _start(experiment: Experiment) -> Inputs:
    known = {"q": experiment.q0}
    if experiment.reference is not None:
        known["ref"] = experiment.reference(0.0)
    function = _function(experiment.controller)
    if experiment.mask is not None:
        known["mask"] = experiment.mask(0.0)
    elif "mask" in function.name_in():
        known["mask"] = np.ones(function.numel_in("mask"))
    return known


def _inputs_of_function(law: Exportable, known: Inputs) -> Inputs:
    names = _function(law).name_in()
    return {name: value.ravel("F") for name, value in known.items() if name in names}


def _function(law: Exportable) -> ca.Function:
    controller = law.controller if isinstance(law, HasController) else law
    return controller if isinstance(controller, ca.Function) else controller.function
